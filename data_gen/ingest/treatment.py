"""From a recording as it was measured to episodes: cleaned, at one rate, in a frame of reference, with actions, cut.

Letters: T steps, N agents.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int32

from data_gen.ingest.clean import all_known, check_recording, clean, only_where
from data_gen.ingest.derive import ACTIONS, action_names, derive
from data_gen.ingest.episodes import Episode, Outline
from data_gen.ingest.frames import FRAMES, Bodies, bodies_of, observation_names, observe
from data_gen.ingest.order import put, slots_in
from data_gen.ingest.recording import Layout, Recording
from data_gen.ingest.resample import Track, describe_grid, grid_of, resample
from data_gen.ingest.windows import label_of, spans
from data_gen.trajectory import ActionSpec, InputError, LabelSpec

RETURN, RETURN_CLASS = "team_return", "return_class"


@dataclass
class Treatment:
    """What is made of a recording. Times are in seconds, or in frames where the source has no rate.

    `frame` is the frame of reference (world, egocentric, teammates); `heading` two body parts, from the first to the
    second (none: the way gone so far); `neighbours` how many teammates are seen (0: all). `action` is given,
    displacement (a step's way), velocity (way per second), or auto: the first of given, velocity and displacement that
    the source allows. `rate` is in steps a second (0: the source's); `gap` the longest time without a measurement that
    is filled (which lets an observation foresee the end of its gap); `speed`, in units of place per second, what is a
    teleport (0: nothing is). Episodes are windows of `window` steps (0: the recording), a new one every `stride` steps
    (0: the window), with an agent in `least` steps or more. Agents without roles are put in an order drawn from `seed`,
    unless `permute` is false. `return_within` is a class label in whose classes the return is cut apart.
    """

    frame: str = "world"
    heading: list[str] = field(default_factory=list)
    neighbours: int = 0
    action: str = "auto"
    rate: float = 0.0
    gap: float = 0.0
    speed: float = 0.0
    window: int = 0
    stride: int = 0
    least: int = 2
    permute: bool = True
    return_within: str = ""
    seed: int = 0

    def __post_init__(self):
        for name, known in (("frame", FRAMES), ("action", ACTIONS)):
            if getattr(self, name) not in known:
                raise InputError(f"treatment: {name} is {getattr(self, name)!r}; choose one of {', '.join(known)}.")
        for name in ("rate", "gap", "speed", "window", "stride", "neighbours", "seed"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"treatment: {name} is {getattr(self, name)}; it must be 0 or more.")
        if self.least < 1:
            raise InputError(f"treatment: least is {self.least}; an episode has at least 1 step with an agent.")
        if self.window and self.window < self.least:
            raise InputError(f"treatment: window is {self.window}, but episodes have at least {self.least} steps.")
        if len(self.heading) not in (0, 2) or len(set(self.heading)) != len(self.heading):
            raise InputError(f"treatment: heading is {self.heading}; name two body parts, from tail to nose, or none.")


class Steps(NamedTuple):
    """A recording as it is stored: `mask` is where observation and action are known, and elsewhere values are 0."""

    obs: Float32[np.ndarray, "T N Do"]
    actions: Float32[np.ndarray, "T N Da"] | Int32[np.ndarray, "T N"]
    mask: Bool[np.ndarray, "T N"]
    rewards: Float32[np.ndarray, "T N"]


def outline(layout: Layout, how: Treatment, n_agents: int, rewarded: bool) -> Outline:
    """What all episodes of `episodes_of` have in common; `rewarded` says whether a reward anywhere is not 0.

    Where one is, the team's return has a label `return_class`, cut at quantiles. Raises InputError where the source
    does not have what the treatment asks for.
    """
    _check(layout, how, n_agents)
    derived, n_seen = _derived(layout, how), _n_seen(how, n_agents)
    if derived == "given":
        action, names = layout.action, layout.action_names
    else:
        names = action_names(layout, how.frame)
        action = ActionSpec("continuous", len(names))
    names_seen = observation_names(layout, how.frame, n_seen)
    if not names_seen:
        raise InputError(
            f"{layout.source}: with treatment.frame={how.frame} there is nothing to observe for {n_agents} agent(s). "
            f"Name columns of places or features, or take frame=world."
        )
    in_plane = how.frame == "world" and len(layout.parts) > 0 and len(layout.axes) > 1
    return Outline(
        obs_names=names_seen,
        action=action,
        action_names=names,
        agents=layout.agents + tuple(f"agent {k}" for k in range(len(layout.agents), n_agents)),
        position=(0, 1) if in_plane else (),
        labels=_label_specs(layout, how, rewarded),
        rate=(how.rate or layout.rate) if layout.rate else 0.0,
        units=_units(layout, derived),
        frame=how.frame,
        derived=derived,
    )


def episodes_of(
    recording: Recording, layout: Layout, how: Treatment, n_agents: int
) -> tuple[list[Episode], tuple[str, ...]]:
    """The windows of a recording, and a line for all that was filled, masked, flagged or left out.

    Each has a label `team_return`: the sum over its steps of the mean reward of the agents that are there, NaN where
    one is not known. Raises InputError where the source does not have what the treatment asks for, time does not go
    forward, its unit must be wrong, or there are more agents than `n_agents`.
    """
    _check(layout, how, n_agents)
    check_recording(recording)
    cleaned = clean(recording, layout, how.speed)
    grid = grid_of(recording, layout, how.rate, how.gap)
    track = resample(cleaned, layout, grid)
    heading = tuple(layout.parts.index(name) for name in how.heading)
    bodies = bodies_of(track, how.frame, (heading[0], heading[1]) if heading else None)
    steps, masked = _known(track, bodies, layout, how, n_agents, grid.rate)
    episodes, left_out = _cut(steps, track, recording, layout, how, n_agents)
    lines = cleaned.lines + describe_grid(recording, grid) + _filled(track, how) + masked + left_out
    return episodes, tuple(f"{recording.name} ({recording.file}): {line}" for line in lines)


def _check(layout: Layout, how: Treatment, n_agents: int) -> None:
    if n_agents < max(1, len(layout.agents)):
        raise InputError(
            f"{layout.source}: episodes have room for {n_agents} agent(s), but need {max(1, len(layout.agents))}."
        )
    unknown = [name for name in how.heading if name not in layout.parts]
    if unknown:
        raise InputError(
            f"treatment: heading names {unknown[0]!r}, which is no body part of {layout.source}; its parts are "
            f"{', '.join(layout.parts) or 'none'}."
        )
    if how.frame != "world" and not layout.parts:
        raise InputError(f"treatment: frame={how.frame} needs places, which {layout.source} has none of. Take world.")
    if how.frame == "egocentric" and len(layout.axes) < 2:
        raise InputError(f"treatment: frame=egocentric needs two axes; {layout.source} has {len(layout.axes)}.")
    _derived(layout, how)
    clash = {RETURN, RETURN_CLASS} & {label.name for label in layout.labels}
    if clash:
        raise InputError(f"{layout.source}: a label is named {min(clash)!r}, which is made from rewards; rename it.")
    _check_within(layout, how)


def _check_within(layout: Layout, how: Treatment) -> None:
    known = [one.name for one in layout.labels if one.kind == "class" and "agent" not in one.scope]
    if how.return_within and how.return_within not in known:
        raise InputError(
            f"treatment: return_within is {how.return_within!r}, which is no class label of a recording or a frame in "
            f"{layout.source}; those are {known}."
        )


def _derived(layout: Layout, how: Treatment) -> str:
    """How actions are made. Raises InputError where they cannot be made so."""
    kind = how.action
    if kind == "auto":
        kind = "given" if layout.action.size else "velocity" if layout.rate else "displacement"
    if kind == "given" and not layout.action.size:
        raise InputError(f"treatment: action=given, but {layout.source} has no actions. Take displacement or velocity.")
    if kind != "given" and not (layout.parts and layout.axes):
        raise InputError(
            f"treatment: action={how.action}, but {layout.source} has no places whose change could be an action. Name "
            f"columns of places, or of actions."
        )
    if kind == "velocity" and not layout.rate:
        raise InputError(f"treatment: action=velocity needs a rate, which {layout.source} has none of. Give its rate.")
    return kind


def _n_seen(how: Treatment, n_agents: int) -> int:
    return how.neighbours or n_agents - 1


def _label_specs(layout: Layout, how: Treatment, rewarded: bool) -> tuple[LabelSpec, ...]:
    own = [LabelSpec(label.name, label.name, label.kind, classes=label.classes) for label in layout.labels]
    cut = LabelSpec(RETURN_CLASS, RETURN, "quantile", bins=3, within=how.return_within)
    return (*[cut] * rewarded, *own)


def _units(layout: Layout, derived: str) -> dict[str, str]:
    place, per = layout.units.get("position", ""), "s" if derived == "velocity" else "step"
    return {**layout.units, **({"action": f"{place}/{per}"} if place and derived != "given" else {})}


def _known(
    track: Track, bodies: Bodies, layout: Layout, how: Treatment, n_agents: int, rate: float
) -> tuple[Steps, tuple[str, ...]]:
    """What is stored of each step, and how many steps of agents that are there it leaves out, and why."""
    obs, derived = observe(track, bodies, how.frame, _n_seen(how, n_agents)), _derived(layout, how)
    actions = track.actions
    if derived != "given":
        actions = derive(track.position, bodies, rate if derived == "velocity" else 1.0)
    placed = all_known(bodies.place)
    ahead = np.ones_like(placed) if bodies.facing is None else all_known(bodies.facing)
    seen = all_known(obs) & placed & ahead
    mask = seen & (actions >= 0 if actions.ndim == 2 else all_known(actions))
    steps = Steps(
        obs=only_where(mask, obs, 0).astype(np.float32, copy=False),
        actions=only_where(mask, actions, 0).astype(np.int32 if actions.ndim == 2 else np.float32, copy=False),
        mask=mask,
        rewards=only_where(mask & np.isfinite(track.rewards), track.rewards, 0).astype(np.float32),
    )
    there = track.present & ~mask
    reasons = {
        "the heading is not known": there & placed & ~ahead,
        "the action is not known" + " (no place at the next step)" * (derived != "given"): there & seen,
    }
    reasons["a value is missing"] = there & ~seen & ~reasons["the heading is not known"]
    said = ", ".join(f"{which.sum()} where {why}" for why, which in reasons.items() if which.any())
    lines = (f"{there.sum()} of {track.present.sum()} steps of agents that are there masked: {said}",) if said else ()
    return steps, lines


def _filled(track: Track, how: Treatment) -> tuple[str, ...]:
    count = track.filled.sum()
    return (f"{count} step(s) of an agent filled across gaps of up to {how.gap:g}",) if count else ()


def _cut(
    steps: Steps, track: Track, recording: Recording, layout: Layout, how: Treatment, n_agents: int
) -> tuple[list[Episode], tuple[str, ...]]:
    windows, busy = spans(len(steps.mask), how.window, how.stride), np.asarray(steps.mask.any(1))
    enough = [int(busy[a:b].sum()) >= how.least for a, b in windows]
    lines = []
    if not all(enough):
        lines.append(
            f"{len(windows) - sum(enough)} of {len(windows)} window(s) dropped, the first from step "
            f"{windows[enough.index(False)][0]}: an agent is there in fewer than {how.least} steps"
        )
    between = len(steps.mask) - sum(b - a for a, b in windows)
    if between > 0:
        lines.append(f"{between} of {len(steps.mask)} steps lie between the windows and are left out")
    unknown = np.isnan(track.rewards).sum()
    if unknown:
        lines.append(f"{unknown} reward(s) are not known, nor is the return there")
    kept = [slice(*span) for span, one in zip(windows, enough, strict=True) if one]
    return [_episode(steps, track, recording, layout, how, n_agents, here) for here in kept], tuple(lines)


def _episode(
    steps: Steps, track: Track, recording: Recording, layout: Layout, how: Treatment, n_agents: int, here: slice
) -> Episode:
    cut = Steps(*(field[here] for field in steps))
    slots = slots_in(
        recording, layout, np.asarray(cut.mask.any(0)), n_agents, how.seed if how.permute else None, here.start
    )
    last = np.zeros(len(cut.mask), bool)
    last[-1] = True
    ends = recording.terminated and here.stop == len(steps.mask)
    return Episode(
        **{name: put(values, slots, n_agents) for name, values in cut._asdict().items()},
        terminated=last & ends,
        truncated=last & (not ends),
        labels={
            RETURN: np.asarray(track.team[here].sum(), np.float32),
            **{one.name: label_of(one, recording, track, cut.mask, slots, here, n_agents) for one in layout.labels},
        },
        t0=here.start,
    )
