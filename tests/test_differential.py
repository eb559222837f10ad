"""The figures agree with published tools of the same method where their definitions and the contract's are one.

That is on texts of letters and single spaces, with N fixed and without the boilerplate filter, which they do not have.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
import world

from evalspill_guard import config, pipeline
from evalspill_guard.model import CheckResult
from evalspill_guard.text import choose_n

SYLLABLES = ["ba", "ko", "mi", "tur", "sel", "dra", "e", "наш", "ли", "öl"]


def _text(chance: random.Random, size: int) -> list[str]:
    return ["".join(chance.choices(SYLLABLES, k=chance.choice([1, 1, 1, 2]))) for _ in range(size)]


def _collection(seed: int, least: int = 1) -> tuple[list[str], list[str]]:
    """Eval rows, and records that hold some of them whole, some in part, and some not at all."""
    chance = random.Random(seed)
    rows = [_text(chance, chance.randint(least, 40)) for _ in range(61)]
    records = [_text(chance, chance.randint(1, 80)) for _ in range(60)]
    for row in chance.sample(rows, 40):
        first = chance.choice([0, 0, chance.randrange(len(row))])
        last = chance.choice([len(row), chance.randint(first, len(row))])
        for _ in range(chance.choice([1, 1, 3])):
            record = chance.choice(records)
            place = chance.randint(0, len(record))
            record[place:place] = row[first:last]
    return [" ".join(row) for row in rows], [" ".join(record) for record in records]


def _check(folder: Path, rows: Sequence[str], records: Sequence[str], n: int | str) -> CheckResult:
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in rows])
    world.jsonl(folder / "train.jsonl", [{"text": record} for record in records])
    path = world.config(folder, f"n: {n}\nboilerplate: off\nshort_rows: off\nflag_at: any\nmax_unchecked: 100%\n")
    return pipeline.run(config.load(path)).result.checks[0]


@pytest.mark.parametrize("seed", range(8))
def test_found_runs_of_each_row_are_those_of_overlapy(tmp_path: Path, seed: int) -> None:
    overlapy = pytest.importorskip("overlapy", reason="the peer package overlapy is not installed")
    rows, records = _collection(seed, least=13)
    peer = overlapy.OverlapyTestSet("rows", examples=[row.split() for row in rows])
    matches = overlapy.OverlapyNgramMatcher(set(map(tuple, peer.ngrams())))([one.split() for one in records])
    found: list[set[tuple[str, ...]]] = [set() for _ in rows]
    for number, run, _ in peer.get_matches(matches):
        found[number].add(run)
    check = _check(tmp_path, rows, records, "auto")
    assert check.n == peer.compute_n()
    assert [score.runs_found for score in check.rows] == [len(runs) for runs in found]
    most = [max((len(set(matches[run])) for run in runs), default=0) for runs in found]
    assert [score.train_records if not score.stands_whole else count for score, count in zip(check.rows, most, strict=True)] == most  # fmt: skip
    assert sum(map(len, found)) > 100


@pytest.mark.parametrize("seed", range(20))
def test_n_is_that_of_overlapy_where_five_percent_of_the_rows_is_no_whole_number(seed: int) -> None:
    """Where it is one, overlapy takes the value after the nearest rank."""
    overlapy = pytest.importorskip("overlapy", reason="the peer package overlapy is not installed")
    chance = random.Random(seed)
    lengths = [chance.randint(5, 16) for _ in range(chance.randint(1, 9) * 20 + chance.randint(1, 19))]
    peer = overlapy.OverlapyTestSet("rows", examples=[["word"] * length for length in lengths])
    assert choose_n(lengths, "spaced") == peer.compute_n()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [8, 13])
def test_overlap_of_each_row_is_that_of_toolkit_mmqa(tmp_path: Path, seed: int, n: int) -> None:
    contamination = pytest.importorskip(
        "toolkit_mmqa.contamination", reason="the peer package toolkit-mmqa is not installed"
    )
    peer_record = pytest.importorskip("toolkit_mmqa.records").Record
    rows, records = _collection(seed)
    peer = contamination.check_contamination(
        [("train", [peer_record(number, text) for number, text in enumerate(records)])],
        [contamination.Target("eval", [peer_record(number, text) for number, text in enumerate(rows)])],
        methods=("ngram",),
        ngram_size=n,
    )
    check = _check(tmp_path, rows, records, n)
    ours = {
        score.row.row - 1: (score.n, score.runs_found, score.runs, score.flagged)
        for score in check.rows if score.outcome == "dirty"
    }  # fmt: skip
    theirs = {
        row["index"]: (row["ngram"]["size"], row["ngram"]["matched"], row["ngram"]["total"], True)
        for row in peer.records
    }
    assert ours == theirs != {}
    assert check.count("too-short") == peer.targets[0]["ngram_unchecked_count"] > 0
    shares = {score.row.row - 1: f"{float(score.containment):.4f}" for score in check.rows if score.found}
    assert shares == {row["index"]: f"{row['ngram']['overlap']:.4f}" for row in peer.records}


def test_the_collections_hold_rows_found_whole_and_in_part_and_not_at_all(tmp_path: Path) -> None:
    rows, records = _collection(0)
    shares = [score.containment for score in _check(tmp_path, rows, records, 8).rows if score.n]
    assert {Fraction(0), Fraction(1)} < set(shares)
