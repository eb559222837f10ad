"""The facts that modules hand to each other. No input, no output, no logic beyond simple questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

Script = Literal["spaced", "chinese", "japanese", "thai"]
Outcome = Literal["dirty", "clean", "whole", "too-short", "boilerplate-only", "no-text"]

MAX_RECORD = 64_000_000
LEAST_OVERLAP = 65_536
CHANGED = "changed during the scan; run again when nothing writes to it"
MOST_PLACES = 10


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something that makes a scan incomplete: the file as shown, its 1-based line if known, and what to do."""

    path: str
    line: int | None
    what: str


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file a glob matched: `path` as shown in reports (POSIX, relative to the config), `real` to open."""

    path: str
    real: str


@dataclass(frozen=True, slots=True)
class Reading:
    """How the records of a file are read; two equal readings of a file give the same records.

    `fields` are leaf paths as written (None: every text leaf), `id` the leaf path that names a row. `overlap` is the
    number of bytes that pieces of long plain text have in common: no eval row may take more.
    """

    fields: tuple[str, ...] | None = None
    id: str | None = None
    records: str | None = None
    split: Literal["line", "paragraph"] | None = None
    delimiter: str | None = None
    header: bool | None = None
    max_record: int = MAX_RECORD
    overlap: int = LEAST_OVERLAP


class Record(NamedTuple):
    """One training record or eval row as it stands in a file.

    line    1-based line on which its first byte stands, counted by line feeds from where reading began; 0: no lines
    start   offset of its first byte in the decompressed bytes (UTF-16: in the text as UTF-8 without BOM)
    end     offset after its last byte, its line ending included
    leaves  its selected texts, in the order in which the fields name them
    id      the text of the leaf that names it
    bad     why it could not be read (then `leaves` holds its bytes, decoded with U+FFFD), else None
    group   which JSON array it is an element of, counted from 0; 0 in all other formats
    """

    line: int
    start: int
    end: int
    leaves: list[str]
    id: str | None = None
    bad: str | None = None
    group: int = 0


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of a training file that is scanned in one go: the records whose first byte lies in [start, end)."""

    file: DataFile
    reading: Reading
    start: int = 0
    end: int | None = None


Stamp = tuple[int, ...]
"""Size, times and identity of a file, as the file system tells them."""


class Place(NamedTuple):
    """Where a training record stands; places order as (file, line) do.

    file is the index of its file in the pool, ordinal the 0-based number of the record in its shard.
    """

    file: int
    line: int
    start: int
    shard: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One row of an eval set: where it stands, its text, and its length in words."""

    file: int
    row: int
    line: int
    start: int
    end: int
    group: int
    id: str | None
    text: str
    words: int
    script: Script


@dataclass(frozen=True, slots=True)
class Evidence:
    """The longest passage that a row shares with a training record, in both texts.

    `first` and `last` are character offsets in the row's text; `before`, `shared`, `after` are training text.
    """

    train_file: str
    train_line: int
    first: int
    last: int
    before: str
    shared: str
    after: str


@dataclass(frozen=True, slots=True)
class RowScore:
    """What is known of one eval row after the scan.

    n is the row's run length; None where it has no runs. runs, runs_found count live runs, the `_all` figures
    count them without the boilerplate filter. covered is in words. train_records is the number of training
    records that hold its most frequent found run (kind whole: the row itself). places are the first training
    files and lines, at most MOST_PLACES, at which its found runs stand.
    """

    row: EvalRow
    outcome: Outcome
    fingerprint: str
    n: int | None = None
    runs: int = 0
    runs_found: int = 0
    runs_all: int = 0
    runs_found_all: int = 0
    covered: int = 0
    longest: int = 0
    stands_whole: bool = False
    train_records: int = 0
    looked_for: bool = True
    flagged: bool = False
    accepted: bool = False
    evidence: Evidence | None = None
    places: tuple[tuple[str, int], ...] = ()

    @property
    def found(self) -> bool:
        """Whether the row belongs into the contamination report."""
        return self.outcome in ("dirty", "whole")

    @property
    def kind(self) -> str:
        return "whole" if self.outcome == "whole" else "run"

    @property
    def rank(self) -> tuple[int, Fraction, int, int, int]:
        """What rows are sorted by: those that share most first, then by file and row."""
        return -self.longest, -self.coverage, -self.runs_found, self.row.file, self.row.row

    @property
    def containment(self) -> Fraction:
        """Live runs found / live runs; 0 for a row without live runs."""
        return Fraction(self.runs_found, self.runs) if self.runs else Fraction(0)

    @property
    def containment_all(self) -> Fraction:
        """Runs found / runs, boilerplate included."""
        return Fraction(self.runs_found_all, self.runs_all) if self.runs_all else Fraction(0)

    @property
    def coverage(self) -> Fraction:
        """Words inside at least one live found run / words of the row."""
        return Fraction(self.covered, self.row.words) if self.row.words else Fraction(0)


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input as it was read: bytes on disk, xxh3-128 of those bytes, records, those without text, bad ones."""

    path: str
    bytes: int
    digest: str
    records: int = 0
    empty: int = 0
    bad: int = 0


