"""CSV and TSV: cells as RFC 4180 says, by a parser of its own; rows, header and blank lines are the file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from evalspill_guard.model import Reading, Record
from evalspill_guard.readers import kept_bytes
from evalspill_guard.readers.delimited import Csv
from evalspill_guard.readers.lines import LineStream, Tsv
from evalspill_guard.readers.stream import BOM
from fuzz.targets.common import Got, choose, drained, held, is_plain, opened

DELIMITERS = (None, ",", ";", "\t", "|", "\u20ac")
HEADERS = (None, True, False)
LIMITS = (64_000_000, 64_000_000, 20)
DOUBTS = (
    "one column, where", "the first row has a repeated cell", "the first row looks like data",
    "a quoted cell goes on in the next line", "an HTML page instead of data",
)  # fmt: skip
OPEN = "a quote that opens here is still open"


def check(data: bytes) -> None:
    """Four bytes: tsv or csv, the delimiter, the header, max_record; the rest is the file."""
    kind, data = choose(data, (Csv, Csv, Tsv))
    delimiter, data = choose(data, DELIMITERS)
    header, data = choose(data, HEADERS)
    limit, data = choose(data, LIMITS)
    file = held(data, "a.csv")
    reading = Reading(delimiter=delimiter, header=header, max_record=limit)
    if not is_plain(file):
        return
    with opened(kind, file, reading, "train") as stream:
        got = drained(iter(stream))
        seen = drained(stream_again for stream_again in values_of(stream))
    assert not seen.records
    _faults_are_known(got)
    _spans_tell_all(data, got.records, header is False)
    if kind is Csv:
        _cells_agree(data, reading, got)
    else:
        _tabs_agree(data, reading, got)


def values_of(stream: LineStream) -> Iterator[Record]:
    """What is left of a stream that was read to its end: nothing."""
    yield from stream


def _faults_are_known(got: Got) -> None:
    if got.fault is not None:
        assert got.fault.what.startswith((*DOUBTS, OPEN)), got.fault
        assert got.fault.line, got.fault


def _spans_tell_all(data: bytes, records: list[Record], no_header: bool) -> None:
    """Between the rows are blank lines, and before the first one the header."""
    at, gaps = 0, []
    for record in records:
        assert at <= record.start < record.end <= len(data), record
        assert record.line == 1 + data.count(b"\n", 0, record.start), record
        gaps.append(data[at : record.start])
        at = record.end
    gaps.append(data[at:])
    if no_header:
        assert not gaps[0].removeprefix(BOM).strip(b"\r\n"), gaps
    assert not b"".join(gaps[1:]).strip(b"\r\n"), gaps
    assert b"".join(kept_bytes("csv", data, records, [True] * len(records))) == data
    rest = b"".join(kept_bytes("csv", data, records, [False] * len(records)))
    assert rest == (BOM if data.startswith(BOM) else b"") + b"".join(gaps).removeprefix(BOM), rest


def _cells_agree(data: bytes, reading: Reading, got: Got) -> None:
    """Where the whole file is RFC 4180, each row is what that says; before Python 3.11 a row with NUL is a fault."""
    if b"\0" in data and sys.version_info < (3, 11):
        return
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        return
    rows = list(_rfc_4180(text, reading.delimiter or ","))
    if rows[-1:] == [None] or (reading.max_record < len(data)):
        return
    _rows_agree([row for row in rows if row], reading, got)
    assert got.fault is None or not got.fault.what.startswith(OPEN), got


def _rfc_4180(text: str, delimiter: str) -> Iterator[list[str] | None]:
    """The rows of a text; at last None where it breaks the rules. A blank line is an empty row."""
    cell = re.compile(rf'"((?:[^"]|"")*)"|([^"\r\n{re.escape(delimiter)}]*)')
    at, row = 0, []
    while at < len(text) or row:
        found = cell.match(text, at)
        if found is None:
            yield None
            return
        quoted, plain = found.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if text[at : at + 1] == delimiter:
            at += 1
            continue
        ends = re.compile(r"\r?\n|\Z").match(text, at)
        if ends is None:
            yield None
            return
        yield row if len(row) > 1 or found.group() else []
        at, row = ends.end(), []


def _rows_agree(rows: list[list[str]], reading: Reading, got: Got) -> None:
    if any("\x1b$" in cell for row in rows for cell in row):  # ISO-2022
        assert any(one.bad for one in got.records) or reading.header is not False, got
        return
    body = rows if reading.header is False else rows[1:]
    expected = [[cell for cell in row if _is_text(cell)] for row in body]
    assert [one.leaves for one in got.records] == expected, (got, rows)


def _is_text(cell: str) -> bool:
    return bool(cell) and not re.fullmatch(r"data:[^\s,]*;base64,[A-Za-z0-9+/=_%-]*\s*", cell, re.IGNORECASE)


def _tabs_agree(data: bytes, reading: Reading, got: Got) -> None:
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        return
    if reading.max_record < len(data):
        return
    lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip("\r")]
    _rows_agree([line.split("\t") for line in lines], reading, got)
