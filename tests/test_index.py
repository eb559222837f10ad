"""What the index finds in texts."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard.index import Query, RunIndex, distinct
from evalspill_guard.indexing import build, sorted_places
from evalspill_guard.kernel import batch

WORD = st.sampled_from(["a", "b", "c", "extraordinarily", "é"])
ROW = st.lists(WORD, min_size=1, max_size=12)
RECORD = st.lists(st.lists(WORD, max_size=14).map(" ".join), min_size=1, max_size=3)


def _query(row: Sequence[str], n: int) -> Query:
    size = len(row)
    search = "runs" if size >= n else "whole" if size >= 3 else "tiny"
    return Query(" ".join(row), search, min(n, size), size)


def _found(index: RunIndex, records: Sequence[Sequence[str]]) -> set[tuple[int, int]]:
    ids, where = index.found_in(batch(records))
    return set(zip(ids.tolist(), where.tolist(), strict=True))


def _inside(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def _expected(
    index: RunIndex, rows: Sequence[list[str]], n: int, records: Sequence[Sequence[str]]
) -> set[tuple[int, int]]:
    expected: set[tuple[int, int]] = set()
    for number, row in enumerate(rows):
        query = _query(row, n)
        for where, leaves in enumerate(records):
            words = " ".join(leaves).split()
            if query.search == "runs":
                ids = index.ids_of(number).tolist()
                expected |= {(one, where) for at, one in enumerate(ids) if _inside(row[at : at + query.n], words)}
            equal = row in [leaf.split() for leaf in leaves] or row == words
            if equal if query.search == "tiny" else _inside(row, words):
                expected.add((int(index.row_whole[number]), where))
    return expected


@given(st.lists(ROW, min_size=1, max_size=8), st.lists(RECORD, min_size=1, max_size=6), st.integers(3, 7))
def test_runs_and_whole_rows_are_found_where_they_stand_and_nowhere_else(
    rows: list[list[str]], records: list[list[str]], n: int
) -> None:
    index = build([_query(row, n) for row in rows])
    assert _found(index, records) == _expected(index, rows, n, records)


def test_a_run_does_not_cross_from_one_record_into_the_next() -> None:
    index = build([Query("a b c d", "runs", 4, 4)])
    assert _found(index, [["a b"], ["c d"]]) == set()
    assert _found(index, [["a b", "c d"]]) == {(0, 0)}


def test_rows_that_are_not_searched_for_have_no_ids() -> None:
    index = build([Query("a b", "none", 2, 2)])
    assert (index.row_whole.tolist(), _found(index, [["a b"]])) == ([-1], set())


def test_no_rows_find_nothing() -> None:
    assert _found(build([]), [["a b c"]]) == set()


@given(st.lists(st.integers(0, 40).map(lambda low: low if low < 20 else low << 40 | low), max_size=60))
def test_hashes_that_differ_in_their_low_bits_alone_are_put_in_order_too(values: list[int]) -> None:
    order, ordered = sorted_places(np.array(values, dtype=np.uint64))
    assert ordered.tolist() == sorted(values)
    assert order.tolist() == sorted(range(len(values)), key=values.__getitem__)


@given(st.lists(st.integers(0, 9)))
def test_distinct_values_are_sorted(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))


def test_a_row_has_its_runs_whatever_rows_stand_around_it() -> None:
    rows = [f"{number} b c {'é' if number % 3 else 'e'} f" for number in range(5_000)]
    index = build([Query(row, "runs", 3, 5) for row in rows])
    assert {int(index.row_whole[at]) for at in range(5_000)} == set(range(index.first_whole, index.first_tiny))
    for number in (0, 1, 2047, 2048, 4_999):
        found = _found(index, [[rows[number]]])
        assert found == {(int(one), 0) for one in (*index.ids_of(number), index.row_whole[number])}
