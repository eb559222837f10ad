"""overlap-report.html: one check as a page that a person can read; it loads and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import yaml

from evalspill_guard.model import CheckResult, Evidence, RowScore, RunResult
from evalspill_guard.reports import table
from evalspill_guard.reports.json_report import CANNOT_SEE
from evalspill_guard.reports.verdict import figures, lengths, not_checked, state, verdict
from evalspill_guard.sink import visible, visible_line

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_ROWS = 2_000
SHOWN = 2_000

_TEXT_NOTES = {
    "full": "",
    "eval": "Text of the training data is left out of these reports (reports.text: eval).",
    "none": "All text is left out of these reports (reports.text: none).",
}


@dataclass(frozen=True, slots=True)
class Card:
    """One found row as shown: `own` and `theirs` are the text before, inside and after the shared passage."""

    file_number: int
    row: int
    place: str
    id: str | None
    figures: Sequence[tuple[str, str]]
    own: tuple[str, str, str] | None
    theirs: tuple[str, str, str] | None
    train_place: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """Found rows that mean the same to the reader; `total` counts those that the page leaves out too."""

    key: str
    title: str
    lead: str
    total: int
    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class UncheckedRow:
    """One row of which nothing is known."""

    place: str
    id: str | None
    words: int
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """All that the template shows."""

    result: RunResult
    check: CheckResult
    state: str
    verdict: str
    lengths: str
    not_checked: str
    text_note: str
    groups: Sequence[Group]
    found_total: int
    unchecked: Sequence[UncheckedRow]
    unchecked_total: int
    figures: Sequence[tuple[str, int, str]]
    settings: str
    cannot_see: Sequence[str]


def overlap_html(result: RunResult, check: CheckResult) -> bytes:
    """The page of one check."""
    text = _environment().get_template("overlap-report.html.j2").render(page=_page(result, check))
    return text.encode()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("evalspill_guard.reports")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters.update(line=visible_line, shown=visible, number="{:,}".format)
    return environment


def _page(result: RunResult, check: CheckResult) -> Page:
    unchecked = list(table.unchecked_rows(check))
    return Page(
        result=result,
        check=check,
        state=state(check),
        verdict=verdict(check),
        lengths=lengths(check),
        not_checked=not_checked(check),
        text_note=_TEXT_NOTES[result.text_policy],
        groups=_groups(result, check),
        found_total=sum(1 for _ in table.found_rows(check)),
        unchecked=[_unchecked_row(check, score) for score in unchecked[:MOST_ROWS]],
        unchecked_total=len(unchecked),
        figures=figures(check),
        settings=settings_yaml(check.settings),
        cannot_see=CANNOT_SEE,
    )


def _groups(result: RunResult, check: CheckResult) -> list[Group]:
    """Flagged rows first, since the page has room for so many rows only."""
    found = list(table.found_rows(check))
    kinds = (
        ("flagged", "Flagged", "These rows count at the gate.", [s for s in found if s.flagged and not s.accepted]),
        ("accepted", "Accepted", "The baseline accepts these rows.", [s for s in found if s.accepted]),
        (
            "below",
            "Found, not flagged",
            "These rows share a passage with the training data that is below flag_at.",
            [s for s in found if not s.flagged and not s.accepted],
        ),
    )
    groups: list[Group] = []
    room = MOST_ROWS
    for key, title, lead, scores in kinds:
        cards = [_card(check, score, result.text_policy) for score in islice(scores, room)]
        room -= len(cards)
        groups.append(Group(key, title, lead, len(scores), cards))
    return groups


def _card(check: CheckResult, score: RowScore, policy: str) -> Card:
    evidence = score.evidence
    return Card(
        file_number=score.row.file + 1,
        row=score.row.row,
        place=_place(check, score),
        id=score.row.id,
        figures=_card_figures(score),
        own=_own_text(score) if policy in ("full", "eval") else None,
        theirs=_training_text(evidence) if evidence and policy == "full" else None,
        train_place=_at(evidence.train_file, evidence.train_line) if evidence else None,
    )


def _card_figures(score: RowScore) -> list[tuple[str, str]]:
    counts = [("longest passage", _words(score.longest)), ("row", _words(score.row.words))]
    rest = [("training records", f"{score.train_records:,}"), ("fingerprint", score.fingerprint)]
    if score.kind == "whole":
        return [("match", "the whole row"), *counts, *rest]
    containment = f"{table.decimal(score.containment)} ({score.runs_found:,} of {score.runs:,} runs)"
    return [
        ("match", "the whole row" if score.stands_whole else "runs of words"),
        ("containment", containment),
        ("unfiltered", table.decimal(score.containment_all)),
        ("coverage", table.decimal(score.coverage)),
        *counts,
        ("N", str(score.n)),
        *rest,
    ]


def _own_text(score: RowScore) -> tuple[str, str, str]:
    text, evidence = score.row.text, score.evidence
    if evidence is None:
        return _first(text), "", ""
    return _last(text[: evidence.first]), _first(text[evidence.first : evidence.last]), _first(text[evidence.last :])


def _training_text(evidence: Evidence) -> tuple[str, str, str]:
    before, after = evidence.before[-table.CONTEXT_LIMIT :], evidence.after[: table.CONTEXT_LIMIT]
    return before, _first(evidence.shared), after


def _first(text: str) -> str:
    left_out = len(text) - SHOWN
    return text if left_out <= 0 else f"{text[:SHOWN]} [… {left_out:,} characters left out]"


def _last(text: str) -> str:
    left_out = len(text) - SHOWN
    return text if left_out <= 0 else f"[{left_out:,} characters left out …] {text[-SHOWN:]}"


def _unchecked_row(check: CheckResult, score: RowScore) -> UncheckedRow:
    return UncheckedRow(_place(check, score), score.row.id, score.row.words, score.outcome)


def _place(check: CheckResult, score: RowScore) -> str:
    path = check.eval_path(score)
    return f"{path}:{score.row.line}" if score.row.line else f"{path} row {score.row.row}"


def _at(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _words(count: int) -> str:
    return f"{count:,} word" if count == 1 else f"{count:,} words"


def settings_yaml(settings: Mapping[str, object]) -> str:
    """The settings as YAML that can be copied; in ASCII where a character in them would not be seen."""
    plain = _plain(settings)
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    return text if visible(text) == text else yaml.safe_dump(plain, sort_keys=False, allow_unicode=False, width=100)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
