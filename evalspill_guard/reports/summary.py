"""summary.md: what a job summary or a merge request shows of a run. It holds no row text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from evalspill_guard.model import BaselineUse, CheckResult, Problem, RunResult
from evalspill_guard.reports import flagged, verdict
from evalspill_guard.reports.flagged import Flagged
from evalspill_guard.reports.json_report import CANNOT_SEE
from evalspill_guard.reports.table import decimal, public_settings
from evalspill_guard.sink import markdown

MAX_BYTES = 60 * 1024
"""GitHub drops the whole summary of a step above 1 MiB, and nobody reads as much as that."""

WORST = 20
_MAX_TABLE = 10_000
_MAX_SETTINGS = 4_000
_MAX_NAME = 120
_WHAT = 400


def summary(result: RunResult, base: str = "") -> bytes:
    """The summary, of MAX_BYTES or less: what does not fit is counted, and stands in the other reports."""
    first = [_verdict(result), _overview(result), _baseline(result.baseline), _problems(result.problems, base)]
    last = [_reports(result), _limits()]
    room = MAX_BYTES - _size([*first, *last]) - 200
    middle, left_out = _fitting(_sections(result, base), room)
    more = [f"{left_out} more sections are left out here; report.json holds everything."] if left_out else []
    return ("\n\n".join(part for part in [*first, *middle, *more, *last] if part) + "\n").encode()


def _fitting(sections: Iterable[str], room: int) -> tuple[list[str], int]:
    kept: list[str] = []
    left_out = 0
    for section in sections:
        if _size([*kept, section]) <= room:
            kept.append(section)
        else:
            left_out += 1
    return kept, left_out


def _size(parts: Iterable[str]) -> int:
    return sum(len(part.encode()) + 2 for part in parts)


def _verdict(result: RunResult) -> str:
    past = sum(not check.passed for check in result.checks)
    if not flagged.complete(result):
        word, what = "Incomplete", "The scan is not complete, so its figures prove nothing: mend the problems first."
    elif past:
        word, what = "Failed", f"{past} of {_count(len(result.checks), 'check')} past the limit of flagged rows."
    else:
        word, what = "Passed", f"{_count(len(result.checks), 'check')} complete and within the limit of flagged rows."
    return f"# evalspill-guard: {word}\n\n{what}"


def _overview(result: RunResult) -> str:
    """Every check in a line, those first that did not pass."""
    ordered = sorted(result.checks, key=lambda check: check.complete and check.passed)
    rows = (
        (
            _name(check.name), verdict.state(check), f"{check.flagged:,}", f"{check.accepted:,}", _name(check.limit),
            f"{check.scored + check.count('whole'):,}", f"{check.unchecked:,}", str(check.n),
        )
        for check in ordered
    )  # fmt: skip
    header = ("check", "result", "flagged", "accepted", "limit", "rows checked", "not looked for", "N")
    return _table(header, rows, len(ordered))


def _baseline(use: BaselineUse | None) -> str:
    """What became of the accepted rows, so that nobody has to read the log for it."""
    if use is None:
        return ""
    judged = f", judged against {use.day}" if use.day else ""
    said = f"entries {use.entries:,}, stale {len(use.stale):,}, expired {len(use.expired):,}{judged}"
    grown = f"; rows grown past what was accepted {len(use.grown):,}" if use.grown else ""
    prune = (
        " `evalspill-guard baseline prune` removes the stale and the expired ones." if use.stale or use.expired else ""
    )
    return f"Baseline {_name(use.path)}: {said}{grown}.{prune}"


def _problems(problems: Sequence[Problem], base: str) -> str:
    rows = (
        (
            _name(flagged.located(base, problem.path)),
            str(problem.line or ""),
            markdown(flagged.short(problem.what, _WHAT)),
        )
        for problem in problems
    )
    if not problems:
        return ""
    return "## Problems\n\n" + _table(("where", "line", "what"), rows, len(problems))


def _sections(result: RunResult, base: str) -> Iterator[str]:
    """The figures and worst rows of every check, then the settings, which are the first to be left out."""
    rows: defaultdict[int, list[Flagged]] = defaultdict(list)
    for row in flagged.open_rows(result, base):
        rows[id(row.check)].append(row)
    for check in result.checks:
        yield _figures(check)
        if rows[id(check)]:
            yield _worst(check, rows[id(check)], base)
    for check in result.checks:
        yield _settings(check)


def _figures(check: CheckResult) -> str:
    said = " ".join((verdict.verdict(check), verdict.not_checked(check), verdict.lengths(check)))
    rows = [(label, f"{count:,}", meaning) for label, count, meaning in verdict.figures(check)]
    heading = f"## {_name(check.name)}: {verdict.state(check)}"
    return f"{heading}\n\n{said}\n\n" + _table(("figure", "count", "meaning"), rows, len(rows))


def _worst(check: CheckResult, rows: Sequence[Flagged], base: str) -> str:
    header = ("eval file", "row", "line", "id", "containment", "coverage", "longest", "first found in")
    cells = (_row(row, base) for row in rows[:WORST])
    title = "Flagged rows" if len(rows) <= WORST else f"The worst {WORST} of {len(rows):,} flagged rows"
    return f"### {title} of {_name(check.name)}\n\n" + _table(header, cells, min(WORST, len(rows)))


def _row(row: Flagged, base: str) -> tuple[str, ...]:
    score = row.score
    found = flagged.short(flagged.found_in(row, base), _MAX_NAME)
    return (
        _name(row.path),
        str(score.row.row),
        str(score.row.line or ""),
        _name(score.row.id or ""),
        "whole row" if score.kind == "whole" else decimal(score.containment),
        decimal(score.coverage),
        str(score.longest),
        markdown(found),
    )


def _settings(check: CheckResult) -> str:
    """As JSON in a fence: no line of it starts with a name, so that none can end the fence."""
    facts = {"n_by_class": dict(check.n_by_class), "n_rule": check.n_rule, "settings": public_settings(check)}
    shown = flagged.short(flagged.ascii_json(facts).decode().rstrip(), _MAX_SETTINGS)
    title = f"<summary>Settings of {_name(check.name)}</summary>"
    return f"<details>{title}\n\n```json\n{shown}\n```\n\n</details>"


def _reports(result: RunResult) -> str:
    """Which files to open; the report folder is the caller's."""
    name = _name(result.checks[0].name) if len(result.checks) == 1 else "*check*"
    return (
        "## Reports\n\n"
        f"In the report folder: `report.json`, and for each check {name}/overlap-report.html (each passage marked), "
        f"{name}/contamination-report.csv, {name}/too-short-to-score.csv and {name}/clean (the eval files without the "
        "flagged rows, of a complete check)."
    )


def _limits() -> str:
    return "## What the method cannot see\n\n" + "\n".join(f"- {text}" for text in CANNOT_SEE)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    """A table of cells that are Markdown already, cut before it gets too long."""
    lines = [_line(header), _line(["---"] * len(header))]
    shown = size = 0
    for row in rows:
        line = _line(row)
        size += len(line.encode())
        if size > _MAX_TABLE:
            break
        lines.append(line)
        shown += 1
    more = f"\n\n{total - shown:,} more in the other reports." if shown < total else ""
    return "\n".join(lines) + more


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _name(text: str) -> str:
    return markdown(flagged.short(text, _MAX_NAME))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
