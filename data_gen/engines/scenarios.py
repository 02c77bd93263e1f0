"""Standard scenarios: which agent drives and sees what of a body. N agents, E environments, Do and Da padded widths.

MaMuJoCo's rules: at distance 0 an agent sees its joints' positions and velocities (Ant's contact forces, Humanoid's
inertias, velocities and forces of bodies too, each body once), at distance 1 to `obsk` positions alone, then the
positions and velocities that belong to no joint.
"""

import difflib
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from data_gen.engines.bodies import BODIES, WIDTHS, Body, Fields, global_state, layout
from data_gen.engines.joints import PARTITIONS, SKELETONS, Joint, agents_of, rings
from data_gen.trajectory import AnyArray, InputError

SCENARIOS = tuple(f"{body} {partition}" for body, partitions in PARTITIONS.items() for partition in partitions)
DEPTHS = (0, 1, 2)


class Scenario(NamedTuple):
    """`seen` indexes the global state, `slots` the padded actions of all agents, one for each actuator.

    `obs_mask` and `action_mask` are True where a feature is real; they travel with the data. `obsk` None lets every
    agent see the whole global state.
    """

    name: str
    body: Body
    obsk: int | None
    limbs: tuple[tuple[str, ...], ...]
    obs_names: tuple[tuple[str, ...], ...]
    seen: Int[np.ndarray, "N Do"]
    obs_mask: Bool[np.ndarray, "N Do"]
    slots: Int[np.ndarray, " Nu"]
    action_mask: Bool[np.ndarray, "N Da"]

    @property
    def n_agents(self) -> int:
        return len(self.limbs)


def make_scenario(name: str, obsk: int | None = 1) -> Scenario:
    """The scenario of this name, such as `Ant 4x2`. Raises InputError with the list where there is none."""
    if name not in SCENARIOS:
        near = difflib.get_close_matches(str(name), SCENARIOS, n=1, cutoff=0.0)[0]
        raise InputError(
            f"scenario: there is no scenario {name!r}; did you mean {near!r}? The scenarios are {', '.join(SCENARIOS)}."
        )
    if obsk is not None and obsk not in DEPTHS:
        raise InputError(
            f"scenario {name}: obsk is {obsk}; it must be 0, 1 or 2 (how far along the body an agent sees), or null "
            f"for the global state."
        )
    body, partition = BODIES[name.split()[0]], name.split()[1]
    agents = agents_of(body.name, partition)
    columns = [what_agent_sees(body, own, obsk) for own in agents]
    seen, obs_mask = padded(columns)
    check_range(seen, state_width(body), f"scenario {name}: observation")
    names = state_names(body)
    actuators, action_mask = padded([[joint.actuator for joint in own] for own in agents])
    return Scenario(
        name=name,
        body=body,
        obsk=obsk,
        limbs=tuple(tuple(joint.label for joint in own) for own in agents),
        obs_names=tuple(tuple(names[k] for k in agent) for agent in columns),
        seen=seen,
        obs_mask=obs_mask,
        slots=slots_of(actuators, action_mask, body.nu, name),
        action_mask=action_mask,
    )


def state_width(body: Body) -> int:
    """Length of the global state."""
    return sum(size for _, size in layout(body).values())


def columns_of(body: Body, joint: Joint, name: str) -> list[int]:
    """Where in the global state a joint's part of one field stands."""
    start = layout(body)[name][0]
    if name == "qpos":
        return [start + body.nq - body.skipped - body.nu + joint.place]
    if name == "qvel":
        return [start + body.nv - body.nu + joint.place]
    if name in WIDTHS:
        width = WIDTHS[name]
        return [start + (number - 1) * width + k for number in joint.bodies for k in range(width)]
    return [start + joint.place]


def what_agent_sees(body: Body, own: tuple[Joint, ...], obsk: int | None) -> list[int]:
    """Columns of the global state in the order of an agent's observation."""
    if obsk is None:
        return list(range(state_width(body)))
    near, *far = rings(body.name, own, obsk)
    of_own = (columns_of(body, joint, name) for joint in near for name in ("qpos", "qvel", *body.extras))
    of_others = (columns_of(body, joint, "qpos") for ring in far for joint in ring)
    of_root = [
        *range(body.nq - body.skipped - body.nu),
        *(layout(body)["qvel"][0] + k for k in range(body.nv - body.nu)),
    ]
    # A body that two joints share is given once, where it comes first.
    return [*dict.fromkeys(chain(*of_own, *of_others)), *of_root]


