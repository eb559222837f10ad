"""Parquet and Arrow: damaged files end in errors of our own; parts, places and what is kept give the same rows."""

from __future__ import annotations

from contextlib import suppress

from evalspill_guard import readers
from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers import open_records, records_at, shards_of, values
from evalspill_guard.readers.parquetclean import kept_rows
from evalspill_guard.streams import open_source
from fuzz.targets.common import Got, choose, drained, held, patched

FIELDS = (None, ("q",), ("m[].content",), ("m[role=user].content", "q"), ("s.a.b",), ("a.b", "d"), (".",))
MOST_ROWS = 10_000


def check(data: bytes) -> None:
    """One byte for the fields, one for what the file is called; the rest is the file."""
    fields, data = choose(data, FIELDS)
    name, data = choose(data, ("a.parquet", "a.arrow"))
    file, reading = held(data, name), Reading(fields=fields, id="q")
    form, got = _read(file, reading)
    if got.fault is not None or form not in ("parquet", "arrow") or len(got.records) > MOST_ROWS:
        return
    assert [one.start for one in got.records] == list(range(len(got.records))), got
    assert all(one.line == 0 and one.end > one.start for one in got.records), got
    _same_in_parts(file, reading, got.records)
    wanted = [(number, record.start) for number, record in enumerate(got.records)][::2]
    assert list(records_at(file, reading, "train", wanted)) == got.records[::2]
    if form == "parquet":
        _same_when_kept(file, reading, got.records)


def _read(file: DataFile, reading: Reading) -> tuple[str, Got]:
    """The records; whatever ends them early is our own error, also for the table of fields."""
    with suppress(Unreadable):
        list(zip(range(MOST_ROWS), values(file, reading, "train"), strict=False))
    try:
        with open_records(file, reading, "train") as stream:
            got = drained(one for one, _ in zip(stream, range(MOST_ROWS + 1), strict=False))
            stream.source.digest()
            return stream.format, got
    except Unreadable as fault:
        return "", Got([], fault)


def _same_in_parts(file: DataFile, reading: Reading, records: list[Record]) -> None:
    """What the shards hold is what the file holds."""
    with patched(readers, SHARD_BYTES=64):
        shards = shards_of(file, reading)
    found = [one for shard in shards for one in _of_shard(file, reading, shard.start, shard.end)]
    assert found == records, (shards, found, records)


def _of_shard(file: DataFile, reading: Reading, start: int, end: int | None) -> list[Record]:
    with open_records(file, reading, "train", start, end) as stream:
        return list(stream)


def _same_when_kept(file: DataFile, reading: Reading, records: list[Record]) -> None:
    """A file written with every second row is read as those rows; a few damaged files cannot be written again."""
    with open_source(file) as source:
        digest = source.digest()
    keep = [number % 2 == 0 for number in range(len(records))]
    try:
        pieces = b"".join(kept_rows(file, digest, keep))
    except Unreadable:
        return
    _, again = _read(held(pieces, "a.parquet"), reading)
    assert [one.leaves for one in again.records] == [one.leaves for one in records[::2]], (again, records)
