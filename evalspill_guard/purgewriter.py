"""The folder of a purge: written aside as a whole, then renamed, so that nobody ever finds half of one.

It is new or empty, no link, and lies where no glob of the config would find what is in it.
"""

from __future__ import annotations

import glob
import logging
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from evalspill_guard.config import Config
from evalspill_guard.durable import sync_folder, write_new
from evalspill_guard.errors import ReportError, UsageError
from evalspill_guard.files import would_match
from evalspill_guard.model import DataFile
from evalspill_guard.purge import Purged, out_path
from evalspill_guard.purgefiles import Sizes, is_emptied, purged_bytes
from evalspill_guard.remote import is_remote
from evalspill_guard.streams import identity
from evalspill_guard.training import Trained, files_of

if sys.platform != "win32":
    import fcntl

log = logging.getLogger(__name__)

_TEMPORARY = "evalspill-tmp-"
_NEW = "new"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a training file: its path as shown, the records and unpacked bytes that went, those it had."""

    path: str
    records: int
    of_records: int
    bytes: int

    @property
    def emptied(self) -> bool:
        """Whether nothing was left, so that no file was written."""
        return self.records == self.of_records


def refuse_folder(out: Path, config: Config) -> None:
    """Raises UsageError where a purge must not write into this folder."""
    if out.is_symlink():
        raise UsageError(f"{out}: is a symbolic link; name the folder itself")
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out}: is there and not empty; name a new folder")
    real = Path(os.path.realpath(out))
    if real.is_relative_to(os.path.realpath(config.base / config.reports.dir)):
        raise UsageError(f"{out}: lies in the folder of the reports; name another one")


def refuse_paths(out: Path, config: Config, found: Trained) -> None:
    """Raises UsageError where a later scan would take what is written for data, or two files would be one."""
    files = {(file.file.path, identity(file.file)) for file in files_of(found.checks)}
    paths = sorted(out_path(path) for path, _ in files)
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise UsageError(f"{twice[0]}: two training files would be written there: rename one")
    _refuse_where_found(out, paths, config, found)


def refuse_list(path: Path, out: Path, config: Config, baseline: Path, found: Trained) -> None:
    """Raises UsageError where a list would replace what a scan reads, or be found by a later one."""
    if not path.parent.is_dir() or (os.path.lexists(path) and (path.is_symlink() or not path.is_file())):
        raise UsageError(f"{path}: name a file, new or an older list, in a folder that is there")
    real = Path(os.path.realpath(path))
    if real.is_relative_to(os.path.realpath(out)):
        raise UsageError(f"{path}: lies in the folder of the purge; name another place for the list")
    files = [file.file for check in found.checks for file in check.files]
    files += [file.file for check in found.checks for file in check.loaded.rows.files]
    others = [config.path, baseline, *(config.base / name for check in config.checks for name in check.ignore)]
    read = {identity(file) for file in [*files, *(DataFile("", str(other)) for other in others if other.exists())]}
    if path.exists() and identity(DataFile("", str(path))) in read:
        raise UsageError(f"{path}: is a file that was read; name another one for the list")
    _refuse_where_found(real.parent, [real.name], config, found)


def _refuse_where_found(folder: Path, paths: Sequence[str], config: Config, found: Trained) -> None:
    base = Path(os.path.realpath(config.base))
    files = [file.file.path for file in files_of(found.checks)]
    names = _names(folder, [base / path for path in files if not is_remote(path)])
    for source in (one for check in config.checks for one in (check.train, check.eval)):
        globs = [_whole(pattern, base) for pattern in source.files]
        if would := [path for path in paths if any(would_match(globs, (name / path).as_posix()) for name in names)]:
            raise UsageError(f"{folder}: lies in the data: {', '.join(source.files)} would match {would[0]} there")


@contextmanager
def set_aside(path: Path | None, pieces: Iterable[bytes]) -> Iterator[None]:
    """Write a file that gets its name when the block has ended well. Raises ReportError where it cannot be written."""
    if path is None:
        yield
        return
    hidden = f".{path.name}.{_TEMPORARY}"
    for left in path.parent.glob(f"{glob.escape(hidden)}*"):  # by a run that was killed
        left.unlink(missing_ok=True)
    aside = path.with_name(f"{hidden}{secrets.token_hex(4)}")
    try:
        try:
            write_new(aside, pieces, 0o666)
        except OSError as error:
            raise ReportError(f"{path}: cannot be written: {error.strerror or type(error).__name__}") from error
        yield
        aside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()


def _names(out: Path, files: Iterable[Path]) -> list[Path]:
    """The folder by every name, from the root on, under which a glob may come to it: as it is, and through a link."""
    real = Path(os.path.realpath(out))
    reached = {folder: os.path.realpath(folder) for file in files for folder in Path(os.path.normpath(file)).parents}
    return [real, *(name / real.relative_to(at) for name, at in reached.items() if real.is_relative_to(at))]


def _whole(pattern: str, base: Path) -> str:
    """A glob as it stands from the root on; an address as it is, which no local path matches."""
    mark = "!" if pattern.startswith("!") else ""
    plain = pattern.removeprefix("!")
    return pattern if is_remote(plain) else mark + os.path.normpath(base / plain)


def measure(purged: Iterable[Purged]) -> list[Outcome]:
    """What writing would do; everything is read as it would be, and nothing written."""
    return [_written(one, None) for one in purged]


def write(purged: Sequence[Purged], out: Path) -> list[Outcome]:
    """Write every training file without the records that go, all of them or none.

    Raises Unreadable where a file is not what was scanned or no record can be taken out of it, and ReportError where
    the folder cannot be written.
    """
    paths = [out_path(one.file.file.path) for one in purged]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _staging(out) as staging:
            (staging / _NEW).mkdir(_folder_mode(purged))
            done = [_written(one, staging / _NEW / path) for one, path in zip(purged, paths, strict=True)]
            for folder, _, _ in os.walk(staging / _NEW):
                sync_folder(Path(folder))
            (staging / _NEW).rename(out)
            sync_folder(out.parent)
        return done
    except OSError as error:
        raise ReportError(f"{out}: cannot be written: {error.strerror or type(error).__name__}") from error


def _written(one: Purged, path: Path | None) -> Outcome:
    sizes = Sizes()
    pieces = purged_bytes(one, sizes)
    if path is None or is_emptied(one):
        for _ in pieces:
            pass
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, pieces, _mode(one))
    seen = one.file.seen
    log.info(
        "%s: %s, %d of %d records and %d bytes taken out", seen.path, "read" if path is None else "written",
        len(one.gone), seen.records, sizes.read - sizes.left,
    )  # fmt: skip
    return Outcome(seen.path, len(one.gone), seen.records, sizes.read - sizes.left)


def _mode(one: Purged) -> int:
    """No more may be read by others than of the original."""
    return 0o600 if is_remote(one.file.file.real) else _mode_of(one.file.file.real) | 0o200


def _folder_mode(purged: Iterable[Purged]) -> int:
    """No more people may look into the folder than into each of those from which files come."""
    files = {one.file.file.real for one in purged if not is_remote(one.file.file.real)}
    mode = 0o777
    for folder in {Path(os.path.realpath(file)).parent for file in files}:
        mode &= _mode_of(folder)
    return mode | 0o700


def _mode_of(path: str | Path) -> int:
    """Of what is gone meanwhile none: that is told when it is read."""
    try:
        return Path(path).stat().st_mode & 0o777
    except OSError:
        return 0


@contextmanager
def _staging(out: Path) -> Iterator[Path]:
    """A hidden folder beside the one that is written; those of runs that were killed are removed first."""
    prefix = f".{out.name}.{_TEMPORARY}"
    for left in out.parent.glob(f"{glob.escape(prefix)}*"):
        with suppress(OSError), _locked(left):
            shutil.rmtree(left, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=prefix, dir=out.parent))
    try:
        with _locked(staging):
            yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock, which ends with the process; raises OSError where another run holds it."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
