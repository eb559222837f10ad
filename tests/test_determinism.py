"""The same input gives the same bytes, wherever, whenever and however it is read."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import world
from audit import environment
from test_purge import FORMATS, PACKED, TEXTS
from test_training import sentence

# Loaded before anything else: folders are listed the other way around, and the clock stands still, long ago.
LISTED_BACKWARDS = """
import os
scan, names = os.scandir, os.listdir

class Backwards:
    def __init__(self, *given):
        with scan(*given) as found:
            self.left = sorted(found, key=lambda entry: os.fsencode(entry.name), reverse=True)
    def __enter__(self): return self
    def __exit__(self, *given): pass
    def __iter__(self): return self
    def __next__(self):
        if not self.left: raise StopIteration
        return self.left.pop(0)
    def close(self): pass

os.scandir = Backwards
os.listdir = lambda *given: sorted(names(*given), reverse=True)
"""
LONG_AGO = "import time\ntime.time = lambda: 1.0\ntime.time_ns = lambda: 1\n"


class Way(NamedTuple):
    """A way to run the commands that must change no byte of what they write."""

    env: Mapping[str, str] = {}
    before: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    elsewhere: bool = False
    loaded: str = ""


WAYS = {
    "locale C": Way({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "a locale of another language": Way({"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "LANGUAGE": "tr"}),
    "ASCII for what is printed": Way({"PYTHONIOENCODING": "ascii"}),
    "time zone": Way({"TZ": "Asia/Kathmandu"}),
    "clock": Way(loaded=LONG_AGO),
    "hash seed": Way({"PYTHONHASHSEED": "4711"}),
    "umask": Way(before=("sh", "-c", 'umask 0; exec "$@"', "sh")),
    "optimised Python": Way(python=("-OO",)),
    "width of the terminal": Way({"COLUMNS": "20", "LINES": "5", "FORCE_COLOR": "1"}),
    "working directory": Way(elsewhere=True),
    "order in which folders are listed": Way(loaded=LISTED_BACKWARDS),
    "one worker": Way(arguments=("--jobs", "1")),
    "two workers": Way(arguments=("--jobs", "2", "--engine", "process")),
    "four workers": Way(arguments=("--jobs", "4", "--engine", "process")),
    "no cache": Way(arguments=("--no-cache",)),
}


def repository(folder: Path) -> None:
    """Two eval sets, training data of every format and compression, some of it nested and some damaged."""
    for number, (name, make) in enumerate(FORMATS.items()):
        for packing, pack in PACKED.items():
            texts = [sentence(number * 1000 + place) for place in range(20)] + TEXTS
            path = folder / f"data/{number % 3}/{packing.lstrip('.')}{name}{packing}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pack(make(texts).encode()))
    (folder / "data/damaged.jsonl").write_text('{"text": "cut\n{"text": null}\n')
    rows = [{"id": number, "question": text} for number, text in enumerate([*TEXTS, "Ştraße İ ﬁ", "短い文", ""])]
    world.jsonl(folder / "eval/b.jsonl", rows)
    world.jsonl(folder / "eval/a.jsonl", rows[::-1])
    world.config(folder, train="'data/**'", evals="'eval/*.jsonl'")


def _run(folder: Path, way: Way, *arguments: str) -> int:
    """The exit code of a command of ours, run that way."""
    aside = folder.parent / "aside"
    aside.mkdir(exist_ok=True)
    (aside / "sitecustomize.py").write_text(way.loaded)
    env = environment(folder, LC_ALL="C.UTF-8")
    env["PYTHONPATH"] = os.pathsep.join([str(aside), env["PYTHONPATH"]])
    config = str(folder / "evalspill.yaml") if way.elsewhere else "evalspill.yaml"
    command = [*way.before, sys.executable, *way.python, "-m", "evalspill_guard", *arguments, "-c", config]
    where = "/" if way.elsewhere else folder
    return subprocess.run([*command, *way.arguments], cwd=where, env={**env, **way.env}, capture_output=True).returncode


def _digests(folder: Path) -> dict[str, str]:
    """Of every file below, dates and rights left out."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}  # fmt: skip


def everything(folder: Path, way: Way) -> tuple[list[int], dict[str, str]]:
    """Exit codes of the commands that write, and all that they wrote."""
    codes = [_run(folder, way, "check", "--training-records"), _run(folder, way, "check", "--training-records")]
    (folder / "data/damaged.jsonl").unlink()
    codes += [_run(folder, way, "purge", "--out", str(folder / "purged"), "--list", str(folder / "gone.csv"))]
    codes += [_run(folder, way, "baseline", "create", "--reason", "known")]
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return codes, _digests(folder)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, made once: gzip tells the time."""
    folder = tmp_path_factory.mktemp("given") / "repository"
    repository(folder)
    return folder


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, given: Path) -> tuple[list[int], dict[str, str]]:
    """What comes of the usual way."""
    folder = tmp_path_factory.mktemp("usual") / "repository"
    shutil.copytree(given, folder)
    return everything(folder, Way())


def test_what_is_compared_is_there(usual: tuple[list[int], dict[str, str]]) -> None:
    codes, written = usual
    assert codes == [3, 3, 0, 0]
    names = {name.partition("/")[0] for name in written}
    assert names == {
        "data",
        "eval",
        "evalspill.yaml",
        "evalspill-reports",
        "purged",
        "gone.csv",
        "evalspill-baseline.jsonl",
    }
    assert len([name for name in written if name.startswith("purged/")]) == len(FORMATS) * len(PACKED)


@pytest.mark.parametrize("name", WAYS)
def test_the_bytes_are_those_of_the_usual_way(
    tmp_path: Path, name: str, given: Path, usual: tuple[list[int], dict[str, str]]
) -> None:
    folder = tmp_path / "repository"
    shutil.copytree(given, folder)
    codes, written = everything(folder, WAYS[name])
    assert codes == usual[0]
    assert {name for name in written.keys() | usual[1].keys() if written.get(name) != usual[1].get(name)} == set()
