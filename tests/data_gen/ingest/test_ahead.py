"""Chunks that are read ahead are the chunks, and no thread outlives them."""

import threading
from collections.abc import Iterator

import pytest

from data_gen.ingest.readers.ahead import ahead

WAIT_S = 5.0


def test_items_come_in_order_and_each_while_the_one_before_is_used() -> None:
    made = [threading.Event() for _ in range(6)]

    def items() -> Iterator[int]:
        for number, event in enumerate(made[:5]):
            event.set()
            yield number
        made[5].set()

    seen = []
    for number in ahead(items()):
        assert made[number + 1].wait(WAIT_S)  # the next one, or the end
        assert not any(event.is_set() for event in made[number + 2 :])  # and no more than that is in memory
        seen.append(number)
    assert seen == [0, 1, 2, 3, 4]
    assert list(ahead(iter(()))) == []


def test_an_error_comes_after_what_was_made_before_it() -> None:
    def items() -> Iterator[str]:
        yield "whole"
        raise ValueError("cut short")

    found = ahead(items())
    assert next(found) == "whole"
    with pytest.raises(ValueError, match="cut short"):
        next(found)


def test_a_reader_that_stops_early_leaves_no_thread() -> None:
    before = threading.active_count()
    found = ahead(iter(range(1, 9)))
    assert next(found) == 1 and threading.active_count() == before + 1
    found.close()
    assert threading.active_count() == before
