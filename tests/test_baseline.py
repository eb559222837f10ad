"""Accepted rows: what a baseline holds, what it lets pass, how it is changed, and what is refused."""

import json
import os
import pty
import random
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import reports_sample as sample
import world
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspill_guard import baselinefile
from evalspill_guard.baseline import (
    Baseline,
    FlaggedRow,
    expiry,
    load,
    mark_accepted,
    pruned,
    today,
    use_of,
    with_rows,
    write,
)
from evalspill_guard.baselinefile import key_mark, parse, render
from evalspill_guard.cli import run_command
from evalspill_guard.errors import ReportError, UsageError
from evalspill_guard.evalset import fingerprint
from evalspill_guard.model import Accepted, RowScore
from evalspill_guard.text import words

NAME = "evalspill-baseline.jsonl"
MARKER = "quibbleword"  # in every row; must never be in the baseline or on the terminal
DOCS = Path(__file__).parent.parent / "docs/baseline.md"


def sentence(seed: int, size: int = 20) -> str:
    syllables = [a + b for a in ("ba", "ko", "mi", "tur", "sel") for b in ("n", "lo", "rim", "sta", "ge", "vo", "pek")]
    return " ".join([MARKER, *random.Random(seed).choices(syllables, k=size - 1)])


def head(text: str, size: int) -> str:
    return " ".join(text.split()[:size])


def entry(**changes: Any) -> Accepted:
    one = Accepted("default", "eval.jsonl", "0" * 32, "run", 13, 20, 0.75, "quoted on purpose")
    return replace(one, **changes)


def leaky(folder: Path, sizes: dict[int, int], extra: str = "", rows: int = 30) -> Path:
    """A dataset repository in whose training file the first words of some rows stand, by row number from 1."""
    texts = [sentence(i) for i in range(rows)]
    world.jsonl(folder / "eval.jsonl", [{"question": text, "qid": f"q{i}"} for i, text in enumerate(texts, 1)])
    records = [sentence(1000 + i) for i in range(20)] + [head(texts[row - 1], size) for row, size in sizes.items()]
    world.jsonl(folder / "train.jsonl", [{"text": text} for text in records])
    world.config(folder, extra)
    return folder


def command(folder: Path, *arguments: str) -> int:
    return run_command(["baseline", arguments[0], "-c", str(folder / "evalspill.yaml"), *arguments[1:]])


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / NAME).read_text().splitlines()]


def accepted_rows(folder: Path) -> list[str]:
    found = world.csv_rows(folder, "contamination-report.csv")
    return [row["row"] for row in found if row["accepted"] == "true"]


# --- the file -----------------------------------------------------------------------------------------------------------


def test_a_line_holds_the_row_its_figures_the_reason_and_the_rules_for_words() -> None:
    assert render([entry(expires="2030-12-31")]) == (
        b'{"check": "default", "eval_file": "eval.jsonl", "fingerprint": "00000000000000000000000000000000", '
        b'"kind": "run", "n": 13, "longest": 20, "coverage": 0.75, "reason": "quoted on purpose", '
        b'"expires": "2030-12-31", "rules": 1}\n'
    )


TEXTS = st.text(st.characters(codec=None), min_size=1, max_size=20).filter(lambda text: bool(text.strip()))
LONE = st.text(st.sampled_from("a\udc80\udcff\u202e\u2028\x85\x00é雨😀"), min_size=1, max_size=8).filter(
    lambda text: bool(text.strip())
)


@given(st.lists(st.tuples(TEXTS, LONE, TEXTS, st.integers(0, 10**6)), max_size=5))
@settings(max_examples=60)
def test_what_is_written_is_read_again_whatever_the_names_and_reasons(facts: list[tuple[str, str, str, int]]) -> None:
    entries = [entry(check=a, eval_file=b, reason=c, longest=n) for a, b, c, n in facts]
    raw = render(entries)
    assert set(parse(raw, NAME)) == set(entries)
    assert raw.count(b"\n") == len(set(entries))
    assert raw == b"".join(sorted(raw.splitlines(keepends=True))) or b"\r" in raw


def test_nothing_that_reorders_or_hides_text_stands_in_the_file_as_it_is() -> None:
    raw = render([entry(reason="fine \u202e\u2066\u200b\x9b\x1b[31m 雨")])
    assert [c for c in raw.decode() if not c.isprintable() and c != "\n"] == []
    assert "雨" in raw.decode()


