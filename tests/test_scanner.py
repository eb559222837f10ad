"""Counts and first places of what is found."""

from pathlib import Path

import numpy as np
import pytest
import world
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard import pool
from evalspill_guard.index import Ids, Query, build
from evalspill_guard.model import DataFile, Problem, Reading, Shard
from evalspill_guard.scanner import BadRecord, ShardResult, Tally, first_places, scan_shard, summed, thinned


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


ROW = " ".join(f"word{number}" for number in range(8))


def _scanned(path: Path) -> ShardResult:
    index = build([Query(ROW, "whole", 8, 8)])
    return scan_shard(Shard(DataFile(path.name, str(path)), Reading(fields=("text",)), 0, None), index)


def test_records_are_numbered_and_counted_on_from_batch_to_batch(tmp_path: Path) -> None:
    """A batch holds at most 4,096 records and little more than 800 kB."""
    records: list[object] = [{"text": f"line {number} " + "of many " * 30} for number in range(9000)]
    for number in (0, 5000, 8999):
        records[number] = {"text": f"before {ROW} after"}
    for number in (1, 2, 4999, 8000):
        records[number] = {"text": ""}
    result = _scanned(world.jsonl(tmp_path / "a.jsonl", records))
    assert (result.records, result.empty, result.bad, result.lines) == (9000, 4, 0, 9000)
    assert result.counts.tolist() == [3]
    assert result.where[:, [1, 3]].tolist() == [[1, 0], [5001, 5000], [9000, 8999]]


def test_bad_records_are_all_counted_and_the_first_twenty_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(('{"text": "fine"}\n' * 4000 + "{\n" * 9) * 3)
    result = _scanned(path)
    assert (result.bad, result.fault) == (27, None)
    lines = [part * 4009 + 4001 + place for part in range(3) for place in range(9)]
    assert [one.line for one in result.bad_records] == lines[:20]
    assert {type(one) for one in result.bad_records} == {BadRecord}
    assert all(one.what for one in result.bad_records)


def test_of_a_shard_that_is_not_there_nothing_is_known(tmp_path: Path) -> None:
    result = _scanned(tmp_path / "gone.jsonl")
    assert result.fault == Problem("gone.jsonl", None, "could not be read: No such file or directory")
    assert (result.records, result.empty, result.bad, result.lines, result.bytes) == (0, 0, 0, 0, 0)
    failed = ShardResult.failed(result.fault)
    assert (failed.records, failed.empty, failed.bad, failed.lines, failed.bytes, len(failed.ids)) == (0, 0, 0, 0, 0, 0)
