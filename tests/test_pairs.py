"""Public benchmarks against public training sets with known overlap: the figures of an independent computation."""

import os
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from evalspill_guard.config import parse
from evalspill_guard.pipeline import run

DATA = Path(os.environ.get("EVALSPILL_DATA", "missing"))
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="EVALSPILL_DATA names no folder of public benchmarks")


class Pair(NamedTuple):
    name: str
    eval_file: str
    eval_fields: str
    train_file: str
    train_fields: str
    figures: tuple[int, int, int, int, int, int, float, int, int]


PAIRS = (
    Pair("mgsm-in-gsm8k-test", "mgsm/mgsm_en.tsv", "'0'", "gsm8k/test.jsonl", "question",
         (13, 250, 250, 250, 250, 250, 1.0, 0, 0)),
    Pair("mgsm-in-gsm8k-train", "mgsm/mgsm_en.tsv", "'0'", "gsm8k/train.jsonl", "question",
         (13, 250, 250, 0, 0, 0, 0.0, 0, 0)),
    Pair("gsm8k-split", "gsm8k/test.jsonl", "question", "gsm8k/train.jsonl", "question, answer",
         (13, 1319, 1319, 3, 1, 0, 0.3125, 0, 0)),
    Pair("gsm8k-in-gsm-hard", "gsm8k/test.jsonl", "question", "gsm_hard/test.jsonl", "input",
         (13, 1319, 1319, 1302, 1291, 329, 0.7287, 0, 0)),
    Pair("gsm8k-in-metamath-backward", "gsm8k/test.jsonl", "question", "metamath/GSM8K_Backward.jsonl", "question",
         (13, 1319, 1319, 1231, 1200, 0, 0.6083, 0, 0)),
    Pair("gsm8k-rephrased", "gsm8k/test.jsonl", "question", "llm_decontaminator/rephrase_gsm8k.jsonl", "text",
         (13, 1319, 1319, 0, 0, 0, 0.0, 0, 0)),
    Pair("humaneval-rephrased", "humaneval/HumanEval.jsonl.gz", "prompt", "llm_decontaminator/humaneval_python.jsonl",
         "text", (13, 164, 164, 1, 0, 0, 0.3676, 0, 0)),
    Pair("truthfulqa-in-gpt-judge", "truthfulqa/TruthfulQA_v1.csv", "Question", "truthfulqa/finetune_truth.jsonl",
         "prompt", (8, 817, 599, 599, 793, 599, 1.0, 194, 24)),
    Pair("seed-tasks-in-gpteacher", "self_instruct/seed_tasks.jsonl", "instruction", "gpteacher/seedprompts.jsonl",
         "instruction, 'instances[].input', 'instances[].output'", (8, 175, 144, 144, 175, 144, 1.0, 31, 0)),
    Pair("svamp-in-msvamp-english", "svamp/SVAMP.json", "Body, Question", "msvamp/test_English.json", "m_query",
         (13, 1000, 1000, 995, 987, 942, 0.9729, 0, 0)),
    Pair("vicuna-in-mt-bench", "vicuna_bench/question.jsonl", "'turns[]'", "mt_bench/question.jsonl", "'turns[]'",
         (9, 80, 80, 2, 2, 2, 1.0, 0, 0)),
    Pair("xcopa-thai", "xcopa/test.th.jsonl", "premise", "xcopa/val.th.jsonl", "premise, choice1, choice2",
         (16, 500, 294, 0, 0, 0, 0.0, 0, 206)),
    Pair("bbh-date-in-bigbench", "bbh/date_understanding.json", "input", "zero_shot_cot/Bigbench_Date__task.json",
         "input", (13, 250, 250, 250, 115, 0, 0.3131, 0, 0)),
)  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_pair_has_the_known_figures(pair: Pair, tmp_path: Path) -> None:
    header = ", header: false" if pair.eval_file.endswith(".tsv") else ""
    text = f"""
version: 1
train: {{files: '{DATA.resolve()}/{pair.train_file}', fields: [{pair.train_fields}]}}
eval: {{files: '{DATA.resolve()}/{pair.eval_file}', fields: [{pair.eval_fields}]{header}}}
"""
    result = run(parse(text, tmp_path / "evalspill.yaml")).result
    check = result.checks[0]
    dirty = [score for score in check.rows if score.outcome == "dirty"]
    mean = sum((score.containment for score in dirty), Fraction(0)) / max(len(dirty), 1)
    full = sum(score.containment == 1 for score in dirty)
    assert result.problems == ()
    assert (
        check.n, len(check.rows), check.scored, len(dirty), check.flagged, full, round(float(mean), 4),
        check.count("whole"), check.count("too-short"),
    ) == pair.figures  # fmt: skip
