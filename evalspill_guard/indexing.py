"""Build the index of the eval rows; the ids depend on the rows and their order alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalspill_guard.index import Ids, Mask, Query, RunIndex, Search, Table, distinct, ranges
from evalspill_guard.kernel import Hashes, batch

_CHUNK = 2048  # rows
_SLICE = 1 << 16  # runs
_BITS_PER_RUN = 16
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Windows:
    """The runs of a length; those of query rows[i] are hashes[bounds[i]:bounds[i + 1]]. rows are in order."""

    length: int
    hashes: Hashes
    rows: Ids
    bounds: Ids

    @classmethod
    def joined(cls, length: int, parts: Sequence[tuple[Hashes, Ids, Ids]]) -> _Windows:
        """Of several parts (hashes, rows, runs of each row), in the order of their rows."""
        hashes, rows, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(length, hashes, rows, _bounds(counts))

    def of_rows(self, chosen: Mask) -> Mask:
        """For each run whether it is of a chosen row."""
        return np.repeat(chosen, np.diff(self.bounds))


def build(queries: Sequence[Query]) -> RunIndex:
    """Index eval rows; the ids depend on the queries and their order alone."""
    searches = np.array([_SEARCHES.index(query.search) for query in queries], dtype=np.int64)
    lengths = np.array([query.words for query in queries], dtype=np.int64)
    keyed = _key_lengths(queries)
    row_hash = np.zeros(len(queries), dtype=np.uint64)
    windows = _windows(queries, keyed, row_hash)
    return _assemble(searches, lengths, keyed, row_hash, windows)


_SEARCHES: tuple[Search, ...] = ("runs", "whole", "tiny", "none")
_RUNS, _WHOLE, _TINY, _NO = range(4)


def _key_lengths(queries: Sequence[Query]) -> Ids:
    """The length of the runs by which each query is looked up: few lengths, since each costs a pass over the words."""
    run_lengths = {query.n for query in queries if query.search == "runs"}
    short = [query.words for query in queries if query.search == "whole"]
    # Short rows of scripts without spaces are twice as long as others: one key length for each doubling.
    keys = run_lengths | {min(group) for group in ([w for w in short if w < 8], [w for w in short if w >= 8]) if group}

    def key(query: Query) -> int:
        if query.search == "runs":
            return query.n
        return max((k for k in keys if k <= query.words), default=0) if query.search == "whole" else 0

    return np.array([key(query) for query in queries], dtype=np.int64)


def _windows(queries: Sequence[Query], keyed: Ids, row_hash: Hashes) -> list[_Windows]:
    found: dict[int, list[tuple[Hashes, Ids, Ids]]] = {}
    for first in range(0, len(queries), _CHUNK):
        texts = batch([[query.text] for query in queries[first : first + _CHUNK]])
        at, lengths = np.argsort(texts.order), keyed[first : first + _CHUNK]
        starts = texts.texts[at]
        sizes = texts.texts[at + 1] - starts
        row_hash[first : first + len(at)] = texts.at(starts, sizes)
        for length in np.unique(lengths[lengths > 0]).tolist():
            mine = np.flatnonzero(lengths == length)
            counts = sizes[mine] - length + 1
            hashes = texts.windows(length)[ranges(starts[mine], counts)]
            found.setdefault(length, []).append((hashes, mine + first, counts))
    return [_Windows.joined(length, parts) for length, parts in sorted(found.items())]


def _assemble(searches: Ids, lengths: Ids, keyed: Ids, row_hash: Hashes, windows: Sequence[_Windows]) -> RunIndex:
    wholes = np.flatnonzero(((searches == _RUNS) & (lengths > keyed)) | (searches == _WHOLE))
    whole_key, whole_number = _distinct(row_hash[wholes], lengths[wholes])
    tinies = np.flatnonzero(searches == _TINY)
    tiny_key, tiny_number = _distinct(row_hash[tinies], lengths[tinies])
    tables, runs, anchors, run_count = _tables(windows, searches, wholes[whole_key], len(whole_key))
    row_bounds, runs_at = _runs_by_row(len(searches), runs)
    first_whole, first_tiny = run_count, run_count + len(whole_key)
    row_whole = np.full(len(searches), -1, dtype=np.int64)
    row_whole[wholes] = whole_number + first_whole
    row_whole[tinies] = tiny_number + first_tiny
    one_run = np.flatnonzero((searches == _RUNS) & (lengths == keyed))
    row_whole[one_run] = runs_at[row_bounds[one_run]]
    return RunIndex(
        tables=tuple(tables),
        whole_length=lengths[wholes][whole_key],
        whole_hash=row_hash[wholes][whole_key],
        anchor_whole=anchors[0],
        anchor_offset=anchors[1],
        first_whole=first_whole,
        tiny_length=lengths[tinies][tiny_key],
        tiny_hash=row_hash[tinies][tiny_key],
        first_tiny=first_tiny,
        row_bounds=row_bounds,
        runs_at=runs_at,
        row_hash=row_hash,
        row_whole=row_whole,
    )


def _distinct(hashes: Hashes, lengths: Ids) -> tuple[Ids, Ids]:
    """(first of each distinct pair, number of each pair), sorted by hash, then length."""
    order = np.lexsort((lengths, hashes))
    changes = np.ones(len(order), dtype=bool)
    changes[1:] = (np.diff(hashes[order]) != 0) | (np.diff(lengths[order]) != 0)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(changes) - 1
    return order[changes], numbers


def _tables(
    windows: Sequence[_Windows], searches: Ids, whole_rows: Ids, whole_count: int
) -> tuple[list[Table], list[tuple[_Windows, Mask, Ids]], tuple[Ids, Ids], int]:
    """Tables, for each (windows, which of them are runs, ids of these), anchors (whole, offset), number of runs."""
    tables: list[Table] = []
    runs: list[tuple[_Windows, Mask, Ids]] = []
    anchor_wholes: list[Ids] = []
    anchor_offsets: list[Ids] = []
    run_count = anchor_count = 0
    whole_of_row = np.full(len(searches), -1, dtype=np.int64)
    whole_of_row[whole_rows] = np.arange(whole_count)
    for part in windows:
        chosen, group_of = _grouped(part.hashes)
        wholes = np.flatnonzero(whole_of_row[part.rows] >= 0)
        anchored = _rarest(part, np.bincount(group_of), group_of)[wholes]
        is_run = searches[part.rows] == _RUNS
        mine = group_of if is_run.all() else group_of[part.of_rows(is_run)]
        used = np.zeros(len(chosen), dtype=bool)
        used[mine] = True
        ids = _numbers(used, run_count)
        ids[~used] = -1
        run_count += int(np.count_nonzero(used))
        runs.append((part, is_run, ids[mine]))
        used[group_of[anchored]] = True
        entries = group_of[anchored]
        if not used.all():
            chosen, ids, entries = chosen[used], ids[used], _numbers(used, 0)[entries]
        anchor_wholes.append(whole_of_row[part.rows[wholes]])
        anchor_offsets.append(anchored - part.bounds[wholes])
        anchors = np.argsort(entries, kind="stable") + anchor_count
        tables.append(_table(part.length, chosen, ids, _bounds(np.bincount(entries, minlength=len(chosen))), anchors))
        anchor_count += len(anchored)
    join = [np.concatenate([_NONE, *column]) for column in (anchor_wholes, anchor_offsets)]
    return tables, runs, (join[0], join[1]), run_count


def _grouped(hashes: Hashes) -> tuple[Hashes, Ids]:
    """The sorted distinct hashes, and for each given one its place among them: np.unique, but in half the time."""
    order, ordered = sorted_places(hashes)
    changes = np.ones(len(order), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    groups = np.empty_like(order)
    groups[order] = _numbers(changes, 0)
    return ordered if changes.all() else ordered[changes], groups


def sorted_places(hashes: Hashes) -> tuple[Ids, Hashes]:
    """The stable order of hashes, and the hashes in it. Values are sorted far faster than places, so the place of
    each hash is sorted along with it in its low bits, and what differs in these bits alone is put right after."""
    bits = np.uint64(len(hashes).bit_length())
    packed = hashes >> bits
    packed <<= bits
    packed |= np.arange(len(hashes)).view(np.uint64)
    packed.sort()
    packed &= (np.uint64(1) << bits) - np.uint64(1)
    order = packed.view(np.int64)
    ordered = hashes[order]
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    tops = ordered >> bits if len(wrong) else ordered
    for top in distinct(tops[wrong]):
        mine = slice(*np.searchsorted(tops, (top, top + np.uint64(1))))
        order[mine] = order[mine][np.argsort(hashes[order[mine]], kind="stable")]
        ordered[mine] = hashes[order[mine]]
    return order, ordered


def _numbers(mask: Mask, first: int) -> Ids:
    """Numbers the places where the mask is true: first, first + 1, ... ."""
    numbers: Ids = np.cumsum(mask)
    numbers += first - 1
    return numbers


def _bounds(counts: Ids) -> Ids:
    """Where each of so many begins, and where the last one ends."""
    bounds = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=bounds[1:])
    return bounds


def _rarest(part: _Windows, counts: Ids, group_of: Ids) -> Ids:
    """The first run of each row that fewest rows share: rare here is rare in training, mostly."""
    found = [_NONE]
    for first in range(0, len(part.rows), _CHUNK):
        bounds = part.bounds[first : first + _CHUNK + 1]
        shared = counts[group_of[bounds[0] : bounds[-1]]]
        starts = bounds[:-1] - bounds[0]
        least = np.repeat(np.minimum.reduceat(shared, starts), np.diff(bounds))
        rare = np.flatnonzero(shared == least)
        found.append(rare[np.searchsorted(rare, starts)] + bounds[0])
    return np.concatenate(found)


def _table(length: int, hashes: Hashes, ids: Ids, bounds: Ids, anchors: Ids) -> Table:
    size = max(10, int(len(hashes) * _BITS_PER_RUN - 1).bit_length())
    shift = 64 - size
    bits = np.zeros((1 << size) // 8, dtype=np.uint8)
    for first in range(0, len(hashes), _SLICE):
        keys = hashes[first : first + _SLICE] >> np.uint64(shift)
        np.bitwise_or.at(
            bits, (keys >> np.uint64(3)).view(np.int64), np.uint8(1) << (keys & np.uint64(7)).astype(np.uint8)
        )
    return Table(length, hashes, ids, bits, shift, bounds, anchors)


def _runs_by_row(rows: int, runs: Sequence[tuple[_Windows, Mask, Ids]]) -> tuple[Ids, Ids]:
    sizes = np.zeros(rows, dtype=np.int64)
    for part, is_run, _ in runs:
        sizes[part.rows[is_run]] = np.diff(part.bounds)[is_run]
    bounds = _bounds(sizes)
    runs_at = np.empty(bounds[-1], dtype=np.int64)
    for part, is_run, ids in runs:
        mine = part.rows[is_run]
        runs_at[ranges(bounds[mine], sizes[mine])] = ids
    return bounds, runs_at
