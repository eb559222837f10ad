"""The command that takes what leaks out of the training data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalspill_guard.cli_options import baseline_of, baseline_option, config_option, load_config, run_scan, scan_options
from evalspill_guard.errors import Unreadable

if TYPE_CHECKING:
    from evalspill_guard.model import CheckResult
    from evalspill_guard.purge import Purged
    from evalspill_guard.purgewriter import Outcome
    from evalspill_guard.tables import Table

_MOST = 20


@click.command()
@config_option
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new or empty folder.")
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would go.")
@click.option(
    "--list", "listed", type=click.Path(path_type=Path), metavar="FILE", help="Write the records that go as CSV."
)
@baseline_option
@scan_options
def purge(
    config_path: Path | None, out: Path, dry_run: bool, listed: Path | None, baseline_path: str | None, **scan: Any
) -> None:
    """Write the training files without the records that hold flagged rows; the other bytes stay as they are.

    \b
    evalspill-guard purge --out data/purged --dry-run
    evalspill-guard purge --out data/purged --list purged-records.csv
    """
    from dataclasses import replace

    from evalspill_guard import terminal
    from evalspill_guard.purge import plan
    from evalspill_guard.purgefiles import starved
    from evalspill_guard.purgewriter import measure, refuse_folder, refuse_list, refuse_paths, set_aside, write
    from evalspill_guard.reports.training_csv import training_csv

    config = load_config(config_path)
    refuse_folder(out, config)
    config = replace(config, reports=replace(config.reports, training=False))
    baseline = baseline_of(config, baseline_path)
    found = run_scan(config, baseline, **scan)
    if not found.result.complete:
        terminal.tell_problems(found.result)
        raise Unreadable("nothing was written: an incomplete scan does not know all records that leak")
    refuse_paths(out, config, found.trained)
    if listed:
        refuse_list(listed, out, config, baseline.path, found.trained)
    with terminal.Progress() as progress:
        purged = plan(found.trained, found.result.checks, found.means, progress)
    gone = tuple(record for one in purged for record in one.gone.values())
    with set_aside(listed, training_csv(replace(found.result, training=gone))):
        done = measure(purged) if dry_run else write(purged, out)
    terminal.show(_by_file(done))
    terminal.show(_by_check(purged, found.result.checks))
    for emptied in (one.path for one in done if one.emptied):
        terminal.say(f"{emptied}: no record is left, so no file is written for it")
    for path, empty, left in starved(purged, found.trained.checks):
        terminal.say(f"{path}: {empty} of the {left} records left yield no text: a check of what is left is incomplete")
    terminal.say(f"{'dry run: nothing written to' if dry_run else 'written:'} {terminal.shown(out)}")


def _by_file(done: Sequence[Outcome]) -> Table:
    """The files of which records go, most bytes first, and all files together."""
    from evalspill_guard.tables import Table

    cut = sorted((one for one in done if one.records), key=lambda one: (-one.bytes, one.path.encode()))
    cells = [(one.path, f"{one.records} of {one.of_records}", str(one.bytes)) for one in cut[:_MOST]]
    if len(cut) > _MOST:
        more = cut[_MOST:]
        cells.append(
            (f"{len(more)} more files", str(sum(one.records for one in more)), str(sum(m.bytes for m in more)))
        )
    records, of_records = sum(one.records for one in done), sum(one.of_records for one in done)
    cells.append((f"all {len(done)} files", f"{records} of {of_records}", str(sum(one.bytes for one in done))))
    return Table("training records that go", ("file", "records", "bytes"), tuple(cells))


def _together(name: str, done: Sequence[Outcome]) -> tuple[str, str, str]:
    records, of_records = sum(one.records for one in done), sum(one.of_records for one in done)
    return name, f"{records} of {of_records}", str(sum(one.bytes for one in done))


def _by_check(purged: Sequence[Purged], checks: Sequence[CheckResult]) -> Table:
    """How many of these records hold rows of each check, and how many rows these are."""
    from evalspill_guard.tables import Table

    held = [(record, row) for one in purged for record in one.gone.values() for row in record.rows]
    cells = []
    for number, check in enumerate(checks):
        mine = [(record, row.row) for record, row in held if row.check == number]
        records = {(record.path, record.record) for record, _ in mine}
        cells.append((check.name, str(len(records)), str(len({row for _, row in mine}))))
    return Table("by check", ("check", "records", "eval rows in them"), tuple(cells))