def state_names(body: Body) -> tuple[str, ...]:
    """A name for each number of the global state."""
    labels = list(SKELETONS[body.name].joints)
    root_qpos, root_qvel = body.nq - body.nu, body.nv - body.nu
    names = [f"qpos {k}" for k in range(body.skipped, root_qpos)] + [f"qpos {label}" for label in labels]
    names += [f"qvel {k}" for k in range(root_qvel)] + [f"qvel {label}" for label in labels]
    for extra in body.extras:
        if extra in WIDTHS:
            size = layout(body)[extra][1]
            names += [f"{extra} body {1 + k // WIDTHS[extra]}.{k % WIDTHS[extra]}" for k in range(size)]
        else:
            names += [f"{extra} {label}" for label in labels]
    return tuple(names)


def padded(lists: list[list[int]]) -> tuple[Int[np.ndarray, "N W"], Bool[np.ndarray, "N W"]]:
    """Rows of one width, filled with 0, and where they are real."""
    mask = np.arange(max(map(len, lists))) < np.array([[len(row)] for row in lists])
    filled = np.zeros(mask.shape, np.int64)
    filled[mask] = list(chain(*lists))
    return filled, mask


def check_range(index: Int[np.ndarray, "*S"], size: int, what: str) -> None:
    """Raise InputError where an index is out of range: JAX would clamp it and give another joint's number."""
    wrong = np.argwhere((index < 0) | (index >= size))
    if len(wrong):
        where = tuple(wrong[0].tolist())
        raise InputError(f"{what}: index {index[where]} at {where} is outside 0..{size - 1}.")


def slots_of(
    actuators: Int[np.ndarray, "N Da"], mask: Bool[np.ndarray, "N Da"], nu: int, name: str
) -> Int[np.ndarray, " Nu"]:
    """For each actuator its place among the flattened actions [N · Da]. Raises InputError unless each has one."""
    driven = actuators[mask]
    if sorted(driven.tolist()) != list(range(nu)):
        raise InputError(f"scenario {name}: actuators {sorted(driven.tolist())} must be 0..{nu - 1}, each once.")
    return np.flatnonzero(mask)[np.argsort(driven)]


def without(scenario: Scenario, missing: tuple[str, ...]) -> Scenario:
    """The scenario with the features masked that come from fields an engine cannot give.

    Raises InputError for what is no field of any body; a field that this body does not observe masks nothing.
    """
    fields = sorted({name for body in BODIES.values() for name in layout(body)})
    if isinstance(missing, str) or not set(missing) <= set(fields):
        raise InputError(
            f"scenario {scenario.name}: missing is {missing!r}; it must be a tuple of {', '.join(fields)}."
        )
    start_size = [layout(scenario.body)[name] for name in missing if name in layout(scenario.body)]
    gone = [k for start, size in start_size for k in range(start, start + size)]
    return scenario._replace(obs_mask=scenario.obs_mask & ~np.isin(scenario.seen, gone))


def observe(scenario: Scenario, fields: Fields, xp: Any) -> Float[AnyArray, "E N Do"]:
    """Every agent's observation; 0 where `obs_mask` is False."""
    body = scenario.body
    clip = body.velocity_clip if scenario.obsk is None else body.local_velocity_clip
    values = global_state(body, fields, xp, clip)[..., scenario.seen]
    mask = scenario.obs_mask.reshape((1,) * (values.ndim - 2) + scenario.obs_mask.shape)
    return xp.where(mask, values, 0.0)


def controls_of(scenario: Scenario, actions: Float[AnyArray, "E N Da"]) -> Float[AnyArray, "E Nu"]:
    """The agents' actions in the order of the actuators; what stands under the padding is not read."""
    return actions.reshape(*actions.shape[:-2], -1)[..., scenario.slots]
