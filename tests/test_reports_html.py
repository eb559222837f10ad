"""The page is whole in itself, runs nothing, and shows hostile text as text."""

import re
from html.parser import HTMLParser

import pytest
import yaml
from reports_sample import HOSTILE, QUESTION, check, dirty, incomplete, passage, run, score

from evalspill_guard.reports.html_report import MOST_ROWS, overlap_html, settings_yaml
from evalspill_guard.sink import visible, visible_line

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Outline(HTMLParser):
    """The tags and attributes of a page; fails where they do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page(**changes: object) -> str:
    one = check(**changes)
    return overlap_html(run(one), one).decode()


def verdict(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", text.split('<h2 id="verdict">')[1].split("</h2>")[0]).split())


def test_the_verdict_comes_first() -> None:
    assert verdict(page()) == "Failed 4 of 6 rows checked are flagged, 1 of them accepted in the baseline (limit: 0)."
    assert verdict(page(passed=True)).startswith("Passed 4 of 6 rows")


def test_an_incomplete_check_is_no_pass() -> None:
    one = check(passed=True, complete=False)
    text = overlap_html(incomplete(one), one).decode()
    assert verdict(text).startswith("Incomplete The scan is not complete, so this is not the whole result: 4 of 6 rows")
    assert "data/train/&lt;x&gt;.jsonl:7" in text


def test_what_was_not_checked_is_said_at_the_top() -> None:
    text = page()
    said = "3 rows were not checked: 1 too short to score, 1 hardly more than boilerplate, 1 without text."
    assert said in text
    assert text.index(said) < text.index("Figures</h2>")
    assert "Every row was checked." in page(rows=(score(1, QUESTION),))


def test_hostile_text_makes_no_tag_and_no_attribute() -> None:
    calm = check(rows=(dirty(1, "calm", passage("calm", 0, 4), id="calm"),))
    hostile = check(rows=(dirty(1, HOSTILE, passage(HOSTILE, 0, len(HOSTILE)), id=HOSTILE),))
    outlines = [Outline(overlap_html(run(one), one).decode()) for one in (calm, hostile)]
    assert outlines[0].tags == outlines[1].tags
    assert outlines[0].attributes == outlines[1].attributes
    assert "<script>alert(1)</script>\n{{ 7*7 }} \\u202egnp.exe \\x1b[31mred\\x00 \\ud800" in "".join(outlines[1].text)


def test_the_page_loads_and_runs_nothing() -> None:
    outline = Outline(page())
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(outline.tags)
    assert {name for name, _ in outline.attributes if name.startswith("on") or name in ("src", "style")} == set()
    assert all(value.startswith("#") for name, value in outline.attributes if name == "href" and value)
    assert "url(" not in page()
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert ("content", policy) in outline.attributes


def test_every_id_is_unique_and_every_link_leads_somewhere() -> None:
    attributes = Outline(page()).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value for name, value in attributes if name == "href"} <= {f"#{one}" for one in ids}
    assert {value for name, value in attributes if name == "aria-labelledby"} <= set(ids)


def test_the_passage_is_marked_in_both_texts() -> None:
    text = QUESTION
    marked = page(rows=(dirty(1, text, passage(text, 2, 11, "Some ", " more"), id="x"),))
    assert f'<blockquote dir="auto">A <mark>shop sell</mark>{text[11:]}</blockquote>' in marked
    assert '<blockquote dir="auto">Some <mark>shop sell</mark> more</blockquote>' in marked


def test_a_long_page_shows_the_flagged_rows_and_says_what_is_left_out() -> None:
    evidence = passage(QUESTION, 0, 160)
    below = [dirty(number, QUESTION, evidence, flagged=False) for number in range(1, MOST_ROWS + 1)]
    flagged = [dirty(number, QUESTION, evidence) for number in range(MOST_ROWS + 1, MOST_ROWS + 4)]
    text = page(rows=(*below, *flagged))
    assert text.count("<article ") == MOST_ROWS
    assert text.count(f'id="row-1-{MOST_ROWS + 3}"') == 1
    assert "This page shows the first 1,997 of them; contamination-report.csv holds all." in text


def test_a_long_row_is_cut_and_says_so() -> None:
    text = "x" * 10_000 + " shared words " + "y" * 10_000
    shown = page(rows=(dirty(1, text, passage(text, 10_001, 10_013)),))
    assert "[8,001 characters left out …]" in shown
    assert "<mark>shared words</mark>" in shown
    assert len(shown) < 40_000


def test_settings_can_be_copied_back() -> None:
    assert yaml.safe_load(settings_yaml(check().settings)) == check().settings
    hostile = {"id": "a\u202eb", "delimiter": "\t", "fields": ["問題"]}
    text = settings_yaml(hostile)
    assert yaml.safe_load(text) == hostile
    assert text == visible(text)


@pytest.mark.parametrize(
    ("text", "shown", "line"),
    [
        ("a\tb\nc", "a\tb\nc", "a\\x09b\\x0ac"),
        ("\x1b[0m\x7f\x9b", "\\x1b[0m\\x7f\\x9b", "\\x1b[0m\\x7f\\x9b"),
        ("\u202e\u2066\u2028", "\\u202e\\u2066\\u2028", "\\u202e\\u2066\\u2028"),
        ("\udc80", "\\udc80", "\\udc80"),
        ("می‌خواهم 👩‍🔬 שלום", "می‌خواهم 👩‍🔬 שלום", "می‌خواهم 👩‍🔬 שלום"),
    ],
)
def test_characters_that_deceive_are_shown(text: str, shown: str, line: str) -> None:
    assert (visible(text), visible_line(text)) == (shown, line)