def test_the_order_in_which_rows_were_accepted_does_not_show() -> None:
    some = [entry(fingerprint=f"{n:032x}") for n in (3, 1, 2)]
    assert render(some) == render(reversed(some)) == render([*some, some[0]])


def test_a_file_from_windows_or_with_blank_lines_is_read() -> None:
    raw = b"\xef\xbb\xbf" + render([entry(), entry(check="b")]).replace(b"\n", b"\r\n\r\n")
    assert [one.check for one in parse(raw, NAME)] == ["b", "default"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_two_branches_that_accept_rows_are_merged_by_union(tmp_path: Path) -> None:
    common = [entry(fingerprint=f"{n:032x}") for n in (2, 8)]
    ours, theirs = entry(fingerprint=f"{5:032x}", reason="ours"), entry(fingerprint=f"{5:032x}", reason="theirs")
    sides = {"ours": [*common, ours], "base": common, "theirs": [*common, theirs, entry(fingerprint=f"{6:032x}")]}
    for side, entries in sides.items():
        (tmp_path / side).write_bytes(render(entries))
    subprocess.run(["git", "merge-file", "--union", "ours", "base", "theirs"], cwd=tmp_path, check=True)
    assert set(parse((tmp_path / "ours").read_bytes(), NAME)) == {*sides["ours"], *sides["theirs"]}


def test_fingerprints_are_those_of_the_rules_that_the_lines_name() -> None:
    """Where this fails rows have other words now: raise RULES, so that a baseline made before is refused."""
    text = "Don't İstanbul’s state-of-the-art ΟΔΥΣΣΕΥΣ ™ 3.14 ﬁn\u00adish カタカナと漢字 ภาษาไทย é e\u0301 \ufeff½"
    assert (baselinefile.RULES, fingerprint(words(text), b"")) == (1, "07fa85d617b8411f955d4fb04e711638")


# --- what is refused ------------------------------------------------------------------------------------------------------


def line(**changes: Any) -> bytes:
    facts = {**json.loads(render([entry()])), **changes}
    return json.dumps({name: value for name, value in facts.items() if value != "LEFT OUT"}).encode() + b"\n"


CONFLICT = b"<<<<<<< HEAD\n" + line() + b"=======\n" + line(reason="theirs") + b">>>>>>> branch\n"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", ":1: not an accepted row: it is no JSON"),
        (b"\xff\n", ":1: not an accepted row: it is no JSON"),
        (b"[" * 100_000, ":1: not an accepted row: it is no JSON"),
        (b"[1]\n", ":1: not an accepted row: it is no JSON object"),
        (line() + CONFLICT, ":2: a merge conflict: keep the lines of both sides and remove the markers"),
        (line()[:-2] + b', "n": 9}\n', ":1: the key 'n' stands there twice"),
        (line(surprise=1), ":1: unknown key 'surprise'"),
        (line(rules=2), ":1: made under rules 2 for words, and this version has rules 1; move the file away"),
        (line(rules=2, surprise=1), ":1: made under rules 2"),
        (line(rules="LEFT OUT"), ":1: rules is missing"),
        (b'{"question": "a row of data"}\n', ":1: rules is missing"),
        (line(rules=True), ":1: rules is missing or no number"),
        (line(reason=" "), ":1: reason must be a text"),
        (line(reason="LEFT OUT"), ":1: reason is missing"),
        (line(n=-1), ":1: n must be a number"),
        (line(n=True), ":1: n must be a number"),
        (line(n=1 << 53), ":1: n must be a number"),
        (line(longest=10**400), ":1: longest must be a number"),
        (line(longest=float("inf")), ":1: longest must be a number"),
        (line(longest=[]).replace(b"[]", b"9" * 5000), ":1: not an accepted row: it is no JSON"),
        (line(longest=2.5), ":1: longest must be a number"),
        (line(longest="LEFT OUT"), ":1: longest is missing"),
        (line(coverage=1.5), ":1: coverage must be a number from 0 to 1"),
        (line(coverage=float("nan")), ":1: coverage must be a number from 0 to 1"),
        (line(kind="all"), ":1: kind must be run or whole"),
        (line(fingerprint="0" * 31 + "G"), ":1: fingerprint must be 32 hexadecimal digits"),
        (line(expires="2030-02-30"), ":1: expires must be a date"),
        (line(expires="20301231"), ":1: expires must be a date"),
        (line(expires=None), ":1: expires must be a date"),
        (line(key="00000000"), ":1: made with an EVALSPILL_KEY, which is not set here: set the one it was made with"),
    ],
)
def test_a_line_that_is_not_as_written_is_refused_with_its_place(raw: bytes, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(raw, NAME)
    assert str(caught.value).startswith(f"{NAME}{said}")


def test_ten_wrong_lines_are_shown_and_the_others_counted() -> None:
    with pytest.raises(UsageError) as caught:
        parse(b"{\n" * 1000, NAME)
    assert str(caught.value).splitlines()[9:] == [
        f"{NAME}:10: not an accepted row: it is no JSON",
        "990 more lines are wrong",
    ]


def test_a_refusal_does_not_repeat_values() -> None:
    with pytest.raises(UsageError) as caught:
        parse(line(reason=[MARKER], eval_file=[MARKER]), NAME)
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize(
    ("made", "here", "said"),
    [
        ("one", "two", "made with an EVALSPILL_KEY, which is another one here"),
        ("one", "", "made with an EVALSPILL_KEY, which is not set here"),
        ("", "two", "made without EVALSPILL_KEY, which is set here: unset it, or move the file away"),
    ],
)
def test_a_baseline_of_another_key_is_refused(made: str, here: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSPILL_KEY", made)
    raw = render([entry()])
    assert parse(raw, NAME) == (entry(),)
    monkeypatch.setenv("EVALSPILL_KEY", here)
    with pytest.raises(UsageError, match=said):
        parse(raw, NAME)


def test_the_mark_of_a_key_is_not_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSPILL_KEY", "0123456789abcdef")
    mark = key_mark() or ""
    assert (len(mark), mark in "0123456789abcdef") == (8, False)


def test_a_baseline_named_in_the_config_must_be_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    leaky(tmp_path, {}, "baseline: known.jsonl\n")
    assert world.check(tmp_path) == 2
    assert "known.jsonl: no such baseline; `evalspill-guard baseline create` writes one" in capfd.readouterr().err
    assert command(tmp_path, "create", "--reason", "none") == 0
    assert (tmp_path / "known.jsonl").read_bytes() == b""
    assert world.check(tmp_path) == 0


def test_a_baseline_that_is_refused_is_exit_two_before_anything_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    leaky(tmp_path, {})
    (tmp_path / "train.jsonl").unlink()
    (tmp_path / NAME).write_bytes(CONFLICT)
    assert world.check(tmp_path) == 2
    assert command(tmp_path, "update", "--reason", "x") == 2
    assert command(tmp_path, "prune") == 2
    assert "a merge conflict" in capfd.readouterr().err
    assert (tmp_path / NAME).read_bytes() == CONFLICT
    assert not (tmp_path / "evalspill-reports").exists()


@pytest.mark.parametrize("arguments", [["--baseline", "none.jsonl"], ["--baseline", " "], ["--baseline", "."]])
def test_a_baseline_named_on_the_command_line_must_be_one(arguments: list[str], tmp_path: Path) -> None:
    assert world.check(leaky(tmp_path, {}), *arguments) == 2


# --- what is accepted -----------------------------------------------------------------------------------------------------

PATHS = ("eval.jsonl", "other.jsonl")


def flagged(longest: int = 20, number: int = 0, **facts: Any) -> RowScore:
    evidence = sample.passage(sample.QUESTION, 0, 40)
    return sample.dirty(number, sample.QUESTION, evidence, **{"longest": longest, **facts})


def baseline(*entries: Accepted, day: str | None = None) -> Baseline:
    return Baseline(Path(NAME), NAME, render(entries), entries, day)


def marked(known: Baseline, *scores: RowScore, check: str = "default") -> list[bool]:
    return [score.accepted for score in mark_accepted(known, check, PATHS, scores)]


def test_a_row_is_accepted_while_its_longest_passage_is_not_above_what_was_accepted() -> None:
    assert marked(baseline(entry()), flagged(19), flagged(20), flagged(21)) == [True, True, False]


def test_a_row_of_a_word_or_two_that_nobody_accepted_is_not_accepted() -> None:
    assert marked(baseline(), *(flagged(longest) for longest in (0, 1, 2))) == [False] * 3


def test_another_n_kind_coverage_or_place_does_not_end_acceptance() -> None:
    moved = replace(flagged(), row=replace(flagged().row, row=7, line=70, id="other"))
    changed = [flagged(n=8), flagged(outcome="whole", n=None), flagged(covered=1), moved]
    assert marked(baseline(entry()), *changed) == [True] * 4


def test_the_row_of_another_check_file_or_text_is_not_accepted() -> None:
    known = baseline(entry())
    assert marked(known, flagged(), check="another") == [False]
    assert marked(known, flagged(file=1), flagged(number=5)) == [False, False]


def test_a_row_that_is_not_flagged_is_not_accepted() -> None:
    assert marked(baseline(entry()), flagged(flagged=False)) == [False]


def test_an_entry_accepts_through_its_last_day() -> None:
    until = entry(expires="2030-06-30")
    assert marked(baseline(until, day="2030-06-30"), flagged()) == [True]
    assert marked(baseline(until, day="2030-07-01"), flagged()) == [False]


def test_of_several_entries_for_a_row_the_widest_that_has_not_expired_counts() -> None:
    both = [entry(longest=30, expires="2030-06-30"), entry(longest=25)]
    assert marked(baseline(*both, day="2030-06-30"), flagged(30), flagged(31)) == [True, False]
    assert marked(baseline(*both, day="2030-07-01"), flagged(25), flagged(26)) == [True, False]


def test_stale_expired_and_grown_entries_are_told_apart() -> None:
    known = [
        entry(fingerprint=f"{1:032x}"),
        entry(fingerprint=f"{2:032x}", expires="2020-01-01"),
        entry(fingerprint=f"{3:032x}", expires="2020-01-01"),
        entry(fingerprint=f"{4:032x}", longest=12),
        entry(check="unknown"),
        entry(eval_file="unknown.jsonl"),
    ]
    all_of_them = baseline(*known, day="2030-01-01")
    rows = mark_accepted(all_of_them, "default", PATHS, [flagged(number=1), flagged(number=2), flagged(number=4)])
    check = replace(sample.check(), name="default", rows=tuple(rows))
    check = replace(check, eval=tuple(replace(one, path=PATHS[n]) for n, one in enumerate(check.eval)))
    found = use_of(all_of_them, [check], complete=True)
    assert found is not None
    assert (found.stale, found.expired) == ((known[2], known[4], known[5]), (known[1],))
    assert [(one.row, one.accepted, one.longest) for one in found.grown] == [(4, 12, 20)]
    assert pruned(known, found) == [known[0], known[3]]


def test_the_use_of_a_baseline_names_the_file_and_the_rows_that_have_grown() -> None:
    score = flagged(21)
    grown = replace(score, row=replace(score.row, id="qa-7"))
    check = replace(sample.check(), name="default", rows=(grown,))
    use = use_of(baseline(replace(entry(), eval_file=check.eval[0].path)), [check], True)
    assert use is not None
    assert (use.path, use.entries, [(one.id, one.accepted, one.longest) for one in use.grown]) == (
        NAME,
        1,
        [("qa-7", 20, 21)],
    )


def test_nothing_is_called_stale_after_an_incomplete_scan() -> None:
    found = use_of(baseline(entry()), [], complete=False)
    assert found is not None
    assert found.stale == ()


def test_rows_of_the_same_words_in_one_file_are_one_entry_and_both_accepted(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20})
    with (tmp_path / "eval.jsonl").open("a") as file:
        file.write((tmp_path / "eval.jsonl").read_text().splitlines()[2] + "\n")
    assert command(tmp_path, "create", "--reason", "known") == 0
    assert len(lines(tmp_path)) == 1
    assert world.check(tmp_path) == 0
    assert accepted_rows(tmp_path) == ["3", "31"]


def test_a_changed_n_leaves_a_row_accepted(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 16})
    assert command(tmp_path, "create", "--reason", "known") == 0
    assert [one["n"] for one in lines(tmp_path)] == [13]
    with (tmp_path / "eval.jsonl").open("a") as file:
        file.writelines(json.dumps({"question": sentence(500 + i, 9)}) + "\n" for i in range(5))
    assert world.check(tmp_path) == 0
    assert (world.only_check(tmp_path)["n"], accepted_rows(tmp_path)) == (9, ["3"])


