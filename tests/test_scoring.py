"""Rules and limits at their borders, and the contract's own examples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from evalspill_guard.indexing import build
from evalspill_guard.kernel import batch
from evalspill_guard.model import EvalRow, Outcome, Place, RowScore, Script
from evalspill_guard.scoring import (
    BoilerplateRule,
    Findings,
    FlagRule,
    Gate,
    Lengths,
    Scored,
    lengths_for,
    n_rule,
    score_rows,
)
from evalspill_guard.text import choose_n, script, words

DEFAULT = BoilerplateRule(10, Fraction(1, 20))
ALL_N: dict[Script, int] = {"spaced": 13, "chinese": 13, "japanese": 20, "thai": 26}


def row(text: str = "", size: int | None = None, kind: Script | None = None) -> EvalRow:
    found = words(text)
    return EvalRow(0, 1, 1, 0, 0, 0, None, text, len(found) if size is None else size, kind or script(found))


def scored(
    outcome: Outcome = "dirty", *, size: int = 100, covered: int = 0, longest: int = 0,
    runs: int = 0, found: int = 0, whole: bool = False, flagged: bool = False, accepted: bool = False,
) -> RowScore:  # fmt: skip
    return RowScore(
        row(size=size), outcome, "", covered=covered, longest=longest, runs=runs, runs_found=found,
        stands_whole=whole, flagged=flagged, accepted=accepted,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "distinct", "least"),
    [
        (Fraction(1, 20), 0, 2),
        (Fraction(1, 20), 40, 2),
        (Fraction(1, 20), 41, 3),
        (Fraction(1, 20), 60, 3),
        (Fraction(1, 20), 1000, 50),
        (Fraction(0), 1000, 2),
        (Fraction(1), 7, 7),
        (0, 1000, 2),
        (1, 1000, 2),
        (3, 1000, 3),
    ],
)
def test_a_share_of_the_rows_is_rounded_up_and_never_less_than_two(
    rows: Fraction | int, distinct: int, least: int
) -> None:
    assert BoilerplateRule(10, rows).least_rows(distinct) == least


@pytest.mark.parametrize(
    ("rule", "score", "flagged"),
    [
        (FlagRule(), scored(covered=50), True),
        (FlagRule(), scored(covered=49), False),
        (FlagRule(), scored(covered=49, longest=40), True),
        (FlagRule(), scored(covered=49, longest=39), False),
        (FlagRule(), scored(covered=49, runs=2, found=2), False),
        (FlagRule(longest=None), scored(longest=100), False),
        (FlagRule(coverage=None), scored(covered=100), False),
        (FlagRule(None, None, Fraction(1, 3)), scored(runs=3, found=1), True),
        (FlagRule(None, None, Fraction(1, 3)), scored(runs=300, found=99), False),
        (FlagRule(Fraction(33, 100)), scored(size=3, covered=1), True),
        (FlagRule(Fraction(3334, 10000)), scored(size=3, covered=1), False),
        (FlagRule(Fraction(1, 10), None), scored(size=10, covered=1), True),
        (FlagRule(None, None, None), scored(covered=100, longest=100, runs=1, found=1), False),
        (FlagRule(None, None, any=True), scored(runs=100, found=1), True),
        (FlagRule(None, None, any=True), scored("clean", runs=100), False),
        (FlagRule(Fraction(0)), scored("clean", runs=100), False),
        (FlagRule(Fraction(0), 40, Fraction(0), any=True), scored("boilerplate-only"), False),
        (FlagRule(Fraction(0)), scored("too-short"), False),
        (FlagRule(None, None, None), scored("whole"), True),
        (FlagRule(None, None, None), scored("dirty", whole=True), True),
    ],
)
def test_a_row_is_flagged_at_or_above_any_one_key_and_always_when_whole(
    rule: FlagRule, score: RowScore, flagged: bool
) -> None:
    assert rule.applies(score) is flagged


@pytest.mark.parametrize(
    ("kind", "floor", "whole_from"), [("spaced", 8, 5), ("chinese", 8, 5), ("japanese", 12, 8), ("thai", 16, 10)]
)
def test_each_class_has_its_own_floor_and_its_own_least_length_to_be_looked_for(
    kind: Script, floor: int, whole_from: int
) -> None:
    lengths = Lengths(ALL_N, 5)
    searches = [lengths.search(row(size=size, kind=kind)) for size in range(floor + 1)]
    assert lengths.floor(kind) == floor
    assert searches == ["none"] * 3 + ["tiny"] * (whole_from - 3) + ["whole"] * (floor - whole_from) + ["runs"]


def test_an_n_below_the_floor_is_the_floor() -> None:
    small = lengths_for([], 6, 5)
    assert [small.floor(kind) for kind in ALL_N] == [6, 6, 6, 6]
    assert [small.search(row(size=size, kind="thai")) for size in (5, 6)] == ["tiny", "runs"]


@pytest.mark.parametrize(("short_rows", "searches"), [
    (None, ["none"] * 8),
    (1, ["none"] * 3 + ["whole"] * 5),
    (3, ["none"] * 3 + ["whole"] * 5),
    (7, ["none"] * 3 + ["tiny"] * 4 + ["whole"]),
    (50, ["none"] * 3 + ["tiny"] * 5),
])  # fmt: skip
def test_short_rows_sets_from_where_a_short_row_is_looked_for_inside_records(
    short_rows: int | None, searches: list[str]
) -> None:
    lengths = Lengths(ALL_N, short_rows)
    assert [lengths.search(row(size=size, kind="spaced")) for size in range(8)] == searches


@pytest.mark.parametrize(("size", "n"), [(8, 8), (12, 12), (13, 13), (14, 13)])
def test_a_row_shorter_than_n_has_one_run_of_its_own_length(size: int, n: int) -> None:
    assert Lengths(ALL_N, 5).query(row(size=size, kind="spaced")).n == n


def test_each_class_takes_its_n_from_its_own_rows() -> None:
    rows = [row(size=9, kind="spaced")] * 3 + [row(size=18, kind="thai")] * 2 + [row(size=30, kind="japanese")]
    assert lengths_for(rows, None, 5).n == {"spaced": 9, "thai": 18, "japanese": 20, "chinese": 8}
    assert set(lengths_for(rows, 11, 5).n.values()) == {11}
    assert n_rule(11) != n_rule(None)


@pytest.mark.parametrize(("shortest", "rows", "n"), [
    (1, 20, 9), (1, 21, 10), (2, 40, 10), (2, 41, 11), (1, 19, 9), (1, 1, 9),
])  # fmt: skip
def test_n_stands_at_place_five_percent_of_the_rows_rounded_up(shortest: int, rows: int, n: int) -> None:
    lengths = [9 + place for place in range(shortest)] + [8 + shortest + 1] * (rows - shortest)
    assert choose_n(lengths, "spaced") == n


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("spaced", 8, 13), ("chinese", 8, 13), ("japanese", 12, 20), ("thai", 16, 26)]
)
def test_n_stays_between_floor_and_cap_of_its_class(kind: Script, low: int, high: int) -> None:
    assert [choose_n(lengths, kind) for lengths in ([], [0, 0], [1], [low], [high], [99], [0, 99])] == [
        low, low, low, low, high, high, high,
    ]  # fmt: skip


FLAGGED, ACCEPTED = scored(flagged=True), scored(flagged=True, accepted=True)


@pytest.mark.parametrize(
    ("gate", "scores", "passes"),
    [
        (Gate(), [], True),
        (Gate(), [scored("clean"), scored()], True),
        (Gate(), [FLAGGED], False),
        (Gate(), [ACCEPTED], True),
        (Gate(), [ACCEPTED, FLAGGED], False),
        (Gate(1), [ACCEPTED, FLAGGED], True),
        (Gate(1), [FLAGGED, FLAGGED], False),
        (Gate(None, Fraction(1, 200)), [FLAGGED] + [scored("clean")] * 199, True),
        (Gate(None, Fraction(1, 200)), [FLAGGED] + [scored("clean")] * 198, False),
        (Gate(None, Fraction(1, 2)), [FLAGGED, scored("too-short"), scored("no-text")], False),
        (Gate(None, Fraction(1, 2)), [FLAGGED, scored("boilerplate-only")], False),
        (Gate(None, Fraction(1, 2)), [scored("whole", flagged=True), scored("clean")], True),
        (Gate(None, Fraction(1, 2)), [FLAGGED, ACCEPTED], True),
        (Gate(None, Fraction(1, 3)), [FLAGGED, FLAGGED, ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED], True),
        (Gate(None, Fraction(0)), [FLAGGED], False),
        (Gate(None, Fraction(1)), [FLAGGED], True),
    ],
)
def test_the_gate_counts_flagged_rows_that_no_baseline_accepts(
    gate: Gate, scores: Sequence[RowScore], passes: bool
) -> None:
    assert gate.passes(scores) is passes


def test_the_limit_is_shown_as_it_is_written() -> None:
    assert [g.shown for g in (Gate(), Gate(3), Gate(None, Fraction(1, 200)))] == ["0", "3", "0.5%"]


# The filter and what survives it, on rows and records given as text. `held` says how many records hold each text.


def score(
    rows: Sequence[str],
    held: Sequence[tuple[str, int]],
    rule: BoilerplateRule | None = DEFAULT,
    others: Sequence[str] = (),
) -> Scored:
    """Score rows on records of which `held` gives the text and the number of copies; `others` are of another check."""
    evals = [row(text) for text in rows]
    lengths = lengths_for(evals, None, 5)
    index = build([lengths.query(one) for one in (*evals, *map(row, others))])
    copies = [text for text, count in held for _ in range(count)]
    ids, where = index.found_in(batch([[text] for text in copies]))
    distinct, counts = np.unique(ids, return_counts=True)
    places = {one: [Place(0, int(n) + 1, 0, 0, int(n)) for n in where[ids == one][:4]] for one in distinct.tolist()}
    return score_rows(
        evals, [f"mark {at}" for at in range(len(evals))], lengths, index, 0, Findings(distinct, counts, places), rule
    )


def questions(count: int, size: int = 20) -> list[str]:
    return [" ".join(f"w{number}x{place}" for place in range(size)) for number in range(count)]


def dirty(result: Scored) -> int:
    return sum(one.score.outcome == "dirty" for one in result.rows)


def part(text: str) -> str:
    return " ".join(text.split()[:15])


@pytest.mark.parametrize("copies", [1, 10, 11, 27])
def test_rows_copied_often_are_dirty_however_often_they_are_copied(copies: int) -> None:
    rows = questions(50)
    assert dirty(score(rows, [(text, copies) for text in rows])) == 50
    assert dirty(score(rows, [(part(text), copies) for text in rows])) == 50


@pytest.mark.parametrize(("copies", "owners", "boilerplate"), [
    (10, 50, False), (11, 50, True), (11, 3, True), (11, 2, False), (11, 1, False), (200, 2, False),
])  # fmt: skip
def test_a_run_is_boilerplate_past_ten_records_and_from_a_twentieth_of_the_rows(
    copies: int, owners: int, boilerplate: bool
) -> None:
    template = " ".join(f"t{place}" for place in range(13))
    rows = [f"{template} {text}" if number < owners else text for number, text in enumerate(questions(60))]
    result = score(rows, [(template, copies)])
    assert (dirty(result), result.boilerplate_runs, result.boilerplate_rows) == (
        (0, 1, owners) if boilerplate else (owners, 0, 0)
    )


def test_rows_of_the_same_words_count_once_as_owners() -> None:
    rows = [questions(1)[0]] * 30 + questions(3)[1:]
    assert dirty(score(rows, [(part(rows[0]), 50)])) == 30


def test_a_row_that_stands_whole_keeps_its_template() -> None:
    template = " ".join(f"t{place}" for place in range(13))
    rows = [f"{template} {text}" for text in questions(20)]
    result = score(rows, [(template, 11), (rows[4], 1)])
    kept = result.rows[4].score
    assert (kept.runs, kept.runs_found, kept.longest, kept.stands_whole) == (21, 21, 33, True)
    assert (dirty(result), result.boilerplate_rows) == (1, 19)


@pytest.mark.parametrize(("own", "outcome"), [(7, "boilerplate-only"), (8, "clean")])
def test_a_row_with_less_than_the_floor_outside_its_template_is_not_called_clean(own: int, outcome: str) -> None:
    template = " ".join(f"t{place}" for place in range(13))
    rows = [f"{template} {text}" for text in questions(20, own)]
    result = score(rows, [(template, 11)])
    assert {one.score.outcome for one in result.rows} == {outcome}
    assert {one.score.looked_for for one in result.rows} == {outcome == "clean"}
    assert {str(one.score.containment_all) for one in result.rows} == {f"1/{own + 1}"}


def test_without_the_filter_a_template_is_found_like_any_text() -> None:
    template = " ".join(f"t{place}" for place in range(13))
    assert dirty(score([f"{template} {text}" for text in questions(20)], [(template, 11)], None)) == 20


def test_found_runs_count_once_and_cover_their_words() -> None:
    text = questions(1, 30)[0]
    held = " ".join(text.split()[10:25])
    figures = score([text], [(held, 1), (f"{held} more", 2)]).rows[0].score
    assert (figures.n, figures.runs, figures.runs_found, figures.covered, figures.train_records) == (13, 18, 3, 15, 3)
    assert (figures.containment, figures.coverage) == (Fraction(1, 6), Fraction(1, 2))


def test_a_repeated_run_is_one_run() -> None:
    figures = score(["a b c d " * 8], [("a b c d " * 4, 1)]).rows[0].score
    assert (figures.runs, figures.runs_found, figures.covered, figures.row.words) == (4, 4, 32, 32)


@pytest.mark.parametrize(
    ("text", "held", "outcome"),
    [
        ("one two three four five", "so one two three four five it is", "whole"),
        ("one two three four", "so one two three four it is", "too-short"),
        ("one two three four", "One, two: three... four!", "whole"),
        ("one two", "one two", "too-short"),
        ("", "anything", "no-text"),
    ],
)
def test_short_rows_are_looked_for_as_a_whole(text: str, held: str, outcome: str) -> None:
    found = score([text], [(held, 3)]).rows[0]
    figures, whole = found.score, outcome == "whole"
    assert (figures.outcome, figures.train_records, len(found.places)) == (outcome, 3 * whole, 3 * whole)
    assert (figures.longest, figures.covered, figures.fingerprint) == (figures.row.words * whole,) * 2 + ("mark 0",)
    assert (figures.n, figures.runs, figures.coverage) == (None, 0, outcome == "whole")


@pytest.mark.parametrize(("more", "boilerplate"), [(["", " -- "], 1), (["one row more"], 0)])
def test_rows_of_no_words_do_not_raise_the_number_of_rows_that_make_a_run_boilerplate(
    more: list[str], boilerplate: int
) -> None:
    template = " ".join(f"t{place}" for place in range(13))
    rows = [f"{template} {text}" if number < 2 else text for number, text in enumerate(questions(40))]
    assert score(rows + more, [(template, 11)]).boilerplate_runs == boilerplate


@pytest.mark.parametrize(("rows", "boilerplate"), [(20, 1), (21, 0)])
def test_the_share_of_rows_counts_the_rows_of_the_check_alone(rows: int, boilerplate: int) -> None:
    template = " ".join(f"t{place}" for place in range(13))
    texts = [f"{template} {text}" if number < 2 else text for number, text in enumerate(questions(rows))]
    others = [f"of another check {text}" for text in questions(3)]
    result = score(texts, [(template, 11)], BoilerplateRule(10, Fraction(1, 10)), others)
    assert (result.boilerplate_runs, len(result.boilerplate)) == (boilerplate, boilerplate)
