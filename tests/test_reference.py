"""The gate's figures are those that the contract gives when it is worked out by hand, on data made to collide."""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import reference
import world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import Answer, Figures, Settings

from evalspill_guard import config, pipeline, text
from evalspill_guard.model import CheckResult, RowScore, RunResult

Leaves = tuple[str, ...]

WORDS = {
    "latin": ["a", "B", "b", "ab", "don't", "3.14", "e\u0301", "é", "so\u00adft", "soft", "ﬁne", "İ", "straße"],
    "cyrillic": ["да", "Да", "и\u0306", "й", "σοφος", "ΣΟΦΟΣ", "не", "да-не"],
    "chinese": ["我", "是", "人", "我是", "大\ufe00", "人１"],
    "japanese": ["か", "カ", "か\u3099", "が", "ｶﾞ", "ー", "日", "本", "々"],
    "thai": ["ก", "ก็", "ดำ", "ขี่", "๑", "ม๑"],
    "mixed": ["a", "Bé", "我", "か", "ก็", "ํา", "\u0301", "x我y", "🄐", "™", "\u200b"],
}
GAPS = ["", " ", " ", "  ", "-", ", ", "。", "\n", "\t", "\u00a0", "\u2028"]


class Data(NamedTuple):
    """Eval rows and training records, as their leaves."""

    rows: list[Leaves]
    records: list[Leaves]


@st.composite
def phrases(draw: st.DrawFn) -> list[list[str]]:
    """A few passages that rows and records are put together from, so that they share many."""
    names = draw(st.lists(st.sampled_from(sorted(WORDS)), min_size=1, max_size=2))
    pieces = [word for name in names for word in WORDS[name]]
    gaps = GAPS if draw(st.booleans()) else [" "]
    piece = st.tuples(st.sampled_from(pieces), st.sampled_from(gaps)).map("".join)
    return draw(st.lists(st.lists(piece, min_size=1, max_size=7), min_size=3, max_size=8))


