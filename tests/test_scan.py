"""However training data are cut, and by whomever they are scanned: the reports are the same."""

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import world
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard import readers
from evalspill_guard import scan as scan_module
from evalspill_guard.engine import Engine
from evalspill_guard.index import Query, RunIndex
from evalspill_guard.indexing import build
from evalspill_guard.model import DataFile, Reading, Shard
from evalspill_guard.pool import Pool
from evalspill_guard.scan import Means, scan_files
from evalspill_guard.scanner import ShardResult, scan_shard
from evalspill_guard.streams import CHANGED

WORDS = [a + b for a in ("ba", "ko", "mi", "tur", "sel", "dra") for b in ("n", "lo", "rim", "sta", "ge", "vo", "pek")]
SMALL_SHARD = 4096


def sentence(seed: object, size: int = 20) -> str:
    return " ".join(random.Random(str(seed)).choices(WORDS, k=size))


def line(text: str, end: str = "\n") -> bytes:
    return (json.dumps({"text": text}, ensure_ascii=False) + end).encode()


TEMPLATE = sentence("template", 14)
ROWS = (
    [sentence(f"row {i}", 12 + i % 25) for i in range(36)]
    + [f"{TEMPLATE} {sentence(i, 15)}" for i in range(4)]
    + [
        "mi ban kolo turge",
        "selvo dralo",
        "茶" * 3 + "水火木金土日月山川田人口",
    ]
)


