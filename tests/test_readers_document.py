"""JSON read whole: arrays, arrays inside objects, columns, several values in one file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.readers import document, open_records, values

BOM = b"\xef\xbb\xbf"


def read(data: bytes, name: str = "a.json", **reading: Any) -> tuple[list[Record], str]:
    """The records, and the fault that ended them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(data)
        records: list[Record] = []
        try:
            with open_records(DataFile(name, str(path)), Reading(**reading), "train") as stream:
                records.extend(stream)
        except Unreadable as fault:
            return records, str(fault)
        return records, ""


def leaves(value: object, **reading: Any) -> list[list[str]]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    records, fault = read(data, **reading)
    assert fault == ""
    assert [record.bad for record in records] == [None] * len(records)
    return [record.leaves for record in records]


@pytest.mark.parametrize("bom", [b"", BOM])
def test_elements_have_their_line_and_bytes(bom: bytes) -> None:
    data = bom + '\n[\n  {"q": "ä"},\n\n  "🙂\u2028", 3,\n [\n"x"] ]\n'.encode()
    records, _ = read(data)
    assert [(r.line, data[r.start : r.end].decode(), r.leaves) for r in records] == [
        (3, '{"q": "ä"}', ["ä"]),
        (5, '"🙂\u2028"', ["🙂\u2028"]),
        (5, "3", ["3"]),
        (6, '[\n"x"]', ["x"]),
    ]


@pytest.mark.parametrize("empty", [b"[]", b" [ ] ", b'{"data": [{"qas": []}]}', b'{"data": []}', b'{"a": [], "b": []}'])
def test_an_empty_array_has_no_records(empty: bytes) -> None:
    records = "data[].qas[]" if b"data" in empty else None
    assert leaves(empty, records=records) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"version": "1", "data": [{"q": "a"}, {"q": "b"}], "tags": ["t"]}, [["a"], ["b"]]),
        ({"data": [{"q": "a"}], "tags": ["text beside", "the array"]}, [["a"], ["text beside", "the array"]]),
        ({"data": [{"q": "a"}], "more": [{"q": "b"}]}, [["a", "b"]]),
        ({"q": "a", "tags": ["t", "u"]}, [["a", "t", "u"]]),
        ({"q": {"0": "a", "1": "b"}, "r": {"0": "c", "1": "d"}}, [["a", "c"], ["b", "d"]]),
        ({"q": ["a", "b"], "r": ["c", "d"]}, [["a", "c"], ["b", "d"]]),
        ({"q": ["a", "b"], "r": [["c", "d"], ["e"]]}, [["a", "c", "d"], ["b", "e"]]),
        ({"q": ["a", "b"], "r": ["c"]}, [["a", "b", "c"]]),
        ({"q": {"0": "a", "1": "b"}, "r": {"0": "c"}}, [["a", "b", "c"]]),
        ({"q": {"x": "a"}, "r": {"x": "b"}}, [["a", "b"]]),
        ("text", [["text"]]),
        (7, [["7"]]),
        (None, [[]]),
    ],
)
def test_what_a_record_is_in_a_document(value: object, expected: list[list[str]]) -> None:
    assert leaves(value) == expected


@pytest.mark.parametrize(
    "form", [{"q": ["a", "b"], "r": ["c", "d"]}, {"q": {"0": "a", "1": "b"}, "r": {"0": "c", "1": "d"}}]
)
def test_columns_are_read_by_name_and_have_no_clean_file(form: object, tmp_path: Path) -> None:
    (tmp_path / "data").write_text(json.dumps(form))
    file = DataFile("a.json", str(tmp_path / "data"))
    with open_records(file, Reading(fields=("q",), id="r"), "eval") as stream:
        assert [(r.leaves, r.id) for r in stream] == [(["a"], "c"), (["b"], "d")]
        assert not stream.clean_possible


SQUAD = {
    "version": "1",
    "data": [
        {"title": "t", "paragraphs": [{"context": "c", "qas": [{"q": "a"}, {"q": "b"}]}, {"qas": []}]},
        {"paragraphs": [{"qas": [{"q": "c"}], "qas2": [{"q": "no"}]}]},
    ],
}
ELSEWHERE = [
    {"paragraphs": "none", "other": {"qas": [{"q": "x"}]}},
    "neither",
    {"Paragraphs": []},
    {"paragraphs": None},
]


@pytest.mark.parametrize("indent", [None, 1])
def test_records_names_the_arrays(indent: int | None) -> None:
    data = json.dumps(SQUAD, indent=indent).encode()
    assert leaves(data, records="data[].paragraphs[].qas[]") == [["a"], ["b"], ["c"]]
    assert leaves(data, records="data[].paragraphs[].qas") == [["a"], ["b"], ["c"]]
    assert len(leaves(data, records="data")) == 2
    assert leaves(b"[[1, 2], [3]]", records="[][]") == [["1"], ["2"], ["3"]]
    assert leaves(b"[1, 2]", records=".") == [["1"], ["2"]]


@pytest.mark.parametrize("element", ELSEWHERE)
def test_an_element_that_records_does_not_lead_into_is_bad_and_still_searched(element: object) -> None:
    data = json.dumps({"data": [*SQUAD["data"], element]}).encode()
    records, _ = read(data, records="data[].paragraphs[].qas[]")
    assert [r.bad is None for r in records] == [True, True, True, False]
    assert "where records looks for its rows" in (records[3].bad or "")
    assert records[3].leaves == [data[records[3].start : records[3].end].decode()]