def test_accepted_rows_stay_in_the_clean_file_and_are_counted_apart(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20, 9: 20}, "fail_over: 1\n")
    assert command(tmp_path, "create", "--reason", "known", "--row", "eval.jsonl#3") == 0
    assert world.check(tmp_path) == 0
    check = world.only_check(tmp_path)
    assert (check["flagged"], check["accepted"], check["dirty"], check["scored"]) == (2, 1, 2, 30)
    before = (tmp_path / "eval.jsonl").read_bytes().splitlines()
    clean = (tmp_path / "evalspill-reports/default/clean/eval.clean.jsonl").read_bytes().splitlines()
    assert clean == before[:8] + before[9:]


def test_every_report_of_the_run_counts_accepted_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    leaky(tmp_path, {3: 20, 9: 20})
    assert command(tmp_path, "create", "--reason", "known", "--row", "eval.jsonl#3") == 0
    assert world.check(tmp_path) == 1
    folder = tmp_path / "evalspill-reports"
    for name in ("summary.md", "default/overlap-report.html", "report.json"):
        assert "accepted" in (folder / name).read_text().lower(), name
    results = json.loads((folder / "results.sarif").read_bytes())["runs"][0]["results"]
    assert [bool(one.get("suppressions")) for one in results] == [False, True]
    assert "2 (1 accepted)" in capfd.readouterr().out


