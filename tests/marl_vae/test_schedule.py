import numpy as np
import pytest

from data_gen.trajectory import InputError
from marl_vae.schedule import SHAPES, Cyclical, beta, ends_cycle

# Sigmoid at a quarter: (0.0474259 − 0.0024726) / 0.9950548.
# 16 steps in 2 cycles of 8, ramp over the first half of each: positions 0, 1/4, 1/2, 3/4 of the ramp, then the plateau.
BY_HAND = {
    "linear": [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0],
    "cosine": [0.0, 0.1464466, 0.5, 0.8535534, 1.0, 1.0, 1.0, 1.0],
    "sigmoid": [0.0, 0.0451767, 0.5, 0.9548233, 1.0, 1.0, 1.0, 1.0],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("maximum", [1.0, 0.01])
def test_a_table_by_hand(shape: str, maximum: float) -> None:
    found = [float(beta(Cyclical(shape, 2, 0.5, maximum), step, 16)) for step in range(16)]
    np.testing.assert_allclose(found, maximum * np.array(BY_HAND[shape] * 2), atol=1e-6)


def test_monotonic_is_one_cycle_and_no_ramp_is_constant() -> None:
    once = [float(beta(Cyclical("linear", 1, 0.25, 2.0), step, 16)) for step in range(16)]
    np.testing.assert_allclose(once, [0, 0.5, 1, 1.5] + [2] * 12)
    flat = [float(beta(Cyclical("linear", 4, 0.0, 0.3), step, 16)) for step in range(16)]
    np.testing.assert_allclose(flat, [0.3] * 16, rtol=1e-6)


def test_the_plateau_is_the_maximum_itself() -> None:
    values = [float(beta(Cyclical("sigmoid", 4, 0.5, 0.01), step, 100)) for step in range(100)]
    assert max(values) == np.float32(0.01)
    assert min(values) == 0.0


def test_cycle_ends_are_found_once_each() -> None:
    level = Cyclical(cycles=4)
    ends = [after for after in range(50, 1001, 50) if ends_cycle(level, after - 50, after, 1000)]
    assert ends == [250, 500, 750, 1000]
    # A period that no dispatch edge meets is read at the next edge.
    assert [a for a in range(50, 901, 50) if ends_cycle(level, a - 50, a, 900)] == [250, 450, 700, 900]


@pytest.mark.parametrize("bad", [{"shape": "linera"}, {"cycles": 0}, {"ratio": 1.5}, {"maximum": -1.0}])
def test_bad_values_are_refused(bad: dict) -> None:
    with pytest.raises(InputError):
        Cyclical(**bad)
