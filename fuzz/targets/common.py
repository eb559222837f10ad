"""What the targets share: bytes as a file, its records, and a choice made by the input itself."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers.stream import RecordStream
from evalspill_guard.streams import open_source

T = TypeVar("T")
_MEMORY = "/dev/shm"
_FOLDER = tempfile.TemporaryDirectory(prefix="evalspill-fuzz-", dir=_MEMORY if Path(_MEMORY).is_dir() else None)
atexit.register(_FOLDER.cleanup)


def folder() -> Path:
    """A folder of this process."""
    return Path(_FOLDER.name)


def held(data: bytes, name: str) -> DataFile:
    """A file with these bytes that is called so."""
    path = folder() / "data"
    path.write_bytes(data)
    return DataFile(name, str(path))


def choose(data: bytes, options: Sequence[T]) -> tuple[T, bytes]:
    """One of the options, by the first byte; and the bytes after it."""
    return options[(data[0] if data else 0) % len(options)], data[1:]


class Got(NamedTuple):
    """What a reader gave: records, and the fault that ended them."""

    records: list[Record]
    fault: Unreadable | None


def drained(records: Iterator[Record]) -> Got:
    """All records up to a fault."""
    found: list[Record] = []
    try:
        for record in records:
            found.append(record)
    except Unreadable as fault:
        return Got(found, fault)
    return Got(found, None)


@contextmanager
def opened(
    kind: type[RecordStream], file: DataFile, reading: Reading, role: str, start: int = 0, end: int | None = None
) -> Iterator[RecordStream]:
    """A reader on a file, whatever its format seems to be."""
    with kind(open_source(file, start, end), reading, role, start, end) as stream:
        yield stream


def is_plain(file: DataFile) -> bool:
    """Whether a file is read as it stands: neither compressed, nor columnar, a pointer or in another encoding."""
    try:
        with open_source(file) as source:
            return not (source.compression or source.columnar or source.encoding.startswith("utf-16"))
    except Unreadable:
        return False


@contextmanager
def patched(owner: Any, **values: Any) -> Iterator[None]:
    """Attributes with other values, for a while."""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)
