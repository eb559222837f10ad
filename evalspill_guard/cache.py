"""Results of shards that were scanned before: counts and places, never text.

An entry belongs to the content of a shard and the way it is read. It knows for which runs and rows the shard was
searched (its sought set, a file that entries share), so that later only new ones have to be looked for. Entries are
checked before they are believed; what is damaged or foreign is as good as absent.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from evalspill_guard.files import file_stamp, range_digest
from evalspill_guard.index import Ids, Mask
from evalspill_guard.kernel import Hashes
from evalspill_guard.model import Shard, Stamp
from evalspill_guard.scanner import BadRecord, ShardResult
from evalspill_guard.text import UNICODE_VERSION

FORMAT = 1
"""Raise it with every change of words, hashes, readers or of what an entry holds."""

MOST_BYTES = 2 << 30
_RACY = 3.0  # seconds: a file written so shortly before it was read may be written again under the same times
_NO_KEYS = np.empty(0, dtype=np.uint64)
_SUM = 16


def default_folder() -> Path:
    """EVALSPILL_CACHE_DIR, or evalspill-guard in the user's cache folder."""
    named = os.environ.get("EVALSPILL_CACHE_DIR")
    if named:
        return Path(named)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()) / "evalspill-guard" / "cache"
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path("~/.cache").expanduser()) / "evalspill-guard"


@dataclass(frozen=True, slots=True)
class Known:
    """What the cache knows of a shard: its content, and what was sought and found in it, by key."""

    digest: str
    sought: Hashes
    found: Hashes
    result: ShardResult

    def lacks(self, keys: Hashes) -> Hashes:
        """Which of these keys the shard was never searched for."""
        lacks: Hashes = keys[~_among(keys, self.sought)]
        return lacks

    def answer(self, keys: Hashes, order: Ids) -> ShardResult:
        """The result with the ids of an index; `keys` are its keys sorted, `order` their ids."""
        ids = _ids_of(self.found, keys, order)
        rows = self.result.where
        wanted = np.sort(ids[ids >= 0])
        counts = np.zeros(len(keys), dtype=np.int64)
        counts[ids[ids >= 0]] = self.result.counts[ids >= 0]
        where = np.column_stack((ids[rows[:, 0]], rows[:, 1:]))
        return replace(self.result, ids=wanted, counts=counts[wanted], where=_by_id(where[where[:, 0] >= 0]))


def _among(keys: Hashes, known: Hashes) -> Mask:
    if not len(known):
        return np.zeros(len(keys), dtype=bool)
    at = np.searchsorted(known, keys)
    at[at == len(known)] = 0
    same: Mask = known[at] == keys
    return same


def _ids_of(found: Hashes, keys: Hashes, order: Ids) -> Ids:
    """The id of each key that was found; -1 for those that nobody asks for any more."""
    if not len(keys):
        return np.full(len(found), -1, dtype=np.int64)
    at = np.searchsorted(keys, found)
    at[at == len(keys)] = 0
    return np.where(keys[at] == found, order[at], -1)


def _by_id(where: Ids) -> Ids:
    return where[np.argsort(where[:, 0], kind="stable")]


