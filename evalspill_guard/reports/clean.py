"""The eval files without the rows that leak: the bytes of the rows kept, as they stand in the input."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Protocol

import xxhash

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import CheckResult, DataFile, InputFile, RowScore, RunResult
from evalspill_guard.readers import kept_bytes
from evalspill_guard.readers.parquetclean import kept_rows
from evalspill_guard.remote import is_remote
from evalspill_guard.streams import compress, encode_like, open_raw, open_source

FORMATS = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt", ".md", ".text", ".parquet"})
COMPRESSIONS = frozenset({".gz", ".bz2", ".xz", ".zst"})
FOLDER = "clean"


class CleanInput(Protocol):
    """An eval file as it was read, in the order of `CheckResult.eval`."""

    @property
    def file(self) -> DataFile: ...
    @property
    def format(self) -> str: ...
    @property
    def clean_possible(self) -> bool: ...
    @property
    def seen(self) -> InputFile: ...


class InputChanged(Unreadable):
    """An eval file is not what it was when it was scanned; `path` is the file as shown."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: changed during the scan; run again when nothing writes to it")


def clean_files(result: RunResult, check: CheckResult, inputs: Sequence[CleanInput]) -> dict[str, Iterator[bytes]]:
    """The clean files of a check by their path in its folder; none where the check is not complete."""
    if not (result.clean and check.complete):
        return {}
    rows = _rows_by_file(check)
    return {
        f"{FOLDER}/{clean_path(one.file.path)}": _clean(one, rows.get(number, []))
        for number, one in enumerate(inputs)
        if one.clean_possible
    }


def kept(score: RowScore) -> bool:
    """Whether a row stays in the clean file: what is not flagged, or accepted in the baseline."""
    return not score.flagged or score.accepted


def clean_path(path: str) -> str:
    """Where the clean file of an input stands below `clean/`; always inside it."""
    named = {"..": "_up", "/": "_root", "//": "_root"}
    if is_remote(path):
        path = "_" + path.replace("://", "/", 1).replace(":", "_")
    *folders, name = PurePosixPath(path).parts
    return "/".join([*(named.get(folder, folder) for folder in folders), clean_name(name)])


def clean_name(name: str) -> str:
    """The file name with `.clean` before the suffixes of its format: `v1.2.jsonl.gz` is `v1.2.clean.jsonl.gz`."""
    stem, compression = _split(name, COMPRESSIONS)
    stem, form = _split(stem, FORMATS)
    return f"{stem}.clean{form}{compression}"


def _split(name: str, suffixes: frozenset[str]) -> tuple[str, str]:
    stem, dot, last = name.rpartition(".")
    return (stem, dot + last) if f".{last.lower()}" in suffixes and dot else (name, "")


def _rows_by_file(check: CheckResult) -> Mapping[int, list[RowScore]]:
    rows: dict[int, list[RowScore]] = {}
    for score in check.rows:
        rows.setdefault(score.row.file, []).append(score)
    return rows


def _clean(one: CleanInput, scores: Sequence[RowScore]) -> Iterator[bytes]:
    """The bytes of one clean file; where nothing is left out, the very bytes of the input."""
    try:
        if all(map(kept, scores)):
            yield _scanned_bytes(one)
        else:
            yield from _without_flagged(one, scores)
    except (Unreadable, OSError) as error:
        raise InputChanged(one.file.path) from error


def _scanned_bytes(one: CleanInput) -> bytes:
    with io.BufferedReader(open_raw(one.file)) as raw:
        data = raw.read()
    if xxhash.xxh3_128_hexdigest(data) != one.seen.digest:
        raise InputChanged(one.file.path)
    return data


def _without_flagged(one: CleanInput, scores: Sequence[RowScore]) -> Iterator[bytes]:
    if one.format == "parquet":
        yield from kept_rows(one.file, one.seen.digest, list(map(kept, scores)))
        return
    with open_source(one.file) as source:
        data = source.stream.read()
        if source.digest() != one.seen.digest:
            raise InputChanged(one.file.path)
    rows, keep = [score.row for score in scores], [kept(score) for score in scores]
    pieces = kept_bytes(one.format, data, rows, keep)
    yield from compress(encode_like(pieces, source.encoding), source.compression)
