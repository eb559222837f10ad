"""Results of shards that were scanned before: counts and places, never text.

An entry belongs to the content of a shard and the way it is read. It knows for which runs and rows the shard was
searched (a set of keys, a file that entries share), so that later only new ones have to be looked for. Entries are
checked before they are believed; what is damaged or foreign is as good as absent.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import xxhash

from evalspill_guard.kernel import Hashes
from evalspill_guard.known import DAMAGED, Known, Wanted, packed, unpacked
from evalspill_guard.model import DataFile, Shard, Stamp
from evalspill_guard.scanner import ShardResult
from evalspill_guard.streams import changed, file_stamp, range_digest
from evalspill_guard.text import UNICODE_VERSION

FORMAT = 3
"""Raise it with every change of words, hashes, readers or of what an entry holds (LISTED_PLACES, too)."""

MOST_BYTES = 2 << 30
_NAME = "evalspill-cache-v"
_RACY = 3.0  # seconds: no file system's clock is coarser, or further behind that of its users
_STAMPS_TELL = os.name != "nt"  # there ctime is the time of creation, and mtime can be set back
_OURS = (".shard", ".sought", ".stamp", ".new")
_LEFT_OVER = 3600.0  # seconds after which a file that is still being written belongs to a run that was killed


def default_folder() -> Path:
    """EVALSPILL_CACHE_DIR, or evalspill-guard in the user's cache folder; a place without any where there is none."""
    named = os.environ.get("EVALSPILL_CACHE_DIR")
    if named:
        return Path(named)
    shared = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    if os.path.isabs(shared):  # noqa: PTH117 - others are to be ignored
        return Path(shared) / "evalspill-guard"
    try:
        return Path.home() / ".cache" / "evalspill-guard"
    except RuntimeError:  # no home: nothing can be kept below a device
        return Path(os.devnull) / "evalspill-guard"


def is_entry(path: Path) -> bool:
    """Whether a file is one that a cache keeps."""
    return path.name.endswith(_OURS) and any(part.startswith(_NAME) for part in path.parts)


