"""Formats of which a record is a line, or a few lines: JSON Lines, TSV, plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from evalspill_guard.errors import Unreadable
from evalspill_guard.fields import Pairs, decode
from evalspill_guard.model import MAX_RECORD, Record
from evalspill_guard.readers.batches import OfLines, RecordBatch, batched
from evalspill_guard.readers.stream import BOM, PAGE, RecordStream, bad, is_page, not_utf8, undecodable
from evalspill_guard.text import words

MOST = 2 * MAX_RECORD  # of a record that is too long, so much is searched
_HEAD = 65_536
_LONG_CELL = 8  # words
_BLOCK = 1 << 20
_TORN = (
    'a quoted cell goes on in the next line: name the file .csv and set delimiter: "\\t", '
    "or set that alone where quotes are characters"
)
_Piece = tuple[int, int, bytes, int, bool]
RawLine = tuple[int, int, bytes, bool]
"""(line, start, bytes, whether it is longer than max_record)"""


class LineStream(RecordStream):
    """Raw lines of the byte range, with their line number and offset; lines end at a line feed only.

    A line above max_record is a bad record, but still searched. One above MOST is given in part: `unread` is the
    number of bytes by which it is longer, and the stream ends with a fault, since the rest was not searched.
    """

    unread = 0
    _unsearched: int | None = None

    def raw_lines(self) -> Iterator[RawLine]:
        """The lines of the range, one by one."""
        at = self._first_line()
        while self.end is None or at < self.end:
            raw = self.source.stream.readline(self.reading.max_record + 1)
            if not raw:
                break
            line = self._finished(at, raw)
            yield line
            at += self._size(line)
        self._tell_unsearched()

    def page(self) -> Unreadable | None:
        """The fault of a file that is none of data; to be asked before it is read."""
        head = self.source.stream.peek(_HEAD)[:_HEAD]
        return Unreadable(PAGE, 1) if not self.start and is_page(head) else None

    def _first_line(self) -> int:
        """Where the first line begins; the source was opened a byte early, and is read up to there."""
        return self.start and self.start + self._skip_rest(count=False) - 1

    def _finished(self, at: int, raw: bytes) -> RawLine:
        """A line of which at least the first max_record + 1 bytes were read, if it has so many."""
        line = self.lines + 1
        too_long = len(raw) > self.reading.max_record and not raw.endswith(b"\n")
        if too_long:
            raw += self.source.stream.readline(max(1, MOST - len(raw)))
            if not raw.endswith(b"\n"):
                self.unread = self._skip_rest()
                self.note_unsearched(line, self.unread)
        self.lines += raw.endswith(b"\n")
        return line, at, raw, too_long

    def _size(self, line: RawLine) -> int:
        """Bytes that a line takes in the file, with those of it that were passed over."""
        size, self.unread = len(line[2]) + self.unread, 0
        return size

    def _tell_unsearched(self) -> None:
        if self._unsearched is not None:
            raise Unreadable(f"a record above {MOST} bytes was not searched to its end: split it", self._unsearched)

    def note_unsearched(self, line: int, size: int) -> None:
        """So many bytes of the record on this line were passed over."""
        if size and self._unsearched is None:
            self._unsearched = line

    def _skip_rest(self, count: bool = True) -> int:
        size = 0
        while rest := self.source.stream.readline(1 << 20):
            size += len(rest)
            self._pass_over(rest)
            if rest.endswith(b"\n"):
                self.lines += count
                break
        return size

    def _pass_over(self, rest: bytes) -> None:
        """For those who count something in what is skipped."""


class JsonLines(LineStream):
    """A JSON value a line."""

    format = "jsonl"

    def __iter__(self) -> Iterator[Record]:
        return self._records(self.raw_lines())

    def beginning_at(self, starts: Collection[int]) -> Iterator[Record]:
        """The records that begin at these offsets; the lines between are not parsed."""
        return self._records(line for line in self.raw_lines() if line[1] in starts)

    def batches(self) -> Iterator[RecordBatch]:
        """Whole blocks of lines, where no line of one can be too long before its end is found."""
        return self._by_block() if self.reading.max_record >= _BLOCK else super().batches()

    def _by_block(self) -> Iterator[RecordBatch]:
        at, rest = self._first_line(), b""
        try:
            while block := self.source.stream.read1(self._wanted(at + len(rest))):
                cut = block.rfind(b"\n") + 1
                whole, rest = (rest + block[:cut], block[cut:]) if cut else (b"", rest + block)
                if whole:
                    yield from self._batch(at, whole)
                    at += len(whole)
                if len(rest) > self.reading.max_record:
                    line = self._finished(at, rest)
                    yield from batched(self._records([line]))
                    at, rest = at + self._size(line), b""
        except Unreadable:
            if rest:
                yield from batched(self._records([(self.lines + 1, at, rest, False)]))
            raise
        if rest:
            rest += self.source.stream.readline(max(1, self.reading.max_record + 1 - len(rest)))
            yield from batched(self._records([self._finished(at, rest)]))
        self._tell_unsearched()

    def _wanted(self, at: int) -> int:
        return _BLOCK if self.end is None else max(0, min(_BLOCK, self.end - at))

    def _batch(self, at: int, whole: bytes) -> Iterator[RecordBatch]:
        """Lines that end in a line feed; where one of them is not plain good JSON they are read one by one."""
        lines, first = whole.split(b"\n"), self.lines + 1
        lines.pop()
        self.lines += len(lines)
        try:
            if len(lines[0]) > self.reading.max_record or (not at and whole.startswith(BOM)):
                raise ValueError
            leaves = list(map(self.select.from_json, lines))
        except ValueError:
            yield from batched(self._records(_numbered(lines, first, at, self.reading.max_record)))
        else:
            yield OfLines(leaves, (), lines, first, at)

    def _records(self, lines: Iterable[RawLine]) -> Iterator[Record]:
        select, plain, named = self.select.from_json, self.role == "train" or self._id is None, self.name_of
        for line, start, raw, too_long in lines:
            end = start + len(raw)
            text = raw[3:] if not start and raw.startswith(BOM) else raw
            if too_long:
                yield bad(line, start, end + self.unread, raw, f"above max_record ({self.reading.max_record} bytes)")
                continue
            try:
                leaves = select(text)
            except UnicodeDecodeError as error:
                yield bad(line, start, end, raw, undecodable(error, end - len(text)))
            except ValueError as error:
                if text.isspace() or not text:
                    continue
                yield bad(line, start, end, raw, _why(text, end - len(text), error))
            else:
                yield Record(line, start, end, leaves, None if plain else named(decode(text)))

    def values(self) -> Iterator[object]:
        for _, start, raw, _ in self.raw_lines():
            try:
                yield decode(raw[3:] if not start and raw.startswith(BOM) else raw)
            except ValueError:
                continue


def _numbered(lines: Iterable[bytes], first: int, at: int, most: int) -> Iterator[RawLine]:
    for number, line in enumerate(lines, start=first):
        yield number, at, line + b"\n", len(line) > most
        at += len(line) + 1


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
        page = self.page()
        for line, start, raw, value in self._rows():
            if isinstance(value, str):
                yield bad(line, start, start + len(raw) + self.unread, raw, value)
            else:
                yield Record(line, start, start + len(raw), self.select.leaves(value), self.name_of(value))
        if doubt := page or self._doubt:
            raise doubt

    def values(self) -> Iterator[object]:
        for _, _, _, value in self._rows():
            if self._doubt:
                raise self._doubt  # before a row's own text is taken for the names of columns
            if not isinstance(value, str):
                yield value

    _doubt: Unreadable | None = None

    def _rows(self) -> Iterator[tuple[int, int, bytes, object]]:
        """(line, start, bytes, row, or as a string why it cannot be read)."""
        header: list[str] | None = None
        torn: _Torn | None = None
        first = self.reading.header is not False
        for line, start, raw, too_long in self.raw_lines():
            text = raw[3:] if not start and raw.startswith(BOM) else raw
            if not text.strip(b"\r\n"):
                continue
            if too_long:
                yield line, start, raw, f"above max_record ({self.reading.max_record} bytes)"
            elif fault := not_utf8(raw, start):
                yield line, start, raw, fault
            elif first:
                header = _cells(text)
                self._doubt = long_header(header, line) if self.reading.header is None else None
            else:
                cells = _cells(text)
                torn = torn or _Torn(len(header or cells))
                self._doubt = self._doubt or (torn.by(line, cells) if self.reading.delimiter is None else None)
                fault = overflow(self.reading.fields, header, cells)
                yield line, start, raw, fault or as_mapping(header, cells)
            first = False


class _Torn:
    """Notices cells that were quoted since they hold line breaks: their rows are torn, since a quote means nothing."""

    def __init__(self, columns: int) -> None:
        self.columns, self.opened, self.is_short = columns, 0, False

    def by(self, line: int, cells: list[str]) -> Unreadable | None:
        """The fault, once a line closes the quote that one before it has opened in its last cell, and one is short."""
        short = len(cells) < self.columns or self.columns == 1
        if self.opened and (short or self.is_short) and cells[0].endswith('"') and cells[0].count('"') % 2:
            return Unreadable(_TORN, self.opened)
        if cells[-1].startswith('"') and cells[-1].count('"') % 2:
            self.opened, self.is_short = line, short
        elif not (self.opened and short and cells[0].count('"') % 2 == 0):
            self.opened = 0
        return None


def _cells(line: bytes) -> list[str]:
    return line.decode().removesuffix("\n").removesuffix("\r").split("\t")


def long_header(cells: list[str], line: int) -> Unreadable | None:
    """Whether the first row looks like data, though nothing says that there is no header."""
    if any(len(words(cell)) > _LONG_CELL for cell in cells):
        return Unreadable("the first row looks like data, not like a header: set header: true or false", line)
    return None


def overflow(fields: Sequence[str] | None, header: list[str] | None, cells: list[str]) -> str:
    """What is wrong with a row whose cells go beyond the header, where named fields would pass these over."""
    if fields is None or header is None or len(cells) <= len(header) or not any(map(str.strip, cells[len(header) :])):
        return ""
    if any(field == "." or field.isdecimal() for field in fields):
        return ""
    return f"{len(cells)} cells, where the header has {len(header)}: quote those that hold the delimiter"


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
    """A paragraph or a line; in training data one above max_record is cut into pieces that overlap."""

    format = "txt"

    def __iter__(self) -> Iterator[Record]:
        page = self.page() if self.reading.split is None else None
        for line, start, raw, size, whole in self._pieces(self._by_line()):
            end = start + len(raw)
            if not whole and self.role == "eval":
                yield bad(line, start, end, raw[:size], f"above max_record ({self.reading.max_record} bytes)")
            elif fault := not_utf8(raw[:size], start):
                yield bad(line, start, end, raw[:size], fault)
            else:
                text = raw[:size].decode()
                text = text if start else text.removeprefix("\ufeff")
                yield Record(line, start, end, self.select.leaves(text), None)
        if page:
            raise page

    def values(self) -> Iterator[object]:
        return (record.leaves[0] for record in self if record.leaves)

    def _by_line(self) -> bool:
        if self.reading.split is not None or self.role == "train":
            return self.reading.split == "line"
        head = self.source.stream.peek(_HEAD)[:_HEAD].removeprefix(BOM)
        return all(line.strip() for line in head.strip().split(b"\n"))

    def _lines(self) -> Iterator[tuple[int, int, bytes, bool, bool]]:
        """(line, start, bytes, whether it begins here, whether it is blank); of long ones max_record bytes at once."""
        at, begins = 0, True
        while raw := self.source.stream.readline(self._limit):
            text = raw if at else raw.removeprefix(BOM)
            yield self.lines + 1, at, raw, begins, begins and not text.strip()
            begins = raw.endswith(b"\n")
            self.lines += begins
            at += len(raw)

    def _pieces(self, by_line: bool) -> Iterator[_Piece]:
        """(line, start, bytes with the blank lines after it, size without them, whether it is a whole record)."""
        held, whole = bytearray(), True
        first = start = size = 0
        for line, at, raw, begins, blank in self._lines():
            if begins and held and (by_line or (size < len(held) and not blank)):
                yield first, start, bytes(held), size, whole
                held, whole = bytearray(), True
            if not held:
                if blank:
                    continue
                first, start = line, at
            held += raw
            size = size if blank else len(held)
            while len(held) > self._limit:
                cut, back = self._cut(held)
                yield first, start, bytes(held[:cut]), min(size, cut), False
                first, start, whole = first + held.count(b"\n", 0, back), start + back, False
                held, size = held[back:], max(0, size - back)
        if held:
            yield first, start, bytes(held), size, whole

    def _cut(self, held: bytearray) -> tuple[int, int]:
        """Where a piece ends, and where the next one begins, both between characters."""
        cut = _between_characters(held, self._limit) or self._limit
        overlap = 0 if self.role == "eval" else self.reading.overlap
        return cut, _between_characters(held, max(0, cut - overlap)) or cut

    @property
    def _limit(self) -> int:
        """Bytes of a piece; in training data at least twice the overlap, so that each goes on."""
        return (
            self.reading.max_record if self.role == "eval" else max(self.reading.max_record, 2 * self.reading.overlap)
        )


def _between_characters(text: bytearray, at: int) -> int:
    return next((place for place in range(at, max(-1, at - 4), -1) if text[place] & 0xC0 != 0x80), at)
