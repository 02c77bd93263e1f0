import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, InputError, check_batch, take, to_device
from tests.builders import tiny_batch

CONTINUOUS, DISCRETE = ActionSpec("continuous", 2), ActionSpec("discrete", 5)


def test_good_batches_pass() -> None:
    assert check_batch(tiny_batch(CONTINUOUS), CONTINUOUS) is None
    assert check_batch(tiny_batch(DISCRETE), DISCRETE) is None


def test_nan_is_named_where_it_stands_and_ignored_under_the_mask() -> None:
    batch = tiny_batch(CONTINUOUS)
    b, t, n = np.argwhere(batch.mask)[5]
    batch.obs[b, t, n, 1] = np.nan
    with pytest.raises(InputError, match=f"episode {b}, step {t}, agent {n}, feature 1"):
        check_batch(batch, CONTINUOUS)
    batch.mask[b, t, n] = False
    check_batch(batch, CONTINUOUS)


@pytest.mark.parametrize("bad", [-1, 5])
def test_action_out_of_range_is_named(bad: int) -> None:
    batch = tiny_batch(DISCRETE)
    b, t, n = np.argwhere(batch.mask)[0]
    batch.actions[b, t, n] = bad
    with pytest.raises(InputError, match=f"action {bad} at episode {b}, step {t}, agent {n} is outside 0..4"):
        check_batch(batch, DISCRETE)


def test_wrong_shapes_and_empty_batches_are_refused() -> None:
    batch = tiny_batch(CONTINUOUS)
    for broken in (
        batch._replace(mask=batch.mask[:, :-1]),
        batch._replace(actions=batch.actions[..., :1]),
        batch._replace(mask=np.zeros_like(batch.mask)),
        take(batch, np.zeros(0, np.int32)),
    ):
        with pytest.raises(InputError):
            check_batch(broken, CONTINUOUS)


def test_masked_values_become_zero_on_the_device() -> None:
    batch = tiny_batch(CONTINUOUS)
    batch.obs[~batch.mask] = np.nan
    device = to_device(batch)
    assert float(np.abs(np.asarray(device.obs)[~batch.mask]).max()) == 0.0
    np.testing.assert_array_equal(np.asarray(device.obs)[batch.mask], batch.obs[batch.mask])
