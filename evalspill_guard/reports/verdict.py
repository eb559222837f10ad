"""What a check came to, in sentences: for every report that a person reads."""

from __future__ import annotations

from evalspill_guard.model import CheckResult


def state(check: CheckResult) -> str:
    """Passed, Failed or Incomplete; an incomplete check is neither of the others."""
    if not check.complete:
        return "Incomplete"
    return "Passed" if check.passed else "Failed"


def verdict(check: CheckResult) -> str:
    """How many of the rows that were checked are flagged, and how many may be."""
    checked = check.scored + check.count("whole")
    accepted = f", {check.accepted:,} of them accepted in the baseline" if check.accepted else ""
    text = (
        f"{check.flagged:,} of {_rows(checked)} checked {_are(check.flagged)} flagged{accepted} (limit: {check.limit})."
    )
    return text if check.complete else f"The scan is not complete, so this is not the whole result: {text}"


def lengths(check: CheckResult) -> str:
    """N, and how it was reached."""
    if set(check.n_by_class.values()) <= {check.n}:
        return f"N = {check.n} words ({check.n_rule})."
    by_class = ", ".join(f"{n} for {name} rows" for name, n in check.n_by_class.items())
    return f"N = {check.n} words; by script: {by_class} ({check.n_rule})."


def not_checked(check: CheckResult) -> str:
    """How many rows were not scored and why; how many of these were looked for as a whole, and how many not at all."""
    reasons = {
        "too short": check.count("too-short"),
        "hardly more than boilerplate": check.count("boilerplate-only"),
        "without text": check.count("no-text"),
    }
    total = sum(reasons.values())
    if not total:
        return "Every row was scored or found whole."
    named = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    return f"{_rows(total)} {_were(total)} not scored ({named}): {_looked_for(total, check.unchecked)}."


def _looked_for(total: int, unchecked: int) -> str:
    """What is known of rows that were not scored."""
    searched = total - unchecked
    if not unchecked:
        return "looked for as a whole only, and not found"
    unknown = f"not looked for, so nothing is known of {'it' if unchecked == 1 else 'them'}"
    if not searched:
        return unknown
    known = f"{searched:,} {_were(searched)} looked for as a whole only, and not found"
    return f"{known}; {unchecked:,} {_were(unchecked)} {unknown}"


def figures(check: CheckResult) -> list[tuple[str, int, str]]:
    """The counts of a check: name, count, meaning."""
    return [
        ("Rows", len(check.rows), "all rows of the eval set"),
        ("Scored", check.scored, "long enough to compare by runs of N words: dirty and clean"),
        ("Dirty", check.count("dirty"), "share at least one run with the training data"),
        ("Clean", check.count("clean"), "share none"),
        ("Found whole", check.count("whole"), "too short to score, but the whole row stands in a training record"),
        ("Too short", check.count("too-short"), "too short to score, and not found whole where looked for"),
        ("Boilerplate only", check.count("boilerplate-only"), "hardly a word outside template text"),
        ("No text", check.count("no-text"), "no words in the compared fields"),
        ("Not looked for", check.unchecked, "of the three above: nothing is known of these rows"),
        ("Flagged", check.flagged, "at or past flag_at, or found whole"),
        ("Accepted", check.accepted, "flagged, and accepted in the baseline"),
        ("Boilerplate runs", check.boilerplate_runs, "runs shared by many training records and many rows: not counted"),
        ("Rows with boilerplate", check.boilerplate_rows, "rows that hold such a run"),
    ]


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