def _cut(draw: st.DrawFn, pieces: list[str], most: int) -> Leaves:
    """The pieces as one to `most` leaves."""
    cuts = sorted(draw(st.lists(st.integers(0, len(pieces)), max_size=most - 1)))
    edges = [0, *cuts, len(pieces)]
    return tuple("".join(pieces[first:last]) for first, last in pairwise(edges))


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Rows, and records that hold them whole, in part, between other text, cut over leaves, and more than once."""
    pool = draw(phrases())
    template = pool[0] if draw(st.integers(0, 2)) else []
    several = st.lists(st.sampled_from(pool), min_size=1, max_size=5).map(_flat)
    own = st.tuples(st.sampled_from([[], template]), several).map(_flat)
    rows = [*draw(st.lists(own, min_size=3, max_size=8)), *draw(st.sampled_from([[], [], [[]]]))]
    row = st.sampled_from(rows)
    part = st.tuples(row, st.integers(0, 20), st.integers(1, 25)).map(lambda cut: cut[0][cut[1] : cut[1] + cut[2]])
    body = row | part | own | st.tuples(several, row | part, several).map(_flat)
    bodies = draw(st.lists(body, min_size=1, max_size=6))
    records = [_cut(draw, one, 3) for one in bodies for _ in range(draw(st.sampled_from([1, 1, 2, 6])))]
    return Data([_cut(draw, one, 2) for one in rows], draw(st.permutations(records)))


def _flat(parts: Sequence[Sequence[str]]) -> list[str]:
    return [one for part in parts for one in part]


shares = st.sampled_from([Fraction(percent, 100) for percent in (5, 33, 50, 75, 90, 100)])
check_settings = st.builds(
    Settings,
    n=st.sampled_from([None, 1, 2, 3, 4, 5, 9, 13, 21]),
    short_rows=st.sampled_from([None, 1, 3, 5, 5, 7]),
    boilerplate=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3) | shares),
    flag_at=st.none()
    | st.dictionaries(st.sampled_from(["coverage", "containment"]), shares, min_size=1)
    | st.fixed_dictionaries({"longest": st.integers(1, 40)}),
    fail_over=st.integers(0, 3) | shares,
    ignored=st.just(()),
)  # fmt: skip


def _percent(value: Fraction | int) -> str:
    return str(value) if isinstance(value, int) else f"{float(value * 100):g}%"


def _written(name: str, given_: Settings, train: str) -> str:
    """One check in YAML."""
    rule, flags = given_.boilerplate, given_.flag_at
    boilerplate = "off" if rule is None else f"{{records: {rule[0]}, rows: {_percent(rule[1])}}}"
    flag_at = "any" if flags is None else "{" + ", ".join(f"{k}: {_percent(v)}" for k, v in flags.items()) + "}"
    ignore = f"    ignore: [{', '.join(f'ignore-{n}.txt' for n in range(len(given_.ignored)))}]\n"
    return (
        f"  - name: {name}\n    train: {{files: {train}, max_empty: 100%}}\n"
        f"    eval: {{files: eval.jsonl, fields: [question]}}\n    n: {given_.n or 'auto'}\n"
        f"    boilerplate: {boilerplate}\n    short_rows: {given_.short_rows or 'off'}\n    flag_at: {flag_at}\n"
        f"    fail_over: {_percent(given_.fail_over)}\n    max_unchecked: 100%\n{ignore if given_.ignored else ''}"
    )


def run(given_: Data, checks: Mapping[str, Settings], files: int = 1, train: str = "'t*.jsonl'") -> RunResult:
    """Write the data, the records over so many files, and run the gate on them."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        world.jsonl(folder / "eval.jsonl", [{"question": row} for row in given_.rows])
        size = -(-len(given_.records) // files)
        for number in range(files):
            part = given_.records[number * size : (number + 1) * size]
            world.jsonl(folder / f"t{number}.jsonl", [{"text": list(record)} for record in part])
        for one in checks.values():
            for number, ignored in enumerate(one.ignored):
                (folder / f"ignore-{number}.txt").write_text(ignored, encoding="utf-8", newline="")
        written = "".join(_written(name, one, train) for name, one in checks.items())
        (folder / "evalspill.yaml").write_text(f"version: 1\nchecks:\n{written}")
        return pipeline.run(config.load(folder / "evalspill.yaml")).result


def _figures(score: RowScore) -> Figures:
    return Figures(
        score.outcome, score.n, score.runs, score.runs_found, score.containment_all, score.coverage, score.longest,
        score.train_records, score.flagged, score.looked_for,
    )  # fmt: skip


def _answer(check: CheckResult) -> Answer:
    rows = [_figures(score) for score in check.rows]
    by_class = dict(check.n_by_class) if any(score.row.words for score in check.rows) else {}
    return Answer(rows, by_class, check.boilerplate_runs, check.boilerplate_rows, check.passed)


def _wrong(result: RunResult) -> list[str]:
    """The problems that data made at random do not explain."""
    explained = ("yields text", "could be scored", "holds no records")
    return [problem.what for problem in result.problems if not any(part in problem.what for part in explained)]


usual = settings.default.max_examples if settings.default else 100
modest = settings(max_examples=usual // 4, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@settings(modest, max_examples=usual // 2)
@given(data(), check_settings)
def test_every_figure_is_the_one_worked_out_by_hand(given_: Data, chosen: Settings) -> None:
    result = run(given_, {"one": chosen})
    assert _answer(result.checks[0]) == reference.answer(given_.rows, given_.records, chosen)
    assert _wrong(result) == []


@modest
@given(data(), check_settings, check_settings)
def test_checks_of_one_run_do_not_change_each_other(given_: Data, first: Settings, second: Settings) -> None:
    result = run(given_, {"one": first, "two": second})
    expected = [reference.answer(given_.rows, given_.records, one) for one in (first, second)]
    assert [_answer(check) for check in result.checks] == expected


@modest
@given(data(), check_settings, st.data())
def test_passages_to_ignore_are_boilerplate(given_: Data, chosen: Settings, more: st.DataObject) -> None:
    texts = ["\n".join(leaves) for leaves in (*given_.rows, *given_.records)]
    ignored = more.draw(st.lists(st.sampled_from(texts), min_size=1, max_size=2))
    chosen = Settings(chosen.n, chosen.short_rows, chosen.boilerplate, chosen.flag_at, 0, tuple(ignored))
    assert _answer(run(given_, {"one": chosen}).checks[0]) == reference.answer(given_.rows, given_.records, chosen)


@modest
@given(data(), check_settings, st.integers(0, 6), st.integers(0, 30))
def test_a_row_planted_whole_scores_one_and_is_flagged(given_: Data, chosen: Settings, row: int, place: int) -> None:
    planted = given_.rows[row % len(given_.rows)]
    at = place % (len(given_.records) + 1)
    records = [*given_.records[:at], ("before it,", *planted, "after it"), *given_.records[at:]]
    score = run(Data(given_.rows, records), {"one": chosen}).checks[0].rows[row % len(given_.rows)]
    figures = (score.outcome, score.coverage, score.longest, score.flagged)
    if score.n is not None:
        assert (*figures, score.containment, score.containment_all) == ("dirty", 1, score.row.words, True, 1, 1)
    elif chosen.short_rows and score.row.words >= max(3, text.scaled(chosen.short_rows, score.row.script)):
        assert figures == ("whole", 1, score.row.words, True)


@modest
@given(data(), check_settings)
def test_shares_lie_between_nought_and_one_and_no_row_is_lost(given_: Data, chosen: Settings) -> None:
    check = run(given_, {"one": chosen}).checks[0]
    found = [share for score in check.rows for share in (score.containment, score.containment_all, score.coverage)]
    assert all(0 <= share <= 1 for share in found)
    assert all(score.runs_found <= score.runs_found_all and score.runs <= score.runs_all for score in check.rows)
    assert [score.row.row for score in check.rows] == list(range(1, len(given_.rows) + 1))


@modest
@given(data(), check_settings, st.integers(2, 4), st.booleans())
def test_splitting_and_naming_the_training_files_otherwise_changes_no_figure(
    given_: Data, chosen: Settings, files: int, backwards: bool
) -> None:
    named = sorted((f"t{number}.jsonl" for number in range(files)), reverse=backwards)
    split = run(given_, {"one": chosen}, files, "[" + ", ".join(named) + "]")
    assert _answer(split.checks[0]) == _answer(run(given_, {"one": chosen}).checks[0])


@settings(modest, max_examples=usual // 20)
@given(data())
def test_the_same_inputs_give_the_same_report_bytes(given_: Data) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        world.jsonl(folder / "eval.jsonl", [{"question": row} for row in given_.rows])
        world.jsonl(folder / "train.jsonl", [{"text": record} for record in given_.records])
        world.config(folder, "n: 2\n")
        assert _reports(folder) == _reports(folder) != {}


def _reports(folder: Path) -> dict[str, bytes]:
    world.check(folder, "-q")
    root = folder / "evalspill-reports"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_the_reports_count_what_was_worked_out_by_hand(tmp_path: Path) -> None:
    rows = [(f"w{n} " * (3 + n) + f"x{n} y z " * n,) for n in range(12)]
    records = [("lead", *rows[n], "tail") for n in (2, 5, 11)] + [(rows[8][0][:40],)] * 3
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in rows])
    world.jsonl(tmp_path / "train.jsonl", [{"text": record} for record in records])
    world.config(tmp_path, "flag_at: {coverage: 0.5}\n")
    assert world.check(tmp_path) == 1
    expected = reference.answer(rows, records, Settings(flag_at={"coverage": Fraction(1, 2)}))
    check = world.only_check(tmp_path)
    outcomes = [one.outcome for one in expected.rows]
    assert {name: check[name] for name in ("dirty", "clean", "whole", "too_short", "no_text", "flagged")} == {
        "dirty": outcomes.count("dirty"), "clean": outcomes.count("clean"), "whole": outcomes.count("whole"),
        "too_short": outcomes.count("too-short"), "no_text": 0, "flagged": sum(one.flagged for one in expected.rows),
    }  # fmt: skip
    found = [(r["runs"], r["runs_found"], r["longest"]) for r in world.csv_rows(tmp_path, "contamination-report.csv")]
    by_runs = [(str(one.runs), str(one.found), str(one.longest)) for one in expected.rows if one.outcome == "dirty"]
    assert [row for row in found if row[0]] == by_runs != []


@given(st.text(st.characters(exclude_categories=())) | st.lists(st.sampled_from(_flat(list(WORDS.values())) + GAPS)).map("".join))  # fmt: skip
def test_words_are_those_split_one_character_at_a_time(given_: str) -> None:
    assert tuple(text.words(given_)) == reference.words(given_)
    assert text.script(text.words(given_)) == reference.script(reference.words(given_))


PLANES = [range(0x3400), range(0xA000, 0xAC00), range(0xD7A0, 0x12000), range(0x16000, 0x17000), range(0x1AFE0, 0x20100), range(0xE0000, 0xE0200)]  # fmt: skip


@pytest.mark.parametrize("codes", PLANES, ids=lambda codes: f"{codes[0]:X}")
def test_every_character_is_treated_alike_between_letters_of_both_kinds(codes: range) -> None:
    assigned = [chr(code) for code in codes if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")]
    joined = " ".join(f"a{one}b 我{one}\u0301ก {one}\u0e47" for one in assigned)
    assert tuple(text.words(joined)) == reference.words(joined)
    for one in assigned:
        for apart in {unicodedata.normalize(form, one) for form in ("NFD", "NFKD")} - {one}:
            assert tuple(text.words(apart)) == reference.words(apart)


def test_a_record_without_text_between_others_changes_nothing() -> None:
    rows = [("one two three four five six seven eight nine",)]
    records = [("one two three four",), ("",), (), ("five six seven eight nine",)]
    assert _answer(run(Data(rows, records), {"one": Settings()}).checks[0]) == reference.answer(
        rows, records, Settings()
    )


@pytest.mark.parametrize(("copies", "longest"), [(3, 14), (4, 13)])
def test_the_longest_passage_is_looked_for_in_the_first_four_records_of_each_run(copies: int, longest: int) -> None:
    row = [f"w{place}" for place in range(30)]
    held = [row[0:13]] * copies + [row[1:14]] * copies + [row[0:14]]
    made = Data([(" ".join(row),)], [(" ".join(record),) for record in held])
    chosen = Settings(n=13, boilerplate=None)
    assert reference.answer(*made, chosen).rows[0].longest == longest
    assert _answer(run(made, {"one": chosen}).checks[0]) == reference.answer(*made, chosen)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("か" + "我" * 9, "japanese"),
        ("か" + "我" * 10, "chinese"),
        ("我 a", "spaced"),
        ("我我 a", "chinese"),
        ("กก我我", "chinese"),
        ("กกก我我", "thai"),
        ("กก我か", "japanese"),
    ],
)
def test_the_class_of_a_row_at_the_borders(row: str, kind: str) -> None:
    assert (text.script(text.words(row)), reference.script(reference.words(row))) == (kind, kind)
