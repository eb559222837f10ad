"""Read the training records again in which eval rows were found, and cut the passages out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evalspill_guard.errors import Unreadable
from evalspill_guard.evidence import Passage, RecordText, RowText, cut, longest_passage
from evalspill_guard.model import MOST_PLACES, Evidence, Place, Problem, Record, RowScore
from evalspill_guard.pool import Pool, ScannedFile
from evalspill_guard.readers import records_at
from evalspill_guard.scoring import ScoredRow


class _Best:
    """The longest passage of one row so far."""

    def __init__(self, found: ScoredRow) -> None:
        score = found.score
        self.score = score
        whole = score.stands_whole
        n = score.row.words if whole else score.n or score.row.words
        self.row = RowText(score.row.text, n, None if whole else found.live_at)
        self.passage: Passage | None = None
        self.evidence: Evidence | None = None

    def compare(self, record: RecordText, path: str, line: int) -> None:
        passage = longest_passage(self.row, record)
        if passage and (self.passage is None or passage.length > self.passage.length):
            self.passage = passage
            self.evidence = cut(self.row, record, passage, path, line)

    def scored(self) -> RowScore:
        length = self.passage.length if self.passage else self.score.longest
        return replace(self.score, longest=length, evidence=self.evidence)


def gather(rows: Sequence[ScoredRow], pool: Pool) -> tuple[list[RowScore], list[Problem]]:
    """The scores with their longest passage and its evidence, and the files that changed since the scan."""
    best = {number: _Best(found) for number, found in enumerate(rows) if found.places}
    problems: list[Problem] = []
    for number, wanted in sorted(_wanted(rows).items()):
        file = pool.files[number]
        try:
            for place, record in _read(file, sorted(wanted)):
                text = RecordText(record.leaves)
                for row in wanted[place]:
                    best[row].compare(text, file.file.path, place.line)
        except (Unreadable, OSError):
            problems.append(Problem(file.file.path, None, "this file could not be read a second time"))
    for row, one in best.items():
        if one.passage is None:
            place = rows[row].places[0]
            path = pool.files[place.file].file.path
            problems.append(Problem(path, place.line, "this record changed during the scan"))
    scores = [best[number].scored() if number in best else found.score for number, found in enumerate(rows)]
    return [_with_places(score, found, pool) for score, found in zip(scores, rows, strict=True)], problems


def _with_places(score: RowScore, found: ScoredRow, pool: Pool) -> RowScore:
    if not found.places:
        return score
    named = ((pool.files[place.file].file.path, place.line) for place in found.places[:MOST_PLACES])
    return replace(score, places=tuple(dict.fromkeys(named)))


def _wanted(rows: Sequence[ScoredRow]) -> dict[int, dict[Place, list[int]]]:
    """By the number of a file, the places in it that must be read again, each with the rows that it may hold."""
    wanted: dict[int, dict[Place, list[int]]] = {}
    for number, found in enumerate(rows):
        for place in found.places[:1] if found.score.stands_whole else found.places:
            wanted.setdefault(place.file, {}).setdefault(place, []).append(number)
    return wanted


def _read(file: ScannedFile, places: Sequence[Place]) -> Iterator[tuple[Place, Record]]:
    wanted = [(place.ordinal, place.start) for place in places]
    yield from zip(places, records_at(file.file, file.reading, "train", wanted), strict=True)