class Cache:
    """The entries in one folder. Every failure to read or write one is as if there were no cache."""

    def __init__(self, folder: Path) -> None:
        self._parent = Path(os.path.abspath(folder))  # noqa: PTH100
        self.folder = self._parent / f"{_NAME}{FORMAT}"
        self._sets: dict[str, Hashes] = {}
        self._digests: dict[tuple[DataFile, Stamp], dict[str, str]] = {}
        self._began = time.time()

    def known(self, shard: Shard, stamp: Stamp) -> Known | None:
        """What is known of a shard of a file in this state. It is read only where this state was never seen."""
        if not self.folder.is_dir():
            return None
        try:
            digest = self._digests_of(shard.file, stamp).get(_range(shard)) or _read_through(shard, stamp)
            return self._entry(digest, shard, stamp) if digest else None
        except OSError:
            return None

    def _digests_of(self, file: DataFile, stamp: Stamp) -> dict[str, str]:
        """By range of bytes, the digests of a file in this state."""
        if (file, stamp) not in self._digests:
            kept: dict[str, str] = {}
            with suppress(OSError, *DAMAGED):
                loaded = json.loads(_used(self._stamp_path(file)))
                kept = dict(loaded["digests"]) if loaded["stamp"] == list(stamp) else {}
            self._digests[file, stamp] = kept
        return self._digests[file, stamp]

    def _stamp_path(self, file: DataFile) -> Path:
        name = xxhash.xxh3_128_hexdigest(os.fsencode(os.path.realpath(file.real)))
        return self.folder / "stamps" / f"{name}.stamp"

    def remember(self, results: Mapping[Shard, ShardResult]) -> None:
        """Keep the digest of each shard under the size, times and identity that its file had when it was read.

        A file written to just before it was read could be written to again under the same times: not kept.
        """
        new: set[tuple[DataFile, Stamp]] = set()
        for shard, result in results.items():
            stamp = result.stamp
            if _STAMPS_TELL and stamp and result.digest and max(stamp[1:3]) / 1e9 < self._began - _RACY:
                kept = self._digests_of(shard.file, stamp)
                if kept.get(_range(shard)) != result.digest:
                    kept[_range(shard)] = result.digest
                    new.add((shard.file, stamp))
        for file, stamp in new:
            facts = {"stamp": list(stamp), "digests": self._digests[file, stamp]}
            self._write(self._stamp_path(file), json.dumps(facts).encode())

    def _entry_path(self, digest: str, shard: Shard) -> Path:
        way = f"{UNICODE_VERSION} {shard.reading!r} {_suffixes(shard)} {shard.start}"
        name = xxhash.xxh3_128_hexdigest(f"{digest} {way}".encode())
        return self.folder / "shards" / name[:2] / f"{name}.shard"

    def _entry(self, digest: str, shard: Shard, stamp: Stamp) -> Known | None:
        try:
            known = unpacked(_used(self._entry_path(digest, shard)), stamp)
        except DAMAGED:
            return None
        return known if known.result.digest == digest and self.sought(known.sought) is not None else None

    def store(self, shard: Shard, known: Known) -> None:
        """Keep what is known of a shard; one that could not be read to its end is not kept."""
        if not known.result.fault and known.result.digest:
            self._write(self._entry_path(known.result.digest, shard), packed(known))

    def lacks(self, sought: str, wanted: Wanted) -> Hashes:
        """Which of the wanted keys are not in a set."""
        known = self.sought(sought)
        return wanted.keys if known is None else wanted.lacking(known)

    def keep(self, sought: Hashes) -> str:
        """Keep a set of sorted keys, and return its name."""
        data = np.ascontiguousarray(sought).view(np.uint8).data
        name = xxhash.xxh3_128_hexdigest(data)
        if self.sought(name) is None:
            self._sets[name] = sought
            self._write(self._set_path(name), data)
        return name

    def sought(self, name: str) -> Hashes | None:
        """The set of this name; its name is the digest of its bytes."""
        if name not in self._sets:
            with suppress(OSError, *DAMAGED):
                data = _used(self._set_path(name))
                if xxhash.xxh3_128_hexdigest(data) == name:
                    self._sets[name] = np.frombuffer(data, dtype=np.uint64)
        return self._sets.get(name)

    def _set_path(self, name: str) -> Path:
        return self.folder / "sought" / f"{name}.sought"

    def _write(self, path: Path, data: bytes | memoryview) -> None:
        """Aside, then renamed: a reader finds the whole entry or none, whoever else writes."""
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".new", delete=False) as file:
                try:
                    file.write(data)
                    file.close()
                    os.replace(file.name, path)  # noqa: PTH105
                except BaseException:
                    with suppress(OSError):
                        os.unlink(file.name)  # noqa: PTH108
                    raise

    def trim(self, most: int | None = None) -> None:
        """Drop the entries that were longest out of use until the rest is below `most` bytes (MOST_BYTES)."""
        for name in self._sets:  # not before the entries that need them
            _touch(self._set_path(name))
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        for used, size, path in entries:
            left_over = path.suffix == ".new" and used < time.time() - _LEFT_OVER
            if left_over or total > (MOST_BYTES if most is None else most):
                with suppress(OSError):
                    path.unlink()
                    total -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """(last use, size, path) of every file of the cache, those of other formats too."""
        for version in self._parent.glob(f"{_NAME}*"):
            for folder, _, names in os.walk(version):
                for path in (Path(folder, name) for name in names if name.endswith(_OURS)):
                    with suppress(OSError):
                        seen = path.lstat()
                        if stat.S_ISREG(seen.st_mode):
                            yield seen.st_mtime, seen.st_size, path


def _read_through(shard: Shard, stamp: Stamp) -> str | None:
    """The digest of the shard's bytes; None where its file changed meanwhile."""
    digest = range_digest(shard.file, shard.start, shard.end)
    return None if changed(stamp, file_stamp(shard.file)) else digest


def _used(path: Path) -> bytes:
    """The bytes of an entry; its time of modification tells when it was last of use."""
    data = path.read_bytes()
    _touch(path)
    return data


def _touch(path: Path) -> None:
    with suppress(OSError):
        os.utime(path)


def _range(shard: Shard) -> str:
    return f"{shard.start}-{shard.end}"


def _suffixes(shard: Shard) -> str:
    """What of a file's name decides how it is read."""
    return "".join(Path(shard.file.path.lower()).suffixes[-2:])
