"""How long the first scan takes, by the speed of searching a small part of the training files."""

from __future__ import annotations

import time
from collections.abc import Sequence

from evalspill_guard.errors import Unreadable
from evalspill_guard.evalset import read_eval_set, with_fields
from evalspill_guard.executors import processors
from evalspill_guard.fields import FieldInfo
from evalspill_guard.index import RunIndex
from evalspill_guard.indexing import build
from evalspill_guard.kernel import batch
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.readers import open_records
from evalspill_guard.scoring import lengths_for
from evalspill_guard.streams import file_size

_WORTH_TELLING = 1_000_000  # bytes; what is read of less says little about speed
SAMPLE = 8_000_000
"""The bytes that are searched to measure the speed."""


def first_scan(train: Sequence[DataFile], evals: Sequence[tuple[DataFile, Sequence[FieldInfo]]]) -> str:
    """A sentence on how long it takes to search the training files for these eval files' chosen fields."""
    index = _index(evals)
    began, read = time.perf_counter(), 0
    for file in train:
        if read < SAMPLE:
            read += _search(file, index, SAMPLE - read)
    speed = max(read, 1) / max(time.perf_counter() - began, 1e-6)
    total, workers = sum(map(file_size, train)), processors()
    pace = f" ({speed / 1e6:.1f} MB/s on one processor, measured on {size(read)}; {workers} usable)"
    takes = f"the first scan, of {size(total)}, takes {duration(total / speed / workers)}"
    return takes + (pace if total > _WORTH_TELLING else "")


def _index(evals: Sequence[tuple[DataFile, Sequence[FieldInfo]]]) -> RunIndex:
    """What a scan would look for."""
    queries = []
    for file, infos in evals:
        rows = read_eval_set([file], with_fields(Reading(), infos)).rows
        lengths = lengths_for(rows, None, 5)
        queries += [lengths.query(row) for row in rows]
    return build(queries)


def _search(file: DataFile, index: RunIndex, most: int) -> int:
    """Search the beginning of a file; the bytes that were read of it."""
    try:
        with open_records(file, Reading(), "train") as stream:
            for records in stream.batches():
                index.found_in(batch(records.leaves))
                if stream.source.raw_bytes >= most:
                    break
            return stream.source.raw_bytes
    except (Unreadable, OSError):  # an estimate is no place to say so
        return 0


def size(count: int) -> str:
    """So many bytes, as a person says it."""
    scale, unit = next((s, u) for s, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0, "bytes")) if count >= s)
    return f"{count / scale:.1f} {unit}" if scale else f"{count} {unit}"


def duration(seconds: float) -> str:
    """About how long, in words."""
    if seconds < 5:
        return "a few seconds"
    for unit, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"about {seconds / unit:.0f} {name}"
    return f"about {seconds:.0f} seconds"
