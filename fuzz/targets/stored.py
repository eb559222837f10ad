"""The baseline and the entries of the cache: any bytes are refused or as good as absent, none is believed wrongly."""

from __future__ import annotations

from functools import cache as once
from pathlib import Path

import numpy as np
import xxhash

from evalspill_guard.baselinefile import parse, render
from evalspill_guard.cache import Cache
from evalspill_guard.errors import UsageError
from evalspill_guard.known import Known, packed
from evalspill_guard.model import DataFile, Reading, Shard
from evalspill_guard.scanner import BadRecord, ShardResult
from evalspill_guard.streams import file_stamp
from fuzz.targets.common import choose, folder

_SUFFIXES = (".shard", ".sought", ".stamp")


def check(data: bytes) -> None:
    """One byte for what the rest is: a baseline, one of the files of the cache, or an entry under its right sum."""
    what, data = choose(data, ("baseline", *_SUFFIXES, "entry"))
    if what == "baseline":
        _baseline(data)
    elif what == "entry":
        _in_the_place_of(".shard", xxhash.xxh3_128_digest(data) + data)
    else:
        _in_the_place_of(what, data)


def _baseline(raw: bytes) -> None:
    """An entry for each line, or an error with the line; what was read is written and read again."""
    try:
        entries = parse(raw, "b.jsonl")
    except UsageError as error:
        lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        for line in str(error).split("\n"):
            if line.startswith("b.jsonl:"):
                number = int(line.split(":")[1])
                assert lines[number - 1].strip(), error
        return
    assert len(entries) == sum(1 for line in raw.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip())
    again = parse(render(entries), "b.jsonl")
    assert set(again) == set(entries), (again, entries)
    assert render(again) == render(entries)


@once
def _shard() -> Shard:
    path = folder() / "train.jsonl"
    path.write_bytes(b'{"a":"x"}\n')
    return Shard(DataFile("train.jsonl", str(path)), Reading())


@once
def _right() -> tuple[Known, dict[Path, bytes]]:
    """An entry with its files, as a run leaves them."""
    cache, shard = Cache(folder() / "cache"), _shard()
    sought = np.arange(5, dtype=np.uint64)
    digest = xxhash.xxh3_128_hexdigest(b'{"a":"x"}\n')
    where = np.array([[0, 1, 0, 0], [1, 1, 0, 0]], dtype=np.int64)
    result = ShardResult(
        np.arange(2), np.array([1, 1]), where, 1, 0, 0, 1, 10, digest, (BadRecord(1, "not JSON"),), None,
        file_stamp(shard.file),
    )  # fmt: skip
    known = Known(cache.keep(sought), sought[:2], result)
    cache.store(shard, known)
    cache._began += 1e9
    cache.remember({shard: result})
    files = {path: path.read_bytes() for path in cache.folder.rglob("*") if path.is_file()}
    assert sorted(path.suffix for path in files) == sorted(_SUFFIXES)
    assert _answer() == packed(known)
    return known, files


def _answer() -> bytes | None:
    known = Cache(folder() / "cache").known(_shard(), file_stamp(_shard().file))
    return None if known is None else packed(known)


def _in_the_place_of(suffix: str, data: bytes) -> None:
    """Other bytes in one of the files: nothing is known then, or what was known before."""
    known, files = _right()
    path = next(path for path in files if path.suffix == suffix)
    path.write_bytes(data)
    try:
        answer = _answer()
    finally:
        path.write_bytes(files[path])
    if suffix != ".shard" or xxhash.xxh3_128_digest(data[16:]) != data[:16]:
        assert answer in (None, packed(known)), answer
