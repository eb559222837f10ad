"""The cache: never a wrong answer, whatever happened to its files; no text in it; never more than its bound."""

import contextlib
import errno
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import world
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from test_scan import ROWS, Counted, checked, corpus, folder, line, reports, small_shards, uncached, write_rows

from evalspill_guard import cache as cache_module
from evalspill_guard.cache import Cache, default_folder
from evalspill_guard.known import Known, Wanted
from evalspill_guard.model import DataFile, Reading, Shard
from evalspill_guard.scanner import ShardResult
from evalspill_guard.streams import file_stamp, range_digest

__all__ = ["folder", "small_shards"]  # fixtures
VERSION = f"evalspill-cache-v{cache_module.FORMAT}"


@pytest.fixture
def entries(tmp_path: Path) -> Path:
    return tmp_path / "cache-of-the-test" / VERSION


def _files(entries: Path, suffix: str = "") -> list[Path]:
    return sorted(path for path in entries.rglob(f"*{suffix}") if path.is_file())


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "zero bytes": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "cut off by a byte": lambda data: data[:-1],
    "one bit in the middle": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :],
    "one bit at the end": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "longer": lambda data: data + b"\0" * 8,
    "a pickle": lambda data: pickle.dumps([data]),
    "JSON of another kind": lambda data: b'["stamp", 1, null]',
    "a number": lambda data: b"7",
    "zeros": lambda data: bytes(len(data)),
}  # fmt: skip


@pytest.mark.parametrize("suffix", [".shard", ".sought", ".stamp", ""])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_as_good_as_absent_and_is_mended(
    folder: Path, entries: Path, damage: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = checked(folder)
    _age(folder)
    checked(folder)
    for path in _files(entries, suffix):
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert checked(folder) == expected
    counted = Counted(monkeypatch)
    assert checked(folder) == expected
    assert counted.take() == []


def _age(folder: Path) -> None:
    """Let the clock of the next run be an hour ahead: no file is so young that its times say nothing."""
    cache_module._RACY = -3600.0


@pytest.fixture(autouse=True)
def _racy_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_RACY", cache_module._RACY)


def test_an_entry_of_another_shard_is_not_believed(folder: Path, entries: Path) -> None:
    expected = checked(folder)
    shards = _files(entries, ".shard")
    contents = [path.read_bytes() for path in shards]
    for path, data in zip(shards, contents[1:] + contents[:1], strict=True):
        path.write_bytes(data)
    assert checked(folder) == expected


def test_folders_in_the_place_of_entries_are_as_good_as_no_cache(folder: Path, entries: Path) -> None:
    expected = checked(folder)
    for path in _files(entries):
        path.unlink()
        path.mkdir()
    assert checked(folder) == expected


def test_the_cache_holds_no_word_of_a_row_or_a_record(folder: Path, entries: Path) -> None:
    secret = "zyxomma quintaglio perzikstra vlunderbat"
    (folder / "e.jsonl").write_bytes(
        line(f"{secret} {ROWS[3]} {secret}") + b'{"text": "zyxomma bad\n' + line(secret * 5)
    )
    write_rows(folder, [*ROWS, f"{secret} {ROWS[3]} {secret}", secret])
    _age(folder)
    checked(folder, code=3)
    held = b"".join(bytes(path) + path.read_bytes() for path in _files(entries))
    words = {word for text in [secret, *ROWS] for word in text.split() if len(word) > 4}
    assert len(held) > 10_000
    assert len(words) > 10
    assert [word for word in words if word.encode() in held or word.encode("utf-16-le") in held] == []


def test_the_cache_holds_no_name_of_a_file(folder: Path, entries: Path) -> None:
    _age(folder)
    checked(folder)
    assert [path for path in _files(entries) if b"a.jsonl" in path.read_bytes() or folder.name in path.name] == []


def test_a_file_that_is_read_for_its_times_is_not_opened_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _age(folder)
    expected = checked(folder)
    monkeypatch.setattr(cache_module, "range_digest", _never)
    assert checked(folder) == expected


def _never(*_: object) -> str:
    raise AssertionError("the bytes of an unchanged file were read")


def test_a_file_written_to_just_before_it_was_read_is_told_by_its_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(folder)
    read: list[int] = []
    monkeypatch.setattr(cache_module, "range_digest", lambda *of: read.append(1) or range_digest(*of))
    checked(folder)
    assert len(read) > 13


def _replanted(path: Path) -> None:
    """Other content of the same size under the same time of modification."""
    known, data = path.stat(), path.read_bytes()
    other = data.replace(ROWS[4].encode(), ROWS[4].upper().replace(" ", "x").encode())
    assert (len(other), other == data) == (len(data), False)
    path.write_bytes(other)
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))


