"""Counts and first places of what is found."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import world
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard import pool, scanner
from evalspill_guard.index import Ids, Query
from evalspill_guard.indexing import build
from evalspill_guard.model import DataFile, Problem, Reading, Shard
from evalspill_guard.scanner import BadRecord, ShardResult, Tally, first_places, scan_shard, sparse, summed, thinned


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


def _tallied(batches: list[list[int]], settle: bool = False) -> Tally:
    """A tally of records of these ids, the ordinals counted on."""
    tally = Tally()
    for number, ids in enumerate(batches):
        found = _array(*sorted(set(ids)))
        tally.add(found, found * 0 + number + 1, found * 0 + 10 * number, found * 0 + number)
        if settle:
            tally.settle()
    tally.settle()
    return tally


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=30), st.integers(1, 5))
def test_the_list_holds_each_record_among_the_first_of_an_id(batches: list[list[int]], places: int) -> None:
    among = sorted({at for one in range(4) for at in [n for n, ids in enumerate(batches) if one in ids][:places]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "LISTED_PLACES", places)
        for settle in (False, True):
            listed = _tallied(batches, settle).listed
            assert listed is not None
            assert listed.tolist() == [[at + 1, 10 * at, at] for at in among]


@pytest.mark.parametrize("settle", [False, True])
def test_a_list_of_too_many_records_is_none(settle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_MOST_LISTED", 3)
    assert _tallied([[1], [2], [3]], settle).listed is not None
    assert _tallied([[1], [2], [3], [4], []], settle).listed is None


@pytest.mark.parametrize(("records", "kept"), [(400, True), (399, False)])
def test_a_list_stays_where_at_most_every_two_hundredth_record_is_on_it(records: int, kept: bool) -> None:
    listed = _tallied([[1], [2]]).listed
    assert sparse(listed, records) is (listed if kept else None)
    assert sparse(None, records) is None


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
    assert result.listed is not None
    assert result.listed[:, [0, 2]].tolist() == [[1, 0], [5001, 5000], [9000, 8999]]
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


def test_what_waits_is_settled_before_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_PENDING", 3)
    tally, waiting = Tally(), []
    for number in range(12):
        tally.add(_array(1), _array(1), _array(0), _array(number))
        waiting.append(len(tally._pending))
    assert waiting == [1, 2, 3, 0] * 3


def test_a_file_that_is_cut_off_is_a_fault_at_the_line_that_could_not_be_read(tmp_path: Path) -> None:
    lines = b"".join(b'{"text": "line %d"}\n' % number for number in range(5000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines)[:-9])
    result = _scanned(tmp_path / "a.jsonl.gz")
    assert result.fault is not None
    assert (result.fault.path, result.fault.line, result.digest) == ("a.jsonl.gz", result.lines + 1, "")
    assert 0 < result.records <= 5000 and result.stamp is not None


def test_a_file_that_cannot_be_opened_is_a_fault_without_a_line(tmp_path: Path) -> None:
    result = _scanned(tmp_path / "gone.jsonl")
    assert result.fault == Problem("gone.jsonl", None, "could not be read: No such file or directory")
    assert (result.records, result.digest, result.stamp) == (0, "", None)


def test_training_text_is_cut_into_pieces_where_it_is_long(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 100 + ROW + " word" * 100)
    shard = Shard(DataFile("a.txt", str(tmp_path / "a.txt")), Reading(max_record=200, overlap=100), 0, None)
    result = scan_shard(shard, build([Query(ROW, "whole", 8, 8)]))
    assert (result.bad, result.fault, result.records > 3, result.counts.tolist()) == (0, None, True, [2])
