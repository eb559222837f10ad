"""JSON Lines: a line is a record, a bad record or blank; blocks, parts and places give the same records."""

from __future__ import annotations

from collections.abc import Sequence

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers import kept_bytes, lines, open_records, records_at
from evalspill_guard.readers.lines import JsonLines
from evalspill_guard.readers.stream import BOM
from fuzz.targets.common import choose, drained, held, is_plain, opened, patched
from fuzz.targets.oracle import DEEPEST, depth, parsed, selected

FIELDS: Sequence[tuple[str, ...] | None] = (
    None, ("a",), ("a", "b"), ("a.b",), ("c[].a",), ("m[r=u].a",), ("a.b", "a"), ("0", "c.0"), (".",), ('["a.b"]', "d"),
)  # fmt: skip
LIMITS = (64_000_000, 64_000_000, 24, 0)  # the last one stands for one as small as a block
_Seen = tuple[int, int, list[str], str | None]


def check(data: bytes) -> None:
    """One byte for the fields, one for max_record, one for where the file is cut; the rest is the file."""
    fields, data = choose(data, FIELDS)
    limit, data = choose(data, LIMITS)
    cut, data = choose(data, range(256))
    file, block = held(data, "a.jsonl"), 16
    reading = Reading(fields, max_record=limit or block)
    if not is_plain(file):
        _only_own_errors(file, reading)
        return
    with opened(JsonLines, file, reading, "train") as stream:
        records, fault = drained(iter(stream))
    assert fault is None, fault
    _as_lines_say(data, reading, records)
    _spans_tell_all(data, records)
    _same_by_block(file, reading, records, block)
    _same_in_parts(file, reading, records, 1 + cut % max(1, len(data)))
    _same_again(file, reading, records)


def _only_own_errors(file: DataFile, reading: Reading) -> None:
    try:
        with open_records(file, reading, "train") as stream:
            drained(iter(stream))
    except Unreadable:
        pass


def _as_lines_say(data: bytes, reading: Reading, records: list[Record]) -> None:
    """Every line by itself, read by the standard library."""
    by_start = {record.start: record for record in records}
    at = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        record = by_start.pop(at, None)
        text = raw.removeprefix(BOM) if not at else raw
        long = len(raw) > reading.max_record
        if not long and not text.strip():
            assert record is None, record
        elif raw or not long:
            assert record is not None, (number, raw)
            assert record.line == number, record
            _as_json_says(text, reading.fields, long, record)
        at += len(raw) + 1
    assert not by_start, by_start


def _as_json_says(raw: bytes, fields: tuple[str, ...] | None, long: bool, record: Record) -> None:
    try:
        tree = None if long else parsed(raw.decode())
    except (ValueError, RecursionError):
        tree = None
    if tree is None:
        assert record.bad, record
        assert "".join(record.leaves).removesuffix("\n") == raw.decode("utf-8", "replace"), record
    elif depth(tree) < DEEPEST:
        assert not record.bad, record
        assert record.leaves == selected(tree, fields), (record, selected(tree, fields))


def _spans_tell_all(data: bytes, records: list[Record]) -> None:
    """The records and the blank lines between them are the file."""
    at = 0
    for record in records:
        assert not data[at : record.start].removeprefix(b"" if at else BOM).strip(), record
        assert record.line == 1 + data.count(b"\n", 0, record.start), record
        at = record.end
    assert not data[at:].removeprefix(b"" if at else BOM).strip()
    rows = [record._replace(end=min(record.end, len(data))) for record in records]
    assert b"".join(kept_bytes("jsonl", data, rows, [True] * len(rows))) == data


def _seen(records: list[Record]) -> list[_Seen]:
    return [(one.line, one.start, one.leaves, one.bad) for one in records]


def _same_by_block(file: DataFile, reading: Reading, records: list[Record], block: int) -> None:
    """Small blocks, so that short lines cross their borders."""
    found: list[_Seen] = []
    with patched(lines, _BLOCK=block), opened(JsonLines, file, reading, "train") as stream:
        for batch in stream.batches():
            bad = dict(batch.bad)
            found += [
                (line, start, leaves, bad.get(line))
                for line, start, leaves in zip(*batch.places(), batch.leaves, strict=True)
            ]
    assert found == _seen(records), (found, records)


def _same_in_parts(file: DataFile, reading: Reading, records: list[Record], cut: int) -> None:
    """What begins before a place and what begins after it are all records."""
    found: list[_Seen] = []
    before = 0
    for start, end in ((0, cut), (cut, None)):
        with opened(JsonLines, file, reading, "train", start, end) as stream:
            got = drained(iter(stream))
            found += [(line + before, *rest) for line, *rest in _seen(got.records)]  # type: ignore[misc]
            before += stream.lines
    assert found == _seen(records), (cut, found, records)


def _same_again(file: DataFile, reading: Reading, records: list[Record]) -> None:
    """Every second record, found again by its place."""
    with open_records(file, reading, "train") as stream:
        if stream.format != "jsonl":  # by its first line the file seems to be one JSON document
            return
    wanted = [(number, record.start) for number, record in enumerate(records)][::2]
    again = list(records_at(file, reading, "train", wanted))
    assert [(one.start, one.leaves) for one in again] == [(one.start, one.leaves) for one in records[::2]], again