def lines_of_many_kinds(size: int, shard: int = SMALL_SHARD) -> bytes:
    """Long lines, CRLF, blank lines, a row at each border of a shard, no final line feed."""
    data, number = b"\xef\xbb\xbf", 0
    while len(data) < size:
        number += 1
        near_border = shard - len(data) % shard
        if near_border < 700:
            data += line(ROWS[number % len(ROWS)] + " " + sentence(f"border {number}", near_border // 8))
        elif number % 41 == 0:
            data += line(
                sentence(f"long {number}", shard // 3) + " " + ROWS[number % 36] + " " + sentence(number, shard // 4)
            )
        elif number % 29 == 0:
            data += line(f"{sentence(number)} {TEMPLATE}")
        else:
            data += line(sentence(f"text {number}", 30), "\r\n" if number % 3 else "\n\n")
    return data + line(ROWS[5], "")


def corpus(folder: Path) -> Path:
    """A dataset repository whose training data take more than ten shards and three files of other formats."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.jsonl").write_bytes(lines_of_many_kinds(90_000))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines_of_many_kinds(9_000), mtime=0))
    (folder / "c.csv").write_text("text,n\n" + "".join(f'"{sentence(i)}, {ROWS[i % 9]}",{i}\n' for i in range(60)))
    (folder / "d.txt").write_text("\n\n".join([sentence("d"), *ROWS[36:], sentence("e")]))
    write_rows(folder, ROWS)
    write_config(folder)
    return folder


def write_rows(folder: Path, rows: list[str]) -> None:
    world.jsonl(folder / "eval.jsonl", [{"question": row, "id": f"q{number}"} for number, row in enumerate(rows)])


def write_config(folder: Path, extra: str = "", train: str = "") -> None:
    files = "['*.jsonl', '!eval.jsonl', '*.gz', '*.csv', '*.txt']"
    (folder / "evalspill.yaml").write_text(
        f"version: 1\ntrain:\n  files: {files}\n{train}eval:\n  files: eval.jsonl\n  fields: question\n"
        f"boilerplate: {{records: 3, rows: 2}}\n{extra}"
    )


def reports(folder: Path) -> dict[str, bytes]:
    """Every file that a run wrote."""
    base = folder / "evalspill-reports"
    return {str(path.relative_to(base)): path.read_bytes() for path in sorted(base.rglob("*")) if path.is_file()}


def checked(folder: Path, *arguments: str, code: int = 1) -> dict[str, bytes]:
    assert world.check(folder, "--quiet", *arguments) == code
    return reports(folder)


def uncached(folder: Path, code: int = 1) -> dict[str, bytes]:
    return checked(folder, "--no-cache", "--engine", "serial", code=code)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", SMALL_SHARD)


@pytest.fixture
def folder(tmp_path: Path, small_shards: None) -> Path:
    return corpus(tmp_path / "data")


def test_the_corpus_of_these_tests_has_everything_that_they_are_about(folder: Path) -> None:
    shards = readers.shards_of(DataFile("a.jsonl", str(folder / "a.jsonl")), Reading())
    sizes = [(shard.end or 0) - shard.start for shard in shards]
    found = uncached(folder)
    assert len(shards) > 10
    assert max(sizes) > SMALL_SHARD * 1.5
    assert {"report.json", "default/clean/eval.clean.jsonl", "default/contamination-report.csv"} <= set(found)
    assert {"true", "whole", "run"} <= {
        row[key] for row in world.csv_rows(folder, "contamination-report.csv") for key in ("flagged", "kind")
    }
    assert world.only_check(folder)["boilerplate_runs"] > 0


@pytest.mark.parametrize("jobs", ["2", "4"])
def test_workers_and_one_process_write_the_same_bytes(folder: Path, jobs: str) -> None:
    expected = uncached(folder)
    assert checked(folder, "--no-cache", "--engine", "process", "--jobs", jobs) == expected


def test_threads_and_one_process_write_the_same_bytes(folder: Path) -> None:
    expected = uncached(folder)
    assert checked(folder, "--no-cache", "--engine", "concurrent.futures:ThreadPoolExecutor") == expected


def test_workers_fill_the_cache_and_are_spared_by_it(folder: Path) -> None:
    expected = uncached(folder)
    assert checked(folder, "--engine", "process", "--jobs", "2") == expected
    (folder / "b.jsonl.gz").write_bytes(
        (folder / "b.jsonl.gz").read_bytes() + gzip.compress(b"\n" + line(ROWS[9]), mtime=0)
    )
    assert checked(folder, "--engine", "process", "--jobs", "2") == uncached(folder) != expected


def test_a_bad_record_stands_on_the_same_line_however_it_is_scanned(folder: Path) -> None:
    data = (folder / "a.jsonl").read_bytes().split(b"\n")
    for number in (3, 150, len(data) - 2):
        data[number] = b'{"text": "' + ROWS[3].encode()
    (folder / "a.jsonl").write_bytes(b"\n".join(data))
    expected = uncached(folder, code=3)
    assert [problem[1] for problem in world.problems(folder)] == [4, 151, len(data) - 1]
    assert checked(folder, code=3) == checked(folder, code=3) == expected
    assert checked(folder, "--no-cache", "--engine", "process", "--jobs", "2", code=3) == expected


NEW_ROWS = [sentence(f"new {i}", 14 + i) for i in range(4)]


def _new_rows(folder: Path) -> None:
    (folder / "e.jsonl").write_bytes(line(sentence("e") + NEW_ROWS[1]) * 3 + line(NEW_ROWS[2]))
    write_rows(folder, [*NEW_ROWS[:2], *ROWS, *NEW_ROWS[2:]])


def _changed_files(folder: Path) -> None:
    data = (folder / "a.jsonl").read_bytes()
    (folder / "a.jsonl").write_bytes(data[:30_000] + line(ROWS[20]) + data[30_000:])
    (folder / "d.txt").write_text(ROWS[21])


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: None,
    "files changed": _changed_files,
    "a file less": lambda folder: (folder / "c.csv").unlink(),
    "a file renamed": lambda folder: (folder / "a.jsonl").rename(folder / "zz.jsonl"),
    "new rows": _new_rows,
    "rows removed": lambda folder: write_rows(folder, ROWS[::2]),
    "all rows new": lambda folder: write_rows(folder, [sentence(f"other {i}") for i in range(30)] + ["selvo dralo"]),
    "rows in another order": lambda folder: write_rows(folder, ROWS[::-1]),
    "another N": lambda folder: write_config(folder, "n: 9\n"),
    "other fields": lambda folder: write_config(folder, train="  fields: [n, text]\n"),
    "another reading": lambda folder: write_config(folder, train="  max_record: 2000\n", extra="on_bad_record: skip\nmax_bad: 100%\n"),
    "short rows off": lambda folder: write_config(folder, "short_rows: off\n"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_cache_filled_before_a_change_gives_what_no_cache_gives(folder: Path, change: str) -> None:
    before = checked(folder)
    CHANGES[change](folder)
    code = world.check(folder, "--no-cache", "--quiet")
    expected = reports(folder)
    assert checked(folder, code=code) == expected
    assert checked(folder, code=code) == expected
    assert (before == expected) == (change == "nothing")


IN_PLACE = [name for name in CHANGES if not name.startswith("a file")]


def test_changes_one_after_the_other_give_what_no_cache_gives(folder: Path) -> None:
    for change in random.Random(7).choices(IN_PLACE, k=9):
        CHANGES[change](folder)
        code = world.check(folder, "--no-cache", "--quiet")
        expected = reports(folder)
        assert checked(folder, code=code) == expected, change


class Counted:
    """Scans in this process, and remembers what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scans: list[tuple[str, int, int]] = []
        original = scan_shard

        def counting(shard: Shard, index: object, *rest: object) -> ShardResult:
            self.scans.append((shard.file.path, shard.start, len(index.row_hash)))  # type: ignore[attr-defined]
            return original(shard, index, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr("evalspill_guard.engine.scan_shard", counting)

    def take(self) -> list[tuple[str, int, int]]:
        taken, self.scans = self.scans, []
        return taken


def test_what_is_unchanged_is_not_scanned_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    checked(folder)
    first = counted.take()
    checked(folder)
    assert len(first) > 13
    assert counted.take() == []


def test_only_the_shards_that_changed_are_scanned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked(folder)
    counted = Counted(monkeypatch)
    with (folder / "a.jsonl").open("ab") as file:
        file.write(b"\n" + line(ROWS[30]))
    checked(folder)
    assert [path for path, *_ in counted.take()] == ["a.jsonl"]


def test_only_new_rows_are_looked_for_and_removed_ones_cost_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(folder, "n: 9\n")
    checked(folder)
    counted = Counted(monkeypatch)
    write_rows(folder, [*ROWS, *NEW_ROWS])
    checked(folder)
    first = counted.take()
    assert {rows for *_, rows in first} == {len(NEW_ROWS)}
    write_rows(folder, ROWS[3:20])
    checked(folder)
    write_rows(folder, [*NEW_ROWS[::-1], *ROWS])
    checked(folder)
    assert counted.take() == []


def test_a_new_short_row_is_looked_for_in_what_was_scanned_before(folder: Path) -> None:
    short = ["drapek selrim kosta bage vovo", "tursta mige kolo"]
    write_config(folder, "n: 9\n")
    (folder / "d.txt").write_text(f"{sentence('d')} {short[0]} {sentence('e')}\n\n{short[1]}\n")
    checked(folder)
    for row in short:
        write_rows(folder, [*ROWS, row])
        assert checked(folder) == uncached(folder)
        assert row in (folder / "evalspill-reports/default/contamination-report.csv").read_text()


def test_sets_of_rows_that_change_each_day_do_not_pile_up(folder: Path) -> None:
    write_config(folder, "n: 9\n")
    for day in range(12):
        write_rows(folder, [sentence(f"day {day} {i}") for i in range(30)])
        world.check(folder, "--quiet")
    sizes = [path.stat().st_size for path in (folder.parent / "cache-of-the-test").rglob("*.sought")]
    assert max(sizes) < 7 * min(sizes)


def _by_hand(data: bytes, row: str) -> list[tuple[int, int]]:
    """(line, start) of the first four records of a file that hold a row, and nothing else decides."""
    places, at = [], 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        text = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if text.strip() and row in json.loads(text)["text"]:
            places.append((number, at))
        at += len(raw) + 1
    return places[:4]


@given(
    st.lists(
        st.tuples(st.integers(0, 120), st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])), max_size=40
    ),
    st.booleans(),
    st.integers(20, 400),
)
def test_line_numbers_are_exact_wherever_a_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[int, bool, str]], ends: bool, size: int
) -> None:
    row = "one two three four five six seven eight nine"
    data = b"".join(line("x " * length + (row if planted else ""), end) for length, planted, end in parts)
    data = data if ends else data.rstrip()
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_bytes(data)
    queries = [Query(row, "runs", 9, 9)]
    file = Shard(DataFile("a.jsonl", str(path)), Reading())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "SHARD_BYTES", size)
        scanned = scan_files([file], queries, build(queries), Means())[file]
    pool = Pool.of([scanned])
    places = [(place.line, place.start) for place in pool.findings.places.get(0, [])]
    assert places == _by_hand(data, row)
    assert pool.findings.count(np.array([0])).tolist() == [sum(planted for _, planted, _ in parts)]
    assert (scanned.seen.bytes, scanned.seen.records) == (len(data), len(parts))


