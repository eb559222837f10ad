"""contaminated-training.csv: every training record that holds a flagged row, for whoever cleans the training data."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from evalspill_guard.model import CheckResult, HeldRow, RunResult, TrainingRecord
from evalspill_guard.reports.table import decimal
from evalspill_guard.sink import csv_cell

COLUMNS = ("train_file", "train_line", "record", "eval_rows", "longest", "coverage", "checks")
_LINES = 1_000  # written at once


def training_csv(result: RunResult) -> Iterator[bytes]:
    """A line for each record, in file order; no row text."""
    records = result.training or ()
    yield f"{','.join(COLUMNS)}\n".encode()
    for first in range(0, len(records), _LINES):
        lines = (_line(result.checks, record) for record in records[first : first + _LINES])
        yield "".join(lines).encode()


def _line(checks: tuple[CheckResult, ...], record: TrainingRecord) -> str:
    rows = ";".join(dict.fromkeys(row_name(checks, held) for held in record.rows))
    names = ";".join(dict.fromkeys(checks[held.check].name for held in record.rows))
    longest, most = max((held.longest for held in record.rows), default=0), coverage(checks, record)
    cells = (csv_cell(record.path), str(record.line or ""), str(record.record), csv_cell(rows), str(longest),
             decimal(most), csv_cell(names))  # fmt: skip
    return ",".join(cells) + "\n"


def row_name(checks: tuple[CheckResult, ...], held: HeldRow) -> str:
    """FILE#ROW, by which a row is named on the command line too."""
    check = checks[held.check]
    score = check.rows[held.row]
    return f"{check.eval_path(score)}#{score.row.row}"


def coverage(checks: tuple[CheckResult, ...], record: TrainingRecord) -> Fraction:
    """The largest share of a row's words that the record holds."""
    shares = (Fraction(held.covered, checks[held.check].rows[held.row].row.words) for held in record.rows)
    return max(shares, default=Fraction(0))
