"""Files that are whole on the disk before they are renamed to where somebody looks for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def write_new(path: Path, pieces: Iterable[bytes], mode: int) -> None:
    """Write a file that is not there yet, and through no link; `mode` is narrowed by the umask."""
    with os.fdopen(os.open(path, _CREATE, mode), "wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
