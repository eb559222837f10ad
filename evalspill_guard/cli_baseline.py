"""The commands that accept known overlap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalspill_guard.cli_options import (
    baseline_of,
    baseline_option,
    complete,
    config_option,
    load_config,
    run_scan,
    scan_options,
    together,
)
from evalspill_guard.errors import UsageError
from evalspill_guard.sink import safe

if TYPE_CHECKING:
    from evalspill_guard.baseline import Baseline, FlaggedRow
    from evalspill_guard.config import Config
    from evalspill_guard.model import Accepted


@click.group()
def baseline() -> None:
    """Accept known overlap row by row, each with a reason, so that the gate passes until it grows.

    \b
    evalspill-guard baseline create --reason "quoted in the handbook on purpose"
    evalspill-guard baseline update --row evals/qa.jsonl#12 --reason "public example" --expires 2030-12-31
    evalspill-guard baseline prune
    """


_accept_options = together(
    config_option,
    baseline_option,
    click.option("--reason", metavar="TEXT", help="Why the rows may stay; asked for on a terminal."),
    click.option("--expires", metavar="DATE", help="The last day on which they are accepted, such as 2030-12-31."),
    click.option("--check", "checks", multiple=True, metavar="NAME", help="Only rows of this check; may be repeated."),
    click.option("--row", "rows", multiple=True, metavar="FILE#ROW", help="Only this row; may be repeated."),
    scan_options,
)


@baseline.command()
@_accept_options
def create(config_path: Path | None, baseline_path: str | None, **options: Any) -> None:
    """Accept the rows that are flagged now, and write the baseline.

    \b
    evalspill-guard baseline create --reason "quoted in the handbook on purpose"
    """
    config = load_config(config_path)
    before = baseline_of(config, baseline_path, required=False)
    if before.raw is not None:
        raise UsageError(f"{before.shown} is there already: `evalspill-guard baseline update` adds to it")
    _accept(config, before, lambda rows: rows, **options)


@baseline.command()
@_accept_options
@click.option("--all", "again", is_flag=True, help="Also rows that were accepted, and have grown or expired.")
def update(config_path: Path | None, baseline_path: str | None, again: bool, **options: Any) -> None:
    """Accept flagged rows that the baseline does not hold yet, and those named by --row as they are now.

    \b
    evalspill-guard baseline update --reason "public example" --row evals/qa.jsonl#12
    """
    from evalspill_guard.baseline import to_add

    config = load_config(config_path)
    before = baseline_of(config, baseline_path, required=True)
    named = bool(options["rows"])
    _accept(config, before, lambda rows: rows if named else to_add(before, rows, again), **options)


@baseline.command()
@config_option
@baseline_option
@scan_options
def prune(config_path: Path | None, baseline_path: str | None, **scan: Any) -> None:
    """Remove entries whose row is no longer flagged, or whose last day is past.

    \b
    evalspill-guard baseline prune
    """
    from evalspill_guard.baseline import pruned, write
    from evalspill_guard.terminal import tell_baseline

    config = load_config(config_path)
    before = baseline_of(config, baseline_path, required=True)
    use = complete(run_scan(config, before, **scan)).baseline
    left = pruned(before.entries, use) if use else []
    tell_baseline(use)
    write(before, left)
    click.echo(safe(f"{before.shown}: {len(before.entries) - len(left)} entries removed, {len(left)} left"))


def _accept(
    config: Config,
    before: Baseline,
    pick: Callable[[list[FlaggedRow]], list[FlaggedRow]],
    reason: str | None,
    expires: str | None,
    checks: tuple[str, ...],
    rows: tuple[str, ...],
    **scan: Any,
) -> None:
    """Scan, and write the picked rows of those that are flagged into the baseline."""
    from evalspill_guard import terminal
    from evalspill_guard.baseline import chosen, expiry, with_rows, write

    if not (terminal.can_ask() if reason is None else reason.strip()):
        raise click.UsageError("--reason is needed: say why the rows may stay")
    last_day = expiry(expires) if expires else None
    result = complete(run_scan(config, before, **scan))
    picked = pick(chosen(result.checks, checks, rows))
    terminal.tell_baseline(result.baseline)
    terminal.tell_picked(picked)
    if picked and reason is None:
        reason = click.prompt("Why may these rows stay?")
    entries: list[Accepted] = with_rows(before.entries, picked, reason, last_day) if reason else list(before.entries)
    write(before, entries)
    click.echo(safe(f"{before.shown}: {len(picked)} rows accepted, {len(entries)} entries"))