@pytest.mark.parametrize("old", [True, False])
def test_other_content_of_the_same_size_and_time_is_noticed(folder: Path, old: bool) -> None:
    if old:
        _age(folder)
    before = checked(folder)
    _replanted(folder / "c.csv")
    after = checked(folder)
    assert after == uncached(folder)
    assert after != before


def test_a_state_is_remembered_only_where_it_is_older_than_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard, result = _stored(tmp_path)
    early, late = Cache(tmp_path / "early"), Cache(tmp_path / "late")
    early._began = max(result.stamp[1:3]) / 1e9 + 2.9  # type: ignore[index]
    late._began = max(result.stamp[1:3]) / 1e9 + 3.1  # type: ignore[index]
    for one in (early, late):
        one.remember({shard: result})
    assert [_files(tmp_path / name, ".stamp") != [] for name in ("early", "late")] == [False, True]


def test_a_fresh_checkout_is_answered_by_its_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = checked(folder)
    elsewhere = tmp_path / "elsewhere" / "data"
    shutil.copytree(folder, elsewhere, ignore=shutil.ignore_patterns("evalspill-reports"))
    counted = Counted(monkeypatch)
    assert checked(elsewhere) == expected
    assert counted.take() == []


def test_a_file_under_a_new_name_is_answered_by_its_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked(folder)
    (folder / "a.jsonl").rename(folder / "z.jsonl")
    counted = Counted(monkeypatch)
    found = checked(folder)
    assert counted.take() == []
    assert found == uncached(folder)


def _stored(tmp_path: Path) -> tuple[Shard, ShardResult]:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("some text"))
    file = DataFile("a.jsonl", str(path))
    ids = np.array([3, 5])
    where = np.array([[3, 1, 0, 0], [5, 1, 0, 0], [5, 2, 9, 1]])
    digest = range_digest(file, 0, None)
    stamp = file_stamp(file)
    return Shard(file, Reading()), ShardResult(ids, np.array([1, 2]), where, 2, 0, 0, 2, 20, digest, (), None, stamp)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"found": 2', b'"found": 1e400'),
        (b'"found": 2', b'"found": 2.0'),
        (b'"found": 2', b'"found": -2'),
        (b'"found": 2', b'"found": 9' + b"9" * 5000),
        (b'"numbers": [2', b'"numbers": [1e400'),
        (b'"numbers": [2', b'"numbers": [-1'),
        (b'"numbers": [2', b'"numbers": [99999999999999999999'),
        (b'"bad_records": []', b'"bad_records": [[1e400, "not JSON"]]'),
        (b'"bad_records": []', b'"bad_records": ' + b"[" * 100_000),
    ],
)
def test_no_number_of_an_entry_is_believed_that_none_of_ours_has(tmp_path: Path, old: bytes, new: bytes) -> None:
    """Its sum is right, as only somebody who means it can make it."""
    shard, result = _stored(tmp_path)
    cache = Cache(tmp_path / "c")
    cache.store(shard, Known.of(result, KEYS, cache.keep(np.sort(KEYS))))
    (path,) = _files(tmp_path, ".shard")
    assert Cache(tmp_path / "c").known(shard, file_stamp(shard.file)) is not None
    body = path.read_bytes()[16:]
    assert body.count(old) == 1
    body = body.replace(old, new)
    path.write_bytes(xxhash.xxh3_128_digest(body) + body)
    assert Cache(tmp_path / "c").known(shard, file_stamp(shard.file)) is None


