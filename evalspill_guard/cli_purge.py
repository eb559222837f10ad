"""The command that takes what leaks out of the training data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalspill_guard.cli_options import baseline_of, baseline_option, config_option, load_config, run_scan, scan_options
from evalspill_guard.errors import Unreadable

if TYPE_CHECKING:
    from evalspill_guard.model import CheckResult
    from evalspill_guard.purge import Purged
    from evalspill_guard.purgewriter import Outcome


@click.command()
@config_option
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new or empty folder.")
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would go.")
@click.option("--list", "listed", type=click.Path(path_type=Path), metavar="FILE", help="Write the records that go as CSV.")
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
    from evalspill_guard.cli_options import means_of
    from evalspill_guard.purge import plan
    from evalspill_guard.purgewriter import measure, refuse_folder, write

    config = load_config(config_path)
    refuse_folder(out, config)
    config = replace(config, reports=replace(config.reports, training=False))
    found = run_scan(config, baseline_of(config, baseline_path), **scan)
    if not found.result.complete:
        terminal.tell_problems(found.result)
        raise Unreadable("nothing was written: an incomplete scan does not know all records that leak")
