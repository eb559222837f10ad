"""JSON read whole: the elements that the standard library finds, each in its bytes; no text of the file is lost."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers import kept_bytes, open_records, values
from evalspill_guard.readers.document import Document
from evalspill_guard.readers.stream import BOM
from evalspill_guard.text import words
from fuzz.targets.common import Got, choose, drained, held, is_plain, opened
from fuzz.targets.oracle import DEEPEST, Obj, depth, parsed, selected

RECORDS = (None, None, None, "data", "data[]", "data[].qas[]", "[].q", ".")
_SPACE = b" \t\r\n"


def check(data: bytes) -> None:
    """One byte for `records`, one for the role; the rest is the file."""
    records, data = choose(data, RECORDS)
    role, data = choose(data, ("train", "eval"))
    file, reading = held(data, "a.json"), Reading(records=records)
    _by_its_own_format(file, reading, role)
    if not is_plain(file):
        return
    with opened(Document, file, reading, role) as stream:
        got = drained(iter(stream))
        clean = stream.clean_possible and got.fault is None
        form = stream.format
    _records_hold(data, got, clean)
    if records is None:
        if clean and form == "json":
            _left_out(data, got.records)
        _as_the_library_says(data.removeprefix(BOM), role, got)


def _by_its_own_format(file: DataFile, reading: Reading, role: Any) -> None:
    """Whatever the bytes seem to be: records or an error of our own, and the values of the same records."""
    try:
        with open_records(file, reading, role) as stream:
            list(stream)
        list(values(file, reading, role))
    except Unreadable:
        pass


def _records_hold(data: bytes, got: Got, clean: bool) -> None:
    """Spans are in order and hold what the record says, by the standard library."""
    at = 0
    for record in got.records:
        assert at <= record.start <= record.end <= len(data), record
        at = record.end
        raw = data[record.start : record.end]
        assert record.line == 1 + data.count(b"\n", 0, record.start) or record.bad or not clean, record
        if raw and not record.bad:
            assert record.leaves == selected(parsed(raw.decode()), None), record


def _left_out(data: bytes, rows: list[Record]) -> None:
    """An array without some of its elements is an array of the others."""
    if any(row.bad for row in rows) or not data.removeprefix(BOM).lstrip(_SPACE).startswith(b"["):
        return
    for every in (1, 2, 3):
        keep = [number % every == 0 for number in range(len(rows))]
        rest = b"".join(kept_bytes("json", data, rows, keep)).removeprefix(BOM)
        kept = [data[row.start : row.end] for row, stays in zip(rows, keep, strict=True) if stays]
        assert [_texts(one) for one in parsed(rest.decode())] == [_texts(parsed(one.decode())) for one in kept], rest


def _texts(tree: object) -> list[str]:
    return selected(tree, None)


def _as_the_library_says(data: bytes, role: str, got: Got) -> None:
    try:
        tree = parsed(data.decode())
    except (ValueError, RecursionError):
        _no_json(data, role, got)
        return
    if depth(tree) >= DEEPEST:
        return
    several = role == "eval" and isinstance(tree, Obj) and _arrays_of_objects(tree) > 1
    assert got.fault is None or (several and "several arrays of objects" in got.fault.what), got
    assert not any(one.bad for one in got.records), got
    if isinstance(tree, list):
        assert [one.leaves for one in got.records] == [_texts(one) for one in tree], got
    elif role == "train":
        _nothing_is_lost(tree, got)


def _arrays_of_objects(tree: Obj) -> int:
    inner = [value for _, value in tree.pairs]
    return sum(isinstance(value, list) and any(isinstance(one, Obj) for one in value) for value in inner)


def _no_json(data: bytes, role: str, got: Got) -> None:
    """Several values, or no whole JSON: then that is told."""
    if not data.strip(_SPACE):
        assert got == Got([], None), got
    elif got.fault is None and not any(one.bad for one in got.records):
        _several_values(data, got)


def _several_values(data: bytes, got: Got) -> None:
    decoder, text, at = json.JSONDecoder(), data.decode(), 0
    spans = []
    while at < len(text):
        try:
            _, end = decoder.raw_decode(text, at)
        except ValueError:  # an integer of thousands of digits
            return
        spans.append(text[at:end].encode())
        at = end + len(text[end:]) - len(text[end:].lstrip(" \t\r\n"))
    assert len(spans) > 1, data
    assert len(got.records) == len(spans), (got, spans)
    assert [_texts(parsed(one.decode())) for one in spans] == [one.leaves for one in got.records], got


def _nothing_is_lost(tree: Any, got: Got) -> None:
    """Every text of the file is in a record, but for fewer than three words beside the array of its records."""
    found = Counter(leaf for one in got.records for leaf in one.leaves)
    missing = Counter(_texts(tree)) - found
    assert not found - Counter(_texts(tree)), got
    assert len(words("\n".join(missing.elements()))) < 3, missing
    assert not missing or isinstance(tree, Obj), missing
