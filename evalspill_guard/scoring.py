"""From what a scan found to a figure for each eval row, and from the figures to a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np

from evalspill_guard.index import Ids, Mask, Query, RunIndex, Search, distinct
from evalspill_guard.kernel import batch
from evalspill_guard.model import EvalRow, Outcome, Place, RowScore, Script
from evalspill_guard.text import CAP, FLOOR, choose_n, scaled

SMALLEST_SEARCHED = 3
SCRIPTS: tuple[Script, ...] = ("spaced", "chinese", "japanese", "thai")


@dataclass(frozen=True, slots=True)
class BoilerplateRule:
    """A run is boilerplate when more than `records` records and at least `rows` distinct rows hold it.

    `rows` is a number, or a share of the rows with distinct words; never fewer than two.
    """

    records: int
    rows: Fraction | int

    def least_rows(self, distinct: int) -> int:
        wanted = self.rows if isinstance(self.rows, int) else ceil(self.rows * distinct)
        return max(2, wanted)


@dataclass(frozen=True, slots=True)
class FlagRule:
    """A row is flagged when one of these is reached; `any`: as soon as one live run is found."""

    coverage: Fraction | None = Fraction(1, 2)
    longest: int | None = 40
    containment: Fraction | None = None
    any: bool = False

    def applies(self, score: RowScore) -> bool:
        if score.outcome == "whole" or score.stands_whole:
            return True
        return score.outcome == "dirty" and (
            self.any
            or (self.coverage is not None and score.coverage >= self.coverage)
            or (self.longest is not None and score.longest >= self.longest)
            or (self.containment is not None and score.containment >= self.containment)
        )


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths in words that decide how a row is looked for, for each class of rows."""

    n: Mapping[Script, int]
    short_rows: int | None

    def floor(self, script: Script) -> int:
        """Below it a row is too short to score."""
        return min(scaled(FLOOR, script), self.n[script])

    def search(self, row: EvalRow) -> Search:
        """How a row is looked for."""
        if row.words >= self.floor(row.script):
            return "runs"
        if self.short_rows is None or row.words < SMALLEST_SEARCHED:
            return "none"
        return "whole" if row.words >= scaled(self.short_rows, row.script) else "tiny"

    def query(self, row: EvalRow) -> Query:
        return Query(row.text, self.search(row), min(self.n[row.script], row.words), row.words)


def lengths_for(rows: Sequence[EvalRow], n: int | None, short_rows: int | None) -> Lengths:
    """N for each class of rows: as set, or by GPT-3's rule from the rows of that class."""
    chosen = {
        script: n if n is not None else choose_n([row.words for row in rows if row.script == script], script)
        for script in SCRIPTS
    }
    return Lengths(chosen, short_rows)


def n_rule(n: int | None) -> str:
    """How N was reached, in words."""
    if n is not None:
        return "fixed in the config"
    return (
        f"5th percentile of the rows' lengths in words, from {FLOOR} to {CAP} (GPT-3, appendix C), "
        "scaled for scripts without spaces"
    )


@dataclass(frozen=True, slots=True)
class Findings:
    """What the pooled training files of a check hold: for each id found how many records, and its first places."""

    ids: Ids
    counts: Ids
    places: Mapping[int, Sequence[Place]]

    def count(self, ids: Ids) -> Ids:
        """For each id the number of training records that hold it."""
        if not len(self.ids):
            return np.zeros(len(ids), dtype=np.int64)
        at = np.searchsorted(self.ids, ids)
        at[at == len(self.ids)] = 0
        return np.where(self.ids[at] == ids, self.counts[at], 0)

    def first(self, ids: Iterable[int]) -> list[Place]:
        """The first places of these ids, each once, in file and line order."""
        return sorted({place for one in ids for place in self.places.get(one, ())})


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row's figures, and what is needed to look up its evidence: the live runs found and where they stand."""

    score: RowScore
    live_at: Mask
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class Scored:
    """All rows of a check, and what the boilerplate filter touched; `boilerplate` are the sorted ids of its runs."""

    rows: Sequence[ScoredRow]
    boilerplate_runs: int
    boilerplate_rows: int
    boilerplate: Ids


def score_rows(
    rows: Sequence[EvalRow],
    fingerprints: Sequence[str],
    lengths: Lengths,
    index: RunIndex,
    first: int,
    findings: Findings,
    rule: BoilerplateRule | None,
    ignored: Sequence[str] = (),
) -> Scored:
    """Score the rows that are queries first, first + 1, ... of the index. `longest` is exact only for whole rows."""
    scorer = _Scorer(lengths, index, first, len(rows), findings)
    boilerplate = scorer.boilerplate(rule, ignored)
    scored = scorer.scored(rows, fingerprints, boilerplate)
    touched = [s for s in scored if s.score.runs < s.score.runs_all]
    return Scored(scored, len(boilerplate), len(touched), boilerplate)


_NO_RUNS = np.zeros(0, dtype=bool)