# --- expiry on the command line -------------------------------------------------------------------------------------------


def test_expiry_is_judged_against_source_date_epoch_and_the_date_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    leaky(tmp_path, {3: 20})
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")  # 2030-03-17 17:46:40 UTC
    assert command(tmp_path, "create", "--reason", "known", "--expires", "2030-03-17") == 0
    assert world.check(tmp_path) == 0
    assert "1 entries, 0 stale, 0 expired, judged against 2030-03-17" in capfd.readouterr().out
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1900000000 + 86_400))
    assert world.check(tmp_path) == 1
    out = capfd.readouterr().out
    assert "0 stale, 1 expired, judged against 2030-03-18" in out
    assert f"expired on 2030-03-17: check default: eval.jsonl: fingerprint {lines(tmp_path)[0]['fingerprint']}" in out


def test_without_source_date_epoch_today_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    leaky(tmp_path, {3: 20})
    assert command(tmp_path, "create", "--reason", "known", "--expires", "9999-12-31") == 0
    (tmp_path / NAME).write_bytes((tmp_path / NAME).read_bytes().replace(b"9999-12-31", b"2001-01-01"))
    assert world.check(tmp_path) == 1


def test_the_date_does_not_matter_where_nothing_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    leaky(tmp_path, {3: 20})
    assert command(tmp_path, "create", "--reason", "known") == 0
    assert world.check(tmp_path) == 0


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("given", [None, "1900000000"])
def test_the_date_is_that_of_utc_in_every_time_zone(
    zone: str, given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    if given:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    else:
        monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    time.tzset()
    try:
        before, found, after = time.gmtime(), today(), time.gmtime()
        expected = {date(2030, 3, 17)} if given else {date(*moment[:3]) for moment in (before, after)}
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found in expected


@pytest.mark.parametrize(("wrong", "said"), [
    ("soon", "--expires must be a date such as 2030-12-31"),
    ("2030-03-16", "--expires 2030-03-16 is past: it is 2030-03-17"),
])  # fmt: skip
def test_a_last_day_that_is_refused_says_why(wrong: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")
    with pytest.raises(UsageError, match=f"^{said}$"):
        expiry(wrong)


@pytest.mark.parametrize("date", ["soon", "2030-13-01", "1999-01-01", "20300101"])
def test_a_last_day_that_is_none_or_past_is_refused(date: str, tmp_path: Path) -> None:
    assert command(leaky(tmp_path, {3: 20}), "create", "--reason", "x", "--expires", date) == 2
    assert not (tmp_path / NAME).exists()


def test_a_wrong_source_date_epoch_is_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / NAME).write_bytes(render([entry(expires="2030-01-01")]))
    for wrong in ("soon", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        assert world.check(leaky(tmp_path, {})) == 2
        assert "SOURCE_DATE_EPOCH must be a number of seconds since 1970" in capfd.readouterr().err


# --- create, update, prune --------------------------------------------------------------------------------------------------


def test_create_accepts_every_flagged_row_and_never_overwrites(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20, 9: 14})
    assert command(tmp_path, "create", "--reason", "  the public\n examples ") == 0
    first = (tmp_path / NAME).read_bytes()
    assert sorted((one["longest"], one["coverage"], one["reason"]) for one in lines(tmp_path)) == [
        (14, 0.7, "the public examples"),
        (20, 1.0, "the public examples"),
    ]
    assert command(tmp_path, "create", "--reason", "again") == 2
    assert (tmp_path / NAME).read_bytes() == first
    assert world.check(tmp_path) == 0


def test_neither_the_baseline_nor_the_terminal_holds_row_text(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    leaky(tmp_path, {3: 20, 9: 20})
    assert command(tmp_path, "create", "--reason", "known", "-v") == 0
    world.jsonl(tmp_path / "train.jsonl", [{"text": sentence(8, 20)}])
    world.check(tmp_path)
    command(tmp_path, "prune")
    out, err = capfd.readouterr()
    assert MARKER not in out + err
    assert MARKER.encode() not in (tmp_path / NAME).read_bytes()


def test_update_adds_new_rows_and_leaves_grown_ones_red(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    leaky(tmp_path, {3: 14})
    assert command(tmp_path, "create", "--reason", "first") == 0
    leaky(tmp_path, {3: 20, 9: 20})
    assert command(tmp_path, "update", "--reason", "second") == 0
    assert {(one["longest"], one["reason"]) for one in lines(tmp_path)} == {(14, "first"), (20, "second")}
    assert "grown: check default: eval.jsonl:3: longest 20, accepted 14" in capfd.readouterr().out
    assert world.check(tmp_path) == 1
    assert accepted_rows(tmp_path) == ["9"]


@pytest.mark.parametrize("options", [["--all"], ["--row", "eval.jsonl#3"], ["--row", "eval.jsonl:3"]])
def test_update_raises_what_is_named_or_all(options: list[str], tmp_path: Path) -> None:
    leaky(tmp_path, {3: 14})
    assert command(tmp_path, "create", "--reason", "first") == 0
    leaky(tmp_path, {3: 20})
    assert command(tmp_path, "update", "--reason", "still fine", *options) == 0
    assert [(one["longest"], one["reason"]) for one in lines(tmp_path)] == [(20, "still fine")]
    assert world.check(tmp_path) == 0


def test_a_row_named_again_gets_the_new_reason_and_date(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20, 9: 20})
    assert command(tmp_path, "create", "--reason", "first") == 0
    assert command(tmp_path, "update", "--row", "eval.jsonl#3", "--reason", "better", "--expires", "9999-01-01") == 0
    assert sorted((one["reason"], one.get("expires", "")) for one in lines(tmp_path)) == [
        ("better", "9999-01-01"),
        ("first", ""),
    ]


def test_update_needs_a_baseline_and_so_does_prune(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20})
    assert [command(tmp_path, "update", "--reason", "x"), command(tmp_path, "prune")] == [2, 2]
    assert not (tmp_path / NAME).exists()


NOT_FLAGGED = "no flagged row stands at {}; name rows as FILE#ROW or FILE:LINE"


@pytest.mark.parametrize(("options", "said"), [
    (["--row", "eval.jsonl#4"], NOT_FLAGGED.format("eval.jsonl#4")),
    (["--row", "eval.jsonl", "--row", "#3"], NOT_FLAGGED.format("eval.jsonl, #3")),
    (["--check", "none"], "no check is called none; there are default"),
])  # fmt: skip
def test_a_row_that_is_not_flagged_or_a_check_that_is_not_there_is_wrong_use(
    options: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command(leaky(tmp_path, {3: 20}), "create", "--reason", "x", *options) == 2
    assert said in capfd.readouterr().err
    assert not (tmp_path / NAME).exists()


def test_rows_are_chosen_by_check(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20})
    sets = "".join(f"  - name: {n}\n    eval: {{files: eval.jsonl, fields: [question]}}\n" for n in ("one", "two"))
    (tmp_path / "evalspill.yaml").write_text(f"version: 1\ntrain: {{files: train.jsonl}}\nchecks:\n{sets}")
    assert command(tmp_path, "create", "--reason", "x", "--check", "two") == 0
    assert [one["check"] for one in lines(tmp_path)] == ["two"]
    assert world.check(tmp_path) == 1
    assert [(check["accepted"], check["passed"]) for check in world.report(tmp_path)["checks"]] == [
        (0, False),
        (1, True),
    ]


@pytest.mark.parametrize("reason", [[], ["--reason", " \n"]])
def test_without_a_terminal_a_reason_is_required(reason: list[str], tmp_path: Path) -> None:
    assert command(leaky(tmp_path, {3: 20}), "create", *reason) == 2
    assert not (tmp_path / NAME).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(("hook", "code"), [("", 0), ("1", 2)])
def test_on_a_terminal_the_reason_is_asked_for_but_not_in_a_hook(hook: str, code: int, tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20})
    ours, theirs = pty.openpty()
    os.write(ours, b"\nread out in the talk\n")
    ended = subprocess.run(
        [sys.executable, "-m", "evalspill_guard", "baseline", "create"],
        cwd=tmp_path, stdin=theirs, capture_output=True, env={**os.environ, "PRE_COMMIT": hook}, timeout=60,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert ended.returncode == code, ended.stderr
    reasons = [one["reason"] for one in lines(tmp_path)] if (tmp_path / NAME).exists() else []
    assert reasons == ([] if hook else ["read out in the talk"])


@pytest.mark.parametrize("arguments", [["create", "--reason", "x"], ["update", "--reason", "x"], ["prune"]])
def test_an_incomplete_scan_writes_no_baseline(
    arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    leaky(tmp_path, {3: 20})
    before = b"" if arguments[0] == "create" else render([entry(fingerprint="1" * 32)])
    if before:
        (tmp_path / NAME).write_bytes(before)
    (tmp_path / "train.jsonl").write_bytes((tmp_path / "train.jsonl").read_bytes() + b"{")
    assert command(tmp_path, *arguments) == 3
    assert (tmp_path / NAME).exists() == bool(before)
    assert not before or (tmp_path / NAME).read_bytes() == before
    out, err = capfd.readouterr()
    assert "problem: train.jsonl:22" in out
    assert "the baseline stays as it is" in err


def test_prune_removes_stale_and_expired_entries_alone(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20, 9: 20, 12: 20})
    assert command(tmp_path, "create", "--reason", "known") == 0
    kept = [one["fingerprint"] for one in lines(tmp_path)]
    text = (tmp_path / NAME).read_text().splitlines()
    text[1] = text[1].replace(', "rules"', ', "expires": "2001-01-01", "rules"')
    (tmp_path / NAME).write_text("\n".join(reversed([*text, render([entry(check="gone")]).decode().strip()])))
    assert command(tmp_path, "prune") == 0
    assert [one["fingerprint"] for one in lines(tmp_path)] == [kept[0], kept[2]]


def test_prune_does_not_touch_a_file_in_which_nothing_is_stale(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20})
    assert command(tmp_path, "create", "--reason", "known") == 0
    before = (tmp_path / NAME).stat()
    assert command(tmp_path, "prune") == 0
    assert ((tmp_path / NAME).stat().st_mtime_ns, (tmp_path / NAME).stat().st_ino) == (
        before.st_mtime_ns,
        before.st_ino,
    )


