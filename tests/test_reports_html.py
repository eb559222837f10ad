"""The page is whole in itself, allows one script and one style, and shows hostile text as text."""

import base64
import hashlib
import html
import json
import re
import shutil
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import world
import yaml
from reports_sample import HOSTILE, QUESTION, check, dirty, incomplete, passage, run, score

from evalspill_guard import config
from evalspill_guard.cli import run_command
from evalspill_guard.model import InputFile, RowScore
from evalspill_guard.reports.html_report import overlap_html
from evalspill_guard.reports.page_pictures import histogram, sources
from evalspill_guard.reports.page_rows import MOST_ROWS
from evalspill_guard.reports.page_settings import as_yaml, settings_yaml
from evalspill_guard.reports.verdict import not_checked
from evalspill_guard.sink import visible, visible_line

EXAMPLES = Path(__file__).parent.parent / "examples"

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


def unscored(known: int, unknown: int) -> str:
    short = [score(n, "a b c", outcome="too-short", looked_for=n <= known) for n in range(1, known + unknown + 1)]
    one = check(rows=(score(99, QUESTION), *short))
    assert one.unchecked == unknown
    return not_checked(one)


@pytest.mark.parametrize(
    ("known", "unknown", "said"),
    [
        (0, 0, "Every row was scored or found whole."),
        (0, 1, "1 row was not scored (1 too short): not looked for, so nothing is known of it."),
        (2, 0, "2 rows were not scored (2 too short): looked for as a whole only, and not found."),
        (2, 3, "5 rows were not scored (5 too short): 2 were looked for as a whole only, and not found; "
               "3 were not looked for, so nothing is known of them."),
    ],
)  # fmt: skip
def test_the_sentence_on_unscored_rows_agrees_with_the_figure(known: int, unknown: int, said: str) -> None:
    assert unscored(known, unknown) == said


def test_what_was_not_scored_is_said_at_the_top() -> None:
    text = page()
    said = "3 rows were not scored (1 too short, 1 hardly more than boilerplate, 1 without text): not looked for"
    assert text.index(said) < text.index("The whole set</h2>")
    assert "Every row was scored or found whole." in page(rows=(score(1, QUESTION),))