class Cache:
    """The entries in one folder. Every failure to read or write one is as if there were no cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / f"v{FORMAT}"
        self._sets: dict[str, Hashes] = {}
        self._used = 0

    def known(self, shard: Shard) -> Known | None:
        """What is known of a shard. Its bytes are read only where its times and size were never seen."""
        if not self.folder.is_dir():
            return None
        digest = self._digest(shard)
        return self._entry(digest, shard) if digest else None

    def _digest(self, shard: Shard) -> str | None:
        try:
            stamp = file_stamp(shard.file)
            seen = self._stamps(shard).get(_range(shard), {})
            if seen.get("stamp") == list(stamp):
                return str(seen["digest"])
            return range_digest(shard.file, shard.start, shard.end)
        except (OSError, KeyError):
            return None

    def _stamps(self, shard: Shard) -> dict[str, dict[str, Any]]:
        with suppress(OSError, ValueError):
            loaded = json.loads(self._stamp_path(shard).read_bytes())
            if isinstance(loaded, dict):
                return loaded
        return {}

    def _stamp_path(self, shard: Shard) -> Path:
        name = xxhash.xxh3_128_hexdigest(os.fsencode(os.path.realpath(shard.file.real)))
        return self.folder / "stamps" / f"{name}.json"

    def remember(self, shards: Mapping[Shard, ShardResult]) -> None:
        """Keep the digest of each shard under the times and size that its file had when it was scanned."""
        latest = time.time() - _RACY
        by_file: dict[Path, dict[str, Any]] = {}
        for shard, result in shards.items():
            if result.stamp and result.digest and max(_times(result.stamp)) / 1e9 < latest:
                path = self._stamp_path(shard)
                kept = by_file.setdefault(path, self._stamps(shard))
                kept[_range(shard)] = {"stamp": list(result.stamp), "digest": result.digest}
        for path, kept in by_file.items():
            self._write(path, json.dumps(kept, sort_keys=True).encode())

    def _entry_path(self, digest: str, shard: Shard) -> Path:
        way = f"{FORMAT} {UNICODE_VERSION} {shard.reading!r} {_suffixes(shard)} {shard.start}"
        name = xxhash.xxh3_128_hexdigest(f"{digest} {way}".encode())
        return self.folder / "shards" / name[:2] / f"{name}.npz"

    def _entry(self, digest: str, shard: Shard) -> Known | None:
        path = self._entry_path(digest, shard)
        arrays = self._read(path)
        try:
            if arrays is None:
                return None
            numbers, facts = arrays["numbers"].tolist(), json.loads(bytes(arrays["facts"]))
            sought = self._set(facts["sought"])
            if sought is None or facts["digest"] != digest:
                return None
            result = ShardResult(
                ids=np.arange(len(arrays["found"])), counts=arrays["counts"], where=arrays["where"],
                records=numbers[0], empty=numbers[1], bad=numbers[2], lines=numbers[3], bytes=numbers[4],
                digest=digest, bad_records=tuple(BadRecord(line, what) for line, what in facts["bad_records"]),
                fault=None, stamp=file_stamp(shard.file),
            )  # fmt: skip
            return Known(digest, sought, arrays["found"], result)
        except (KeyError, ValueError, TypeError, OSError):
            return None

    def store(self, shard: Shard, result: ShardResult, sought: Hashes, keys: Hashes) -> None:
        """Keep what a scan found; `keys` are those of the ids in the result, `sought` all that were looked for."""
        if result.fault or not result.digest:
            return
        name = self._keep_set(sought)
        found, rows = keys[result.ids], result.where.copy()
        rows[:, 0] = np.searchsorted(result.ids, rows[:, 0])
        facts = {"digest": result.digest, "sought": name,
                 "bad_records": [[bad.line, bad.what] for bad in result.bad_records]}  # fmt: skip
        numbers = [result.records, result.empty, result.bad, result.lines, result.bytes]
        self._write(self._entry_path(result.digest, shard), _packed({
            "found": found, "counts": result.counts, "where": rows, "numbers": np.array(numbers, dtype=np.int64),
            "facts": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
        }))  # fmt: skip

    def _keep_set(self, sought: Hashes) -> str:
        name = xxhash.xxh3_128_hexdigest(sought.tobytes())
        if name not in self._sets:
            self._sets[name] = sought
            if not self._set_path(name).exists():
                self._write(self._set_path(name), _packed({"sought": sought}))
        return name

    def _set_path(self, name: str) -> Path:
        return self.folder / "sought" / f"{name}.npz"

    def _set(self, name: str) -> Hashes | None:
        if name not in self._sets:
            arrays = self._read(self._set_path(name))
            if arrays is None or "sought" not in arrays:
                return None
            self._sets[name] = arrays["sought"]
        return self._sets[name]

    def _read(self, path: Path) -> dict[str, Any] | None:
        """The arrays of an entry, if it is whole; reading it counts as a use."""
        try:
            data = path.read_bytes()
            if xxhash.xxh3_128_digest(data[_SUM:]) != data[:_SUM]:
                return None
            with np.load(io.BytesIO(data[_SUM:]), allow_pickle=False) as loaded:
                arrays = {name: loaded[name] for name in loaded.files}
            os.utime(path)
        except (OSError, ValueError, EOFError, KeyError):
            return None
        return arrays

    def _write(self, path: Path, data: bytes) -> None:
        """Aside, then renamed: a reader finds the whole entry or none, whoever else writes."""
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".tmp-", delete=False) as file:
                try:
                    file.write(data)
                    file.close()
                    os.replace(file.name, path)  # noqa: PTH105
                except BaseException:
                    with suppress(OSError):
                        os.unlink(file.name)  # noqa: PTH108
                    raise

    def trim(self, most: int = MOST_BYTES) -> None:
        """Drop the entries that were longest out of use until the rest is below `most` bytes."""
        entries = []
        for path in self.folder.rglob("*"):
            with suppress(OSError):
                known = path.stat()
                if path.is_file():
                    entries.append((known.st_mtime, known.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= most:
                return
            with suppress(OSError):
                path.unlink()
                total -= size


def _times(stamp: Stamp) -> tuple[int, ...]:
    return stamp[1:3]


def _range(shard: Shard) -> str:
    return f"{shard.start}-{shard.end}"


def _suffixes(shard: Shard) -> str:
    """What of a file's name decides how it is read."""
    return "".join(Path(shard.file.path.lower()).suffixes[-2:])


def _packed(arrays: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    data = buffer.getvalue()
    return xxhash.xxh3_128_digest(data) + data


def merged(old: Known, keys: Hashes, new: ShardResult, new_keys: Hashes) -> tuple[Hashes, Hashes, ShardResult]:
    """(sought, keys of the result's ids, result) of a shard that was now searched for more than before.

    `keys` is all that was sought now. What both searches found is the same, so either may stand.
    """
    found = new_keys[new.ids]
    fresh = ~_among(found, np.sort(old.found))
    together = np.concatenate((old.found, found[fresh]))
    counts = np.concatenate((old.result.counts, new.counts[fresh]))
    at = np.full(int(new.ids.max(initial=-1)) + 1, -1, dtype=np.int64)
    at[new.ids[fresh]] = np.arange(int(fresh.sum())) + len(old.found)
    rows = np.column_stack((at[new.where[:, 0]], new.where[:, 1:]))
    where = np.concatenate((old.result.where, rows[rows[:, 0] >= 0]))
    result = replace(new, ids=np.arange(len(together)), counts=counts, where=_by_id(where))
    return np.union1d(old.sought, keys), together, result
