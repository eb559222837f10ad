"""A small run with every kind of row in it, some with text that wants to do harm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evalspill_guard.model import CheckResult, EvalRow, Evidence, InputFile, Problem, RowScore, RunResult

GOLDEN = Path(__file__).parent / "golden"

QUESTION = (
    "A shop sells pens in boxes of twelve, and each box costs nine dollars. How much do seven boxes cost, if the shop "
    "gives one box for free with every six boxes that a customer buys?"
)
HOSTILE = "=cmd|'/c calc'!A1 <script>alert(1)</script>\n{{ 7*7 }} \u202egnp.exe \x1b[31mred\x00 \ud800, \"quoted\""


def score(number: int, text: str, **facts: object) -> RowScore:
    """A row on line `number`, of the words that white space separates, with these facts."""
    defaults: dict[str, object] = {
        "outcome": "clean",
        "fingerprint": f"{number:032x}",
        "n": 8,
        "runs": 3,
        "runs_all": 3,
    }
    own = {key: facts.pop(key) for key in ("id", "file", "line") if key in facts}
    row = EvalRow(
        file=own.get("file", 0), row=number, line=own.get("line", number), start=0, end=0, group=0,
        id=own.get("id"), text=text, words=len(text.split()), script="spaced",
    )  # fmt: skip
    return RowScore(row, **{**defaults, **facts})


def dirty(number: int, text: str, evidence: Evidence, **facts: object) -> RowScore:
    """A row that shares a passage."""
    defaults = {
        "outcome": "dirty", "runs": 30, "runs_found": 29, "runs_all": 32, "runs_found_all": 31,
        "covered": len(text.split()), "longest": len(text.split()),
        "train_records": 1, "flagged": True, "evidence": evidence,
    }  # fmt: skip
    return score(number, text, **{**defaults, **facts})


def passage(text: str, first: int, last: int, before: str = "", after: str = "", line: int = 41) -> Evidence:
    """Evidence that the text from `first` to `last` stands in a training file."""
    return Evidence("data/train/part-0001.jsonl.gz", line, first, last, before, text[first:last], after)


def rows() -> tuple[RowScore, ...]:
    whole = "what is the capital of peru"
    return (
        dirty(1, QUESTION, passage(QUESTION, 0, 160, "Here is one for the class:\n\n", " The answer is 54."),
              id="qa-1"),
        score(2, "Nobody has ever seen this question before, and nobody will see it again.", id="qa-2"),
        dirty(3, HOSTILE, passage(HOSTILE, 0, len(HOSTILE), "\t<b>before</b> ", " after\u2066"),
              id="-1+1", train_records=12),
        score(4, whole, outcome="whole", n=None, runs=0, runs_all=0, covered=6, longest=6, stands_whole=True,
              train_records=3, flagged=True, evidence=passage(whole, 0, len(whole), line=0)),
        score(5, "Too short", outcome="too-short", n=None, runs=0, runs_all=0, looked_for=False, id="@sum"),
        score(6, "Answer the question. Use the facts given.", outcome="boilerplate-only", looked_for=False),
        score(7, "", outcome="no-text", n=None, runs=0, runs_all=0, looked_for=False, line=0),
        dirty(8, QUESTION, passage(QUESTION, 0, 160), accepted=True, file=1),
        dirty(9, QUESTION, passage(QUESTION, 0, 40), flagged=False, covered=8, longest=8, runs_found=1, file=1),
    )  # fmt: skip


def check(**changes: object) -> CheckResult:
    settings = {
        "name": "support-qa",
        "eval": {"files": ["evals/*.jsonl"], "fields": ["question"], "id": "qid"},
        "n": "auto",
        "flag_at": {"coverage": 0.5, "longest": 40},
        "fail_over": 0,
    }
    sample = CheckResult(
        name="support-qa",
        settings=settings,
        n=8,
        n_by_class={"spaced": 8, "thai": 16},
        n_rule="5th percentile of the rows' lengths in words, from 8 to 13",
        rows=rows(),
        train=(InputFile("data/train/part-0001.jsonl.gz", 123_456_789, "0" * 32, 1_000_000, 12, 0),),
        eval=(
            InputFile("evals/a.jsonl", 2_048, "1" * 32, 7, 1, 0),
            InputFile("evals/<b>&\u202e.jsonl", 512, "2" * 32, 2, 0, 0),
        ),
        boilerplate_runs=2,
        boilerplate_rows=3,
        limit="0",
        passed=False,
        complete=True,
        notes=("question was chosen: first by name, filled in every row",),
    )
    return replace(sample, **changes)


def run(*checks: CheckResult, **changes: object) -> RunResult:
    sample = RunResult(
        tool_version="0.1.0",
        unicode_version="14.0.0",
        text_policy="full",
        clean=True,
        checks=checks or (check(),),
        problems=(),
        exit_code=1,
    )
    return replace(sample, **changes)


def incomplete(one: CheckResult) -> RunResult:
    problem = Problem("data/train/<x>.jsonl", 7, "not UTF-8 at byte 12: convert the file")
    return run(replace(one, complete=False), problems=(problem,), exit_code=3)
