"""The story of a dataset repository, command by command, as a person would run it."""

import random
import shlex
from pathlib import Path

import pytest
import world

from evalspill_guard.cli import run_command

WORDS = [a + b for a in ("ba", "ko", "mi", "tur", "sel", "dra") for b in ("n", "lo", "rim", "sta", "ge", "vo", "pek")]
QUESTIONS = [" ".join(random.Random(seed).choices(WORDS, k=24)) for seed in range(40)]
TICKETS = [" ".join(random.Random(1000 + seed).choices(WORDS, k=60)) for seed in range(60)]
QUOTED, COPIED, REWORKED = 3, 11, 27  # rows, from 0
BASELINE = "evalspill-baseline.jsonl"


class Shell:
    """The command line in the repository, with nobody at a terminal."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self.capfd = capfd

    def __call__(self, command: str) -> tuple[int, str]:
        """The exit code of an evalspill-guard command, and all that it printed."""
        code = run_command(shlex.split(command))
        return code, "".join(self.capfd.readouterr())


def train_on(folder: Path, leaks: dict[int, str]) -> None:
    texts = [*TICKETS, *(f"they wrote {leak} and then hung up" for leak in leaks.values())]
    world.jsonl(folder / "data/train/tickets.jsonl", [{"text": text} for text in texts])


def first(words: int, row: int) -> str:
    return " ".join(QUESTIONS[row].split()[:words])


def red_rows(folder: Path) -> list[int]:
    found = world.csv_rows(folder, "contamination-report.csv", "qa")
    return [int(one["row"]) - 1 for one in found if (one["flagged"], one["accepted"]) == ("true", "false")]


def clean_rows(folder: Path) -> int:
    clean = folder / "evalspill-reports/qa/clean/evals/qa.clean.jsonl"
    return len(clean.read_bytes().splitlines())


def test_from_init_to_a_pruned_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Shell(capfd)
    world.jsonl(tmp_path / "evals/qa.jsonl", [{"question": text} for text in QUESTIONS])
    train_on(tmp_path, {QUOTED: first(14, QUOTED), COPIED: QUESTIONS[COPIED], REWORKED: first(20, REWORKED)})

    code, said = run("init data/train evals")
    assert code == 0, said

    code, said = run("check")
    assert (code, red_rows(tmp_path), clean_rows(tmp_path)) == (1, [QUOTED, COPIED, REWORKED], 37), said

    # Two of the three are taken out of the training data; the third may stay, and somebody says why.
    train_on(tmp_path, {QUOTED: first(14, QUOTED)})
    code, said = run("check")
    assert (code, red_rows(tmp_path)) == (1, [QUOTED]), said
    code, said = run("baseline create")
    assert (code, (tmp_path / BASELINE).exists()) == (2, False), said
    code, said = run("baseline create --reason 'half a question, printed in the manual'")
    assert (code, (tmp_path / BASELINE).read_bytes().count(b"\n")) == (0, 1), said
    accepted = (tmp_path / BASELINE).read_bytes()

    code, said = run("check --strict-baseline")
    assert (code, red_rows(tmp_path), clean_rows(tmp_path)) == (0, [], 40), said
    assert "1 (1 accepted)" in said

    # More rows arrive, shorter ones, and with them a smaller N; the accepted row stays accepted.
    longer = [*QUESTIONS, *(" ".join(random.Random(2000 + seed).choices(WORDS, k=9)) for seed in range(6))]
    world.jsonl(tmp_path / "evals/qa.jsonl", [{"question": text} for text in longer])
    code, said = run("check")
    assert (code, world.only_check(tmp_path)["n"]) == (0, 9), said

    # The accepted leak grows: red again, and `update` does not wave it through unasked.
    train_on(tmp_path, {QUOTED: first(22, QUOTED)})
    code, said = run("check")
    assert (code, red_rows(tmp_path)) == (1, [QUOTED]), said
    assert f"grown: check qa: evals/qa.jsonl:{QUOTED + 1}: longest 22, accepted 14" in said
    code, said = run("baseline update --reason 'whatever is new'")
    assert (code, (tmp_path / BASELINE).read_bytes()) == (0, accepted), said
    assert run("check -q")[0] == 1

    # It is taken out: green, but the entry is stale, and a strict gate says so until it is pruned.
    train_on(tmp_path, {})
    code, said = run("check")
    assert (code, red_rows(tmp_path), "\nstale: check qa: evals/qa.jsonl: fingerprint " in said) == (0, [], True), said
    assert run("check --strict-baseline")[0] == 2
    assert (tmp_path / BASELINE).read_bytes() == accepted
    code, said = run("baseline prune")
    assert (code, (tmp_path / BASELINE).read_bytes()) == (0, b""), said
    assert run("check --strict-baseline")[0] == 0
