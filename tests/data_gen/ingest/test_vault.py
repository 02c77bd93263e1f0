"""Vaults written by Flashbax come back as they were written, cut at the ends of episodes, or a message says why not."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.ingest.readers import flashbax, vault
from data_gen.ingest.readers.vault import Vault, open_vault
from data_gen.trajectory import ActionSpec, InputError
from tests.data_gen.ingest.vaults import LENGTHS, N_AGENTS, N_OBS, stream, write_vault


def recordings(path: Path, **settings):
    reader = open_vault(Vault(str(path), **settings))
    return reader.layout, list(reader.recordings())


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("block_bytes", [1, 32 * 2**20])
def test_comes_back_as_flashbax_wrote_it(tmp_path, monkeypatch, discrete, block_bytes):
    """Also where a block holds one episode only, or one flag: no step is lost or read twice at the edges."""
    for module in (flashbax, vault):
        monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    written = stream(0, discrete)
    write_vault(tmp_path / "ant.vlt", "Good", written)
    layout, found = recordings(tmp_path / "ant.vlt")
    stops = np.cumsum(LENGTHS)
    assert [len(one.time) for one in found] == list(LENGTHS)
    for one, stop, length in zip(found, stops, LENGTHS, strict=True):
        steps = slice(stop - length, stop)
        np.testing.assert_array_equal(one.features, written["observations"][steps])
        np.testing.assert_array_equal(one.actions, written["actions"][steps])
        np.testing.assert_array_equal(one.rewards, written["rewards"][steps])
        np.testing.assert_array_equal(one.time, np.arange(length))
    assert layout.action == (ActionSpec("discrete", 5) if discrete else ActionSpec("continuous", 2))
    assert layout.features == tuple(f"obs_{k}" for k in range(N_OBS))
    assert layout.agents == ("agent_0", "agent_1", "agent_2")[:N_AGENTS]
    assert layout.provenance["left_out"] == ["infos.legals", "infos.state"]
    assert len({one.name for one in found}) == len({one.group for one in found}) == len(LENGTHS)


def test_ends_and_presence(tmp_path):
    """Episodes: terminal, truncated, an agent that ends early, one step long, and one that was not finished."""
    write_vault(tmp_path / "v", "Good", stream(1))
    found = recordings(tmp_path / "v")[1]
    assert [one.terminated for one in found] == [True, False, False, True, False]
    early = np.ones((LENGTHS[2], N_AGENTS), bool)
    early[3:, 1] = False  # stream() ends agent 1 with its step 2
    np.testing.assert_array_equal(found[2].present, early)
    assert all(one.present.all() for k, one in enumerate(found) if k != 2)


def test_uids_are_chosen_labelled_and_may_be_the_group(tmp_path, monkeypatch):
    for seed, uid in enumerate(("Good", "Medium", "Poor")):
        write_vault(tmp_path / "v.vlt", uid, stream(seed))
    with pytest.raises(InputError, match="holds Good, Medium, Poor.*uid="):
        open_vault(Vault(str(tmp_path / "v.vlt")))
    with pytest.raises(InputError, match="no uid 'Replay'; it holds Good, Medium, Poor"):
        open_vault(Vault(str(tmp_path / "v.vlt"), uid="Good,Replay"))
    layout, found = recordings(tmp_path / "v.vlt", uid="all", group="uid", roles=False)
    assert layout.agents == () and layout.labels[0].classes == ("Good", "Medium", "Poor")
    assert [one.group for one in found] == [uid for uid in ("Good", "Medium", "Poor") for _ in LENGTHS]
    assert [layout.labels[0].classes[int(one.labels["uid"])] for one in found] == [one.group for one in found]
    monkeypatch.setenv("HOME", str(tmp_path))
    layout, alone = recordings(Path("~/v.vlt"), uid="Medium")
    assert layout.labels == () and alone[0].group == alone[0].name == "Medium/0"
    np.testing.assert_array_equal(alone[1].features, found[len(LENGTHS) + 1].features)


@pytest.mark.parametrize("seed", [0, 1])
def test_sixty_random_episodes_are_told_apart(tmp_path, monkeypatch, seed):
    """Against a loop over steps: agents end at different times, terminal or truncated, and blocks are of any size."""
    rng = np.random.default_rng(seed)
    terminals, truncations, lengths = [], [], rng.integers(1, 9, 60)
    for length in lengths:
        last = rng.integers(0, length, 3)
        last[rng.integers(3)] = length - 1
        over, cut = np.arange(length)[:, None] >= last, rng.random(3) < 0.4
        terminals.append(over & ~cut)
        truncations.append(over & cut)
    flags = {"terminals": np.concatenate(terminals)[:-1], "truncations": np.concatenate(truncations)[:-1]}
    written = stream(seed, steps=len(flags["terminals"])) | flags
    write_vault(tmp_path / "v", "Good", written)
    for block_bytes in (1, 640, 2**25):
        for module in (flashbax, vault):
            monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
        found, t = recordings(tmp_path / "v")[1], 0
        assert len(found) == 60 - (lengths[-1] == 1)
        for one in found:
            gone = np.zeros(3, bool)
            for step in range(len(one.time)):
                np.testing.assert_array_equal(one.features[step], written["observations"][t])
                np.testing.assert_array_equal(one.present[step], ~gone)
                gone |= flags["terminals"][t] | flags["truncations"][t]
                t += 1
                assert gone.all() == (step == len(one.time) - 1) or one is found[-1]
            assert one.terminated == flags["terminals"][t - 1].all()
        assert t == len(flags["terminals"])


def test_a_vault_without_truncations_ends_where_terminals_do(tmp_path):
    written = stream(0)
    written.pop("truncations")
    written["terminals"] = written["terminals"].astype(np.float32)  # flags may be numbers
    write_vault(tmp_path / "v", "Good", written)
    found = recordings(tmp_path / "v")[1]
    assert [len(one.time) for one in found] == [LENGTHS[0], sum(LENGTHS[1:4]), LENGTHS[4]]


def test_legals_say_how_many_choices_there_are(tmp_path):
    written = stream(0)
    written["actions"] = np.minimum(written["actions"], 1)
    write_vault(tmp_path / "a", "Good", written)
    assert recordings(tmp_path / "a")[0].action == ActionSpec("discrete", 5)
    written.pop("infos")
    write_vault(tmp_path / "b", "Good", written)
    layout = recordings(tmp_path / "b")[0]
    assert layout.action == ActionSpec("discrete", 2) and layout.provenance["left_out"] == []


def lost_flag(written):
    written["terminals"][sum(LENGTHS[:2]) + 4, 1] = False


def no_leaf(written):
    written.pop("rewards")


def no_flags(written):
    written["terminals"] = written["terminals"] * 7


def choice_below_0(written):
    written["actions"][2, 1] = -3


def choice_unknown(written):
    written["actions"][2, 1] = 9


def real_choices(written):
    written["actions"] = written["actions"].astype(np.float32)


def other_agents(written):
    written["rewards"] = written["rewards"][:, :1]


def no_features(written):
    written["observations"] = written["observations"][..., 0]


WRONG = {
    lost_flag: "agent 1 is terminal or truncated at step 13 and not at the next",
    no_leaf: "no leaf 'rewards'; there are actions, infos.legals",
    no_flags: "leaf 'terminals' holds other values than 0 and 1",
    choice_below_0: "action -3 at step 2, agent 1; infos.legals",
    choice_unknown: r"action 9 at step 2, agent 1; infos.legals knows 0\.\.4",
    real_choices: "leaf 'actions' holds float32 of shape",
    other_agents: "leaf 'rewards' has shape .*as many agents",
    no_features: "leaf 'observations' has shape",
}


@pytest.mark.parametrize("spoil", WRONG, ids=lambda spoil: spoil.__name__)
def test_what_is_not_a_stream_of_episodes_is_refused(tmp_path, spoil):
    written = stream(0)
    spoil(written)
    write_vault(tmp_path / "v.vlt", "Good", written)
    with pytest.raises(InputError, match=WRONG[spoil]) as told:
        recordings(tmp_path / "v.vlt")
    assert "v.vlt/Good" in str(told.value)


def test_nothing_written_is_refused(tmp_path):
    write_vault(tmp_path / "v", "Good", jax.tree.map(lambda leaf: leaf[:4], stream(0)), length=0)
    with pytest.raises(InputError, match="v/Good: vault_index is 0"):
        open_vault(Vault(str(tmp_path / "v")))


def test_damaged_files_are_named(tmp_path):
    """Each file of the vault in turn: cut to half, or gone."""
    whole = tmp_path / "whole"
    write_vault(whole, "Good", stream(0))
    files = sorted(file for file in whole.rglob("*") if file.is_file())
    assert len(files) > 3
    for file in files:
        content = file.read_bytes()
        for damage in (content[: len(content) // 2], b"", None):
            file.unlink() if damage is None else file.write_bytes(damage)
            try:
                found = recordings(whole)[1]
            except InputError as error:
                assert str(whole) in str(error)
            else:  # a file that nothing refers to any more
                assert sum(len(one.time) for one in found) == sum(LENGTHS)
        file.write_bytes(content)
    assert len(recordings(whole)[1]) == len(LENGTHS)


def test_metadata_that_is_none(tmp_path):
    write_vault(tmp_path / "v", "Good", stream(0))
    file = tmp_path / "v" / "Good" / "metadata.json"
    for text in ("[]", "{}", json.dumps({"structure_shape": 3}), "{"):
        file.write_text(text)
        with pytest.raises(InputError, match="metadata.json is not that of a vault"):
            open_vault(Vault(str(tmp_path / "v")))


@pytest.mark.parametrize(
    ("path", "match"),
    [("nothing", "is no folder"), (".", "holds no uid"), ("v/Good", "is one uid of a vault. Give path=.*uid=Good")],
)
def test_other_places_are_refused(tmp_path, path, match):
    write_vault(tmp_path / "v", "Good", stream(0))
    with pytest.raises(InputError, match=match):
        open_vault(Vault(str(tmp_path / path)))


def test_uids_that_do_not_fit(tmp_path):
    write_vault(tmp_path / "v", "Good", stream(0))
    write_vault(tmp_path / "v", "Poor", stream(0) | {"observations": jnp.zeros((sum(LENGTHS), N_AGENTS, 9))})
    with pytest.raises(InputError, match=r"Poor: leaf 'observations' has shape \[3, 9\] a step, but in .*Good"):
        open_vault(Vault(str(tmp_path / "v"), uid="all"))
