"""report.json: the whole run for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evalspill_guard.model import CheckResult, InputFile, RunResult
from evalspill_guard.reports import table

FORMAT_VERSION = 1

CANNOT_SEE = (
    "Rewording: a question that shares no run of words with the training data is not found.",
    "HTML entities and other encodings: text is compared as it stands in the file.",
    "Text in pictures, sound and other media.",
)


def report_json(result: RunResult) -> bytes:
    """The report, in ASCII: what hides or reorders text in a terminal stands there as an escape."""
    report = {
        "version": FORMAT_VERSION,
        "tool": {"name": "evalspill-guard", "version": result.tool_version, "unicode": result.unicode_version},
        "complete": result.complete,
        "exit_code": result.exit_code,
        "text": result.text_policy,
        "cannot_see": CANNOT_SEE,
        "problems": [{"path": p.path, "line": p.line, "what": p.what} for p in result.problems],
        "checks": [_check(result, check) for check in result.checks],
    }
    return (json.dumps(table.plain(report), indent=2, allow_nan=False) + "\n").encode()


def _check(result: RunResult, check: CheckResult) -> dict[str, object]:
    return {
        "name": check.name,
        "n": check.n,
        "n_by_class": check.n_by_class,
        "n_rule": check.n_rule,
        "settings": table.public_settings(check) if result.text_policy == "none" else check.settings,
        "notes": check.notes,
        "complete": check.complete,
        "passed": check.passed,
        "limit": check.limit,
        **_counts(check),
        "train": _train(check.train),
        "eval": {"files": [_input(file) for file in check.eval]},
        "found": [table.found_cells(check, score, result.text_policy) for score in table.found_rows(check)],
    }


def _counts(check: CheckResult) -> dict[str, int]:
    return {
        "rows": len(check.rows),
        "scored": check.scored,
        "dirty": check.count("dirty"),
        "clean": check.count("clean"),
        "whole": check.count("whole"),
        "too_short": check.count("too-short"),
        "boilerplate_only": check.count("boilerplate-only"),
        "no_text": check.count("no-text"),
        "unchecked": check.unchecked,
        "flagged": check.flagged,
        "accepted": check.accepted,
        "boilerplate_runs": check.boilerplate_runs,
        "boilerplate_rows": check.boilerplate_rows,
    }


def _train(files: Sequence[InputFile]) -> dict[str, object]:
    inputs = [_input(file) for file in files]
    sums = {key: sum(file[key] for file in map(_sizes, files)) for key in ("records", "empty", "bad", "bytes")}
    return {"files": inputs, **sums}


def _input(file: InputFile) -> dict[str, object]:
    return {"path": file.path, "digest": file.digest, **_sizes(file)}


def _sizes(file: InputFile) -> dict[str, int]:
    return {"bytes": file.bytes, "records": file.records, "empty": file.empty, "bad": file.bad}