class HeldRow(NamedTuple):
    """A flagged row that one training record holds: the numbers of its check and of itself therein.

    covered are its words inside live runs that this record holds, longest is the longest passage that both share.
    """

    check: int
    row: int
    covered: int
    longest: int


class TrainingRecord(NamedTuple):
    """A training record that holds flagged rows: its file as shown, its line (0: none), its number from 1."""

    path: str
    line: int
    record: int
    rows: tuple[HeldRow, ...]


@dataclass(frozen=True)
class CheckResult:
    """One check's figures, rows and verdict.

    settings is the check as resolved, in the words of evalspill.yaml, so that it can be copied back;
    notes are the choices made and why (fields chosen or left out, template warnings).
    """

    name: str
    settings: Mapping[str, object]
    n: int
    n_by_class: Mapping[str, int]
    n_rule: str
    rows: tuple[RowScore, ...]
    train: tuple[InputFile, ...]
    eval: tuple[InputFile, ...]
    boilerplate_runs: int
    boilerplate_rows: int
    limit: str
    passed: bool
    complete: bool
    notes: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """How many rows ended so."""
        return self._outcomes[outcome]

    @cached_property
    def _outcomes(self) -> Counter[Outcome]:
        return Counter(score.outcome for score in self.rows)

    def eval_path(self, score: RowScore) -> str:
        """The eval file of a row, as shown."""
        return self.eval[score.row.file].path

    @property
    def scored(self) -> int:
        return self.count("dirty") + self.count("clean")

    @cached_property
    def flagged(self) -> int:
        return sum(score.flagged for score in self.rows)

    @cached_property
    def accepted(self) -> int:
        return sum(score.accepted for score in self.rows)

    @cached_property
    def unchecked(self) -> int:
        """Rows of which nothing is known: too short for any search, boilerplate-only, or without text."""
        return sum(not score.looked_for for score in self.rows)


@dataclass(frozen=True, slots=True)
class Accepted:
    """An entry of the baseline: a row that may overlap, by its words, with its figures when it was accepted.

    expires is the last day (ISO) on which the entry accepts the row.
    """

    check: str
    eval_file: str
    fingerprint: str
    kind: str
    n: int | None
    longest: int
    coverage: float
    reason: str
    expires: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it this row's: the check, the file and the words."""
        return self.check, self.eval_file, self.fingerprint


class Grown(NamedTuple):
    """A row that the baseline accepts no more, since it now shares a longer passage than was accepted."""

    check: str
    eval_file: str
    line: int
    row: int
    id: str | None
    accepted: int
    longest: int


@dataclass(frozen=True, slots=True)
class BaselineUse:
    """What a run found of a baseline.

    stale are entries whose row is no longer flagged, expired those of flagged rows whose last day is past. day (ISO)
    is the date against which that was judged; None where no entry expires.
    """

    path: str
    entries: int
    day: str | None = None
    stale: tuple[Accepted, ...] = ()
    expired: tuple[Accepted, ...] = ()
    grown: tuple[Grown, ...] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """Everything a run found out; the reports are written from this alone.

    training are the training records that hold flagged rows, in file order; None where they were not asked for.
    """

    tool_version: str
    unicode_version: str
    text_policy: Literal["full", "eval", "none"]
    clean: bool
    checks: tuple[CheckResult, ...]
    problems: tuple[Problem, ...]
    exit_code: int
    baseline: BaselineUse | None = None
    training: tuple[TrainingRecord, ...] | None = None

    @property
    def complete(self) -> bool:
        return not self.problems
