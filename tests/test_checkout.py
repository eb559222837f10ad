"""Data that a repository promises and a checkout does not hold."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import world

from evalspill_guard import checkout
from evalspill_guard.checkout import Absent, absent

WHOLE = " ".join(f"word{number}" for number in range(20))
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    user = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *user, *arguments], cwd=folder, env=kept, check=True, capture_output=True)


def committed(folder: Path) -> Path:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "data")
    return folder


def dataset(folder: Path, glob: str = '"data/**/*.jsonl"') -> Path:
    """A repository whose config names data that are clean."""
    world.jsonl(folder / "eval.jsonl", [{"question": WHOLE}])
    world.jsonl(folder / "data/a.jsonl", [{"text": "nothing to see here"}])
    world.config(folder, train=glob)
    return folder


def with_submodule(folder: Path, glob: str = '"data/**/*.jsonl"') -> Path:
    """A clone without its submodule data/sub, in which the leak stands."""
    world.jsonl(folder / "inner/deep/leak.jsonl", [{"text": WHOLE}])
    committed(folder / "inner")
    outer = committed(dataset(folder / "outer", glob))
    git(outer, "submodule", "add", "-q", str(folder / "inner"), "data/sub")
    git(outer, "commit", "-q", "-m", "with a submodule")
    git(folder, "clone", "-q", "outer", "clone")
    return folder / "clone"


@needs_git
def test_a_submodule_that_is_not_checked_out_is_a_problem(tmp_path: Path) -> None:
    clone = with_submodule(tmp_path)
    assert world.check(clone) == 3
    said = "a submodule that is not checked out: run `git submodule update --init`"
    assert world.problems(clone) == [("data/sub", None, said)]
    git(clone, "submodule", "update", "-q", "--init")
    assert (world.check(clone), world.problems(clone)) == (1, [])


@needs_git
@pytest.mark.parametrize(("glob", "code"), [
    ('"data/*.jsonl"', 0),
    ('["data/**/*.jsonl", "!data/sub/**"]', 0),
    ('["data/**/*.jsonl", "!data/sub/deep/*"]', 3),
    ('["data/**/*.jsonl", "!data/sub/**/*.jsonl"]', 0),
    ('["data/**/*.jsonl", "!data/**/a*"]', 3),
    ('["data/**/*.jsonl", "!data/*/*"]', 3),
    ('"./data/../data/**/*.jsonl"', 3),
    ('"data/**/*.json*"', 3),
    ('["data/*.jsonl", "data/s*/deep/leak.jsonl"]', 3),
])  # fmt: skip
def test_a_submodule_counts_where_a_glob_leads_into_it(tmp_path: Path, glob: str, code: int) -> None:
    assert world.check(with_submodule(tmp_path, glob)) == code


@needs_git
def test_a_submodule_of_a_submodule_is_missed_too(tmp_path: Path) -> None:
    world.jsonl(tmp_path / "inmost/leak.jsonl", [{"text": WHOLE}])
    committed(tmp_path / "inmost")
    world.jsonl(tmp_path / "inner/fine.jsonl", [{"text": "nothing"}])
    committed(tmp_path / "inner")
    git(tmp_path / "inner", "submodule", "add", "-q", str(tmp_path / "inmost"), "most")
    git(tmp_path / "inner", "commit", "-q", "-m", "more")
    outer = committed(dataset(tmp_path / "outer"))
    git(outer, "submodule", "add", "-q", str(tmp_path / "inner"), "data/sub")
    assert [one.path for one in absent(outer)] == ["data/sub/most"]


@needs_git
def test_what_a_sparse_checkout_leaves_out_is_a_problem_where_a_glob_would_match_it(tmp_path: Path) -> None:
    dataset(tmp_path)
    world.jsonl(tmp_path / "data/b/leak.jsonl", [{"text": WHOLE}])
    world.jsonl(tmp_path / "other/c.jsonl", [{"text": "of no matter"}])
    committed(tmp_path)
    assert (world.check(tmp_path), absent(tmp_path)) == (1, [])
    git(tmp_path, "sparse-checkout", "set", "--no-cone", "/*", "!/data/b/", "!/other/")
    assert world.check(tmp_path) == 3
    (path, line, said), *others = world.problems(tmp_path)
    assert (path, line, others) == ("data/b/leak.jsonl", None, [])
    assert said.startswith("tracked by git, but left out of this sparse checkout")
    git(tmp_path, "sparse-checkout", "disable")
    assert world.check(tmp_path) == 1


@needs_git
def test_a_sparse_checkout_of_which_git_cannot_be_asked_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(dataset(tmp_path))
    git(tmp_path, "sparse-checkout", "set", "--no-cone", "/*")
    assert world.check(tmp_path) == 0
    monkeypatch.setattr(checkout, "git", lambda *_: None)
    assert world.check(tmp_path) == 3
    assert "git cannot be asked" in world.problems(tmp_path)[0][2]


@needs_git
def test_a_config_below_the_top_of_the_repository_names_what_is_missing_from_there(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    world.jsonl(tmp_path / "data/b.jsonl", [{"text": WHOLE}])
    committed(tmp_path)
    git(tmp_path, "sparse-checkout", "set", "--no-cone", "/*", "!/data/")
    (tmp_path / "tool").mkdir(exist_ok=True)
    assert [(one.path, one.is_folder) for one in absent(tmp_path / "tool")] == [("../data/b.jsonl", False)]


LOCK = """schema: '2.0'
stages:
  clean:
    cmd: python clean.py
    params: {until: 2024-02-30}
    outs:
    - {path: data/clean, hash: md5, md5: aa.dir}
    - {path: data/shards.v2, md5: dd.dir}
    - {path: data/model, md5: ee}
    - {path: 's3://bucket/data/e.jsonl', md5: ff}
    - {path: data/b.jsonl, md5: bb}
    - {path: data/model.bin, md5: cc}
