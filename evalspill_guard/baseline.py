"""Accepted rows: known overlap that a person has looked at, given a reason, and let pass the gate.

They are known by the check, the file and the row's words, whatever N is and wherever in the file the row stands.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from evalspill_guard.baselinefile import is_date, parse, render
from evalspill_guard.durable import write_new
from evalspill_guard.errors import ReportError, UsageError
from evalspill_guard.model import Accepted, BaselineUse, CheckResult, Grown, RowScore

RowKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The accepted rows of a file; `shown` names it, `raw` are its bytes (None: there is no such file).

    `day` is the date (ISO) against which expiry is judged; None where no row expires.
    """

    path: Path
    shown: str
    raw: bytes | None = None
    entries: tuple[Accepted, ...] = ()
    day: str | None = None

    def expired(self, entry: Accepted) -> bool:
        """Whether the last day on which the entry accepts its row is past."""
        return entry.expires is not None and self.day is not None and entry.expires < self.day

    def limits(self) -> dict[RowKey, int]:
        """How long the longest passage of each accepted row may be; of several entries the widest counts."""
        limits: dict[RowKey, int] = {}
        for entry in self.entries:
            if not self.expired(entry):
                limits[entry.key] = max(entry.longest, limits.get(entry.key, 0))
        return limits


class FlaggedRow(NamedTuple):
    """A flagged row with the names by which it is accepted. Rows of the same words in one file are accepted as one."""

    check: str
    eval_file: str
    score: RowScore

    @property
    def key(self) -> RowKey:
        return self.check, self.eval_file, self.score.fingerprint


def load(path: Path, shown: str, required: bool) -> Baseline:
    """Read a baseline.

    Raises UsageError, with the way out, for one that cannot be believed, or that is required and not there.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        if required:
            raise UsageError(f"{shown}: no such baseline; `evalspill-guard baseline create` writes one") from None
        return Baseline(path, shown)
    except OSError as error:
        raise UsageError(f"{shown}: could not be read: {error.strerror or type(error).__name__}") from None
    entries = parse(raw, shown)
    day = today().isoformat() if any(entry.expires for entry in entries) else None
    return Baseline(path, shown, raw, entries, day)


def today() -> date:
    """The date of SOURCE_DATE_EPOCH where that is set, else today, both in UTC; raises UsageError for a wrong one."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = datetime.fromtimestamp(int(given), timezone.utc) if given else datetime.now(timezone.utc)
    except (ValueError, OverflowError, OSError):
        raise UsageError("SOURCE_DATE_EPOCH must be a number of seconds since 1970") from None
    return moment.date()


def expiry(text: str) -> str:
    """A date as written on the command line; raises UsageError for what is no date, or is past."""
    if not is_date(text):
        raise UsageError("--expires must be a date such as 2030-12-31")
    if text < today().isoformat():
        raise UsageError(f"--expires {text} is past: it is {today().isoformat()}")
    return text


# --- what a run makes of it -------------------------------------------------------------------------------------------


def mark_accepted(baseline: Baseline, check: str, paths: Sequence[str], scores: Iterable[RowScore]) -> list[RowScore]:
    """The rows of a check, those marked accepted whose longest passage is not above what was accepted.

    `paths` are the check's eval files as shown. N does not matter: it changes when rows are added.
    """
    limits = baseline.limits()
    return [
        replace(one, accepted=one.longest <= limits.get((check, paths[one.row.file], one.fingerprint), -1))
        if one.flagged
        else one
        for one in scores
    ]


def flagged_rows(checks: Iterable[CheckResult]) -> list[FlaggedRow]:
    """Every flagged row, in the order of the checks and their rows."""
    return [
        FlaggedRow(check.name, check.eval_path(score), score)
        for check in checks
        for score in check.rows
        if score.flagged
    ]


