"""The command line: the one place that prints and exits."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalspill_guard import __version__
from evalspill_guard.cli_baseline import baseline
from evalspill_guard.cli_options import baseline_of, baseline_option, config_option, load_config, run_scan, scan_options
from evalspill_guard.cli_purge import purge
from evalspill_guard.cli_setup import doctor, explain, fields, init, schema, validate
from evalspill_guard.errors import ConfigError, EvalSpillError, ExitCode
from evalspill_guard.sink import safe, safe_lines

if TYPE_CHECKING:
    from evalspill_guard.config import Config
    from evalspill_guard.model import RunResult
    from evalspill_guard.pipeline import Run

FORMATS = ("text", "json", "github", "gitlab", "junit", "sarif")
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """Ends well where the reader of stdout went away; click itself would exit 1, which is the gate's to say."""

    def make_context(self, *given: Any, **named: Any) -> click.Context:  # --help prints here
        with _heard():
            return super().make_context(*given, **named)

    def invoke(self, ctx: click.Context) -> Any:
        with _heard():
            return super().invoke(ctx)


@contextmanager
def _heard() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(0) from None


@click.group(cls=_Commands, context_settings=CONTEXT, invoke_without_command=True)
@click.version_option(__version__, prog_name="evalspill-guard", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, /) -> None:
    """Do any of the questions in an eval set already appear inside the training data?

    \b
    evalspill-guard init      propose an evalspill.yaml for the data here
    evalspill-guard check     scan, write reports, and gate by exit code

    Exit codes: 0 passed, 1 past fail_over, 2 wrong use or config, 3 the scan is not complete, 4 internal error.
    """
    if context.invoked_subcommand is None:
        click.echo(_what_next(context), err=True)
        context.exit(ExitCode.USAGE)


def _what_next(context: click.Context) -> str:
    """Where there is a config the commands; else the first steps."""
    from evalspill_guard.config import NAMES

    if any(Path(name).exists() for name in NAMES):
        return context.get_help()
    return (
        "Usage: evalspill-guard COMMAND. There is no evalspill.yaml here; in the folder of a dataset repository:\n"
        "  evalspill-guard init      looks for training and eval files, and proposes an evalspill.yaml\n"
        "  evalspill-guard --help    lists the commands"
    )


@cli.command()
@config_option
@click.option("--reports-dir", metavar="DIR", help="Where reports go; default: reports.dir of the config.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="What is printed. Default: text; in a GitHub job text and annotations.",
)
@baseline_option
@click.option("--strict-baseline", is_flag=True, help="Exit 2 where a row of the baseline is no longer flagged.")
@scan_options
@click.option("--training-records", is_flag=True, help="List the training records that hold flagged rows, too.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 instead of 1; 2, 3 and 4 stay.")
@click.option("--show-text", is_flag=True, help="Print the passages too; refused where CI is set.")
@click.option("-q", "--quiet", is_flag=True, help="Print no text when the gate passes.")
@click.pass_context
def check(
    context: click.Context,
    /,
    config_path: Path | None,
    reports_dir: str | None,
    form: str | None,
    baseline_path: str | None,
    strict_baseline: bool,
    training_records: bool,
    exit_zero: bool,
    show_text: bool,
    quiet: bool,
    **scan: Any,
) -> None:
    """Scan the training files for the eval rows, write the reports, and exit by the gate.

    \b
    evalspill-guard check
    evalspill-guard check -c data/evalspill.yaml --format sarif > results.sarif
    """
    from dataclasses import replace

    from evalspill_guard.pipeline import strict

    if show_text and os.environ.get("CI"):
        raise click.UsageError("--show-text prints row text, and CI is set: a job log is no place for it")
    config = _with_reports_in(load_config(config_path), reports_dir)
    if training_records:
        config = replace(config, reports=replace(config.reports, training=True))
    found = run_scan(config, baseline_of(config, baseline_path), **scan)
    result = _write(config, replace(found, result=strict(found.result)) if strict_baseline else found)
    with suppress(BrokenPipeError):  # the reports stand, and the gate's answer is the exit code
        _tell(result, config, form, show_text, quiet)
    code = result.exit_code
    context.exit(0 if exit_zero and code == ExitCode.FAILED else code)