"""


def test_outputs_of_dvc_stages_that_were_not_pulled_are_a_problem(tmp_path: Path) -> None:
    dataset(tmp_path)
    (tmp_path / "dvc.lock").write_text(LOCK)
    assert world.check(tmp_path) == 3
    said = "the output of a DVC stage without its data: run `dvc pull`"
    assert world.problems(tmp_path) == [(path, None, said) for path in ("data/b.jsonl", "data/clean", "data/shards.v2")]
    world.jsonl(tmp_path / "data/b.jsonl", [{"text": "fine"}])
    world.jsonl(tmp_path / "data/shards.v2/d.jsonl", [{"text": "fine"}])
    (tmp_path / "data/clean").mkdir()
    assert world.check(tmp_path) == 3, "the folder is empty"
    world.jsonl(tmp_path / "data/clean/c.jsonl", [{"text": WHOLE}])
    assert (world.check(tmp_path), world.problems(tmp_path)) == (1, [])


def test_outputs_of_a_dvc_stage_stand_where_it_works(tmp_path: Path) -> None:
    dataset(tmp_path)
    (tmp_path / "dvc.yaml").write_text(
        "stages:\n  clean: {foreach: [a, b], do: {wdir: data, cmd: x}}\n  any: {wdir: '${a}'}\n  at: {wdir: data}\n"
    )
    lock = "stages:\n  clean@a: {outs: [{path: a.jsonl}]}\n  clean@b: {outs: [{path: ../data/b.jsonl}]}\n"
    lock += "  at: {outs: [{path: c.jsonl}]}\n  any@a: {outs: [{path: d.jsonl}]}\n  other: 3\n"
    (tmp_path / "dvc.lock").write_text(lock)
    assert [one.path for one in absent(tmp_path)] == ["data/b.jsonl", "data/c.jsonl"]


def test_a_stage_of_the_past_is_no_stage_and_the_oldest_format_is_one(tmp_path: Path) -> None:
    (tmp_path / "dvc.lock").write_text("a: {cmd: x, outs: [{path: a.jsonl}]}\nb: {outs: [{path: b.jsonl}]}\n")
    assert [one.path for one in absent(tmp_path)] == ["a.jsonl", "b.jsonl"]
    (tmp_path / "dvc.yaml").write_text("stages: {a: {cmd: x}}\n")
    assert [one.path for one in absent(tmp_path)] == ["a.jsonl"]


@pytest.mark.parametrize(
    "lock", ["stages: 3", "[", "stages: {a: {outs: [b]}}", "a: b", "stages: {a: null}", "<<<<<<< HEAD\n"]
)
def test_a_lock_that_cannot_be_read_proves_nothing(tmp_path: Path, lock: str) -> None:
    dataset(tmp_path)
    (tmp_path / "dvc.lock").write_text(lock)
    assert world.check(tmp_path) == 3
    assert [(path, what[:23]) for path, _, what in world.problems(tmp_path)] == [(".", "dvc.lock cannot be read")]


def test_an_empty_lock_says_nothing(tmp_path: Path) -> None:
    for lock in ("", "schema: '2.0'\n", "stages: {}\n", "schema: '2.0'\nstages: {a: {cmd: x}}\n"):
        (tmp_path / "dvc.lock").write_text(lock)
        assert absent(tmp_path) == []


def test_absolute_globs_and_links_to_the_config_lead_to_the_same(tmp_path: Path) -> None:
    repo = dataset(tmp_path / "repo", f'"{tmp_path}/repo/data/**/*.jsonl"')
    (repo / "dvc.lock").write_text("stages: {a: {outs: [{path: data/b.jsonl, md5: a}]}}\n")
    (tmp_path / "link").symlink_to("repo")
    assert [world.check(tmp_path / "repo"), world.check(tmp_path / "link")] == [3, 3]


@needs_git
def test_only_what_git_tracks_is_a_submodule(tmp_path: Path) -> None:
    clone = with_submodule(tmp_path)
    git(clone, "rm", "-q", "--cached", "data/sub")
    assert absent(clone) == []


@pytest.mark.parametrize("written", [
    '[submodule "a"]\n\tpath = a\n', '[submodule "a"] Path = "a"\n', '[submodule "a"]\n path=a # it is\n\turl = x\n',
])  # fmt: skip
def test_where_git_cannot_be_asked_its_list_of_submodules_is_read(
    tmp_path: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "git", lambda *_: None)
    (tmp_path / ".gitmodules").write_text(written)
    (tmp_path / ".git").mkdir()
    said = "a submodule that is not checked out: run `git submodule update --init`"
    assert absent(tmp_path) == [Absent("a", True, said)]
    (tmp_path / "a/.git").mkdir(parents=True)
    assert absent(tmp_path) == [Absent("a", True, said)]
    (tmp_path / "a/data").write_text("x")
    assert absent(tmp_path) == []


def test_outside_of_a_repository_nothing_is_missing(tmp_path: Path) -> None:
    assert absent(tmp_path) == []
    (tmp_path / ".gitmodules").write_text('[submodule "a"]\n\tpath = a\n')
    assert absent(tmp_path) == []
