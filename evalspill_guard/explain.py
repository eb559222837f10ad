"""Why one eval row is or is not flagged: its words, its runs, where they stand, and which rule decided.

What is told holds row text. It is for the terminal of somebody who may read the data, and for no log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from evalspill_guard.baseline import Baseline
from evalspill_guard.config import Check, Config
from evalspill_guard.errors import UsageError
from evalspill_guard.loading import Loaded, load_checks
from evalspill_guard.model import CheckResult, EvalRow, Problem, RowScore, RunResult
from evalspill_guard.scoring import FlagRule, Lengths, lengths_for
from evalspill_guard.streams import identity
from evalspill_guard.tables import Table, place, share
from evalspill_guard.text import CAP, FLOOR, scaled, words

OPEN, CLOSE = "[[", "]]"
_MOST_TEXT = 4_000
_MOST_WORDS = 300


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to say of a row in one check: figures and reasons as a table, texts as (heading, text)."""

    table: Table
    texts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The row that was asked for: its eval file as shown, its number, and a config of the checks that hold it."""

    path: str
    row: int
    config: Config


# --- which row is meant -----------------------------------------------------------------------------------------------


def find_row(config: Config, baseline: Baseline, cache: Path | None, asked: str) -> Asked:
    """The row at FILE#ROW or FILE:LINE. Reads the eval sets, and no training data.

    Raises UsageError, with the nearest names, where no eval file is called so or no row stands there.
    """
    name, mark, number = _parts(asked)
    loaded = load_checks(config, baseline.path, cache, list[Problem]())
    holding = [(one, at) for one in loaded for at in _files_called(one, name)]
    if not holding:
        raise UsageError(_no_file(name, [file.file.path for one in loaded for file in one.rows.files]))
    one, at = holding[0]
    path = one.rows.files[at].file.path
    rows = [row for row in one.rows.rows if row.file == at]
    row = _numbered(path, rows, number) if mark == "#" else _on_line(path, rows, number)
    names = {one.check.name for one, _ in holding}
    return Asked(path, row.row, replace(config, checks=tuple(c for c in config.checks if c.name in names)))


def _parts(asked: str) -> tuple[str, str, int]:
    for mark in "#:":
        name, found, number = asked.rpartition(mark)
        if found and name and number.isascii() and number.isdecimal() and len(number) < 16:
            return name, mark, int(number)
    raise UsageError(f"{asked}: name a row as FILE#ROW (rows count from 1) or FILE:LINE")


def _files_called(one: Loaded, name: str) -> list[int]:
    """The eval files with this name, as reports show it or as it is found from here."""
    real = str(Path(name).resolve())
    return [
        number
        for number, file in enumerate(one.rows.files)
        if file.file.path == name or identity(file.file) == real
    ]  # fmt: skip


def _no_file(name: str, known: Sequence[str]) -> str:
    files = list(dict.fromkeys(known))
    ends = [path for path in files if Path(path).name == Path(name).name]
    near = list(dict.fromkeys([*ends, *get_close_matches(name, files, 3, 0.4)])) or files[:3]
    return f"{name} is no eval file of this config; did you mean {' or '.join(near[:3])}?" if near else (
        f"{name} is no eval file: the config's eval globs match nothing"
    )  # fmt: skip


def _numbered(path: str, rows: Sequence[EvalRow], number: int) -> EvalRow:
    if not rows:
        raise UsageError(f"{path} has no rows")
    if not 1 <= number <= len(rows):
        nearest = 1 if number < 1 else len(rows)
        raise UsageError(f"{path} has {len(rows)} rows: there is no row {number}; the nearest is {path}#{nearest}")
    return rows[number - 1]


def _on_line(path: str, rows: Sequence[EvalRow], line: int) -> EvalRow:
    here = [row for row in rows if row.line == line and line]
    if len(here) == 1:
        return here[0]
    if here:
        raise UsageError(f"{len(here)} rows begin on line {line} of {path}: {path}#{here[0].row} to #{here[-1].row}")
    if not any(row.line for row in rows):
        raise UsageError(f"rows of {path} have no lines; name one as {path}#1 to #{len(rows)}")
    near = sorted({row.line for row in sorted(rows, key=lambda row: abs(row.line - line))[:2]})
    named = " and ".join(f"{path}:{one}" for one in near)
    raise UsageError(f"no row of {path} begins on line {line}; the nearest are {named}")


# --- what is said of it -----------------------------------------------------------------------------------------------


def explanations(asked: Asked, result: RunResult, baseline: Baseline) -> list[Explanation]:
    """What each check that holds the row says of it."""
    return [
        _explained(check, asked.config, score, found, baseline, result.text_policy == "full")
        for check, found in zip(asked.config.checks, result.checks, strict=True)
        for score in found.rows
        if found.eval_path(score) == asked.path and score.row.row == asked.row
    ]


def _explained(
    check: Check, config: Config, score: RowScore, found: CheckResult, baseline: Baseline, training_text: bool
) -> Explanation:
    row = score.row
    lengths = lengths_for([each.row for each in found.rows], check.n, check.short_rows)
    lines = (
        ("row", f"{found.eval_path(score)}#{row.row}" + (f", line {row.line}" if row.line else "")),
        *((("id", row.id),) if row.id else ()),
        ("words", f"{row.words} ({row.script})"),
        ("N", _n(score, found, lengths)),
        ("searched for", _search(score, lengths)),
        *_figures(score),
        ("boilerplate filter", _filter(score, check)),
        ("found in", _places(score)),
        ("flagged", _flagged(score, check.flag_at)),
        ("accepted", _accepted(score, found, baseline)),
        *(() if found.complete else (("note", "the scan is not complete: more may be found"),)),
    )
    title = f"check {check.name}"
    return Explanation(Table(title, ("figure", "value"), lines), tuple(_texts(score, training_text)))


def _n(score: RowScore, found: CheckResult, lengths: Lengths) -> str:
    script = score.row.script
    alike = sum(each.row.script == script and each.row.words > 0 for each in found.rows)
    if not found.n_rule.startswith("5th"):
        return f"{lengths.n[script]}: {found.n_rule}"
    bounds = f"from {scaled(FLOOR, script)} to {scaled(CAP, script)}"
    return f"{lengths.n[script]}: the 5th percentile of the lengths of the {alike} rows of its class, {bounds}"


def _search(score: RowScore, lengths: Lengths) -> str:
    row, search = score.row, lengths.search(score.row)
    if search == "runs":
        one = "; it has fewer than N words, so its one run is the whole row" if score.n == row.words else ""
        return f"by its runs of {score.n} words{one}"
    if not row.words:
        return "not at all: its fields hold no text"
    floor = f"fewer than {lengths.floor(row.script)} words: too short to score"
    if search == "none":
        return f"not at all: {floor}, and for a search as a whole"
    where = "anywhere in a record" if search == "whole" else "a record or one of its leaves that equals it"
    return f"as a whole, {where} ({floor})"


def _figures(score: RowScore) -> Iterator[tuple[str, str]]:
    if score.runs_all:
        yield "runs", f"{score.runs_found} of {score.runs} found in training"
        yield "containment", share(score.containment)
    yield "coverage", f"{share(score.coverage)} ({score.covered} of {score.row.words} words)"
    yield "longest", f"{score.longest} words" + (", the whole row in one record" if score.stands_whole else "")


def _filter(score: RowScore, check: Check) -> str:
    if check.boilerplate is None and not check.ignore:
        return "off"
    aside = score.runs_all - score.runs
    if score.stands_whole:
        return "keeps every run: the row stands whole in one record"
    if not aside:
        return "set nothing aside"
    left = f"set {aside} of {score.runs_all} runs aside; containment without it: {share(score.containment_all)}"
    only = "; what is left is too little to score" if score.outcome == "boilerplate-only" else ""
    return left + only


def _places(score: RowScore) -> str:
    if not score.found:
        return "no training record" if score.looked_for else "unknown: it was not looked for"
    shown = ", ".join(place(path, line) for path, line in score.places)
    what = "the row" if score.stands_whole else "its most frequent run"
    return f"{shown} (records that hold {what}: {score.train_records})"


def _flagged(score: RowScore, rule: FlagRule) -> str:
    if not score.found:
        return "no: nothing that counts was found" if score.looked_for else "no, and not clean: it was not checked"
    if score.outcome == "whole" or score.stands_whole:
        return "yes: it stands whole in a training record, which is always flagged"
    if rule.any:
        return "yes: flag_at is any, and one run is enough"
    keys = (("coverage", score.coverage, rule.coverage), ("longest", score.longest, rule.longest),
            ("containment", score.containment, rule.containment))  # fmt: skip
    judged = [(f"{name} {float(limit):g}", figure >= limit) for name, figure, limit in keys if limit is not None]
    reached = [key for key, enough in judged if enough]
    if reached:
        return f"yes: it reaches {' and '.join(reached)} of flag_at"
    return f"no: it is below {' and '.join(key for key, _ in judged)} of flag_at"


def _accepted(score: RowScore, found: CheckResult, baseline: Baseline) -> str:
    key = (found.name, found.eval_path(score), score.fingerprint)
    entries = [entry for entry in baseline.entries if entry.key == key]
    if not entries:
        return "no: the baseline does not hold it" if baseline.raw is not None else "no: there is no baseline"
    widest = max(entries, key=lambda entry: (not baseline.expired(entry), entry.longest))
    if score.accepted:
        return f"yes, up to {widest.longest} words: {widest.reason}"
    if not score.flagged:
        return "its entry is stale: the row is not flagged"
    if baseline.expired(widest):
        return f"no more: its entry expired on {widest.expires}"
    return f"no more: its longest passage was accepted up to {widest.longest} words, and has {score.longest}"


def _texts(score: RowScore, training_text: bool) -> Iterator[tuple[str, str]]:
    row, evidence = score.row, score.evidence
    marked = row.text
    if evidence:
        passage = row.text[evidence.first : evidence.last]
        marked = row.text[: evidence.first] + OPEN + passage + CLOSE + row.text[evidence.last :]
    yield "text" + (f", the longest shared passage in {OPEN} {CLOSE}" if evidence else ""), _cut(marked)
    compared = words(row.text)
    more = f" ... ({len(compared) - _MOST_WORDS} more)" if len(compared) > _MOST_WORDS else ""
    yield "words as they are compared", " ".join(compared[:_MOST_WORDS]) + more
    if evidence and training_text:
        where = place(evidence.train_file, evidence.train_line)
        yield f"training text at {where}", _cut(
            f"{evidence.before}{OPEN}{evidence.shared}{CLOSE}{evidence.after}"
        )  # fmt: skip


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} ... ({len(text) - _MOST_TEXT} more characters)"
