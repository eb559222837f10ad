"""The columns of the reports, as values: what the CSV files, the JSON report and the page have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from evalspill_guard.model import CheckResult, Evidence, RowScore
from evalspill_guard.paths import shown_leaf
from evalspill_guard.sink import encodable, fold

FOUND_COLUMNS = (
    "eval_file", "row", "line", "id", "fingerprint", "flagged", "accepted", "kind", "n", "words", "runs", "runs_found",
    "containment", "containment_unfiltered", "coverage", "longest", "train_file", "train_line", "train_records",
    "passage", "context",
)  # fmt: skip
UNCHECKED_COLUMNS = ("eval_file", "row", "line", "id", "words", "reason")

PASSAGE_LIMIT = 1_000
CONTEXT_LIMIT = 200

Cell = str | int | bool | Fraction | None


def public_settings(check: CheckResult) -> object:
    """The settings for those who must see no text: a leaf path that may be one is left out."""
    return plain(_hidden(check.settings, ""))


def _hidden(value: object, key: str) -> object:
    if isinstance(value, Mapping):
        return {name: _hidden(item, name) for name, item in value.items()}
    if key not in ("fields", "id", "records"):
        return value
    if isinstance(value, str):
        return shown_leaf(value)
    return [_hidden(item, key) for item in value] if isinstance(value, (list, tuple)) else value


def found_rows(check: CheckResult) -> Iterator[RowScore]:
    """The rows of the contamination report, in eval order."""
    return (score for score in check.rows if score.found)


def unchecked_rows(check: CheckResult) -> Iterator[RowScore]:
    """The rows that were neither scored nor found, in eval order."""
    return (score for score in check.rows if score.outcome in ("too-short", "boilerplate-only", "no-text"))


def found_cells(check: CheckResult, score: RowScore, policy: str) -> dict[str, Cell]:
    """One row of the contamination report by column; `policy` says whose text may stand in it."""
    evidence = score.evidence
    values: tuple[Cell, ...] = (
        *_place(check, score),
        score.fingerprint,
        score.flagged,
        score.accepted,
        score.kind,
        *_figures(score),
        score.longest,
        evidence.train_file if evidence else None,
        (evidence.train_line or None) if evidence else None,
        score.train_records,
        passage(score) if policy in ("full", "eval") else None,
        context(evidence) if evidence and policy == "full" else None,
    )
    return dict(zip(FOUND_COLUMNS, values, strict=True))


def unchecked_cells(check: CheckResult, score: RowScore) -> dict[str, Cell]:
    """One row of the list of rows not checked by column; it holds no text of the row."""
    values = (*_place(check, score), score.row.words, score.outcome)
    return dict(zip(UNCHECKED_COLUMNS, values, strict=True))


def passage(score: RowScore) -> str:
    """The row's own text from the first to the last shared word."""
    if score.evidence is None:
        return ""
    return fold(score.row.text[score.evidence.first : score.evidence.last])[:PASSAGE_LIMIT]


def context(evidence: Evidence) -> str:
    """The shared passage in the training text with what stands on either side of it."""
    shared = evidence.shared
    if len(shared) > PASSAGE_LIMIT:
        shared = f"{shared[:PASSAGE_LIMIT]} … "
    return fold(evidence.before[-CONTEXT_LIMIT:] + shared + evidence.after[:CONTEXT_LIMIT])


def ten_thousandths(share: Fraction) -> int:
    """The share in ten-thousandths, rounded down, so that 1.0000 is only ever the whole."""
    return share.numerator * 10_000 // share.denominator


def decimal(share: Fraction) -> str:
    """The share with four decimals, rounded down."""
    whole, rest = divmod(ten_thousandths(share), 10_000)
    return f"{whole}.{rest:04d}"


def _place(check: CheckResult, score: RowScore) -> tuple[str, int, int | None, str | None]:
    row = score.row
    return check.eval_path(score), row.row, row.line or None, row.id


def _figures(score: RowScore) -> tuple[Cell, ...]:
    """From `n` to `coverage`; a row that is too short for runs and stands whole has none of their figures."""
    if score.kind == "whole":
        return None, score.row.words, None, None, None, None, Fraction(1)
    shares = score.containment, score.containment_all, score.coverage
    return score.n, score.row.words, score.runs, score.runs_found, *shares


def plain(value: object) -> object:
    """The value in the types of JSON, with nothing in its texts that UTF-8 cannot hold."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        return ten_thousandths(value) / 10_000
    return value if value is None or isinstance(value, int | float) else str(value)
