"""Readers by format: a data file in, a stream of records out."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal, Protocol

import orjson

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record, Shard
from evalspill_guard.readers.delimited import Csv
from evalspill_guard.readers.document import Document, first_value_ends
from evalspill_guard.readers.lines import JsonLines, Text, Tsv
from evalspill_guard.readers.parquet import Arrow, Columnar, Parquet, group_starts
from evalspill_guard.readers.stream import BOM, RecordStream
from evalspill_guard.streams import CHANGED, Source, file_size, open_raw, open_source

__all__ = ["READERS", "RecordStream", "kept_bytes", "open_records", "records_at", "shards_of", "values"]

SHARD_BYTES = 1 << 26
Role = Literal["train", "eval"]


READERS: Mapping[str, type[RecordStream]] = {
    "jsonl": JsonLines, "json": Document, "csv": Csv, "tsv": Tsv, "txt": Text, "parquet": Parquet, "arrow": Arrow,
}  # fmt: skip
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv", ".txt": "txt",
             ".md": "txt", ".text": "txt", ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}  # fmt: skip
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes by which a file is read: those of formats, and those of a compression after them."""

_ARRAY_OF_OBJECTS = re.compile(r"\[\s*\{")


def _format_by_name(path: str) -> str:
    name = PurePosixPath(path.lower())
    if name.suffix in COMPRESSED:
        name = name.with_suffix("")
    try:
        return SUFFIXES[name.suffix]
    except KeyError:
        raise Unreadable(f"no format is known by this suffix; known are {', '.join(SUFFIXES)}") from None


def _format(file: DataFile, reading: Reading) -> str:
    named = _format_by_name(file.path)
    if reading.records:
        return "json"
    if named not in ("json", "jsonl", "txt") or (named == "txt" and reading.split is not None):
        return named
    with open_source(file) as source:
        if source.columnar:
            return source.columnar
        first, second = _two_lines(source, reading.max_record)
    if not first:
        return named
    if named == "txt":
        return "jsonl" if _is_object(first) and (not second or _is_object(second)) else "txt"
    ends = first_value_ends(first)
    if named == "jsonl":
        return "json" if ends is False or (ends and not second and _ARRAY_OF_OBJECTS.match(first)) else "jsonl"
    return "jsonl" if ends and second and second[0] == first[0] else "json"


def _is_object(line: str) -> bool:
    try:
        return line.startswith("{") and bool(orjson.loads(line))
    except ValueError:
        return False


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
    """The records of a file, or those whose first byte lies in [start, end) of plain JSON Lines or Parquet."""
    form = _format_of_part(file) if start else _format(file, reading)
    source = open_source(file, start, end)
    try:
        return READERS[source.columnar or form](source, reading, role, start, end)
    except BaseException:
        source.__exit__(None, None, None)
        raise


def _format_of_part(file: DataFile) -> str:
    """Only files whose name says so are cut at row groups."""
    return "parquet" if _format_by_name(file.path) == "parquet" else "jsonl"


def shards_of(file: DataFile, reading: Reading) -> list[Shard]:
    """The shards of a training file: what begins in each 64 MiB of plain JSON Lines or Parquet, else the whole file."""
    try:
        size = file_size(file)
        starts = _starts(file, reading, range(SHARD_BYTES, size, SHARD_BYTES))
    except (Unreadable, OSError):  # told when it is scanned
        starts = []
    bounds = sorted({0, size, *starts}) if starts else []
    return [Shard(file, reading, start, end) for start, end in pairwise(bounds)] or [Shard(file, reading)]


def _starts(file: DataFile, reading: Reading, places: Sequence[int]) -> list[int]:
    """The first start of a line or row group at or after each of these places; none where it must be read whole."""
    if not places:
        return []
    form = _format(file, reading)
    if form == _format_of_part(file) == "parquet":
        starts = group_starts(file)
        return [start for place in places if (start := next((one for one in starts if one >= place), 0))]
    return list(_line_starts(file, places)) if form == _format_of_part(file) == "jsonl" and _seekable(file) else []


def _seekable(file: DataFile) -> bool:
    with open_source(file) as source:
        return source.seekable_lines


def _line_starts(file: DataFile, places: Iterable[int]) -> Iterator[int]:
    """The first start of a line at or after each of these places."""
    with io.BufferedReader(open_raw(file), 1 << 16) as lines:
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
    if isinstance(stream, Columnar):
        return stream.at({start for _, start in wanted})
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
