"""Which training records hold a flagged row: all of them, by the rule, whatever reads them."""

import csv
import gzip
import json
import os
import random
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
import reference
import world
from hypothesis import given, settings
from hypothesis import strategies as st
from reports_sample import check as sample_check
from reports_sample import run as sample_run

from evalspill_guard import holding, readers
from evalspill_guard.cli import run_command
from evalspill_guard.config import load
from evalspill_guard.engine import Engine
from evalspill_guard.model import HeldRow, TrainingRecord
from evalspill_guard.pipeline import Run, run
from evalspill_guard.reports.html_report import overlap_html
from evalspill_guard.reports.page_training import MOST_FILES, MOST_RECORDS, MOST_ROWS
from evalspill_guard.scan import Means

WORDS = [a + b for a in ("ba", "ko", "mi", "tur", "sel", "dra") for b in ("n", "lo", "rim", "sta", "ge", "vo", "pek")]


def sentence(seed: object, size: int = 20) -> str:
    return " ".join(random.Random(str(seed)).choices(WORDS, k=size))


def repository(folder: Path, rows: list[str], train: list[object], extra: str = "") -> Path:
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in rows])
    world.jsonl(folder / "train.jsonl", train)
    world.config(folder, extra + "reports: {training: true}\n")
    return folder


def listed(folder: Path) -> list[dict[str, str]]:
    with (folder / "evalspill-reports/contaminated-training.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def found(folder: Path, means: Means | None = None) -> Run:
    return run(load(folder / "evalspill.yaml"), None, means or Means())


def test_a_record_is_listed_with_the_rows_that_it_holds(tmp_path: Path) -> None:
    rows = [sentence(i) for i in range(30)]
    half = " ".join(rows[9].split()[:15])
    train = [sentence(99), f"{rows[3]}. {sentence(98)} {rows[7].upper()}", half, " ".join(rows[9].split()[:9])]
    repository(tmp_path, rows, [{"text": text} for text in train])
    assert world.check(tmp_path) == 1
    assert listed(tmp_path) == [
        {"train_file": "train.jsonl", "train_line": "2", "record": "2", "eval_rows": "eval.jsonl#4;eval.jsonl#8",
         "longest": "20", "coverage": "1.0000", "checks": "default"},
        {"train_file": "train.jsonl", "train_line": "3", "record": "3", "eval_rows": "eval.jsonl#10",
         "longest": "15", "coverage": "0.7500", "checks": "default"},
    ]  # fmt: skip


def test_a_row_copied_into_a_thousand_records_names_all_of_them(tmp_path: Path) -> None:
    row = sentence("copied", 30)
    train = [{"n": i, "text": f"{sentence(i)} {row}" if i % 3 == 1 else sentence(i)} for i in range(3000)]
    repository(tmp_path, [row, *(sentence(f"row {i}") for i in range(20))], train)
    assert world.check(tmp_path) == 1
    assert [int(one["train_line"]) for one in listed(tmp_path)] == list(range(2, 3001, 3))


@pytest.mark.parametrize("shard_bytes", [1000, 4096, 65_536])
@pytest.mark.parametrize("every", [1, 5, 50])
def test_a_row_in_records_of_many_shards_names_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard_bytes: int, every: int
) -> None:
    """A scan keeps four places in a file, and the shards after these hold the row without a place."""
    monkeypatch.setattr(readers, "SHARD_BYTES", shard_bytes)
    row = sentence("copied", 30)
    train = [{"text": f"{sentence(i)} {row}" if i % every == 0 else sentence(i)} for i in range(1000)]
    repository(tmp_path, [row], train, "boilerplate: off\n")
    assert world.check(tmp_path) == 1
    assert [int(one["train_line"]) for one in listed(tmp_path)] == list(range(1, 1001, every))


def test_without_being_asked_for_the_list_is_not_written_and_an_older_one_is_removed(tmp_path: Path) -> None:
    repository(tmp_path, [sentence(1)] * 3, [{"text": sentence(1)}])
    assert world.check(tmp_path) == 1
    assert len(listed(tmp_path)) == 1
    world.config(tmp_path)
    assert world.check(tmp_path) == 1
    assert not (tmp_path / "evalspill-reports/contaminated-training.csv").exists()
    assert world.check(tmp_path, "--training-records") == 1
    assert len(listed(tmp_path)) == 1
    (tmp_path / "train.jsonl").write_text("{")
    assert world.check(tmp_path, "--training-records") == 3
    assert not (tmp_path / "evalspill-reports/contaminated-training.csv").exists()