def test_a_state_that_is_nested_too_deeply_is_as_good_as_absent(tmp_path: Path) -> None:
    shard, result = _stored(tmp_path)
    cache = Cache(tmp_path / "c")
    cache.store(shard, Known.of(result, KEYS, cache.keep(np.sort(KEYS))))
    path = cache._stamp_path(shard.file)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"[" * 100_000)
    assert Cache(tmp_path / "c").known(shard, file_stamp(shard.file)) is not None


def _answered(cache: Cache, shard: Shard, wanted: Wanted) -> ShardResult | None:
    known = cache.known(shard, file_stamp(shard.file))
    return known.answer(wanted) if known else None


KEYS = np.array([40, 10, 70, 30, 20, 50], dtype=np.uint64)


def test_what_was_stored_is_known_under_the_ids_of_another_index(tmp_path: Path) -> None:
    shard, result = _stored(tmp_path)
    cache = Cache(tmp_path / "c")
    cache.store(shard, Known.of(result, KEYS, cache.keep(np.sort(KEYS))))
    later = Cache(tmp_path / "c")
    known = later.known(shard, file_stamp(shard.file))
    assert known is not None
    assert later.lacks(known.sought, Wanted.of(KEYS)).tolist() == []
    assert later.lacks(known.sought, Wanted.of(np.array([30, 31], dtype=np.uint64))).tolist() == [31]
    answer = known.answer(Wanted.of(np.array([50, 99, 30], dtype=np.uint64)))
    assert (answer.ids.tolist(), answer.counts.tolist()) == ([0, 2], [2, 1])
    assert answer.where.tolist() == [[0, 1, 0, 0], [0, 2, 9, 1], [2, 1, 0, 0]]
    assert (answer.records, answer.lines, answer.bytes, answer.digest) == (2, 2, 20, result.digest)
    assert known.answer(Wanted.of(KEYS[:0])).where.tolist() == []


@pytest.mark.parametrize(
    "other",
    [
        {"fields": ("text",)},
        {"records": "a"},
        {"split": "line"},
        {"delimiter": ";"},
        {"header": False},
        {"max_record": 9},
    ],
)
def test_an_entry_belongs_to_the_way_of_reading(tmp_path: Path, other: dict[str, object]) -> None:
    shard, result = _stored(tmp_path)
    cache = Cache(tmp_path / "c")
    cache.store(shard, Known.of(result, KEYS, cache.keep(np.sort(KEYS))))
    wanted = Wanted.of(KEYS)
    assert _answered(cache, shard, wanted) is not None
    assert _answered(cache, replace(shard, reading=replace(shard.reading, **other)), wanted) is None


def test_the_same_bytes_under_another_suffix_are_another_entry(tmp_path: Path) -> None:
    shard, result = _stored(tmp_path)
    cache = Cache(tmp_path / "c")
    cache.store(shard, Known.of(result, KEYS, cache.keep(np.sort(KEYS))))
    text = DataFile("a.txt", str(tmp_path / "a.txt"))
    shutil.copy(shard.file.real, text.real)
    same = DataFile("b/c.jsonl", text.real)
    assert _answered(cache, replace(shard, file=text), Wanted.of(KEYS)) is None
    assert _answered(cache, replace(shard, file=same), Wanted.of(KEYS)) is not None


def _of(pairs: dict[int, int], number: int) -> Known:
    """A scan that found these keys so many times, on lines of this number."""
    keys = np.array(list(pairs), dtype=np.uint64)
    counts = np.array(list(pairs.values()), dtype=np.int64)
    where = np.array([[i, number, i, i] for i in range(len(keys))], dtype=np.int64).reshape(-1, 4)
    result = ShardResult(np.arange(len(keys)), counts, where, 1, 0, 0, 1, 1, "00", (), None)
    return Known.of(result, keys, "")


PAIRS = st.dictionaries(st.integers(0, 12), st.integers(1, 9), max_size=8)