def test_hostile_text_makes_no_tag_and_no_attribute() -> None:
    calm = check(rows=(dirty(1, "calm", passage("calm", 0, 4), id="calm", longest=1),))
    hostile = check(rows=(dirty(1, HOSTILE, passage(HOSTILE, 0, len(HOSTILE)), id=HOSTILE, longest=1),))
    outlines = [Outline(overlap_html(run(one), one).decode()) for one in (calm, hostile)]
    assert outlines[0].tags == outlines[1].tags
    assert outlines[0].attributes == outlines[1].attributes
    assert "<script>alert(1)</script>\n{{ 7*7 }} \\u202egnp.exe \\x1b[31mred\\x00 \\ud800" in "".join(outlines[1].text)


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_page_loads_nothing_and_allows_only_its_own_script_and_style() -> None:
    text = page()
    outline = Outline(text)
    assert not {"link", "img", "iframe", "object", "form", "base"} & set(outline.tags)
    assert (outline.tags.count("script"), outline.tags.count("style")) == (1, 1)
    assert {name for name, _ in outline.attributes if name.startswith("on") or name in ("src", "style")} == set()
    assert all(value.startswith("#") for name, value in outline.attributes if name == "href" and value)
    assert "url(" not in text
    script = text.split("<script>")[1].split("</script>")[0]
    style = text.split("<style>")[1].split("</style>")[0]
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest(script)}'; style-src 'sha256-{digest(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    assert ("content", policy) in outline.attributes
    assert script.isascii() and style.isascii()


def test_every_id_is_unique_and_every_link_leads_somewhere() -> None:
    attributes = Outline(page()).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value for name, value in attributes if name == "href"} <= {f"#{one}" for one in ids}
    labels = [value for name, value in attributes if name == "aria-labelledby"]
    assert {one for value in labels if value for one in value.split()} <= set(ids)


def test_the_passage_is_marked_in_both_texts() -> None:
    text = QUESTION
    marked = page(rows=(dirty(1, text, passage(text, 2, 11, "Some ", " more"), id="x"),))
    assert f'<blockquote dir="auto">A <mark>shop sell</mark>{text[11:]}</blockquote>' in marked
    assert '<blockquote dir="auto">Some <mark>shop sell</mark> more</blockquote>' in marked


def many(count: int, **facts: object) -> list[RowScore]:
    evidence = passage(QUESTION, 0, 160, "before " * 28, "after " * 33)
    return [dirty(number, QUESTION, replace(evidence, train_line=number), **facts) for number in range(1, count + 1)]


def test_a_long_page_shows_the_flagged_rows_and_says_what_is_left_out() -> None:
    below = many(MOST_ROWS, flagged=False)
    flagged = [dirty(number, QUESTION, passage(QUESTION, 0, 160)) for number in range(MOST_ROWS + 1, MOST_ROWS + 4)]
    text = page(rows=(*below, *flagged))
    assert text.count("<article ") == MOST_ROWS
    assert text.count(f'id="row-1-{MOST_ROWS + 3}"') == 1
    said = "This page shows the first 2,000 of 2,003, flagged rows first; contamination-report.csv holds all."
    assert said in text


def test_a_page_of_20000_rows_is_small_and_made_fast() -> None:
    one = check(rows=tuple(many(20_000)))
    overlap_html(run(), check())
    began = time.process_time()
    made = overlap_html(run(one), one)
    assert time.process_time() - began < 5
    assert len(made) < 10_000_000


def test_a_page_of_long_rows_stays_below_30_mb() -> None:
    text = "問<&" * 20_000
    long = [dirty(n, text, passage(text, 20_000, 40_000, text[:200], text[:200]), id=text) for n in range(1, 3_000)]
    one = check(rows=tuple(long))
    made = overlap_html(run(one), one)
    assert len(made) < 30_000_000
    assert 100 < made.count(b"<article ") < MOST_ROWS
    assert f"first {made.count(b'<article '):,} of 2,999, flagged rows first".encode() in made


def test_everything_else_that_can_be_long_is_cut_too() -> None:
    files = tuple(InputFile(f"data/{n}.jsonl", 1, "0" * 32, 1, 0, 0) for n in range(50_000))
    short = tuple(score(n, "a", outcome="too-short", looked_for=False) for n in range(1, 50_000))
    text = page(train=files, rows=short, notes=("a note",) * 50_000)
    assert len(text) < 2_000_000
    assert "first 1,000; report.json holds all" in text
    assert "first 2,000; too-short-to-score.csv holds all" in text
    assert "49,800 more are in report.json" in text


def test_a_long_row_is_cut_and_says_so() -> None:
    text = "x" * 10_000 + " shared words " + "y" * 10_000
    shown = page(rows=(dirty(1, text, passage(text, 10_001, 10_013)),))
    assert '<blockquote dir="auto"><span class="cut" dir="ltr"> [… 8,001 characters left out] </span>xxx' in shown
    assert "<mark>shared words</mark>" in shown
    assert len(shown) < 60_000


@pytest.mark.parametrize(("policy", "own", "theirs"), [("full", 5, 5), ("eval", 5, 0), ("none", 0, 0)])
def test_text_that_is_left_out_is_left_out_visibly(policy: str, own: int, theirs: int) -> None:
    one = check()
    text = overlap_html(run(one, text_policy=policy), one).decode()
    assert text.count("<blockquote") == own + theirs
    assert text.count("Text left out (reports.text).") == 10 - own - theirs
    assert text.count(f"left out of these reports (reports.text: {policy}).") == (policy != "full")


def test_accepted_rows_are_shown_apart() -> None:
    text = page()
    assert text.count('data-status="accepted"') == 1
    assert "3 flagged and not accepted, 1 accepted, 1 below flag_at." in text
    assert "<dt>of them accepted</dt><dd>1</dd>" in text


# The pictures


def bars(*rows: RowScore) -> dict[str, tuple[int, int]]:
    return {bar.label: (bar.count, bar.flagged) for bar in histogram(check(rows=rows)).bars if bar.count}


def test_every_checked_row_is_in_one_bar() -> None:
    e = passage(QUESTION, 0, 20)
    found = [dirty(n, QUESTION, e, runs=100, runs_found=n, flagged=n > 50) for n in (1, 10, 51, 90, 99, 100)]
    whole = score(7, "a b c d e", outcome="whole", flagged=True)
    assert bars(*found, whole, score(8, QUESTION), score(9, "a", outcome="too-short")) == {
        "short, whole": (1, 1), "1": (1, 1), "0.9 to <1": (2, 2), "0.5 to 0.6": (1, 1), "0.1 to 0.2": (1, 0),
        ">0 to 0.1": (1, 0), "0": (1, 0),
    }  # fmt: skip


def test_rows_without_overlap_do_not_make_the_other_bars_invisible() -> None:
    clean = [score(n, QUESTION) for n in range(2, 5_000)]
    picture = histogram(check(rows=(dirty(1, QUESTION, passage(QUESTION, 0, 20)), *clean)))
    one, none = (next(bar for bar in picture.bars if bar.label == label) for label in ("0.9 to <1", "0"))
    assert (none.cut, one.cut) == (True, False)
    assert 40 < one.width < none.width == 64
    assert histogram(check(rows=())).says == ""


def test_the_overlap_is_placed_by_file_and_line() -> None:
    rows = many(3)
    other = replace(passage(QUESTION, 0, 20), train_file="data/other.jsonl", train_line=1_000_000)
    picture = sources(check(rows=(*rows, dirty(4, QUESTION, other, flagged=False), replace(rows[0], evidence=None))))
    assert [(s.path, s.count, s.flagged, s.first_line, s.last_line) for s in picture.strips] == [
        ("data/train/part-0001.jsonl.gz", 3, 3, 1, 3),
        ("data/other.jsonl", 1, 0, 1_000_000, 1_000_000),
    ]
    assert [s.ticks for s in picture.strips] == [[(0.0, True)], [(99.5, False)]]
    assert picture.unplaced == 1


def test_many_files_are_summed_up() -> None:
    rows = [replace(row, evidence=replace(row.evidence, train_file=f"d/{row.row.row}")) for row in many(150)]
    picture = sources(check(rows=tuple(rows)))
    assert (len(picture.strips), picture.drawn, picture.files, picture.left_out) == (100, 8, 150, 50)
    assert "<td>50 other files</td>" in page(rows=tuple(rows))


def test_the_pictures_can_be_read_without_seeing_them() -> None:
    text = page()
    assert text.count('<svg role="img" aria-labelledby=') == 2
    assert '<desc id="histogram-desc">short, whole: 1; 0.9 to &lt;1: 3; &gt;0 to 0.1: 1; 0: 1</desc>' in text
    assert '<desc id="sources-desc">data/train/part-0001.jsonl.gz: 5</desc>' in text
    assert '<th scope="row">0.9 to &lt;1</th><td class="num">3</td><td class="num">3</td>' in text


# The settings


def block(text: str) -> str:
    return html.unescape(text.split('<pre><code id="yaml">')[1].split("</code></pre>")[0])


ODD = """\
version: 1
train:
  files: ["data/**/*.{jsonl,txt}", "!data/no.jsonl"]
  min_records: 3
  max_empty: 75%
on_bad_record: skip
max_bad: 40%
checks:
  - name: odd
    eval: {files: ["e v/*.csv"], fields: ["frage \u202e", "2"], id: "1", delimiter: "\t", header: true, min_files: 1}
    n: 5
    boilerplate: {records: 0, rows: 2}
    ignore: [notice.txt]
    short_rows: off
    flag_at: {containment: 33.25%}
    fail_over: "12.5%"
    max_unchecked: 99%
  - name: any
    train: {files: data/a.txt, split: line}
    eval: {files: e.jsonl, fields: auto}
    flag_at: any
    boilerplate: off
  - name: strict
    eval: {files: strict.jsonl, fields: [question]}
    n: 6
    boilerplate: off
    ignore: [notice.txt]
    short_rows: 3
    flag_at: {containment: 0.9}
reports: {text: eval, clean: true}
"""


def odd_world(folder: Path) -> Path:
    words = [f"word{n} item{n % 7} and then some more to read of {n}" for n in range(12)]
    world.jsonl(folder / "data/a.jsonl", [{"t": word} for word in words[:6]])
    (folder / "data/b.jsonl").write_text('{"t": "word8 item1 and then some more to read of 8"}\n{"t": \n{"t": "x"}\n')
    (folder / "data/a.txt").write_text("\n".join(words[4:9]))
    (folder / "notice.txt").write_text("and then some more to read of")
    (folder / "e v").mkdir()
    rows = [f"{n}\t{word}\t{n}" for n, word in enumerate([*words, "word1 item1 and"])]
    (folder / "e v/x.csv").write_text("\n".join(["1\tfrage \u202e\t2", *rows]) + "\n")
    world.jsonl(folder / "e.jsonl", [{"question": word, "same": "always the same"} for word in words])
    partly = [f"a changed beginning {word} and another end {n}" for n, word in enumerate(words)]
    strict = [*partly, *words[:4], "word3 item3 and then"]
    world.jsonl(folder / "strict.jsonl", [{"question": text} for text in strict])
    (folder / "evalspill.yaml").write_text(ODD)
    return folder / "evalspill.yaml"


def example_world(folder: Path) -> Path:
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("evalspill-reports"))
    return folder / "evalspill.yaml"