def test_template_runs_do_not_count_unless_the_row_stands_whole_in_the_record(tmp_path: Path) -> None:
    template = sentence("template", 25)
    rows = [f"{template} {sentence(i, 15)}" if i < 20 else sentence(i, 30) for i in range(40)]
    train = [f"{template} {sentence(f'other {i}', 15)}" for i in range(30)] + [rows[5], rows[30]]
    repository(tmp_path, rows, [{"text": text} for text in train])
    assert world.check(tmp_path) == 1
    assert [(one["train_line"], one["eval_rows"]) for one in listed(tmp_path)] == [
        ("31", "eval.jsonl#6"), ("32", "eval.jsonl#31"),
    ]  # fmt: skip


def test_a_passage_with_template_words_inside_is_as_long_as_the_scan_says(tmp_path: Path) -> None:
    template = sentence("template", 20)
    rows = [f"{sentence(i, 15)} {template} {sentence(-i - 1, 15)}" for i in range(30)]
    train = [{"text": f"{sentence(f'a {i}', 9)} {template} {sentence(f'b {i}', 9)}"} for i in range(20)]
    repository(tmp_path, rows, [*train, {"text": " ".join(rows[4].split()[:45])}])
    assert world.check(tmp_path) == 1
    (one,) = listed(tmp_path)
    (row,) = [row for row in world.csv_rows(tmp_path, "contamination-report.csv") if row["flagged"] == "true"]
    assert (one["train_line"], one["longest"], one["longest"]) == ("21", "45", row["longest"])
    assert one["coverage"] == row["coverage"]


def test_a_passage_that_a_record_holds_twice_is_as_long_as_it_is(tmp_path: Path) -> None:
    rows = [sentence(i) for i in range(10)]
    half = " ".join(rows[4].split()[2:18])
    repository(tmp_path, rows, [{"text": f"{half} {sentence(11, 3)} {half} {half}"}])
    assert world.check(tmp_path) == 1
    assert [(one["longest"], one["coverage"]) for one in listed(tmp_path)] == [("16", "0.8000")]


def test_short_rows_count_where_they_stand_whole(tmp_path: Path) -> None:
    rows = [*(sentence(i) for i in range(20)), "what sel dra ban is", "ban kolo tur"]
    train = [{"text": f"so what sel dra ban is it {sentence(1)[:20]}"}, {"a": "Ban, kolo tur!", "b": "x"},
             {"text": "ban kolo tur mi"}]  # fmt: skip
    repository(tmp_path, rows, train)
    assert world.check(tmp_path) == 1
    assert [(one["train_line"], one["eval_rows"], one["longest"]) for one in listed(tmp_path)] == [
        ("1", "eval.jsonl#21", "5"), ("2", "eval.jsonl#22", "3"),
    ]  # fmt: skip


def test_records_that_only_hold_accepted_rows_are_not_listed(tmp_path: Path) -> None:
    rows = [sentence(i) for i in range(10)]
    repository(tmp_path, rows, [{"text": rows[2]}, {"text": rows[5]}])
    config = str(tmp_path / "evalspill.yaml")
    arguments = ["baseline", "create", "-c", config, "--reason", "known", "--row", "eval.jsonl#3"]
    assert run_command(arguments) == 0
    assert world.check(tmp_path) == 1
    assert [one["train_line"] for one in listed(tmp_path)] == ["2"]


def test_records_of_two_checks_are_listed_once_with_both(tmp_path: Path) -> None:
    row = sentence("both")
    for name in ("one", "two"):
        world.jsonl(tmp_path / f"{name}.jsonl", [{"q": row}, {"q": sentence(name)}])
    for name in ("shared", "own"):
        world.jsonl(tmp_path / f"{name}-train.jsonl", [{"t": sentence(5)}, {"t": row}])
    (tmp_path / "evalspill.yaml").write_text("""
version: 1
train: {files: shared-train.jsonl}
checks:
- {name: one, eval: {files: one.jsonl, fields: [q]}}
- {name: two, eval: {files: two.jsonl, fields: [q]}, train: {files: ['*-train.jsonl']}}
reports: {training: true}
""")
    assert world.check(tmp_path) == 1
    assert [(one["train_file"], one["eval_rows"], one["checks"]) for one in listed(tmp_path)] == [
        ("own-train.jsonl", "two.jsonl#1", "two"),
        ("shared-train.jsonl", "one.jsonl#1;two.jsonl#1", "one;two"),
    ]  # fmt: skip


