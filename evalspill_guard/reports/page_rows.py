"""The found rows as the page shows them: the passage marked in the row and in the training text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from markupsafe import escape

from evalspill_guard.model import CheckResult, Evidence, RowScore
from evalspill_guard.reports import table
from evalspill_guard.sink import visible, visible_line

MOST_ROWS = 2_000
MOST_BYTES = 20_000_000
SHOWN = 2_000
_MARKUP = 3_000
_ID = 200


@dataclass(frozen=True, slots=True)
class Text:
    """A text around its shared passage; `left_out` counts the characters cut before, inside and after it."""

    before: str
    shared: str
    after: str
    left_out: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Card:
    """One found row as shown. `order` is its containment and coverage in ten-thousandths, and its longest."""

    file_number: int
    row: int
    place: str
    eval_path: str
    id: str | None
    status: str
    kind: str
    figures: Sequence[tuple[str, str]]
    own: Text | None
    theirs: Text | None
    train_path: str | None
    train_place: str | None
    train_line: int
    order: Sequence[int]

    @property
    def key(self) -> str:
        """The row's name in links."""
        return f"{self.file_number}-{self.row}"

    @property
    def size(self) -> int:
        """About how many bytes of the page it takes."""
        texts = [text for one in (self.own, self.theirs) if one for text in (one.before, one.shared, one.after)]
        names = [self.place, self.eval_path, self.id or "", self.train_path or "", self.train_place or ""]
        return _MARKUP + sum(len(escape(text).encode("utf-8", "replace")) for text in (*texts, *names))


def in_order(check: CheckResult) -> list[RowScore]:
    """Flagged rows first, then accepted ones, then the rest, each in eval order: a page has room for so many only."""
    return sorted(table.found_rows(check), key=lambda score: _STATUS.index(status(score)))


def cards(check: CheckResult, scores: Iterable[RowScore], policy: str) -> list[Card]:
    """The first of these rows, as many as the page has room for."""
    made = [_card(check, score, policy) for score, _ in zip(scores, range(MOST_ROWS), strict=False)]
    sizes = accumulate(card.size for card in made)
    return [card for card, size in zip(made, sizes, strict=True) if size <= MOST_BYTES]


_STATUS = ("flagged", "accepted", "below")


def status(score: RowScore) -> str:
    """Whether a row is flagged (and not accepted), accepted, or below flag_at."""
    return "accepted" if score.accepted else "flagged" if score.flagged else "below"


def _card(check: CheckResult, score: RowScore, policy: str) -> Card:
    evidence = score.evidence
    return Card(
        file_number=score.row.file + 1,
        row=score.row.row,
        place=place(check, score),
        eval_path=visible_line(check.eval_path(score)),
        id=short_id(score.row.id),
        status=status(score),
        kind=score.kind,
        figures=_figures(score),
        own=_own_text(score) if policy in ("full", "eval") else None,
        theirs=_training_text(evidence) if evidence and policy == "full" else None,
        train_path=visible_line(evidence.train_file) if evidence else None,
        train_place=visible_line(_at(evidence.train_file, evidence.train_line)) if evidence else None,
        train_line=evidence.train_line if evidence else 0,
        order=_order(score),
    )


def _order(score: RowScore) -> tuple[int, int, int]:
    """Containment, coverage and longest; a row found whole has everything in training."""
    shares = (10_000, 10_000)
    if score.kind != "whole":
        shares = table.ten_thousandths(score.containment), table.ten_thousandths(score.coverage)
    return *shares, score.longest


def _figures(score: RowScore) -> list[tuple[str, str]]:
    whole = ", the whole row" if score.stands_whole else ""
    longest = ("longest", f"{score.longest:,} of {words(score.row.words)}{whole}")
    records = ("training records", f"{score.train_records:,}")
    if score.kind == "whole":
        return [("kind", "whole"), ("coverage", "1.0000"), longest, records]
    return [
        ("kind", "run"),
        ("containment", f"{table.decimal(score.containment)} ({score.runs_found:,} of {score.runs:,} runs)"),
        *_unfiltered(score),
        ("coverage", table.decimal(score.coverage)),
        longest,
        ("N", str(score.n)),
        records,
    ]


def _unfiltered(score: RowScore) -> list[tuple[str, str]]:
    """The containment with boilerplate, where the filter touched the row."""
    same = (score.runs, score.runs_found) == (score.runs_all, score.runs_found_all)
    return [] if same else [("unfiltered", table.decimal(score.containment_all))]


def _own_text(score: RowScore) -> Text:
    text, evidence = score.row.text, score.evidence
    if evidence is None:
        return _text(text, "", "")
    return _text(text[: evidence.first], text[evidence.first : evidence.last], text[evidence.last :])


def _training_text(evidence: Evidence) -> Text:
    limit = table.CONTEXT_LIMIT
    return _text(evidence.before[-limit:], evidence.shared, evidence.after[:limit])


def _text(before: str, shared: str, after: str) -> Text:
    return Text(
        visible(before[-SHOWN:]), visible(shared[:SHOWN]), visible(after[:SHOWN]),
        left_out=(_past(before), _past(shared), _past(after)),
    )  # fmt: skip


def _past(text: str) -> int:
    return max(0, len(text) - SHOWN)


def short_id(text: str | None) -> str | None:
    """An id on one line, cut where it is longer than anybody reads."""
    shown = visible_line(text[:_ID]) if text is not None else None
    return f"{shown}…" if text is not None and len(text) > _ID else shown


def place(check: CheckResult, score: RowScore) -> str:
    """Where an eval row stands."""
    path = check.eval_path(score)
    return visible_line(f"{path}:{score.row.line}" if score.row.line else f"{path} row {score.row.row}")


def words(count: int) -> str:
    """A number of words."""
    return f"{count:,} word" if count == 1 else f"{count:,} words"


def _at(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path
