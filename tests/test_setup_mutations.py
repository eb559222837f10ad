"""However people break a set-up that works, a leak never turns green."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from setup_example import TRAIN, Gate, action, build, command, gitlab, hook
from setup_mutations import LOOSENED, MUTATIONS, SEEN, UNSEEN, Change, Mutation

BLIND = "HTML entities and other encodings"
GATES = {"command": command, "hook": hook, "workflow": action, "GitLab": gitlab}


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, Path]:
    """The example for each training file that may leak; None: none does."""
    root = tmp_path_factory.mktemp("examples")
    return {leak: build(root / str(leak), leak) for leak in (None, *TRAIN)}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return tmp_path / "repo"


def copied(examples: dict[str | None, Path], leak: str | None, repo: Path) -> Path:
    if leak not in examples:
        pytest.skip("pyarrow is not installed: no Parquet file can be made")
    return Path(shutil.copytree(examples[leak], repo))


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
@pytest.mark.parametrize("leak", TRAIN)
def test_the_example_is_red(examples: dict[str | None, Path], repo: Path, leak: str, gate: Gate) -> None:
    ran = gate(copied(examples, leak, repo))
    assert ran.code == 1, ran.said
    assert "evals/support_qa.jsonl:8" in ran.said


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_the_example_without_the_leak_is_green(examples: dict[str | None, Path], repo: Path, gate: Gate) -> None:
    ran = gate(copied(examples, None, repo))
    assert ran.code == 0, ran.said


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name.replace(" ", "-"))
def test_a_broken_set_up_is_never_green(examples: dict[str | None, Path], repo: Path, mutation: Mutation) -> None:
    mutation.change(copied(examples, mutation.leak, repo))
    ran = mutation.gate(repo)
    assert ran.code == mutation.code, ran.said
    assert mutation.says in ran.said


@pytest.mark.parametrize("mutation", LOOSENED, ids=lambda one: one.name.replace(" ", "-"))
def test_what_a_setting_asks_for_is_green_and_told_in_the_report(
    examples: dict[str | None, Path], repo: Path, mutation: Mutation
) -> None:
    mutation.change(copied(examples, mutation.leak, repo))
    ran = mutation.gate(repo)
    assert ran.code == 0, ran.said
    assert mutation.says in (repo / "evalspill-reports/report.json").read_text()


def test_the_names_of_the_mutations_differ() -> None:
    assert len({one.name for one in (*MUTATIONS, *LOOSENED)}) == len(MUTATIONS) + len(LOOSENED) > 50


@pytest.mark.parametrize("change", SEEN.values(), ids=SEEN)
def test_what_looks_different_is_found(examples: dict[str | None, Path], repo: Path, change: Change) -> None:
    change(copied(examples, "mail.jsonl.gz", repo))
    assert command(repo).code == 1


@pytest.mark.parametrize("change", UNSEEN.values(), ids=UNSEEN)
def test_what_no_lexical_method_finds_is_told_in_the_report(
    examples: dict[str | None, Path], repo: Path, change: Change
) -> None:
    change(copied(examples, "mail.jsonl.gz", repo))
    assert command(repo).code == 0
    assert BLIND in (repo / "evalspill-reports/report.json").read_text()