def many_kinds(folder: Path) -> Path:
    """Training files of many formats, with rows whole, quoted and in part, some of them often."""
    rows = [sentence(f"row {i}", 14 + i % 30) for i in range(30)]
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in rows])

    def text(seed: int) -> str:
        row, rng = rows[seed % 30].split(), random.Random(seed)
        first = rng.randrange(len(row))
        part = row[first:] if seed % 5 else row
        return f"{sentence(seed, 12)} {' '.join(part)} {sentence(-seed, 5)}" if seed % 4 else sentence(seed, 40)

    lines = "".join(json.dumps({"n": i, "text": text(i)}) + "\n" for i in range(240))
    (folder / "a.jsonl").write_text(lines)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines[: len(lines) // 2].encode() + b"{}\n"))
    (folder / "c.csv").write_text("id,text\n" + "".join(f'{i},"{text(i)}\n"\n' for i in range(90)))
    (folder / "d.txt").write_text("\n\n".join(text(i) for i in range(60)))
    (folder / "e.json").write_text(json.dumps([{"text": text(i)} for i in range(50)], indent=1))
    world.config(folder, "reports: {training: true}\nmax_bad: 5%\non_bad_record: skip\n", train="'[a-e].*'")
    return folder


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", 4096)


def _plain(folder: Path) -> list[TrainingRecord]:
    """The same by the definition, from the records as a reader gives them."""
    result = found(folder)
    config, told = load(folder / "evalspill.yaml"), []
    check = result.result.checks[0]
    flagged = [
        (number, reference.words(score.row.text), score) for number, score in enumerate(check.rows) if score.flagged
    ]
    for file in result.trained.checks[0].loaded.train:
        with readers.open_records(file, config.checks[0].train.reading, "train") as stream:
            for number, record in enumerate(stream, start=1):
                text = reference.text_words(record.leaves)
                rows = tuple(held for at, row, score in flagged if (held := _held(at, row, score.n, text)))
                if rows:
                    told.append(TrainingRecord(file.path, record.line, number, rows))
    return told


@cache
def _runs(text: reference.Words, n: int) -> frozenset[reference.Words]:
    return frozenset(reference.runs_at(text, n))


def _held(number: int, row: reference.Words, n: int | None, text: reference.Words) -> HeldRow | None:
    if row in _runs(text, len(row)):
        return HeldRow(0, number, len(row), len(row))
    n = n or len(row)
    starts = [at for at in range(len(row) - n + 1) if row[at : at + n] in _runs(text, n)]
    if not starts:
        return None
    covered = len({at + more for at in starts for more in range(n)})
    longest = max(size for size in range(n, len(row)) if _runs(row, size) & _runs(text, size))
    enough = Fraction(covered, len(row)) >= Fraction(1, 2) or longest >= 40
    return HeldRow(0, number, covered, longest) if enough else None


def test_the_list_is_that_of_the_definition(tmp_path: Path, small_shards: None) -> None:
    told = found(many_kinds(tmp_path)).result.training
    assert told is not None and len(told) > 150
    assert list(told) == _plain(tmp_path)


@pytest.mark.parametrize("engine", ["ThreadPoolExecutor", "ProcessPoolExecutor"])
def test_every_engine_lists_the_same(tmp_path: Path, small_shards: None, engine: str) -> None:
    many_kinds(tmp_path)
    assert world.check(tmp_path, "--no-cache") == 1
    before = (tmp_path / "evalspill-reports/contaminated-training.csv").read_bytes()
    for more in (["--engine", f"concurrent.futures:{engine}"], [], []):  # the last two fill and use the cache
        assert world.check(tmp_path, *more) == 1
        assert (tmp_path / "evalspill-reports/contaminated-training.csv").read_bytes() == before


@pytest.mark.parametrize("at", [(7, 1900), tuple(range(0, 2000, 200))])
@pytest.mark.parametrize("checked_before", [False, True])
def test_records_that_a_scan_listed_are_read_again_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: tuple[int, ...], checked_before: bool
) -> None:
    row = sentence("rare")
    train = [{"text": f"{sentence(i)} {row}" if i in at else sentence(i)} for i in range(2000)]
    repository(tmp_path, [row, *(sentence(f"row {i}") for i in range(20))], train)
    if checked_before:  # and known from the cache now, where rows are added
        assert world.check(tmp_path) == 1
        world.jsonl(
            tmp_path / "eval.jsonl", [{"question": text} for text in (row, sentence("row 1"), sentence("row 99"))]
        )
    monkeypatch.setattr(holding, "_read_all", None)
    assert world.check(tmp_path) == 1
    assert [one["train_line"] for one in listed(tmp_path)] == [str(number + 1) for number in at]


