"""overlap-report.html: one check as a page that a person can read; it loads nothing, and runs one script of its own."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from evalspill_guard.model import CheckResult, InputFile, RowScore, RunResult
from evalspill_guard.reports import page_pictures, page_rows, page_training, table
from evalspill_guard.reports.json_report import CANNOT_SEE
from evalspill_guard.reports.page_pictures import Histogram, Sources
from evalspill_guard.reports.page_settings import settings_yaml
from evalspill_guard.reports.page_training import Training
from evalspill_guard.reports.verdict import figures, lengths, not_checked, state, verdict
from evalspill_guard.sink import visible, visible_line

if TYPE_CHECKING:
    from jinja2 import Environment, Template

MOST_UNSCORED = 2_000
MOST_INPUTS = 1_000
MOST_NOTES = 200

_TEXT_NOTES = {
    "full": "",
    "eval": "Training text is left out of these reports (reports.text: eval).",
    "none": "All row and training text is left out of these reports (reports.text: none).",
}
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'"
)


@dataclass(frozen=True, slots=True)
class Unscored:
    """One row that was neither scored nor found; `searched` says whether it was looked for as a whole."""

    place: str
    id: str | None
    words: int
    reason: str
    searched: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """The first of some things, and how many there are."""

    shown: Sequence[object]
    total: int

    @property
    def cut(self) -> bool:
        return len(self.shown) < self.total


@dataclass(frozen=True, slots=True)
class Page:
    """All that the template shows."""

    result: RunResult
    check: CheckResult
    state: str
    verdict: str
    checked: int
    lengths: str
    not_checked: str
    text_note: str
    rows: Listing
    found: Counter[str]
    eval_number: Mapping[str, int]
    train_number: Mapping[str, int]
    unscored: Listing
    problems: Listing
    notes: Listing
    inputs: Sequence[tuple[str, Listing]]
    figures: Sequence[tuple[str, int, str]]
    histogram: Histogram
    sources: Sources
    training: Training | None
    settings: str
    cannot_see: Sequence[str]


def overlap_html(result: RunResult, check: CheckResult) -> bytes:
    """The page of one check."""
    return _template().render(page=_page(result, check)).encode("utf-8", "replace")


@cache
def _template() -> Template:
    """The page's template; its script and style are allowed by their digests and by nothing else."""
    style, script = _asset("overlap-report.css"), _asset("overlap-report.js")
    policy = _POLICY.format(style=_digest(style), script=_digest(script))
    assets = {"policy": policy, "style": style, "script": script}
    return _environment().get_template("overlap-report.html.j2", globals=assets)


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("evalspill_guard.reports"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(line=visible_line, shown=visible, number="{:,}".format)
    return environment


def _asset(name: str) -> str:
    return files("evalspill_guard.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _page(result: RunResult, check: CheckResult) -> Page:
    found = page_rows.in_order(check)
    cards = page_rows.cards(check, found, result.text_policy)
    unscored = list(table.unchecked_rows(check))
    return Page(
        result=result,
        check=check,
        state=state(check),
        verdict=verdict(check),
        checked=check.scored + check.count("whole"),
        lengths=lengths(check),
        not_checked=not_checked(check),
        text_note=_TEXT_NOTES[result.text_policy],
        rows=Listing(cards, len(found)),
        found=Counter(map(page_rows.status, found)),
        eval_number=_numbered(card.eval_path for card in cards),
        train_number=_numbered(card.train_path for card in cards if card.train_path is not None),
        unscored=Listing([_unscored(check, score) for score in unscored[:MOST_UNSCORED]], len(unscored)),
        problems=Listing(result.problems[:MOST_NOTES], len(result.problems)),
        notes=Listing(check.notes[:MOST_NOTES], len(check.notes)),
        inputs=[("Eval files", _inputs(check.eval)), ("Training files", _inputs(check.train))],
        figures=figures(check),
        histogram=page_pictures.histogram(check),
        sources=page_pictures.sources(check),
        training=page_training.training(result, check),
        settings=settings_yaml(result, check),
        cannot_see=CANNOT_SEE,
    )


def _numbered(paths: Iterable[str]) -> dict[str, int]:
    """Each path once with its number, in the order of its bytes."""
    return {path: number for number, path in enumerate(sorted(set(paths), key=str.encode), 1)}


def _inputs(inputs: Sequence[InputFile]) -> Listing:
    return Listing(inputs[:MOST_INPUTS], len(inputs))


def _unscored(check: CheckResult, score: RowScore) -> Unscored:
    where, mark = page_rows.place(check, score), page_rows.short_id(score.row.id)
    return Unscored(where, mark, score.row.words, score.outcome, score.looked_for)
