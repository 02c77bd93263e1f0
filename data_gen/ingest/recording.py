"""What a reader makes of somebody's file: one recording after another, as it was measured, nothing filled in.

Letters: T frames, N agents, P body parts, D axes, F features, A action dimensions.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Shaped

from data_gen.trajectory import ActionSpec, FeatureMask

SCOPES = ("recording", "agent", "frame", "frame and agent")
FAR = 2.0**16  # from there on single precision, in which all is stored, has steps of 1/128 or more


class LabelColumn(NamedTuple):
    """A label as the file has it: what it belongs to (`SCOPES`), and its kind, class or real.

    Classes are numbered as in `classes`, -1 where a label is not known; a number that is not known is NaN.
    """

    name: str
    scope: str
    kind: str
    classes: tuple[str, ...] = ()


class Layout(NamedTuple):
    """What every recording of a source has in common.

    `agents` names the columns of agents where their order means something (roles); it is empty where agents are
    exchangeable. An `action` of size 0 says that there are none, and that they have to be derived. `rate` is in frames
    a second, 0 where it is not known; `units` are by name (position, time, a feature). `provenance` is JSON. `origin`
    is what was taken from places, a number an axis, () where nothing was. `feature_mask` says which of `features` and
    actions each of `agents` has, where not all have all; recordings have 0 in the others.
    """

    source: str
    parts: tuple[str, ...]
    axes: tuple[str, ...]
    features: tuple[str, ...]
    action: ActionSpec
    action_names: tuple[str, ...]
    agents: tuple[str, ...]
    rate: float
    units: Mapping[str, str]
    labels: tuple[LabelColumn, ...]
    provenance: Mapping[str, Any]
    origin: tuple[float, ...] = ()
    feature_mask: FeatureMask | None = None


class Recording(NamedTuple):
    """One uninterrupted recording: a game, a session of an animal, an episode of a learner.

    `name` is unique within the source; `group` is the unit that is split by, and `file` what messages name. `time` is
    in seconds (in frames where the layout has no rate), sorted, each stamp once. `position` and `features` are NaN
    where they were not measured; `present` says which agents are there. `labels` have the shape of their scope: (),
    [N], [T], [T, N]. `dropped` says, a line each, what the reader left out and why.
    """

    name: str
    group: str
    file: str
    agents: tuple[str, ...]
    time: Float64[np.ndarray, " T"]
    present: Bool[np.ndarray, "T N"]
    position: Float32[np.ndarray, "T N P D"]
    features: Float32[np.ndarray, "T N F"]
    actions: Float32[np.ndarray, "T N A"] | Int32[np.ndarray, "T N"]
    rewards: Float32[np.ndarray, "T N"]
    terminated: bool
    labels: Mapping[str, Shaped[np.ndarray, "..."]]
    dropped: tuple[str, ...] = ()


@runtime_checkable
class Reader(Protocol):
    """A source that is open: its layout, and its recordings, from the first one on at every call, in the same order.

    Opening it checks all that can be checked without reading every value. A reader holds one recording in memory.
    """

    layout: Layout

    def recordings(self) -> Iterator[Recording]:
        """Raises InputError, with file and place, where the file is not what its format says."""
        ...
