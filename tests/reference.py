"""The contract's words, N and scores once more, the slow and plain way: tuples, sets and loops, no package code.

The tests compare the package with it, so it shares nothing with it: neither code, nor hashes, nor an index.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

Words = tuple[str, ...]

FACTORS = {"spaced": Fraction(1), "chinese": Fraction(1), "japanese": Fraction(3, 2), "thai": Fraction(2)}
THAI = "0E00-0EFF 0F00-0FFF 1000-109F AA60-AA7F A9E0-A9FF 1780-17FF"
KANA = "3040-30FF 31F0-31FF 1AFF0-1B16F"
HAN = "3005-3007 3400-4DBF 4E00-9FFF F900-FAFF 20000-3FFFF"


@dataclass(frozen=True)
class Settings:
    """A check's settings; None where one is `auto` or `off`, `flag_at` None for `any`."""

    n: int | None = None
    short_rows: int | None = 5
    boilerplate: tuple[int, int | Fraction] | None = (10, Fraction(1, 20))
    flag_at: Mapping[str, Fraction | int] | None = None
    fail_over: int | Fraction = 0
    ignored: tuple[str, ...] = ()


class Figures(NamedTuple):
    """What the contract says of one row."""

    outcome: str
    n: int | None = None
    runs: int = 0
    found: int = 0
    unfiltered: Fraction = Fraction(0)
    coverage: Fraction = Fraction(0)
    longest: int = 0
    train_records: int = 0
    flagged: bool = False
    checked: bool = True


class Answer(NamedTuple):
    """What the contract says of a check."""

    rows: list[Figures]
    n_by_class: dict[str, int]
    boilerplate_runs: int
    boilerplate_rows: int
    passed: bool


@cache
def _in(character: str, ranges: str) -> bool:
    pairs = (pair.split("-") for pair in ranges.split())
    return any(int(first, 16) <= ord(character) <= int(last, 16) for first, last in pairs)


def _is_letter_word(character: str) -> bool:
    category = unicodedata.category(character)
    letter = category.startswith("L") or category == "Nl"
    return letter and ord(character) >= 0xE00 and _in(character, f"{THAI} {KANA} {HAN}")


