"""Checkpoints that nothing is fitted on."""

import numpy as np
import pytest

from data_gen.trajectory import InputError, seen_rows, select
from tests.data_gen.test_translation import made


def with_checkpoints(*numbers: int):
    found = made("discrete")
    return found._replace(rows=found.rows._replace(checkpoint=np.array(numbers, np.int32)))


def test_the_episodes_of_other_checkpoints_stay_with_all_that_is_known_of_them() -> None:
    found = with_checkpoints(0, 5, 0, 5)
    rows = seen_rows(found, [5])
    np.testing.assert_array_equal(rows, [0, 2])
    seen = select(found, rows)
    np.testing.assert_array_equal(seen.rows.episode, [0, 2])
    np.testing.assert_array_equal(seen.batch.obs, found.batch.obs[[0, 2]])
    np.testing.assert_array_equal(seen.split, found.split[[0, 2]])
    assert len(seen.hand.values) == len(seen.outcomes.rewards) == 2
    np.testing.assert_array_equal(seen_rows(found, []), np.arange(4))


def test_a_checkpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"no checkpoint 3; its checkpoints are \[0, 5\]"):
        seen_rows(with_checkpoints(0, 5, 0, 5), [5, 3])


def test_no_split_may_lose_all_its_episodes() -> None:
    with pytest.raises(InputError, match="leaves no validation episode"):
        seen_rows(with_checkpoints(0, 0, 5, 5), [5])
