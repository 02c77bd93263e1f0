"""One kind of action as the other: what moves an agent stays the same."""

import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.domains.plane import DIRECTIONS, displacement, translated
from data_gen.domains.translation import in_actions_of
from data_gen.trajectory import (
    SPLITS,
    ActionSpec,
    Dataset,
    Features,
    InputError,
    Labels,
    Outcomes,
    RowIndex,
    TrajectoryBatch,
    all_real,
)

B, T, N, DO = 4, 3, 2, 5
SPECS = {"continuous": ActionSpec("continuous", 2), "discrete": ActionSpec("discrete", 9)}


def made(kind: str, seed: int | None = None, **domain) -> Dataset:
    rng = np.random.default_rng(0)
    if kind == "discrete":
        actions = rng.integers(0, 9, (B, T, N)).astype(np.int32)
    else:
        actions = rng.normal(size=(B, T, N, 2)).astype(np.float32)
    numbers = np.arange(B, dtype=np.int32)
    mask = np.ones((B, T, N), bool)
    mask[1, 2] = False
    cut = np.zeros((B, T), bool)
    return Dataset(
        batch=TrajectoryBatch(rng.normal(size=(B, T, N, DO)).astype(np.float32), actions, mask),
        features=all_real(N, DO, SPECS[kind]),
        rows=RowIndex(numbers, numbers // 2, numbers * 0, numbers * 0),
        outcomes=Outcomes(np.zeros((B, T, N), np.float32), cut, cut),
        labels=Labels({}, ()),
        hand=Features(np.zeros((B, 1), np.float32), ("one",)),
        split=(numbers // 2).astype(np.int32),
        action=SPECS[kind],
        meta={
            "domain": {"name": "hill_climbing", "actions": kind, "horizon": 25} | domain,
            "recording": {"seed": len(kind) if seed is None else seed},
        },
    )


def test_a_direction_moves_as_its_vector_does() -> None:
    choices = np.arange(9, dtype=np.int32)
    vectors = translated(choices, "discrete", "continuous")
    np.testing.assert_allclose(
        displacement(jnp.asarray(vectors), "continuous", 0.3),
        displacement(jnp.asarray(choices), "discrete", 0.3),
        atol=1e-7,
    )
    np.testing.assert_array_equal(translated(vectors, "continuous", "discrete"), choices)
    np.testing.assert_array_equal(translated(3 * vectors[1:], "continuous", "discrete"), choices[1:])


def test_a_vector_becomes_the_direction_that_ends_nearest() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    for vector, found in zip(vectors, translated(vectors, "continuous", "discrete"), strict=True):
        moved = vector / max(1.0, np.hypot(*vector))
        gaps = [np.hypot(*(moved - direction)) for direction in DIRECTIONS]
        assert gaps[found] == pytest.approx(min(gaps), abs=1e-6)


def test_the_other_data_set_comes_as_test_groups_of_its_own() -> None:
    found, other = made("continuous"), made("discrete")
    came = in_actions_of(found, other, "there")
    assert came.action == found.action and came.features is found.features
    assert set(came.split) == {SPLITS.index("test")}
    assert not set(came.rows.group) & set(found.rows.group)
    want = DIRECTIONS[other.batch.actions] * other.batch.mask[..., None]
    np.testing.assert_array_equal(came.batch.actions, want)
    back = in_actions_of(other, found, "there").batch.actions
    assert back.dtype == np.int32 and (back[~found.batch.mask] == 0).all()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (made("continuous", seed=3), "continuous actions, as the run has"),
        (made("discrete", seed=10), "recording.seed=10, as the run's data were"),
        (made("discrete", horizon=50), "horizon=50"),
        (made("discrete", name="coordination"), "coordination"),
        (made("discrete")._replace(meta={}), "no domain of ours"),
    ],
)
def test_what_cannot_be_compared_is_refused(other: Dataset, said: str) -> None:
    with pytest.raises(InputError, match=said):
        in_actions_of(made("continuous"), other, "there")
