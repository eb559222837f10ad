"""Counts and first places of what is found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard import pool
from evalspill_guard.index import Ids
from evalspill_guard.scanner import ShardResult, Tally, first_places, summed, thinned


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


def _places(ids: list[int], shard: int) -> Ids:
    """(id, line, start, ordinal) for each."""
    return np.array([[one, line, shard, line] for line, one in enumerate(ids)], dtype=np.int64).reshape(-1, 4)


@given(st.lists(st.lists(st.integers(0, 5), max_size=20), max_size=6))
def test_what_is_dropped_of_later_shards_is_never_among_the_first_places(shards: list[list[int]]) -> None:
    parts = [_places(ids, number) for number, ids in enumerate(shards)]
    have, left = np.zeros(6, dtype=np.int64), []
    for part in parts:
        result, have = thinned(ShardResult(part[:0, 0], part[:0, 0], part, 0, 0, 0, 0, 0, "", (), None), have)
        left.append(result.where)
    empty = np.empty((0, 4), dtype=np.int64)
    together = first_places(np.concatenate([empty, *left]))
    assert together.tolist() == first_places(np.concatenate([empty, *parts])).tolist()
    assert sum(map(len, left)) == len(together), "nothing is held that is not used"


def test_a_shard_that_loses_places_still_tells_their_records() -> None:
    where = _places([0, 0, 1], 7)
    result = ShardResult(where[:0, 0], where[:0, 0], where, 0, 0, 0, 0, 0, "", (), None)
    whole, _ = thinned(result, _array(2, 2))
    less, have = thinned(result, _array(3, 4))
    assert whole.records_of_places is None
    assert (less.where.tolist(), have.tolist()) == ([[0, 0, 7, 0]], [4, 4])
    assert less.records_of_places is not None
    assert less.records_of_places.tolist() == [[0, 7, 0], [1, 7, 1], [2, 7, 2]]


@given(st.lists(st.lists(st.integers(0, 5), max_size=20), max_size=6))
def test_places_are_merged_the_same_however_many_wait(shards: list[list[int]]) -> None:
    parts = [np.hstack((part, part[:, :2])) for part in (_places(ids, n) for n, ids in enumerate(shards))]
    expected = first_places(np.concatenate([np.empty((0, 6), dtype=np.int64), *parts])).tolist()
    for pending in (0, 7, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pool, "_PENDING", pending)
            assert pool._first_places(parts).tolist() == expected
