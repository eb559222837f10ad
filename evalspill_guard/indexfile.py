"""An index as a folder of arrays: written once, opened memory-mapped by every worker."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from evalspill_guard.index import RunIndex, Table

_PARTS = [field.name for field in fields(RunIndex) if field.name not in ("tables", "first_whole", "first_tiny")]
_TABLE_PARTS = [field.name for field in fields(Table) if field.name not in ("length", "shift")]


def save(index: RunIndex, folder: Path) -> None:
    """Write an index into an empty folder; two equal indexes give the same bytes."""
    numbers = [index.first_whole, index.first_tiny]
    for place, table in enumerate(index.tables):
        numbers += [table.length, table.shift]
        for name in _TABLE_PARTS:
            np.save(folder / f"table{place}-{name}.npy", getattr(table, name), allow_pickle=False)
    for name in _PARTS:
        np.save(folder / f"{name}.npy", getattr(index, name), allow_pickle=False)
    np.save(folder / "numbers.npy", np.array(numbers, dtype=np.int64), allow_pickle=False)


def opened(folder: Path) -> RunIndex:
    """An index as it was saved; nothing is read before it is needed. Raises OSError where it is not there."""
    first_whole, first_tiny, *numbers = _read(folder / "numbers.npy").tolist()
    tables = []
    for place, (length, shift) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
        parts = {name: _read(folder / f"table{place}-{name}.npy") for name in _TABLE_PARTS}
        tables.append(Table(length=length, shift=shift, **parts))
    parts = {name: _read(folder / f"{name}.npy") for name in _PARTS}
    return RunIndex(tables=tuple(tables), first_whole=first_whole, first_tiny=first_tiny, **parts)


def _read(path: Path) -> Any:
    """Mapped, but as a plain array: numpy's own class for mapped ones slows every small step."""
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError:  # an array of no length cannot be mapped
        return np.load(path, allow_pickle=False)
