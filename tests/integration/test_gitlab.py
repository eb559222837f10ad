"""The GitLab component, its job run for real by gitlab-ci-local in dataset repositories."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import hostile
import scratch
from scratch import ROOT, SECRET, commit_all, dataset, git, run, tool

INCLUDE = """\
include:
  - component: $CI_SERVER_FQDN/$CI_PROJECT_PATH/evalspill-guard@$CI_COMMIT_SHA
    inputs:
"""


@dataclass(frozen=True)
class Job:
    """What a run of the job left: its exit code, log and report folder."""

    code: int
    log: str
    reports: Path


def start(folder: Path, wheels: Path, **inputs: str) -> Job:
    """Commit the folder with the component in it and run the pipeline of its default branch."""
    command = tool("gitlab-ci-local")
    tool("rsync")
    given = {"python": sys.executable, "wheels": str(wheels), "requirement": "evalspill-guard", **inputs}
    lines = "".join(f"      {name.replace('_', '-')}: {json.dumps(value)}\n" for name, value in given.items())
    (folder / ".gitlab-ci.yml").write_text(INCLUDE + lines)
    (folder / "templates").mkdir(exist_ok=True)
    shutil.copy(ROOT / "templates/evalspill-guard.yml", folder / "templates")
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
        git(folder, "remote", "add", "origin", "https://gitlab.example.org/group/project.git")
    (folder / ".gitignore").write_text(".gitlab-ci-local/\n")
    commit_all(folder)
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    env = scratch.clean_env(HOME=str(home), GCL_ARTIFACTS_TO_SOURCE="false", TMPDIR=str(home))
    done = run([command, "--force-shell-executor", "--no-color"], folder, env)
    return Job(done.returncode, done.stdout, folder / ".gitlab-ci-local/artifacts/evalspill-guard/evalspill-reports")


def report(job: Job) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((job.reports / "report.json").read_bytes())
    return loaded


def test_on_clean_data_the_job_is_green_and_its_reports_kept(wheels: Path, tmp_path: Path) -> None:
    job = start(dataset(tmp_path / "repo"), wheels)
    assert job.code == 0, job.log
    assert report(job)["complete"] is True
    assert json.loads((job.reports / "gl-code-quality.json").read_bytes()) == []
    assert (job.reports / "junit.xml").is_file()
    assert not list((tmp_path / "repo").rglob("evalspill-guard-*"))


def test_on_contaminated_data_the_job_ends_with_1_and_keeps_its_reports(wheels: Path, tmp_path: Path) -> None:
    job = start(dataset(tmp_path / "repo", "contaminated"), wheels)
    assert "FAIL 1" in job.log
    assert report(job)["exit_code"] == 1
    assert [one["location"]["path"] for one in json.loads((job.reports / "gl-code-quality.json").read_bytes())]
    assert "evals/qa.jsonl:3" in job.log and "data/leak.jsonl:2" in job.log
    shown = [job.log, *((job.reports / name).read_text() for name in ("gl-code-quality.json", "junit.xml"))]
    assert [text for text in shown if SECRET in text] == []


def test_on_incomplete_data_the_job_ends_with_3_even_where_only_errors_count(wheels: Path, tmp_path: Path) -> None:
    job = start(dataset(tmp_path / "repo", "incomplete"), wheels, fail_on="error")
    assert "FAIL 3" in job.log
    assert report(job)["complete"] is False


def test_a_wrong_config_ends_with_2_and_leaves_no_report_not_even_an_older_one(wheels: Path, tmp_path: Path) -> None:
    folder = dataset(tmp_path / "repo", "misconfigured")
    (folder / "evalspill-reports").mkdir()
    (folder / "evalspill-reports/junit.xml").write_text("<testsuites/>")
    job = start(folder, wheels)
    assert "FAIL 2" in job.log
    assert "fiels" in job.log
    assert not job.reports.exists()


def test_findings_can_be_let_pass(wheels: Path, tmp_path: Path) -> None:
    job = start(dataset(tmp_path / "repo", "contaminated"), wheels, fail_on="error")
    assert job.code == 0, job.log
    assert report(job)["exit_code"] == 1


def test_what_fails_before_the_scan_never_ends_with_the_code_of_findings(wheels: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    folder = dataset(tmp_path / "repo")
    assert "FAIL 4" in start(folder, tmp_path / "empty").log
    assert "FAIL 4" in start(folder, wheels, python="no-such-python").log
    assert "FAIL 4" in start(folder, wheels, requirement="click").log


def test_a_hostile_repository_runs_no_code_and_its_names_are_shown_harmless(wheels: Path, tmp_path: Path) -> None:
    folder = hostile.hostile(tmp_path / "repo")
    job = start(folder, wheels)
    assert "FAIL 1" in job.log
    assert not hostile.executed(tmp_path)
    own_part = [line.partition("> ")[2] for line in job.log.splitlines() if line.startswith("evalspill-guard >")]
    assert len(own_part) > 20
    assert hostile.unprintable("".join(own_part)) == set()
    assert SECRET not in job.log


def test_the_pipeline_of_this_repository_finds_the_copies_planted_in_the_examples(own: Path, tmp_path: Path) -> None:
    command = tool("gitlab-ci-local")
    tool("rsync")
    git(tmp_path, "clone", "-q", str(own), "clone")
    git(tmp_path / "clone", "remote", "set-url", "origin", "https://gitlab.example.org/group/project.git")
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    env = scratch.clean_env(HOME=str(tmp_path))
    env["PATH"] = f"{python.parent}:{env['PATH']}"
    done = run([command, "--force-shell-executor", "--no-color", "examples", "planted-copies"], tmp_path / "clone", env)
    assert done.returncode == 0, done.stdout
    assert "WARN 1" in done.stdout
    assert "PASS  planted-copies" in done.stdout