def _is_dropped(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or _in(character, "FE00-FE0F E0100-E01EF")


def _separates(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "PS" or category in ("Cc", "Cs", "Co") or character == "\ufffd" or character.isspace()


@cache
def words(text: str) -> Words:
    """Section 2, one character after the other."""
    found = [""]
    bears_marks = alone = False
    for character in unicodedata.normalize("NFKC", "".join(c for c in text if not _is_dropped(c))):
        category = unicodedata.category(character)
        if category.startswith("M"):
            found[-1] += character if bears_marks else ""
            continue
        lowered = {"ς": "σ", "İ": "i"}.get(character, character.lower())
        bears_marks = category[0] in "LN"
        letter_word = _is_letter_word(character)
        if _separates(character):
            found.append("")
        elif letter_word or alone:
            found.append(lowered)
        else:
            found[-1] += lowered
        alone = letter_word
    return tuple(word for word in found if word)


def text_words(leaves: Sequence[str]) -> Words:
    """The words of a row or record: its leaves joined by a line break."""
    return words("\n".join(leaves))


@cache
def script(row: Words) -> str:
    """The class of a row, by its own words."""
    letters = [word[0] for word in row if _is_letter_word(word[0])]
    if len(letters) <= len(row) - len(letters):
        return "spaced"
    if sum(_in(letter, THAI) for letter in letters) > len(letters) / 2:
        return "thai"
    return "japanese" if sum(_in(letter, KANA) for letter in letters) >= Fraction(len(letters), 10) else "chinese"


@cache
def scaled(number: int, kind: str) -> int:
    """A length times the class's factor, rounded up."""
    return next(size for size in range(3 * number + 1) if size >= number * FACTORS[kind])


def _chosen_n(rows: Sequence[Words], kind: str) -> int:
    lengths = sorted(len(row) for row in rows if row and script(row) == kind)
    place = next(place for place in range(1, len(lengths) + 1) if place >= Fraction(len(lengths), 20))
    return sorted((scaled(8, kind), lengths[place - 1], scaled(13, kind)))[1]


def runs_at(text: Words, n: int) -> list[Words]:
    """The run at each place."""
    return [text[at : at + n] for at in range(len(text) - n + 1)]


class _Check:
    def __init__(self, rows: Sequence[Words], records: Sequence[Sequence[str]], settings: Settings) -> None:
        self.rows, self.settings = rows, settings
        self.leaves = [{words(leaf) for leaf in record} | {text_words(record)} for record in records]
        self.records = [text_words(record) for record in records]
        kinds = {script(row) for row in rows if row}
        self.n_by_class = {kind: settings.n or _chosen_n(rows, kind) for kind in kinds}
        lengths = {len(run) for row in rows for run in self.runs(row)}
        self.held = [{run for n in lengths for run in runs_at(record, n)} for record in self.records]
        self.boilerplate = self._boilerplate()

    def floor(self, row: Words) -> int:
        return min(scaled(8, script(row)), self.n_by_class[script(row)])

    def runs(self, row: Words) -> list[Words]:
        """The run at each place of a row; none where it is too short to score."""
        if not row or len(row) < self.floor(row):
            return []
        return runs_at(row, min(len(row), self.n_by_class[script(row)]))

    def holding(self, run: Words) -> list[int]:
        return [number for number, held in enumerate(self.held) if run in held]

    def standing_whole(self, row: Words) -> list[int]:
        return [number for number, record in enumerate(self.records) if row in runs_at(record, len(row))]

    def _boilerplate(self) -> set[Words]:
        owned = {run for row in self.rows for run in self.runs(row)}
        named = {run for run in owned for text in self.settings.ignored if run in runs_at(words(text), len(run))}
        if self.settings.boilerplate is None:
            return named
        records, share = self.settings.boilerplate
        distinct = {row for row in self.rows if row}
        least = max(2, share if isinstance(share, int) else share * len(distinct))
        owners = {run: sum(run in self.runs(row) for row in distinct) for run in owned}
        return named | {run for run in owned if owners[run] >= least and len(self.holding(run)) > records}

    def short(self, row: Words) -> Figures:
        """A row that is too short to score: looked for as a whole, or not at all."""
        if not row:
            return Figures("no-text", checked=False)
        if self.settings.short_rows is None or len(row) < 3:
            return Figures("too-short", checked=False)
        if len(row) >= scaled(self.settings.short_rows, script(row)):
            records = len(self.standing_whole(row))
        else:
            records = sum(row in leaves for leaves in self.leaves)
        if not records:
            return Figures("too-short")
        return Figures("whole", None, 0, 0, Fraction(0), Fraction(1), len(row), records, True)

    def scored(self, row: Words) -> Figures:
        runs = self.runs(row)
        n = len(runs[0])
        whole = bool(self.standing_whole(row))
        found = {run for run in runs if self.holding(run)}
        live = set(runs) if whole else set(runs) - self.boilerplate
        hits = found & live
        figures = Figures("clean", n, len(live), len(hits), Fraction(len(found), len(set(runs))))
        if not hits:
            outside = len(row) - len(_words_inside(runs, set(runs) - live))
            only = live != set(runs) and outside < self.floor(row)
            return figures._replace(outcome="boilerplate-only", checked=False) if only else figures
        figures = figures._replace(
            outcome="dirty",
            coverage=Fraction(len(_words_inside(runs, hits)), len(row)),
            longest=len(row) if whole else self._longest(row, hits),
            train_records=max(len(self.holding(run)) for run in hits),
        )
        return figures._replace(flagged=whole or self._is_flagged(figures))

    def _longest(self, row: Words, hits: set[Words]) -> int:
        """The longest passage that holds a live run, in the first four records of each such run."""
        seen = {number for run in hits for number in self.holding(run)[:4]}
        return max(_longest_common(row, self.records[number], hits) for number in seen)

    def _is_flagged(self, figures: Figures) -> bool:
        reached: dict[str, Fraction | int] = {
            "coverage": figures.coverage,
            "longest": figures.longest,
            "containment": Fraction(figures.found, figures.runs),
        }
        rule = self.settings.flag_at
        return rule is None or any(reached[key] >= least for key, least in rule.items())


def _words_inside(runs: Sequence[Words], chosen: set[Words]) -> set[int]:
    """The places of the words that lie inside a chosen run."""
    return {at + step for at, run in enumerate(runs) if run in chosen for step in range(len(run))}


def _longest_common(row: Words, record: Words, hits: set[Words]) -> int:
    n = len(next(iter(hits)))
    longest = 0
    for at in range(len(row)):
        for there in range(len(record)):
            size = 0
            while row[at + size : at + size + 1] == record[there + size : there + size + 1] != ():
                size += 1
            if size > longest and hits & set(runs_at(row[at : at + size], n)):
                longest = size
    return longest


def answer(rows: Sequence[Sequence[str]], records: Sequence[Sequence[str]], settings: Settings) -> Answer:
    """Every figure of a check; rows and records are given as their leaves, records in file and line order."""
    texts = [text_words(row) for row in rows]
    check = _Check(texts, records, settings)
    figures = [check.scored(row) if check.runs(row) else check.short(row) for row in texts]
    runs = [len(set(check.runs(row))) for row in texts]
    touched = sum(one.n is not None and one.runs < count for one, count in zip(figures, runs, strict=True))
    counted = sum(one.outcome in ("dirty", "clean", "whole") for one in figures)
    limit = settings.fail_over if isinstance(settings.fail_over, int) else settings.fail_over * counted
    passed = sum(one.flagged for one in figures) <= limit
    return Answer(figures, check.n_by_class, len(check.boilerplate), touched, passed)
