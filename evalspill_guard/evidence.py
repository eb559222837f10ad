"""The longest passage that a row shares with a training record, cut out of both texts.

Hashes lead to the passage; the words themselves are compared before it is shown, so a collision never is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evalspill_guard.index import Ids, Mask
from evalspill_guard.kernel import Hashes, batch
from evalspill_guard.model import Evidence
from evalspill_guard.text import spans, words

CONTEXT = 200
SHOWN = 20_000
_LARGE = 5_000


@dataclass(frozen=True, slots=True)
class Passage:
    """`length` words from word `in_row` of the row and word `in_record` of the record."""

    length: int
    in_row: int
    in_record: int


class RowText:
    """A row as it is compared: its words and their hashes; live_at says which of its runs of n words count.

    `live` holds how many of them do before each place; None: all do.
    """

    def __init__(self, text: str, n: int, live_at: Mask | None) -> None:
        self.text, self.n = text, n
        self.live = None if live_at is None else np.concatenate(([0], np.cumsum(live_at)))
        self.words = words(text)
        self.windows = batch([[text]]).windows


class RecordText:
    """A training record as it is compared; hashed once for all rows that it may hold."""

    def __init__(self, leaves: Sequence[str]) -> None:
        self.text = "\n".join(leaves)
        hashed = batch([[self.text]])
        self.size, self.windows = len(hashed.hashes), hashed.windows
        self._words: list[str] | None = None

    @property
    def words(self) -> list[str]:
        if self._words is None:
            self._words = words(self.text)
        return self._words


def longest_passage(row: RowText, record: RecordText) -> Passage | None:
    """The longest common passage of at least n words that holds a live run; the first of several.

    Where there is one of a length there is one of every smaller length, down to n: so the length is halved upon.
    """
    shortest, longest = row.n - 1, min(len(row.words), record.size)
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if len(_shared(row, record, middle)):
            shortest = middle
        else:
            longest = middle - 1
    for length in range(shortest, row.n - 1, -1):  # two texts of one hash are rarer than anything: the first will do
        for passage in _passages(row, record, length):
            if _same_words(row, record, passage):
                return passage
    return None


def _shared(row: RowText, record: RecordText, length: int) -> Ids:
    """The places of the row at which a passage of so many words begins that the record holds too."""
    ours = row.windows(length)
    in_both = _among(ours, record.windows(length))
    if row.live is not None:  # a passage counts when one of the runs inside it does
        in_both &= row.live[length - row.n + 1 :] > row.live[: len(ours)]
    return np.flatnonzero(in_both)


def _among(ours: Hashes, theirs: Hashes) -> Mask:
    """Which of our hashes are among theirs; for a record of usual size a set is the quicker way."""
    if len(theirs) > _LARGE:
        return np.isin(ours, theirs)
    known = set(theirs.tolist())
    return np.array([one in known for one in ours.tolist()], dtype=bool)


def _passages(row: RowText, record: RecordText, length: int) -> Iterator[Passage]:
    ours, theirs = row.windows(length), record.windows(length)
    for place in _shared(row, record, length).tolist():
        for at in np.flatnonzero(theirs == ours[place]).tolist():
            yield Passage(length, place, at)


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
