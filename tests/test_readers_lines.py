"""JSON Lines, TSV and plain text: what a record is, line by line."""

from __future__ import annotations

import gzip
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers import Role, lines, open_records

BOM = b"\xef\xbb\xbf"


def read(name: str, data: bytes, role: Role = "train", **reading: Any) -> list[Record]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(data)
        found: list[Record] = []
        _take(found, DataFile(name, str(path)), Reading(**reading), role)
        return found


def read_into(found: list[Record], name: str, data: bytes, **reading: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(data)
        _take(found, DataFile(name, str(path)), Reading(**reading), "train")


def _take(found: list[Record], file: DataFile, reading: Reading, role: Role) -> None:
    with open_records(file, reading, role) as stream:
        found.extend(stream)


def leaves(name: str, data: bytes, role: Role = "train", **reading: Any) -> list[list[str]]:
    return [record.leaves for record in read(name, data, role, **reading)]


def faults(records: list[Record]) -> list[tuple[int, str | None]]:
    return [(record.line, record.bad) for record in records]


# --- JSON Lines


def test_lines_end_at_line_feeds_only() -> None:
    data = '{"q": "a\u2028b"}\r\n{"q": "c\x85d"}\n{"q":\r"e"}\r\n'.encode()
    records = read("a.jsonl", data)
    assert [record.leaves for record in records] == [["a\u2028b"], ["c\x85d"], ["e"]]
    assert [data[r.start : r.end].decode()[-2:] for r in records] == ["\r\n", "}\n", "\r\n"]


def test_lone_carriage_returns_between_records_make_one_bad_record() -> None:
    records = read("a.jsonl", b'{"q": "a"}\r{"q": "b"}\r')
    assert [(r.line, r.bad is None) for r in records] == [(1, False)]


def test_blank_lines_are_neither_records_nor_errors() -> None:
    assert [(r.line, r.leaves) for r in read("a.jsonl", b'\n \t\r\n{"q": "a"}\n\n\n{"q": "b"}\n \n')] == [
        (3, ["a"]),
        (6, ["b"]),
    ]


@pytest.mark.parametrize("bad", [b'{"q": "a\0b"}', b"nonsense", b'{"q": "x', b'{"q": 1} {"q": 2}', b"{'q': 1}", b"\0"])
def test_a_bad_line_is_told_and_the_next_one_read(bad: bytes) -> None:
    records = read("a.jsonl", bad + b'\n{"q": "next"}\n')
    assert [(r.line, r.bad is None, r.end) for r in records] == [
        (1, False, len(bad) + 1),
        (2, True, len(bad) + 15),
    ]
    assert records[0].leaves == [bad.decode() + "\n"]


@pytest.mark.parametrize("bom", [b"", BOM])
@pytest.mark.parametrize("before", [b"", b'{"q": 1}\n'])
def test_bytes_that_are_not_utf_8_are_told_by_their_place_in_the_file(bom: bytes, before: bytes) -> None:
    data = bom + before + b'{"q": "caf\xe9"}\n'
    *_, record = read("a.jsonl", data)
    assert record.bad == f"not UTF-8 at byte {data.index(0xE9)}"
    assert record.leaves[0] == '{"q": "caf\ufffd"}\n'


def test_duplicate_keys_all_count() -> None:
    assert leaves("a.jsonl", b'{"q": "a", "q": "b"}\n', fields=("q",)) == [["a", "b"]]
    assert leaves("a.jsonl", b'{"q": "a", "q": "b"}\n') == [["a", "b"]]


@pytest.mark.parametrize("depth", [300, 3000, 200_000])
def test_deep_nesting_is_a_bad_record(depth: int) -> None:
    records = read("a.jsonl", b"[" * depth + b"1" + b"]" * depth + b'\n{"q": 1}\n')
    assert faults(records) == [(1, "not JSON: nested too deeply"), (2, None)]


def test_an_id_is_read_for_eval_rows() -> None:
    data = b'{"q": "a", "n": 7}\n{"q": "b"}\n{"q": "c", "n": "x"}\n'
    assert [r.id for r in read("a.jsonl", data, "eval", fields=("q",), id="n")] == ["7", None, "x"]


@pytest.mark.parametrize("limit", [20, 21, 22, 23])
def test_a_line_above_max_record_is_a_bad_record_that_ends_where_the_line_ends(limit: int) -> None:
    long = b'{"q": "%s"}' % (b"x" * 13)  # 22 bytes
    data = b'{"q": "a"}\n' + long + b'\n{"q": "b"}\n'
    records = read("a.jsonl", data, max_record=limit)
    told = f"above max_record ({limit} bytes)" if limit < 22 else None
    assert [(r.line, r.start, r.end, r.bad) for r in records] == [
        (1, 0, 11, None), (2, 11, 34, told), (3, 34, 45, None)
    ]  # fmt: skip


def test_a_line_above_max_record_is_bad_and_still_searched() -> None:
    [record, _] = read("a.jsonl", b'"' + b"x" * 3_000_000 + b'"\n1\n', max_record=100)
    assert record.leaves == ['"' + "x" * 3_000_000 + '"\n']
    assert (record.end, record.bad) == (3_000_003, "above max_record (100 bytes)")


def test_a_line_that_is_not_searched_to_its_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST", 1000)
    found: list[Record] = []
    with pytest.raises(Unreadable, match="not searched to its end"):
        read_into(found, "a.jsonl", b'1\n"' + b"x" * 3_000_000 + b'"\n1\n', max_record=100)
    assert [(r.line, r.start, r.end, r.bad is None) for r in found] == [
        (1, 0, 2, True), (2, 2, 3_000_005, False), (3, 3_000_005, 3_000_007, True)
    ]  # fmt: skip


# --- byte ranges

LINE = st.sampled_from(
    [b'{"q": "a"}\n', b'{"q": "b"}\r\n', b"\n", b" \n", b"nonsense\n", b'{"q": "a rather long line"}\n']
)


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(LINE, max_size=8),
    last=st.sampled_from([b"", b"7", BOM]),
    bom=st.sampled_from([b"", BOM]),
    cuts=st.lists(st.floats(0, 1), max_size=4),
    limit=st.sampled_from([15, 1000]),
)
def test_any_byte_ranges_give_each_record_once_with_lines_that_add_up(
    lines: list[bytes], last: bytes, bom: bytes, cuts: list[float], limit: int
) -> None:
    data = bom + b"".join(lines) + last
    whole = read("a.jsonl", data, max_record=limit)
    at = sorted({int(cut * len(data)) for cut in cuts} | {0})
    got: list[Record] = []
    before = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(data)
        for start, end in zip(at, [*at[1:], None], strict=True):
            file = DataFile("a.jsonl", str(path))
            with open_records(file, Reading(max_record=limit), "train", start, end) as stream:
                got += [record._replace(line=record.line + before) for record in stream]
                before += stream.lines
    assert got == whole
    assert before == data.count(b"\n")


