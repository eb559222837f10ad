"""Formats of which a record is a line, or a few lines: JSON Lines, TSV, plain text."""

from __future__ import annotations

from collections.abc import Iterator

from evalspill_guard.fields import Pairs, decode
from evalspill_guard.model import Record
from evalspill_guard.readers.stream import BOM, RecordStream, bad, undecodable

_OVERLAP = 65_536
_HEAD = 65_536


class LineStream(RecordStream):
    """Raw lines of the byte range, with their line number and offset; lines end at a line feed only."""

    def raw_lines(self) -> Iterator[tuple[int, int, bytes, bool]]:
        """(line, start, bytes, too long); of a line that is too long only the first max_record bytes."""
        stream, limit = self.source.stream, self.reading.max_record
        at = self.start
        if self.start:
            at += self._skip_to_line_start()
        while self.end is None or at < self.end:
            raw = stream.readline(limit + 1)
            if not raw:
                return
            size = len(raw)
            line = self.lines + 1
            too_long = size > limit and not raw.endswith(b"\n")
            if too_long:
                size += self._skip_rest()
            else:
                self.lines += raw.endswith(b"\n")
            yield line, at, raw, too_long
            at += size

    def _skip_to_line_start(self) -> int:
        """The source was opened a byte early: a range that begins at a line's start begins with that line."""
        return self._skip_rest(count=False) - 1

    def _skip_rest(self, count: bool = True) -> int:
        size = 0
        while rest := self.source.stream.readline(1 << 20):
            size += len(rest)
            if rest.endswith(b"\n"):
                self.lines += count
                break
        return size


class JsonLines(LineStream):
    """A JSON value a line."""

    format = "jsonl"

    def __iter__(self) -> Iterator[Record]:
        select, plain, named = self.select.from_json, self.role == "train" or self._id is None, self.name_of
        for line, start, raw, too_long in self.raw_lines():
            end = start + len(raw)
            if not start and raw.startswith(BOM):
                raw = raw[3:]
            if too_long:
                yield bad(line, start, end, raw, f"above max_record ({self.reading.max_record} bytes)")
                continue
            try:
                leaves = select(raw)
            except UnicodeDecodeError as error:
                yield bad(line, start, end, raw, undecodable(error, start))
            except ValueError as error:
                if raw.isspace() or not raw:
                    continue
                yield bad(line, start, end, raw, _why(raw, start, error))
            else:
                yield Record(line, start, end, leaves, None if plain else named(decode(raw)))

    def values(self) -> Iterator[object]:
        for _, start, raw, _ in self.raw_lines():
            try:
                yield decode(raw[3:] if not start and raw.startswith(BOM) else raw)
            except ValueError:
                continue


def _why(raw: bytes, start: int, error: ValueError) -> str:
    try:
        raw.decode()
    except UnicodeDecodeError as fault:
        return undecodable(fault, start)
    return f"not JSON: {error}"


class Tsv(LineStream):
    """A line after the header, split at tabs; a quote is a character like any other."""

    format = "tsv"

    def __iter__(self) -> Iterator[Record]:
        for line, start, raw, value in self._rows():
            if isinstance(value, str):
                yield bad(line, start, start + len(raw), raw, value)
            else:
                yield Record(line, start, start + len(raw), self.select.leaves(value), self.name_of(value))

    def values(self) -> Iterator[object]:
        return (value for _, _, _, value in self._rows() if not isinstance(value, str))

    def _rows(self) -> Iterator[tuple[int, int, bytes, object]]:
        header: list[str] | None = None
        for line, start, raw, too_long in self.raw_lines():
            text = raw[3:] if not start and raw.startswith(BOM) else raw
            if not text.strip(b"\r\n"):
                continue
            try:
                cells = text.decode().rstrip("\n").removesuffix("\r").split("\t")
            except UnicodeDecodeError as error:
                yield line, start, raw, undecodable(error, start)
                continue
            if too_long:
                yield line, start, raw, f"above max_record ({self.reading.max_record} bytes)"
            elif header is None and self.reading.header is not False:
                header = cells
            else:
                yield line, start, raw, as_mapping(header, cells)


def as_mapping(header: list[str] | None, cells: list[str]) -> object:
    """Cells under the names of their columns; those beyond the header under their column number."""
    names = (header or [])[: len(cells)]
    keys = names + [str(number) for number in range(len(names), len(cells))]
    return (
        dict(zip(keys, cells, strict=True))
        if len(set(keys)) == len(keys)
        else Pairs(list(zip(keys, cells, strict=True)))
    )


class Text(LineStream):
    """A paragraph or a line."""

    format = "txt"

    def __iter__(self) -> Iterator[Record]:
        for line, start, raw, text_size in self._lines() if self._by_line() else self._paragraphs():
            yield from self._records(line, start, raw, text_size)

    def values(self) -> Iterator[object]:
        return (record.leaves[0] for record in self)

    def _by_line(self) -> bool:
        if self.reading.split is not None or self.role == "train":
            return self.reading.split == "line"
        head = self.source.stream.peek(_HEAD)[:_HEAD].replace(b"\r\n", b"\n").strip(b"\n")
        return not any(not line.strip() for line in head.split(b"\n")[:-1])

    def _lines(self) -> Iterator[tuple[int, int, bytes, int]]:
        for line, start, raw in self._whole_lines():
            if raw.strip():
                yield line, start, raw, len(raw)

    def _whole_lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Lines of any length, in pieces of at most max_record bytes that overlap."""
        at = 0
        while raw := self.source.stream.readline(self.reading.max_record):
            yield self.lines + 1, at, raw
            self.lines += raw.endswith(b"\n")
            at += len(raw)

    def _paragraphs(self) -> Iterator[tuple[int, int, bytes, int]]:
        """(line, start, bytes with the blank lines after it, size of the paragraph alone)."""
        parts: list[bytes] = []
        first = begin = size = total = 0
        for line, start, raw in self._whole_lines():
            blank = not raw.strip()
            if parts and not blank and size < total:
                yield first, begin, b"".join(parts), size
                parts, total = [], 0
            if not parts and blank:
                continue
            if not parts:
                first, begin = line, start
            parts.append(raw)
            total += len(raw)
            size = size if blank else total
            if total > self.reading.max_record:
                yield first, begin, b"".join(parts), size
                tail = b"".join(parts)[-_OVERLAP:]
                parts, total, first, begin, size = [tail], len(tail), line, start + len(raw) - len(tail), len(tail)
        if parts:
            yield first, begin, b"".join(parts), size

    def _records(self, line: int, start: int, raw: bytes, size: int) -> Iterator[Record]:
        text = raw[:size]
        if not start and text.startswith(BOM):
            text = text[3:]
        try:
            leaves = [text.decode()]
        except UnicodeDecodeError as error:
            yield bad(line, start, start + len(raw), text, undecodable(error, start))
            return
        yield Record(line, start, start + len(raw), self.select.leaves(leaves[0]), None)
