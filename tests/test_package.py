"""What is released: the same bytes from the same tree, nothing but the package in it, and types that others can use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed: pip install hatchling")

ROOT = Path(__file__).parents[1]
RELEASED = ("evalspill_guard", "tests", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", ".gitignore")
NOT_RELEASED = ("evalspill_guard/__pycache__/cli.cpython-311.pyc", "data/private.jsonl", "examples/evals/qa.jsonl")
SUFFIXES = {".py", ".typed", ".j2", ".css", ".js"}
CLIENT = '''\
"""Uses the package as its own scripts would."""

from pathlib import Path

from evalspill_guard import __version__
from evalspill_guard.config import Config, load
from evalspill_guard.errors import EvalSpillError, ExitCode
from evalspill_guard.pipeline import Run, run


def gate(path: Path) -> ExitCode:
    try:
        config: Config = load(path)
        found: Run = run(config)
    except EvalSpillError as error:
        return error.code
    names: list[str] = [check.name for check in found.result.checks]
    print(__version__.upper(), ", ".join(names))
    return ExitCode(found.result.exit_code)
'''


def tree(folder: Path, moment: int) -> Path:
    """A checkout with files that are not released in it, all of them last changed at this moment."""
    unwanted = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in RELEASED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target, ignore=unwanted) if source.is_dir() else shutil.copy(source, target)
    for name in NOT_RELEASED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("not released")
    for path in folder.rglob("*"):
        os.utime(path, (moment, moment))
    return folder


def build(source: Path, target: str) -> Path:
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(source.parent / "dist")]
    subprocess.run(command, cwd=source, env=env, check=True, capture_output=True)
    (built,) = (source.parent / "dist").glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folders = (tmp_path_factory.mktemp("package") / "one", tmp_path_factory.mktemp("package") / "two")
    return tree(folders[0], 1_600_000_000), tree(folders[1], 1_650_000_000)


@pytest.fixture(scope="module")
def wheel(trees: tuple[Path, Path]) -> Path:
    return build(trees[0], "wheel")


@pytest.fixture(scope="module")
def sdist(trees: tuple[Path, Path]) -> Path:
    return build(trees[0], "sdist")


def files(folder: str) -> Iterator[str]:
    """The files of the checkout below a folder."""
    for path in (ROOT / folder).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT).as_posix()


def test_the_same_tree_gives_the_same_bytes(trees: tuple[Path, Path], wheel: Path, sdist: Path) -> None:
    assert build(trees[1], "wheel").read_bytes() == wheel.read_bytes()
    assert build(trees[1], "sdist").read_bytes() == sdist.read_bytes()


def test_the_sdist_gives_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert build(source, "wheel").read_bytes() == wheel.read_bytes()


def test_the_wheel_holds_the_package_its_licence_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    (info,) = {name.split("/")[0] for name in names} - {"evalspill_guard"}
    described = [f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")]
    assert sorted(names) == sorted([*files("evalspill_guard"), *described])
    assert "evalspill_guard/py.typed" in names
    assert {Path(name).suffix for name in names if name.startswith("evalspill_guard/")} <= SUFFIXES


def test_the_sdist_holds_the_package_its_tests_and_what_describes_them(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        assert {member.mtime for member in archive.getmembers()} == {1_700_000_000}
        assert {(member.uid, member.gid, member.uname, member.gname) for member in archive} == {(0, 0, "", "")}
    plain = [name for name in RELEASED if (ROOT / name).is_file()]
    assert sorted(names) == sorted(["PKG-INFO", *plain, *files("evalspill_guard"), *files("tests")])


def test_the_wheel_names_its_licence_its_readme_and_the_pythons_it_runs_on(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (path,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    head, _, body = archive.read(path).decode().partition("\n\n")
    assert {"License-Expression: MIT", "License-File: LICENSE", "Requires-Python: >=3.10"} <= set(head.splitlines())
    assert body == (ROOT / "README.md").read_text()


def strict(python: Path, client: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), str(client)]
    env = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    return subprocess.run(command, cwd=client.parent, env=env, capture_output=True, text=True, check=False)


def test_code_that_uses_the_installed_wheel_passes_the_strict_type_checker(wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed: pip install mypy")
    venv.create(tmp_path / "venv", with_pip=False)
    (place,) = (tmp_path / "venv").glob("[Ll]ib/**/site-packages")
    zipfile.ZipFile(wheel).extractall(place)  # what pip does with a wheel of this kind, without an index
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = strict(python, client)
    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n"), done.stdout
    client.write_text(CLIENT.replace("names: list[str]", "names: list[int]"))
    assert "List comprehension has incompatible type" in strict(python, client).stdout
    (place / "evalspill_guard/py.typed").unlink()
    assert "py.typed" in strict(python, client).stdout
