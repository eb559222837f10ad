"""The walk from config to result: what of it is shown, and what makes it incomplete."""

from dataclasses import replace
from pathlib import Path

import pytest
import world
from test_check import clean_repository, repository, sentence

from evalspill_guard import config
from evalspill_guard.errors import UsageError
from evalspill_guard.model import CheckResult, Problem, RunResult
from evalspill_guard.pipeline import incomplete, own_baseline, run


def result(folder: Path) -> RunResult:
    return run(config.load(folder / "evalspill.yaml")).result


def only(folder: Path) -> CheckResult:
    return result(folder).checks[0]


SAID = (
    "5th percentile of the rows' lengths in words, from 8 to 13 (GPT-3, appendix C), scaled for scripts without spaces"
)


@pytest.mark.parametrize(("extra", "n", "rule"), [("", 13, SAID), ("n: 9\n", 9, "fixed in the config")])
def test_a_result_says_n_and_how_it_was_reached(tmp_path: Path, extra: str, n: int, rule: str) -> None:
    clean_repository(tmp_path)
    world.config(tmp_path, extra)
    found = only(tmp_path)
    assert (found.n, found.n_by_class, found.n_rule) == (n, {"spaced": n}, rule)
    assert found.settings == config.load(tmp_path / "evalspill.yaml").checks[0].settings()


@pytest.mark.parametrize(("spaced", "thai", "n"), [(2, 1, 13), (1, 2, 26), (2, 2, 13)])
def test_n_is_that_of_the_class_with_most_rows_and_of_spaced_text_where_two_have_as_many(
    tmp_path: Path, spaced: int, thai: int, n: int
) -> None:
    rows = [sentence(i, 40) for i in range(spaced)] + ["ภาษาไทยไม่มีช่องว่างระหว่างคำ" * 3 + "ก" * i for i in range(thai)]
    found = only(repository(tmp_path, rows, [{"text": sentence(99)}]))
    assert (found.n, found.n_by_class) == (n, {"spaced": 13, "thai": 26})


def test_problems_are_sorted_by_path_and_line_and_make_every_check_incomplete(tmp_path: Path) -> None:
    clean_repository(tmp_path)
    (tmp_path / "b.jsonl").write_text('{"text": "a"}\n{"text"\n')
    (tmp_path / "a.jsonl").write_bytes(b"")
    world.config(tmp_path, train="[b.jsonl, a.jsonl, train.jsonl]")
    found = result(tmp_path)
    assert [(problem.path, problem.line) for problem in found.problems] == [("a.jsonl", None), ("b.jsonl", 2)]
    assert ([check.complete for check in found.checks], found.exit_code, found.training) == ([False], 3, None)


@pytest.mark.parametrize(("allowed", "code"), [("0.25", 0), ("0.24", 3)])
def test_as_many_unchecked_rows_as_are_allowed_pass(tmp_path: Path, allowed: str, code: int) -> None:
    rows = [sentence(1), sentence(2), sentence(3), "too short"]
    found = result(repository(tmp_path, rows, [{"text": sentence(9)}], f"max_unchecked: {allowed}\n"))
    said = "1 of 4 eval rows were not checked (too short, no text or boilerplate-only), and max_unchecked allows 24%"
    problems = [Problem("check default", None, said)] if code else []
    assert (list(found.problems), found.exit_code) == (problems, code)


def test_no_row_that_could_be_looked_for_is_a_problem_of_the_check(tmp_path: Path) -> None:
    found = result(repository(tmp_path, ["too short"], [{"text": sentence(9)}], "max_unchecked: 1\n"))
    said = "no eval row could be scored or looked for: name the fields that hold the question"
    assert (list(found.problems), found.exit_code) == ([Problem("check default", None, said)], 3)


def test_an_ignore_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    repository(tmp_path, [sentence(1)], [{"text": sentence(2)}], "ignore: [gone.txt]\n")
    with pytest.raises(UsageError, match=r"^ignore: gone.txt could not be read as UTF-8 text: FileNotFoundError$"):
        result(tmp_path)


def test_a_problem_more_makes_a_result_incomplete(tmp_path: Path) -> None:
    clean_repository(tmp_path)
    before, problem = replace(result(tmp_path), training=()), Problem("reports", None, "gone")
    after = incomplete(before, problem)
    assert (before.exit_code, [check.complete for check in before.checks]) == (0, [True])
    assert (after.exit_code, [check.complete for check in after.checks]) == (3, [False])
    assert (after.problems, after.training) == ((problem,), None)


def test_a_result_tells_which_fields_were_chosen_and_why(tmp_path: Path) -> None:
    clean_repository(tmp_path)
    assert only(tmp_path).notes == ()
    config_path = tmp_path / "evalspill.yaml"
    config_path.write_text(config_path.read_text().replace("[question]", "auto"))
    assert only(tmp_path).notes == ('eval.fields auto: question chosen: called "question"',)


def test_a_baseline_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    clean_repository(tmp_path)
    assert own_baseline(config.load(tmp_path / "evalspill.yaml")).shown == "evalspill-baseline.jsonl"
    world.config(tmp_path, "baseline: known.jsonl\n")
    with pytest.raises(UsageError, match=r"^known.jsonl: no such baseline"):
        own_baseline(config.load(tmp_path / "evalspill.yaml"))


def test_the_training_records_that_hold_a_flagged_row_are_listed_where_that_is_asked_for(tmp_path: Path) -> None:
    repository(tmp_path, [sentence(1), sentence(2)], [{"text": sentence(9)}, {"text": sentence(2)}])
    assert result(tmp_path).training is None
    world.config(tmp_path, "reports: {training: true}\n")
    listed = result(tmp_path).training
    assert listed is not None
    assert [(record.path, record.line) for record in listed] == [("train.jsonl", 2)]
