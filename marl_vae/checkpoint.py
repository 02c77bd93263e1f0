"""Training state on disk: whole or absent, newest last, with the best model inside each."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jaxtyping import Array, Bool, Float, Int, PyTree

from data_gen.trajectory import ActionSpec, InputError
from marl_vae.files import write_text
from marl_vae.model import Dims, Model
from marl_vae.normalise import Normaliser

VERSION = 3
KEPT = 2


class TrainState(NamedTuple):
    """All that the next step and the stopping rule need; `best` is the model that the validation bound chose.

    Of an autoencoder `best_bound` is the validation episodes' data term.

    `tuned` are the weights that an objective of two levels learns, with their optimiser's state.
    """

    params: PyTree
    opt_state: PyTree
    tuned: PyTree
    tuner_state: PyTree
    step: Int[Array, ""]
    best: PyTree
    best_bound: Float[Array, ""]
    best_step: Int[Array, ""]
    stale_cycles: Int[Array, ""]
    finished: Bool[Array, ""]


class Description(NamedTuple):
    """What a checkpoint belongs to; a run continues only under an equal one."""

    model: Model
    dims: Dims
    training: dict[str, Any]
    data: str


class Checkpoints:
    """Checkpoints of one run, by orbax; saving is atomic, so a killed writer leaves nothing that is read."""

    def __init__(self, directory: Path):
        self.directory = directory.absolute()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=KEPT, enable_async_checkpointing=False, cleanup_tmp_directories=True
        )
        self._manager = ocp.CheckpointManager(self.directory, options=options)

    def latest(self) -> int | None:
        """Step of the newest whole checkpoint."""
        return self._manager.latest_step()

    def save(self, state: TrainState, scale: Normaliser) -> None:
        """Write a state under its step; one that is there already is the same, bit for bit, and stays."""
        last, params = _split(state)
        best = {"params": params, "scale": scale._asdict()}
        args = ocp.args.Composite(
            last=ocp.args.StandardSave(last),
            best=ocp.args.StandardSave(best),
            digest=ocp.args.JsonSave({"last": _digest(last), "best": _digest(best)}),
        )
        self._manager.save(int(state.step), args=args)

    def restore(self, like: TrainState, step: int | None = None) -> TrainState:
        """The state of a step, or the newest, with the structure and dtypes of `like`."""
        last, best = _split(like)
        found = self._read(step, last=last, best={"params": best, "scale": _abstract_scale(self.directory)})
        state = jax.tree.unflatten(jax.tree.structure(like._replace(best=None)), jax.tree.leaves(found["last"]))
        return state._replace(best=found["best"]["params"])

    def restore_best(self, params: PyTree) -> tuple[PyTree, Normaliser]:
        """The chosen model's parameters, with the structure of `params`, and its scales."""
        found = self._read(None, best={"params": params, "scale": _abstract_scale(self.directory)})
        return found["best"]["params"], Normaliser(**found["best"]["scale"])

    def _read(self, step: int | None, **templates: PyTree) -> dict[str, PyTree]:
        step = self.latest() if step is None else step
        if step is None:
            raise InputError(f"{self.directory} holds no whole checkpoint; train the run first.")
        args = {name: ocp.args.StandardRestore(_abstract(template)) for name, template in templates.items()}
        try:
            composite = ocp.args.Composite(**args, digest=ocp.args.JsonRestore())
            found = dict(self._manager.restore(step, args=composite))
        except (ValueError, OSError, KeyError) as error:
            raise self._unreadable(step, str(error).splitlines()[0]) from error
        digests = found.pop("digest")
        for name, tree in found.items():
            if _digest(tree) != digests[name]:
                raise self._unreadable(step, f"{name!r} does not have the checksum it was saved with")
        return found

    def _unreadable(self, step: int, why: str) -> InputError:
        return InputError(
            f"The checkpoint {self.directory / str(step)} cannot be read ({why}). It is damaged or was written for "
            "another model: remove that folder to fall back on the one before it."
        )


def _split(state: TrainState) -> tuple[PyTree, PyTree]:
    leaves = jax.tree.leaves(state._replace(best=None))
    return {f"{i:04d}": leaf for i, leaf in enumerate(leaves)}, state.best


def _digest(tree: PyTree) -> str:
    """SHA-256 of all leaves in order, since tensorstore reads a flipped byte in silence."""
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        total.update(np.ascontiguousarray(leaf).tobytes())
    return total.hexdigest()


def _abstract(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), tree)


def _abstract_scale(directory: Path) -> dict[str, jax.ShapeDtypeStruct]:
    dims = read_description(directory).dims
    shapes = {}
    for name, width in (("obs", dims.obs), ("action", dims.action.size)):
        shapes |= {f"{name}_mean": (width,), f"{name}_std": (width,), f"{name}_real": (dims.agents, width)}
    return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}


def write_description(directory: Path, description: Description) -> None:
    """Write `model.json`, or refuse to go on where the folder belongs to another model, data set or training."""
    path = directory / "model.json"
    new = _to_json(description)
    if path.exists():
        _refuse_other(path, _to_json(read_description(directory)), new)  # settings that are newer have their defaults
        return
    directory.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(new, indent=1))


def read_description(directory: Path) -> Description:
    """What `model.json` says; InputError where it is missing or of another version."""
    path = directory / "model.json"
    try:
        saved = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: there is no trained model here; name a run's folder.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON ({error}); the run cannot be read: train it again.") from None
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        raise InputError(f"{path} is not of version {VERSION}, which this code reads. Train the run again.")
    try:
        dims = saved["dims"]
        return Description(
            model=Model(**saved["model"]),
            dims=Dims(agents=dims["agents"], obs=dims["obs"], action=ActionSpec(**dims["action"])),
            training=saved["training"],
            data=saved["data"],
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} was edited ({error}); the run cannot be read: train it again.") from None


def _to_json(description: Description) -> dict[str, Any]:
    dims = description.dims
    return {
        "version": VERSION,
        "model": vars(description.model),
        "dims": {**dims._asdict(), "action": dims.action._asdict()},
        "training": description.training,
        "data": description.data,
    }


def _refuse_other(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    different = [key for key in new if json.loads(json.dumps(old[key])) != json.loads(json.dumps(new[key]))]
    if different:
        raise InputError(
            f"{path.parent} was trained with another {' and '.join(different)} than is asked for now. Give the new run "
            "another name, or remove that folder to train anew."
        )
