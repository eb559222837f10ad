"""The scripts of the action, run as its steps run them but without a runner."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import hostile
import pytest
import scratch
from scratch import ROOT, SECRET, dataset

DEFAULTS = {
    "CONFIG": "", "BASELINE": "", "WORKING_DIRECTORY": ".", "REPORT_DIR": "", "FAIL_ON": "findings", "SUMMARY": "true",
    "ANNOTATIONS": "true", "UPLOAD_ARTIFACT": "true", "ARTIFACT_NAME": "evalspill-report", "RETENTION_DAYS": "0",
}  # fmt: skip


CI_REPORTS = ("results.sarif", "junit.xml", "gl-code-quality.json", "summary.md")


@dataclass(frozen=True)
class Scan:
    code: int
    log: str
    outputs: dict[str, str]
    summary: str


def scan(folder: Path, **inputs: str) -> Scan:
    """The scan step in `folder`."""
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    files = {name: temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    given = {f"EVALSPILL_{name}": value for name, value in {**DEFAULTS, "HOME": str(temporary), **inputs}.items()}
    env = scratch.clean_env(CI="true", GITHUB_ACTIONS="true", **given, **{k: str(v) for k, v in files.items()})
    done = subprocess.run(
        [sys.executable, "-I", ROOT / "action/scan.py"], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return Scan(done.returncode, done.stdout.decode(), outputs, files["GITHUB_STEP_SUMMARY"].read_text())


def gate(code: str, fail_on: str = "findings") -> int:
    env = scratch.clean_env(EVALSPILL_CODE=code, EVALSPILL_FAIL_ON=fail_on)
    return scratch.run(["bash", ROOT / "action/gate.sh"], ROOT, env).returncode


@pytest.mark.parametrize(
    ("kind", "code", "status", "findings"),
    [("clean", "0", "clean", "0"), ("contaminated", "1", "findings", "1"), ("incomplete", "3", "incomplete", "0"),
     ("misconfigured", "2", "config-error", "")],
)  # fmt: skip
def test_each_way_to_end_is_told_by_outputs_and_summary(
    tmp_path: Path, kind: str, code: str, status: str, findings: str
) -> None:
    done = scan(dataset(tmp_path / "repo", kind))
    assert done.code == 0, done.log
    assert (done.outputs["exit-code"], done.outputs["status"], done.outputs["findings"]) == (code, status, findings)
    assert done.summary.startswith("# evalspill-guard")
    assert ("report-dir" in done.outputs) == (kind != "misconfigured")
    assert all(Path(done.outputs[name]).is_file() for name in ("report-json", "sarif") if name in done.outputs)
    assert SECRET not in done.log + done.summary


@pytest.mark.parametrize(
    "inputs",
    [{"FAIL_ON": "never"}, {"FAIL_ON": ""}, {"SUMMARY": "True"}, {"ANNOTATIONS": "yes"}, {"UPLOAD_ARTIFACT": ""},
     {"RETENTION_DAYS": "-1"}, {"RETENTION_DAYS": ""}, {"ARTIFACT_NAME": "a/b"}, {"ARTIFACT_NAME": ""},
     {"CONFIG": "a\n::error::x"}, {"REPORT_DIR": "a\nexit-code=0"}, {"WORKING_DIRECTORY": "nowhere"}],
    ids=str,
)  # fmt: skip
def test_a_wrong_input_is_a_config_error_and_is_not_shown(tmp_path: Path, inputs: dict[str, str]) -> None:
    done = scan(dataset(tmp_path / "repo"), **inputs)
    assert done.outputs == {"exit-code": "2", "status": "config-error", "findings": ""}
    shown = hostile.commands(done.log)
    assert len(shown) == 1
    assert shown[0].startswith("::error title=evalspill-guard::the input ")


def test_a_report_folder_that_holds_an_earlier_report_is_refused(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "repo")
    assert scan(folder, REPORT_DIR="reports").outputs["exit-code"] == "0"
    scratch.add_leak(folder)
    again = scan(folder, REPORT_DIR="reports")
    assert again.outputs["exit-code"] == "2"
    assert "report-dir" not in again.outputs


def test_an_older_report_folder_in_the_workspace_is_no_training_data(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "repo")
    config = folder / "evalspill.yaml"
    config.write_text(config.read_text().replace("data/*.jsonl]", '"**/*.jsonl", "!evals/**"]'))
    older = folder / "evalspill-reports/default/clean/evals/qa.clean.jsonl"  # where an earlier run by hand wrote
    older.parent.mkdir(parents=True)
    older.write_bytes((folder / "evals/qa.jsonl").read_bytes())
    assert scan(folder).outputs["exit-code"] == "0"


def test_a_run_that_leaves_no_report_of_its_own_is_an_internal_error(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "repo")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary" / "taken").write_text("a file where the folder should be")
    done = scan(folder, REPORT_DIR=str(tmp_path / "temporary" / "taken" / "x"))
    assert done.outputs["exit-code"] == "4"
    assert done.outputs["status"] == "internal-error"


def test_row_text_is_in_no_report_that_a_ci_system_shows(tmp_path: Path) -> None:
    done = scan(dataset(tmp_path / "repo", "contaminated"))
    folder = Path(done.outputs["report-dir"])
    shown = {name: (folder / name).read_text() for name in CI_REPORTS}
    assert [name for name, text in shown.items() if SECRET in text] == []
    assert SECRET in (folder / "report.json").read_text()


def test_annotations_can_be_turned_off(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "repo", "contaminated")
    assert hostile.commands(scan(folder, ANNOTATIONS="false").log) == []


def test_annotations_name_the_eval_file_first_and_then_its_worst_row(tmp_path: Path) -> None:
    shown = hostile.commands(scan(dataset(tmp_path / "repo", "contaminated")).log)
    assert len(shown) == 2
    assert shown[0].startswith("::error file=evals/qa.jsonl,title=")
    assert shown[1].startswith("::error file=evals/qa.jsonl,line=3,title=")


def test_a_config_elsewhere_is_found_and_its_files_are_named_from_the_repository(tmp_path: Path) -> None:
    scratch.repository(tmp_path / "repo")
    dataset(tmp_path / "repo/sub", "contaminated")
    for inputs in ({"CONFIG": "sub/evalspill.yaml"}, {"WORKING_DIRECTORY": "sub"}):
        done = scan(tmp_path / "repo", HOME=str(tmp_path / str(len(str(inputs)))), **inputs)
        assert done.outputs["exit-code"] == "1"
        assert hostile.commands(done.log)[0].startswith("::error file=sub/evals/qa.jsonl,title=")


def test_a_hostile_repository_forges_no_command_runs_no_code_and_breaks_no_table(tmp_path: Path) -> None:
    folder = hostile.hostile(tmp_path / "repo")
    done = scan(folder)
    assert done.outputs["exit-code"] == "1", done.log
    assert done.outputs["findings"] == str(len(hostile.NAMES))
    assert not hostile.executed(folder)
    shown = hostile.commands(done.log)
    assert [line for line in shown if not line.startswith(("::error file=evals/", "::notice title="))] == []
    assert len(shown) == 11
    assert hostile.unprintable(done.log) == set()
    assert hostile.unprintable(done.summary) == set()
    assert all(len(widths) == 1 for widths in hostile.cells(done.summary))
    assert "<script" not in done.summary
    assert SECRET not in done.log + done.summary


@pytest.mark.parametrize(
    ("code", "fail_on", "ends"),
    [("0", "findings", 0), ("1", "findings", 1), ("2", "findings", 2), ("3", "findings", 3), ("4", "findings", 4),
     ("130", "findings", 130), ("1", "error", 0), ("2", "error", 2), ("3", "error", 3), ("4", "error", 4),
     ("", "findings", 4), ("", "error", 4), ("00", "findings", 4), ("-9", "error", 4), ("0 ", "findings", 4),
     ("1", "", 1), ("1", "Error", 1)],
)  # fmt: skip
def test_the_gate_ends_with_the_code_and_without_one_it_fails(code: str, fail_on: str, ends: int) -> None:
    assert gate(code, fail_on) == ends


def install(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    output = tmp_path / "output"
    output.touch()
    return scratch.run(
        ["bash", ROOT / "action/install.sh"], tmp_path,
        scratch.clean_env(RUNNER_TEMP=str(tmp_path), GITHUB_OUTPUT=str(output), **env),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("env", "says"),
    [({"EVALSPILL_PYTHON": "no-such-python"}, "the input python"), ({"EVALSPILL_WHEELS": "nowhere"}, "input wheels"),
     ({"EVALSPILL_PYTHON": "/bin/false"}, "Python 3.10"), ({"EVALSPILL_PYTHON": "fake/python"}, "python3-venv")],
    ids=str,
)  # fmt: skip
def test_what_is_missing_for_the_installation_is_told_in_one_line(
    tmp_path: Path, env: dict[str, str], says: str
) -> None:
    fake = tmp_path / "fake/python"  # a Python without the venv module
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\n[ "$2" != -m ]\n')
    fake.chmod(0o755)
    done = install(tmp_path, **env)
    assert done.returncode == 2
    assert says in done.stdout.splitlines()[-1]
    assert (tmp_path / "output").read_text() == ""


def test_a_failed_installation_shows_the_log_of_pip_with_commands_stopped(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    done = install(tmp_path, EVALSPILL_PYTHON=sys.executable, EVALSPILL_WHEELS="wheels")
    lines = done.stdout.splitlines()
    assert done.returncode == 2
    assert lines[0].startswith("::stop-commands::") and len(lines[0]) > 30
    assert lines[-2] == f"::{lines[0].removeprefix('::stop-commands::')}::"
    assert lines[-1].startswith("::error title=evalspill-guard::")
