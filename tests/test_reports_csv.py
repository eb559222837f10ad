"""The CSV files, read back by `csv`."""

import csv
import io
from fractions import Fraction

import pytest
from reports_sample import HOSTILE, QUESTION, check, dirty, passage, run, score

from evalspill_guard.reports.csv_report import contamination_csv, unchecked_csv
from evalspill_guard.reports.table import FOUND_COLUMNS, decimal


def found(*rows: object) -> list[dict[str, str]]:
    one = check(rows=rows)
    text = contamination_csv(run(one), one).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_columns_are_those_that_were_promised() -> None:
    header = (
        "eval_file,row,line,id,fingerprint,flagged,accepted,kind,n,words,runs,runs_found,containment,"
        "containment_unfiltered,coverage,longest,train_file,train_line,train_records,passage,context"
    )
    assert contamination_csv(run(), check()).decode().split("\n")[0] == header
    assert ",".join(FOUND_COLUMNS) == header
    assert unchecked_csv(run(), check()).decode().split("\n")[0] == "eval_file,row,line,id,words,reason"


def test_a_found_row_has_its_figures() -> None:
    [row] = found(dirty(1, QUESTION, passage(QUESTION, 0, 160)))
    figures = ("kind", "n", "runs", "runs_found", "containment", "containment_unfiltered", "longest", "train_line")
    assert [row[name] for name in figures] == ["run", "8", "30", "29", "0.9666", "0.9687", "36", "41"]


def test_a_row_found_whole_has_no_runs_and_is_covered() -> None:
    [row] = found(score(4, "one two three", outcome="whole", n=None, flagged=True, longest=3))
    assert [row[name] for name in ("kind", "n", "runs", "runs_found", "containment")] == ["whole", "", "", "", ""]
    assert [row[name] for name in ("containment_unfiltered", "coverage", "flagged")] == ["", "1.0000", "true"]


def test_clean_and_unchecked_rows_are_not_in_the_contamination_report() -> None:
    rows = contamination_csv(run(), check()).decode()
    assert [row["row"] for row in csv.DictReader(io.StringIO(rows, newline=""))] == ["1", "3", "4", "8", "9"]


def test_rows_that_were_not_checked_stand_apart_with_the_reason() -> None:
    rows = csv.DictReader(io.StringIO(unchecked_csv(run(), check()).decode(), newline=""))
    assert [(row["row"], row["line"], row["id"], row["words"], row["reason"]) for row in rows] == [
        ("5", "5", "'@sum", "2", "too-short"),
        ("6", "6", "", "7", "boilerplate-only"),
        ("7", "", "", "0", "no-text"),
    ]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(start: str) -> None:
    [row] = found(dirty(1, QUESTION, passage(QUESTION, 0, 160), id=f"{start}1+1"))
    assert row["id"] == f"'{start}1+1"


def test_hostile_text_stays_one_cell() -> None:
    [row] = found(dirty(1, HOSTILE, passage(HOSTILE, 0, len(HOSTILE)), id='a,"b"\r\nc'))
    assert row["id"] == 'a,"b"\r\nc'
    assert row["passage"] == "'" + " ".join(HOSTILE.split()).replace("\x00", "\ufffd").replace("\ud800", "\ufffd")


def test_quotes_stand_only_where_they_are_needed() -> None:
    one = check(rows=(dirty(1, "a b, c", passage("a b, c", 0, 3), id="x y"),))
    assert b",x y," in contamination_csv(run(one), one)
    assert b'"' not in contamination_csv(run(one), one)


def test_passage_and_context_are_folded_and_short() -> None:
    text = "word\n\t " * 1_000
    evidence = passage(text, 0, len(text), before="b" * 300, after="a" * 300)
    [row] = found(dirty(1, text, evidence))
    assert row["passage"] == ("word " * 200)
    assert row["context"].startswith("b" * 200 + "word word")
    assert row["context"].endswith(" … " + "a" * 200)
    assert len(row["context"]) < 1_410


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Fraction(2, 3), "0.6666"),
        (Fraction(1), "1.0000"),
        (Fraction(99_999, 100_000), "0.9999"),
        (Fraction(0), "0.0000"),
    ],
)
def test_shares_are_rounded_down(share: Fraction, shown: str) -> None:
    assert decimal(share) == shown