def use_of(baseline: Baseline, checks: Sequence[CheckResult], complete: bool) -> BaselineUse | None:
    """What a run found of a baseline; None where there is no file.

    An entry without a flagged row is stale; of a scan that is not complete nobody can tell.
    """
    if baseline.raw is None:
        return None
    rows = flagged_rows(checks)
    flagged = {row.key for row in rows}
    stale = tuple(entry for entry in baseline.entries if complete and entry.key not in flagged)
    expired = tuple(entry for entry in baseline.entries if entry.key in flagged and baseline.expired(entry))
    return BaselineUse(
        path=baseline.shown, entries=len(baseline.entries), day=baseline.day, stale=stale, expired=expired,
        grown=tuple(_grown(rows, baseline.limits())),
    )  # fmt: skip


def _grown(rows: Iterable[FlaggedRow], limits: Mapping[RowKey, int]) -> Iterable[Grown]:
    for row in rows:
        if row.key in limits and not row.score.accepted:
            place = row.score.row
            yield Grown(row.check, row.eval_file, place.line, place.row, place.id, limits[row.key], row.score.longest)


# --- what a person changes --------------------------------------------------------------------------------------------


def chosen(checks: Sequence[CheckResult], names: Sequence[str], places: Sequence[str]) -> list[FlaggedRow]:
    """The flagged rows of these checks at these places (FILE#ROW or FILE:LINE); without either, all of them.

    Raises UsageError for a check that there is not, and a place where no flagged row stands.
    """
    unknown = sorted(set(names) - {check.name for check in checks})
    if unknown:
        raise UsageError(f"no check is called {unknown[0]}; there are {', '.join(check.name for check in checks)}")
    rows = [row for row in flagged_rows(checks) if not names or row.check in names]
    empty = [place for place in places if not any(_stands_at(row, place) for row in rows)]
    if empty:
        raise UsageError(f"no flagged row stands at {', '.join(empty)}; name rows as FILE#ROW or FILE:LINE")
    return [row for row in rows if not places or any(_stands_at(row, place) for place in places)]


def _stands_at(row: FlaggedRow, place: str) -> bool:
    stands = row.score.row
    return place == f"{row.eval_file}#{stands.row}" or bool(stands.line and place == f"{row.eval_file}:{stands.line}")


def to_add(baseline: Baseline, rows: Sequence[FlaggedRow], again: bool) -> list[FlaggedRow]:
    """Those rows that the baseline does not know; `again`: also those that have grown or whose entry has expired."""
    known = {entry.key for entry in baseline.entries}
    return [row for row in rows if not row.score.accepted and (again or row.key not in known)]


def with_rows(
    entries: Iterable[Accepted], rows: Sequence[FlaggedRow], reason: str, expires: str | None
) -> list[Accepted]:
    """The entries with these rows accepted as they are now; what was said of the same rows before is replaced.

    Raises UsageError for a reason without a word.
    """
    said = " ".join(reason.split())
    if not said:
        raise UsageError("a reason is needed: say why these rows may stay")
    taken = {row.key for row in rows}
    return [entry for entry in entries if entry.key not in taken] + [_accepted(row, said, expires) for row in rows]


def _accepted(row: FlaggedRow, reason: str, expires: str | None) -> Accepted:
    score = row.score
    n = score.n if score.kind == "run" else None
    coverage = Fraction(int(score.coverage * 10_000), 10_000)  # rounded down, as in the reports
    return Accepted(*row.key, score.kind, n, score.longest, float(coverage), reason, expires)


def pruned(entries: Iterable[Accepted], found: BaselineUse) -> list[Accepted]:
    """The entries that are neither stale nor expired."""
    gone = {*found.stale, *found.expired}
    return [entry for entry in entries if entry not in gone]


def write(baseline: Baseline, entries: Iterable[Accepted]) -> bool:
    """Put these entries into the file, all or nothing; whether that changed it.

    Raises UsageError where the file is no longer what was read, ReportError where it cannot be written.
    """
    data = render(entries)
    if data == baseline.raw:
        return False
    path = Path(os.path.realpath(baseline.path))  # a link stays a link
    try:
        if (path.read_bytes() if os.path.lexists(path) else None) != baseline.raw:
            raise UsageError(f"{baseline.shown}: changed during the scan; run again")
        _replace(path, data)
    except OSError as error:
        raise ReportError(f"{baseline.shown}: cannot be written: {error.strerror or type(error).__name__}") from None
    return True


def _replace(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        write_new(aside, [data], 0o666)  # the mode that the umask leaves
        aside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()
