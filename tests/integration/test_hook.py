"""The hooks, run by pre-commit and by prek in scratch repositories."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import scratch
from scratch import SECRET, add_leak, commit_all, dataset, git, repository, run, tool


@dataclass(frozen=True)
class Manager:
    """A hook manager, with a cache that all tests share."""

    command: str
    env: dict[str, str]
    own: Path

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run([self.command, *arguments], folder, self.env)

    def config(self, folder: Path, hook: str = "evalspill-guard", more: str = "") -> None:
        """The five lines that a user writes."""
        lines = ("repos:", f"  - repo: {self.own}", f"    rev: {git(self.own, 'rev-parse', 'HEAD')}",
                 "    hooks:", f"      - id: {hook}")  # fmt: skip
        (folder / ".pre-commit-config.yaml").write_text("\n".join(lines) + "\n" + more)

    def commit(self, folder: Path, message: str = "data") -> subprocess.CompletedProcess[str]:
        return run(["git", "commit", "-q", "-m", message], folder, self.env)


@pytest.fixture(scope="module", params=["pre-commit", "prek"])
def manager(request: pytest.FixtureRequest, own: Path, tmp_path_factory: pytest.TempPathFactory) -> Manager:
    command = tool(request.param)
    home = str(tmp_path_factory.mktemp(request.param))
    env = scratch.clean_env(PRE_COMMIT_HOME=home, PREK_HOME=home)
    env["PATH"] = f"{Path(command).parent}:{env['PATH']}"
    return Manager(command, env, own)


@pytest.fixture
def repo(manager: Manager, tmp_path: Path) -> Path:
    """A clean dataset repository with the hook installed."""
    folder = dataset(repository(tmp_path / "repo"))
    manager.config(folder)
    commit_all(folder)
    installed = manager.run(folder, "install")
    assert installed.returncode == 0, installed.stdout
    return folder


def test_a_contaminated_commit_is_blocked_with_files_and_lines_named(manager: Manager, repo: Path) -> None:
    add_leak(repo)
    git(repo, "add", "-A")
    done = manager.commit(repo)
    assert done.returncode != 0
    assert "exit code: 1" in done.stdout
    assert "evals/qa.jsonl:3" in done.stdout
    assert "data/leak.jsonl:2" in done.stdout
    assert len(done.stdout.splitlines()) < 40
    assert git(repo, "log", "--oneline").count("\n") == 0


def test_a_clean_commit_passes_and_says_nothing_of_itself(manager: Manager, repo: Path) -> None:
    scratch.write_lines(repo / "data/more.jsonl", [{"text": "another record about gardens"}])
    git(repo, "add", "-A")
    done = manager.commit(repo)
    assert done.returncode == 0, done.stdout
    assert "evalspill-guard" in done.stdout and "Passed" in done.stdout
    assert "containment" not in done.stdout
    assert git(repo, "status", "--porcelain") == ""


def test_row_text_is_in_no_line_of_the_hook_s_output(manager: Manager, repo: Path) -> None:
    add_leak(repo)
    git(repo, "add", "-A")
    done = manager.run(repo, "run", "--verbose", "--color=always")
    assert "evals/qa.jsonl" in done.stdout
    assert SECRET not in done.stdout


def test_run_all_files_scans_what_is_tracked(manager: Manager, repo: Path) -> None:
    assert manager.run(repo, "run", "--all-files").returncode == 0
    add_leak(repo)
    commit_all(repo)
    done = manager.run(repo, "run", "--all-files")
    assert done.returncode != 0
    assert "data/leak.jsonl:2" in done.stdout


@pytest.mark.parametrize("hook", ["evalspill-guard", "evalspill-guard-always", "evalspill-validate"])
def test_each_hook_can_be_tried_from_a_checkout(manager: Manager, repo: Path, hook: str) -> None:
    done = manager.run(repo, "try-repo", str(manager.own), hook, "--all-files", "--verbose")
    assert done.returncode == 0, done.stdout
    assert "Passed" in done.stdout


def test_a_push_is_blocked_where_the_hook_runs_on_push(manager: Manager, repo: Path, tmp_path: Path) -> None:
    manager.config(repo, more="        stages: [pre-push]\ndefault_install_hook_types: [pre-commit, pre-push]\n")
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "remote.git"))
    assert manager.run(repo, "install").returncode == 0
    commit_all(repo)
    assert run(["git", "push", "-q", "origin", "main"], repo, manager.env).returncode == 0
    add_leak(repo)
    git(repo, "add", "-A")
    assert manager.commit(repo).returncode == 0
    done = run(["git", "push", "-q", "origin", "main"], repo, manager.env)
    assert done.returncode != 0
    assert "data/leak.jsonl:2" in done.stdout
    assert git(tmp_path / "remote.git", "log", "--oneline", "main").count("\n") == 1


def test_only_the_staged_part_of_a_file_counts(manager: Manager, repo: Path) -> None:
    train = repo / "data/train.jsonl"
    before = train.read_bytes()
    train.write_bytes(before + b'{"text": "a harmless record"}\n')
    git(repo, "add", "-A")
    leak = b'{"text": "%s"}\n' % scratch.LEAKED.encode()
    train.write_bytes(train.read_bytes() + leak)
    assert manager.commit(repo).returncode == 0
    assert train.read_bytes().endswith(leak)
    git(repo, "add", "-A")
    assert manager.commit(repo).returncode != 0


def test_a_commit_that_only_deletes_is_skipped_and_the_always_hook_catches_it(manager: Manager, repo: Path) -> None:
    git(repo, "rm", "-q", "evals/qa.jsonl")
    skipped = manager.run(repo, "run")
    assert skipped.returncode == 0
    assert "Skipped" in skipped.stdout
    manager.config(repo, "evalspill-guard-always")
    git(repo, "add", "-A")
    done = manager.run(repo, "run")
    assert done.returncode != 0
    assert "exit code: 3" in done.stdout


def test_a_symlink_to_data_triggers_the_hook(manager: Manager, repo: Path, tmp_path: Path) -> None:
    add_leak(tmp_path)
    (repo / "data/linked.jsonl").symlink_to(tmp_path / "data/leak.jsonl")
    git(repo, "add", "-A")
    done = manager.commit(repo)
    assert done.returncode != 0
    assert "data/linked.jsonl:2" in done.stdout


def test_an_lfs_pointer_in_the_place_of_data_is_red(manager: Manager, repo: Path) -> None:
    (repo / "data/train.jsonl").write_text(scratch.POINTER)
    git(repo, "add", "-A")
    done = manager.commit(repo)
    assert done.returncode != 0
    assert "exit code: 3" in done.stdout
    assert "data/train.jsonl" in done.stdout and "LFS" in done.stdout


def test_a_submodule_is_scanned_by_the_always_hook(manager: Manager, repo: Path, tmp_path: Path) -> None:
    module = repository(tmp_path / "module")
    add_leak(module)
    commit_all(module)
    git(repo, "submodule", "--quiet", "add", str(module), "corpus")
    config = repo / "evalspill.yaml"
    config.write_text(config.read_text().replace("data/*.jsonl", "data/*.jsonl, corpus/**/*.jsonl"))
    manager.config(repo, "evalspill-guard-always")
    git(repo, "add", "-A")
    done = manager.commit(repo)
    assert done.returncode != 0
    assert "corpus/data/leak.jsonl:2" in done.stdout


def test_an_empty_submodule_is_red(manager: Manager, repo: Path, tmp_path: Path) -> None:
    module = repository(tmp_path / "module")
    add_leak(module)
    commit_all(module)
    git(repo, "submodule", "--quiet", "add", str(module), "corpus")
    git(repo, "submodule", "--quiet", "deinit", "--force", "corpus")
    config = repo / "evalspill.yaml"
    config.write_text(config.read_text().replace("data/*.jsonl", "data/*.jsonl, corpus/**/*.jsonl"))
    git(repo, "add", "-A")
    done = manager.commit(repo)
    assert done.returncode != 0
    assert "exit code: 3" in done.stdout


def test_a_mistake_in_the_config_is_named_by_validate_without_reading_data(manager: Manager, tmp_path: Path) -> None:
    folder = dataset(repository(tmp_path / "repo"), "misconfigured")
    (folder / "data/train.jsonl").unlink()
    manager.config(folder, "evalspill-validate")
    git(folder, "add", "-A")
    done = manager.run(folder, "run", "--all-files")
    assert done.returncode != 0
    assert "exit code: 2" in done.stdout
    assert "fiels" in done.stdout


@pytest.mark.parametrize("name", ["x.JSONL", "a/b.csv.zst", "t.md", "evalspill.yml", "x.jsonl.gz.dvc", "dvc.lock",
                                  "evalspill-baseline.jsonl", "p.parquet"])  # fmt: skip
def test_names_of_data_configs_baselines_and_pointers_trigger_the_hook(manager: Manager, repo: Path, name: str) -> None:
    (repo / "other").mkdir()
    (repo / "other" / Path(name).name).write_text("x\n")
    git(repo, "add", "-A")
    assert "Skipped" not in manager.run(repo, "run").stdout


def test_code_changes_do_not_trigger_the_hook(manager: Manager, repo: Path) -> None:
    (repo / "train.py").write_text("x = 1\n")
    git(repo, "add", "-A")
    assert "Skipped" in manager.run(repo, "run").stdout


def test_it_is_installed_from_a_folder_of_wheels_without_any_index(
    manager: Manager, repo: Path, wheels: Path, tmp_path: Path
) -> None:
    env = {**manager.env, "PRE_COMMIT_HOME": str(tmp_path / "home"), "PREK_HOME": str(tmp_path / "home"),
           "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels)}  # fmt: skip
    done = run([manager.command, "run", "--all-files"], repo, env)
    assert done.returncode == 0, done.stdout
    assert "Passed" in done.stdout


def test_it_runs_in_every_stage_that_has_data_and_in_no_other(manager: Manager, repo: Path) -> None:
    for stage in ("pre-commit", "pre-merge-commit", "pre-push", "manual"):
        assert "Passed" in manager.run(repo, "run", "--all-files", "--hook-stage", stage).stdout
    (repo / "message").write_text("a message\n")
    other = manager.run(repo, "run", "--hook-stage", "commit-msg", "--commit-msg-filename", "message")
    assert "evalspill-guard" not in other.stdout
