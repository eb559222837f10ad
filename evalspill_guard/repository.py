"""What git and the hook make of a dataset repository, and what may go wrong there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from evalspill_guard.baseline import Baseline
from evalspill_guard.checkout import git
from evalspill_guard.config import Config
from evalspill_guard.errors import ExitCode
from evalspill_guard.model import DataFile
from evalspill_guard.remote import is_remote

HOOK_CONFIG = ".pre-commit-config.yaml"
HOOK_FILES = (
    r"(?i)(^|/)evalspill\.ya?ml$"
    r"|\.(jsonl|ndjson|json|csv|tsv|txt|text|md|parquet|arrow|feather)(\.(gz|bz2|xz|zst))?$|\.dvc$|(^|/)dvc\.lock$"
)
"""The names on which the hook of .pre-commit-hooks.yaml is run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that will or may break: where, what, what to do, and the exit code that `check` would end in."""

    where: str
    what: str
    advice: str
    code: ExitCode = ExitCode.PASSED


def of_repository(config: Config, baseline: Baseline, cache: Path, files: Sequence[DataFile]) -> Iterator[Finding]:
    """Files that the hook is not run on, folders that git tracks, a baseline without a key."""
    top = _top(config.base)
    yield from _hook(config, baseline, files, top)
    reports = config.base / config.reports.dir
    if top is not None:
        yield from _tracked(config.base, top, "the report folder", reports)
        yield from _tracked(config.base, top, "the cache", cache)
    elif any((parent / ".git").exists() for parent in (config.base, *config.base.parents)):
        yield Finding("git", "could not be asked", "see for yourself that the report folder is not tracked")
    yield from _key(baseline)


def _hook(config: Config, baseline: Baseline, files: Sequence[DataFile], top: Path | None) -> Iterator[Finding]:
    """Files whose change the hook is not run on, by their names."""
    inside = (top or config.base).resolve()
    if any(_always(folder / HOOK_CONFIG) for folder in {inside, config.base}):
        return
    ours = [DataFile(path.name, str(path)) for path in (config.path.absolute(), baseline.path)]
    ours += [DataFile(path, str(config.base / path)) for check in config.checks for path in check.ignore]
    silent = list(dict.fromkeys(file.path for file in (*ours, *files) if not _triggers(file, inside)))
    if silent:
        what = f"the pre-commit hook is not run when {len(silent)} of its files change, such as {silent[0]}"
        yield Finding("hook", what, "use the hook evalspill-guard-always, and run the gate in CI")


def _triggers(file: DataFile, inside: Path) -> bool:
    if is_remote(file.real) or not Path(file.real).parent.resolve().is_relative_to(inside):
        return False
    return re.search(HOOK_FILES, file.path) is not None


def _always(hooks: Path) -> bool:
    """Whether this file of pre-commit runs the gate on every commit."""
    try:
        repos = yaml.safe_load(hooks.read_bytes())["repos"]
        every = [hook for repo in repos for hook in repo["hooks"]]
        return any("evalspill" in str(hook["id"]) and _is_always(hook) for hook in every)
    except (OSError, yaml.YAMLError, LookupError, TypeError):
        return False


def _is_always(hook: dict[str, object]) -> bool:
    return hook["id"] == "evalspill-guard-always" or hook.get("always_run") is True


def _top(base: Path) -> Path | None:
    """The repository that holds a folder; None where there is none, or git cannot be asked."""
    said = git(base, "rev-parse", "--show-toplevel")
    return Path(said.rstrip("\n")) if said else None


def _tracked(base: Path, top: Path, what: str, folder: Path) -> Iterator[Finding]:
    if not folder.resolve().is_relative_to(top.resolve()):
        return
    files = (git(base, "ls-files", "-z", "--", str(folder)) or "").split("\0")[:-1]
    if files:
        shown = Path(os.path.relpath(folder, base)).as_posix()
        advice = f"`git rm -r --cached {shown}`, and put it into .gitignore"
        yield Finding(shown, f"{what} is tracked by git ({len(files)} files), and may hold row text", advice)


def _key(baseline: Baseline) -> Iterator[Finding]:
    if baseline.raw is not None and not os.environ.get("EVALSPILL_KEY"):
        what = "its fingerprints are made without a key: whoever guesses a row can confirm it"
        yield Finding(baseline.shown, what, "set EVALSPILL_KEY before `baseline create` where the rows are private")
