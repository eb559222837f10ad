"""The other side: which training records hold a flagged row, all of them, and not only those that a scan keeps.

A scan lists the records of a shard in which it finds anything, as long as these are few. They are read again; a shard
with more is searched a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from evalspill_guard.aim import Aim, Judged, aimed
from evalspill_guard.engine import SERIAL, scan_all
from evalspill_guard.holding import Held, Wanted, hold
from evalspill_guard.index import Ids, Mask, RunIndex
from evalspill_guard.loading import Loaded
from evalspill_guard.model import CheckResult, HeldRow, Problem, Shard, TrainingRecord
from evalspill_guard.pool import ScannedFile
from evalspill_guard.readers import shards_of
from evalspill_guard.scan import Advance, Means, Progress, saved, size_of
from evalspill_guard.scanner import DENSE, LISTED_PLACES, ShardResult, different_records
from evalspill_guard.streams import CHANGED


@dataclass(frozen=True, slots=True)
class Searched:
    """A check as it was searched for: its training files as scanned, the sorted ids of its boilerplate runs, and the
    texts in which it is told to look for more of these."""

    loaded: Loaded
    files: Sequence[ScannedFile]
    boilerplate: Ids
    ignored: Sequence[str]

    def judged(self) -> Judged:
        """Its rows in the index, and how much of one is enough."""
        first = self.loaded.first
        return Judged(first, first + len(self.loaded.rows.rows), self.loaded.check.flag_at)


@dataclass(frozen=True, slots=True)
class Trained:
    """Everything that a scan looked for, and what it found where."""

    index: RunIndex
    checks: Sequence[Searched]


@dataclass(frozen=True, slots=True)
class _Errand:
    """A shard of a file, and what is asked of it."""

    file: int
    number: int
    shard: Shard
    wanted: Wanted


Key = tuple[int, int]
"""A record of a file: its number from 1, and where it begins."""


class Told(NamedTuple):
    """A record, its line (0: none), (row, words covered, longest) of the rows that it holds, and all ids in it."""

    key: Key
    line: int
    rows: Ids
    ids: Ids


def live_at(index: RunIndex, row: int, boilerplate: Ids) -> Mask:
    """Which runs of a query count in one record: those that are no boilerplate."""
    live: Mask = ~np.isin(index.ids_of(row), boilerplate)
    return live


def files_of(checks: Sequence[Searched]) -> list[ScannedFile]:
    """Every training file once for each way of reading it, in the order of their paths."""
    files = {(one.file, one.reading): one for check in checks for one in check.files}
    return [files[key] for key in sorted(files, key=lambda key: (key[0].path.encode(), repr(key[1])))]


def training_records(
    found: Trained, results: Sequence[CheckResult], means: Means, progress: Progress | None
) -> tuple[list[TrainingRecord], list[Problem]]:
    """Each training record that holds a flagged row that is not accepted, in file order, and what went wrong."""
    live = {
        check.loaded.first + number: live_at(found.index, check.loaded.first + number, check.boilerplate)
        for check, result in zip(found.checks, results, strict=True)
        for number, score in enumerate(result.rows)
        if score.flagged and not score.accepted
    }
    files = files_of(found.checks)
    held = collect(found, files, live, (), means, progress)
    problems = [one.fault for shards in held.values() for one in shards.values() if one.fault]
    told: dict[tuple[str, int, int], list[HeldRow]] = {}
    lines: dict[tuple[str, int, int], int] = {}
    for number, shards in held.items():
        for one in told_of(files[number], shards):
            key = (files[number].file.path, *one.key)
            lines[key] = one.line
            told.setdefault(key, []).extend(held_rows(found.checks, one.rows))
    order = sorted(told, key=lambda key: (key[0].encode(), key[1:]))
    return [TrainingRecord(key[0], lines[key], key[1], tuple(sorted(told[key]))) for key in order], problems


def told_of(file: ScannedFile, shards: Mapping[int, Held]) -> Iterator[Told]:
    """Every record told of a file, in order."""
    records = lines = 0
    for number, result in enumerate(file.shards):
        if number in shards:
            one = shards[number]
            every = np.arange(len(one.records) + 1)
            rows, ids = (np.searchsorted(pairs[:, 0], every) for pairs in (one.rows, one.ids))
            for at, (ordinal, start, line) in enumerate(one.records.tolist()):
                yield Told(
                    (records + ordinal + 1, start), line + lines if line else 0,
                    one.rows[rows[at] : rows[at + 1], 1:], one.ids[ids[at] : ids[at + 1], 1],
                )  # fmt: skip
        records, lines = records + result.records, lines + result.lines


def held_rows(checks: Sequence[Searched], rows: Ids) -> Iterator[HeldRow]:
    """The rows of a record, by check."""
    firsts = np.array([check.loaded.first for check in checks])
    owners = np.searchsorted(firsts, rows[:, 0], side="right") - 1
    for check, (row, covered, longest) in zip(owners.tolist(), rows.tolist(), strict=True):
        yield HeldRow(check, row - checks[check].loaded.first, covered, longest)


def collect(
    found: Trained,
    files: Sequence[ScannedFile],
    live: Mapping[int, Mask],
    ids: Sequence[int],
    means: Means,
    progress: Progress | None = None,
) -> dict[int, dict[int, Held]]:
    """For each of the files, and each shard of it, the records that hold enough of one of these queries, or an id.

    `live` says of each query which of its runs count. A shard that could not be read is among them, with its fault.
    """
    index = aimed(found.index, live)
    errands = [
        errand
        for number, file in enumerate(files)
        for errand in _errands(number, file, index, tuple(_judging(found.checks, file)), tuple(ids))
    ]
    return run(errands, index, means, progress)


def read_again(
    found: Trained, files: Mapping[int, ScannedFile], wanted: Mapping[int, Collection[Key]], means: Means
) -> dict[int, dict[int, Held]]:
    """For some of these files everything that these records hold."""
    errands = [one for number, keys in wanted.items() for one in _to_read(number, files[number], sorted(keys))]
    return run(errands, found.index, means)


def _to_read(number: int, file: ScannedFile, keys: Sequence[Key]) -> Iterator[_Errand]:
    shards, before = shards_of(file.file, file.reading), 0
    for place, result in enumerate(file.shards):
        at = tuple((n - 1 - before, start, 0) for n, start in keys if before < n <= before + result.records)
        before += result.records
        if at:
            shard = shards[place] if len(shards) == len(file.shards) else Shard(file.file, file.reading)
            yield _Errand(number, place, shard, Wanted((), every=True, at=at, stamp=result.stamp))


def _judging(checks: Sequence[Searched], file: ScannedFile) -> Iterator[Judged]:
    """The rows that are looked for in a file."""
    yield from (check.judged() for check in checks if any(one is file for one in check.files))


def _errands(
    number: int, file: ScannedFile, index: RunIndex, judged: tuple[Judged, ...], ids: tuple[int, ...]
) -> Iterator[_Errand]:
    """What has to be read of a file, and how."""
    matters = Aim(index, judged, ids).matters
    needed = [place for place, result in enumerate(file.shards) if matters[result.ids].any()]
    shards = shards_of(file.file, file.reading) if needed else []
    for place in needed:
        result = file.shards[place]
        shard = shards[place] if len(shards) == len(file.shards) else Shard(file.file, file.reading)
        at, sure = _places(result, matters)
        wanted = Wanted(judged, ids, at=at, sure=sure, digest=result.digest, stamp=result.stamp)
        yield _Errand(number, place, shard, wanted)


def _places(result: ShardResult, matters: Mask) -> tuple[tuple[tuple[int, int, int], ...] | None, bool]:
    """(ordinal, start, line) of all records of a shard that hold what matters, and whether each of them does; None
    where not all are known, or where they are many."""
    counts = result.counts[matters[result.ids]]
    records: Ids | None = result.where[matters[result.where[:, 0]], 1:]
    sure = records is not None and len(records) == counts.sum()
    if not sure:  # nothing but the stamp would tell whether they are still those of the scan
        records = result.listed if result.stamp and counts.max() <= LISTED_PLACES else None
    if records is None or len(different_records(records)) * DENSE > result.records:
        return None, sure
    return tuple(sorted((ordinal, start, line) for line, start, ordinal in different_records(records).tolist())), sure


def run(
    errands: Sequence[_Errand], index: RunIndex, means: Means, progress: Progress | None = None
) -> dict[int, dict[int, Held]]:
    """Do errands on whatever engine there is: what each shard of each file holds."""
    held: dict[int, dict[int, Held]] = {}
    sizes = [0 if one.wanted.at is not None else size_of(one.shard, one.wanted.stamp) for one in errands]
    advance = Advance(sum(sizes), len(errands), progress)

    def done(number: int, result: Held | ShardResult) -> None:
        errand = errands[number]
        if isinstance(result, ShardResult):
            result = Held.failed(result.fault or Problem(errand.shard.file.path, None, CHANGED))
        held.setdefault(errand.file, {})[errand.number] = result
        advance.ended(sizes[number])

    engine = means.engine.for_work([errand.shard for errand in errands], sum(sizes))
    with saved(index, engine, means.folder) as folder:
        scan_all(
            [errand.shard for errand in errands], index, folder or "", engine if folder else SERIAL, done,
            advance.inside, [partial(hold, errand.wanted) for errand in errands],
        )  # fmt: skip
    return {file: dict(sorted(held[file].items())) for file in sorted(held)}
