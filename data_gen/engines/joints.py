"""The joints of each body, who is next to whom, and which of them every agent drives.

Labels, order and partitions are those of Gymnasium-Robotics 1.4.2 (`mamujoco_v1`): its observation order sorts labels.
"""

from typing import NamedTuple

from data_gen.trajectory import InputError


class Joint(NamedTuple):
    """`place` counts the driven joints in the order of qpos and qvel; `bodies` are the MJCF bodies that it observes."""

    label: str
    place: int
    actuator: int
    bodies: tuple[int, ...]


class Skeleton(NamedTuple):
    """Joints by label, and the sets of joints that are neighbours of one another."""

    joints: dict[str, Joint]
    edges: tuple[frozenset[str], ...]


def skeleton(
    labels: str, edges: str, actuators: tuple[int, ...] = (), bodies: tuple[tuple[int, ...], ...] = ()
) -> Skeleton:
    """Labels in the order of qpos, edges separated by commas; by default actuators have the same order."""
    names = labels.split()
    actuators = actuators or tuple(range(len(names)))
    bodies = bodies or ((),) * len(names)
    rows = zip(names, range(len(names)), actuators, bodies, strict=True)
    joints = {label: Joint(label=label, place=place, actuator=a, bodies=b) for label, place, a, b in rows}
    found = tuple(frozenset(edge.split()) for edge in edges.split(","))
    unknown = frozenset().union(*found) - joints.keys()
    if unknown:
        raise InputError(f"joints: edges name {sorted(unknown)}, and the joints are {names}.")
    return Skeleton(joints=joints, edges=found)


ABDOMEN, SHOULDER, HIP = "abdomen_x abdomen_y abdomen_z", "{0}_shoulder1 {0}_shoulder2", "{0}_hip_x {0}_hip_y {0}_hip_z"
HUMANOID_EDGES = (
    ABDOMEN,
    *(
        edge.format(side)
        for side in ("left", "right")
        for edge in (
            HIP,
            f"{{0}}_elbow {SHOULDER}",
            f"{{0}}_knee {HIP}",
            f"{SHOULDER} {ABDOMEN}",
            f"{ABDOMEN} {HIP}",
        )
    ),
)

SKELETONS = {
    "HalfCheetah": skeleton(
        "bthigh bshin bfoot fthigh fshin ffoot", "bfoot bshin,bshin bthigh,bthigh fthigh,fthigh fshin,fshin ffoot"
    ),
    # Bodies: 1 torso, then of each leg the leg, an auxiliary body and the ankle. Leg 4's actuators come first.
    "Ant": skeleton(
        "hip1 ankle1 hip2 ankle2 hip3 ankle3 hip4 ankle4",
        "hip1 ankle1,hip2 ankle2,hip3 ankle3,hip4 ankle4,hip1 hip2 hip3 hip4",
        actuators=(2, 3, 4, 5, 6, 7, 0, 1),
        bodies=((1, 2), (2, 3, 4), (1, 5), (5, 6, 7), (1, 8), (8, 9, 10), (1, 11), (11, 12, 13)),
    ),
    "Hopper": skeleton("thigh_joint leg_joint foot_joint", "thigh_joint leg_joint,leg_joint foot_joint"),
    "Walker2d": skeleton(
        "thigh_joint leg_joint foot_joint thigh_left_joint leg_left_joint foot_left_joint",
        "foot_joint leg_joint,leg_joint thigh_joint,foot_left_joint leg_left_joint,"
        "leg_left_joint thigh_left_joint,thigh_joint thigh_left_joint",
    ),
    # Bodies: 1 torso, 2 waist, 3 pelvis, 4 to 6 right and 7 to 9 left thigh, shin, foot, 10 and 11 right and 12 and 13
    # left arm. The MJCF's first joint is abdomen_z; Gymnasium-Robotics calls it abdomen_y, and the second abdomen_z, so
    # that the two are swapped in an observation. We keep its order, for parity.
    "Humanoid": skeleton(
        "abdomen_y abdomen_z abdomen_x right_hip_x right_hip_z right_hip_y right_knee left_hip_x left_hip_z left_hip_y "
        "left_knee right_shoulder1 right_shoulder2 right_elbow left_shoulder1 left_shoulder2 left_elbow",
        ",".join(HUMANOID_EDGES),
        bodies=(
            *((1, 2, 3), (1, 2, 3), (3, 4, 7)),
            *((4, 5), (4, 5), (4, 5), (5, 6)),
            *((7, 8), (7, 8), (7, 8), (8, 9)),
            *((1, 10, 11), (1, 10, 11), (11,)),
            *((1, 12, 13), (1, 12, 13), (13,)),
        ),
    ),
}

# Agents are separated by bars; the order of the joints is the order of an agent's actions.
PARTITIONS = {
    "HalfCheetah": {
        "2x3": "bthigh bshin bfoot | fthigh fshin ffoot",
        "6x1": "bthigh | bshin | bfoot | fthigh | fshin | ffoot",
    },
    "Ant": {
        "2x4": "hip1 ankle1 hip2 ankle2 | hip3 ankle3 hip4 ankle4",
        "4x2": "hip1 ankle1 | hip2 ankle2 | hip3 ankle3 | hip4 ankle4",
        "2x4d": "hip1 ankle1 hip4 ankle4 | hip2 ankle2 hip3 ankle3",
    },
    "Hopper": {"3x1": "thigh_joint | leg_joint | foot_joint"},
    "Walker2d": {"2x3": "foot_joint leg_joint thigh_joint | foot_left_joint leg_left_joint thigh_left_joint"},
    "Humanoid": {
        "9|8": "abdomen_x abdomen_y abdomen_z right_shoulder1 right_shoulder2 right_elbow left_shoulder1 "
        "left_shoulder2 left_elbow | right_hip_x right_hip_y right_hip_z right_knee "
        "left_hip_x left_hip_y left_hip_z left_knee"
    },
}


def agents_of(body: str, partition: str) -> tuple[tuple[Joint, ...], ...]:
    """The joints that each agent drives, in the order of its actions."""
    joints = SKELETONS[body].joints
    return tuple(tuple(joints[label] for label in agent.split()) for agent in PARTITIONS[body][partition].split(" | "))


def rings(body: str, own: tuple[Joint, ...], depth: int) -> list[list[Joint]]:
    """Joints at distance 0, 1, … `depth` from an agent's own, each ring sorted by label."""
    joints, edges = SKELETONS[body]
    ring = {joint.label for joint in own}
    seen, found = set(ring), [sorted(ring)]
    for _ in range(depth):
        ring = {label for edge in edges if edge & ring for label in edge} - seen
        seen |= ring
        found.append(sorted(ring))
    return [[joints[label] for label in ring] for ring in found]
