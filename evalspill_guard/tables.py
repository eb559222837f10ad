"""What a person reads after a check, as values: labels, cells and sentences, never row text."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple
from unicodedata import category, east_asian_width

from evalspill_guard.fields import FieldInfo
from evalspill_guard.model import CheckResult
from evalspill_guard.paths import shown_leaf
from evalspill_guard.sink import safe

WORST = 10


class Table(NamedTuple):
    """A titled table of strings."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def share(value: Fraction) -> str:
    """Four decimals, rounded down, so that 1.0000 is only ever the whole."""
    whole, rest = divmod(value.numerator * 10_000 // value.denominator, 10_000)
    return f"{whole}.{rest:04d}"


def figures(check: CheckResult) -> Table:
    """One check's figures."""
    by_class = ", ".join(f"{name} {n}" for name, n in check.n_by_class.items())
    rows = (
        ("N", f"{check.n} ({check.n_rule}; {by_class})"),
        ("rows", str(len(check.rows))),
        ("scored", str(check.scored)),
        ("too short to score", str(check.count("too-short"))),
        ("boilerplate-only", str(check.count("boilerplate-only"))),
        ("no text", str(check.count("no-text"))),
        ("unchecked", str(check.unchecked)),
        ("dirty", str(check.count("dirty"))),
        ("clean", str(check.count("clean"))),
        ("found whole (short rows)", str(check.count("whole"))),
        ("flagged", f"{check.flagged} ({check.accepted} accepted)"),
        ("boilerplate filter", f"{check.boilerplate_runs} runs, {check.boilerplate_rows} rows touched"),
        ("training", f"{sum(f.records for f in check.train)} records in {len(check.train)} files, "
                     f"{sum(f.empty for f in check.train)} without text, {sum(f.bad for f in check.train)} unreadable"),
        ("gate", f"{check.flagged - check.accepted} flagged, {check.limit} allowed"),
        ("verdict", verdict(check)),
    )  # fmt: skip
    return Table(f"check {check.name}", ("figure", "value"), rows)


def verdict(check: CheckResult) -> str:
    """The gate's answer in a word or two."""
    if not check.complete:
        return "INCOMPLETE"
    return "passed" if check.passed else "FAILED"


def worst_rows(check: CheckResult) -> Table:
    """The ten rows with most overlap."""
    found = sorted((s for s in check.rows if s.found), key=lambda s: (not s.flagged, *s.rank))[:WORST]
    cells = tuple(
        (
            place(check.eval_path(s), s.row.line, s.row.row), s.row.id or "", s.kind,
            share(s.containment) if s.runs else "", share(s.coverage), str(s.longest), "yes" if s.flagged else "no",
            place(s.evidence.train_file, s.evidence.train_line) if s.evidence else "",
        )
        for s in found
    )  # fmt: skip
    header = ("eval row", "id", "kind", "containment", "coverage", "longest", "flagged", "first found in")
    return Table(f"worst rows of {check.name}", header, cells)


def place(path: str, line: int, row: int | None = None) -> str:
    """Where something stands: file:line, or file#row in a format without lines."""
    if line:
        return f"{path}:{line}"
    return path if row is None else f"{path}#{row}"


def field_table(infos: Sequence[FieldInfo]) -> Table:
    """The leaf paths of a file, and which of them are compared."""
    cells = tuple(
        (shown_leaf(info.path), f"{float(info.fill):.0%}", f"{float(info.average):.0f}", f"{float(info.top_share):.0%}",
         "yes" if info.chosen else "no", info.why)
        for info in infos
    )  # fmt: skip
    return Table("fields", ("leaf path", "filled", "average length", "most common", "chosen", "why"), cells)


def plain(table: Table) -> str:
    """A table as aligned text, a line a row; what is not printable in a cell is shown as an escape."""
    rows = [[safe(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_padded, row, widths)).rstrip() for row in rows]
    return "\n".join([safe(table.title), *("  " + line for line in lines)])


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(text: str) -> int:
    """Places on a terminal: wide letters take two, combining marks none."""
    return sum(0 if category(c) in ("Mn", "Me") else 2 if east_asian_width(c) in ("W", "F") else 1 for c in text)


def render_table(infos: Sequence[FieldInfo]) -> str:
    """The field table as text."""
    return plain(field_table(infos))
