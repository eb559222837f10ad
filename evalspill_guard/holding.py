"""Which records of one shard hold the rows that are asked for, and how much of each: what a worker runs.

Numbers come out, never text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from evalspill_guard.aim import Aim, Judged
from evalspill_guard.errors import Unreadable
from evalspill_guard.index import Ids, RunIndex
from evalspill_guard.kernel import batch
from evalspill_guard.model import Problem, Shard, Stamp
from evalspill_guard.readers import open_records, records_at
from evalspill_guard.readers.batches import RecordBatch, of_records
from evalspill_guard.streams import CHANGED, changed, file_stamp

_TOGETHER = 256  # records that are read again at once


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a shard.

    A record is told when it holds enough of a row by its rule, when it holds one of `ids`, or always (`every`).
    at is the (ordinal, start, line) of the only records to read, None: all; `sure` says that each holds something.
    digest and stamp are those of the scan.
    """

    rows: tuple[Judged, ...]
    ids: tuple[int, ...] = ()
    every: bool = False
    at: tuple[tuple[int, int, int], ...] | None = None
    sure: bool = True
    digest: str = ""
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The records told, in order.

    records   (ordinal, start, line) of each
    rows      (record, row, words covered, longest passage) of each row that one holds
    ids       (record, id) of everything in the index that one holds
    """

    records: Ids
    rows: Ids
    ids: Ids
    fault: Problem | None = None

    @classmethod
    def failed(cls, fault: Problem) -> Held:
        """A shard of which nothing is known."""
        return cls(_table([], 3), _table([], 4), _table([], 2), fault)


def hold(wanted: Wanted, shard: Shard, index: RunIndex, progress: Callable[[int], None] = lambda _: None) -> Held:
    """The records of a shard that hold what is wanted of an aimed index; `progress` is told the bytes read so far."""
    found = _Found(Aim(index, wanted.rows, wanted.ids), wanted)
    try:
        if wanted.at is not None:
            _read_some(shard, wanted.at, wanted.stamp, found)
        else:
            _read_all(shard, wanted.digest, found, progress)
    except Unreadable as error:
        return Held.failed(Problem(shard.file.path, error.line, error.what))
    except OSError as error:
        what = f"could not be read: {error.strerror or type(error).__name__}"
        return Held.failed(Problem(shard.file.path, None, what))
    return Held(_table(found.records, 3), _table(found.rows, 4), _table(found.ids, 2))


def _read_all(shard: Shard, digest: str, found: _Found, progress: Callable[[int], None]) -> None:
    with open_records(shard.file, shard.reading, "train", shard.start, shard.end) as stream:
        for records in stream.batches():
            found.take(records)
            progress(stream.source.raw_bytes)
        if stream.source.digest() != digest:
            raise Unreadable(CHANGED)


def _read_some(shard: Shard, at: Sequence[tuple[int, int, int]], stamp: Stamp | None, found: _Found) -> None:
    records = records_at(shard.file, shard.reading, "train", [(ordinal, start) for ordinal, start, _ in at])
    for first in range(0, len(at), _TOGETHER):
        some = list(islice(records, _TOGETHER))
        found.take(of_records(some), at[first : first + len(some)])
    now = file_stamp(shard.file) if stamp else None
    if stamp and now and (changed(stamp, now) if found.wanted.sure else stamp != now):
        raise Unreadable(CHANGED)


def _table(parts: Sequence[Ids], width: int) -> Ids:
    return np.concatenate([np.empty((0, width), dtype=np.int64), *parts])


@dataclass(slots=True)
class _Found:
    """What was found so far."""

    aim: Aim
    wanted: Wanted
    records: list[Ids] = field(default_factory=list)
    rows: list[Ids] = field(default_factory=list)
    ids: list[Ids] = field(default_factory=list)
    _read: int = 0
    _told: int = 0

    def take(self, records: RecordBatch, at: Sequence[tuple[int, int, int]] | None = None) -> None:
        ids, where = self.aim.index.found_in(batch(records.leaves))
        hit = np.unique(where[self.aim.matters[ids]])
        if self.wanted.every:
            hit = np.arange(len(records.leaves))
        if at is not None and self.wanted.sure and len(hit) < len(at):
            raise Unreadable(CHANGED)
        if len(hit):
            self._judge(records, hit, ids, where, at)
        self._read += len(records.leaves)

    def _judge(
        self, records: RecordBatch, hit: Ids, ids: Ids, where: Ids, at: Sequence[tuple[int, int, int]] | None
    ) -> None:
        of_hits = np.isin(where, hit)
        ids, where = ids[of_hits], np.searchsorted(hit, where[of_hits])
        rows = self.aim.rows_in(batch([records.leaves[number] for number in hit.tolist()]), ids, where)
        asked = np.isin(np.arange(len(hit)), where[np.isin(ids, self.aim.ids)]) | self.wanted.every
        told = asked.copy()
        enough = self.aim.enough(rows)
        told[rows[enough, 0]] = True
        rows = rows[enough | asked[rows[:, 0]]]
        number = np.cumsum(told) - 1 + self._told
        self.records.append(self._places(records, hit[told], at))
        self.rows.append(np.column_stack((number[rows[:, 0]], rows[:, 1:4])))
        self.ids.append(np.column_stack((number[where[told[where]]], ids[told[where]])))
        self._told += int(told.sum())

    def _places(self, records: RecordBatch, hit: Ids, at: Sequence[tuple[int, int, int]] | None) -> Ids:
        if at is not None:
            return np.array(at, dtype=np.int64)[hit]
        lines, starts = (np.array(places, dtype=np.int64)[hit] for places in records.places())
        return np.column_stack((hit + self._read, starts, lines))