# --- TSV


def test_tsv_cells_are_as_written() -> None:
    data = b'\xef\xbb\xbfq\tr\r\n"a\t b"c"\r\n\r\n\\t\t\n\t\nd\te\tbeyond\tmore\n\rf\n'
    records = read("a.tsv", data)
    assert [(r.line, r.leaves) for r in records] == [
        (2, ['"a', ' b"c"']),
        (4, ["\\t"]),
        (5, []),
        (6, ["d", "e", "beyond", "more"]),
        (7, ["\rf"]),
    ]


def test_tsv_columns_by_name_and_by_number() -> None:
    data = b"q\tr\na\tb\tc\n"
    assert leaves("a.tsv", data, fields=("r", "2")) == [["b", "c"]]
    assert leaves("a.tsv", data, fields=("1", "0"), header=False) == [["r", "q"], ["b", "a"]]
    assert leaves("a.tsv", b"q\tq\na\tb\n", fields=("q",)) == [["a", "b"]]


def test_a_bad_tsv_header_does_not_make_the_next_row_the_header() -> None:
    assert [(r.line, r.bad) for r in read("a.tsv", b"q\xff\tr\na\tb\n")] == [(1, "not UTF-8 at byte 1"), (2, None)]
    records = read("a.tsv", b"q" * 30 + b"\nab\tb\n", max_record=10)
    assert [(r.start, r.end, r.bad) for r in records] == [(0, 31, "above max_record (10 bytes)"), (31, 36, None)]


def test_a_tsv_line_cut_inside_a_character_is_told_as_too_long() -> None:
    records = read("a.tsv", b"q\na\n" + "ß".encode() * 10 + b"\n", max_record=4)
    assert faults(records) == [(2, None), (3, "above max_record (4 bytes)")]


# --- plain text


def test_training_text_is_read_by_paragraph() -> None:
    data = b"\n\none\ntwo\r\n \t\n\nthree\n\n"
    records = read("a.txt", data)
    assert [(r.line, r.leaves) for r in records] == [(3, ["one\ntwo\r\n"]), (7, ["three\n"])]
    assert [data[r.start : r.end] for r in records] == [b"one\ntwo\r\n \t\n\n", b"three\n\n"]


def test_single_line_breaks_never_end_a_training_paragraph() -> None:
    assert leaves("a.txt", b"one\ntwo\nthree") == [["one\ntwo\nthree"]]
    assert leaves("a.txt", "one\u2028\u2029\x85\r\rtwo".encode()) == [["one\u2028\u2029\x85\r\rtwo"]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\n", ["one\n", "two\n"]),
        (b"\n\n one\ntwo\n \n\n", [" one\n", "two\n"]),
        (BOM + b"\none\ntwo\n", ["one\n", "two\n"]),
        (b"one\ntwo\n\nthree", ["one\ntwo\n", "three"]),
        (b"one\r\ntwo\r\n\r\nthree", ["one\r\ntwo\r\n", "three"]),
        (b"one\n \t \ntwo\n", ["one\n", "two\n"]),
    ],
)
def test_eval_text_is_read_by_line_unless_it_has_a_blank_line(data: bytes, expected: list[str]) -> None:
    assert leaves("a.txt", data, "eval") == [[text] for text in expected]


