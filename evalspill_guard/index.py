"""The index of the eval rows: every run and every whole row that the training data are searched for.

Ids number all that can be found: first the runs, then whole rows longer than one run, then tiny rows (of which
only a leaf or record that equals them counts).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evalspill_guard.kernel import Batch, Hashes, Places, mix

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Search = Literal["runs", "whole", "tiny", "none"]

_Number = TypeVar("_Number", np.int64, np.uint64)
_NONE = np.empty(0, dtype=np.int64)


class Query(NamedTuple):
    """One eval row to look for: its text, how, the length of its runs (search "runs"), and its length in words."""

    text: str
    search: Search
    n: int
    words: int


@dataclass(frozen=True, slots=True)
class Table:
    """All searched runs of one length: sorted hashes, a bit table that rejects nearly all others, and their ids.

    ids is -1 for a run that only leads to whole rows. Entry i leads to anchors[anchor_bounds[i]:anchor_bounds[i+1]].
    """

    length: int
    hashes: Hashes
    ids: Ids
    bits: npt.NDArray[np.uint8]
    shift: int
    anchor_bounds: Ids
    anchors: Ids

    def find(self, windows: Hashes) -> tuple[Ids, Ids]:
        """(places, entries) of the windows that are in the table."""
        keys = windows >> np.uint64(self.shift)
        maybe = self.bits.take((keys >> np.uint64(3)).view(np.int64))
        maybe >>= (keys & np.uint64(7)).astype(np.uint8)
        maybe &= 1
        places = np.flatnonzero(maybe)
        entries = np.searchsorted(self.hashes, windows[places])
        entries[entries == len(self.hashes)] = 0
        same = self.hashes[entries] == windows[places]
        return places[same], entries[same]

    def runs_in(self, texts: Batch) -> tuple[Ids, Ids, Ids]:
        """(places, entries, texts) of the runs in a batch, those that cross from one text into another left out."""
        places, entries = self.find(texts.windows(self.length))
        where = np.searchsorted(texts.texts, places, side="right") - 1
        inside = places + self.length <= texts.texts[where + 1]
        return places[inside], entries[inside], where[inside]


@dataclass(frozen=True, slots=True)
class RunIndex:
    """What a scan looks for.

    tables        one a length of runs
    whole_*       for each whole row: its length and hash, and for each anchor the row and the run's place in it
    tiny_*        length and hash of each tiny row, sorted by hash
    row_bounds    the runs of query q are runs_at[row_bounds[q]:row_bounds[q + 1]], one a place, in order
    row_hash      hash of each query's whole word sequence
    row_whole     id that says whether the query stands whole in a record; -1 where it is not searched for
    """

    tables: tuple[Table, ...]
    whole_length: Places
    whole_hash: Hashes
    anchor_whole: Ids
    anchor_offset: Ids
    first_whole: int
    tiny_length: Places
    tiny_hash: Hashes
    first_tiny: int
    row_bounds: Ids
    runs_at: Ids
    row_hash: Hashes
    row_whole: Ids

    def ids_of(self, row: int) -> Ids:
        """The run id at each place of a query; empty where it has no runs."""
        return self.runs_at[self.row_bounds[row] : self.row_bounds[row + 1]]

    @property
    def keys(self) -> Hashes:
        """For each id a number that is the same in every index that looks for the same thing."""
        runs = [_keys(table.hashes[table.ids >= 0], table.length, 0) for table in self.tables]
        wholes = _keys(self.whole_hash, self.whole_length, 1)
        return np.concatenate([*runs, wholes, _keys(self.tiny_hash, self.tiny_length, 2)])

    def found_in(self, texts: Batch) -> tuple[Ids, Ids]:
        """(ids, texts) of everything that a batch of texts holds, each pair once, ordered by text."""
        pairs = [self._by_table(table, texts) for table in self.tables] + [self._tiny(texts)]
        ids = np.concatenate([pair[0] for pair in pairs])
        where = texts.order[np.concatenate([pair[1] for pair in pairs])]
        if not len(ids):
            return ids, where
        size = int(ids.max()) + 1
        where, ids = np.divmod(distinct(where * size + ids), size)
        return ids, where

    def _by_table(self, table: Table, texts: Batch) -> tuple[Ids, Ids]:
        places, entries, where = table.runs_in(texts)
        if not len(places):
            return _NONE, _NONE
        ids = table.ids[entries]
        wholes, whole_where = self._wholes(table, texts, places, entries, where)
        return np.concatenate((ids[ids >= 0], wholes)), np.concatenate((where[ids >= 0], whole_where))

    def _wholes(self, table: Table, texts: Batch, places: Ids, entries: Ids, where: Ids) -> tuple[Ids, Ids]:
        """Rows that stand whole around a run that was found."""
        counts = table.anchor_bounds[entries + 1] - table.anchor_bounds[entries]
        anchors = table.anchors[ranges(table.anchor_bounds[entries], counts)]
        wholes, places, where = self.anchor_whole[anchors], np.repeat(places, counts), np.repeat(where, counts)
        starts = places - self.anchor_offset[anchors]
        lengths = self.whole_length[wholes]
        fits = (starts >= texts.texts[where]) & (starts + lengths <= texts.texts[where + 1])
        wholes, starts, lengths, where = wholes[fits], starts[fits], lengths[fits], where[fits]
        same = texts.at(starts, lengths) == self.whole_hash[wholes]
        return wholes[same] + self.first_whole, where[same]

    def _tiny(self, texts: Batch) -> tuple[Ids, Ids]:
        """Tiny rows that equal a leaf or a whole text."""
        if not len(self.tiny_hash):
            return _NONE, _NONE
        starts = np.concatenate((texts.leaves[:-1], texts.texts[:-1]))
        lengths = np.concatenate((np.diff(texts.leaves), np.diff(texts.texts)))
        near = np.isin(lengths, np.unique(self.tiny_length))
        starts, lengths = starts[near], lengths[near]
        hashes = texts.at(starts, lengths)
        entries = np.searchsorted(self.tiny_hash, hashes)
        entries[entries == len(self.tiny_hash)] = 0
        same = (self.tiny_hash[entries] == hashes) & (self.tiny_length[entries] == lengths)
        where = np.searchsorted(texts.texts, starts[same], side="right") - 1
        return entries[same] + self.first_tiny, where


def _keys(hashes: Hashes, lengths: Places | int, kind: int) -> Hashes:
    """Mixed with the length in words, and with what is looked for: a run, a whole row, a tiny row."""
    keys = hashes ^ (np.asarray(lengths, dtype=np.uint64) * np.uint64(4) + np.uint64(kind))
    mix(keys)
    return keys


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """The sorted distinct values. np.unique takes several times as long, since newer versions of numpy hash."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def ranges(starts: Ids, counts: Ids) -> Ids:
    """arange(start, start + count) of every pair, one after the other."""
    ends = np.cumsum(counts)
    members: Ids = np.arange(int(counts.sum())) + np.repeat(starts - (ends - counts), counts)
    return members
