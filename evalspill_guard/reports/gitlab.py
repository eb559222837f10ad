"""gl-code-quality.json: the flagged rows as a GitLab Code Quality report. It holds no row text."""

from __future__ import annotations

from collections import Counter

from evalspill_guard.model import Problem, RunResult
from evalspill_guard.reports import flagged
from evalspill_guard.reports.flagged import Flagged
from evalspill_guard.sink import encodable


def gitlab(result: RunResult, base: str = "") -> bytes:
    """A list of entries: what makes the scan incomplete as blockers, then the flagged rows, worst first.

    Rows that the baseline accepts are left out. A list that would be longer than MAX_ENTRIES ends in an entry that
    says how many are left out.
    """
    seen: Counter[Problem] = Counter()
    entries = []
    for problem in result.problems:
        seen[problem] += 1
        entries.append(_problem(problem, seen[problem], base))
    entries += [_row(row, base) for row in flagged.open_rows(result, base)]
    if len(entries) > flagged.MAX_ENTRIES:
        kept = flagged.MAX_ENTRIES - 1
        entries[kept:] = [_left_out(len(entries) - kept, result, base)]
    return flagged.ascii_json(entries)


def _row(row: Flagged, base: str) -> dict[str, object]:
    where = flagged.found_in(row, base)
    found = f"; first found in {where}" if where else ""
    what = f"Eval {flagged.row_name(row)} is in the training data (check {flagged.name(row.check.name)})"
    severity = "major" if flagged.failed(row.check) else "minor"
    line = row.score.row.line
    return _entry(f"{what}: {flagged.figures(row)}{found}", "contaminated-row", row.key, severity, row.path, line)


def _problem(problem: Problem, occurrence: int, base: str) -> dict[str, object]:
    what = f"The scan is not complete: {flagged.problem_text(problem, base)}"
    key = flagged.problem_key(problem, occurrence)
    return _entry(what, "incomplete-scan", key, "blocker", flagged.located(base, problem.path), problem.line)


def _left_out(count: int, result: RunResult, base: str) -> dict[str, object]:
    path = next((flagged.located(base, file.path) for check in result.checks for file in check.eval), "evalspill.yaml")
    return _entry(f"{count} more: report.json holds them all", "left-out", "left-out", "info", path, None)


def _entry(what: str, name: str, fingerprint: str, severity: str, path: str, line: int | None) -> dict[str, object]:
    """An entry; every one needs a line, so what has none stands at the first."""
    return {
        "description": encodable(what),
        "check_name": name,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": encodable(path), "lines": {"begin": line or 1}},
    }