def test_a_row_in_more_records_than_a_scan_lists_is_searched_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("scanner", "training"):
        monkeypatch.setattr(f"evalspill_guard.{module}.LISTED_PLACES", 5)
    row = sentence("often")
    for copies in (5, 6):
        at = range(0, 2000, 300)[:copies]
        repository(tmp_path, [row], [{"text": row if i in at else sentence(i)} for i in range(2000)])
        with monkeypatch.context() as patch:
            if copies == 5:
                patch.setattr(holding, "_read_all", None)
            assert world.check(tmp_path, "--no-cache", "--jobs", "1") == 1
        assert [one["train_line"] for one in listed(tmp_path)] == [str(number + 1) for number in at]


@pytest.mark.parametrize("copies", [1, 300])
def test_a_file_that_changes_before_it_is_read_again_makes_the_run_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: int
) -> None:
    row, path = sentence("moved"), tmp_path / "train.jsonl"
    repository(tmp_path, [row], [{"text": row if i < copies else sentence(i)} for i in range(900)])
    real = holding.hold

    def changing(*arguments: object) -> holding.Held:
        path.write_bytes(path.read_bytes().replace(row[:9].encode(), row[:9].upper().encode() + b"x", 1))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("evalspill_guard.training.hold", changing)
    assert world.check(tmp_path, "--jobs", "1") == 3
    assert [(where, "changed" in what) for where, _, what in world.problems(tmp_path)] == [("train.jsonl", True)]


def test_a_lost_worker_makes_the_run_incomplete(tmp_path: Path) -> None:
    many_kinds(tmp_path)
    calls = []

    def executor() -> object:
        import test_engine

        calls.append(1)
        return test_engine.Bare() if len(calls) < 2 else test_engine.Starved()

    result = found(tmp_path, Means(Engine(executor, 1))).result  # type: ignore[arg-type]
    assert (result.exit_code, result.training) == (3, None)
    assert {problem.path for problem in result.problems} == {"a.jsonl", "b.jsonl.gz", "c.csv", "d.txt", "e.json"}


words = st.integers(0, 60).map(lambda number: sentence(number, 3))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(words, min_size=3, max_size=9), min_size=1, max_size=6),
       st.lists(st.lists(words, min_size=1, max_size=9), min_size=1, max_size=12))  # fmt: skip
def test_any_list_is_that_of_the_definition(rows: list[list[str]], train: list[list[str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = [{"text": " ".join(parts)} for parts in train] + [{"text": " ".join([*rows[0][1:], *rows[-1]])}]
        repository(folder, [" ".join(parts) for parts in rows], texts, "boilerplate: off\nn: 8\n")
        assert list(found(folder).result.training or ()) == _plain(folder)


def _training(records: int, rows: int = 1) -> tuple[TrainingRecord, ...]:
    held = tuple(HeldRow(0, number, 4, 9 + number) for number in (0, 1, 2, 3, 4, 7, 8)[:rows])
    return tuple(TrainingRecord(f"data/{n % 30:02}<b>.jsonl", n + 1, n + 1, held) for n in range(records))


def test_the_page_shows_the_worst_records_by_file_and_says_where_all_of_them_are() -> None:
    one = sample_check()
    page = overlap_html(sample_run(one, training=_training(900, 7)), one).decode()
    section = page.split('id="training"')[1].split("</section>")[0]
    assert (section.count("<details"), section.count("<tr><td>")) == (MOST_FILES, MOST_FILES * MOST_RECORDS)
    assert "contaminated-training.csv holds all" in section and "10 more files" in section
    assert f"and {7 - MOST_ROWS} more" in section and "<b>.jsonl" not in section


def test_the_page_is_silent_where_the_records_were_not_asked_for_or_there_are_none() -> None:
    one = sample_check()
    for training in (None, ()):
        assert 'id="training"' not in overlap_html(sample_run(one, training=training), one).decode()


@pytest.mark.parametrize("copies", [3, 7, 14])
def test_a_record_that_changes_under_the_same_size_and_time_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: int
) -> None:
    row, path = sentence("moved"), tmp_path / "train.jsonl"
    texts = [row if i % 200 == 1 and i // 200 < copies else sentence(i) for i in range(3000)]
    repository(tmp_path, [row], [{"text": text} for text in texts])
    real = holding.hold

    def changing(*arguments: object) -> holding.Held:
        known = path.stat()
        head, _, tail = path.read_bytes().rpartition(row.encode())
        with path.open("r+b") as file:
            file.write(head + b"x" * len(row) + tail)
        os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("evalspill_guard.training.hold", changing)
    assert world.check(tmp_path, "--jobs", "1", "--no-cache") == 3
    assert [(where, "changed" in what) for where, _, what in world.problems(tmp_path)] == [("train.jsonl", True)]
