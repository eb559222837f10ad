"""What a person reads after a check."""

from dataclasses import replace
from fractions import Fraction

import pytest
import reports_sample as sample

from evalspill_guard.fields import FieldInfo
from evalspill_guard.tables import Table, field_table, figures, place, plain, render_table, share, verdict, worst_rows

QUESTION = sample.QUESTION


def _dirty(number: int, **facts: object) -> object:
    return sample.dirty(number, QUESTION, sample.passage(QUESTION, 0, 40), **facts)


def _order(*scores: object) -> list[str]:
    return [row[0] for row in worst_rows(sample.check(rows=scores)).rows]


def test_the_figures_of_a_check_stand_under_its_name() -> None:
    table = figures(sample.check())
    shown = dict(table.rows)
    assert (table.title, table.header) == ("check support-qa", ("figure", "value"))
    assert shown.pop("N").startswith("8 (5th percentile")
    assert shown == {
        "rows": "9", "scored": "5", "too short to score": "1", "boilerplate-only": "1", "no text": "1",
        "unchecked": "3", "dirty": "4", "clean": "1", "found whole (short rows)": "1", "flagged": "4 (1 accepted)",
        "boilerplate filter": "2 runs, 3 rows touched",
        "training": "1000000 records in 1 files, 12 without text, 0 unreadable",
        "gate": "3 flagged, 0 allowed", "verdict": "FAILED",
    }  # fmt: skip


def test_every_class_of_rows_shows_its_n() -> None:
    assert "spaced 8, thai 16" in dict(figures(sample.check()).rows)["N"]


@pytest.mark.parametrize(
    ("passed", "complete", "word"),
    [(True, True, "passed"), (False, True, "FAILED"), (True, False, "INCOMPLETE"), (False, False, "INCOMPLETE")],
)
def test_an_incomplete_check_has_not_passed(passed: bool, complete: bool, word: str) -> None:
    assert verdict(sample.check(passed=passed, complete=complete)) == word


def test_no_table_holds_text_of_a_row_or_of_training() -> None:
    check = sample.check()
    shown = plain(figures(check)) + plain(worst_rows(check))
    assert not any(word in shown for word in ("pens", "cmd", "capital", "Too short", "class:", "54"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(0), "0.0000"), (Fraction(1), "1.0000"), (Fraction(1, 3), "0.3333"), (Fraction(2, 3), "0.6666"),
        (Fraction(99_999, 100_000), "0.9999"), (Fraction(10**18 - 1, 10**18), "0.9999"),
        (Fraction(1, 10**9), "0.0000"),
    ],
)  # fmt: skip
def test_shares_are_rounded_down(value: Fraction, shown: str) -> None:
    assert share(value) == shown


def test_every_share_of_four_decimals_is_shown_as_it_is() -> None:
    assert [share(Fraction(n, 10_000)) for n in range(10_000)] == [f"0.{n:04d}" for n in range(10_000)]


def test_flagged_rows_come_first_then_the_longest_passage_then_coverage_then_runs() -> None:
    scores = [
        _dirty(1, flagged=False, longest=30), _dirty(2, longest=9, covered=9), _dirty(3, longest=10, covered=5),
        _dirty(4, longest=9, covered=10), _dirty(5, longest=9, covered=9, runs_found=30),
    ]  # fmt: skip
    assert _order(*scores) == [f"evals/a.jsonl:{n}" for n in (3, 4, 5, 2, 1)]


def test_ties_are_shown_in_the_order_of_file_and_row() -> None:
    scores = [_dirty(2, file=1), _dirty(10), _dirty(9), _dirty(1, file=1)]
    assert _order(*scores) == ["evals/a.jsonl:9", "evals/a.jsonl:10", *(f"evals/<b>&\u202e.jsonl:{n}" for n in (1, 2))]


def test_only_the_ten_worst_of_the_rows_found_are_shown() -> None:
    scores = [*(_dirty(n, longest=n) for n in range(1, 13)), sample.score(99, QUESTION)]
    assert _order(*scores) == [f"evals/a.jsonl:{n}" for n in range(12, 2, -1)]


def test_a_row_shows_its_figures_and_where_it_was_found_first() -> None:
    score = _dirty(8, id="qa-8", covered=10, longest=9, runs=30, runs_found=20)
    assert worst_rows(sample.check(rows=(score,))).rows == (
        ("evals/a.jsonl:8", "qa-8", "run", "0.6666", share(Fraction(10, len(QUESTION.split()))), "9", "yes",
         "data/train/part-0001.jsonl.gz:41"),
    )  # fmt: skip


def test_a_row_found_whole_has_no_containment() -> None:
    whole = next(score for score in sample.rows() if score.outcome == "whole")
    assert worst_rows(sample.check(rows=(whole,))).rows[0][2:6] == ("whole", "", "1.0000", "6")


def test_a_format_without_lines_shows_the_row_instead() -> None:
    score = _dirty(7, line=0)
    score = replace(score, evidence=replace(score.evidence, train_line=0))
    first, *_, last = worst_rows(sample.check(rows=(score,))).rows[0]
    assert (first, last) == ("evals/a.jsonl#7", "data/train/part-0001.jsonl.gz")
    assert place("a", 3, 7) == "a:3"


def test_columns_are_aligned_without_blanks_at_the_end() -> None:
    table = Table("title", ("a", "long name", "c"), (("value", "x", ""), ("v", "", "last")))
    assert plain(table).split("\n") == [
        "title",
        "  a      long name  c",
        "  value  x",
        "  v                 last",
    ]


def test_wide_letters_and_marks_keep_the_columns_aligned() -> None:
    table = Table("t", ("ab", "c"), (("日", "x"), ("e\u0301e", "y"), ("zz", "w")))
    assert plain(table).split("\n")[1:] == ["  ab  c", "  日  x", "  e\u0301e  y", "  zz  w"]


def test_a_cell_cannot_forge_a_line() -> None:
    table = Table("t\nu", ("h",), (("a\nverdict  passed\r\x1b[31m",), ("::error::x",)))
    assert plain(table).split("\n") == ["t\\nu", "  h", "  a\\nverdict  passed\\r\\x1b[31m", "  \\:\\:error::x"]


def test_a_table_without_rows_is_its_header() -> None:
    assert plain(Table("t", ("a", "b"), ())) == "t\n  a  b"


def test_the_field_table_shows_what_was_chosen_and_why() -> None:
    infos = [FieldInfo("question", 1.0, 41.6, 0.004, True, "why"), FieldInfo("level", 0.5, 4.0, 0.9, False, "because")]
    assert field_table(infos).rows == (
        ("question", "100%", "42", "0%", "yes", "why"), ("level", "50%", "4", "90%", "no", "because")
    )  # fmt: skip
    assert render_table(infos) == plain(field_table(infos))
