"""CSV: rows by RFC 4180, and what makes a file doubtful."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers import delimited, open_records

TOO_LONG = "above max_record (20 bytes)"


def read(data: bytes, **reading: Any) -> tuple[list[Record], str]:
    """The records, and the fault that ended them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(data)
        records: list[Record] = []
        try:
            with open_records(DataFile("a.csv", str(path)), Reading(**reading), "train") as stream:
                records.extend(stream)
        except Unreadable as fault:
            return records, str(fault)
        return records, ""


def rows(data: bytes, **reading: Any) -> list[tuple[int, list[str]]]:
    records, fault = read(data, **reading)
    assert fault == ""
    assert [record.bad for record in records] == [None] * len(records)
    return [(record.line, record.leaves) for record in records]


CELL = st.text(st.sampled_from('ab",;\n\t ü\u2028\x85'), max_size=6)


@settings(max_examples=80, deadline=None)
@given(
    table=st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=6),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    bom=st.sampled_from(["", "\ufeff"]),
)
def test_what_the_csv_module_wrote_is_read_back(table: list[list[str]], delimiter: str, ending: str, bom: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ending)
    writer.writerows([["q", "r"], *table])
    records = rows((bom + text.getvalue()).encode(), delimiter=delimiter)
    assert [leaves for _, leaves in records] == [[cell for cell in row if cell] for row in table]


def test_quoted_line_breaks_belong_to_the_row() -> None:
    data = b'q,r\r\n"one\r\n\r\ntwo\rthree","say ""x"""\r\nnext,\r\n'
    assert rows(data) == [(2, ["one\r\n\r\ntwo\rthree", 'say "x"']), (5, ["next"])]
    [first, second], _ = read(data)
    assert data[first.start : first.end].count(b"\n") == 3
    assert data[second.start : second.end] == b"next,\r\n"


def test_blank_lines_are_no_rows_but_an_empty_cell_is_one() -> None:
    assert rows(b'\n\r\nq\n\na\n""\n\r\nb') == [(5, ["a"]), (6, []), (8, ["b"])]
    assert rows(b"\xef\xbb\xbf\nq\na\n") == [(3, ["a"])]


def test_ragged_rows_and_cells_beyond_the_header() -> None:
    data = b"q,r\na\nb,c,d,e\n"
    assert rows(data) == [(2, ["a"]), (3, ["b", "c", "d", "e"])]
    assert rows(data, fields=("3", "r")) == [(2, []), (3, ["e", "c"])]
    assert rows(b"q,2\na,b,c\n", fields=("2",)) == [(2, ["b", "c"])]


def test_without_a_header_columns_have_numbers() -> None:
    assert rows(b"a,b\nc,d\n", header=False, fields=("1",)) == [(1, ["b"]), (2, ["d"])]


def test_quotes_in_the_middle_of_a_cell_are_characters() -> None:
    assert rows(b'q,r\n5" pipe,x\n') == [(2, ['5" pipe', "x"])]


@pytest.mark.parametrize("bad", [b'"a"b,c\n', b"a\rb,c\n", b'"caf\xe9",x\n'])
def test_a_bad_row_is_told_and_the_next_one_read(bad: bytes) -> None:
    records, fault = read(b"q,r\n" + bad + b"next,row\n")
    assert fault == ""
    assert [(r.line, r.bad is None, r.end) for r in records] == [(2, False, 4 + len(bad)), (3, True, 13 + len(bad))]
    assert records[0].leaves == [bad.decode("utf-8", "replace")]


def test_bytes_that_are_not_utf_8_are_told_by_their_place_in_the_file() -> None:
    records, _ = read(b'\xef\xbb\xbfq,r\n"a\nb",caf\xe9\n')
    assert [record.bad for record in records] == ["not UTF-8 at byte 16"]


@pytest.mark.parametrize("data", [b'q,r\na,"b\nc,d\n', b'q,r\na,"', b'q,r\na,"b\n' + b"c,d\n" * 50])
def test_a_quote_open_at_the_end_is_an_error_that_names_its_line(data: bytes) -> None:
    records, fault = read(data, max_record=20)
    assert fault == "line 2: a quote that opens here is still open at the end of the file"
    assert [(r.line, r.end, r.bad is None) for r in records] == [(2, len(data), False)]


# --- rows above max_record


@pytest.mark.parametrize(
    "long",
    [
        b'"' + b"x" * 30 + b'",y\n',
        b"x" * 30 + b",y\n",
        b'"xxxxx\nxxxxx\nxxxxx\nxxxxx\nxxxxx",y\n',
        b'"xx\n' + b'x""' * 30 + b'\nx",y\n',
        b'"' + b"x" * 30 + b'\n",y\n',
    ],
)
def test_a_row_above_max_record_is_bad_as_a_whole_and_the_next_one_is_read(long: bytes) -> None:
    data = b"q,r\n" + long + b'"a\nb",c\n'
    records, fault = read(data, max_record=20)
    assert fault == ""
    assert [(r.start, r.end, r.bad) for r in records] == [
        (4, 4 + len(long), TOO_LONG), (4 + len(long), len(data), None)
    ]  # fmt: skip
    assert records[0].line == 2
    assert records[1].line == 2 + long.count(b"\n")
    assert records[1].leaves == ["a\nb", "c"]
    assert records[0].leaves == [long.decode()]


def test_a_row_of_max_record_bytes_is_read() -> None:
    assert rows(b"q\n" + b"x" * 20 + b"\n", max_record=20) == [(2, ["x" * 20])]
    assert rows(b'q\n"' + b"x" * 9 + b"\n" + b"x" * 8 + b'"\n', max_record=20) == [(2, ["x" * 9 + "\n" + "x" * 8])]


def test_an_open_quote_does_not_hold_the_rest_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MOST", 1000)
    records, fault = read(b'q\n"' + b"x\n" * 500_000, max_record=20)
    assert "still open" in fault
    assert len(records[0].leaves[0]) <= 1000


# --- doubtful files


@pytest.mark.parametrize(
    ("data", "reading", "said"),
    [
        (b"q;r\na;b\n", {}, "';' would give more"),
        (b"q\tr\na\tb\n", {}, "'\\t' would give more"),
        (b"q|r\na|b\n", {}, "'|' would give more"),
        (b"q;r\na;b\n", {"delimiter": ";"}, ""),
        (b"q;r\na;b\n", {"delimiter": ","}, ""),
        (b"q;r\na;b\n", {"header": False}, "';' would give more"),
        (b'"q;r"\na\n', {}, ""),
        (b"q\na;b\n", {}, ""),
        (b"q,r;s\na,b\n", {}, ""),
        (b"q,q\na,b\n", {}, "repeated cell"),
        (b"q,q\na,b\n", {"header": True}, ""),
        (b"q,q\na,b\n", {"header": False}, ""),
        (b"q,,\na,b,c\n", {}, "repeated cell"),
        (b"one two three four five six seven eight,r\na,b\n", {}, ""),
        (b"one two three four five six seven eight nine,r\na,b\n", {}, "looks like data"),
        (b"one two three four five six seven eight nine,r\na,b\n", {"header": True}, ""),
    ],
)
def test_a_doubtful_first_row_is_an_error_after_the_rows(data: bytes, reading: dict[str, object], said: str) -> None:
    records, fault = read(data, **reading)
    assert said in fault
    assert fault.startswith("line 1: ") == bool(said)
    assert len(records) == (2 if reading.get("header") is False else 1)
