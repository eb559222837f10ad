"""The command line: the one place that prints and exits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalspill_guard import __version__
from evalspill_guard.errors import ConfigError, EvalSpillError, ExitCode
from evalspill_guard.sink import safe, safe_lines

if TYPE_CHECKING:
    from evalspill_guard.config import Config
    from evalspill_guard.model import RunResult
    from evalspill_guard.tables import Table

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="evalspill-guard", message="%(prog)s %(version)s")
def cli() -> None:
    """Do any of the questions in an eval set already appear inside the training data?

    \b
    evalspill-guard init data/train evals    propose an evalspill.yaml
    evalspill-guard check                    scan, write reports, and gate by exit code

    Exit codes: 0 passed, 1 past fail_over, 2 wrong use or config, 3 the scan is not complete, 4 internal error.
    """


def _config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-c", "--config", "config_path", type=click.Path(path_type=Path), metavar="FILE",
        help="Config file; default: evalspill.yaml or evalspill.yml here.",
    )(command)  # fmt: skip


def _load(config_path: Path | None) -> Config:
    from evalspill_guard.config import find, load

    return load(config_path if config_path is not None else find(Path.cwd()))


@cli.command()
@_config_option
@click.option("--reports-dir", metavar="DIR", help="Where reports go; default: reports.dir of the config.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What is printed.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 instead of 1; 2, 3 and 4 stay.")
@click.option("--show-text", is_flag=True, help="Print the passages too; refused where CI is set.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing when the gate passes.")
@click.option("-v", "--verbose", is_flag=True, help="Log every file opened or written, and each choice made.")
@click.pass_context
def check(
    context: click.Context,
    config_path: Path | None,
    reports_dir: str | None,
    form: str,
    exit_zero: bool,
    show_text: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Scan the training files for the eval rows, write the reports, and exit by the gate."""
    from dataclasses import replace

    from evalspill_guard.model import Problem
    from evalspill_guard.pipeline import incomplete, run
    from evalspill_guard.reports import write_run
    from evalspill_guard.reports.clean import InputChanged

    if show_text and os.environ.get("CI"):
        raise click.UsageError("--show-text prints row text, and CI is set: a job log is no place for it")
    _log_to_stderr(verbose)
    config = _load(config_path)
    if reports_dir is not None:
        config = replace(config, reports=replace(config.reports, dir=os.path.abspath(reports_dir)))  # noqa: PTH100
    with _progress() as progress:
        found = run(config, progress)
    directory = config.base / config.reports.dir
    result = found.result
    try:
        write_run(result, directory, found.eval_files)
    except InputChanged as error:
        result = incomplete(result, Problem(error.path, None, "changed during the scan; run again"))
        write_run(result, directory, found.eval_files)
    code = result.exit_code
    if not (quiet and code == ExitCode.PASSED):
        _tell(result, directory, form, show_text)
    context.exit(0 if exit_zero and code == ExitCode.FAILED else code)


def _tell(result: RunResult, directory: Path, form: str, show_text: bool) -> None:
    from dataclasses import replace

    from evalspill_guard.reports.json_report import report_json
    from evalspill_guard.tables import figures, worst_rows

    if form == "json":
        click.echo(report_json(replace(result, text_policy="none")).decode())
        return
    for one in result.checks:
        _show(figures(one))
        if any(score.found for score in one.rows):
            _show(worst_rows(one))
        if show_text:
            for score in one.rows:
                if score.evidence:
                    passage = " ".join(score.row.text[score.evidence.first : score.evidence.last].split())
                    click.echo(safe(f"{one.eval_path(score)}:{score.row.line}: {passage}"))
        for note in one.notes:
            click.echo(safe(note))
    for problem in result.problems:
        place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        click.echo(safe(f"problem: {place}: {problem.what}"))
    if result.problems:
        click.echo("The scan is not complete, so its figures prove nothing: mend the problems and run again.")
    click.echo(safe(f"reports: {_shown(directory)}"))


