"""Every training file once: cut in shards, those that the cache knows left out, the others scanned by an engine."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evalspill_guard.cache import Cache, Known, merged
from evalspill_guard.engine import Engine, scan_all
from evalspill_guard.files import CHANGED
from evalspill_guard.index import Mask, Query, RunIndex, build
from evalspill_guard.indexfile import save
from evalspill_guard.kernel import Hashes
from evalspill_guard.model import Problem, Shard
from evalspill_guard.pool import ScannedFile
from evalspill_guard.readers import shards_of
from evalspill_guard.scanner import ShardResult

log = logging.getLogger(__name__)

Progress = Callable[[int, int, int], None]
"""Told the bytes scanned, all bytes, and the number of files still to do."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a scan may use; none of it changes a byte of a report."""

    engine: Engine = Engine(None, 1)
    cache: Cache | None = None
    folder: Path | None = None  # for the index of worker processes; a cluster's workers have to see it too


def scan_files(
    files: Sequence[Shard], queries: Sequence[Query], index: RunIndex, means: Means, progress: Progress | None = None
) -> dict[Shard, ScannedFile]:
    """Search each file (a shard without bounds) for everything in the index of these queries."""
    shards = {file: shards_of(file.file, file.reading) for file in files}
    scan = _Scan(queries, index, means, _Told(shards, progress))
    results = scan.every([part for file in files for part in shards[file]])
    return {file: ScannedFile(file.file, file.reading, tuple(results[part] for part in shards[file])) for file in files}


class _Told:
    """Adds up how far the scan is."""

    def __init__(self, shards: Mapping[Shard, Sequence[Shard]], progress: Progress | None) -> None:
        self.left = {file: len(parts) for file, parts in shards.items()}
        self.file_of = {part: file for file, parts in shards.items() for part in parts}
        self.sizes = {part: _size(part) for part in self.file_of}
        self.total, self.done, self.progress = sum(self.sizes.values()), 0, progress

    def ended(self, shard: Shard) -> None:
        self.done += self.sizes[shard]
        file = self.file_of[shard]
        self.left[file] -= 1
        if not self.left[file]:
            del self.left[file]
        self.inside(0)

    def inside(self, more: int) -> None:
        if self.progress:
            self.progress(self.done + more, self.total, len(self.left))


def _size(shard: Shard) -> int:
    if shard.end is not None:
        return shard.end - shard.start
    try:
        return Path(shard.file.real).stat().st_size
    except OSError:
        return 0


class _Scan:
    def __init__(self, queries: Sequence[Query], index: RunIndex, means: Means, told: _Told) -> None:
        self.queries, self.index, self.means, self.told = queries, index, means, told
        self.keys = index.keys
        self.order = np.argsort(self.keys, kind="stable")
        self.sorted_keys = self.keys[self.order]
        self.results: dict[Shard, ShardResult] = {}

    def every(self, shards: Sequence[Shard]) -> dict[Shard, ShardResult]:
        cache = self.means.cache
        known = {shard: entry for shard in shards if cache and (entry := cache.known(shard))}
        lacking = {shard: lacks for shard, entry in known.items() if len(lacks := entry.lacks(self.sorted_keys))}
        for shard, entry in known.items():
            if shard not in lacking:
                log.info("%s: known from an earlier run", shard.file.path)
                self._take(shard, entry.answer(self.sorted_keys, self.order))
        self._new([shard for shard in shards if shard not in known])
        self._more(known, lacking)
        if cache:
            cache.remember(self.results)
            cache.trim()
        return self.results

    def _take(self, shard: Shard, result: ShardResult) -> None:
        self.results[shard] = result
        log.info("%s: scanned, %d bytes, %d records", shard.file.path, result.bytes, result.records)
        self.told.ended(shard)

    def _new(self, shards: Sequence[Shard]) -> None:
        """Shards of which nothing is known."""

        def done(number: int, result: ShardResult) -> None:
            if self.means.cache:
                self.means.cache.store(shards[number], result, self.sorted_keys, self.keys)
            self._take(shards[number], result)

        self._run(shards, self.index, done)

    def _more(self, known: Mapping[Shard, Known], lacking: Mapping[Shard, Hashes]) -> None:
        """Shards that were searched before, but not for all: they are searched for the rows that are new to one."""
        if not lacking or self.means.cache is None:
            return
        cache, shards = self.means.cache, list(lacking)
        part = build(self._owners_of(np.unique(np.concatenate(list(lacking.values())))))
        part_keys = part.keys
        log.info("%d shards are searched for new rows only", len(shards))

        def done(number: int, result: ShardResult) -> None:
            shard = shards[number]
            if not result.fault and result.digest == known[shard].digest:
                sought, keys, result = merged(known[shard], self.sorted_keys, result, part_keys)
                cache.store(shard, result, sought, keys)
                result = Known(result.digest, sought, keys, result).answer(self.sorted_keys, self.order)
            elif not result.fault:
                result = ShardResult.failed(Problem(shard.file.path, None, CHANGED))
            self._take(shard, result)

        self._run(shards, part, done)

    def _owners_of(self, keys: Hashes) -> list[Query]:
        """The queries that look for one of these."""
        wanted = np.isin(self.keys, keys)
        return [query for number, query in enumerate(self.queries) if self._asks(number, wanted)]

    def _asks(self, number: int, wanted: Mask) -> bool:
        whole = self.index.row_whole[number]
        return bool(wanted[self.index.ids_of(number)].any() or (whole >= 0 and wanted[whole]))

    def _run(self, shards: Sequence[Shard], index: RunIndex, done: Callable[[int, ShardResult], None]) -> None:
        if not shards:
            return
        engine = self.means.engine.for_work(shards, sum(self.told.sizes[shard] for shard in shards))
        with _saved(index, engine, self.means.folder) as folder:
            scan_all(shards, index, folder, engine, done, self.told.inside)


@contextmanager
def _saved(index: RunIndex, engine: Engine, parent: Path | None) -> Iterator[str]:
    """A folder that holds the index as long as workers need it."""
    if engine.executor is None:
        yield ""
        return
    if parent is not None:
        with suppress(OSError):
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="evalspill-index-", dir=parent if parent and parent.is_dir() else None)
    try:
        save(index, Path(folder))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