def results(folder: Path, name: str) -> dict[str, bytes]:
    """The CSV files, the clean files and the figures of a check."""
    reports = folder / "evalspill-reports"
    made = [path for path in (reports / name).rglob("*") if path.is_file() and path.suffix != ".html"]
    figures = next(one for one in json.loads((reports / "report.json").read_bytes())["checks"] if one["name"] == name)
    kept = {key: value for key, value in figures.items() if key != "notes"}
    return {path.relative_to(reports).as_posix(): path.read_bytes() for path in made} | {
        "figures": json.dumps(kept).encode()
    }


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (example_world, "support-qa"),
        (example_world, "refund-policy"),
        (odd_world, "odd"),
        (odd_world, "any"),
        (odd_world, "strict"),
    ],
)
def test_the_settings_copied_out_of_the_page_give_the_same_figures_and_files(
    make: object, name: str, tmp_path: Path
) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    run_command(["check", "-q", "-c", str(path)])
    first = results(tmp_path, name)
    text = (tmp_path / "evalspill-reports" / name / "overlap-report.html").read_text()
    shutil.rmtree(tmp_path / "evalspill-reports")
    path.write_text(block(text))
    run_command(["check", "-q", "-c", str(path)])
    assert results(tmp_path, name) == first
    assert {"figures", f"{name}/contamination-report.csv"} < set(first) and b"true" in first["figures"]
    assert first[f"{name}/contamination-report.csv"].count(b"\n") > 2
    assert any(path.startswith(f"{name}/clean/") for path in first)
    assert block((tmp_path / "evalspill-reports" / name / "overlap-report.html").read_text()) == block(text)


