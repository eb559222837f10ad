"""What several commands have in common: their options, and the steps from a config to a result."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from evalspill_guard.baseline import Baseline
    from evalspill_guard.config import Config
    from evalspill_guard.model import RunResult
    from evalspill_guard.pipeline import Run
    from evalspill_guard.scan import Means


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The config that a command works on."""
    return click.option(
        "-c", "--config", "config_path", type=click.Path(path_type=Path), metavar="FILE",
        help="Config file; default: evalspill.yaml or evalspill.yml here.",
    )(command)  # fmt: skip


def together(*options: Callable[[Any], Any]) -> Callable[..., Any]:
    """Several options as one decorator."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


def _no_code_from_outside(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """A factory is code of the user's, and only the command line may name it."""
    in_environment = context.get_parameter_source(str(option.name)) is ParameterSource.ENVIRONMENT
    if in_environment and name and ":" in name:
        raise click.UsageError("EVALSPILL_ENGINE names code: give module:factory on the command line, by --engine")
    return name


scan_options = together(
    click.option(
        "-j", "--jobs", type=click.IntRange(min=1), help="Worker processes; default: the processors usable here."
    ),
    click.option(
        "--engine",
        metavar="NAME",
        envvar="EVALSPILL_ENGINE",
        callback=_no_code_from_outside,
        help="serial, process, dask or module:factory.",
    ),
    click.option("--scheduler", metavar="URL", envvar="EVALSPILL_SCHEDULER", help="Of dask, such as tcp://host:8786."),
    click.option(
        "--cache-dir", type=click.Path(path_type=Path), metavar="DIR", help="Where results of shards are kept."
    ),
    click.option("--no-cache", is_flag=True, help="Scan everything; keep nothing."),
    click.option("-v", "--verbose", is_flag=True, help="Log every file opened or written, and each choice made."),
)
baseline_option = click.option(
    "--baseline", "baseline_path", metavar="FILE", help="The accepted rows; default: baseline of the config."
)


def load_config(config_path: Path | None) -> Config:
    """The config that was named, else the one in this folder; raises UsageError where it is wrong or not there."""
    from evalspill_guard.config import find, load

    return load(config_path if config_path is not None else find(Path.cwd()))


def run_scan(config: Config, baseline: Baseline, verbose: bool, **means: Any) -> Run:
    """What a run finds out; progress and, where asked for, its events go to stderr."""
    from evalspill_guard import terminal
    from evalspill_guard.pipeline import run

    terminal.log_events(verbose)
    gc.set_threshold(200_000)  # records make no cycles: looking for them costs a sixth of the reading
    with terminal.Progress() as progress:
        return run(config, progress, _means(**means), baseline)


def baseline_of(config: Config, named: str | None, required: bool | None = None) -> Baseline:
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
    from evalspill_guard.executors import choose
    from evalspill_guard.scan import Means

    folder = cache_dir or default_folder()
    return Means(choose(engine, jobs, scheduler), None if no_cache else Cache(folder), folder)


def complete(found: Run) -> RunResult:
    """The result; raises Unreadable after saying why the scan is not complete."""
    from evalspill_guard.errors import Unreadable
    from evalspill_guard.terminal import tell_problems

    if not found.result.complete:
        tell_problems(found.result)
        raise Unreadable("the baseline stays as it is")
    return found.result
