"""The folders are one sentence, data_gen → marl_vae → probes → launch, and outside libraries have one home."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {
    "data_gen": {"data_gen"},
    "marl_vae": {"data_gen.trajectory", "marl_vae"},
    "probes": {"data_gen.trajectory", "marl_vae.latents", "probes"},
    "launch": {"data_gen", "marl_vae", "probes", "launch"},
}
HOMES = {
    "hydra": {"launch"},
    "omegaconf": {"launch"},
    "wandb": {"launch"},
    "wandb_workspaces": {"launch"},
    "rich": {"launch", "probes"},
    "sklearn": {"probes"},
    "ruptures": {"probes"},
    "zarr": {"data_gen"},
    "orbax": {"marl_vae"},
    "grain": {"marl_vae"},
    "mujoco": {"data_gen/engines"},
    "brax": {"data_gen/engines"},
    "gymnasium": {"data_gen/engines"},
}
FILES = [file for folder in ALLOWED for file in sorted((ROOT / folder).rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def imported(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def wrong(place: str, names: set[str]) -> set[str]:
    """Imports that a file of this place, a folder or a folder in one, may not make."""
    found, folder = set(), place.split("/")[0]
    for name in names:
        top = name.split(".")[0]
        if top in HOMES and not HOMES[top] & {folder, place}:
            found.add(name)
        pairs = [(f"{name}.", f"{ok}.") for ok in ALLOWED[folder]] if top in ALLOWED else []
        if pairs and not any(a.startswith(b) or b.startswith(a) for a, b in pairs):
            found.add(name)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_go_one_way(file: Path) -> None:
    assert wrong(str(file.relative_to(ROOT).parent), imported(file.read_text())) == set()


def test_a_wrong_import_is_found() -> None:
    assert wrong("marl_vae", imported("from data_gen.storage.store import write_group")) != set()
    assert wrong("data_gen", imported("import marl_vae.train")) != set()
    assert wrong("probes", imported("from hydra import compose")) == {"hydra", "hydra.compose"}
    assert wrong("probes", imported("from marl_vae.latents import kl")) == set()
    assert wrong("data_gen", imported("import mujoco")) == wrong("data_gen/domains", imported("import mujoco")) != set()
    assert wrong("data_gen/engines", imported("import mujoco")) == set()


@pytest.mark.parametrize(
    "file", [*FILES, *(ROOT / "tests").rglob("*.py")], ids=lambda file: str(file.relative_to(ROOT))
)
def test_files_hold_one_noun(file: Path) -> None:
    lines = len(file.read_text().splitlines())
    assert lines <= 300
    if file.parent.name == "launch" and "__main__" in file.read_text():
        assert lines <= 70, "an entry point holds no logic"
