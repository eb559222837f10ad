"""Untrusted text is harmless wherever it is shown."""

import csv
import io
import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalspill_guard.sink import csv_cell, github_data, github_property, markdown, safe, safe_lines, xml_legal

WJ = "&#8288;"
HOSTILE = "a\x00\x1b[31m\x7f\x9b\u202e\u200b\u2028\ud800\r\n\t::error::x ##[add-mask]y <b>|`@bob"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("data/train/ü 日本 é.jsonl", "data/train/ü 日本 é.jsonl"),
        ("bell\x07", r"bell\x07"),
        ("red\x1b[31m", r"red\x1b[31m"),
        ("c1\x9b31m\x85", r"c1\x9b31m\x85"),
        ("del\x7f", r"del\x7f"),
        ("bidi\u202egnp.exe\u2066", r"bidi\u202egnp.exe\u2066"),
        ("ok\rpassed", r"ok\rpassed"),
        ("x\nverdict passed", r"x\nverdict passed"),
        ("x\u2028y\u2029", r"x\u2028y\u2029"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("\ud800", r"\ud800"),
        ("::error::x", r"\:\:error::x"),
        ("  ::error::x", r"  \:\:error::x"),
        ("\u00a0::error::x", r"\xa0::error::x"),
        ("a::b", "a::b"),
        ("##[add-mask]x", r"##\[add-mask]x"),
        ("a ##[x] ##[y]", r"a ##\[x] ##\[y]"),
        ("##vso[task.setvariable variable=x]y", r"##vso\[task.setvariable variable=x]y"),
        ("## [no command]", "## [no command]"),
    ],
)
def test_a_line_for_the_terminal_holds_no_command_and_no_hidden_character(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\x1b\r\n:#[ \u202e\ud800"))))
@example(HOSTILE)
@settings(max_examples=200, deadline=None)
def test_whatever_is_printed_is_one_printable_line_and_printing_it_again_changes_nothing(text: str) -> None:
    shown = safe(text)
    assert shown.isprintable()
    assert not shown.lstrip().startswith("::")
    assert not re.search(r"##[a-zA-Z]*\[", shown)
    assert safe(shown) == shown


def test_in_a_text_of_several_lines_each_line_is_made_safe_and_only_line_feeds_part_them() -> None:
    assert safe_lines("one\n::error::two\r\nthree\x85") == "one\n\\:\\:error::two\\r\nthree\\x85"


@pytest.mark.parametrize(
    ("text", "data", "value"),
    [
        ("plain/path.jsonl", "plain/path.jsonl", "plain/path.jsonl"),
        ("50% of a,b: c", "50%25 of a,b: c", "50%25 of a%2Cb%3A c"),
        ("%0A", "%250A", "%250A"),
        ("two\r\nlines", "two%0D%0Alines", "two%0D%0Alines"),
        ("x::error::y", "x::error::y", "x%3A%3Aerror%3A%3Ay"),
        ("##[add-mask]x", r"##\[add-mask]x", r"##\[add-mask]x"),
        ("\x1b[31m\u202e", r"\x1b[31m\u202e", r"\x1b[31m\u202e"),
    ],
)
def test_a_workflow_command_is_escaped_in_its_message_and_more_so_in_its_properties(
    text: str, data: str, value: str
) -> None:
    assert (github_data(text), github_property(text)) == (data, value)


def _unescape(text: str) -> str:
    for escaped, plain in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escaped, plain)
    return text


@given(st.text(alphabet=st.sampled_from("ab%0AD3C2:,\r\n"), max_size=30))
@settings(max_examples=200, deadline=None)
def test_the_runner_reads_back_what_was_escaped_and_sees_no_end_of_the_property(text: str) -> None:
    assert _unescape(github_property(text)) == _unescape(github_data(text)) == text
    assert not set(github_property(text)) & set("\r\n:,")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("data/train-1.jsonl.gz", "data/train-1.jsonl.gz"),
        ("a|b", "a&#124;b"),
        ("a\\|b", "a&#92;&#124;b"),
        ("`x`", "&#96;x&#96;"),
        ("<b>&amp;", "&#60;b&#62;&#38;amp;"),
        ("[x](y)", "&#91;x&#93;&#40;y&#41;"),
        ("*a* _b_ ~c~", "&#42;a&#42; &#95;b&#95; &#126;c&#126;"),
        ("# title", "&#35; title"),
        ("two\nlines\r", "two&#92;nlines&#92;r"),
        ("@bob", f"&#64;{WJ}bob"),
        ("bob@example.org", f"bob&#64;{WJ}example.org"),
        ("#12", f"&#35;{WJ}12"),
        ("https://x.org", f"https&#58;{WJ}//x.org"),
        ("WWW.x.org", f"WWW{WJ}.x.org"),
        ("\u202e\u2060", r"&#92;u202e&#92;u2060"),
    ],
)
def test_a_markdown_cell_holds_no_markup_no_link_and_no_mention(text: str, cell: str) -> None:
    assert markdown(text) == cell


@given(st.text())
@example(HOSTILE)
@settings(max_examples=200, deadline=None)
def test_a_markdown_cell_is_one_line_whose_only_special_characters_are_character_references(text: str) -> None:
    cell = markdown(text)
    assert cell.isprintable()
    assert not set(re.sub(r"&#[0-9]+;", "", cell)) & set("|`<>&[]*_#@\\~!():${}^")
    assert not re.search(r"https?:|www\.", cell, re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("tab\tand\nlines\r", "tab\tand\nlines\r"),
        ("\x00\x08\x0b\x0c\x1b", "\ufffd" * 5),
        ("\ud800\ufffe\uffff", "\ufffd" * 3),
        ("é日𝄞\ue000\U0010ffff", "é日𝄞\ue000\U0010ffff"),
        ("<&>", "<&>"),
    ],
)
def test_xml_keeps_every_character_that_xml_allows_and_no_other(text: str, legal: str) -> None:
    assert xml_legal(text) == legal


@given(st.text(alphabet=st.characters(exclude_characters="\r"), max_size=30))
@example(HOSTILE.replace("\r", ""))
@settings(max_examples=200, deadline=None)
def test_an_xml_parser_reads_every_text_made_legal(text: str) -> None:
    element = ElementTree.Element("x")
    element.text = xml_legal(text)
    assert (ElementTree.fromstring(ElementTree.tostring(element)).text or "") == xml_legal(text)


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_a_csv_cell_is_never_a_formula(first: str) -> None:
    assert next(csv.reader(io.StringIO(csv_cell(f"{first}1"), newline=""))) == [f"'{first}1"]


def test_a_csv_cell_is_quoted_only_where_needed() -> None:
    assert [csv_cell(text) for text in ("a b", 'a"b', "a,b", "a\rb", "\0\ud800")] == [
        "a b", '"a""b"', '"a,b"', '"a\rb"', "\ufffd\ufffd"
    ]  # fmt: skip
