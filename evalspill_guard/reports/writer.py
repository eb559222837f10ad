"""Writes the reports of a run so that nobody ever finds half of one.

Everything is first written into a hidden folder beside the reports. Then each check's folder is exchanged as a
whole by renaming, and the files that speak of the whole run come last. A run holds a lock while it writes, so the
hidden folders it finds at its start belong to runs that were killed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from evalspill_guard.durable import sync_folder, write_new
from evalspill_guard.errors import ReportError

if sys.platform != "win32":
    import fcntl

Pieces = Iterable[bytes]
Files = Mapping[str, Pieces]

_TEMPORARY = ".evalspill-tmp-"
_LOCK = ".evalspill-lock"


def write_reports(directory: Path, checks: Mapping[str, Files], run_wide: Files) -> list[Path]:
    """Replace the reports of these checks, all or none of each; returns the paths written.

    `checks` maps a check's name to its files, `run_wide` are the files beside the check folders. File names are
    POSIX paths below the folder. The pieces are drawn once; what their source raises ends the writing.
    """
    with _os_errors(directory):
        _make_report_folder(directory)
        with _locked(directory), _staging(directory) as staging:
            for name, files in checks.items():
                _refuse_foreign(directory / name, files)
                _write_folder(staging / "new" / name, files, directory / name)
            _write_folder(staging / "run", run_wide, directory)
            _exchange(staging, directory, checks, run_wide)
    inner = [directory / name / file for name, files in checks.items() for file in files]
    return inner + [directory / file for file in run_wide]


def _exchange(staging: Path, directory: Path, checks: Iterable[str], run_wide: Iterable[str]) -> None:
    for name in checks:
        _replace_folder(staging / "new" / name, directory / name, staging / "old" / name)
    for file in run_wide:
        (staging / "run" / file).replace(directory / file)
    sync_folder(directory)


def _replace_folder(new: Path, target: Path, aside: Path) -> None:
    """Renaming does not follow links: one that stands at `target` is itself put aside."""
    try:
        if os.path.lexists(target):
            target.rename(aside)
        new.rename(target)
    finally:
        _put_back(aside, target)


def _put_back(aside: Path, target: Path) -> None:
    if os.path.lexists(aside) and not os.path.lexists(target):
        aside.rename(target)


def _make_report_folder(directory: Path) -> None:
    """Only a folder that is new or empty gets the `.gitignore`: in a folder of the user's it would hide his files."""
    if directory.is_symlink():
        raise ReportError(f"{directory}: the report folder is a symbolic link; name the folder itself")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not any(directory.iterdir()):
        write_new(directory / ".gitignore", [b"*\n"], 0o600)


def _refuse_foreign(target: Path, files: Iterable[str]) -> None:
    """A folder is only replaced when it holds a report that is about to be written, so that no data are lost."""
    if target.is_symlink() or not target.exists():
        return
    ours = target.is_dir() and (not any(target.iterdir()) or any(os.path.lexists(target / file) for file in files))
    if not ours:
        raise ReportError(f"{target}: exists and is no report; move it, or choose another report folder")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Wait until no other run writes here. The lock ends with the process, however that ends."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(directory / _LOCK, flags, 0o600)
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _staging(directory: Path) -> Iterator[Path]:
    for leftover in directory.glob(f"{_TEMPORARY}*"):
        _clear(leftover, directory)
    staging = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=directory))
    try:
        for name in ("new", "old", "run"):
            (staging / name).mkdir(mode=0o700)
        yield staging
    finally:
        _clear(staging, directory)


def _clear(staging: Path, directory: Path) -> None:
    """Remove a hidden folder; first put back what a run that was killed had put aside and not yet replaced."""
    if staging.is_symlink() or not staging.is_dir():
        staging.unlink()
        return
    old = staging / "old"
    for aside in old.iterdir() if old.is_dir() else ():
        _put_back(aside, directory / aside.name)
    shutil.rmtree(staging, ignore_errors=True)


def _write_folder(folder: Path, files: Files, shown: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, pieces in files.items():
        with _os_errors(shown / name):
            (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(folder / name, pieces, 0o600)
    for inner, _, _ in os.walk(folder):
        sync_folder(Path(inner))


@contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportError(f"{path}: cannot be written: {error.strerror or type(error).__name__}") from error