@given(PAIRS, PAIRS, st.lists(st.integers(0, 12), unique=True, max_size=9))
def test_two_scans_together_answer_for_both_and_the_first_stands(
    old: dict[int, int], new: dict[int, int], asked: list[int]
) -> None:
    keys = np.array(asked, dtype=np.uint64)
    answer = _of(old, 1).and_more(_of(new, 2), "").answer(Wanted.of(keys))
    both = {**new, **old}
    expected = {i: both[key] for i, key in enumerate(asked) if key in both}
    assert dict(zip(answer.ids.tolist(), answer.counts.tolist(), strict=True)) == expected
    lines = {asked[found]: at for found, at, *_ in answer.where.tolist()}
    assert lines == {key: 1 if key in old else 2 for key in asked if key in both}
    assert answer.ids.tolist() == sorted(answer.ids.tolist())


def _cache_of(tmp_path: Path, ages: list[int]) -> tuple[Cache, list[Path]]:
    cache = Cache(tmp_path)
    paths = []
    for number, age in enumerate(ages):
        path = cache.folder / "shards" / "00" / f"{number}.shard"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
        paths.append(path)
    return cache, paths


def test_the_entries_longest_out_of_use_go_first(tmp_path: Path) -> None:
    cache, paths = _cache_of(tmp_path, [5, 1, 9, 3])
    cache.trim(250)
    assert [path.exists() for path in paths] == [False, True, False, True]
    cache.trim(200)
    assert [path.exists() for path in paths] == [False, True, False, True]


def test_reading_an_entry_is_a_use(folder: Path, entries: Path) -> None:
    checked(folder)
    for path in _files(entries):
        os.utime(path, (1, 1))
    checked(folder)
    assert [path.name for path in _files(entries) if path.stat().st_mtime < 1e9] == []


def test_a_run_keeps_the_cache_below_its_bound_and_the_newest_entries_in_it(
    folder: Path, entries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MOST_BYTES", 20_000)
    expected = checked(folder)
    assert 0 < sum(path.stat().st_size for path in _files(entries)) <= 20_000
    assert checked(folder) == expected


def test_entries_of_other_versions_are_trimmed_and_nothing_that_is_not_ours(tmp_path: Path) -> None:
    old, foreign = tmp_path / "evalspill-cache-v0/shards/x.shard", tmp_path / "v1/shards/x.shard"
    named = tmp_path / VERSION / "notes.txt"
    for path in (old, foreign, named):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100))
    Cache(tmp_path).trim(0)
    assert [path.exists() for path in (old, foreign, named)] == [False, True, True]


def test_what_killed_runs_left_half_written_is_removed_once_it_is_old(tmp_path: Path) -> None:
    old, young = (tmp_path / VERSION / "shards" / name for name in ("a.new", "b.new"))
    old.parent.mkdir(parents=True)
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 4000,) * 2)
    Cache(tmp_path).trim()
    assert [path.exists() for path in (old, young)] == [False, True]


@contextlib.contextmanager
def _no_writing(number: int) -> "object":
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache_module, "tempfile", _Refusing(refuse))
        patch.setattr(cache_module.os, "utime", refuse)
        yield


class _Refusing:
    def __init__(self, refuse: Callable[..., None]) -> None:
        self.NamedTemporaryFile, self.gettempdir = refuse, tempfile.gettempdir


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_cache_that_cannot_be_written_is_as_good_as_none(folder: Path, number: int) -> None:
    expected = uncached(folder)
    with _no_writing(number):
        assert checked(folder) == checked(folder) == expected


def test_a_cache_that_cannot_be_written_is_still_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = checked(folder)
    counted = Counted(monkeypatch)
    with _no_writing(errno.EROFS):
        assert checked(folder) == expected
    assert counted.take() == []


