"""CSV by the standard library's reader; each row's bytes are those of the lines that the reader took for it."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from typing import NamedTuple

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import Record
from evalspill_guard.readers.lines import MOST, LineStream, as_mapping, long_header, overflow
from evalspill_guard.readers.stream import BOM, bad, not_utf8

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
_OTHERS = ";\t|"
_OPEN = "a quote that opens here is never closed"


class _Row(NamedTuple):
    """What the csv module took for a row: its place, its bytes (at most max_record), and its cells or a fault."""

    line: int
    start: int
    end: int
    raw: bytes
    cells: list[str]
    fault: str


class _TooLong(Exception):
    """The row goes on after max_record bytes."""


class _Taken:
    """Lines as text for the csv module; keeps the bytes of those it took for the row that it is at."""

    def __init__(self, stream: Csv) -> None:
        self.stream, self.lines = stream, stream.raw_lines()
        self.limit = stream.reading.max_record + 1  # as for a line, the line feed does not count
        self.parts: list[bytes] = []
        self.line = self.start = self.size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line, start, raw, too_long = next(self.lines)
        if not self.parts:
            self.line, self.start = line, start
        self.parts.append(raw)
        self._add(raw, too_long)
        if self.size > self.limit:
            raise _TooLong
        return (raw if start else raw.removeprefix(BOM)).decode("utf-8", "surrogateescape")

    def _add(self, raw: bytes, too_long: bool) -> None:
        self.size += len(raw) + (self.stream.unread if too_long else 0)

    def row(self, cells: list[str], fault: str) -> _Row:
        """The row that these lines are; the next line begins another one."""
        raw = b"".join(self.parts)
        row = _Row(self.line, self.start, self.start + self.size, raw, cells, fault or not_utf8(raw, self.start))
        self.parts, self.size, self.stream.quotes = [], 0, 0
        return row

    def closes(self) -> bool:
        """Go on to the end of a row that is too long: the line that closes its last quote. Whether one does."""
        quotes = sum(part.count(b'"') for part in self.parts)
        while (quotes + self.stream.quotes) % 2:
            try:
                _, _, raw, too_long = next(self.lines)
            except (StopIteration, Unreadable):
                return False
            self._add(raw, too_long)
            if self.size <= MOST:
                self.parts.append(raw)
            else:
                self.stream.note_unsearched(self.line, len(raw))
            quotes += raw.count(b'"')
        return True


class Csv(LineStream):
    """A row after the header, by RFC 4180."""

    format = "csv"
    quotes = 0  # of the row at hand, in what was skipped of its lines

    def __iter__(self) -> Iterator[Record]:
        page, doubt = self.page(), None
        for number, (row, value) in enumerate(self._rows()):
            if not number:
                doubt = page or self._doubt(row)
            if row.fault:
                yield bad(row.line, row.start, row.end, row.raw, row.fault)
            elif value is not None:
                yield Record(row.line, row.start, row.end, self.select.leaves(value), self.name_of(value))
        if doubt:
            raise doubt

    def values(self) -> Iterator[object]:
        for number, (row, value) in enumerate(self._rows()):
            if not number and (doubt := self._doubt(row)):
                raise doubt  # before a row's own text is taken for the names of columns
            if value is not None:
                yield value

    def _rows(self) -> Iterator[tuple[_Row, object]]:
        """Rows with their value, which is None for the header and for what is no row."""
        header: list[str] | None = None
        first = self.reading.header is not False
        for row in self._parsed():
            if first and not row.fault:
                header = row.cells
                yield row, None
            elif fault := row.fault or overflow(self.reading.fields, header, row.cells):
                yield row._replace(fault=fault), None
            else:
                yield row, as_mapping(header, row.cells)
            first = False

    def _parsed(self) -> Iterator[_Row]:
        taken = _Taken(self)
        reader = csv.reader(taken, strict=True, delimiter=self.reading.delimiter or ",")
        while True:
            cells: list[str] = []
            fault = ""
            try:
                cells = next(reader)
            except StopIteration:
                return
            except _TooLong:
                fault = f"above max_record ({self.reading.max_record} bytes)" if taken.closes() else _OPEN
            except csv.Error as error:
                fault = _OPEN if "unexpected end of data" in str(error) else f"not CSV (RFC 4180): {error}"
            row = taken.row(cells, fault)
            if cells or fault:
                yield row
            if fault == _OPEN:
                raise Unreadable("a quote that opens here is still open at the end of the file", row.line)

    def _pass_over(self, rest: bytes) -> None:
        self.quotes += rest.count(b'"')

    def _doubt(self, row: _Row) -> Unreadable | None:
        """Whether the first row tells that the file is not what the config, or its silence, says."""
        line, cells = row.line, row.cells
        if self.reading.delimiter is None and len(cells) == 1:
            better = [mark for mark in _OTHERS if _columns(row.raw, mark) > 1]
            if better:
                return Unreadable(f"one column, where {better[0]!r} would give more: set delimiter", line)
        if self.reading.header is not None:
            return None
        if len(set(cells)) < len(cells):
            return Unreadable("the first row has a repeated cell: set header: true or header: false", line)
        return long_header(cells, line)


def _columns(row: bytes, delimiter: str) -> int:
    text = io.StringIO(row.decode("utf-8", "replace"), newline="")
    return len(next(csv.reader(text, delimiter=delimiter), []))
