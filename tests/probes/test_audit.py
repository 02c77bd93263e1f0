"""What two splits may not share."""

import numpy as np
import pytest

from data_gen.trajectory import InputError
from probes.audit import check_copies, check_numbers
from probes.probe import Probe
from probes.table.table import probe_table
from tests.probes.planted import QUICK, planted_data


def _copied(source: int, target: int) -> dict:
    data = planted_data()
    for part in data["batch"]:
        part[target] = part[source]
    return data


def test_the_same_trajectory_in_two_splits_is_refused_with_both_rows():
    data = _copied(3, 470)
    assert data["split"][[3, 470]].tolist() == [0, 2]
    with pytest.raises(InputError, match=r"rows 3 \(train\) and 470 \(test\) are the same trajectory"):
        probe_table(Probe(**QUICK), **data)
    with pytest.raises(InputError, match=r"rows 250 \(validation\) and 470 \(test\)"):
        check_copies(_copied(250, 470)["batch"], data["split"])


@pytest.mark.parametrize("part", ["obs", "actions"])
def test_a_number_that_is_not_finite_is_named_where_it_is_real(part: str):
    data = planted_data()
    getattr(data["batch"], part)[7, 2, 1, 0] = np.nan
    with pytest.raises(InputError, match=f"{part} is nan at episode 7, step 2, agent 1, feature 0"):
        probe_table(Probe(**QUICK), **data)
    data["batch"].mask[7, 2, 1] = False
    check_numbers(data["batch"])


def test_what_differs_in_one_number_or_lies_in_one_split_or_has_no_step_is_none():
    check_copies(planted_data()["batch"], planted_data()["split"])
    check_copies(_copied(3, 5)["batch"], planted_data()["split"])
    for part in range(3):
        data = _copied(3, 470)
        flat = data["batch"][part][470].reshape(-1)
        flat[-1] = ~flat[-1] if flat.dtype == bool else flat[-1] + 1
        check_copies(data["batch"], data["split"])
    empty = _copied(3, 470)
    empty["batch"].mask[[3, 470]] = False
    check_copies(empty["batch"], empty["split"])
