"""What is known of a shard, by key and whatever the index, and the bytes in which it is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import xxhash

from evalspill_guard.index import Ids
from evalspill_guard.kernel import Hashes
from evalspill_guard.model import Stamp
from evalspill_guard.scanner import BadRecord, ShardResult, different_records, sparse

DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError)
"""What `unpacked` raises for bytes that `packed` did not make."""

_SUM = 16
_NO_LIST = np.empty((0, 3), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything that an index looks for: its keys, sorted, and the id of each."""

    keys: Hashes
    ids: Ids

    @classmethod
    def of(cls, keys: Hashes) -> Wanted:
        """`keys` are those of the ids of an index, in their order."""
        ids = np.argsort(keys)
        return cls(keys[ids], ids)

    def lacking(self, sought: Hashes) -> Hashes:
        """Those keys that are not among some sorted ones."""
        return self.keys[_places(self.keys, sought) < 0]


@dataclass(frozen=True, slots=True)
class Known:
    """What was found in a shard, by key; `sought` names the set of all keys that it was searched for.

    The ids of the result are places in `found`.
    """

    sought: str
    found: Hashes
    result: ShardResult

    @classmethod
    def of(cls, result: ShardResult, keys: Hashes, sought: str) -> Known:
        """What a scan found; `keys` are those of the ids of its index."""
        places = np.searchsorted(result.ids, result.where[:, 0])
        ids = np.arange(len(result.ids))
        return cls(sought, keys[result.ids], replace(result, ids=ids, where=_numbered(places, result.where)))

    def and_more(self, new: Known, sought: str) -> Known:
        """Together with a later scan of the same shard; what both found is the same, so that either may stand."""
        fresh = np.flatnonzero(~np.isin(new.found, self.found))
        places = np.full(len(new.found), -1, dtype=np.int64)
        places[fresh] = np.arange(len(fresh)) + len(self.found)
        where = np.concatenate((self.result.where, _numbered(places[new.result.where[:, 0]], new.result.where)))
        found = np.concatenate((self.found, new.found[fresh]))
        counts = np.concatenate((self.result.counts, new.result.counts[fresh]))
        listed = _both(self.result, new.result)
        result = replace(new.result, ids=np.arange(len(found)), counts=counts, where=where, listed=listed)
        return Known(sought, found, result)

    def answer(self, wanted: Wanted) -> ShardResult:
        """What was found of all that is wanted now, with the ids of now."""
        at = _places(self.found, wanted.keys)
        asked = at >= 0
        ids = np.full(len(at), -1, dtype=np.int64)
        ids[asked] = wanted.ids[at[asked]]
        kept = np.flatnonzero(asked)
        kept = kept[np.argsort(ids[kept])]
        where = _numbered(ids[self.result.where[:, 0]], self.result.where)
        return replace(self.result, ids=ids[kept], counts=self.result.counts[kept], where=where)


def _both(one: ShardResult, two: ShardResult) -> Ids | None:
    """The lists of two scans of the same shard as one."""
    if one.listed is None or two.listed is None:
        return None
    return sparse(different_records(np.concatenate((one.listed, two.listed))), two.records)


def _places(keys: Hashes, among: Hashes) -> Ids:
    """Where each key stands in a sorted array; -1 where it does not."""
    at = np.searchsorted(among, keys)
    at[at == len(among)] = -1
    if len(among):
        at[among[at] != keys] = -1
    return at


def _numbered(ids: Ids, where: Ids) -> Ids:
    """Places under other ids, ordered by these; those without an id left out."""
    rows = np.column_stack((ids, where[:, 1:]))[ids >= 0]
    return rows[np.argsort(rows[:, 0], kind="stable")]


def packed(known: Known) -> bytes:
    """A checksum, a line of JSON, and four arrays."""
    result = known.result
    listed = _NO_LIST if result.listed is None else result.listed
    facts = {
        "digest": result.digest,
        "sought": known.sought,
        "numbers": [result.records, result.empty, result.bad, result.lines, result.bytes],
        "bad_records": [[bad.line, bad.what] for bad in result.bad_records],
        "unmet": sorted(result.unmet),
        "found": len(known.found),
        "listed": -1 if result.listed is None else len(listed),
    }
    arrays = (known.found, *(array.astype(np.int64) for array in (result.counts, listed, result.where)))
    body = b"".join([json.dumps(facts).encode(), b"\n", *(array.tobytes() for array in arrays)])
    return xxhash.xxh3_128_digest(body) + body


def _count(value: object) -> int:
    """A number such as are counted with; raises ValueError for all else."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value


def _listed(cells: Ids, size: object) -> tuple[Ids | None, Ids]:
    """The records listed (-1: there is no list), and the places that stand behind them."""
    if size == -1:
        return None, cells.reshape(-1, 4)
    end = 3 * _count(size)
    return cells[:end].reshape(-1, 3), cells[end:].reshape(-1, 4)


def unpacked(data: bytes, stamp: Stamp) -> Known:
    """Raises one of DAMAGED for what was not packed by _packed."""
    head, _, rest = data[_SUM:].partition(b"\n")
    if xxhash.xxh3_128_digest(data[_SUM:]) != data[:_SUM]:
        raise ValueError
    facts, cells = json.loads(head), np.frombuffer(rest, dtype=np.int64)
    size = _count(facts["found"])
    records, empty, bad, lines, read = map(_count, facts["numbers"])
    bad_records = tuple(BadRecord(_count(line), str(what)) for line, what in facts["bad_records"])
    found, counts = cells[:size].view(np.uint64), cells[size : 2 * size]
    listed, where = _listed(cells[2 * size :], facts["listed"])
    if len(counts) != size or ((where[:, 0] < 0) | (where[:, 0] >= size)).any():
        raise ValueError
    unmet = frozenset(map(str, facts["unmet"]))
    digest, ids = str(facts["digest"]), np.arange(size)
    result = ShardResult(
        ids, counts, where, records, empty, bad, lines, read, digest, bad_records, None, stamp, listed, unmet
    )
    return Known(str(facts["sought"]), found, result)
