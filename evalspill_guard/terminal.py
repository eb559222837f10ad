"""What a person sees: tables, problems, progress and the event log. Every line passes the sink; none holds row text
unless asked for with --show-text."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from evalspill_guard.baseline import FlaggedRow
from evalspill_guard.errors import ExitCode
from evalspill_guard.model import Accepted, BaselineUse, CheckResult, RunResult
from evalspill_guard.scan import Progress as Told
from evalspill_guard.sink import safe, safe_lines
from evalspill_guard.tables import Table, figures, place, plain, share, verdict, worst_rows

if TYPE_CHECKING:
    from evalspill_guard.explain import Explanation
    from evalspill_guard.repository import Finding
    from evalspill_guard.setup import Proposal

_MOST_PROBLEMS = 10
_MOST_ROWS = 10
_LOG_EVERY = 30.0  # seconds


def is_hook() -> bool:
    """Whether pre-commit or prek runs this."""
    return bool(os.environ.get("PRE_COMMIT"))


def is_watched(stream: IO[str] | None) -> bool:
    """Whether a person looks at a terminal: hooks and some CI runners give one where nobody does."""
    return stream is not None and stream.isatty() and not is_hook() and not os.environ.get("CI")


def can_ask() -> bool:
    """Whether somebody sits at a terminal and can answer."""
    return is_watched(sys.stdin)


def say(line: str) -> None:
    """Print one line, made harmless."""
    click.echo(safe(line))


def show(table: Table) -> None:
    """A table by rich on a terminal, as plain text elsewhere."""
    if not is_watched(sys.stdout):
        click.echo(safe_lines(plain(table)))
        return
    import rich.box
    import rich.console
    import rich.table
    import rich.text

    drawn = rich.table.Table(title=rich.text.Text(safe(table.title)), title_justify="left", box=rich.box.SIMPLE_HEAD)
    for name in table.header:
        drawn.add_column(name, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(rich.text.Text(safe(cell)) for cell in row))
    rich.console.Console().print(drawn)


def tell(result: RunResult, directory: Path, show_text: bool) -> None:
    """Everything about a run: figures, worst rows, notes, problems, and where the reports are."""
    for check in result.checks:
        show(figures(check))
        still_open = _not_accepted(check)
        if any(score.found for score in still_open.rows):
            show(worst_rows(still_open))
        if check.accepted:
            show(_rows(f"accepted rows of {check.name}", _accepted_rows(check)))
        if show_text:
            _show_passages(check)
        for note in check.notes:
            say(note)
    tell_baseline(result.baseline)
    _tell_problems(result, len(result.problems))
    say(f"reports: {shown(directory)}")


def tell_briefly(result: RunResult, directory: Path) -> None:
    """A red run in a hook: what is wrong and where, on a screen."""
    for check in result.checks:
        say(f"check {check.name}: {verdict(check)}: {check.flagged - check.accepted} of {len(check.rows)} eval rows "
            f"flagged, {check.accepted} accepted, {check.limit} allowed")  # fmt: skip
    for check in [check for check in result.checks if not check.passed][:2]:
        show(worst_rows(_not_accepted(check)))
    tell_baseline(result.baseline, most=3)
    _tell_problems(result, _MOST_PROBLEMS)
    say(f"reports: {shown(directory)}")


def _not_accepted(check: CheckResult) -> CheckResult:
    """The check without its accepted rows: they are shown apart."""
    return replace(check, rows=tuple(score for score in check.rows if not score.accepted))


def _accepted_rows(check: CheckResult) -> list[FlaggedRow]:
    return [FlaggedRow(check.name, check.eval_path(score), score) for score in check.rows if score.accepted]


def _rows(title: str, rows: Sequence[FlaggedRow]) -> Table:
    """Where flagged rows stand and how much they share, the longest passages first."""
    worst = sorted(rows, key=lambda row: -row.score.longest)[:_MOST_ROWS]
    cells = tuple(
        (row.check, place(row.eval_file, row.score.row.line, row.score.row.row), row.score.row.id or "",
         row.score.kind, share(row.score.coverage), str(row.score.longest))
        for row in worst
    )  # fmt: skip
    more = f" (the first {_MOST_ROWS} of {len(rows)})" if len(rows) > _MOST_ROWS else ""
    return Table(title + more, ("check", "eval row", "id", "kind", "coverage", "longest"), cells)


def tell_proposal(proposal: Proposal, *, choices: bool) -> None:
    """What init saw, and what it makes of it."""
    for table in proposal.tables:
        show(table)
    for line in proposal.choices if choices else ():
        say(line)
    say(proposal.estimate)


def tell_snippet(title: str, text: str) -> None:
    """Lines to copy."""
    say(title)
    click.echo(safe_lines(text.rstrip("\n")))


def tell_explanation(told: Explanation) -> None:
    """All about one row, its text included."""
    show(told.table)
    for heading, text in told.texts:
        say(f"  {heading}:")
        for line in text.split("\n"):
            say(f"    {line}")


def tell_findings(findings: Sequence[Finding]) -> None:
    """What doctor found, a line each."""
    for one in findings:
        say(f"{'hint' if one.code == ExitCode.PASSED else 'problem'}: {one.where}: {one.what}; {one.advice}")
    if not findings:
        say("nothing found")


def tell_picked(rows: Sequence[FlaggedRow]) -> None:
    """The rows that are about to be accepted."""
    if rows:
        show(_rows("rows to accept", rows))


def tell_baseline(use: BaselineUse | None, most: int = _MOST_ROWS) -> None:
    """Which entries of the baseline have become useless, and which rows have outgrown theirs."""
    if use is None:
        return
    judged = f", judged against {use.day}" if use.day else ""
    say(f"baseline {use.path}: {use.entries} entries, {len(use.stale)} stale, {len(use.expired)} expired{judged}")
    _tell_some([f"stale: {_entry(one)}: no flagged row has these words" for one in use.stale], most)
    _tell_some([f"expired on {one.expires}: {_entry(one)}" for one in use.expired], most)
    _tell_some(
        [f"grown: check {one.check}: {place(one.eval_file, one.line, one.row)}{f' ({one.id})' if one.id else ''}: "
         f"longest {one.longest}, accepted {one.accepted}" for one in use.grown], most,
    )  # fmt: skip
    if use.stale or use.expired:
        say("`evalspill-guard baseline prune` removes stale and expired entries")


def _entry(entry: Accepted) -> str:
    return f"check {entry.check}: {entry.eval_file}: fingerprint {entry.fingerprint}"


def _tell_some(lines: Sequence[str], most: int) -> None:
    for line in lines[:most]:
        say(line)
    if len(lines) > most:
        say(f"{len(lines) - most} more")


def tell_problems(result: RunResult) -> None:
    """Everything that makes a scan incomplete."""
    _tell_problems(result, len(result.problems))


def _tell_problems(result: RunResult, most: int) -> None:
    for problem in result.problems[:most]:
        where = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        say(f"problem: {where}: {problem.what}")
    if len(result.problems) > most:
        say(f"{len(result.problems) - most} more problems in report.json")
    if result.problems:
        say("The scan is not complete, so its figures prove nothing: mend the problems and run again.")


def _show_passages(check: CheckResult) -> None:
    for score in check.rows:
        if score.evidence:
            passage = " ".join(score.row.text[score.evidence.first : score.evidence.last].split())
            say(f"{place(check.eval_path(score), score.row.line, score.row.row)}: {passage}")


def tell_in_form(result: RunResult, form: str, base: str) -> None:
    """Print one of the machine-readable forms; none of them holds row text."""
    from evalspill_guard.reports import CI_REPORTS, github, report_json

    names = {"sarif": "results.sarif", "junit": "junit.xml", "gitlab": "gl-code-quality.json"}
    if form == "github":
        click.echo(github(result, base), nl=False)
    elif form == "json":
        click.echo(report_json(replace(result, text_policy="none")).rstrip(b"\n"))
    else:
        click.echo(CI_REPORTS[names[form]](result, base), nl=False)


def shown(path: Path) -> str:
    """A path as a person here would write it."""
    try:
        return path.relative_to(Path.cwd()).as_posix() or "."
    except ValueError:
        return path.as_posix()


class Progress:
    """How far a scan is: a bar on a terminal, a line every half minute elsewhere, nothing in a hook."""

    def __enter__(self) -> Told | None:
        self._bar: Any = None
        self._began = self._told = time.monotonic()
        if is_hook() or sys.stderr is None:
            return None
        return self._drawn() if is_watched(sys.stderr) else self._log

    def _drawn(self) -> Told:
        import rich.console
        import rich.progress as bars

        columns = (bars.TextColumn("scanning"), bars.BarColumn(), bars.DownloadColumn(),
                   bars.TransferSpeedColumn(), bars.TimeRemainingColumn())  # fmt: skip
        self._bar = bars.Progress(*columns, console=rich.console.Console(stderr=True), transient=True)
        self._bar.start()
        task = self._bar.add_task("scanning", total=None)
        return lambda done, total, _: self._bar.update(task, completed=done, total=total)

    def _log(self, done: int, total: int, files: int) -> None:
        now = time.monotonic()
        if now - self._told < _LOG_EVERY:
            return
        self._told = now
        speed = done / 1e6 / (now - self._began)
        with suppress(OSError):
            shown = f"scanned {done / 1e6:.0f} of {total / 1e6:.0f} MB, {speed:.0f} MB/s, files left: {files}"
            click.echo(shown, err=True)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class _Sink(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return safe(super().format(record))


def log_events(verbose: bool) -> None:
    """Log every step on stderr, or none."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Sink("%(message)s"))
    logger = logging.getLogger("evalspill_guard")
    logger.handlers[:] = [handler] if verbose else []
    logger.setLevel(logging.INFO if verbose else logging.NOTSET)
