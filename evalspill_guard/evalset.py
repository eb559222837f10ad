"""Read the rows of an eval set, and say which of their fields are compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice

from evalspill_guard.errors import Unreadable
from evalspill_guard.fields import FieldInfo, propose, table
from evalspill_guard.model import DataFile, EvalRow, InputFile, Problem, Reading
from evalspill_guard.readers import open_records, values
from evalspill_guard.text import script, words

HEAD = 1000


@dataclass(frozen=True, slots=True)
class EvalFile:
    """One eval file as read: what the clean file needs to be made from it."""

    file: DataFile
    reading: Reading
    format: str
    clean_possible: bool
    seen: InputFile


@dataclass(frozen=True, slots=True)
class EvalSet:
    """The rows of a check in file and line order, what was wrong with its files, and the fields that no row has."""

    rows: tuple[EvalRow, ...]
    fingerprints: tuple[str, ...]
    files: tuple[EvalFile, ...]
    problems: tuple[Problem, ...]
    unmet: tuple[str, ...] = ()


def fingerprint(row_words: Sequence[str], key: bytes) -> str:
    """blake2b-128 of a row's words joined by spaces, in hexadecimal digits; without a key it confirms any guess."""
    return blake2b(" ".join(row_words).encode(), digest_size=16, key=key).hexdigest()


def fingerprint_key() -> bytes:
    """The key that EVALSPILL_KEY holds, as blake2b takes it (at most 64 bytes); empty where it is not set."""
    key = os.fsencode(os.environ.get("EVALSPILL_KEY", ""))
    return blake2b(key).digest() if len(key) > 64 else key


def field_table(files: Sequence[DataFile], reading: Reading) -> list[FieldInfo]:
    """The leaf paths in the heads of these files, and which of them would be compared."""
    sample = list(islice((value for file in files for value in values(file, reading, "eval")), HEAD))
    return propose(table(sample, HEAD), len(sample))


def read_eval_set(files: Sequence[DataFile], reading: Reading) -> EvalSet:
    """Every row of every file; what cannot be read is a problem."""
    rows: list[EvalRow] = []
    marks: list[str] = []
    seen: list[EvalFile] = []
    problems: list[Problem] = []
    unmet: list[set[str]] = []
    for number, file in enumerate(files):
        before = len(rows)
        try:
            for row, mark in _rows(number, file, reading, seen, problems, unmet):
                rows.append(row)
                marks.append(mark)
        except Unreadable as error:
            problems.append(Problem(file.path, error.line, error.what))
        except OSError as error:
            problems.append(Problem(file.path, None, f"could not be read: {error.strerror or type(error).__name__}"))
        if len(seen) == number:  # it could not be read to its end; its rows still need a file to stand in
            seen.append(EvalFile(file, reading, "", False, InputFile(file.path, 0, "", len(rows) - before)))
        if len(rows) == before:
            problems.append(Problem(file.path, None, "this eval file has no rows"))
    return EvalSet(tuple(rows), tuple(marks), tuple(seen), tuple(problems), _in_none(unmet))


def _in_none(unmet: Sequence[set[str]]) -> tuple[str, ...]:
    return tuple(sorted(set.intersection(*unmet))) if unmet else ()


def _rows(
    number: int, file: DataFile, reading: Reading, seen: list[EvalFile], problems: list[Problem], unmet: list[set[str]]
) -> Iterator[tuple[EvalRow, str]]:
    key = fingerprint_key()
    with open_records(file, reading, "eval") as stream:
        count = empty = bad = 0
        for count, record in enumerate(stream, start=1):
            if record.bad is not None:
                bad += 1
                problems.append(Problem(file.path, record.line or None, f"this eval row cannot be read: {record.bad}"))
            text = "\n".join(record.leaves)
            row_words = words(text)
            empty += not row_words
            yield (
                EvalRow(number, count, record.line, record.start, record.end, record.group, record.id, text,
                        len(row_words), script(row_words)),
                fingerprint(row_words, key),
            )  # fmt: skip
        unmet.append(stream.select.unmet)
        digest = stream.source.digest()
        seen_file = InputFile(file.path, stream.source.size, digest, count, empty, bad)
        seen.append(EvalFile(file, reading, stream.format, stream.clean_possible, seen_file))


def with_fields(reading: Reading, infos: Sequence[FieldInfo]) -> Reading:
    """The reading that compares the chosen fields."""
    return replace(reading, fields=tuple(info.path for info in infos if info.chosen))