def test_a_file_without_the_array_that_records_names_is_one_bad_record() -> None:
    assert [r.bad is None for r in read(b'{"data": []}', records="none[]")[0]] == [False]


def test_records_holds_for_every_value_of_a_file() -> None:
    data = b'{"data": [1, 2]}\n{"data": [3]}\n'
    for name in ("a.json", "a.jsonl"):
        assert [(r.line, r.leaves, r.group) for r in read(data, name, records="data[]")[0]] == [
            (1, ["1"], 0), (1, ["2"], 0), (2, ["3"], 1)
        ]  # fmt: skip
    records, fault = read(data + b"nonsense", records="data[]")
    assert [r.bad is None for r in records] == [True, True, True, False]
    assert fault == ""


def test_several_values_may_follow_one_another() -> None:
    data = b'{"q":\n"a"}\n{"q": "b"} {"q":\n\n"c"}"d"'
    assert [(r.line, r.leaves) for r in read(data)[0]] == [(1, ["a"]), (3, ["b"]), (3, ["c"]), (5, ["d"])]


@pytest.mark.parametrize(
    ("data", "good", "line"),
    [
        (b'[{"q": "a"},\n{"q": "b"},\n]', 2, 3),
        (b'[{"q": "a"},\n{"q": "b"}', 2, 2),
        (b'[{"q": "a"},\n{"q": "b', 1, 2),
        (b'[{"q": "a"}\n{"q": "b"}]', 1, 2),
        (b'[{"q": "a"}]\nrest', 1, 2),
        (b'[\n{"q": "a"}]\n[{"q": "b"}]', 1, 3),
        (b'{"q": "a"}\n{"q": ', 1, 2),
        (b'[{"q": "a"},\n{q: "b"}]', 1, 2),
        (b"nonsense", 0, 1),
        (b"[", 0, 1),
    ],
)
def test_what_is_no_json_is_a_bad_record_after_the_good_ones(data: bytes, good: int, line: int) -> None:
    records, fault = read(data)
    cut_off = data.startswith(b"[") and not data.endswith((b"]", b"rest"))
    assert ("ends in the middle" in fault) == cut_off
    assert [r.bad is None for r in records] == [True] * good + [False]
    assert records[-1].line == line
    assert (records[-1].bad or "").startswith("not JSON: ")
    assert records[-1].end == len(data)
    assert data[records[-1].start :].decode() == records[-1].leaves[0]


def test_duplicate_keys_all_count() -> None:
    assert leaves(b'[{"q": "a", "q": "b"}]', fields=("q",)) == [["a", "b"]]
    assert leaves(b'{"data": [{"q": "a"}], "data": [{"q": "b"}]}') == [["a", "b"]]
    assert leaves(b'{"data": [{"q": "a"}], "data": [{"q": "b"}]}', records="data[]") == [["a"], ["b"]]


def test_json_as_python_writes_it_is_read() -> None:
    assert leaves(b'["\\ud800", NaN, -Infinity, 123456789012345678901234567890]') == [
        ["\ud800"], ["nan"], ["-inf"], ["123456789012345678901234567890"]
    ]  # fmt: skip


def test_an_element_nested_too_deeply_is_a_bad_record() -> None:
    deep = b"[" * 300 + b"1" + b"]" * 300
    records, fault = read(b'["a", ' + deep + b', "b"]')
    assert [(r.leaves, r.bad) for r in records] == [
        (["a"], None), ([deep.decode()], "nested too deeply"), (["b"], None)
    ]  # fmt: skip
    assert fault == ""


def test_what_the_parser_cannot_follow_is_an_error_that_names_its_line() -> None:
    records, fault = read(b'["a",\n' + b"[" * 200_000 + b"]" * 200_000 + b"]")
    assert [r.leaves for r in records] == [["a"]]
    assert fault == "line 1: nested too deeply"


@pytest.mark.parametrize("bom", [b"", BOM])
def test_bytes_that_are_not_utf_8_are_told_with_line_and_byte_after_the_elements_before(bom: bytes) -> None:
    data = bom + b'[{"q": "a"},\n{"q": "caf\xe9"}, {"q": "b"}]'
    records, fault = read(data)
    assert [r.leaves for r in records] == [["a"]]
    assert fault == f"line 2: not UTF-8 at byte {data.index(0xE9)}"
    assert read(b"[1]\n\xff")[1] == "line 2: not UTF-8 at byte 4"


def test_an_element_above_max_record_is_a_bad_record() -> None:
    records, fault = read(b'["a", "' + b"x" * 20 + b'", "b"]', max_record=20)
    assert [(r.start, r.end, r.bad) for r in records] == [
        (1, 4, None), (6, 28, "above max_record (20 bytes)"), (30, 33, None)
    ]  # fmt: skip
    assert fault == ""


def test_a_document_above_the_limit_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST_BYTES", 100)
    assert read(b"[" + b" " * 98 + b"]") == ([], "")
    _, fault = read(b"[" + b" " * 99 + b"]")
    assert "above 1 GB" in fault
    assert "JSON Lines" in fault


def test_values_end_where_the_parser_ends(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b'[{"q": 1}, ' + b"[" * 200_000)
    assert list(values(DataFile("a.json", str(tmp_path / "data")), Reading(), "train")) == [{"q": 1}]
