"""Plain text: paragraphs or lines; what is cut into pieces is whole in them, and no short passage falls between two."""

from __future__ import annotations

import re

from evalspill_guard.model import Reading, Record
from evalspill_guard.readers import kept_bytes
from evalspill_guard.readers.lines import Text
from evalspill_guard.readers.stream import BOM
from fuzz.targets.common import choose, drained, held, is_plain, opened

SPLITS = (None, "line", "paragraph")
LIMITS = (64_000_000, 64_000_000, 12, 40)
OVERLAPS = (8, 16)


def check(data: bytes) -> None:
    """Four bytes: the role, `split`, max_record, the overlap of pieces; the rest is the file."""
    role, data = choose(data, ("train", "eval"))
    split, data = choose(data, SPLITS)
    limit, data = choose(data, LIMITS)
    overlap, data = choose(data, OVERLAPS)
    file = held(data, "a.txt")
    if not is_plain(file):
        return
    reading = Reading(split=split, max_record=limit, overlap=overlap)  # type: ignore[arg-type]
    with opened(Text, file, reading, role) as stream:
        records, fault = drained(iter(stream))
    assert fault is None or (split is None and _is_page(data) and "HTML" in fault.what), fault
    _spans_tell_all(data, records, role)
    for record in records:
        _text_is_its_bytes(data, record)
    by_line = split == "line" or (role == "eval" and split is None and not _has_blank_line(data))
    if len(data) <= min(limit, max(limit, 2 * overlap)):
        leaves = [leaf for one in records if not one.bad for leaf in one.leaves]
        assert leaves == _expected(data, records, by_line), records
    elif role == "train":
        _no_passage_falls_between(data, records, overlap, by_line)


def _spans_tell_all(data: bytes, records: list[Record], role: str) -> None:
    """Together they hold everything but blank lines at the beginning; eval rows do not overlap."""
    at = 0
    for record in records:
        assert record.start < record.end <= len(data), record
        assert record.line == 1 + data.count(b"\n", 0, record.start), record
        assert not data[at : record.start].removeprefix(BOM if not at else b"").strip(), record
        assert record.start >= at or role == "train", record
        assert record.end > at, record
        at = record.end
    assert not data[at:].removeprefix(BOM if not at else b"").strip()
    if role == "eval":
        assert b"".join(kept_bytes("txt", data, records, [True] * len(records))) == data


def _text_is_its_bytes(data: bytes, record: Record) -> None:
    raw = data[record.start : record.end]
    text = raw.decode("utf-8", "replace")
    text = text if record.start else text.removeprefix("\ufeff")
    assert not record.leaves or text.startswith(record.leaves[0]), record
    if not record.bad:
        assert not raw[len(record.leaves[0].encode()) if record.leaves else 0 :].removeprefix(BOM).strip() or (
            not record.leaves or not record.start
        ), record


def _has_blank_line(data: bytes) -> bool:
    return not all(line.strip() for line in data.removeprefix(BOM).strip().split(b"\n"))


def _expected(data: bytes, records: list[Record], by_line: bool) -> list[str]:
    """The paragraphs or lines by a split of the whole file; those that are not UTF-8 left out."""
    lines = data.removeprefix(BOM).split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + lines[-1:]
    parts, fresh = [], True
    for line in lines:
        if line.strip() and (fresh or by_line):
            parts.append(line)
        elif line.strip():
            parts[-1] += line
        fresh = not line.strip()
    return [text for text in map(_decoded, parts) if text is not None and not _is_data_url(text)]


def _is_page(data: bytes) -> bool:
    return re.match(rb"\s*<(!doctype )?html", data.removeprefix(BOM), re.IGNORECASE) is not None


def _decoded(raw: bytes) -> str | None:
    """None also for ISO-2022, which has its escapes."""
    try:
        return None if b"\x1b$" in raw else raw.decode()
    except UnicodeDecodeError:
        return None


def _is_data_url(text: str) -> bool:
    return re.fullmatch(r"data:[^\s,]*;base64,[A-Za-z0-9+/=_%-]*\s*", text, re.IGNORECASE) is not None


def _no_passage_falls_between(data: bytes, records: list[Record], overlap: int, by_line: bool) -> None:
    """Each passage as long as the overlap, less a character, that does not cross into another record is in a piece."""
    size = overlap - 3
    spans = [(record.start, record.end) for record in records]
    for at in range(len(BOM) if data.startswith(BOM) else 0, len(data) - size):
        passage = data[at : at + size]
        if (b"\n" in passage) if by_line else not all(line.strip() for line in passage.split(b"\n")):
            continue
        begin, end = at + size - len(passage.lstrip()), at + len(passage.rstrip())
        if begin < end and not any(first <= begin and end <= last for first, last in spans):
            raise AssertionError((at, passage, spans))
