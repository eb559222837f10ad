"""The action, run for real by act in dataset repositories."""

from __future__ import annotations

import sys
from pathlib import Path

import hostile
import pytest
from runner import Act
from scratch import SECRET, dataset, git


@pytest.fixture(scope="module")
def act(own: Path, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Act:
    return Act(own, tmp_path_factory.mktemp("act"), wheels)


def test_on_clean_data_the_job_is_green_and_the_report_uploaded(act: Act, tmp_path: Path) -> None:
    """And without `wheels` it is installed from an index."""
    done = act.run(dataset(tmp_path / "repo"), wheels="", python=sys.executable)
    assert done.code == 0, done.log
    assert (done.outputs["exit-code"], done.outputs["status"], done.outputs["findings"]) == ("0", "clean", "0")
    assert done.outputs["artifact-url"] == "https://example.org/artifact"
    assert done.report()["complete"] is True
    assert "Passed" in done.summary()


def test_on_contaminated_data_the_job_is_red_with_all_that_explains_it(act: Act, tmp_path: Path) -> None:
    done = act.run(dataset(tmp_path / "repo", "contaminated"))
    assert done.code != 0
    assert (done.outputs["exit-code"], done.outputs["status"], done.outputs["findings"]) == ("1", "findings", "1")
    assert done.report()["exit_code"] == 1
    assert (done.uploaded / "evalspill-report/results.sarif").is_file()
    assert "data/leak.jsonl" in done.summary()
    assert "Eval rows in the training data" in done.log
    assert "evals/qa.jsonl:3" in done.log
    assert SECRET not in done.log
    assert git(act.own, "status", "--porcelain", "--ignored") == ""


def test_on_incomplete_data_the_job_is_red_even_where_only_errors_count(act: Act, tmp_path: Path) -> None:
    done = act.run(dataset(tmp_path / "repo", "incomplete"), fail_on="error")
    assert done.code != 0
    assert (done.outputs["exit-code"], done.outputs["status"]) == ("3", "incomplete")
    assert done.report()["complete"] is False
    assert "Incomplete" in done.summary()


def test_a_wrong_config_fails_the_job_and_uploads_nothing(act: Act, tmp_path: Path) -> None:
    done = act.run(dataset(tmp_path / "repo", "misconfigured"))
    assert done.code != 0
    assert (done.outputs["exit-code"], done.outputs["status"]) == ("2", "config-error")
    assert done.outputs["report-dir"] == ""
    assert not done.uploaded.exists()
    assert "fiels" in done.log
    assert "config-error" in done.summary()


def test_findings_can_be_let_pass_and_the_folder_named(act: Act, tmp_path: Path) -> None:
    done = act.run(
        dataset(tmp_path / "repo", "contaminated"),
        fail_on="error", report_dir="out", artifact_name="leaks", summary="false",
    )  # fmt: skip
    assert done.code == 0, done.log
    assert done.outputs["exit-code"] == "1"
    assert (done.uploaded / "leaks/report.json").is_file()
    assert done.summary() == ""


def test_an_action_without_upload_does_the_rest(act: Act, tmp_path: Path) -> None:
    done = act.run(dataset(tmp_path / "repo", "contaminated"), action="/scan")
    assert done.code != 0
    assert done.outputs["exit-code"] == "1"
    assert not done.uploaded.exists()
    assert "actions/upload-artifact" not in done.log


def test_where_nothing_can_be_installed_the_job_is_red(act: Act, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = act.run(dataset(tmp_path / "repo"), wheels=str(tmp_path / "empty"))
    assert done.code != 0
    assert done.outputs.get("exit-code", "") == ""
    assert "The gate did not run to its end" in done.log


def test_a_hostile_repository_changes_nothing_but_the_text_shown(act: Act, tmp_path: Path) -> None:
    folder = hostile.hostile(tmp_path / "repo")
    done = act.run(folder, config="evalspill.yaml")
    assert done.code != 0
    assert done.outputs["exit-code"] == "1"
    assert done.outputs["findings"] == str(len(hostile.NAMES))
    assert not hostile.executed(tmp_path) and not hostile.executed(act.home)
    assert all(len(widths) == 1 for widths in hostile.cells(done.summary()))
    assert "<script" not in done.summary()
    assert not {"\u202e", "\x1b[31m"} & {part for part in ("\u202e", "\x1b[31m") if part in done.log}
    assert SECRET not in done.log


def test_the_workflow_of_this_repository_finds_the_copies_planted_in_the_examples(act: Act, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(act.own), "clone")
    done = act.start(tmp_path / "clone", "--job", "examples")
    assert done.code == 0, done.log
    assert done.report()["exit_code"] == 1
    assert "Success - Main The copies planted in the examples were found" in done.log
