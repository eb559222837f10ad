"""What holds for the readers of all formats: spans, kept bytes, the format of a file, reading again."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers import Role, kept_bytes, open_records, records_at, values

BOM = b"\xef\xbb\xbf"
PACK: Sequence[Callable[[bytes], bytes]] = (
    bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress
)  # fmt: skip


def read(name: str, data: bytes, role: Role = "train", **reading: Any) -> tuple[str, list[Record]]:
    """The format and the records of a file with these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(data)
        with open_records(DataFile(name, str(path)), Reading(**reading), role) as stream:
            records = list(stream)
            return stream.format, records


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)
WORDS = st.lists(st.sampled_from(["one", "größe", "\u2028", "\x85", "🙂", '"', "\t", " "]), min_size=1, max_size=4).map(
    lambda parts: "x" + "".join(parts)
)
ENDING = st.sampled_from(["\n", "\r\n", "\n\n", "\n \r\n\n"])


@st.composite
def jsonl(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.tuples(WORDS, st.booleans(), ENDING), min_size=1, max_size=6))
    return "".join(json.dumps({"q": text}, ensure_ascii=ascii_only) + end for text, ascii_only, end in rows)


@st.composite
def json_array(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.dictionaries(st.sampled_from("qab"), WORDS, min_size=1), min_size=1, max_size=6))
    array = json.dumps(rows, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 0, 2])))
    return draw(st.sampled_from(["{}", " \n{}\n", '{{"version": 1, "data": {}, "tags": ["a"]}}'])).format(array)


@st.composite
def json_nested(draw: st.DrawFn) -> str:
    groups = draw(st.lists(st.lists(WORDS, max_size=3), min_size=1, max_size=4))
    data = [{"title": "t", "qas": [{"q": text} for text in texts], "more": len(texts)} for texts in groups]
    return json.dumps({"data": data}, ensure_ascii=False, indent=draw(st.sampled_from([None, 1])))


@st.composite
def csv_file(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.lists(CELL, min_size=1, max_size=3), min_size=1, max_size=5))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=draw(st.sampled_from(["\n", "\r\n"])))
    writer.writerows([["q", "other"], *rows])
    return text.getvalue()


@st.composite
def tsv_file(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=3), ENDING), min_size=1, max_size=5))
    return "q\tother\n" + "".join("\t".join(cells).replace("\n", "") + end for cells, end in rows)


@st.composite
def plain_text(draw: st.DrawFn) -> str:
    return "".join(text + end for text, end in draw(st.lists(st.tuples(WORDS, ENDING), min_size=1, max_size=8)))


FILES: dict[str, tuple[str, st.SearchStrategy[str], dict[str, object]]] = {
    "jsonl": ("a.jsonl", jsonl(), {}),
    "array": ("a.json", json_array(), {}),
    "nested": ("a.json", json_nested(), {"records": "data[].qas[]"}),
    "csv": ("a.csv", csv_file(), {}),
    "tsv": ("a.tsv", tsv_file(), {}),
    "paragraphs": ("a.txt", plain_text(), {"split": "paragraph"}),
    "lines": ("a.md", plain_text(), {"split": "line"}),
}
EVERY_FORMAT = pytest.mark.parametrize("kind", FILES)


@EVERY_FORMAT
@settings(max_examples=25, deadline=None)
@given(draw=st.data())
def test_spans_are_in_order_and_what_is_kept_and_what_is_left_out_are_the_file(kind: str, draw: st.DataObject) -> None:
    name, texts, reading = FILES[kind]
    bom = draw.draw(st.booleans()) * BOM
    data = bom + draw.draw(texts).encode()
    form, records = read(name, draw.draw(st.sampled_from(PACK))(data), "eval", **reading)
    bounds = [place for record in records for place in (record.start, record.end)]
    assert bounds == sorted(bounds)
    assert all(0 <= record.start < record.end <= len(data) for record in records)
    assert [record.line for record in records] == [1 + data.count(b"\n", 0, r.start) for r in records]
    assert [record.bad for record in records] == [None] * len(records)
    keep = [draw.draw(st.booleans()) for _ in records]
    kept = b"".join(kept_bytes(form, data, records, keep))
    assert kept.startswith(bom)
    if form == "json":
        _, left = read(name, kept, "eval", **reading) if kept.strip() else ("", [])
        assert [r.leaves for r in left] == [r.leaves for r, stays in zip(records, keep, strict=True) if stays]
    else:
        left_out = {
            at
            for record, stays in zip(records, keep, strict=True)
            for at in range(max(record.start, len(bom)), record.end)
            if not stays
        }
        assert kept == bytes(byte for at, byte in enumerate(data) if at not in left_out)


