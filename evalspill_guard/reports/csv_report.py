"""The two tables of a check as CSV: UTF-8, line feeds, quotes only where they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from evalspill_guard.model import CheckResult, RunResult
from evalspill_guard.reports import table
from evalspill_guard.sink import csv_cell


def contamination_csv(result: RunResult, check: CheckResult) -> bytes:
    """contamination-report.csv: a line for each row found."""
    rows = (table.found_cells(check, score, result.text_policy) for score in table.found_rows(check))
    return _csv(table.FOUND_COLUMNS, rows)


def unchecked_csv(result: RunResult, check: CheckResult) -> bytes:
    """too-short-to-score.csv: a line for each row that was neither scored nor found."""
    return _csv(table.UNCHECKED_COLUMNS, (table.unchecked_cells(check, score) for score in table.unchecked_rows(check)))


def _csv(columns: tuple[str, ...], rows: Iterable[dict[str, table.Cell]]) -> bytes:
    lines = [",".join(columns), *(",".join(map(_cell, row.values())) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def _cell(value: table.Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return table.decimal(value)
    return csv_cell(value) if isinstance(value, str) else str(value)
