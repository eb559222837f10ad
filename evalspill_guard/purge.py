"""Which training records have to go so that no eval row is flagged any more.

A record goes when it holds, in itself, a flagged row: whole, or enough of it by flag_at. Then the rows are scored again
without these records. A row that is still flagged is spread over several records: those that hold its rarest runs go,
until enough of the row is left to no record together. All of that again until no row is flagged, since template runs
count as soon as few records hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import numpy as np

from evalspill_guard.errors import Unreadable, UsageError
from evalspill_guard.holding import Held
from evalspill_guard.index import Ids, Mask
from evalspill_guard.model import CheckResult, Outcome, Reading, RowScore, TrainingRecord
from evalspill_guard.pool import Pool, ScannedFile
from evalspill_guard.remote import is_remote
from evalspill_guard.reports.clean import clean_path
from evalspill_guard.scan import Means, Progress
from evalspill_guard.scoring import Findings, FlagRule, ScoredRow, covered, score_rows
from evalspill_guard.streams import CHANGED, identity
from evalspill_guard.training import Key, Trained, collect, files_of, held_rows, live_at, read_again, told_of


@dataclass(frozen=True, slots=True)
class Purged:
    """A training file, and the records of it that go, in file order."""

    file: ScannedFile
    gone: Mapping[Key, TrainingRecord]


@dataclass(slots=True)
class _Gone:
    """The records that go, of one file as it is read by some checks; `ids` is everything that they hold."""

    file: ScannedFile
    records: dict[Key, TrainingRecord] = field(default_factory=dict)
    ids: list[Ids] = field(default_factory=list)


def out_path(path: str) -> str:
    """Where a training file is written below the folder of a purge: as a clean file is, under its own name."""
    name = PurePosixPath(path).name
    return str(PurePosixPath(clean_path(path)).with_name(name.replace(":", "_") if is_remote(path) else name))


def plan(
    found: Trained, results: Sequence[CheckResult], means: Means, progress: Progress | None = None
) -> list[Purged]:
    """The training files of a run, each once, in the order of their paths.

    Raises UsageError where two checks cut one file into records in two ways, and Unreadable where a file cannot be
    read again.
    """
    planned = _Plan(found, results, means, progress)
    while planned.goes_on():
        pass
    return planned.purged()


class _Plan:
    def __init__(self, found: Trained, results: Sequence[CheckResult], means: Means, progress: Progress | None) -> None:
        self.found, self.results, self.means, self.progress = found, results, means, progress
        self.gone = [_Gone(file) for file in files_of(found.checks)]
        self.same = _same_files([one.file for one in self.gone])
        self.findings = [Pool.of(check.files).findings for check in found.checks]
        leaks = any(score.flagged and not score.accepted for result in results for score in result.rows)
        self.moved = [leaks and _in_another_order(check.files) for check in found.checks]
        self.settled: dict[int, bytes] = {}  # rows with the live runs by which all records that hold one were found

    def goes_on(self) -> bool:
        """Remove what has to go as things are; whether anything had to."""
        live: dict[int, Mask] = {}
        spread: set[int] = set()
        for number in range(len(self.results)):
            for row, mask, ids in self._leaking(number):
                live[row] = mask
                spread.update(ids)
        if not live:
            return False
        before = sum(len(one.records) for one in self.gone)
        files = [one.file for one in self.gone]
        self._remove(collect(self.found, files, live, sorted(spread), self.means, self.progress))
        self.settled.update((row, mask.tobytes()) for row, mask in live.items())
        if spread and before == sum(len(one.records) for one in self.gone):
            raise Unreadable(f"a training file {CHANGED}")
        return True

    def _leaking(self, number: int) -> Iterable[tuple[int, Mask, Iterable[int]]]:
        """(row, its live runs, the runs that must go) of each row of a check that is or may be flagged."""
        check, left = self.found.checks[number], self._left(number)
        one = check.loaded
        scored = score_rows(
            one.rows.rows, one.rows.fingerprints, one.lengths, self.found.index, one.first, left,
            one.check.boilerplate, check.ignored,
        )  # fmt: skip
        for row, (now, before) in enumerate(zip(scored.rows, self.results[number].rows, strict=True), start=one.first):
            if not now.score.found or before.accepted:
                continue
            flagged = replace(one.check.flag_at, longest=None).applies(now.score)
            leaks = flagged or self._may_be_long(row, now, left, one.check.flag_at)
            if leaks if self._touched(number, row, left) else before.flagged:
                mask = live_at(self.found.index, row, scored.boilerplate)
                if self.settled.get(row) != mask.tobytes():
                    yield row, mask, ()
                elif flagged:
                    yield row, mask, self._rarest(row, now, left, one.check.flag_at)

    def _left(self, number: int) -> Findings:
        """What the training files of a check hold without the records that go."""
        all_of_it, files = self.findings[number], self.found.checks[number].files
        gone = [ids for one in self.gone if any(one.file is file for file in files) for ids in one.ids]
        if not gone:
            return all_of_it
        at = np.searchsorted(all_of_it.ids, np.concatenate(gone))
        return Findings(all_of_it.ids, all_of_it.counts - np.bincount(at, minlength=len(all_of_it.ids)), {})

    def _touched(self, number: int, row: int, left: Findings) -> bool:
        """Whether a record that goes held anything of a row; of other rows the scan has said what there is to say, as
        long as the records in which it looks for passages come first in what is written, too."""
        if self.moved[number]:
            return True
        ids = np.append(self.found.index.ids_of(row), self.found.index.row_whole[row])
        return bool((left.count(ids) != self.findings[number].count(ids)).any())

    def _may_be_long(self, row: int, now: ScoredRow, left: Findings, rule: FlagRule) -> bool:
        """Whether one record might share a passage that is long enough, by the runs that are found in any."""
        if rule.longest is None or now.score.row.words < rule.longest:
            return False
        found = left.count(self.found.index.ids_of(row)) > 0
        edges = np.flatnonzero(np.diff(np.concatenate(([0], found, [0]))))
        least = max(1, rule.longest - (now.score.n or 1) + 1)
        return any(last - first >= least and now.live_at[first:last].any() for first, last in edges.reshape(-1, 2))

    def _rarest(self, row: int, now: ScoredRow, left: Findings, rule: FlagRule) -> list[int]:
        """The runs of a row that is spread over several records which have to go, the rarest first."""
        if now.score.stands_whole:
            return [int(self.found.index.row_whole[row])]
        ids, hits = self.found.index.ids_of(row), now.live_at.copy()
        counts = left.count(ids)
        chosen: list[int] = []
        for at in sorted(np.flatnonzero(hits).tolist(), key=lambda at: (counts[at], at)):
            if hits[at]:
                chosen.append(int(ids[at]))
                hits &= ids != ids[at]
                if not _flagged(now.score, ids, hits, rule):
                    break
        return chosen

    def _remove(self, held: Mapping[int, Mapping[int, Held]]) -> None:
        """Take these records out, of every way of reading their file."""
        for number, shards in held.items():
            self._take(number, shards)
        missing: dict[int, set[Key]] = {}
        for number, gone in enumerate(self.gone):
            for twin in self.same[number]:
                if keys := gone.records.keys() - self.gone[twin].records.keys():
                    missing.setdefault(twin, set()).update(keys)
        files = {number: self.gone[number].file for number in missing}
        for number, shards in read_again(self.found, files, missing, self.means).items():
            self._take(number, shards)

    def _take(self, number: int, shards: Mapping[int, Held]) -> None:
        gone = self.gone[number]
        if fault := next((one.fault for one in shards.values() if one.fault), None):
            raise Unreadable(f"{fault.path}: {fault.what}")
        for told in told_of(gone.file, shards):
            before = gone.records.get(told.key)
            rows = {*(before.rows if before else ()), *held_rows(self.found.checks, told.rows)}
            gone.records[told.key] = TrainingRecord(gone.file.file.path, told.line, told.key[0], tuple(sorted(rows)))
            if before is None:
                gone.ids.append(told.ids)

    def purged(self) -> list[Purged]:
        """Every path once, with all that is known of its records."""
        by_path: dict[str, Purged] = {}
        for one in self.gone:
            path = one.file.file.path
            known = by_path[path].gone if path in by_path else {}
            records = {key: _joined(record, known.get(key)) for key, record in sorted(one.records.items())}
            by_path[path] = Purged(one.file, records)
        return [by_path[path] for path in sorted(by_path, key=str.encode)]


def _in_another_order(files: Sequence[ScannedFile]) -> bool:
    """Whether files are written under names that sort in another way, such as _up for .. ."""
    paths = [file.file.path for file in files]
    return sorted(paths, key=str.encode) != sorted(paths, key=lambda path: out_path(path).encode())


def _joined(one: TrainingRecord, other: TrainingRecord | None) -> TrainingRecord:
    return one._replace(
        line=one.line or (other.line if other else 0), rows=tuple(sorted({*one.rows, *(other.rows if other else ())}))
    )


def _same_files(files: Sequence[ScannedFile]) -> list[list[int]]:
    """For each file the others that are the same one, read or named in another way.

    Raises UsageError where the records of one are not those of the other.
    """
    by_identity: dict[str, list[int]] = {}
    for number, file in enumerate(files):
        by_identity.setdefault(identity(file.file), []).append(number)
    for numbers in by_identity.values():
        if len({_splitting(files[number].reading) for number in numbers}) > 1:
            raise UsageError(
                f"{files[numbers[0]].file.path}: two checks cut this file into records in two ways (records, split, "
                "delimiter, header, max_record): a record of one is none of the other"
            )
    return [[twin for twin in by_identity[identity(file.file)] if twin != at] for at, file in enumerate(files)]


def _splitting(reading: Reading) -> tuple[object, ...]:
    return reading.records, reading.split, reading.delimiter, reading.header, reading.max_record, reading.overlap


def _flagged(score: RowScore, ids: Ids, hits: Mask, rule: FlagRule) -> bool:
    """Whether a row would be flagged if only these of its runs were found, and no long passage."""
    outcome: Outcome = "dirty" if hits.any() else "clean"
    left = replace(score, outcome=outcome, covered=covered(hits, score.n or 1), runs_found=len(np.unique(ids[hits])))
    return replace(rule, longest=None).applies(left)
