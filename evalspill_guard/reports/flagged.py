"""What the reports for CI systems have in common: the flagged rows, worst first, told without a word of their text."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from urllib.parse import quote

import orjson

from evalspill_guard.model import CheckResult, Problem, RowScore, RunResult
from evalspill_guard.remote import is_remote
from evalspill_guard.reports.table import decimal
from evalspill_guard.sink import COMMAND, encodable, safe

MAX_ENTRIES = 25_000
"""How many results GitHub takes in one SARIF run; the Code Quality report keeps to it too."""

_MAX_NAME = 200
_NOT_ASCII = re.compile("[^\\x00-\\x7e]")


@dataclass(frozen=True, slots=True)
class Flagged:
    """A flagged row: its check, its file relative to the repository, and a key that outlives changes elsewhere."""

    check: CheckResult
    score: RowScore
    path: str
    key: str


@dataclass(frozen=True, slots=True)
class FileCount:
    """An eval file of a check: rows checked in it, rows flagged and not accepted, rows accepted."""

    path: str
    checked: int
    flagged: int
    accepted: int


def flagged_rows(result: RunResult, base: str = "") -> list[Flagged]:
    """Every flagged row, worst first, the accepted ones after all others.

    `base` is the folder of the config, relative to the repository.
    """
    rows = [row for check in result.checks for row in _flagged(check, base)]
    places = {id(check): place for place, check in enumerate(result.checks)}
    return sorted(rows, key=lambda row: (row.score.accepted, *row.score.rank, places[id(row.check)]))


def open_rows(result: RunResult, base: str = "") -> list[Flagged]:
    """The flagged rows that the baseline does not accept, worst first."""
    return [row for row in flagged_rows(result, base) if not row.score.accepted]


def file_counts(check: CheckResult, base: str = "") -> list[FileCount]:
    """The eval files of a check in their order, with what was found in each."""
    checked: Counter[int] = Counter(s.row.file for s in check.rows if s.outcome in ("dirty", "clean", "whole"))
    still_open: Counter[int] = Counter(s.row.file for s in check.rows if s.flagged and not s.accepted)
    accepted: Counter[int] = Counter(s.row.file for s in check.rows if s.accepted)
    return [
        FileCount(located(base, file.path), checked[number], still_open[number], accepted[number])
        for number, file in enumerate(check.eval)
    ]


def complete(result: RunResult) -> bool:
    """Whether the figures are those of the whole scan; a run that checked nothing shows nothing."""
    return result.complete and bool(result.checks)


def failed(check: CheckResult) -> bool:
    """Whether a flagged row of the check is an error; in a check that is not complete it always is."""
    return not (check.complete and check.passed)


def row_name(row: Flagged) -> str:
    """Which row it is: its number in the file, and its id."""
    score = row.score.row
    return f"row {score.row}" if score.id is None else f"row {score.row} (id {name(score.id)})"


def figures(row: Flagged) -> str:
    """How much of the row is contained."""
    score = row.score
    if score.kind == "whole":
        return f"the whole row of {score.row.words} words"
    shares = f"containment {decimal(score.containment)}, coverage {decimal(score.coverage)}"
    return f"{shares}, longest shared passage {score.longest} words (N = {score.n})"


def found_in(row: Flagged, base: str = "") -> str:
    """The training file and line; empty where they are not known."""
    evidence = row.score.evidence
    if evidence is None:
        return ""
    path = name(located(base, evidence.train_file))
    return f"{path} line {evidence.train_line}" if evidence.train_line else path


def problem_text(problem: Problem, base: str = "") -> str:
    """Where the scan is not complete and what to do, in one line."""
    place = name(located(base, problem.path))
    line = "" if problem.line is None else f" line {problem.line}"
    return f"{place}{line}: {name(problem.what, 1_000)}"


@lru_cache(maxsize=10_000)
def name(text: str, limit: int = _MAX_NAME) -> str:
    """An untrusted name on one line, harmless in a terminal and a log, and not endless."""
    return safe(short(text, limit))


def short(text: str, limit: int = _MAX_NAME) -> str:
    """The text cut to a length."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def located(base: str, path: str) -> str:
    """A path relative to the config as one relative to the repository."""
    return posixpath.normpath(posixpath.join(base, path)) if base and not is_remote(path) else path


def uri(path: str) -> str:
    """A path as a relative URI reference; bytes that are no UTF-8 stand in it as they are in the file system."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = encodable(path).encode()
    return quote(raw, safe="/:" if is_remote(path) else "/")


def problem_key(problem: Problem, occurrence: int = 1) -> str:
    """A fingerprint of a problem, the same until the problem changes."""
    return _digest("incomplete", problem.path, problem.line, problem.what, occurrence)


def ascii_json(value: object) -> bytes:
    """JSON in ASCII: neither hidden characters nor what a log takes for a command stands there as itself."""
    raw = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if raw.isascii() and b"##" not in raw and b"\x7f" not in raw:
        return raw  # nearly always so, and a large report is searched faster than rewritten
    return _NOT_ASCII.sub(_escape, re.sub(COMMAND, r"##\1\\u005b", raw.decode())).encode()


def _flagged(check: CheckResult, base: str) -> Iterator[Flagged]:
    """The keys count all rows, so that a row's key does not hang on whether another one is flagged."""
    seen: Counter[tuple[str, str]] = Counter()
    paths = [located(base, file.path) for file in check.eval]
    for score in check.rows:
        path = paths[score.row.file]
        if score.row.id is not None:
            seen[path, score.row.id] += 1
        if score.flagged:
            number = score.row.row if score.row.id is None else seen[path, score.row.id]
            yield Flagged(check, score, path, _digest("row", check.name, path, score.row.id, number))


def _digest(*parts: object) -> str:
    """A hash of names and numbers, never of text: a hash of a row would let anyone confirm a guess of it."""
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _escape(match: re.Match[str]) -> str:
    return "\\u007f" if match[0] == "\x7f" else json.dumps(match[0])[1:-1]
