"""Pool what the training files of one check hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import xxhash

from evalspill_guard.index import Ids
from evalspill_guard.model import DataFile, InputFile, Place, Problem, Reading
from evalspill_guard.scanner import ShardResult, first_places, summed
from evalspill_guard.scoring import Findings
from evalspill_guard.streams import CHANGED, changed

_PENDING = 100_000  # places that wait to be sorted


class Demands(Protocol):
    """What a config asks of the training data."""

    @property
    def max_empty(self) -> Fraction: ...


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A training file and what its shards hold, in order."""

    file: DataFile
    reading: Reading
    shards: tuple[ShardResult, ...]

    @property
    def seen(self) -> InputFile:
        parts = self.shards
        return InputFile(
            self.file.path, sum(p.bytes for p in parts), digest_of([p.digest for p in parts]),
            sum(p.records for p in parts), sum(p.empty for p in parts), sum(p.bad for p in parts),
        )  # fmt: skip


def digest_of(parts: Sequence[str]) -> str:
    """A file's digest: that of its one shard, or the xxh3-128 of its shards' digests, in their order."""
    return parts[0] if len(parts) == 1 else xxhash.xxh3_128_hexdigest(b"".join(map(bytes.fromhex, parts)))


@dataclass(frozen=True, slots=True)
class Pool:
    """The training files of one check, in path order, and what they hold together."""

    files: Sequence[ScannedFile]
    findings: Findings

    @classmethod
    def of(cls, files: Sequence[ScannedFile]) -> Pool:
        return cls(files, _merged(files))

    @property
    def inputs(self) -> list[InputFile]:
        return [file.seen for file in self.files]

    @property
    def records(self) -> int:
        return sum(seen.records for seen in self.inputs)

    @property
    def unmet(self) -> list[str]:
        """Those of several fields that no record of any file has."""
        every = [shard.unmet for file in self.files for shard in file.shards if not shard.fault]
        return sorted(frozenset.intersection(*every)) if every else []

    def problems(self, demands: Demands, on_bad_record: str, max_bad: Fraction) -> Iterator[Problem]:
        """Everything about these files that makes the scan incomplete."""
        for file in self.files:
            yield from (shard.fault for shard in file.shards if shard.fault)
            if _changed_between(file):
                yield Problem(file.file.path, None, CHANGED)
            yield from _bad(file, on_bad_record, max_bad)
            yield from _without_text(file, demands.max_empty)


def _changed_between(file: ScannedFile) -> bool:
    """Whether the shards of a file were read from different states of it."""
    stamps = [shard.stamp for shard in file.shards if shard.stamp]
    return any(changed(stamps[0], stamp) for stamp in stamps[1:])


def _bad(file: ScannedFile, on_bad_record: str, max_bad: Fraction) -> Iterator[Problem]:
    seen = file.seen
    if on_bad_record == "skip":
        if seen.bad > max_bad * seen.records:
            yield Problem(seen.path, None, f"{seen.bad} of {seen.records} records cannot be read, more than max_bad")
        return
    listed, lines = 0, 0
    for shard in file.shards:
        for record in shard.bad_records:
            listed += 1
            yield Problem(seen.path, record.line + lines or None, f"this record cannot be read: {record.what}")
        lines += shard.lines
    if seen.bad > listed:
        yield Problem(seen.path, None, f"{seen.bad - listed} more records cannot be read")


def _without_text(file: ScannedFile, max_empty: Fraction) -> Iterator[Problem]:
    seen = file.seen
    fields = "any leaf" if file.reading.fields is None else ", ".join(file.reading.fields)
    if not seen.records:
        if not any(shard.fault for shard in file.shards):
            yield Problem(seen.path, None, "this training file holds no records")
    elif seen.empty == seen.records:
        yield Problem(seen.path, None, f"none of its {seen.records} records yields text in {fields}")
    elif seen.empty > max_empty * seen.records:
        yield Problem(
            seen.path, None, f"{seen.empty} of {seen.records} records yield no text in {fields}, more than max_empty"
        )


def _merged(files: Sequence[ScannedFile]) -> Findings:
    """Counts add up; of the places the first four in file and line order stay."""
    parts = [(f, s, shard, lines) for f, file in enumerate(files) for s, shard, lines in _with_lines(file)]
    ids, counts = summed(_joined(p[2].ids for p in parts), _joined(p[2].counts for p in parts))
    where = _first_places(_numbered(*part) for part in parts)
    places: dict[int, list[Place]] = {}
    for found, file, line, start, shard, ordinal in where.tolist():
        places.setdefault(found, []).append(Place(file, line, start, shard, ordinal))
    return Findings(ids, counts, places)


def _first_places(parts: Iterable[Ids]) -> Ids:
    """The first four rows of each id, of which never many more are held."""
    where = np.empty((0, 6), dtype=np.int64)
    pending: list[Ids] = []
    for part in parts:
        pending.append(part)
        if sum(map(len, pending)) > len(where) + _PENDING:
            where, pending = first_places(np.concatenate([where, *pending])), []
    return first_places(np.concatenate([where, *pending]))


def _joined(arrays: Iterable[Ids]) -> Ids:
    return np.concatenate([np.empty(0, dtype=np.int64), *arrays])


def _with_lines(file: ScannedFile) -> Iterator[tuple[int, ShardResult, int]]:
    lines = 0
    for number, shard in enumerate(file.shards):
        yield number, shard, lines
        lines += shard.lines


def _numbered(file: int, number: int, shard: ShardResult, lines: int) -> Ids:
    """(id, file, line, start, shard, ordinal) of every place of a shard."""
    size = len(shard.where)
    ids, line, start, ordinal = shard.where.T
    return np.stack((ids, np.full(size, file), line + lines, start, np.full(size, number), ordinal), axis=1)
