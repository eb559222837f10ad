"""Scratch repositories for the integration tests: the tool's own, as users name it, and those of its users."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".integration"
HINT = "bash ci/install-integration.sh installs it"

# No word of this row may be seen in a log: the tests search for `SECRET`.
SECRET = "quokkas"
LEAKED = f"why do seven striped {SECRET} on the northern pier always refuse the ripe mango before sunrise"
TOPICS = ["ledger", "pump", "violin", "glacier", "tariff", "orchard", "turbine", "comet", "pottery", "harbour"]


def tool(name: str) -> str:
    """The path of a tool; the test is skipped where it is not installed."""
    own = [TOOLS / "venv/bin" / name, TOOLS / "node/node_modules/.bin" / name]
    found = next((str(path) for path in own if path.exists()), shutil.which(name))
    if found is None:
        pytest.skip(f"{name} is not installed; {HINT}")
    return found


def clean_env(**more: str) -> dict[str, str]:
    """The environment without what git, CI systems and the tests' own interpreter set."""
    dropped = ("GIT_", "GITHUB_", "GITLAB_", "CI_", "PRE_COMMIT", "PYTEST_", "RUNNER_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped) and k not in ("CI", "VIRTUAL_ENV")}
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1"}
    identity |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull}
    return kept | identity | more


def run(
    command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; stdout holds both streams, as a log does."""
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env or clean_env(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="surrogateescape", timeout=600,
    )  # fmt: skip


def git(folder: Path, *arguments: str) -> str:
    done = run(["git", "-c", "protocol.file.allow=always", *arguments], folder)
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


def commit_all(folder: Path, message: str = "more") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--no-verify", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def own_repository(folder: Path) -> Path:
    """A repository that holds the working tree of this checkout, with what is not committed yet, as one commit."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    assert listed.returncode == 0, listed.stdout
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    repository(folder)
    commit_all(folder, "the tool")
    return folder


def question(number: int) -> str:
    topic = TOPICS[number % len(TOPICS)]
    return f"how would clerk number {number} explain the {topic} of town {number * 7} to a visitor from abroad"


def write_lines(path: Path, records: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def add_leak(folder: Path) -> None:
    """Quote eval row 3 inside the second record of a new training file."""
    records = [{"text": "nothing to see in this record at all"}, {"text": f"Someone asked: {LEAKED}? We do not know."}]
    write_lines(folder / "data/leak.jsonl", records)


def dataset(folder: Path, kind: str = "clean") -> Path:
    """A dataset repository, not committed: clean, contaminated, incomplete or misconfigured."""
    rows = [question(i) for i in range(20)]
    rows[2] = LEAKED
    write_lines(folder / "evals/qa.jsonl", [{"id": f"q{i}", "question": row} for i, row in enumerate(rows, 1)])
    records = [f"Record {i} tells how the {TOPICS[i % 10]} was mended in year {i + 1900}." for i in range(30)]
    write_lines(folder / "data/train.jsonl", [{"text": record} for record in records])
    config = (
        "version: 1\ntrain:\n  files: [data/*.jsonl]\neval:\n  files: evals/*.jsonl\n  fields: [question]\n  id: id\n"
    )
    if kind == "contaminated":
        add_leak(folder)
    elif kind == "incomplete":
        (folder / "data/train.jsonl").write_text(POINTER)
    elif kind == "misconfigured":
        config = config.replace("files: evals", "fiels: evals")
    (folder / "evalspill.yaml").write_text(config)
    return folder


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a' * 16}\nsize 12345\n"