@EVERY_FORMAT
@settings(max_examples=15, deadline=None)
@given(draw=st.data())
def test_records_are_found_again_by_ordinal_and_start(kind: str, draw: st.DataObject) -> None:
    name, texts, reading = FILES[kind]
    data = draw.draw(st.sampled_from([b"", BOM])) + draw.draw(texts).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(draw.draw(st.sampled_from(PACK))(data))
        file, how = DataFile(name, str(path)), Reading(**reading)  # type: ignore[arg-type]
        with open_records(file, how, "train") as stream:
            records = list(stream)
        wanted = sorted(draw.draw(st.sets(st.integers(0, max(0, len(records) - 1)), max_size=len(records))))
        again = list(records_at(file, how, "train", [(number, records[number].start) for number in wanted]))
    assert [(r.start, r.end, r.leaves) for r in again] == [
        (records[n].start, records[n].end, records[n].leaves) for n in wanted
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.tsv", "a.txt"])
@pytest.mark.parametrize("change", [lambda data: data[: len(data) // 2], lambda data: b"\n\n{}," + data])
def test_a_file_that_changed_between_two_readings_is_unreadable(
    name: str, change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    rows = b'{"a": "b"}\n\n' * 20 if "jsonl" in name else b"a\n\n" + b"b\n\n" * 20
    pack = gzip.compress if name.endswith("gz") else bytes
    file = DataFile(name, str(tmp_path / "data"))
    (tmp_path / "data").write_bytes(pack(rows))
    with open_records(file, Reading(), "train") as stream:
        wanted = [(number, record.start) for number, record in enumerate(stream)]
    assert len(list(records_at(file, Reading(), "train", wanted))) == len(wanted) >= 20
    (tmp_path / "data").write_bytes(pack(change(rows)))
    with pytest.raises(Unreadable):
        list(records_at(file, Reading(), "train", wanted))


# --- which elements of a JSON array are kept


@pytest.mark.parametrize(
    ("text", "keep", "expected"),
    [
        ("[1, 2, 3]", "101", "[1, 3]"),
        ("[1, 2, 3]", "011", "[2, 3]"),
        ("[1, 2, 3]", "000", "[]"),
        ("[\n  1,\n  2,\n  3\n]\n", "110", "[\n  1,\n  2\n]\n"),
        ("[\n  1,\n  2,\n  3\n]\n", "000", "[\n  \n]\n"),
        ("[1 ,2,  3]", "101", "[1 ,3]"),
        ("[1]", "0", "[]"),
        ("[1]", "1", "[1]"),
        ("[]", "", "[]"),
        (' {"a": 1, "b": [{"c": 1},{"c": 2}], "d": 2}', "01", ' {"a": 1, "b": [{"c": 2}], "d": 2}'),
        ("\ufeff[1, 2]", "01", "\ufeff[2]"),
        ("\ufeff[1, 2]", "00", "\ufeff[]"),
    ],
)
def test_json_arrays_are_joined_by_their_first_separator(text: str, keep: str, expected: str) -> None:
    form, records = read("a.json", text.encode(), "eval")
    kept = kept_bytes(form, text.encode(), records, [stays == "1" for stays in keep])
    assert b"".join(kept).decode() == expected


def test_each_nested_array_is_joined_by_itself() -> None:
    data = b'{"data": [{"qas": [1,2]}, {"qas": [3, 4, 5]}, {"qas": []}, {"qas": [6]}]}'
    form, records = read("a.json", data, records="data[].qas[]")
    assert [(r.leaves, r.group) for r in records] == [
        (["1"], 0), (["2"], 0), (["3"], 1), (["4"], 1), (["5"], 1), (["6"], 3)
    ]  # fmt: skip
    kept = b"".join(kept_bytes(form, data, records, [False, True, True, False, True, False]))
    assert kept == b'{"data": [{"qas": [2]}, {"qas": [3, 5]}, {"qas": []}, {"qas": []}]}'


# --- the format of a file

ROWS = [b'{"q": "one"}', b'{"q": "two"}']


@pytest.mark.parametrize(
    ("name", "data", "form"),
    [
        ("a.jsonl", b"\n".join(ROWS), "jsonl"),
        ("a.NDJSON.GZ", b"\n".join(ROWS), "jsonl"),
        ("a.json", b"\n".join(ROWS) + b"\n", "jsonl"),
        ("a.json", b"\n \n" + b"\n\n".join(ROWS) + b"\n", "jsonl"),
        ("a.json.zst", BOM + b"\r\n".join(ROWS), "jsonl"),
        ("a.json", b"[" + b",".join(ROWS) + b"]", "json"),
        ("a.jsonl", b"[" + b",".join(ROWS) + b"]", "json"),
        ("a.jsonl", b"[ " + b",".join(ROWS) + b" ]\n", "json"),
        ("a.jsonl", b"[\n" + b",\n".join(ROWS) + b"\n]\n", "json"),
        ("a.jsonl", b'{\n"q": "one"}\n{"q":\n"two"}', "json"),
        ("a.json", b"[1]\n[2]\n", "jsonl"),
        ("a.json", b"{}", "stream"),
        ("a.csv.gz", b"q\none\ntwo\n", "csv"),
        ("a.tsv", b"q\none\ntwo\n", "tsv"),
        ("a.text", b"one\n\ntwo\n", "txt"),
        ("a.b.md", b"one\n\ntwo\n", "txt"),
    ],
)
@pytest.mark.parametrize("pack", PACK)
def test_the_first_bytes_say_more_than_the_name(
    name: str, data: bytes, form: str, pack: Callable[[bytes], bytes]
) -> None:
    found, records = read(name, pack(data))
    assert found == form
    assert data == b"{}" or len(records) == 2


@pytest.mark.parametrize("name", ["a", "a.gz", "a.xlsx", "a.jsonl.zip", ".jsonl", "a.jsonl.gz.gz"])
def test_an_unknown_suffix_is_unreadable(name: str) -> None:
    with pytest.raises(Unreadable, match="no format is known"):
        read(name, b"x")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.txt"])
@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n", BOM, BOM + b"\n"])
@pytest.mark.parametrize("role", ["train", "eval"])
def test_a_file_without_records_has_none(name: str, data: bytes, role: Role) -> None:
    assert read(name, data, role)[1] == []
    assert read(name, gzip.compress(data), role)[1] == []


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.txt"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_gives_the_same_records_as_utf_8(name: str, encoding: str) -> None:
    rows = '{"q": "größe"}\r\n{"q": "\u2028"}\n' if "json" in name else "q\r\n\r\ngröße\n\n\u2028\n"
    assert read(name, ("\ufeff" + rows).encode(encoding)) == read(name, rows.encode())


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.txt"])
@pytest.mark.parametrize("pack", PACK[1:])
def test_records_before_the_place_where_a_file_is_cut_off_are_given(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    row = {"a.jsonl": b'{"q": "one"}\n', "a.json": b'{"q": "one"},\n', "a.txt": b"one\n\n"}.get(name, b"one\n")
    data = (b"[" if name == "a.json" else b"q\n\n") * (name != "a.jsonl") + row * 50
    (tmp_path / "data").write_bytes(pack(data) + pack(row * 50)[:-9])
    seen: list[Record] = []
    file = DataFile(name, str(tmp_path / "data"))
    with open_records(file, Reading(), "train") as stream, pytest.raises(Unreadable, match="cut off") as told:
        seen.extend(stream)
    assert len(seen) >= 50
    assert {record.bad for record in seen} == {None}
    assert told.value.line is not None
    assert told.value.line > 50


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.jsonl", BOM + b'{"q": 1}\n\nnonsense\n{"q": 2}', [{"q": 1}, {"q": 2}]),
        ("a.json", b'[{"q": 1}, {"q": 2}, nonsense', [{"q": 1}, {"q": 2}]),
        ("a.csv", BOM + b'q,r\n1,"2\n3"\n\n4\n', [{"q": "1", "r": "2\n3"}, {"q": "4"}]),
        ("a.tsv", BOM + b'q\tr\n1\t"2\n\n\xff\n4\n', [{"q": "1", "r": '"2'}, {"q": "4"}]),
        ("a.txt", b"one\ntwo\n\n\xff\n\nthree", ["one\ntwo\n", "\ufffd\n", "three"]),
    ],
)
def test_values_are_the_parsed_records_without_the_bad_ones(
    name: str, data: bytes, expected: list[object], tmp_path: Path
) -> None:
    (tmp_path / "data").write_bytes(data)
    assert list(values(DataFile(name, str(tmp_path / "data")), Reading(), "train")) == expected
