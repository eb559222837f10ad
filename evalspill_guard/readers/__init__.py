"""Readers by format: a data file in, a stream of records out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol

from evalspill_guard.errors import Unreadable
from evalspill_guard.files import CHANGED, Source, open_source
from evalspill_guard.model import DataFile, Reading, Record, Shard
from evalspill_guard.readers.delimited import Csv
from evalspill_guard.readers.document import Document, first_value_ends
from evalspill_guard.readers.lines import JsonLines, Text, Tsv
from evalspill_guard.readers.stream import BOM, RecordStream

__all__ = ["READERS", "RecordStream", "kept_bytes", "open_records", "records_at", "shards_of", "values"]

SHARD_BYTES = 1 << 26
Role = Literal["train", "eval"]


class _Parquet(RecordStream):
    format = "parquet"

    def __iter__(self) -> Iterator[Record]:
        raise Unreadable("Parquet is not read by this version; write JSON Lines")

    def values(self) -> Iterator[object]:
        return iter(self)


READERS: Mapping[str, type[RecordStream]] = {
    "jsonl": JsonLines, "json": Document, "csv": Csv, "tsv": Tsv, "txt": Text, "parquet": _Parquet,
}  # fmt: skip
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv", ".txt": "txt",
             ".md": "txt", ".text": "txt", ".parquet": "parquet"}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_ARRAY_OF_OBJECTS = re.compile(r"\[\s*\{")


def _format_by_name(path: str) -> str:
    name = PurePosixPath(path.lower())
    if name.suffix in _COMPRESSED:
        name = name.with_suffix("")
    try:
        return _SUFFIXES[name.suffix]
    except KeyError:
        raise Unreadable(f"no format is known by this suffix; known are {', '.join(_SUFFIXES)}") from None


def _format(file: DataFile, reading: Reading) -> str:
    named = _format_by_name(file.path)
    if named not in ("json", "jsonl") or reading.records:
        return "json" if reading.records else named
    with open_source(file) as source:
        first, second = _two_lines(source, reading.max_record)
    if not first:
        return named
    ends = first_value_ends(first)
    if named == "jsonl":
        return "json" if ends is False or (ends and not second and _ARRAY_OF_OBJECTS.match(first)) else "jsonl"
    return "jsonl" if ends and second and second[0] == first[0] else "json"


def _two_lines(source: Source, limit: int) -> tuple[str, str]:
    found: list[str] = []
    while len(found) < 2:
        raw = source.stream.readline(limit)
        if not raw:
            break
        text = raw.removeprefix(BOM).decode("utf-8", "replace").strip()
        if text:
            found.append(text)
    first, second, *_ = [*found, "", ""]
    return first, second


def open_records(file: DataFile, reading: Reading, role: Role, start: int = 0, end: int | None = None) -> RecordStream:
    """The records of a file, or those whose first byte lies in [start, end) of a plain JSON Lines file."""
    reader = READERS["jsonl" if start else _format(file, reading)]
    return reader(open_source(file, start, end), reading, role, start, end)


def shards_of(file: DataFile, reading: Reading) -> list[Shard]:
    """The shards of a training file: the lines that begin in each 64 MiB of plain JSON Lines, else the whole file."""
    try:
        size = Path(file.real).stat().st_size
        if size <= SHARD_BYTES or _format(file, reading) != "jsonl" or not _seekable(file):
            return [Shard(file, reading)]
        bounds = sorted({0, size, *_line_starts(file, range(SHARD_BYTES, size, SHARD_BYTES))})
    except (Unreadable, OSError):  # told when it is scanned
        return [Shard(file, reading)]
    return [Shard(file, reading, start, end) for start, end in pairwise(bounds)]


def _seekable(file: DataFile) -> bool:
    with open_source(file) as source:
        return source.seekable_lines


def _line_starts(file: DataFile, places: Iterable[int]) -> Iterator[int]:
    """The first start of a line at or after each of these places."""
    with Path(file.real).open("rb") as lines:
        for place in places:
            lines.seek(place - 1)
            while (piece := lines.readline(1 << 20)) and not piece.endswith(b"\n"):
                pass
            yield lines.tell()


def values(file: DataFile, reading: Reading, role: Role) -> Iterator[object]:
    """The parsed records of a file, for its field table."""
    with open_records(file, reading, role) as stream:
        yield from stream.values()


def records_at(file: DataFile, reading: Reading, role: Role, wanted: Sequence[tuple[int, int]]) -> Iterator[Record]:
    """The records with these (ordinal, start), in ascending order; seeks where the offsets allow it.

    Raises Unreadable where one of them does not stand there any more.
    """
    with open_records(file, reading, role) as stream:
        found = _found_again(stream, wanted)
        for _, start in wanted:
            record = next(found, None)
            if record is None or record.start != start:
                raise Unreadable(CHANGED)
            yield record


def _found_again(stream: RecordStream, wanted: Sequence[tuple[int, int]]) -> Iterator[Record | None]:
    if not isinstance(stream, JsonLines):
        return _count_to(stream, wanted)
    if stream.source.seekable_lines:
        return _seek(stream, wanted)
    return stream.beginning_at({start for _, start in wanted})


def _seek(stream: RecordStream, wanted: Sequence[tuple[int, int]]) -> Iterator[Record | None]:
    for _, start in wanted:
        stream.source.stream.seek(max(0, start - 1))  # a stream that begins later skips to the end of a line
        stream.start, stream.lines = start, 0
        yield next(iter(stream), None)


def _count_to(stream: RecordStream, wanted: Sequence[tuple[int, int]]) -> Iterator[Record | None]:
    numbered = enumerate(stream)
    for ordinal, _ in wanted:
        yield next((record for number, record in numbered if number == ordinal), None)


class _Span(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def group(self) -> int: ...


def kept_bytes(form: str, data: bytes, rows: Sequence[_Span], keep: Sequence[bool]) -> Iterator[bytes]:
    """The file without the rows left out: their spans for lines; in JSON arrays the separators are made good.

    A byte order mark stays, though the first row's span holds it.
    """
    if form == "json":
        yield from _kept_elements(data, rows, keep)
        return
    at = len(BOM) if data.startswith(BOM) else 0
    yield data[:at]
    for row, stays in zip(rows, keep, strict=True):
        if not stays:
            yield data[at : row.start]
            at = max(at, row.end)
    yield data[at:]


def _kept_elements(data: bytes, rows: Sequence[_Span], keep: Sequence[bool]) -> Iterator[bytes]:
    at = first = 0
    while first < len(rows):
        last = first
        while last + 1 < len(rows) and rows[last + 1].group == rows[first].group:
            last += 1
        yield data[at : rows[first].start]
        separator = data[rows[first].end : rows[first + 1].start] if last > first else b""
        kept = [
            data[r.start : r.end]
            for r, stays in zip(rows[first : last + 1], keep[first : last + 1], strict=True)
            if stays
        ]
        yield separator.join(kept)
        at, first = rows[last].end, last + 1
    yield data[at:]
