"""The commands of the first steps: they look at data and at the config, and gate nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from evalspill_guard.cli_options import baseline_of, baseline_option, config_option, load_config, run_scan, scan_options
from evalspill_guard.errors import ExitCode, UsageError
from evalspill_guard.sink import safe


@click.command()
@click.argument("places", nargs=-1, metavar="[TRAIN EVAL]")
@click.option(
    "--train", "trains", multiple=True, metavar="FILES", help="Training files, a glob or a folder; repeatable."
)
@click.option("--eval", "evals", multiple=True, metavar="FILES", help="Eval files, a glob or a folder; repeatable.")
@click.option("-y", "--yes", is_flag=True, help="Write what is proposed without asking.")
@click.option("--write-hook", is_flag=True, help="Write .pre-commit-config.yaml, too, where there is none.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("evalspill.yaml"), help="The file to write."
)
@click.option("--force", is_flag=True, help="Replace a config that is there.")
def init(
    places: tuple[str, ...],
    trains: tuple[str, ...],
    evals: tuple[str, ...],
    yes: bool,
    write_hook: bool,
    output: Path,
    force: bool,
) -> None:
    """Look at training and eval data, show their fields, and write evalspill.yaml.

    TRAIN and EVAL are files, globs or folders. Without them the names of folders and files say what is what; that is
    asked about on a terminal, and elsewhere written with --yes only.

    \b
    evalspill-guard init
    evalspill-guard init data/train evals
    evalspill-guard init --train 'data/**/*.jsonl.gz' --yes --write-hook
    """
    from evalspill_guard.setup import choose_sets, propose_config
    from evalspill_guard.terminal import tell_proposal

    if places and (len(places) != 2 or trains or evals):
        raise click.UsageError("name TRAIN and EVAL, or use --train and --eval, or name nothing")
    if output.exists() and not force:
        raise click.UsageError(f"{output} is there already; --force replaces it")
    trains, evals = (places[:1], places[1:]) if places else (trains, evals)
    guessed = not (trains and evals)
    proposal = propose_config(choose_sets(trains, evals, Path.cwd()), output)
    tell_proposal(proposal, choices=guessed)
    if guessed and not yes:
        _ask(output)
    output.write_text(proposal.text, encoding="utf-8")
    proposal.schema_path.write_bytes(proposal.schema)
    click.echo(safe(f"wrote {output} and {proposal.schema_path}; next: evalspill-guard check -c {output}"))
    _offer(output, write_hook, show=guessed)


def _ask(output: Path) -> None:
    from evalspill_guard.terminal import can_ask

    if not can_ask():
        raise UsageError("nothing is written, as nobody can be asked: --yes takes this proposal")
    if not click.confirm(f"Write {output}?", default=True):
        raise UsageError("nothing is written: `evalspill-guard init TRAIN EVAL` takes other files")


def _offer(output: Path, write_hook: bool, *, show: bool) -> None:
    """The lines that run the gate on commit and in CI; the hook's are written where that is asked for."""
    from evalspill_guard.proposal import GITHUB, GITLAB
    from evalspill_guard.setup import hook_for
    from evalspill_guard.terminal import tell_snippet

    path, hook = hook_for(output)
    if write_hook and not path.exists():
        path.write_text(hook, encoding="utf-8")
        click.echo(safe(f"wrote {path.name}; next: pre-commit install"))
    elif write_hook or show:
        there = (
            f"{path.name} is there already; add to it:" if path.exists() else f"{path.name} (--write-hook writes it):"
        )
        tell_snippet(there, hook)
    if show:
        gitlab = (path.parent / ".gitlab-ci.yml").exists()
        tell_snippet(".gitlab-ci.yml:" if gitlab else "steps of a GitHub workflow:", GITLAB if gitlab else GITHUB)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def fields(files: tuple[str, ...]) -> None:
    """Show the leaf paths of files, how well they are filled, and which would be compared.

    \b
    evalspill-guard fields evals/qa.jsonl
    evalspill-guard fields data/train 'evals/*.csv'
    """
    from evalspill_guard.setup import tables_of
    from evalspill_guard.terminal import show

    for table in tables_of(files):
        show(table)


@click.command()
@click.argument("configs", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@config_option
def validate(configs: tuple[Path, ...], config_path: Path | None) -> None:
    """Check a config against its schema; reads no data.

    \b
    evalspill-guard validate
    evalspill-guard validate support/evalspill.yaml legal/evalspill.yaml
    """
    wrong = []
    for path in (*configs, *([config_path] if config_path or not configs else [])):
        try:
            config = load_config(path)
        except UsageError as error:
            wrong.append(error)
        else:
            with suppress(BrokenPipeError):  # the answer is the exit code, whoever listens
                click.echo(safe(f"{config.path} is valid; checks: {len(config.checks)}"))
    if wrong:
        raise UsageError("\n".join(map(str, wrong)))


@click.command()
def schema() -> None:
    """Print the JSON Schema of evalspill.yaml, for editors.

    \b
    evalspill-guard schema > evalspill.schema.json
    """
    from evalspill_guard.setup import schema_bytes

    click.echo(schema_bytes().decode(), nl=False)


@click.command()
@click.argument("row", metavar="FILE#ROW")
@click.option("--in-ci", is_flag=True, help="Print it where CI is set, too: into a log that others can read.")
@config_option
@baseline_option
@scan_options
@click.pass_context
def explain(
    context: click.Context, /, row: str, in_ci: bool, config_path: Path | None, baseline_path: str | None, **scan: Any
) -> None:
    """Show one eval row, its text included: its words and runs, what was found where, and why it is flagged or not.

    FILE:LINE names a row, too. Training files that did not change since the last check are not read again.
    Exit code 3 where the scan is not complete, else 0.

    \b
    evalspill-guard explain evals/qa.jsonl#12
    evalspill-guard explain evals/qa.jsonl:12
    """
    from evalspill_guard.cache import default_folder
    from evalspill_guard.explain import explanations, find_row
    from evalspill_guard.terminal import tell_explanation, tell_problems

    if os.environ.get("CI") and not in_ci:
        raise click.UsageError("explain prints row text, and CI is set: a job log is no place for it (--in-ci insists)")
    config = load_config(config_path)
    baseline = baseline_of(config, baseline_path)
    cache = None if scan["no_cache"] else scan["cache_dir"] or default_folder()
    asked = find_row(config, baseline, cache, row)
    result = run_scan(asked.config, baseline, **scan).result
    with suppress(BrokenPipeError):
        for told in explanations(asked, result, baseline):
            tell_explanation(told)
        tell_problems(result)
    context.exit(ExitCode.PASSED if result.complete else ExitCode.INCOMPLETE)


@click.command()
@config_option
@baseline_option
@click.pass_context
def doctor(context: click.Context, /, config_path: Path | None, baseline_path: str | None) -> None:
    """Look for what commonly breaks: pointers, fields that no record has, short rows, tracked reports, hook names.

    Reads heads of training files and the whole eval sets. Exit code 3 where a scan would not be complete, 2 where
    the config or the baseline is wrong, else 0, hints or not.

    \b
    evalspill-guard doctor
    evalspill-guard doctor -c support/evalspill.yaml
    """
    from evalspill_guard.cache import default_folder
    from evalspill_guard.doctor import diagnose
    from evalspill_guard.errors import worst
    from evalspill_guard.terminal import tell_findings

    config = load_config(config_path)
    findings = diagnose(config, baseline_of(config, baseline_path), default_folder())
    with suppress(BrokenPipeError):
        tell_findings(findings)
    context.exit(worst(one.code for one in findings))
