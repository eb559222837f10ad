"""The report page in a real browser: harmless, quiet, usable by keyboard, and right with 20,000 rows.

EVALSPILL_PICTURES=folder keeps the screenshots there; EVALSPILL_PICTURE=write makes docs/report.png anew.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import browser as browsers
import pytest
import reports_sample as sample
from browser import NARROW, Browser
from scratch import ROOT

from evalspill_guard.cli import run_command
from evalspill_guard.model import CheckResult
from evalspill_guard.reports.html_report import overlap_html

PICTURE = ROOT / "docs/report.png"
HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script></style></title></textarea><img src=x onerror=\"document.title='owned'\">",
    '"><a href="javascript:document.title=\'owned\'">javascript:alert(1)</a>',
    "<!-- --><svg onload=document.title='owned'>]]>&lt;b&gt; &amp;amp; &#60;i&#62; &nbsp;",
    "{{ 7*7 }} {% raw %} ${7*7} <style>body{display:none}</style><base href=https://example.org/>",
    "\u202eabc\u2066\u2069\u200f \x00\x1b[31m \ud800 \ufffe <meta http-equiv=refresh content=0;url=https://example.org>",
    "<link rel=stylesheet href=https://example.org/x.css><iframe src=https://example.org></iframe><form action=//x>",
    "w" * 1_000_000,
)
TITLE = "Failed: support-qa · overlap report"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.started() as one:
        yield one


@pytest.fixture(autouse=True)
def _ordinary(browser: Browser) -> None:
    browser.look()
    browser.requests()
    browser.complaints()


def write(folder: Path, one: CheckResult, **changes: object) -> Path:
    path = folder / "overlap-report.html"
    path.write_bytes(overlap_html(sample.run(one, **changes), one))
    return path


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return write(tmp_path, sample.check())


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the examples' first check, as the tool writes it."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("evalspill-reports"))
    assert run_command(["check", "-q", "-c", str(folder / "evalspill.yaml")]) == 1
    return folder / "evalspill-reports/support-qa/overlap-report.html"


def hostile(text: str) -> CheckResult:
    evidence = replace(sample.passage(text, 0, len(text) // 2, text[:500], text[:500]), train_file=text[:3000])
    files = tuple(replace(file, path=text[:3000]) for file in sample.check().eval)
    row = sample.dirty(1, text, evidence, id=text)
    return sample.check(
        rows=(row, sample.score(2, "a", outcome="too-short", id=text, looked_for=False)), eval=files,
        notes=(text[:3000],), n_rule=text[:3000],
    )  # fmt: skip


def many(count: int) -> CheckResult:
    rows = []
    for number in range(1, count + 1):
        text = f"{sample.QUESTION} This is question number {number}, asked on another day by {number * 7} people."
        evidence = sample.passage(text, 0, 160, "before " * 28, "after " * 33, line=number)
        rows.append(sample.dirty(number, text, evidence, id=f"qa-{number}"))
    return sample.check(rows=tuple(rows))


# Harm and quiet


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(text: str, tmp_path: Path, browser: Browser) -> None:
    path = write(tmp_path, hostile(text))
    browser.open(path)
    browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
    time.sleep(0.05)
    assert browser.js("return document.title") == TITLE
    assert browser.js("return document.querySelectorAll('article').length") == 1
    assert browser.js("return document.querySelectorAll('script, style').length") == 2
    forbidden = (
        "img, iframe, link, form, base, article svg, [onload], [onerror], a:not([href^='#']), meta[http-equiv=refresh]"
    )
    assert browser.js(f"return document.querySelectorAll(`{forbidden}`).length") == 0
    assert browser.requests() == [path.as_uri()]
    assert browser.complaints() == []
    shown = browser.js("return document.querySelector('blockquote').textContent")
    assert shown[:20] == text[:20] or "\\u202e" in shown
    assert browser.js("return document.documentElement.scrollWidth <= innerWidth")


def test_no_request_leaves_the_page(example: Path, browser: Browser) -> None:
    browser.open(example)
    for step in ("document.querySelectorAll('details').forEach(one => one.open = true)",
                 "document.querySelectorAll('a').forEach(one => one.click())",
                 "document.querySelectorAll('button').forEach(one => one.click())"):  # fmt: skip
        browser.js(step)
    assert {address.split("#")[0] for address in browser.requests()} == {example.as_uri()}
    assert browser.complaints() == []


def test_the_policy_stops_what_is_not_the_pages_own(page: Path, browser: Browser) -> None:
    text = page.read_text(encoding="utf-8")
    added = "<script>document.title='owned'</script><style>body{color:red}</style><img src='https://example.org/x.png'>"
    page.write_text(text.replace("<main", f"{added}<main"), encoding="utf-8")
    browser.open(page)
    assert browser.js("return document.title") == TITLE
    assert sum("Content Security Policy" in one for one in browser.complaints()) == 3
    assert browser.js("return !document.getElementById('tools').hidden")


# Use


def rows(browser: Browser) -> list[str]:
    shown = "Array.from(document.querySelectorAll('article')).filter(one => one.offsetParent !== null)"
    return browser.js(f"return {shown}.map(one => one.id)")


def choose(browser: Browser, name: str, value: str) -> None:
    browser.js(
        "const one = document.getElementById(arguments[0]); one.value = arguments[1];"
        "one.dispatchEvent(new Event('input', {bubbles: true}))", f"by-{name}", value,
    )  # fmt: skip


ALL = ["row-1-1", "row-1-3", "row-1-4", "row-2-8", "row-2-9"]


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("status", "gate", ALL[:4]), ("status", "flagged", ALL[:3]), ("status", "accepted", ["row-2-8"]),
        ("status", "below", ["row-2-9"]), ("kind", "whole", ["row-1-4"]), ("file", "e1", ALL[3:]), ("file", "e2", ALL[:3]),
        ("file", "t1", ALL), ("text", "CAPITAL of Peru", ["row-1-4"]), ("text", "qa-1", ["row-1-1"]),
        ("text", "no such text", []),
    ],
)  # fmt: skip
def test_rows_are_filtered(name: str, value: str, left: list[str], page: Path, browser: Browser) -> None:
    browser.open(page)
    assert rows(browser) == ALL
    choose(browser, name, value)
    assert rows(browser) == left
    said = browser.js("return document.getElementById('shown').textContent")
    assert said == ("All 5 rows on this page" if len(left) == 5 else f"{len(left)} of 5 rows on this page")
    assert browser.js("return document.getElementById('none').hidden") == bool(left)
    browser.js("document.getElementById('clear').click()")
    assert rows(browser) == ALL


def test_rows_are_sorted(tmp_path: Path, browser: Browser) -> None:
    question, place = sample.QUESTION, sample.passage(sample.QUESTION, 0, 40)
    facts = [(3, 30, 9, 20), (1, 10, 30, 9), (2, 20, 1, 30)]
    made = [
        sample.dirty(number, question, replace(place, train_line=line), runs_found=found, covered=covered, longest=n,
                     flagged=n > 9)
        for n, (number, found, covered, line) in zip((9, 8, 30), facts, strict=True)
    ]  # fmt: skip
    browser.open(write(tmp_path, sample.check(rows=tuple(sorted(made, key=lambda one: one.row.row)))))
    seen = {}
    for order in ("page", "place", "containment", "coverage", "longest", "training"):
        choose(browser, "order", order)
        seen[order] = [one[-1] for one in rows(browser)]
    assert seen == {
        "page": ["2", "1", "3"], "place": ["1", "2", "3"], "containment": ["3", "2", "1"], "coverage": ["1", "3", "2"],
        "longest": ["2", "3", "1"], "training": ["1", "3", "2"],
    }  # fmt: skip


def current(browser: Browser) -> str:
    return browser.js("return document.activeElement.id")


def test_keys_step_through_the_rows_that_are_shown(page: Path, browser: Browser) -> None:
    browser.open(page)
    visited = []
    for key in "jjkj":
        browser.keys(key)
        visited.append(current(browser))
    assert visited == ["row-1-1", "row-1-3", "row-1-1", "row-1-3"]
    assert browser.js("return location.hash") == "#row-1-3"
    choose(browser, "file", "e1")
    browser.keys("j")
    assert current(browser) == "row-2-8"
    browser.js("document.getElementById('next').click()")
    browser.keys("j")
    assert current(browser) == "row-2-9"
    browser.js("document.getElementById('keys').click()")
    browser.keys("k")
    assert current(browser) == "row-2-9"


def test_typing_into_the_filter_is_not_stepping(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.js("document.getElementById('by-text').focus()")
    browser.keys("jk")
    assert current(browser) == "by-text"
    assert browser.js("return document.getElementById('by-text').value") == "jk"


def in_view(browser: Browser, row: str) -> bool:
    return browser.js(
        "const box = document.getElementById(arguments[0]).getBoundingClientRect();"
        "return box.top >= 0 && box.top < innerHeight", row,
    )  # fmt: skip


def test_a_link_leads_to_its_row(tmp_path: Path, browser: Browser) -> None:
    path = write(tmp_path, many(1_500))
    browser.open(path, "#row-1-1234")
    assert current(browser) == "row-1-1234"
    assert in_view(browser, "row-1-1234")
    choose(browser, "text", "qa-77")
    browser.js("location.hash = '#row-1-900'")
    time.sleep(0.2)
    assert in_view(browser, "row-1-900")
    assert len(rows(browser)) == 1_500


def test_a_link_to_a_row_that_is_not_there_says_so(page: Path, browser: Browser) -> None:
    browser.open(page, "#row-1-77")
    assert browser.js("return document.getElementById('missing').offsetParent !== null")


def test_without_a_script_every_row_can_be_read(page: Path, browser: Browser) -> None:
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        assert browser.js("return document.getElementById('tools').hidden")
        assert rows(browser) == ALL
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)


# Looks


def keep(path: Path) -> None:
    """Keep a screenshot for a person to look at, where that is asked for."""
    folder = os.environ.get("EVALSPILL_PICTURES")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, folder)


def draw_all(browser: Browser) -> None:
    """Draw the rows below the screen too: axe-core would take them to lie on what follows them."""
    browser.js("for (const one of document.querySelectorAll('article')) one.style.contentVisibility = 'visible'")


def outside(browser: Browser) -> list[str]:
    """What is wider than the screen, and does not scroll by itself; a space at the end of a line may hang over."""
    return browser.js(
        "return Array.from(document.querySelectorAll('main *'))"
        ".filter(one => one.getBoundingClientRect().right > innerWidth + 8 && !one.closest('.scroll'))"
        ".map(one => one.outerHTML.slice(0, 200))"
    )


def mixed() -> CheckResult:
    """Rows in scripts that are written from right to left, or without spaces."""
    texts = {
        "ar": "متى يمكنني تغيير عنوان التسليم بعد أن تغادر الطرد المستودع في برلين؟",
        "he": "האם אפשר לשנות את כתובת המשלוח אחרי שהחבילה יצאה מהמחסן?",
        "zh": "包裹离开仓库之后，我还能更改收货地址吗？如果可以，需要多长时间？",
        "ja": "荷物が倉庫を出たあとでも、配送先の住所を変更することはできますか。",
        "th": "ฉันสามารถเปลี่ยนที่อยู่จัดส่งหลังจากพัสดุออกจากคลังแล้วได้หรือไม่",
        "long": "w" * 5_000,
    }
    made = [
        sample.dirty(n, text, sample.passage(text, 4, len(text) - 6, "user\n" + text[:30], text[:30] + "\nassistant\nOK"), id=name)
        for n, (name, text) in enumerate(texts.items(), 1)
    ]  # fmt: skip
    return sample.check(rows=tuple(made))


VIEWS = {
    "light": {}, "dark": {"scheme": "dark"}, "narrow": {"size": NARROW}, "narrow-dark": {"size": NARROW, "scheme": "dark"},
    "print": {"media": "print", "size": (794, 1123)},
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["example", "sample", "mixed", "passed", "incomplete", "none"])
def test_axe_finds_no_violation_and_nothing_is_wider_than_the_screen(
    kind: str, view: str, tmp_path: Path, example: Path, browser: Browser
) -> None:
    one = sample.check()
    passed = replace(one, passed=True, rows=one.rows[1:2])
    path = {
        "example": lambda: example,
        "sample": lambda: write(tmp_path, one),
        "mixed": lambda: write(tmp_path, mixed()),
        "passed": lambda: write(tmp_path, passed),
        "incomplete": lambda: write(tmp_path, replace(one, complete=False), problems=sample.incomplete(one).problems),
        "none": lambda: write(tmp_path, one, text_policy="none"),
    }[kind]()
    browser.look(**VIEWS[view])
    browser.open(path)
    draw_all(browser)
    keep(browser.picture(tmp_path / f"{kind}-{view}.png"))
    browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
    assert outside(browser) == []
    if view != "print":
        assert browser.axe() == []


def test_rows_run_in_the_direction_of_their_script(tmp_path: Path, browser: Browser) -> None:
    browser.open(write(tmp_path, mixed()))
    directions = browser.js(
        "return Array.from(document.querySelectorAll('article figure:first-child blockquote'))"
        ".map(one => getComputedStyle(one).direction)"
    )
    assert directions == ["rtl", "rtl", "ltr", "ltr", "ltr", "ltr"]


def test_paper_shows_everything_but_the_controls(example: Path, browser: Browser) -> None:
    browser.look(media="print")
    browser.open(example)
    hidden = "['#tools', 'nav', '.skip'].every(one => document.querySelector(one).offsetParent === null)"
    assert browser.js(f"return {hidden}")
    browser.js("dispatchEvent(new Event('beforeprint'))")
    assert browser.js("return Array.from(document.querySelectorAll('details[id]')).every(one => one.open)")


# Size


def test_a_page_of_20000_rows_opens_within_two_seconds(tmp_path: Path, browser: Browser) -> None:
    path = write(tmp_path, many(20_000))
    assert path.stat().st_size < 30_000_000
    times = []
    for _ in range(3):
        browser.open(path)
        times.append(browser.js("return performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000)
    print(json.dumps({"bytes": path.stat().st_size, "seconds": [round(one, 2) for one in times]}))
    assert min(times) < 2
    assert "first 2,000 of 20,000" in browser.js("return document.querySelector('#found + p').textContent")
    began = time.monotonic()
    choose(browser, "text", "question number 77,")
    assert rows(browser) == ["row-1-77"]
    assert time.monotonic() - began < 2


# The picture in the README


def test_the_picture_of_the_report_is_there_and_small(example: Path, browser: Browser, tmp_path: Path) -> None:
    if os.environ.get("EVALSPILL_PICTURE") == "write":
        browser.look((1000, 900))
        browser.open(example)
        # The answer, the pictures and the first row; what stands between them would fill the picture.
        browser.js("for (const one of document.querySelectorAll('.sheet, #tools, nav, details')) one.hidden = true")
        draw_all(browser)
        bottom = "document.querySelector('article').getBoundingClientRect().bottom + scrollY"
        browser.picture(PICTURE, browser.js(f"return {bottom}"))
    data = PICTURE.read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) < 200_000
    assert struct.unpack(">II", data[16:24])[0] == 1000
