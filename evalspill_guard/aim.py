"""How much of each row a text holds: rows of an index, and the runs of them that count.

A passage is told by the runs of words that follow each other in both texts, so that no text is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from evalspill_guard.index import Ids, Mask, RunIndex, ranges
from evalspill_guard.kernel import Batch
from evalspill_guard.scoring import FlagRule

_MOST_MATCHES = 1 << 21  # that are looked at together
_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Judged:
    """The queries first to before last of the index, and how much of one a record has to hold."""

    first: int
    last: int
    rule: FlagRule


def aimed(index: RunIndex, live: Mapping[int, Mask]) -> RunIndex:
    """The index as `Aim` takes it: only these queries have runs, and those that are not live have other numbers."""
    runs, wholes = np.full(len(index.runs_at), -1, dtype=np.int64), np.full(len(index.row_whole), -1, dtype=np.int64)
    for row, mask in live.items():
        mine = slice(index.row_bounds[row], index.row_bounds[row + 1])
        runs[mine] = np.where(mask, index.runs_at[mine], -2 - index.runs_at[mine])
        wholes[row] = index.row_whole[row]
    return replace(index, runs_at=runs, row_whole=wholes)


class Aim:
    """The rows of an aimed index that are judged, and ids that are wanted, whoever owns them.

    `matters` says for each id whether a record with it is looked at.
    """

    def __init__(self, index: RunIndex, judged: Sequence[Judged], ids: Sequence[int] = ()) -> None:
        self.index, self.judged = index, judged
        self.ids = np.array(ids, dtype=np.int64)
        bounds = index.row_bounds
        chosen = np.zeros(len(bounds) - 1, dtype=bool)
        for part in judged:
            chosen[part.first : part.last] = True
        owners = np.repeat(np.arange(len(chosen)), np.diff(bounds))
        mine = np.flatnonzero((index.runs_at != -1) & chosen[owners])
        coded = index.runs_at[mine]
        order = np.argsort(np.where(coded < 0, -2 - coded, coded), kind="stable")
        self.live = coded[order] >= 0
        self.run_ids = np.where(self.live, coded[order], -2 - coded[order])
        self.run_rows = owners[mine][order]
        self.run_places = mine[order] - bounds[self.run_rows]
        self.n = self._n(len(chosen))
        self._find_wholes(chosen)
        self._find_words(np.diff(bounds))
        self.matters = np.zeros(index.first_tiny + len(index.tiny_hash), dtype=bool)
        for some in (self.run_ids[self.live], self.whole_ids, self.ids):
            self.matters[some] = True

    def _n(self, rows: int) -> Ids:
        """The length of each row's runs; 0 for a row without."""
        sizes = [int((table.ids >= 0).sum()) for table in self.index.tables]
        lengths = np.array([table.length for table in self.index.tables], dtype=np.int64)
        n = np.zeros(rows, dtype=np.int64)
        if len(self.run_ids):
            n[self.run_rows] = lengths[np.searchsorted(np.cumsum(sizes), self.run_ids, side="right")]
        return n

    def _find_wholes(self, chosen: Mask) -> None:
        rows = np.flatnonzero(chosen & (self.index.row_whole >= 0))
        order = np.argsort(self.index.row_whole[rows], kind="stable")
        self.whole_rows, self.whole_ids = rows[order], self.index.row_whole[rows[order]]

    def _find_words(self, runs: Ids) -> None:
        """The words of each row, and its distinct live runs."""
        self.words = np.where(self.n > 0, runs + self.n - 1, 0)
        short = self.words[self.whole_rows] == 0
        rows, ids = self.whole_rows[short], self.whole_ids[short]
        lengths = np.concatenate((self.index.whole_length, self.index.tiny_length))
        self.words[rows] = lengths[ids - self.index.first_whole]
        pairs = np.unique(np.column_stack((self.run_rows[self.live], self.run_ids[self.live])), axis=0)
        self.live_runs = np.bincount(pairs[:, 0], minlength=len(self.n))

    def rows_in(self, texts: Batch, ids: Ids, where: Ids) -> Ids:
        """(text, row, words covered, longest, live runs, whole) of each row of which a text holds a live run, or
        that stands whole in it; `ids` are found in the texts `where`."""
        parts = [_figures(matches, self.n) for matches in self._matches(texts)]
        whole = _spread(np.searchsorted(self.whole_ids, ids), np.searchsorted(self.whole_ids, ids, side="right"))
        rows = self.whole_rows[whole[1]]
        words, runs = self.words[rows], self.live_runs[rows]
        parts.append(np.column_stack((where[whole[0]], rows, words, words, runs, np.ones(len(rows), dtype=np.int64))))
        return _merged(np.concatenate(parts))

    def _matches(self, texts: Batch) -> Iterator[Ids]:
        """(text, row, place in the row, place in the texts, id, live) wherever a text holds a run of a row."""
        for table in self.index.tables:
            places, entries, where = table.runs_in(texts)
            ids = table.ids[entries]
            places, where, ids = places[ids >= 0], where[ids >= 0], ids[ids >= 0]
            starts, ends = np.searchsorted(self.run_ids, ids), np.searchsorted(self.run_ids, ids, side="right")
            for some in _portions(where, ends - starts):
                match, run = _spread(starts[some], ends[some])
                yield np.column_stack(
                    (texts.order[where[some][match]], self.run_rows[run], self.run_places[run], places[some][match],
                     self.run_ids[run], self.live[run])
                )  # fmt: skip

    def enough(self, rows: Ids) -> Mask:
        """Whether a text holds enough of a row, by the rule for that row."""
        answer = rows[:, 5] > 0
        for part in self.judged:
            mine = (rows[:, 1] >= part.first) & (rows[:, 1] < part.last)
            answer |= mine & self._reaches(part.rule, rows)
        return answer

    def _reaches(self, rule: FlagRule, rows: Ids) -> Mask:
        row, covered, longest, runs = rows[:, 1], rows[:, 2], rows[:, 3], rows[:, 4]
        reached = np.full(len(rows), rule.any)
        for share, part, of in ((rule.coverage, covered, self.words), (rule.containment, runs, self.live_runs)):
            if share is not None:
                least = np.array([-(-share.numerator * whole // share.denominator) for whole in of[row].tolist()])
                reached |= part >= least if len(rows) else False
        return reached if rule.longest is None else reached | (longest >= rule.longest)


def _spread(starts: Ids, ends: Ids) -> tuple[Ids, Ids]:
    """(number of the range, member) of every member of these ranges."""
    counts = ends - starts
    return np.repeat(np.arange(len(starts)), counts), ranges(starts, counts)


def _portions(where: Ids, counts: Ids) -> Iterator[slice]:
    """Stretches of about as many matches as fit into memory; those of one text stay together."""
    firsts = np.flatnonzero(np.diff(where, prepend=-1))
    sizes = np.add.reduceat(counts, firsts) if len(firsts) else _NOTHING
    portion = np.cumsum(sizes) // _MOST_MATCHES
    cuts = [*firsts[np.flatnonzero(np.diff(portion, prepend=-1))].tolist(), len(where)]
    yield from (slice(first, last) for first, last in pairwise(cuts) if first < last)


def _figures(matches: Ids, n: Ids) -> Ids:
    """(text, row, words covered, longest, live runs, 0) of each text and row with a live run among the matches."""
    text, row, place, at, run, live = matches.T
    width = len(n)
    key = text * width + row
    lives = np.unique(np.column_stack((key, place, run))[live > 0], axis=0)
    keys, first = np.unique(lives[:, 0], return_index=True)
    step = np.append(np.diff(lives[:, 1]), 0)
    size = n[lives[:, 0] % width]
    last = np.append(np.diff(lives[:, 0]) != 0, True)[: len(lives)]
    covered = np.where(last, size, np.minimum(step[: len(lives)], size))
    sums = np.add.reduceat(covered, first) if len(first) else _NOTHING
    runs = np.bincount(np.searchsorted(keys, np.unique(lives[:, [0, 2]], axis=0)[:, 0]), minlength=len(keys))
    longest = _longest(key, place, at, live, n, keys)
    return np.column_stack((keys // width, keys % width, sums, longest, runs, np.zeros(len(keys), dtype=np.int64)))


def _longest(key: Ids, place: Ids, at: Ids, live: Ids, n: Ids, keys: Ids) -> Ids:
    """For each key the longest passage with a live run in it: runs that follow each other in both texts."""
    order = np.lexsort((place, at - place, key))
    key, place, shift, live = key[order], place[order], (at - place)[order], live[order]
    begins = np.ones(len(key), dtype=bool)
    begins[1:] = (np.diff(key) != 0) | (np.diff(shift) != 0) | (np.diff(place) != 1)
    firsts = np.flatnonzero(begins)
    if not len(firsts):
        return _NOTHING
    length = np.diff(np.append(firsts, len(key))) + n[key[firsts] % len(n)] - 1
    counts = np.maximum.reduceat(live, firsts) > 0
    longest = np.zeros(len(keys), dtype=np.int64)
    np.maximum.at(longest, np.searchsorted(keys, key[firsts][counts]), length[counts])
    return longest


def _merged(rows: Ids) -> Ids:
    """Each text and row once, with the larger of its figures."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    firsts = np.flatnonzero(np.append(True, (np.diff(rows[:, 0]) != 0) | (np.diff(rows[:, 1]) != 0)))
    merged: Ids = np.maximum.reduceat(rows, firsts, axis=0)
    return merged
