"""The command line: the one place that prints and exits."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalspill_guard import __version__
from evalspill_guard.errors import ConfigError, EvalSpillError, ExitCode, UsageError
from evalspill_guard.sink import safe, safe_lines

if TYPE_CHECKING:
    from evalspill_guard.baseline import Baseline, FlaggedRow
    from evalspill_guard.config import Config
    from evalspill_guard.model import Accepted, RunResult
    from evalspill_guard.pipeline import Run
    from evalspill_guard.scan import Means

FORMATS = ("text", "json", "github", "gitlab", "junit", "sarif")
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


def _together(*options: Callable[[Any], Any]) -> Callable[..., Any]:
    """Several options as one decorator."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


_scan_options = _together(
    click.option(
        "-j", "--jobs", type=click.IntRange(min=1), help="Worker processes; default: the processors usable here."
    ),
    click.option(
        "--engine", metavar="NAME", envvar="EVALSPILL_ENGINE", help="serial, process, dask or module:factory."
    ),
    click.option("--scheduler", metavar="URL", envvar="EVALSPILL_SCHEDULER", help="Of dask, such as tcp://host:8786."),
    click.option(
        "--cache-dir", type=click.Path(path_type=Path), metavar="DIR", help="Where results of shards are kept."
    ),
    click.option("--no-cache", is_flag=True, help="Scan everything; keep nothing."),
    click.option("-v", "--verbose", is_flag=True, help="Log every file opened or written, and each choice made."),
)
_baseline_option = click.option(
    "--baseline", "baseline_path", metavar="FILE", help="The accepted rows; default: baseline of the config."
)


def _load(config_path: Path | None) -> Config:
    from evalspill_guard.config import find, load

    return load(config_path if config_path is not None else find(Path.cwd()))


@cli.command()
@_config_option
@click.option("--reports-dir", metavar="DIR", help="Where reports go; default: reports.dir of the config.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="What is printed. Default: text; in a GitHub job text and annotations.",
)
@_baseline_option
@click.option("--strict-baseline", is_flag=True, help="Exit 2 where a row of the baseline is no longer flagged.")
@_scan_options
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
    config = _with_reports_in(_load(config_path), reports_dir)
    found = _scan(config, _baseline(config, baseline_path), **scan)
    result = _write(config, replace(found, result=strict(found.result)) if strict_baseline else found)
    with suppress(BrokenPipeError):  # the reports stand, and the gate's answer is the exit code
        _tell(result, config, form, show_text, quiet)
    code = result.exit_code
    context.exit(0 if exit_zero and code == ExitCode.FAILED else code)


def _scan(config: Config, baseline: Baseline, verbose: bool, **means: Any) -> Run:
    """What a run finds out; progress and, where asked for, its events go to stderr."""
    from evalspill_guard import terminal
    from evalspill_guard.pipeline import run

    terminal.log_events(verbose)
    gc.set_threshold(200_000)  # records make no cycles: looking for them costs a sixth of the reading
    with terminal.Progress() as progress:
        return run(config, progress, _means(**means), baseline)


def _baseline(config: Config, named: str | None, required: bool | None = None) -> Baseline:
    """The baseline named on the command line, else the config's."""
    from evalspill_guard.baseline import load

    if named is not None and not named.strip():
        raise click.UsageError("--baseline is empty: name a file")
    path = config.base / config.baseline if named is None else Path(named).absolute()
    must_be_there = config.baseline_named or named is not None if required is None else required
    return load(path, named or config.baseline, must_be_there)


def _means(
    jobs: int | None, engine: str | None, scheduler: str | None, cache_dir: Path | None, no_cache: bool
) -> Means:
    """What the scan may use."""
    from evalspill_guard.cache import Cache, default_folder
    from evalspill_guard.engine import choose
    from evalspill_guard.scan import Means

    folder = cache_dir or default_folder()
    return Means(choose(engine, jobs, scheduler), None if no_cache else Cache(folder), None if no_cache else folder)


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
        if terminal.is_hook() and not green:
            terminal.tell_briefly(result, directory)
        elif not (quiet and green):
            terminal.tell(result, directory, show_text)
    if form is None and os.environ.get("GITHUB_ACTIONS") == "true":
        form = "github"
    if form not in (None, "text"):
        terminal.tell_in_form(result, str(form), base)


@cli.group()
def baseline() -> None:
    """Accept known overlap row by row, each with a reason, so that the gate passes until it grows.

    \b
    evalspill-guard baseline create --reason "quoted in the handbook on purpose"
    evalspill-guard baseline update --row evals/qa.jsonl#12 --reason "public example" --expires 2030-12-31
    evalspill-guard baseline prune
    """


