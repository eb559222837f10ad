"""junit.xml: the checks as test suites, for GitLab, Jenkins and everything else that reads JUnit. No row text."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import defaultdict

from evalspill_guard.model import CheckResult, RunResult
from evalspill_guard.reports import flagged, verdict
from evalspill_guard.reports.flagged import FileCount, Flagged
from evalspill_guard.reports.table import public_settings
from evalspill_guard.sink import safe, xml_legal

WORST = 10
_MAX_PROBLEMS = 100
_MAX_SETTINGS = 8_000
_TOOL = "evalspill-guard"


def junit(result: RunResult, base: str = "") -> bytes:
    """A suite for the run, whose one case is that the scan is complete, and a suite for each check.

    A check's cases are its gate and its eval files. Of a check that is not complete, what found nothing is skipped,
    never passed.
    """
    root = ET.Element("testsuites", name=_TOOL)
    _scan(root, result, base)
    rows: defaultdict[int, list[Flagged]] = defaultdict(list)
    for row in flagged.open_rows(result, base):
        rows[id(row.check)].append(row)
    for check in result.checks:
        _check(root, check, rows[id(check)], base)
    for suite in root:
        _count(suite, [suite])
    _count(root, list(root))
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _scan(root: ET.Element, result: RunResult, base: str) -> None:
    suite = _element(root, "testsuite", name=_TOOL)
    case = _case(suite, _TOOL, "the scan is complete")
    _properties(suite, {"version": result.tool_version, "unicode": result.unicode_version})
    if not flagged.complete(result):
        lines = [flagged.problem_text(problem, base) for problem in result.problems[:_MAX_PROBLEMS]]
        what = f"The scan is not complete, so its figures prove nothing. Problems: {len(result.problems)}"
        _outcome(case, "error", what, "incomplete-scan", _cut(lines, len(result.problems)))


def _check(root: ET.Element, check: CheckResult, rows: list[Flagged], base: str) -> None:
    name = f"{_TOOL}.{flagged.name(check.name)}"
    suite = _element(root, "testsuite", name=name)
    _properties(suite, _facts(check))
    _gate(_case(suite, name, "gate"), check)
    by_path: defaultdict[str, list[Flagged]] = defaultdict(list)
    for row in rows:
        by_path[row.path].append(row)
    for count in flagged.file_counts(check, base):
        case = _case(suite, name, flagged.name(count.path, 1_000), file=count.path)
        _file(case, check, count, by_path[count.path], base)


def _gate(case: ET.Element, check: CheckResult) -> None:
    if not check.complete:
        _outcome(case, "skipped", verdict.verdict(check))
    elif not check.passed:
        _outcome(case, "failure", verdict.verdict(check), "past-fail-over", verdict.not_checked(check))


def _file(case: ET.Element, check: CheckResult, count: FileCount, rows: list[Flagged], base: str) -> None:
    """Rows that the limit allows are told, and are no failure."""
    what = f"{count.flagged} of {count.checked} checked rows are in the training data"
    lines = [_line(row, base) for row in rows[:WORST]]
    if rows and flagged.failed(check):
        _outcome(case, "failure", what, "contaminated-rows", _cut(lines, len(rows)))
    elif not check.complete:
        _outcome(case, "skipped", "nothing found, but the scan is not complete")
    elif rows:
        _element(case, "system-out", text="\n".join([what, _cut(lines, len(rows))]))


def _line(row: Flagged, base: str) -> str:
    where = flagged.found_in(row, base)
    line = f" line {row.score.row.line}" if row.score.row.line else ""
    found = f"; first found in {where}" if where else ""
    return f"{flagged.row_name(row)}{line}: {flagged.figures(row)}{found}"


def _cut(lines: list[str], total: int) -> str:
    more = [f"and {total - len(lines)} more in the report"] if total > len(lines) else []
    return "\n".join([*lines, *more])


def _facts(check: CheckResult) -> dict[str, object]:
    by_class = ", ".join(f"{name} {n}" for name, n in check.n_by_class.items())
    figures = {label.lower().replace(" ", "_"): count for label, count, _ in verdict.figures(check)}
    settings = json.dumps(public_settings(check))
    return {
        "n": check.n, "n_by_class": by_class, "n_rule": check.n_rule, "limit": check.limit,
        **figures, "settings": flagged.short(settings, _MAX_SETTINGS),
    }  # fmt: skip


def _case(suite: ET.Element, classname: str, name: str, **attributes: str) -> ET.Element:
    return _element(suite, "testcase", classname=classname, name=name, **attributes, time="0")


def _outcome(case: ET.Element, tag: str, message: str, kind: str | None = None, text: str | None = None) -> None:
    attributes = {"message": message} if kind is None else {"message": message, "type": kind}
    _element(case, tag, text=text, **attributes)


def _properties(suite: ET.Element, facts: dict[str, object]) -> None:
    properties = ET.Element("properties")
    suite.insert(0, properties)
    for name, value in facts.items():
        _element(properties, "property", name=name, value=str(value))


def _element(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    """An element below `parent`. Its texts are one safe line each, but for the line breaks put in here."""
    shown = {key: xml_legal(safe(value)) for key, value in attributes.items()}
    element = ET.SubElement(parent, tag, shown)
    element.text = None if text is None else xml_legal(text)
    return element


def _count(element: ET.Element, suites: list[ET.Element]) -> None:
    """Numbers of cases by outcome; both readers want them on the suite."""
    outcomes = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error",
                "skipped": "testcase/skipped"}  # fmt: skip
    for name, path in outcomes.items():
        element.set(name, str(sum(len(suite.findall(path)) for suite in suites)))
    element.set("time", "0")