def _with_reports_in(config: Config, folder: str | None) -> Config:
    from dataclasses import replace

    if folder is None:
        return config
    if not folder.strip():
        raise click.UsageError("--reports-dir is empty: name a folder")
    here = replace(config.reports, dir=os.path.abspath(folder))  # noqa: PTH100
    return replace(config, reports=here, other_reports=(config.reports.dir,))


def _write(config: Config, found: Run) -> RunResult:
    """Write the reports; where an eval file changed meanwhile the run is incomplete and its clean file left out."""
    from evalspill_guard.model import Problem
    from evalspill_guard.pipeline import incomplete
    from evalspill_guard.reports import base_of, write_run
    from evalspill_guard.reports.clean import InputChanged

    directory, base = config.base / config.reports.dir, base_of(config.base)
    try:
        write_run(found.result, directory, found.eval_files, base)
    except InputChanged as error:
        result = incomplete(found.result, Problem(error.path, None, "changed during the scan; run again"))
        write_run(result, directory, found.eval_files, base)
        return result
    return found.result


def _tell(result: RunResult, config: Config, form: str | None, show_text: bool, quiet: bool) -> None:
    from evalspill_guard import terminal
    from evalspill_guard.reports import base_of

    directory, base = config.base / config.reports.dir, base_of(config.base)
    green = result.exit_code == ExitCode.PASSED
    if form in (None, "text"):
        if green and (quiet or terminal.is_hook()):
            pass
        elif terminal.is_hook():
            terminal.tell_briefly(result, directory)
        else:
            terminal.tell(result, directory, show_text)
    if form is None and os.environ.get("GITHUB_ACTIONS") == "true":
        form = "github"
    if form not in (None, "text"):
        terminal.tell_in_form(result, str(form), base)


for command in (purge, init, baseline, explain, doctor, fields, validate, schema):
    cli.add_command(command)


def _code_of(error: BaseException) -> ExitCode:
    if isinstance(error, click.exceptions.Exit):
        return ExitCode(error.exit_code)
    if _completed(error):
        return ExitCode.PASSED
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, click.ClickException):
        return ExitCode.USAGE
    return error.code if isinstance(error, EvalSpillError) else ExitCode.INTERNAL


def _completed(error: BaseException) -> bool:
    """Whether click has told a shell how to complete a command; any other SystemExit, a plugin's, is a fault."""
    return isinstance(error, SystemExit) and not error.code and "_EVALSPILL_GUARD_COMPLETE" in os.environ


def _complain(error: BaseException) -> None:
    if isinstance(error, click.exceptions.Exit) or _completed(error):
        return
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        click.echo("interrupted", err=True)
    elif isinstance(error, click.ClickException):
        error.show()
    elif isinstance(error, EvalSpillError):
        label = "" if isinstance(error, ConfigError) else "error: "
        click.echo(safe_lines(label + str(error)), err=True)
    else:  # the type and place of a fault, never its message: that may hold row text
        click.echo(safe(f"internal error: {type(error).__name__} at {_where(error)}; please report it"), err=True)


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
        with suppress(OSError):  # nobody may listen
            _complain(error)
        return int(_code_of(error))
    return int(result or 0)


def _as_interrupt(number: int, frame: object) -> None:
    """What a CI system sends to a cancelled job: nothing must be left running or lying about."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as where a shell runs it in the background
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def main() -> None:
    """The console script."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = run_command()
    for number, stream in enumerate((sys.stdout, sys.stderr), start=1):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)  # or the interpreter's last flush would change the code
    sys.exit(code)
