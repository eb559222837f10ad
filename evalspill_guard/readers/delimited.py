"""CSV by the standard library's reader; each row's bytes are those of the lines that the reader took for it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import Record
from evalspill_guard.readers.lines import LineStream, as_mapping
from evalspill_guard.readers.stream import BOM, bad, undecodable

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
_OTHERS = ";\t|"
_LONG_CELL = 8


class Csv(LineStream):
    """A row after the header, by RFC 4180."""

    format = "csv"

    def __iter__(self) -> Iterator[Record]:
        doubt: Unreadable | None = None
        for number, (line, start, raw, cells, fault, value) in enumerate(self._rows()):
            if not number:
                doubt = self._doubt(line, raw, cells)
            end = start + len(raw)
            if fault:
                yield bad(line, start, end, raw, fault)
            elif value is not None:
                yield Record(line, start, end, self.select.leaves(value), self.name_of(value))
        if doubt:
            raise doubt

    def values(self) -> Iterator[object]:
        return (value for *_, value in self._rows() if value is not None)

    def _rows(self) -> Iterator[tuple[int, int, bytes, list[str], str, object]]:
        """(line, start, bytes, cells, fault, value); value is None for the header and for what is no row."""
        header: list[str] | None = None
        first = True
        for line, start, raw, cells, fault in self._parsed():
            if not fault and not any(cells) and not raw.strip(b"\r\n"):
                continue
            if first and not fault and self.reading.header is not False:
                header = cells
                yield line, start, raw, cells, "", None
            else:
                yield line, start, raw, cells, fault, None if fault else as_mapping(header, cells)
            first = False

    def _parsed(self) -> Iterator[tuple[int, int, bytes, list[str], str]]:
        taken: list[tuple[int, int, bytes]] = []

        def texts() -> Iterator[str]:
            for line, start, raw, _ in self.raw_lines():
                taken.append((line, start, raw))
                yield (raw[3:] if not start and raw.startswith(BOM) else raw).decode("utf-8", "surrogateescape")

        reader = csv.reader(texts(), strict=True, delimiter=self.reading.delimiter or ",")
        while True:
            cells: list[str] = []
            fault = ""
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                fault = f"not CSV (RFC 4180): {error}"
            line, start, _ = taken[0]
            raw = b"".join(part for _, _, part in taken)
            taken.clear()
            if fault.endswith("unexpected end of data"):
                yield line, start, raw, [], "a quote that opens here is never closed"
                raise Unreadable("a quote that opens here is still open at the end of the file", line)
            yield line, start, raw, cells, fault or _not_utf8(raw, start)

    def _doubt(self, line: int, raw: bytes, cells: list[str]) -> Unreadable | None:
        """Whether the first row tells that the file is not what the config, or its silence, says."""
        if self.reading.delimiter is None and len(cells) == 1:
            better = [mark for mark in _OTHERS if mark in raw.decode("utf-8", "replace")]
            if better:
                return Unreadable(f"one column, where {better[0]!r} would give more: set delimiter", line)
        if self.reading.header is None:
            if len(set(cells)) < len(cells):
                return Unreadable("the first row has a repeated cell: set header: true or header: false", line)
            if any(len(cell.split()) > _LONG_CELL for cell in cells):
                return Unreadable("the first row looks like data, not like a header: set header: true or false", line)
        return None


def _not_utf8(raw: bytes, start: int) -> str:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return undecodable(error, start)
    return ""
