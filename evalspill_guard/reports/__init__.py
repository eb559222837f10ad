"""The reports of a run: each is a function from results to bytes, and one writer puts them all in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from evalspill_guard.model import CheckResult, RunResult
from evalspill_guard.reports.clean import CleanInput, clean_files
from evalspill_guard.reports.csv_report import contamination_csv, unchecked_csv
from evalspill_guard.reports.html_report import overlap_html
from evalspill_guard.reports.json_report import report_json
from evalspill_guard.reports.writer import Pieces, write_reports

REPORTS: dict[str, Callable[[RunResult, CheckResult], bytes]] = {
    "contamination-report.csv": contamination_csv,
    "too-short-to-score.csv": unchecked_csv,
    "overlap-report.html": overlap_html,
}
"""The reports of each check, by file name."""

RUN_REPORTS: dict[str, Callable[[RunResult], bytes]] = {
    "report.json": report_json,
}
"""The reports of the whole run, by file name."""


def write_run(result: RunResult, directory: Path, inputs: Mapping[str, Sequence[CleanInput]]) -> list[Path]:
    """Write every report of a run below `directory`; `inputs` are the eval files of each check, by its name.

    Raises ReportError when a report cannot be written and InputChanged when an eval file is not what was scanned;
    the earlier reports then stay as they were.
    """
    checks = {check.name: _check_files(result, check, inputs.get(check.name, ())) for check in result.checks}
    run_wide = {name: _run_report(build, result) for name, build in RUN_REPORTS.items()}
    return write_reports(directory, checks, run_wide)


def _check_files(result: RunResult, check: CheckResult, inputs: Sequence[CleanInput]) -> dict[str, Pieces]:
    reports = {name: _check_report(build, result, check) for name, build in REPORTS.items()}
    return {**reports, **clean_files(result, check, inputs)}


def _check_report(
    build: Callable[[RunResult, CheckResult], bytes], result: RunResult, check: CheckResult
) -> Iterator[bytes]:
    """One report, built only when it is written, so that no more than one is in memory."""
    yield build(result, check)


def _run_report(build: Callable[[RunResult], bytes], result: RunResult) -> Iterator[bytes]:
    yield build(result)
