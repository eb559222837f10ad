"""The first five minutes of somebody who knows only the README."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import world

from evalspill_guard.cli import cli, run_command

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests/integration"))

import scratch  # noqa: E402 - the scratch repositories of the integration tests

LEAK = "evals/qa.jsonl:3"


def _five_commands() -> list[str]:
    """The commands under the README's heading, as they stand there."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## From a clone to a blocked commit")[2]
    block = re.search(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def _dataset(folder: Path) -> Path:
    """A clone with one commit, a question of whose eval set stands in training data that are not committed yet."""
    scratch.dataset(scratch.repository(folder))
    (folder / "evalspill.yaml").unlink()
    (folder / "data").rename(folder / "texts")
    scratch.write_lines(folder / "data/train/old.jsonl", [{"text": "a record about the harbour"}])
    shutil.rmtree(folder / "texts")
    scratch.commit_all(folder)
    records = [{"text": "nothing to see here"}, {"text": f"Someone asked: {scratch.LEAKED}? We do not know."}]
    scratch.write_lines(folder / "data/train/new.jsonl", records)
    return folder


# --- without arguments ------------------------------------------------------------------------------------------------


def test_without_a_config_three_lines_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command([]) == 2
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("", 3)
    assert "There is no evalspill.yaml here" in err
    assert "evalspill-guard init" in err


@pytest.mark.parametrize("name", ["evalspill.yaml", "evalspill.yml"])
def test_with_a_config_the_commands_are_listed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("version: 1\n")
    assert run_command([]) == 2
    out, err = capfd.readouterr()
    shown = {line.split()[0] for line in err.partition("Commands:")[2].splitlines() if line.strip()}
    assert (out, set(cli.commands) <= shown) == ("", True)


# --- the README's five commands ---------------------------------------------------------------------------------------


def test_there_are_five_commands_and_the_last_one_commits() -> None:
    commands = _five_commands()
    assert [command.split()[0] for command in commands] == ["pip", "evalspill-guard", "pre-commit", "git", "git"]
    assert commands[-1].startswith("git commit")


def test_what_init_writes_stops_a_leak_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = _dataset(tmp_path / "dataset")
    monkeypatch.chdir(folder)
    _, *arguments = _five_commands()[1].split()
    assert run_command(arguments) == 0
    assert (folder / ".pre-commit-config.yaml").exists()
    capfd.readouterr()
    assert run_command(["check"]) == 1
    out, _ = capfd.readouterr()
    assert (LEAK in out, "data/train/new.jsonl:2" in out, scratch.SECRET in out) == (True, True, False)
    world.jsonl(folder / "data/train/new.jsonl", [{"text": "nothing to see here"}, {"text": "nor here"}])
    assert run_command(["check"]) == 0


@pytest.mark.integration
def test_the_five_commands_of_the_readme_lead_to_a_blocked_commit(tmp_path: Path) -> None:
    scratch.tool("pre-commit")  # where it is installed there is an index, too
    scratch.own_repository(tmp_path / "evalspill-guard")
    folder = _dataset(tmp_path / "dataset")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    env = scratch.clean_env(PRE_COMMIT_HOME=str(tmp_path / "hooks"), EVALSPILL_CACHE_DIR=str(tmp_path / "cache"))
    env["PATH"] = f"{tmp_path / 'venv/bin'}{os.pathsep}{env['PATH']}"
    install, *between, commit = _five_commands()
    installed = scratch.run(["sh", "-c", install], folder, env)
    if installed.returncode:
        pytest.skip(f"no package index to install from: {installed.stdout[-200:]}")
    for command in between:
        done = scratch.run(["sh", "-c", command], folder, env)
        assert done.returncode == 0, (command, done.stdout)
    blocked = scratch.run(["sh", "-c", commit], folder, env)
    assert blocked.returncode != 0
    assert "exit code: 1" in blocked.stdout
    assert (LEAK in blocked.stdout, "data/train/new.jsonl:2" in blocked.stdout) == (True, True)
    assert scratch.SECRET not in blocked.stdout
    assert scratch.git(folder, "log", "--oneline").count("\n") == 0


# --- shell completion -------------------------------------------------------------------------------------------------


def _completed(**more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from evalspill_guard.cli import main; main()"]
    return subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_variable_that_the_documentation_names_prints_a_script(shell: str) -> None:
    faq = (ROOT / "docs/faq.md").read_text(encoding="utf-8")
    assert f"_EVALSPILL_GUARD_COMPLETE={shell}_source evalspill-guard" in faq
    if shell == "bash" and not shutil.which("bash"):
        pytest.skip("bash is not installed, and click asks it for its version")
    done = _completed(_EVALSPILL_GUARD_COMPLETE=f"{shell}_source")
    assert (done.returncode, f"_EVALSPILL_GUARD_COMPLETE={shell}_complete" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("evalspill-guard doc", "doctor"),
        ("evalspill-guard baseline pr", "prune"),
        ("evalspill-guard init --wri", "--write-hook"),
    ],
)
def test_commands_and_options_are_completed(typed: str, offered: str) -> None:
    done = _completed(
        _EVALSPILL_GUARD_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=str(len(typed.split()) - 1)
    )
    assert done.stdout.split(",")[-1].strip() == offered