_accept_options = _together(
    _config_option,
    _baseline_option,
    click.option("--reason", metavar="TEXT", help="Why the rows may stay; asked for on a terminal."),
    click.option("--expires", metavar="DATE", help="The last day on which they are accepted, such as 2030-12-31."),
    click.option("--check", "checks", multiple=True, metavar="NAME", help="Only rows of this check; may be repeated."),
    click.option("--row", "rows", multiple=True, metavar="FILE#ROW", help="Only this row; may be repeated."),
    _scan_options,
)


@baseline.command()
@_accept_options
def create(config_path: Path | None, baseline_path: str | None, **options: Any) -> None:
    """Accept the rows that are flagged now, and write the baseline."""
    config = _load(config_path)
    before = _baseline(config, baseline_path, required=False)
    if before.raw is not None:
        raise UsageError(f"{before.shown} is there already: `evalspill-guard baseline update` adds to it")
    _accept(config, before, lambda rows: rows, **options)


@baseline.command()
@_accept_options
@click.option("--all", "again", is_flag=True, help="Also rows that were accepted, and have grown or expired.")
def update(config_path: Path | None, baseline_path: str | None, again: bool, **options: Any) -> None:
    """Accept flagged rows that the baseline does not hold yet, and those named by --row as they are now."""
    from evalspill_guard.baseline import to_add

    config = _load(config_path)
    before = _baseline(config, baseline_path, required=True)
    named = bool(options["rows"])
    _accept(config, before, lambda rows: rows if named else to_add(before, rows, again), **options)


@baseline.command()
@_config_option
@_baseline_option
@_scan_options
def prune(config_path: Path | None, baseline_path: str | None, **scan: Any) -> None:
    """Remove entries whose row is no longer flagged, or whose last day is past."""
    from evalspill_guard.baseline import pruned, write
    from evalspill_guard.terminal import tell_baseline

    config = _load(config_path)
    before = _baseline(config, baseline_path, required=True)
    use = _complete(_scan(config, before, **scan)).baseline
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
    result = _complete(_scan(config, before, **scan))
    picked = pick(chosen(result.checks, checks, rows))
    terminal.tell_baseline(result.baseline)
    terminal.tell_picked(picked)
    if picked and reason is None:
        reason = click.prompt("Why may these rows stay?")
    entries: list[Accepted] = with_rows(before.entries, picked, reason, last_day) if reason else list(before.entries)
    write(before, entries)
    click.echo(safe(f"{before.shown}: {len(picked)} rows accepted, {len(entries)} entries"))


def _complete(found: Run) -> RunResult:
    """The result; raises Unreadable after saying why the scan is not complete."""
    from evalspill_guard.errors import Unreadable
    from evalspill_guard.terminal import tell_problems

    if not found.result.complete:
        tell_problems(found.result)
        raise Unreadable("the baseline stays as it is")
    return found.result


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
    from evalspill_guard.terminal import show

    if output.exists() and not force:
        raise click.UsageError(f"{output} is there already; --force replaces it")
    proposal = propose_config(train, evals, output)
    for table in proposal.tables:
        show(table)
    output.write_text(proposal.text, encoding="utf-8")
    proposal.schema_path.write_bytes(proposal.schema)
    click.echo(safe(f"wrote {output} and {proposal.schema_path}; next: evalspill-guard check -c {output}"))


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def fields(files: tuple[str, ...]) -> None:
    """Show the leaf paths of files, how well they are filled, and which would be compared."""
    from evalspill_guard.setup import tables_of
    from evalspill_guard.terminal import show

    for table in tables_of(files):
        show(table)


@cli.command()
@click.argument("configs", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@_config_option
def validate(configs: tuple[Path, ...], config_path: Path | None) -> None:
    """Check a config against its schema; reads no data."""
    wrong = []
    for path in (*configs, *([config_path] if config_path or not configs else [])):
        try:
            config = _load(path)
        except UsageError as error:
            wrong.append(error)
        else:
            click.echo(safe(f"{config.path} is valid; checks: {len(config.checks)}"))
    if wrong:
        raise UsageError("\n".join(map(str, wrong)))


@cli.command()
def schema() -> None:
    """Print the JSON Schema of evalspill.yaml."""
    from evalspill_guard.setup import schema_bytes

    click.echo(schema_bytes().decode(), nl=False)


def _code_of(error: BaseException) -> ExitCode:
    if isinstance(error, click.exceptions.Exit):
        return ExitCode(error.exit_code)
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, click.ClickException):
        return ExitCode.USAGE
    return error.code if isinstance(error, EvalSpillError) else ExitCode.INTERNAL


def _complain(error: BaseException) -> None:
    if isinstance(error, click.exceptions.Exit):
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
    except SystemExit:  # click's way to say that the reader of stdout went away
        return 0
    except BaseException as error:
        with suppress(OSError):  # nobody may listen
            _complain(error)
        return int(_code_of(error))
    return int(result or 0)


def main() -> None:
    """The console script."""
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
