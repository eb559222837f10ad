"""Records by the batch: what a scan needs of many records at once, for less than a record at a time costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import Record

BATCH_BYTES = 800_000
_BATCH_RECORDS = 4096


@dataclass(frozen=True, slots=True)
class RecordBatch(ABC):
    """Some consecutive records: their leaves, and the bad ones among them (line, what)."""

    leaves: Sequence[list[str]]
    bad: Sequence[tuple[int, str]]

    @abstractmethod
    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        """(line, start) of every record, as two lists."""


@dataclass(frozen=True, slots=True)
class _OfRecords(RecordBatch):
    records: Sequence[Record]

    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        return [record.line for record in self.records], [record.start for record in self.records]


@dataclass(frozen=True, slots=True)
class OfLines(RecordBatch):
    """Records that are the lines of one block, none left out; the first is line `line` and begins at `start`."""

    lines: Sequence[bytes]
    line: int
    start: int

    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        starts = accumulate((len(line) + 1 for line in self.lines[:-1]), initial=self.start)
        return range(self.line, self.line + len(self.lines)), list(starts)


def of_records(records: Sequence[Record]) -> RecordBatch:
    """A batch of records that were read one by one."""
    bad = [(record.line, record.bad) for record in records if record.bad is not None]
    return _OfRecords([record.leaves for record in records], bad, records)


def batched(records: Iterable[Record]) -> Iterator[RecordBatch]:
    """Batches of about the same amount of text; a fault comes after the records before it."""
    waiting: list[Record] = []
    size = 0
    try:
        for record in records:
            waiting.append(record)
            size += record.end - record.start
            if size > BATCH_BYTES or len(waiting) >= _BATCH_RECORDS:
                yield of_records(waiting)
                waiting, size = [], 0
    except Unreadable:
        if waiting:
            yield of_records(waiting)
        raise
    if waiting:
        yield of_records(waiting)