def _shown(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def _show(table: Table) -> None:
    """A table by rich on a terminal, as plain text elsewhere."""
    from evalspill_guard.tables import plain

    if not (sys.stdout.isatty() and not os.environ.get("PRE_COMMIT")):
        click.echo(safe_lines(plain(table)))
        return
    import rich.box
    import rich.console
    import rich.table
    import rich.text

    drawn = rich.table.Table(title=safe(table.title), title_justify="left", box=rich.box.SIMPLE_HEAD)
    for name in table.header:
        drawn.add_column(name, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(rich.text.Text(safe(cell)) for cell in row))
    rich.console.Console().print(drawn)


class _Progress:
    """A bar with bytes, speed and time left, on a terminal; nothing elsewhere."""

    def __enter__(self) -> Callable[[int, int], None] | None:
        self._bar = None
        if not sys.stderr.isatty() or os.environ.get("PRE_COMMIT"):
            return None
        import rich.console
        import rich.progress as bars

        columns = (bars.TextColumn("scanning"), bars.BarColumn(), bars.DownloadColumn(),
                   bars.TransferSpeedColumn(), bars.TimeRemainingColumn())  # fmt: skip
        self._bar = bars.Progress(*columns, console=rich.console.Console(stderr=True), transient=True)
        self._bar.start()
        task = self._bar.add_task("scanning", total=None)
        bar = self._bar
        return lambda done, total: bar.update(task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


_progress = _Progress


def _log_to_stderr(verbose: bool) -> None:
    if not verbose:
        return
    import logging

    class Sink(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return safe(super().format(record))

    handler = logging.StreamHandler()
    handler.setFormatter(Sink("%(message)s"))
    logger = logging.getLogger("evalspill_guard")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)


@cli.command()
@click.argument("train")
@click.argument("evals", metavar="EVAL")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("evalspill.yaml"), help="The file to write."
)
@click.option("--force", is_flag=True, help="Replace a config that is there.")
def init(train: str, evals: str, output: Path, force: bool) -> None:
    """Look at training and eval data (files, globs or folders), show their fields, and write evalspill.yaml."""
    from evalspill_guard.setup import propose_config

    if output.exists() and not force:
        raise click.UsageError(f"{output} is there already; --force replaces it")
    proposal = propose_config(train, evals, output)
    for table in proposal.tables:
        _show(table)
    output.write_text(proposal.text, encoding="utf-8")
    proposal.schema_path.write_bytes(proposal.schema)
    click.echo(safe(f"wrote {output} and {proposal.schema_path}; next: evalspill-guard check -c {output}"))


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def fields(files: tuple[str, ...]) -> None:
    """Show the leaf paths of files, how well they are filled, and which would be compared."""
    from evalspill_guard.setup import tables_of

    for table in tables_of(files):
        _show(table)


@cli.command()
@click.argument("configs", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@_config_option
def validate(configs: tuple[Path, ...], config_path: Path | None) -> None:
    """Check a config against its schema; reads no data."""
    for path in configs or (config_path,):
        config = _load(path)
        click.echo(safe(f"{config.path.name} is valid: {len(config.checks)} checks"))


@cli.command()
def schema() -> None:
    """Print the JSON Schema of evalspill.yaml."""
    from evalspill_guard.setup import schema_bytes

    click.echo(schema_bytes().decode(), nl=False)


def _complain(error: BaseException) -> ExitCode:
    if isinstance(error, click.exceptions.Exit):
        return ExitCode(error.exit_code)
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        return ExitCode.USAGE
    if isinstance(error, EvalSpillError):
        label = "" if isinstance(error, ConfigError) else "error: "
        click.echo(safe_lines(label + str(error)), err=True)
        return error.code
    # The type and place of a fault, never its message: that may hold row text.
    click.echo(safe(f"internal error: {type(error).__name__} at {_where(error)}; please report it"), err=True)
    return ExitCode.INTERNAL


def _where(error: BaseException) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "evalspill_guard" in frame.filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "unknown place"


def run_command(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        result = cli.main(args=arguments, prog_name="evalspill-guard", standalone_mode=False)
    except BaseException as error:
        if isinstance(error, SystemExit):
            return int(error.code or 0)
        return int(_complain(error))
    return int(result or 0)


def main() -> None:
    """The console script."""
    sys.exit(run_command())