def test_a_disk_that_fills_up_in_the_middle_of_an_entry_leaves_no_part_of_it(
    folder: Path, entries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(cache_module.os, "replace", full)
        world.check(folder, "--quiet")
    assert _files(entries) == []


@pytest.mark.parametrize("cache", ["file", "device", "below a file"])
def test_a_cache_folder_that_cannot_be_is_as_good_as_none(folder: Path, tmp_path: Path, cache: str) -> None:
    (tmp_path / "file").write_text("x")
    where = {"file": tmp_path / "file", "device": Path(os.devnull), "below a file": tmp_path / "file/deep/er"}[cache]
    arguments = ("--cache-dir", str(where), "--engine", "concurrent.futures:ThreadPoolExecutor")
    assert checked(folder, *arguments) == uncached(folder)


def test_the_folder_is_that_of_the_command_line_then_of_the_environment_then_of_the_user(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(folder, "--cache-dir", str(tmp_path / "named"))
    assert (tmp_path / "named").is_dir()
    assert not (tmp_path / "cache-of-the-test").exists()
    checked(folder)
    assert (tmp_path / "cache-of-the-test").is_dir()
    monkeypatch.delenv("EVALSPILL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "evalspill-guard"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "evalspill-guard"


def test_no_cache_reads_and_writes_nothing(folder: Path, tmp_path: Path) -> None:
    uncached(folder)
    assert not (tmp_path / "cache-of-the-test").exists()


def test_without_a_home_nothing_is_kept_and_the_run_is_right(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    expected = uncached(folder)
    monkeypatch.delenv("EVALSPILL_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    arguments = ("--engine", "concurrent.futures:ThreadPoolExecutor")
    assert checked(folder, *arguments) == checked(folder, *arguments) == expected


def _started(folder: Path, *arguments: str, **more: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evalspill_guard", "check", "-c", str(folder / "evalspill.yaml"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)  # type: ignore[call-overload]


def test_two_runs_at_once_share_a_cache_and_both_are_right(tmp_path: Path) -> None:
    folders = [corpus(tmp_path / name) for name in ("one", "two")]
    expected = uncached(folders[0])
    shutil.rmtree(folders[0] / "evalspill-reports")
    for _ in range(2):
        runs = [_started(folder) for folder in folders]
        outputs = [run.communicate(timeout=60)[0] for run in runs]
        assert [run.returncode for run in runs] == [1, 1], outputs
        assert reports(folders[0]) == reports(folders[1]) == expected


KILLED_WHILE_WRITING = """
import os, signal, sys
from evalspill_guard import cache
from evalspill_guard.cli import run_command
writes = []
real = os.replace
def stop(source, target):
    if str(target).endswith(".shard"):
        writes.append(target)
        if len(writes) == 3:
            with open(source, "r+b") as file:
                file.truncate(40)
            os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
os.replace = stop
run_command(["check", "-c", sys.argv[1]])
"""


def test_after_a_kill_while_an_entry_is_written_the_next_run_is_right(tmp_path: Path) -> None:
    folder, entries = corpus(tmp_path / "data"), tmp_path / "cache-of-the-test" / VERSION
    expected = uncached(folder)
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, folder / "evalspill.yaml"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(_files(entries, ".shard")) == 2
    assert len(_files(entries, ".new")) == 1
    assert checked(folder) == expected


def test_a_fault_of_a_file_is_never_kept(folder: Path, entries: Path) -> None:
    whole = (folder / "b.jsonl.gz").read_bytes()
    (folder / "b.jsonl.gz").write_bytes(whole[:-20])
    _age(folder)
    expected = uncached(folder, code=3)
    assert checked(folder, code=3) == checked(folder, code=3) == expected
    (folder / "b.jsonl.gz").write_bytes(whole)
    assert checked(folder) == uncached(folder)


def test_old_digests_of_a_file_go_when_it_changes(tmp_path: Path) -> None:
    shard, result = _stored(tmp_path)
    for size in (100, 200, 300):
        cache = Cache(tmp_path / "c")
        cache._began += 100
        cache.remember({replace(shard, end=size): replace(result, stamp=(size, 1, 1, 1))})
    (kept,) = _files(tmp_path / "c", ".stamp")
    assert json.loads(kept.read_bytes()) == {"stamp": [300, 1, 1, 1], "digests": {"0-300": result.digest}}


def test_what_is_read_of_a_file_that_changes_meanwhile_is_not_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard, result = _stored(tmp_path)
    cache = Cache(tmp_path / "c")
    cache.store(shard, Known.of(result, KEYS, cache.keep(np.sort(KEYS))))
    stamp = file_stamp(shard.file)
    assert cache.known(shard, stamp) is not None
    with Path(shard.file.real).open("ab") as file:
        file.write(b"\n")
    monkeypatch.setattr(cache_module, "range_digest", lambda *_: result.digest)
    assert cache.known(shard, stamp) is None