@pytest.mark.parametrize("filler", [1000, 65_000, 70_000])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_first_64_kib_decide_whatever_the_encoding(filler: int, encoding: str) -> None:
    text = "x" * filler + "\ny\n\nz\n"
    assert len(read("a.txt", text.encode(encoding), "eval")) == (3 if filler > 65_536 else 2)


def test_the_first_64_kib_decide_whatever_the_compression(tmp_path: Path) -> None:
    text = b"x" * 60_000 + b"\ny\n\nz\n"
    packed = b"".join(gzip.compress(text[at : at + 100]) for at in range(0, len(text), 100))
    assert read("a.txt", packed, "eval") == read("a.txt", text, "eval")


def test_split_decides_for_both_sides() -> None:
    data = b"one\ntwo\n\nthree\n"
    for role in ("train", "eval"):
        assert leaves("a.md", data, role, split="line") == [["one\n"], ["two\n"], ["three\n"]]  # type: ignore[arg-type]
        assert leaves("a.md", data, role, split="paragraph") == [["one\ntwo\n"], ["three\n"]]  # type: ignore[arg-type]


def test_text_that_is_not_utf_8_is_a_bad_record_with_its_place() -> None:
    records = read("a.txt", BOM + b"one\n\ncaf\xe9\n\nthree")
    assert faults(records) == [(1, None), (3, "not UTF-8 at byte 11"), (5, None)]
    assert records[1].leaves == ["caf\ufffd\n"]


@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(st.text(st.sampled_from("aß🙂 \n"), max_size=60), max_size=4),
    limit=st.integers(8, 64),
    split=st.sampled_from(["line", "paragraph"]),
)
def test_long_training_text_is_cut_between_characters_into_pieces_that_overlap(
    texts: list[str], limit: int, split: str
) -> None:
    data = "\n\n".join(texts).encode()
    records = read("a.txt", data, max_record=limit, overlap=limit // 2, split=split)
    assert {r.bad for r in records} <= {None}
    assert all(len(r.leaves[0].encode()) <= limit for r in records if r.leaves)
    assert [r.start for r in records] == sorted({r.start for r in records})
    assert [r.line for r in records] == [1 + data.count(b"\n", 0, r.start) for r in records]
    seen = {at for r in records for at in range(r.start, r.end)}
    assert {at for at in range(len(data)) if not data[at : at + 1].isspace()} <= seen
    assert all(data[r.start : r.end].decode().startswith("".join(r.leaves)) for r in records)
    assert all(one.end - two.start <= limit // 2 + 3 for one, two in pairwise(records))


def test_a_passage_across_a_cut_stands_whole_in_one_piece() -> None:
    data = b" ".join(b"w%04d" % number for number in range(1000))
    pieces = [record.leaves[0] for record in read("a.txt", data, max_record=600, overlap=300)]
    assert len(pieces) > 5
    for at in range(0, len(data) - 100, 6):
        assert any(data[at : at + 100].decode() in piece for piece in pieces)


def test_pieces_are_never_so_small_that_a_row_of_the_overlap_fits_in_none() -> None:
    data = b" ".join(b"w%04d" % number for number in range(1000))
    pieces = [record.leaves[0] for record in read("a.txt", data, max_record=1, overlap=300)]
    assert all(any(data[at : at + 200].decode() in piece for piece in pieces) for at in range(0, len(data) - 200, 6))


def test_a_long_eval_text_is_a_bad_record() -> None:
    records = read("a.txt", b"short\n" + b"x" * 25 + b"\nshort\n", "eval", max_record=10)
    assert [r.bad is None for r in records] == [True, False, False, False, True]
    assert [(r.start, r.end) for r in records] == [(0, 6), (6, 16), (16, 26), (26, 32), (32, 38)]


def test_a_tsv_whose_first_row_looks_like_data_is_doubted_until_the_config_says_how(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("one two three four five six seven eight nine\t1\nand another row\t2\n")
    file = DataFile("x.tsv", str(path))
    with open_records(file, Reading(), "train") as stream, pytest.raises(Unreadable, match="looks like data"):
        list(stream)
    with open_records(file, Reading(header=False), "train") as stream:
        assert [record.leaves[1] for record in stream] == ["1", "2"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.tsv", "a.csv"])
def test_the_mark_that_a_file_begins_with_is_no_text_of_a_bad_record(name: str) -> None:
    plain, marked = read(name, b"caf\xe9\n"), read(name, BOM + b"caf\xe9\n")
    assert [one.leaves for one in marked] == [one.leaves for one in plain] == [["caf\ufffd\n"]]
    assert [one.bad for one in plain] == ["not UTF-8 at byte 3"]
    assert [one.bad for one in marked] == ["not UTF-8 at byte 6"]
