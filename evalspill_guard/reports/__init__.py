"""The reports of a run: each is a function from results to bytes, and one writer puts them all in place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from evalspill_guard.model import CheckResult, RunResult
from evalspill_guard.reports.clean import CleanInput, clean_files
from evalspill_guard.reports.csv_report import contamination_csv, unchecked_csv
from evalspill_guard.reports.github import github
from evalspill_guard.reports.gitlab import gitlab
from evalspill_guard.reports.html_report import overlap_html
from evalspill_guard.reports.json_report import report_json
from evalspill_guard.reports.junit import junit
from evalspill_guard.reports.sarif import sarif
from evalspill_guard.reports.summary import summary
from evalspill_guard.reports.training_csv import training_csv
from evalspill_guard.reports.writer import Pieces, write_reports

log = logging.getLogger(__name__)

__all__ = ["CI_REPORTS", "REPORTS", "RUN_REPORTS", "base_of", "github", "report_json", "write_run"]

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

TRAINING = "contaminated-training.csv"
"""The training records that hold flagged rows, of the whole run; written where they were asked for."""

CLEAN = "clean"

CI_REPORTS: dict[str, Callable[[RunResult, str], bytes]] = {
    "results.sarif": sarif,
    "junit.xml": junit,
    "gl-code-quality.json": gitlab,
    "summary.md": summary,
}
"""The reports of the whole run for CI systems, by file name; they never hold row text."""


def is_report(path: Path, folder: Path) -> bool:
    """Whether a file below a report folder is one that this tool writes there."""
    try:
        parts = path.resolve().relative_to(folder.resolve()).parts
    except ValueError:
        return False
    in_check = len(parts) > 1 and (parts[1] in REPORTS or parts[1] == CLEAN)
    return parts[0] in (*RUN_REPORTS, *CI_REPORTS, TRAINING) or parts[0].startswith(".") or in_check


def base_of(folder: Path) -> str:
    """Where the config's folder stands in the repository around it: empty at its top, or where there is none."""
    folder = folder.resolve()
    for root in (folder, *folder.parents):
        if (root / ".git").exists():
            relative = folder.relative_to(root).as_posix()
            return "" if relative == "." else relative
    return ""


def write_run(
    result: RunResult, directory: Path, inputs: Mapping[str, Sequence[CleanInput]], base: str = ""
) -> list[Path]:
    """Write every report of a run below `directory`; `inputs` are the eval files of each check, by its name.

    `base` is the folder of the config, relative to the repository: CI systems look for files from there.
    Raises ReportError when a report cannot be written and InputChanged when an eval file is not what was scanned;
    the earlier reports then stay as they were.
    """
    checks = {check.name: _check_files(result, check, inputs.get(check.name, ())) for check in result.checks}
    run_wide = {name: _run_report(build, result) for name, build in RUN_REPORTS.items()}
    for_ci = {name: _ci_report(build, result, base) for name, build in CI_REPORTS.items()}
    listed = {TRAINING: training_csv(result)} if result.training is not None else {}
    written = write_reports(directory, checks, {**listed, **for_ci, **run_wide})
    if not listed:  # one of an earlier run would be believed
        with suppress(OSError):
            (directory / TRAINING).unlink(missing_ok=True)
    for path in written:
        log.info("%s: written, %d bytes", path.relative_to(directory).as_posix(), path.stat().st_size)
    return written


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


def _ci_report(build: Callable[[RunResult, str], bytes], result: RunResult, base: str) -> Iterator[bytes]:
    yield build(result, base)
