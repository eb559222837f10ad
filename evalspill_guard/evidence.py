"""The longest passage that a row shares with a training record, cut out of both texts.

Hashes lead to the passage; the words themselves are compared before it is shown, so a collision never is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalspill_guard.index import Ids, Mask
from evalspill_guard.kernel import Batch, Hashes, batch
from evalspill_guard.model import Evidence
from evalspill_guard.text import spans, words

CONTEXT = 200
SHOWN = 20_000
_MOST_PAIRS = 4_000_000


@dataclass(frozen=True, slots=True)
class Passage:
    """`length` words from word `in_row` of the row and word `in_record` of the record."""

    length: int
    in_row: int
    in_record: int


class RowText:
    """A row as it is compared: its words and the hashes of its runs; live_at says which of them count."""

    def __init__(self, text: str, n: int, live_at: Mask | None) -> None:
        self.text, self.n, self.live_at = text, n, live_at
        self.words = words(text)
        self.runs = batch([[text]]).windows(n)


class RecordText:
    """A training record as it is compared; hashed once for all rows that it may hold."""

    def __init__(self, leaves: Sequence[str]) -> None:
        self.text = "\n".join(leaves)
        self._batch: Batch = batch([[self.text]])
        self._sorted: dict[int, tuple[Hashes, Ids]] = {}
        self._words: list[str] | None = None

    @property
    def words(self) -> list[str]:
        if self._words is None:
            self._words = words(self.text)
        return self._words

    def sorted_runs(self, n: int) -> tuple[Hashes, Ids]:
        if n not in self._sorted:
            runs = self._batch.windows(n)
            order = np.argsort(runs, kind="stable")
            self._sorted[n] = runs[order], order
        return self._sorted[n]


def longest_passage(row: RowText, record: RecordText) -> Passage | None:
    """The longest common passage of at least n words that holds a live run; the first of several."""
    in_row, in_record = _shared_runs(row, record)
    if not len(in_row):
        return None
    order = np.lexsort((in_row, in_record - in_row))
    in_row, in_record = in_row[order], in_record[order]
    starts = np.flatnonzero(_breaks(in_row, in_record))
    sizes = np.diff(np.append(starts, len(in_row)))
    if row.live_at is not None:
        alive = np.add.reduceat(row.live_at[in_row].astype(np.int64), starts) > 0
        starts, sizes = starts[alive], sizes[alive]
    for at in np.lexsort((in_record[starts], in_row[starts], -sizes)).tolist():
        passage = Passage(int(sizes[at]) + row.n - 1, int(in_row[starts[at]]), int(in_record[starts[at]]))
        if _same_words(row, record, passage):
            return passage
    return None


def _breaks(in_row: Ids, in_record: Ids) -> Mask:
    breaks = np.ones(len(in_row), dtype=bool)
    breaks[1:] = (np.diff(in_row) != 1) | (np.diff(in_record) != 1)
    return breaks


def _shared_runs(row: RowText, record: RecordText) -> tuple[Ids, Ids]:
    """(place in the row, place in the record) of every run that both hold."""
    runs, order = record.sorted_runs(row.n)
    first = np.searchsorted(runs, row.runs, side="left")
    counts = np.searchsorted(runs, row.runs, side="right") - first
    while counts.sum() > _MOST_PAIRS:  # one word repeated without end: the first of its places will do
        counts = np.minimum(counts, max(1, int(counts.max()) // 2))
    in_row = np.repeat(np.arange(len(row.runs)), counts)
    ends = np.cumsum(counts)
    within = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    return in_row, order[np.repeat(first, counts) + within]


def _same_words(row: RowText, record: RecordText, passage: Passage) -> bool:
    ours = row.words[passage.in_row : passage.in_row + passage.length]
    return ours == record.words[passage.in_record : passage.in_record + passage.length]


def cut(row: RowText, record: RecordText, passage: Passage, path: str, line: int) -> Evidence:
    """The passage in both texts, with up to 200 characters of training text on either side."""
    ours = spans(row.text)
    first, last = ours[passage.in_row][0], ours[passage.in_row + passage.length - 1][1]
    theirs = spans(record.text)
    begin, end = theirs[passage.in_record][0], theirs[passage.in_record + passage.length - 1][1]
    return Evidence(
        train_file=path,
        train_line=line,
        first=first,
        last=last,
        before=record.text[max(0, begin - CONTEXT) : begin],
        shared=record.text[begin : min(end, begin + SHOWN)],
        after=record.text[end : end + CONTEXT],
    )
