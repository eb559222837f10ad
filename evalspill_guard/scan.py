"""Every training file once: cut in shards, those that the cache knows left out, the others scanned by an engine."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from evalspill_guard.cache import Cache
from evalspill_guard.engine import SERIAL, Engine, scan_all
from evalspill_guard.index import Ids, Query, RunIndex, distinct
from evalspill_guard.indexfile import save
from evalspill_guard.indexing import build
from evalspill_guard.kernel import Hashes
from evalspill_guard.known import Known, Wanted
from evalspill_guard.model import Problem, Shard, Stamp
from evalspill_guard.pool import ScannedFile
from evalspill_guard.readers import shards_of
from evalspill_guard.scanner import ShardResult, thinned
from evalspill_guard.streams import CHANGED, changed, file_stamp

log = logging.getLogger(__name__)

Progress = Callable[[int, int, int], None]
"""Told the bytes scanned, all bytes, and the number of files still to do."""

_FOLDER = "evalspill-index-"
_LEFT_OVER = 7 * 86_400.0  # seconds after which no scan still uses its index: it was killed
_MOST_OLD = 4  # times as many runs as are wanted now: if more were ever sought, only those of now are kept


@dataclass(frozen=True, slots=True)
class Means:
    """What a scan may use; none of it changes a byte of a report."""

    engine: Engine = SERIAL
    cache: Cache | None = None
    folder: Path | None = None  # for the index of worker processes; a cluster's workers have to see it too


def scan_files(
    files: Sequence[Shard], queries: Sequence[Query], index: RunIndex, means: Means, progress: Progress | None = None
) -> dict[Shard, ScannedFile]:
    """Search each file (a shard without bounds) for everything in the index of these queries."""
    parts = {file: _Parts.of(file) for file in files}
    told = _Told(parts, progress)
    scan = _Cached(means.cache, told, means, queries, index) if means.cache else _Scan(told, means, index)
    results = scan.every([shard for file in files for shard in parts[file].shards])
    return {
        file: ScannedFile(file.file, file.reading, tuple(results[shard] for shard in parts[file].shards))
        for file in files
    }


@dataclass(frozen=True, slots=True)
class _Parts:
    """The shards of a file, and the state of it that they were cut from; None where it cannot be read."""

    shards: Sequence[Shard]
    state: Stamp | None

    @classmethod
    def of(cls, file: Shard) -> _Parts:
        state: Stamp | None = None
        with suppress(OSError):
            state = file_stamp(file.file)
        return cls(shards_of(file.file, file.reading), state)


def size_of(shard: Shard, state: Stamp | None) -> int:
    """The bytes of a shard of a file in this state; None: it cannot be read."""
    end = (state[0] if state else 0) if shard.end is None else shard.end
    return end - shard.start


class Advance:
    """Adds up how far a reading is, and tells it."""

    def __init__(self, total: int, left: int, progress: Progress | None) -> None:
        self.total, self.left, self.progress, self.done = total, left, progress, 0

    def ended(self, size: int, is_last: bool = True) -> None:
        """So many bytes were read; whether they were the last of what is counted as left."""
        self.done, self.left = self.done + size, self.left - is_last
        self.inside(0)

    def inside(self, more: int) -> None:
        """So many bytes were read of what is at hand."""
        if self.progress and self.total:
            self.progress(self.done + more, self.total, self.left)


class _Told:
    """Knows to which file a shard belongs, and how far the scan is."""

    def __init__(self, parts: Mapping[Shard, _Parts], progress: Progress | None) -> None:
        self.left = {file: len(one.shards) for file, one in parts.items()}
        self.file_of = {shard: file for file, one in parts.items() for shard in one.shards}
        self.states = {shard: one.state for one in parts.values() for shard in one.shards}
        self.sizes = {shard: size_of(shard, one.state) for one in parts.values() for shard in one.shards}
        self.shards_of = {file: one.shards for file, one in parts.items()}
        self.advance = Advance(sum(self.sizes.values()), len(parts), progress)

    def ended(self, shard: Shard) -> None:
        file = self.file_of[shard]
        self.left[file] -= 1
        self.advance.ended(self.sizes[shard], not self.left[file])


@dataclass(slots=True)
class _Thinned:
    """How many of a file's shards are done, from the first on, and how many places they have of each id."""

    done: int
    have: Ids

    @classmethod
    def of(cls, index: RunIndex) -> _Thinned:
        return cls(0, np.zeros(len(index.keys), dtype=np.int64))

    def of_next(self, result: ShardResult) -> ShardResult:
        """The result of the next shard without the places of ids that have as many as are kept before it."""
        self.done += 1
        result, self.have = thinned(result, self.have)
        return result


