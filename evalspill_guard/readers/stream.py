"""What every reader gives: a stream of records over one open file."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType

from evalspill_guard.fields import Selector
from evalspill_guard.model import Reading, Record
from evalspill_guard.readers.batches import RecordBatch, batched
from evalspill_guard.streams import Source

BOM = b"\xef\xbb\xbf"
_ISO_2022 = b"\x1b$"
_PAGE = re.compile(rb"\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(?:!doctype )?html", re.IGNORECASE | re.DOTALL)


class RecordStream(ABC):
    """The records of one file, in order. `lines` counts line feeds read so far.

    A fault of the file is raised as Unreadable after the records before it.
    """

    format = ""
    clean_possible = True
    has_lines = True

    def __init__(self, source: Source, reading: Reading, role: str, start: int = 0, end: int | None = None) -> None:
        self.source, self.reading, self.role, self.start, self.end = source, reading, role, start, end
        self.lines = 0
        self.select = Selector(reading.fields)
        self._id = Selector((reading.id,)) if reading.id else None

    def name_of(self, value: object) -> str | None:
        """The row's id, from the parsed row."""
        named = self._id.leaves(value) if self._id else []
        return named[0] if named else None

    @abstractmethod
    def values(self) -> Iterator[object]:
        """The parsed records, for the field table; bad ones are passed over."""

    @abstractmethod
    def __iter__(self) -> Iterator[Record]: ...

    def batches(self) -> Iterator[RecordBatch]:
        """The same records, many at once."""
        return batched(self)

    def __enter__(self) -> RecordStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.source.__exit__(kind, error, at)


def bad(line: int, start: int, end: int, raw: bytes, why: str) -> Record:
    """A record that cannot be read: its bytes stand in for its text, without the mark that a file begins with."""
    text = raw if start else raw.removeprefix(BOM)
    return Record(line, start, end, [text.decode("utf-8", "replace")], None, why)


def not_utf8(raw: bytes, start: int) -> str:
    """Where the bytes are not UTF-8; empty where they are. ISO-2022 looks like ASCII, but for its escapes."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return undecodable(error, start)
    at = raw.find(_ISO_2022)
    return f"not UTF-8 but ISO-2022 at byte {start + at}" if at >= 0 else ""


def is_page(raw: bytes) -> bool:
    """Whether bytes with which a file begins are those of an HTML page, as a server sends in the place of data."""
    return _PAGE.match(raw.removeprefix(BOM)) is not None


PAGE = "an HTML page instead of data, such as one that asks for a login; of text that is meant, set split"


def undecodable(error: UnicodeDecodeError, start: int) -> str:
    """Where the bytes are not UTF-8, counted from the start of the file."""
    return f"not UTF-8 at byte {start + error.start}"