class _Scorer:
    """Scores the rows of one check. Everything that is asked of each of their runs is asked for all at once."""

    def __init__(self, lengths: Lengths, index: RunIndex, first: int, rows: int, findings: Findings) -> None:
        self.lengths, self.index, self.first, self.findings = lengths, index, first, findings
        self.bounds = index.row_bounds[first : first + rows + 1]
        self.ids = index.runs_at[self.bounds[0] : self.bounds[-1]]
        self.bounds = self.bounds - self.bounds[0]
        self.owners = np.repeat(np.arange(rows), np.diff(self.bounds))
        self.counts = findings.count(self.ids)
        self.whole = findings.count(index.row_whole[first : first + rows])
        self.distinct = _first_of_each_pair(self.owners, self.ids)

    def boilerplate(self, rule: BoilerplateRule | None, ignored: Sequence[str]) -> Ids:
        """The sorted ids of this check's boilerplate runs."""
        ids = _ids_in(self.index, ignored)
        named = distinct(ids[np.isin(ids, self.ids)])
        if rule is None:
            return named
        rows = len(self.bounds) - 1
        hashes = self.index.row_hash[self.first : self.first + rows]
        often = np.flatnonzero(self.counts > rule.records)
        owners = np.unique(hashes, return_inverse=True)[1][self.owners[often]]  # rows with the same words are one
        first = _first_of_each_pair(self.ids[often], owners)
        ids, counts = np.unique(self.ids[often][first], return_counts=True)
        different = len(distinct(hashes[hashes != 0]))  # only a row of no words has the hash 0
        return distinct(np.append(named, ids[counts >= rule.least_rows(different)]))

    def scored(self, rows: Sequence[EvalRow], marks: Sequence[str], boilerplate: Ids) -> list[ScoredRow]:
        """Every row, in order."""
        self.live = ~np.isin(self.ids, boilerplate) | (self.whole > 0)[self.owners]
        self.found = self.counts > 0
        masks = (self.distinct & self.live, self.distinct & self.live & self.found, self.distinct,
                 self.distinct & self.found)  # fmt: skip
        figures = np.stack([np.bincount(self.owners[mask], minlength=len(rows)) for mask in masks], axis=1).tolist()
        return [self._score(at, row, marks[at], figures[at]) for at, row in enumerate(rows)]

    def _score(self, at: int, row: EvalRow, mark: str, figures: Sequence[int]) -> ScoredRow:
        search = self.lengths.search(row)
        return self._by_runs(at, row, mark, figures) if search == "runs" else self._short(at, row, mark, search)

    def _short(self, at: int, row: EvalRow, mark: str, search: Search) -> ScoredRow:
        records = int(self.whole[at])
        outcome: Outcome = "whole" if records else "no-text" if not row.words else "too-short"
        score = RowScore(row, outcome, mark, looked_for=search != "none")
        if not records:
            return ScoredRow(score, _NO_RUNS, ())
        score = replace(score, covered=row.words, longest=row.words, stands_whole=True, train_records=records)
        return ScoredRow(score, _NO_RUNS, self.findings.first([self._whole_id(at)]))

    def _whole_id(self, at: int) -> int:
        return int(self.index.row_whole[self.first + at])

    def _by_runs(self, at: int, row: EvalRow, mark: str, figures: Sequence[int]) -> ScoredRow:
        mine = slice(self.bounds[at], self.bounds[at + 1])
        n, whole = row.words - (mine.stop - mine.start) + 1, bool(self.whole[at])
        live, hit, runs, found = figures
        score = RowScore(
            row, "clean", mark, n=int(n), runs=live, runs_found=hit, runs_all=runs, runs_found_all=found,
            stands_whole=whole,
        )  # fmt: skip
        if not hit:
            if live < runs and row.words - covered(~self.live[mine], score.n or 1) < self.lengths.floor(row.script):
                score = replace(score, outcome="boilerplate-only", looked_for=False)
            return ScoredRow(score, _NO_RUNS, ())
        hits = self.found[mine] & self.live[mine]
        score = replace(
            score, outcome="dirty", covered=covered(hits, score.n or 1), longest=row.words if whole else 0,
            train_records=int(self.counts[mine][hits].max()),
        )  # fmt: skip
        held_by = [self._whole_id(at)] if whole else np.unique(self.ids[mine][hits]).tolist()
        return ScoredRow(score, hits, self.findings.first(held_by))


def _first_of_each_pair(one: Ids, two: Ids) -> Mask:
    """Whether a place is the first with its pair of values."""
    pairs = one * (int(two.max(initial=0)) + 1) + two
    order = np.argsort(pairs, kind="stable")
    first = np.diff(pairs[order], prepend=-1) != 0
    mask = np.zeros(len(order), dtype=bool)
    mask[order[first]] = True
    return mask


def covered(starts: Mask, n: int) -> int:
    """The number of words inside at least one of the runs of n words that start here."""
    change = np.zeros(len(starts) + n, dtype=np.int64)
    change[:-n] += starts
    change[n:] -= starts
    return int((np.cumsum(change) > 0).sum())


def _ids_in(index: RunIndex, texts: Sequence[str]) -> Ids:
    """The runs that stand in these texts."""
    return index.found_in(batch([[text] for text in texts]))[0] if texts else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Gate:
    """How many flagged rows are accepted: a number, or a share of the rows scored and those found whole."""

    count: int | None = 0
    share: Fraction | None = None

    @property
    def shown(self) -> str:
        """The limit as a person writes it."""
        return str(self.count) if self.share is None else f"{float(self.share * 100):g}%"

    def allowed(self, checked: int) -> Fraction:
        return self.share * checked if self.share is not None else Fraction(self.count or 0)

    def passes(self, scores: Sequence[RowScore]) -> bool:
        """Whether the flagged rows that no baseline accepts stay within the limit."""
        checked = sum(score.outcome in ("dirty", "clean", "whole") for score in scores)
        return sum(score.flagged and not score.accepted for score in scores) <= self.allowed(checked)
