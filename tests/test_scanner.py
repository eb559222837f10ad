"""Counts and first places of what is found."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard.scanner import Tally, first_places, summed


def _array(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_counts_of_equal_ids_are_summed() -> None:
    ids, counts = summed(_array(5, 2, 5), _array(1, 3, 4))
    assert (ids.tolist(), counts.tolist()) == ([2, 5], [3, 5])


def test_the_first_four_places_of_an_id_stay_in_order() -> None:
    where = np.array([[1, line] for line in range(6)] + [[0, 9]])
    assert first_places(where).tolist() == [[0, 9], [1, 0], [1, 1], [1, 2], [1, 3]]


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=20), st.integers(1, 5))
def test_a_tally_is_the_same_however_often_it_settles(batches: list[list[int]], every: int) -> None:
    once, often = Tally(), Tally()
    for number, found in enumerate(batches):
        ids = _array(*sorted(set(found)))
        for tally in (once, often):
            tally.add(ids, ids * 0 + number, ids * 0, ids * 0 + number)
        if number % every == 0:
            often.settle()
    once.settle()
    often.settle()
    assert once.ids.tolist() == often.ids.tolist()
    assert once.counts.tolist() == often.counts.tolist() == [sum(i in f for f in batches) for i in once.ids.tolist()]
    assert once.where.tolist() == often.where.tolist()
