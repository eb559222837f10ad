"""The training records that hold flagged rows, as the page shows them: by file, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalspill_guard.model import CheckResult, HeldRow, RunResult, TrainingRecord
from evalspill_guard.reports.page_rows import place, words
from evalspill_guard.reports.table import decimal
from evalspill_guard.reports.training_csv import coverage
from evalspill_guard.sink import visible_line

MOST_FILES = 20
MOST_RECORDS = 10  # of a file
MOST_ROWS = 5  # of a record


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """One record: where it stands, the first rows that it holds, how many more, and how much it shares with one."""

    place: str
    rows: Sequence[str]
    more: int
    longest: str
    coverage: str


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A training file: how many of its records hold rows, and how many rows they hold; the worst of them."""

    path: str
    total: int
    rows: int
    records: Sequence[ShownRecord]

    @property
    def cut(self) -> bool:
        return len(self.records) < self.total


@dataclass(frozen=True, slots=True)
class Training:
    """The training side of a check: the files with most such records, how many files and records there are."""

    shown: Sequence[ShownFile]
    files: int
    total: int

    @property
    def cut(self) -> bool:
        return len(self.shown) < self.files or any(file.cut for file in self.shown)


def training(result: RunResult, check: CheckResult) -> Training | None:
    """What the page shows; None where the records were not asked for."""
    if result.training is None:
        return None
    number = next(at for at, one in enumerate(result.checks) if one.name == check.name)
    by_file: dict[str, list[TrainingRecord]] = {}
    for record in result.training:
        mine = tuple(held for held in record.rows if held.check == number)
        if mine:
            by_file.setdefault(record.path, []).append(record._replace(rows=mine))
    files = sorted(by_file, key=lambda path: (-len(by_file[path]), path.encode("utf-8", "replace")))
    shown = [_file(result.checks, path, by_file[path]) for path in files[:MOST_FILES]]
    return Training(shown, len(files), sum(map(len, by_file.values())))


def _file(checks: tuple[CheckResult, ...], path: str, records: Sequence[TrainingRecord]) -> ShownFile:
    rows = {held.row for record in records for held in record.rows}
    worst = sorted(records, key=lambda record: (-len(record.rows), -_longest(record), record.record))
    return ShownFile(
        visible_line(path), len(records), len(rows), [_record(checks, record) for record in worst[:MOST_RECORDS]]
    )


def _record(checks: tuple[CheckResult, ...], record: TrainingRecord) -> ShownRecord:
    where = f"line {record.line:,}" if record.line else f"record {record.record:,}"
    worst = sorted(record.rows, key=lambda held: (-held.longest, held.row))[:MOST_ROWS]
    names = [_row(checks, held) for held in worst]
    return ShownRecord(
        where, names, len(record.rows) - len(names), words(_longest(record)), decimal(coverage(checks, record))
    )


def _row(checks: tuple[CheckResult, ...], held: HeldRow) -> str:
    return place(checks[held.check], checks[held.check].rows[held.row])


def _longest(record: TrainingRecord) -> int:
    return max(held.longest for held in record.rows)