def test_check_never_writes_the_baseline(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20})
    assert world.check(tmp_path) == 1
    assert not (tmp_path / NAME).exists()
    untidy = render([entry(), entry(check="a")]) * 2 + b"\n"
    (tmp_path / NAME).write_bytes(untidy)
    assert [world.check(tmp_path), world.check(tmp_path, "--strict-baseline")] == [1, 2]
    assert (tmp_path / NAME).read_bytes() == untidy


# --- stale entries, and another file ----------------------------------------------------------------------------------------


def test_stale_entries_are_listed_and_exit_two_where_that_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    leaky(tmp_path, {})
    (tmp_path / NAME).write_bytes(render([entry(check="gone"), entry(eval_file="gone.jsonl"), entry()]))
    assert world.check(tmp_path) == 0
    assert capfd.readouterr().out.count("\nstale: check ") == 3
    assert world.check(tmp_path, "--strict-baseline", "--exit-zero") == 2
    assert (world.report(tmp_path)["exit_code"], world.only_check(tmp_path)["passed"]) == (2, True)


def test_a_baseline_without_stale_entries_passes_strictly(tmp_path: Path) -> None:
    leaky(tmp_path, {3: 20})
    assert world.check(tmp_path, "--strict-baseline") == 1
    assert command(tmp_path, "create", "--reason", "known") == 0
    assert world.check(tmp_path, "--strict-baseline") == 0