def _two_shards(folder: Path) -> Shard:
    path = folder / "a.jsonl"
    path.write_bytes(line(sentence(1, 400)) * 5)
    return Shard(DataFile("a.jsonl", str(path)), Reading())


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n" + line(ROWS[0]))


@pytest.mark.parametrize("before", [0, 1])
def test_a_file_that_changes_while_its_shards_are_scanned_makes_the_scan_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_shards: None, before: int
) -> None:
    file = _two_shards(tmp_path)
    scans = []

    def changing(shard: Shard, *rest: object) -> ShardResult:
        if len(scans) == before:
            _append(Path(file.file.real))
        scans.append(shard)
        return scan_shard(shard, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("evalspill_guard.engine.scan_shard", changing)
    queries = [Query(ROWS[0], "runs", 12, 12)]
    pool = Pool.of(list(scan_files([file], queries, build(queries), Means()).values()))
    assert len(scans) > 1
    assert CHANGED in {problem.what for problem in pool.problems(_Demands(), "fail", 0)}  # type: ignore[arg-type]


class _Demands:
    max_empty = 1


def test_the_run_ends_with_three_when_a_file_grows_between_two_of_its_shards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown: list[int] = []

    def growing(shard: Shard, *rest: object) -> ShardResult:
        if shard.start and shard.file.path == "a.jsonl" and not grown:
            grown.append(shard.start)
            _append(folder / "a.jsonl")
        return scan_shard(shard, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr("evalspill_guard.engine.scan_shard", growing)
        checked(folder, code=3)
    assert ("a.jsonl", None, CHANGED) in world.problems(folder)
    assert checked(folder) == uncached(folder)


def test_progress_ends_with_all_bytes_and_no_file_left(folder: Path) -> None:
    told: list[tuple[int, int, int]] = []
    queries = [Query(ROWS[0], "runs", 12, 12)]
    files = [Shard(DataFile(name, str(folder / name)), Reading()) for name in ("a.jsonl", "c.csv")]
    scan_files(files, queries, build(queries), Means(), lambda *now: told.append(now))
    size = sum((folder / name).stat().st_size for name in ("a.jsonl", "c.csv"))
    assert told[-1] == (size, size, 0)
    assert [left for *_, left in told] == sorted((left for *_, left in told), reverse=True)


def _no_executor() -> None:
    raise AssertionError


@pytest.mark.parametrize("where", ["cache folder", "nowhere"])
def test_an_index_that_cannot_be_written_to_the_cache_goes_elsewhere_or_this_process_scans(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    expected = uncached(folder)
    real, tried = scan_module.save, []

    def full(index: RunIndex, at: Path) -> None:
        tried.append(at)
        if "cache-of-the-test" in at.parts or where == "nowhere":
            raise OSError(28, os.strerror(28))
        real(index, at)

    monkeypatch.setattr(scan_module, "save", full)
    assert checked(folder, "--engine", "concurrent.futures:ThreadPoolExecutor") == expected
    assert (len(tried), [path for path in tried if path.exists()]) == (2, [])


def test_the_index_of_a_scan_is_removed_and_so_is_an_old_one_that_was_left(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    old, recent = cache / "evalspill-index-old", cache / "evalspill-index-recent"
    for left in (old, recent):
        left.mkdir(parents=True)
        (left / "numbers.npy").touch()
    os.utime(old, (0, 0))
    checked(folder, "--cache-dir", str(cache), "--engine", "concurrent.futures:ThreadPoolExecutor")
    assert list(cache.glob("evalspill-index-*")) == [recent]


def test_a_single_shard_or_little_data_is_scanned_in_this_process() -> None:
    engine = Engine(_no_executor, 2, worth=1000)  # type: ignore[arg-type]
    one, two = Shard(DataFile("a", "a"), Reading()), Shard(DataFile("b", "b"), Reading())
    assert engine.for_work([one], 5000).executor is None
    assert engine.for_work([one, two], 999).executor is None
    assert engine.for_work([one, two], 1000) is engine
    assert Engine(_no_executor, 2).for_work([one], 1).executor is _no_executor  # type: ignore[arg-type]
