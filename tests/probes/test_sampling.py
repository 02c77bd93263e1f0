"""Rows drawn evenly over parts: of each equally many or its share, and any row of a part as likely as another."""

import numpy as np
import pytest

from probes.sampling import draw_evenly

PART = np.repeat([3, 1, 7], [100, 40, 60])


def drawn(n: int, seed: int, by_size: bool) -> np.ndarray:
    return draw_evenly(PART, n, np.random.default_rng(seed), by_size=by_size)


@pytest.mark.parametrize(("by_size", "wanted"), [(True, (25, 10, 15)), (False, (50 / 3, 50 / 3, 50 / 3))])
def test_parts_give_equally_many_or_their_share(by_size: bool, wanted: tuple[float, ...]) -> None:
    chosen = drawn(50, 0, by_size)
    assert len(chosen) == len(set(chosen.tolist())) == 50 and (np.diff(chosen) > 0).all()
    counts = [int((PART[chosen] == part).sum()) for part in (3, 1, 7)]
    assert all(abs(count - want) <= 1 for count, want in zip(counts, wanted, strict=True))
    # Not always the same ones of a part, nor one part always first: over many draws each is as likely.
    often = np.bincount(np.concatenate([drawn(50, seed, by_size) for seed in range(400)]), minlength=200)
    share = np.repeat(wanted, [100, 40, 60]) / np.repeat([100, 40, 60], [100, 40, 60])
    assert (abs(often / 400 - share) < 5 * np.sqrt(share * (1 - share) / 400)).all()
    np.testing.assert_array_equal(chosen, drawn(50, 0, by_size))


def test_a_small_part_gives_all_it_has_and_the_others_fill_up() -> None:
    assert np.bincount(PART[drawn(150, 1, False)])[[3, 1, 7]].tolist() == [55, 40, 55]
    assert drawn(200, 0, True).tolist() == drawn(999, 0, False).tolist() == list(range(200))
    assert len(drawn(0, 0, False)) == 0
