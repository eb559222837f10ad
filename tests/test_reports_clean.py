"""The clean files: the bytes of the input without the rows that leak."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import xxhash
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from reports_sample import check, run, score

from evalspill_guard.model import CheckResult, DataFile, InputFile, RowScore
from evalspill_guard.reports import write_run
from evalspill_guard.reports.clean import InputChanged, clean_files, clean_path

LINES = [b'{"q": "one"}\r\n', b'{"q":  "caf\\u00e9"}\n', b'{"q": "three"}']


@dataclass(frozen=True)
class Input:
    """An eval file as the reader saw it."""

    file: DataFile
    seen: InputFile
    format: str = "jsonl"
    clean_possible: bool = True


def read(path: Path, raw: bytes, shown: str = "evals/a.jsonl") -> Input:
    path.write_bytes(raw)
    return Input(DataFile(shown, str(path)), InputFile(shown, len(raw), xxhash.xxh3_128_hexdigest(raw)))


def rows(lines: list[bytes], flagged: set[int], accepted: set[int] = frozenset()) -> tuple[RowScore, ...]:  # type: ignore[assignment]
    """A row for each line, with its place in the bytes."""
    scores, start = [], 0
    for number, line in enumerate(lines):
        one = score(number + 1, "text", flagged=number in flagged, accepted=number in accepted)
        scores.append(replace(one, row=replace(one.row, start=start, end=start + len(line))))
        start += len(line)
    return tuple(scores)


def clean(one: CheckResult, source: Input) -> bytes:
    [(name, pieces)] = clean_files(run(one), one, [source]).items()
    assert name == "clean/evals/a.clean.jsonl"
    return b"".join(pieces)


def checked(lines: list[bytes], flagged: set[int], accepted: set[int] = frozenset()) -> CheckResult:  # type: ignore[assignment]
    return check(rows=rows(lines, flagged, accepted))


def test_flagged_rows_are_left_out_and_the_others_keep_their_bytes(tmp_path: Path) -> None:
    source = read(tmp_path / "a", b"".join(LINES))
    assert clean(checked(LINES, {0}), source) == LINES[1] + LINES[2]
    assert clean(checked(LINES, {0, 1, 2}), source) == b""


def test_accepted_rows_stay(tmp_path: Path) -> None:
    source = read(tmp_path / "a", b"".join(LINES))
    assert clean(checked(LINES, {0, 1}, {0}), source) == LINES[0] + LINES[2]


@pytest.mark.parametrize(
    ("pack", "unpack"),
    [
        (gzip.compress, gzip.decompress),
        (bz2.compress, bz2.decompress),
        (lzma.compress, lzma.decompress),
        (
            lambda data: zstandard.ZstdCompressor().compress(data),
            lambda data: zstandard.ZstdDecompressor().decompress(data),
        ),
    ],
)
def test_a_compressed_file_stays_compressed(
    tmp_path: Path, pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]
) -> None:
    source = read(tmp_path / "a", pack(b"".join(LINES)))
    assert unpack(clean(checked(LINES, {1}), source)) == LINES[0] + LINES[2]


def test_utf16_stays_utf16(tmp_path: Path) -> None:
    source = read(tmp_path / "a", b"".join(LINES).decode().encode("utf-16"))
    assert clean(checked(LINES, {1}), source).decode("utf-16").encode() == LINES[0] + LINES[2]


def test_nothing_left_out_gives_the_same_bytes(tmp_path: Path) -> None:
    raw = gzip.compress(b"".join(LINES), compresslevel=1, mtime=12345)
    assert clean(checked(LINES, set()), read(tmp_path / "a", raw)) == raw


@pytest.mark.parametrize("flagged", [set(), {1}])
@pytest.mark.parametrize("change", [lambda path: path.write_bytes(b"other"), Path.unlink])
def test_a_file_that_changed_is_never_used(tmp_path: Path, flagged: set[int], change: Callable[[Path], object]) -> None:
    source = read(tmp_path / "a", b"".join(LINES))
    change(tmp_path / "a")
    with pytest.raises(InputChanged, match=r"evals/a\.jsonl: changed during the scan"):
        clean(checked(LINES, flagged), source)


def test_a_file_that_changed_leaves_the_earlier_reports(tmp_path: Path) -> None:
    source, one = read(tmp_path / "a", b"".join(LINES)), checked(LINES, {1})
    reports = tmp_path / "reports"
    write_run(run(one), reports, {one.name: [source]})
    before = {path: path.read_bytes() for path in reports.rglob("*") if path.is_file()}
    (tmp_path / "a").write_bytes(b"other")
    with pytest.raises(InputChanged):
        write_run(run(replace(one, passed=True)), reports, {one.name: [source]})
    assert {path: path.read_bytes() for path in reports.rglob("*") if path.is_file()} == before


def test_an_incomplete_check_has_no_clean_file_and_loses_an_older_one(tmp_path: Path) -> None:
    source, one = read(tmp_path / "a", b"".join(LINES)), checked(LINES, {1})
    reports = tmp_path / "reports"
    write_run(run(one), reports, {one.name: [source]})
    assert (reports / "support-qa/clean/evals/a.clean.jsonl").read_bytes() == LINES[0] + LINES[2]
    write_run(run(replace(one, complete=False)), reports, {one.name: [source]})
    assert not (reports / "support-qa/clean").exists()
    assert (reports / "support-qa/overlap-report.html").exists()


def test_no_clean_file_where_none_is_wanted_or_possible(tmp_path: Path) -> None:
    source, one = read(tmp_path / "a", b"".join(LINES)), checked(LINES, {1})
    assert clean_files(replace(run(one), clean=False), one, [source]) == {}
    assert clean_files(run(one), one, [replace(source, clean_possible=False)]) == {}


TEXTS = st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1)


@given(st.lists(st.tuples(TEXTS, st.booleans())))
def test_the_clean_file_and_the_rows_left_out_are_the_original(texts: list[tuple[str, bool]]) -> None:
    bom = "\ufeff".encode()
    lines = [f"{text}\n".encode() for text, _ in texts]
    one = checked(lines, {number for number, (_, keep) in enumerate(texts) if not keep})
    scores = [replace(s, row=replace(s.row, start=s.row.start + 3, end=s.row.end + 3)) for s in one.rows]
    with tempfile.TemporaryDirectory() as folder:
        source = read(Path(folder) / "a", bom + b"".join(lines))
        rest = clean(replace(one, rows=tuple(scores)), source)
    assert rest.startswith(bom)
    rest = rest.removeprefix(bom)
    for line, (_, keep) in zip(lines, texts, strict=True):
        assert not keep or rest.startswith(line)
        rest = rest[len(line) :] if keep else rest
    assert rest == b""


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("evals/eval.jsonl", "evals/eval.clean.jsonl"),
        ("v1.2.jsonl.gz", "v1.2.clean.jsonl.gz"),
        ("../../other/a.JSON", "_up/_up/other/a.clean.JSON"),
        ("/data/a.csv.zst", "_root/data/a.clean.csv.zst"),
        ("//data/a.csv", "_root/data/a.clean.csv"),
        ("questions", "questions.clean"),
        ("v1.2", "v1.2.clean"),
        ("rows.gz", "rows.clean.gz"),
        (".jsonl", ".clean.jsonl"),
        ("a/./b/..c/x.md", "a/b/..c/x.clean.md"),
    ],
)
def test_the_clean_file_stands_below_its_folder(path: str, written: str) -> None:
    assert clean_path(path) == written
