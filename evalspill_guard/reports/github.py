"""Annotations for GitHub Actions, as workflow commands to print. They hold no row text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from evalspill_guard.model import CheckResult, Problem, RunResult
from evalspill_guard.reports import flagged
from evalspill_guard.reports.flagged import FileCount, Flagged
from evalspill_guard.sink import github_data, github_property

MAX_ANNOTATIONS = 10
"""How many of each level GitHub keeps of one step; it drops what comes later."""


class _Annotation(NamedTuple):
    level: str
    title: str
    what: str
    path: str | None = None
    line: int | None = None


def github(result: RunResult, base: str = "") -> str:
    """The annotations, a line each: problems, eval files, worst rows, and how many are left out.

    A check that is within its limit gives warnings. `base` is the folder of the config in the repository.
    """
    kept: list[_Annotation] = []
    counts: Counter[str] = Counter()
    for one in _annotations(result, base):
        counts[one.level] += 1
        if counts[one.level] <= MAX_ANNOTATIONS:
            kept.append(one)
    left_out = counts.total() - len(kept)
    if left_out:
        kept.append(_Annotation("notice", "evalspill-guard", f"{left_out} more in the report"))
    return "".join(_command(one) for one in kept)


def _annotations(result: RunResult, base: str) -> Iterator[_Annotation]:
    inputs = {file.path for check in result.checks for file in (*check.eval, *check.train)}
    for problem in result.problems:
        yield _problem(problem, inputs, base)
    files = [(check, count) for check in result.checks for count in flagged.file_counts(check, base) if count.flagged]
    for check, count in sorted(files, key=lambda one: -one[1].flagged):
        yield _file(check, count)
    for row in flagged.open_rows(result, base):
        yield _row(row, base)


def _problem(problem: Problem, inputs: set[str], base: str) -> _Annotation:
    """Not every problem is about a file: a glob, or a whole check, has no place in the diff."""
    is_file = problem.line is not None or problem.path in inputs
    path = flagged.located(base, problem.path) if is_file else None
    return _Annotation("error", "The scan is not complete", flagged.problem_text(problem, base), path, problem.line)


def _file(check: CheckResult, count: FileCount) -> _Annotation:
    accepted = f", {count.accepted} more accepted in the baseline" if count.accepted else ""
    what = (
        f"{flagged.name(count.path)}: {count.flagged} of {count.checked} checked rows are in the training data"
        f"{accepted} (check {flagged.name(check.name)}, N = {check.n}, limit {check.limit})"
    )
    return _Annotation(_level(check), "Eval rows in the training data", what, count.path)


def _row(row: Flagged, base: str) -> _Annotation:
    where = flagged.found_in(row, base)
    found = f"; first found in {where}" if where else ""
    what = f"Eval {flagged.row_name(row)} of check {flagged.name(row.check.name)}: {flagged.figures(row)}{found}"
    return _Annotation(_level(row.check), "Eval row in the training data", what, row.path, row.score.row.line or None)


def _level(check: CheckResult) -> str:
    return "error" if flagged.failed(check) else "warning"


def _command(one: _Annotation) -> str:
    properties = {"file": one.path, "line": one.line, "title": one.title}
    shown = ",".join(f"{key}={github_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{one.level} {shown}::{github_data(one.what)}\n"
