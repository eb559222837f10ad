"""Scan one shard of training data: what a worker runs. Counts and places come out, never text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from evalspill_guard.errors import Unreadable
from evalspill_guard.index import Ids, RunIndex
from evalspill_guard.kernel import batch
from evalspill_guard.model import Problem, Shard, Stamp
from evalspill_guard.readers import open_records
from evalspill_guard.readers.batches import RecordBatch

KEPT_PLACES = 4
LISTED_PLACES = 256
DENSE = 200  # a shard of which more than one in so many records is wanted is read from its beginning to its end
_MOST_LISTED = 4096
_PENDING = 1_000_000
_EMPTY = np.empty(0, dtype=np.int64)
_NO_PLACES = np.empty((0, 4), dtype=np.int64)
_NO_RECORDS = np.empty((0, 3), dtype=np.int64)


@dataclass(slots=True)
class Tally:
    """How many records hold each thing found, and where the first four of them stand.

    Records must be added in order. `where` has a row of (id, line, start, ordinal) for each place kept, and `listed`
    (line, start, ordinal) of every record among the first 256 of an id; None where these are many.
    """

    ids: Ids = field(default_factory=lambda: _EMPTY)
    counts: Ids = field(default_factory=lambda: _EMPTY)
    where: Ids = field(default_factory=lambda: _NO_PLACES)
    listed: Ids | None = field(default_factory=lambda: _NO_RECORDS)
    _pending: list[Ids] = field(default_factory=list)
    _waiting: int = 0

    def add(self, ids: Ids, lines: Ids, starts: Ids, ordinals: Ids) -> None:
        """One entry for each record and thing found in it."""
        self._pending.append(np.stack((ids, lines, starts, ordinals), axis=1))
        self._waiting += len(ids)
        if self._waiting > _PENDING:
            self.settle()

    def settle(self) -> None:
        """Fold what was added into the counts, the first places and the list."""
        added = np.concatenate([self.where[:0], *self._pending])
        added = added[np.argsort(added[:, 0], kind="stable")]
        self._pending, self._waiting = [], 0
        self.ids, self.counts = summed(
            np.concatenate((self.ids, added[:, 0])), np.concatenate((self.counts, np.ones(len(added), dtype=np.int64)))
        )
        self.where = first_places(np.concatenate((self.where, added)))
        if self.listed is not None:
            self.listed = self._with(self.listed, added)

    def _with(self, listed: Ids, added: Ids) -> Ids | None:
        """The list with the records of places that were added, which are sorted by id and counted already."""
        at = np.searchsorted(self.ids, added[:, 0])
        before = self.counts - np.bincount(at, minlength=len(self.ids))
        among_first = before[at] + _rank(added[:, 0]) < LISTED_PLACES
        records = different_records(np.concatenate((listed, added[among_first, 1:])))
        return records if len(records) <= _MOST_LISTED else None


def different_records(records: Ids) -> Ids:
    """Rows of (line, start, ordinal), each record once and in order."""
    return records[np.unique(records[:, 2], return_index=True)[1]]


def summed(ids: Ids, counts: Ids) -> tuple[Ids, Ids]:
    """Sorted distinct ids with the sum of their counts."""
    distinct, places = np.unique(ids, return_inverse=True)
    return distinct, np.bincount(places, weights=counts, minlength=len(distinct)).astype(np.int64)


def first_places(where: Ids) -> Ids:
    """The first four rows of each id (column 0), in the order in which they come."""
    ordered = where[np.argsort(where[:, 0], kind="stable")]
    return ordered[_rank(ordered[:, 0]) < KEPT_PLACES]


def _rank(ids: Ids) -> Ids:
    """How many of the same id stand before each of these sorted ids."""
    rank: Ids = np.arange(len(ids)) - np.searchsorted(ids, ids)
    return rank


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A training record that could not be read; its line counts from the shard's first."""

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What one shard holds of the index; results of shards add up.

    `where` has (id, line, start, ordinal) of the first four places of each id, or fewer, where earlier shards of the
    file hold enough; `listed` has (line, start, ordinal) of every record among the first 256 that hold an id, or is
    None where these are too many to be read by themselves. `unmet` are those of several fields that no record has.
    """

    ids: Ids
    counts: Ids
    where: Ids
    records: int
    empty: int
    bad: int
    lines: int
    bytes: int
    digest: str
    bad_records: tuple[BadRecord, ...]
    fault: Problem | None
    stamp: Stamp | None = None
    listed: Ids | None = None
    unmet: frozenset[str] = frozenset()

    @classmethod
    def failed(cls, fault: Problem) -> ShardResult:
        """A shard of which nothing is known."""
        return cls(_EMPTY, _EMPTY, _NO_PLACES, 0, 0, 0, 0, 0, "", (), fault)


def thinned(result: ShardResult, have: Ids) -> tuple[ShardResult, Ids]:
    """The result without places that come after four others, and how many places of each id there are by then.

    `have` holds for each id how many places stand before those of the result, in the same file.
    """
    where = first_places(result.where)
    ids = where[:, 0]
    left = where[have[ids] + _rank(ids) < KEPT_PLACES]
    return replace(result, where=left), have + np.bincount(left[:, 0], minlength=len(have))


_LISTED_BAD = 20


class _Scan:
    def __init__(self, index: RunIndex, progress: Callable[[int], None]) -> None:
        self.index, self.progress = index, progress
        self.tally = Tally()
        self.records = self.empty = self.bad = 0
        self.bad_records: list[BadRecord] = []

    def take(self, records: RecordBatch) -> None:
        texts = batch(records.leaves)
        self.empty += int((np.diff(texts.texts) == 0).sum())
        ids, where = self.index.found_in(texts)
        if len(ids):
            lines, starts = (np.array(places, dtype=np.int64) for places in records.places())
            self.tally.add(ids, lines[where], starts[where], where + self.records)
        self.records += len(records.leaves)
        self.bad += len(records.bad)
        room = _LISTED_BAD - len(self.bad_records)
        self.bad_records += [BadRecord(line, what) for line, what in records.bad[:room]]


def _ignore(_: int) -> None:
    """Nobody watches."""


def scan_shard(shard: Shard, index: RunIndex, progress: Callable[[int], None] = _ignore) -> ShardResult:
    """Search one shard for everything in the index; `progress` is told the bytes read so far."""
    scan = _Scan(index, progress)
    fault: Problem | None = None
    lines = size = 0
    digest, opened = "", False
    stamp: Stamp | None = None
    unmet: frozenset[str] = frozenset()
    try:
        with open_records(shard.file, shard.reading, "train", shard.start, shard.end) as stream:
            opened, stamp = True, stream.source.stamp
            try:
                for records in stream.batches():
                    scan.take(records)
                    progress(stream.source.raw_bytes)
            finally:
                lines = stream.lines
            digest, size, unmet = stream.source.digest(), stream.source.size, frozenset(stream.select.unmet)
    except Unreadable as error:
        fault = Problem(shard.file.path, error.line or (lines + 1 if opened and stream.has_lines else None), error.what)
    except OSError as error:
        fault = Problem(shard.file.path, None, f"could not be read: {error.strerror or type(error).__name__}")
    scan.tally.settle()
    return ShardResult(
        scan.tally.ids, scan.tally.counts, scan.tally.where, scan.records, scan.empty, scan.bad,
        lines, size, digest, tuple(scan.bad_records), fault, stamp, sparse(scan.tally.listed, scan.records), unmet,
    )  # fmt: skip


def sparse(listed: Ids | None, records: int) -> Ids | None:
    """The list of some records of a shard of so many, where it pays to read them by themselves."""
    return None if listed is None or len(listed) * DENSE > records else listed