class _Scan:
    """A scan of everything."""

    def __init__(self, told: _Told, means: Means, index: RunIndex) -> None:
        self.told, self.means, self.index = told, means, index
        self.results: dict[Shard, ShardResult] = {}
        self.thinned: dict[Shard, _Thinned] = {}

    def every(self, shards: Sequence[Shard]) -> dict[Shard, ShardResult]:
        self.run(shards, self.index, self.take)
        return self.results

    def take(self, shard: Shard, result: ShardResult, how: str = "scanned") -> None:
        self.results[shard] = result
        self._thin(self.told.file_of[shard])
        log.info("%s: %s, %d bytes, %d records", shard.file.path, how, result.bytes, result.records)
        self.told.ended(shard)

    def _thin(self, file: Shard) -> None:
        """Keep no more places of a file than are ever used, lest a large one takes much memory."""
        shards = self.told.shards_of[file]
        if len(shards) > 1:
            thinned = self.thinned.setdefault(file, _Thinned.of(self.index))
            while thinned.done < len(shards) and (result := self.results.get(shard := shards[thinned.done])):
                self.results[shard] = thinned.of_next(result)
            if thinned.done == len(shards):
                del self.thinned[file]

    def run(self, shards: Sequence[Shard], index: RunIndex, done: Callable[[Shard, ShardResult], None]) -> None:
        if not shards:
            return
        engine = self.means.engine.for_work(shards, sum(self.told.sizes[shard] for shard in shards))
        with saved(index, engine, self.means.folder) as folder:
            scan_all(
                shards, index, folder or "", engine if folder else SERIAL,
                lambda number, result: done(shards[number], self._of_its_state(shards[number], result)),
                self.told.advance.inside,
            )  # fmt: skip

    def _of_its_state(self, shard: Shard, result: ShardResult) -> ShardResult:
        """The result, unless the file is not the one that was cut into shards."""
        state = self.told.states[shard]
        if state and result.stamp and not result.fault and changed(state, result.stamp):
            return ShardResult.failed(Problem(shard.file.path, None, CHANGED))
        return result


class _Cached(_Scan):
    """A scan of what the cache does not know."""

    def __init__(self, cache: Cache, told: _Told, means: Means, queries: Sequence[Query], index: RunIndex) -> None:
        super().__init__(told, means, index)
        self.cache, self.queries = cache, queries
        self.keys = index.keys
        self.wanted = Wanted.of(self.keys)
        self.asked = cache.keep(self.wanted.keys)
        self.lacks = lru_cache(lambda sought: cache.lacks(sought, self.wanted))
        self.together = lru_cache(self._together)

    def every(self, shards: Sequence[Shard]) -> dict[Shard, ShardResult]:
        lacking: dict[Shard, Known] = {}
        new: list[Shard] = []
        for shard in shards:
            state = self.told.states[shard]
            known = self.cache.known(shard, state) if state else None
            if known is None:
                new.append(shard)
            elif len(self.lacks(known.sought)):
                lacking[shard] = known
            else:
                self.take(shard, known.answer(self.wanted), "known from an earlier run")
        self.run(new, self.index, self._learn)
        self._learn_more(lacking)
        self.cache.remember(self.results)
        self.cache.trim()
        return self.results

    def _learn(self, shard: Shard, result: ShardResult) -> None:
        self.cache.store(shard, Known.of(result, self.keys, self.asked))
        self.take(shard, result)

    def _learn_more(self, lacking: Mapping[Shard, Known]) -> None:
        """Shards that were searched before, but not for all: they are searched for the rows that are new to one."""
        if not lacking:
            return
        new = {known.sought: self.lacks(known.sought) for known in lacking.values()}
        part = build(self._owners_of(np.concatenate(list(new.values()))))
        part_keys = part.keys
        log.info("%d shards are searched for new rows only", len(lacking))

        def done(shard: Shard, result: ShardResult) -> None:
            if not result.fault:
                result = self._joined(shard, lacking[shard], Known.of(result, part_keys, self.asked))
            self.take(shard, result, "scanned for new rows")

        self.run(list(lacking), part, done)

    def _joined(self, shard: Shard, old: Known, new: Known) -> ShardResult:
        """All that is known of a shard by now; it is stored, and what is wanted of it is the answer."""
        if old.result.digest != new.result.digest:
            return ShardResult.failed(Problem(shard.file.path, None, CHANGED))
        joined = old.and_more(new, self.together(old.sought))
        answer = joined.answer(self.wanted)
        self.cache.store(shard, Known.of(answer, self.keys, self.asked) if joined.sought == self.asked else joined)
        return answer

    def _together(self, sought: str) -> str:
        """The set of what was ever sought and what is wanted; of the latter alone where the former grows too large."""
        old = self.cache.sought(sought)
        if old is None or len(old) > _MOST_OLD * len(self.keys):
            return self.asked
        return self.cache.keep(distinct(np.append(old, self.wanted.keys)))

    def _owners_of(self, keys: Hashes) -> list[Query]:
        """The queries that look for one of these."""
        wanted = np.append(np.isin(self.keys, keys), False)  # the last stands for no id
        before = np.append(0, np.cumsum(wanted[self.index.runs_at]))
        owns = before[self.index.row_bounds[1:]] > before[self.index.row_bounds[:-1]]
        return [self.queries[number] for number in np.flatnonzero(owns | wanted[self.index.row_whole]).tolist()]


@contextmanager
def saved(index: RunIndex, engine: Engine, parent: Path | None) -> Iterator[str | None]:
    """A folder that holds the index as long as workers need it; None where none do, or none can be written."""
    folder = None if engine.executor is None else _written(index, parent)
    try:
        yield folder
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _written(index: RunIndex, parent: Path | None) -> str | None:
    """In the folder, or else in the one for temporary files."""
    for where in (parent.absolute(), None) if parent else (None,):
        folder = None
        try:
            if where:
                where.mkdir(mode=0o700, parents=True, exist_ok=True)
                _sweep(where)
            folder = tempfile.mkdtemp(prefix=_FOLDER, dir=where)
            save(index, Path(folder))
            return folder
        except OSError as error:
            log.info("no room for the index of the workers: %s", error.strerror or type(error).__name__)
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
    return None


def _sweep(folder: Path) -> None:
    """Remove what killed scans left behind."""
    for left in folder.glob(f"{_FOLDER}*"):
        with suppress(OSError):
            if left.lstat().st_mtime < time.time() - _LEFT_OVER:
                shutil.rmtree(left, ignore_errors=True)