def test_a_check_that_skipped_bad_records_says_so_in_its_settings() -> None:
    def more(bad: int) -> dict[str, object]:
        one = check(train=(InputFile("a", 1, "0" * 32, 1_000, 0, bad),))
        whole = yaml.safe_load(settings_yaml(run(one), one))
        return {key: value for key, value in whole.items() if key in ("on_bad_record", "max_bad")}

    assert more(0) == {}
    assert more(10) == {"on_bad_record": "skip"}
    assert more(11) == {"on_bad_record": "skip", "max_bad": "2%"}


@pytest.mark.parametrize(
    "text", ["off", "yes", "true", "null", "1", "1e3", "0x1f", "1:30", "a: b", "# x", "!y", "*z", "'", '"', "{a}", "~",
             "", " ", "\t", "\u202e", "\ud800", "\x85", "問題", "a\nb", "- a", "=", "2020-01-01"],
)  # fmt: skip
def test_any_text_survives_the_settings(text: str) -> None:
    assert yaml.safe_load(as_yaml({"a": [text], text or "k": text})) == {"a": [text], text or "k": text}
    if text.strip() and "\ud800" not in text:
        parsed = config.parse(
            as_yaml({"version": 1, "train": {"files": ["a"]}, "eval": {"files": ["b", text], "fields": ["x"]}}),
            Path("c"),
        )
        assert parsed.checks[0].eval.files == ("b", text)


def test_settings_can_be_copied_back() -> None:
    whole = {"version": 1, "checks": [check().settings], "reports": {"text": "full", "clean": True}}
    assert yaml.safe_load(settings_yaml(run(), check())) == whole
    hostile = {"id": "a\u202eb", "delimiter": "\t", "fields": ["問題"]}
    text = as_yaml(hostile)
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