def test_an_incomplete_scan_stays_exit_three_with_a_strict_baseline(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(render([entry()]))
    leaky(tmp_path, {})
    (tmp_path / "train.jsonl").unlink()
    assert world.check(tmp_path, "--strict-baseline") == 3


def test_another_baseline_is_named_from_the_working_directory_and_matches_no_glob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaky(tmp_path, {3: 20})
    world.config(tmp_path, train="'*.jsonl'", evals="eval.jsonl")
    (tmp_path / "evalspill.yaml").write_text(
        (tmp_path / "evalspill.yaml").read_text().replace("'*.jsonl'", "['*.jsonl', '!eval.jsonl']")
    )
    monkeypatch.chdir(tmp_path)
    assert run_command(["baseline", "create", "--baseline", "known.jsonl", "--reason", "x"]) == 0
    (tmp_path / NAME).write_bytes(b"")
    assert run_command(["check", "--baseline", "known.jsonl"]) == 0
    assert run_command(["check", "--baseline", "known.jsonl", "--strict-baseline"]) == 0
    assert [file["path"] for file in world.only_check(tmp_path)["train"]["files"]] == ["train.jsonl"]


def test_in_a_hook_stale_entries_and_accepted_rows_fit_on_a_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    leaky(tmp_path, {3: 20, 9: 20})
    assert command(tmp_path, "create", "--reason", "known", "--row", "eval.jsonl#3") == 0
    with (tmp_path / NAME).open("ab") as file:
        file.write(render(entry(fingerprint=f"{n:032x}") for n in range(300)))
    capfd.readouterr()
    monkeypatch.setenv("PRE_COMMIT", "1")
    assert world.check(tmp_path) == 1
    out = capfd.readouterr().out
    assert "2 of 30 eval rows" not in out
    assert "1 of 30 eval rows flagged, 1 accepted, 0 allowed" in out
    assert "297 more" in out
    assert len(out.splitlines()) < 40


def test_accepted_rows_do_not_push_red_ones_out_of_the_worst_rows(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    leaky(tmp_path, dict.fromkeys(range(1, 16), 20))
    assert command(tmp_path, "create", "--reason", "known") == 0
    leaky(tmp_path, dict.fromkeys(range(1, 16), 20) | {17: 14})
    capfd.readouterr()
    assert world.check(tmp_path) == 1
    worst, _, accepted = capfd.readouterr().out.partition("accepted rows of default")
    assert "eval.jsonl:17" in worst
    assert "eval.jsonl:2 " not in worst
    assert "(the first 10 of 15)" in accepted


# --- writing ----------------------------------------------------------------------------------------------------------------


def test_the_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(Baseline(tmp_path / NAME, NAME), [entry()])
    finally:
        os.umask(before)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_writing_says_whether_it_changed_the_file(tmp_path: Path) -> None:
    none = load(tmp_path / NAME, NAME, required=False)
    assert (none.shown, write(none, [entry()])) == (NAME, True)
    known = load(tmp_path / NAME, NAME, required=True)
    assert (known.shown, write(known, [entry()]), write(known, [])) == (NAME, False, True)


def test_a_baseline_that_cannot_be_read_or_parsed_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(UsageError, match=f"^{NAME}: could not be read: Is a directory$"):
        load(tmp_path / NAME, NAME, required=False)
    (tmp_path / "other").write_bytes(b"{}\n")
    with pytest.raises(UsageError, match=f"^{NAME}:1: "):
        load(tmp_path / "other", NAME, required=False)


def test_of_a_row_that_stands_whole_no_n_is_kept() -> None:
    dirty, whole = flagged(n=8), flagged(outcome="whole", n=None)
    kept = with_rows([], [FlaggedRow("default", "eval.jsonl", score) for score in (dirty, whole)], " so  it is ", None)
    assert [(one.kind, one.n, one.reason) for one in kept] == [("run", 8, "so it is"), ("whole", None, "so it is")]


def test_a_file_that_changed_during_the_scan_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(render([entry()]))
    known = load(tmp_path / NAME, NAME, required=True)
    (tmp_path / NAME).write_bytes(b"\n")
    with pytest.raises(UsageError, match="changed during the scan"):
        write(known, [])
    with pytest.raises(UsageError, match="changed during the scan"):
        write(Baseline(tmp_path / NAME, NAME), [entry()])
    assert (tmp_path / NAME).read_bytes() == b"\n"


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).write_bytes(render([entry()]))
    known = load(tmp_path / NAME, NAME, required=True)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReportError, match="No space left on device"):
        write(known, [])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {NAME: render([entry()])}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "shared.jsonl").write_bytes(b"")
    (tmp_path / NAME).symlink_to("shared.jsonl")
    write(load(tmp_path / NAME, NAME, required=True), [entry()])
    assert ((tmp_path / NAME).is_symlink(), (tmp_path / "shared.jsonl").read_bytes()) == (True, render([entry()]))


def test_a_reason_needs_a_word() -> None:
    with pytest.raises(UsageError, match="a reason is needed"):
        with_rows([], [], " \t", None)


# --- the page about it --------------------------------------------------------------------------------------------------------


def test_the_page_shows_a_line_as_it_is_written() -> None:
    shown = [text for text in DOCS.read_text().splitlines() if text.startswith('{"check"')]
    assert shown
    raw = "".join(f"{text}\n" for text in shown).encode()
    assert render(parse(raw, NAME)) == raw


def test_the_page_names_every_key_of_a_line() -> None:
    text = DOCS.read_text()
    names = [*json.loads(render([entry(expires="2030-01-01")])), "key"]
    assert [name for name in names if f"`{name}`" not in text] == []
