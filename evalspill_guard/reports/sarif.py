"""results.sarif: the flagged rows in SARIF 2.1.0, for code scanning and editors. It holds no row text."""

from __future__ import annotations

from evalspill_guard.model import CheckResult, Problem, RunResult
from evalspill_guard.reports import flagged
from evalspill_guard.reports.flagged import Flagged
from evalspill_guard.reports.json_report import CANNOT_SEE
from evalspill_guard.reports.table import decimal, public_settings

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MAX_PROBLEMS = 1_000

_HELP = (
    "Take the row out of the eval set (the clean file in the report folder leaves it out), or take the record out of "
    "the training data, or accept the row in the baseline. The passage itself is shown in overlap-report.html only. "
)
_CONTAMINATED = (
    "contaminated-row",
    "Eval row contained in the training data",
    "The row stands in a training record as a whole, or shares so many or such long runs of N consecutive words "
    "with the training data that it is past flag_at.",
    _HELP + " ".join(CANNOT_SEE),
)
_INCOMPLETE = (
    "incomplete-scan",
    "The scan is not complete",
    "Something that the config names was not read, so that rows may be contained without being listed.",
    "Mend what the message names and run again: the figures of an incomplete scan prove nothing.",
)
_LEFT_OUT = (
    "left-out",
    "Results are left out",
    "There are more results than code scanning takes in one run; the worst of them are listed.",
    "report.json and the CSV files in the report folder hold every flagged row.",
)


def sarif(result: RunResult, base: str = "") -> bytes:
    """The log of one run: a result for each flagged row, worst first, and one for each problem before them.

    Rows that the baseline accepts are suppressed results. GitHub takes no more than MAX_ENTRIES; a notification
    says how many were left out.
    """
    rows = flagged.flagged_rows(result, base)
    results = [_problem_result(p, base) for p in result.problems[:_MAX_PROBLEMS]]
    results += [_row_result(row, base) for row in rows[: flagged.MAX_ENTRIES - len(results)]]
    left_out = len(rows) + len(result.problems) - len(results)
    run = {
        "tool": {"driver": _driver(result)},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(result, left_out, base)],
        "results": results,
        "properties": {"checks": [_check(check) for check in result.checks]},
    }
    return flagged.ascii_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _driver(result: RunResult) -> dict[str, object]:
    return {
        "name": "evalspill-guard",
        "semanticVersion": result.tool_version,
        "rules": [_rule(*_CONTAMINATED), _rule(*_INCOMPLETE)],
        "notifications": [_rule(*_INCOMPLETE), _rule(*_LEFT_OUT)],
    }


def _rule(identity: str, short: str, full: str, advice: str) -> dict[str, object]:
    return {
        "id": identity,
        "name": "".join(part.title() for part in identity.split("-")),
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": advice},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["data-contamination"]},
    }


def _row_result(row: Flagged, base: str) -> dict[str, object]:
    found: dict[str, object] = {
        "ruleId": "contaminated-row",
        "ruleIndex": 0,
        "level": "note" if row.score.accepted else "error" if flagged.failed(row.check) else "warning",
        "message": {"text": _message(row, base)},
        "locations": [_location(row.path, row.score.row.line)],
        "partialFingerprints": {"primaryLocationLineHash": row.key},
        "properties": _figures(row),
    }
    evidence = row.score.evidence
    if evidence:
        place = _location(flagged.located(base, evidence.train_file), evidence.train_line)
        found["relatedLocations"] = [{"id": 1, **place, "message": {"text": "The training record"}}]
    if row.score.accepted:
        reason = {"kind": "external", "status": "accepted", "justification": "accepted in the baseline"}
        found["suppressions"] = [reason]
    return found


def _message(row: Flagged, base: str) -> str:
    """A sentence; the training record's place is a link to the related location."""
    where = _text(flagged.found_in(row, base))
    first = f" First found in [{where}](1)." if where else ""
    what = f"Eval {flagged.row_name(row)} of check {flagged.name(row.check.name)}"
    return f"{_text(what)} is in the training data: {flagged.figures(row)}.{first}"


def _figures(row: Flagged) -> dict[str, object]:
    score = row.score
    return {
        "check": row.check.name,
        "row": score.row.row,
        "id": None if score.row.id is None else flagged.name(score.row.id),
        "kind": score.kind,
        "n": score.n if score.kind == "run" else None,
        "containment": decimal(score.containment) if score.kind == "run" else None,
        "coverage": decimal(score.coverage),
        "longest": score.longest,
    }


def _problem_result(problem: Problem, base: str) -> dict[str, object]:
    return {
        "ruleId": "incomplete-scan",
        "ruleIndex": 1,
        "level": "error",
        "message": {"text": _text(flagged.problem_text(problem, base))},
        "locations": [_location(flagged.located(base, problem.path), problem.line or 0)],
        "partialFingerprints": {"primaryLocationLineHash": flagged.problem_key(problem)},
    }


def _invocation(result: RunResult, left_out: int, base: str) -> dict[str, object]:
    problems = [
        _notification("incomplete-scan", 0, "error", flagged.problem_text(problem, base))
        for problem in result.problems[:_MAX_PROBLEMS]
    ]
    what = f"{left_out} results more than fit in here are left out; report.json and the CSV files hold them all"
    notes = [_notification("left-out", 1, "note", what)] if left_out else []
    return {
        "executionSuccessful": flagged.complete(result),
        "exitCode": result.exit_code,
        "toolExecutionNotifications": problems + notes,
    }


def _notification(identity: str, index: int, level: str, text: str) -> dict[str, object]:
    return {"descriptor": {"id": identity, "index": index}, "level": level, "message": {"text": _text(text)}}


def _location(path: str, line: int) -> dict[str, object]:
    physical: dict[str, object] = {"artifactLocation": {"uri": flagged.uri(path)}}
    if line:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def _check(check: CheckResult) -> dict[str, object]:
    return {
        "name": check.name,
        "n": check.n,
        "nByClass": dict(check.n_by_class),
        "nRule": check.n_rule,
        "rows": len(check.rows),
        "scored": check.scored,
        "whole": check.count("whole"),
        "unchecked": check.unchecked,
        "flagged": check.flagged,
        "accepted": check.accepted,
        "limit": check.limit,
        "passed": check.passed,
        "complete": check.complete,
        "settings": public_settings(check),
    }


def _text(text: str) -> str:
    """Brackets of a name are no link: in a message they would lead to a location."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
