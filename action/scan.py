"""Runs the gate for the GitHub action: checks the inputs, scans into a fresh folder, writes outputs and the summary.

Run it with `python -I`. It always exits 0, so that the report is uploaded after a red run; gate.sh turns the output
exit-code into the step's own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

STATUS = {0: "clean", 1: "findings", 2: "config-error", 3: "incomplete"}
INTERNAL = 4
MAX_SUMMARY = 1_000_000  # GitHub drops a step's summary above 1 MiB
CHOICES = {
    "fail-on": ("findings", "error"),
    "summary": ("true", "false"),
    "annotations": ("true", "false"),
    "upload-artifact": ("true", "false"),
}
PATTERNS = {"artifact-name": r"[A-Za-z0-9._ -]{1,128}", "retention-days": r"[0-9]{1,3}"}
PATHS = ("config", "baseline", "working-directory", "report-dir")


def given(name: str) -> str | None:
    """An input of the action; None where the action has none of this name."""
    return os.environ.get("EVALSPILL_" + name.upper().replace("-", "_"))


def mistakes() -> list[str]:
    """What is wrong with the inputs. Their values are not shown: a log might take them for commands."""
    found = [
        f"the input {name} must be one of: {', '.join(values)}"
        for name, values in CHOICES.items()
        if given(name) not in (*values, None)
    ]
    found += [
        f"the input {name} must match {pattern}"
        for name, pattern in PATTERNS.items()
        if given(name) is not None and not re.fullmatch(pattern, given(name) or "")
    ]
    found += [f"the input {name} holds a control character" for name in PATHS if not (given(name) or "").isprintable()]
    return found or list(wrong_folders())


def wrong_folders() -> Iterator[str]:
    """What is wrong with the folders that the inputs name."""
    if not Path(given("working-directory") or ".").is_dir():
        yield "the input working-directory is no folder"
    reports = report_dir()
    if os.path.lexists(reports) and (not reports.is_dir() or any(reports.iterdir())):
        yield "the folder that report-dir names is not empty: an earlier report could be taken for this one"


def report_dir() -> Path:
    """Where the reports go: a folder of this run below the runner's temporary one, unless the user names another."""
    named = given("report-dir")
    return Path(named).absolute() if named else Path(given("home") or ".") / "evalspill-reports"


def scan(reports: Path) -> int:
    """Run the gate in the working directory; its exit code, and never 1 by accident."""
    command = [sys.executable, "-I", "-m", "evalspill_guard", "check", "--reports-dir", str(reports)]
    for name in ("config", "baseline"):
        if given(name):
            command += [f"--{name}={given(name)}"]
    env = dict(os.environ)
    if given("annotations") == "false":
        env.pop("GITHUB_ACTIONS", None)
    # Through a pipe, for some runners give their steps a terminal, and a log is none.
    pipe = subprocess.Popen(  # noqa: S603
        command, cwd=given("working-directory") or ".", env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    with pipe as child:
        for line in child.stdout or ():
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return child.returncode


def findings(reports: Path, code: int) -> int:
    """How many rows are flagged and not accepted; ValueError where the report is not that of a run that ended so."""
    report = json.loads((reports / "report.json").read_bytes())
    if report["exit_code"] != code or report["complete"] is not (code in (0, 1)):
        raise ValueError("report.json is not the report of this run")
    return sum(check["flagged"] - check["accepted"] for check in report["checks"])


def outcome(reports: Path) -> dict[str, str]:
    """The outputs of the action: always exit-code and status, the rest where there is a report."""
    code = scan(reports)
    flagged = ""
    if code in (0, 1, 3):
        try:
            flagged = str(findings(reports, code))
        except (OSError, ValueError, KeyError, TypeError) as error:
            error_line(f"the run left no report of its own ({type(error).__name__})")
            code = INTERNAL
    outputs = {"exit-code": str(code), "status": STATUS.get(code, "internal-error"), "findings": flagged}
    if flagged:
        outputs["report-dir"] = str(reports)
        outputs["report-json"] = str(reports / "report.json")
        outputs["sarif"] = str(reports / "results.sarif")
    return outputs


def summary(outputs: dict[str, str]) -> str:
    """What the job summary gets: the report's own, or for a run without report how it ended."""
    path = Path(outputs["report-dir"], "summary.md") if outputs.get("report-dir") else None
    if path is not None and path.is_file() and path.stat().st_size <= MAX_SUMMARY:
        return path.read_text(encoding="utf-8")
    return f"# evalspill-guard: {outputs['status']}\n\nExit code {outputs['exit-code']}; the log tells why.\n"


def error_line(what: str) -> None:
    """An annotation of the run itself."""
    print(f"::error title=evalspill-guard::{what}", flush=True)


def append(variable: str, text: str) -> None:
    """Write to one of the runner's files, where it gave one."""
    if os.environ.get(variable):
        with Path(os.environ[variable]).open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)


def main() -> None:
    """Check the inputs, scan, and tell the runner; see the top of this file."""
    wrong = mistakes()
    for what in wrong:
        error_line(what)
    outputs = {"exit-code": "2", "status": STATUS[2], "findings": ""} if wrong else outcome(report_dir())
    append("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in outputs.items()))
    if given("summary") == "true":
        append("GITHUB_STEP_SUMMARY", summary(outputs))


if __name__ == "__main__":
    main()
