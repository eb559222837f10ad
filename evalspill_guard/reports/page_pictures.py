"""The pictures of the page, as bars in per cent of its width: what the template draws, and says in a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalspill_guard.model import CheckResult, Evidence, RowScore
from evalspill_guard.reports import table
from evalspill_guard.sink import visible_line

BAR_FROM, BAR_TO = 22.0, 86.0
MOST_STRIPS = 8
MOST_FILES = 100
_LABEL = 40
_STEPS = 200
_CUT_AT = 2  # a bar of rows without overlap that is more than so many times the longest other one is cut short


@dataclass(frozen=True, slots=True)
class Bar:
    """How many rows have a containment, and how many of them are flagged; widths are in per cent of the picture."""

    label: str
    count: int
    flagged: int
    width: float
    flagged_width: float
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows by containment, from all runs found down to none."""

    bars: Sequence[Bar]
    says: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The found rows whose passage is taken from one training file; ticks are (place in per cent, any flagged)."""

    label: str
    path: str
    count: int
    flagged: int
    first_line: int
    last_line: int
    end: int
    ticks: Sequence[tuple[float, bool]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Training files by the number of found rows; the first of them are drawn."""

    strips: Sequence[Strip]
    drawn: int
    files: int
    left_out: int
    unplaced: int
    says: str


def histogram(check: CheckResult) -> Histogram:
    """The distribution of containment over the rows that were scored or found whole."""
    scores = [score for score in check.rows if score.outcome in ("dirty", "clean", "whole")]
    counts = Counter(map(_bin, scores))
    flagged = Counter(_bin(score) for score in scores if score.flagged)
    bins = [*range(10, -2, -1)]
    if counts[_WHOLE]:
        bins = [_WHOLE, *bins]
    longest = max(count for count in (*(counts[one] for one in bins if one >= 0), 0))
    cut = longest > 0 and counts[_NONE] > _CUT_AT * longest
    scale = (BAR_TO - BAR_FROM) * (0.8 if cut else 1) / max(1, longest if cut else max(longest, counts[_NONE]))
    bars = [_bar(one, counts[one], flagged[one], scale, cut and one == _NONE) for one in bins]
    return Histogram(bars, "; ".join(f"{bar.label}: {bar.count:,}" for bar in bars if bar.count))


_NONE, _WHOLE = -1, 11
_LABELS = {_WHOLE: "short, whole", 10: "1", _NONE: "0", 9: "0.9 to <1", 0: ">0 to 0.1"}


def _bin(score: RowScore) -> int:
    if score.kind == "whole":
        return _WHOLE
    if not score.runs_found:
        return _NONE
    return int(score.containment * 10)


def _bar(one: int, count: int, flagged: int, scale: float, cut: bool) -> Bar:
    label = _LABELS.get(one) or f"{one / 10:.1f} to {(one + 1) / 10:.1f}"
    width = BAR_TO - BAR_FROM if cut else count * scale
    return Bar(label, count, flagged, _wide(width), _wide(width * flagged / count) if count else 0.0, cut)


def _wide(width: float) -> float:
    """A bar that can be seen, however few its rows are."""
    return round(max(width, 0.6), 2) if width else 0.0


def sources(check: CheckResult) -> Sources:
    """Where in the training files the overlap comes from: every found row once, where its passage stands."""
    found = list(table.found_rows(check))
    placed: defaultdict[str, list[tuple[RowScore, Evidence]]] = defaultdict(list)
    for score in found:
        if score.evidence is not None:
            placed[score.evidence.train_file].append((score, score.evidence))
    records = {file.path: file.records for file in check.train}
    ordered = sorted(placed.items(), key=lambda item: (-len(item[1]), item[0].encode("utf-8", "surrogatepass")))
    strips = [_strip(path, rows, records.get(path, 0)) for path, rows in ordered[:MOST_FILES]]
    return Sources(
        strips=strips,
        drawn=min(MOST_STRIPS, len(strips)),
        files=len(ordered),
        left_out=sum(len(rows) for _, rows in ordered[MOST_FILES:]),
        unplaced=len(found) - sum(map(len, placed.values())),
        says="; ".join(f"{strip.path}: {strip.count:,}" for strip in strips[:MOST_STRIPS]),
    )


def _strip(path: str, rows: Sequence[tuple[RowScore, Evidence]], records: int) -> Strip:
    lines = [evidence.train_line for _, evidence in rows if evidence.train_line]
    end = max([records, *lines])
    shown = visible_line(path)
    return Strip(
        label=shown if len(shown) <= _LABEL else f"…{shown[1 - _LABEL :]}",
        path=shown,
        count=len(rows),
        flagged=sum(score.flagged for score, _ in rows),
        first_line=min(lines, default=0),
        last_line=max(lines, default=0),
        end=end,
        ticks=_ticks(((evidence.train_line, score.flagged) for score, evidence in rows), end),
    )


def _ticks(places: Iterable[tuple[int, bool]], end: int) -> list[tuple[float, bool]]:
    steps: dict[int, bool] = {}
    for line, flagged in places:
        if line:
            step = (line - 1) * _STEPS // max(1, end)
            steps[step] = steps.get(step, False) or flagged
    return [(step * 100 / _STEPS, flagged) for step, flagged in sorted(steps.items())]
