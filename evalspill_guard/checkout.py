"""What a repository promises and this checkout does not hold: submodules, sparse checkouts, outputs of DVC stages.

A glob does not miss what is not there, so it is looked for where git and DVC write it down.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_SUBMODULE = "a submodule that is not checked out: run `git submodule update --init`"
_SPARSE = "tracked by git, but left out of this sparse checkout: `git sparse-checkout add` its folder, or exclude it"
_UNASKED = "this sparse checkout leaves out files, and git cannot be asked which: check out everything"
_DVC = "the output of a DVC stage without its data: run `dvc pull`"
_UNREAD = "cannot be read, so that nobody knows which outputs are missing: mend it"
_MODULE_PATH = re.compile(r'(?:^|\])\s*path\s*=\s*"?([^"#;\n]+?)"?\s*(?:[#;].*)?$', re.MULTILINE | re.IGNORECASE)
_GITLINK = "160000 "


@dataclass(frozen=True, slots=True)
class Absent:
    """A file, or a folder of any files, that is not there: its path as a glob would match it, and what to do."""

    path: str
    is_folder: bool
    what: str


def absent(base: Path) -> list[Absent]:
    """What is missing in the repository in which a config's folder lies; nothing outside of a repository."""
    here = Path(os.path.realpath(base))
    top = next((folder for folder in (here, *here.parents) if os.path.lexists(folder / ".git")), None)
    found = list(_dvc(here, top))
    if top is not None:
        found += [Absent(_relative(path, here), True, _SUBMODULE) for path in _submodules(top)]
        found += _sparse(top, here)
    return sorted(found, key=lambda one: os.fsencode(one.path))


def git(folder: Path, *arguments: str) -> str | None:
    """What git says; None where it says nothing. The repository's own programs and hooks are not run."""
    program = shutil.which("git")
    if program is None:
        return None
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "SYSTEMROOT", "USERPROFILE")}
    harmless = ["-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"]
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and every argument is ours
            [program, *harmless, *arguments], cwd=folder, env={**kept, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(done.stdout)


def _relative(path: Path, here: Path) -> str:
    return Path(os.path.relpath(path, here)).as_posix()


def _submodules(top: Path) -> Iterator[Path]:
    """The folders of submodules that hold nothing, also of submodules in submodules."""
    for name in _modules(top):
        folder = top / name
        if not folder.is_dir() or not any(one.name != ".git" for one in folder.iterdir()):
            yield folder
        elif folder.resolve() != top.resolve():
            yield from _submodules(folder)


def _modules(top: Path) -> list[str]:
    """The paths of submodules that git tracks; where it cannot be asked, those that are written down."""
    listed = _text(top / ".gitmodules")
    said = git(top, "ls-files", "-s", "-z") if listed else ""
    if said is None:
        return _MODULE_PATH.findall(listed)
    return [line.partition("\t")[2] for line in said.split("\0") if line.startswith(_GITLINK)]


def _sparse(top: Path, here: Path) -> list[Absent]:
    """Files that git tracks and has left out on purpose; it is asked where there is a list of what to leave out."""
    if not _is_sparse(top):
        return []
    said = git(top, "ls-files", "-t", "-z")
    if said is None:
        return [Absent(".", True, _UNASKED)]
    left_out = [line[2:] for line in said.split("\0") if line.startswith("S ")]
    return [Absent(_relative(top / name, here), False, _SPARSE) for name in left_out]


def _is_sparse(top: Path) -> bool:
    folder = top / ".git"
    if folder.is_file():  # of a worktree or a submodule
        folder = top / _text(folder).removeprefix("gitdir:").strip()
    return (folder / "info/sparse-checkout").is_file()


def _dvc(here: Path, top: Path | None) -> Iterator[Absent]:
    """Outputs that a dvc.lock beside the config, or above it in the repository, names, and that are not there."""
    for folder in (here, *here.parents):
        try:
            outputs = list(_outputs(folder))
        except _NO_LOCK:
            yield Absent(".", True, f"{_relative(folder / 'dvc.lock', here)} {_UNREAD}")
            outputs = []
        for path, is_folder in outputs:
            if not os.path.lexists(path) or (is_folder and path.is_dir() and not any(path.iterdir())):
                yield Absent(_relative(path, here), is_folder, _DVC)
        if top is None or folder == top:
            return


_NO_LOCK = (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError)


def _outputs(folder: Path) -> Iterator[tuple[Path, bool]]:
    """(path, whether it is a folder) of the outputs of the stages of a folder; of what lies elsewhere none.

    A path is relative to where its stage works; where that is a template it is not known. Raises one of _NO_LOCK.
    """
    locked = _stages(folder / "dvc.lock")
    pipeline = _stages(folder / "dvc.yaml") if locked else {}
    for name, stage in locked.items():
        known = pipeline.get(name.partition("@")[0], {} if not pipeline else None)
        if known is None:  # a stage of the past
            continue
        place = str({**known, **known.get("do", {})}.get("wdir", "."))
        for out in stage.get("outs", ()):
            path = str(out["path"])
            if "${" not in place and "://" not in path:
                is_folder = str(out.get("md5", out.get("hash", ""))).endswith(".dir")
                yield Path(os.path.normpath(folder / place / path)), is_folder


def _stages(path: Path) -> dict[str, Any]:
    """The stages of a dvc.yaml or dvc.lock; of the oldest format of the latter, all that there is."""
    text = _text(path)
    if not text.strip():
        return {}
    found: Any = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - texts, lists and mappings are all it makes
    nothing: dict[str, Any] = {}
    return dict(found.get("stages", nothing if "schema" in found or path.suffix == ".yaml" else found))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
