"""One body, several agents by limb: settings, labels and hand features. See docs/mujoco.md.

Letters: B episodes, T steps, N agents, Nu actuators.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Float32

from data_gen.domains.plane import masked_mean
from data_gen.engines.scenarios import Scenario, make_scenario
from data_gen.trajectory import Features, InputError, Labels, LabelSpec, TrajectoryBatch


@dataclass(unsafe_hash=True)
class EngineChoice:
    """`auto` is native on a CPU and mjx elsewhere.

    `threads` are native's (0: one a processor); `device` is the kind that mjx or brax must have (`gpu`, `tpu`, `cpu`).
    """

    name: str = "auto"
    threads: int = 0
    device: str | None = None

    def settings(self) -> dict[str, int | str]:
        """What was asked for beside the name."""
        asked = {"threads": self.threads, "device": self.device}
        return {name: value for name, value in asked.items() if value}


@dataclass(unsafe_hash=True)
class MuJoCo:
    """Agents learn on episodes of `horizon` steps; recorded ones are cut after `recorded`.

    `obsk` is how far along the body an agent sees; null lets it see the global state.
    """

    scenario: str = "HalfCheetah 2x3"
    obsk: int | None = 1
    horizon: int = 1000
    recorded: int = 100
    engine: EngineChoice = field(default_factory=EngineChoice)

    def __post_init__(self):
        make_scenario(self.scenario, self.obsk)
        if not 3 <= self.recorded <= self.horizon:
            raise InputError(
                f"mujoco: recorded is {self.recorded} and horizon {self.horizon}; a recorded episode needs at least 3 "
                f"steps and at most the horizon's."
            )


def control_energy(
    scenario: Scenario, actions: Float32[np.ndarray, "B T N Da"], mask: Bool[np.ndarray, "B T N"]
) -> Float[np.ndarray, "B T N"]:
    """Each agent's Σ u² a step; u is the control that the body felt, the action within its bound as a share of it."""
    felt = np.clip(actions / scenario.body.bound, -1, 1).astype(np.float64)
    return np.where(mask, np.sum(felt**2, axis=-1, where=scenario.action_mask), 0)


def measure(scenario: Scenario, batch: TrajectoryBatch, speed: Float32[np.ndarray, "B T"]) -> Labels:
    """Mean forward speed in m/s, control energy a step, and each agent's share of it."""
    mask = np.asarray(batch.mask)
    energy = control_energy(scenario, np.asarray(batch.actions), mask)
    total = energy.sum(axis=(1, 2))
    share = energy.sum(axis=1) / np.where(total > 0, total, 1)[:, None]
    values = {
        "speed": masked_mean(speed, np.any(mask, axis=2), axis=1).astype(np.float32),
        "energy": (total / np.maximum(mask.any(axis=2).sum(axis=1), 1)).astype(np.float32),
        "limb": np.tile(np.arange(scenario.n_agents, dtype=np.int32), (len(mask), 1)),
        "energy_share": share.astype(np.float32),
    }
    specs = (
        LabelSpec("speed_class", "speed", "quantile", bins=3),
        LabelSpec("energy_class", "energy", "quantile", bins=3),
        LabelSpec("limb", "limb", "class", classes=tuple("+".join(limb) for limb in scenario.limbs)),
        LabelSpec("energy_share", "energy_share", "real"),
    )
    return Labels(values=values, specs=specs)


def columns(scenario: Scenario, agent: int, start: str) -> list[int]:
    """An agent's own observations whose name starts so, of the joints that it drives."""
    wanted = [f"{start} {joint}" for joint in scenario.limbs[agent]]
    return [k for k, name in enumerate(scenario.obs_names[agent]) if name in wanted]


def hand_features(scenario: Scenario, batch: TrajectoryBatch) -> Features:
    """Summaries of joints and actions that a person would try first; none of them reads the body's forward velocity."""
    obs, actions, mask = (np.asarray(part) for part in batch)
    found: dict[str, list[np.ndarray]] = {}
    for agent in range(scenario.n_agents):
        real, real_actions = mask[:, :, agent], actions[:, :, agent][..., scenario.action_mask[agent]]
        angle, velocity = (obs[:, :, agent][..., columns(scenario, agent, name)] for name in ("qpos", "qvel"))
        centred = angle - masked_mean(angle, real[..., None], axis=1)[:, None]
        found.setdefault("joint_mean", []).append(masked_mean(angle.mean(-1), real, axis=1))
        found.setdefault("joint_range", []).append(masked_mean((centred**2).mean(-1), real, axis=1) ** 0.5)
        found.setdefault("joint_speed", []).append(masked_mean(np.abs(velocity).mean(-1), real, axis=1))
        found.setdefault("stride_frequency", []).append(crossings(velocity.mean(-1), real))
        found.setdefault("action_mean", []).append(masked_mean(real_actions.mean(-1), real, axis=1))
        beyond = (np.abs(real_actions) > scenario.body.bound).mean(-1)
        found.setdefault("action_saturation", []).append(masked_mean(beyond, real, axis=1))
        change, both = np.abs(np.diff(real_actions, axis=1)).mean(-1), real[:, 1:] & real[:, :-1]
        found.setdefault("action_change", []).append(masked_mean(change, both, axis=1))
    each = {f"{name}_{agent}": values for name, rows in found.items() for agent, values in enumerate(rows)}
    each["length"] = mask.any(axis=2).sum(axis=1)
    return Features(values=np.stack(list(each.values()), axis=1).astype(np.float32), names=tuple(each))


def crossings(values: Float[np.ndarray, "B T"], real: Bool[np.ndarray, "B T"]) -> Float[np.ndarray, " B"]:
    """Changes of sign, a step."""
    both = real[:, 1:] & real[:, :-1]
    return masked_mean(np.diff(np.sign(values), axis=1) != 0, both, axis=1)
