"""Engines: which one is chosen, and what is left when workers, or the process that started them, are killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
import world
from test_scan import ROWS, checked, corpus, line, sentence, uncached

from evalspill_guard import engine as engine_module
from evalspill_guard import executors
from evalspill_guard.engine import SERIAL, Engine, scan_all, scan_task
from evalspill_guard.executors import choose, processors
from evalspill_guard.index import Query
from evalspill_guard.indexfile import save
from evalspill_guard.indexing import build
from evalspill_guard.model import DataFile, Reading, Shard
from evalspill_guard.scanner import ShardResult

# Names of engines that these tests make: --engine test_engine:NAME.


class Refusing(ThreadPoolExecutor):
    """Takes two tasks, then no more, as a broken pool does."""

    taken = 0

    def submit(self, *task: object, **more: object) -> Future:  # type: ignore[override,type-arg]
        self.taken += 1
        if self.taken > 2:
            raise RuntimeError("cannot schedule new futures")
        return super().submit(*task, **more)  # type: ignore[arg-type]


class Bare(Executor):
    """No more than the interface asks for: it knows no cancel_futures, and runs what it is given at once."""

    ended: ClassVar[list[bool]] = []

    def submit(self, function: Callable[..., object], *arguments: object) -> Future:  # type: ignore[override,type-arg]
        future: Future[object] = Future()
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        self.ended.append(wait)


class Starved(Bare):
    def submit(self, function: Callable[..., object], *arguments: object) -> Future:  # type: ignore[override,type-arg]
        future: Future[object] = Future()
        future.set_exception(MemoryError())
        return future


def nothing() -> None:
    """A factory of no executor."""


def broken() -> Executor:
    raise ValueError("no")


not_callable = 7


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return corpus(tmp_path / "data")


def _code(folder: Path, *arguments: str) -> int:
    return world.check(folder, "--no-cache", "--quiet", *arguments)


@pytest.mark.parametrize("name", ["ThreadPoolExecutor", "ProcessPoolExecutor"])
def test_any_executor_of_the_standard_library_is_an_engine(folder: Path, name: str) -> None:
    assert checked(folder, "--no-cache", "--engine", f"concurrent.futures:{name}") == uncached(folder)


def test_an_executor_with_no_more_than_the_interface_is_an_engine(folder: Path) -> None:
    Bare.ended.clear()
    assert checked(folder, "--no-cache", "--engine", "test_engine:Bare") == uncached(folder)
    assert Bare.ended == [True]


@pytest.mark.parametrize(
    "name",
    ["", "nonsense", "nonsense:x", "os", "os:", "os:nonsense", ":x", ".x:y", "a b:c", "test_engine:not_callable",
     "test_engine:nothing", "test_engine:broken", "json:dumps", "Serial", "test_engine:Engine"],
)  # fmt: skip
def test_a_wrong_engine_is_wrong_use(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _code(folder, "--engine", name) == 2
    assert f"--engine {name}" in capsys.readouterr().err
    assert not (folder / "evalspill-reports").exists()


@pytest.mark.parametrize(
    "engine", [[], ["--engine", "serial"], ["--engine", "process"], ["--engine", "test_engine:Bare"]]
)
def test_a_scheduler_without_dask_is_wrong_use(
    folder: Path, engine: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _code(folder, *engine, "--scheduler", "tcp://127.0.0.1:8786") == 2
    assert "--engine dask" in capsys.readouterr().err


def test_dask_without_a_scheduler_is_wrong_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _code(folder, "--engine", "dask") == 2
    assert "--scheduler" in capsys.readouterr().err


def test_dask_that_is_not_installed_is_wrong_use_and_names_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert _code(folder, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1") == 2
    assert "evalspill-guard[dask]" in capsys.readouterr().err


def test_little_data_and_one_job_need_no_workers() -> None:
    assert choose(None, 1, None) is SERIAL
    assert choose("serial", 8, None) is SERIAL
    assert (choose(None, 3, None).workers, choose(None, 3, None).worth > 1_000_000) == (3, True)
    assert (choose("process", 3, None).workers, choose("process", 3, None).worth) == (3, 0)
    assert choose("process", None, None).workers == processors()


def test_an_executor_that_takes_no_more_leaves_the_scan_incomplete(folder: Path) -> None:
    assert _code(folder, "--jobs", "1", "--engine", "test_engine:Refusing") == 3
    assert [path for path, *_ in world.problems(folder)] == ["c.csv", "d.txt"]


def test_a_worker_without_memory_leaves_the_scan_incomplete(folder: Path) -> None:
    assert _code(folder, "--engine", "test_engine:Starved") == 3
    found = world.problems(folder)
    lost = [path for path, _, what in found if "memory" in what]
    assert lost == ["a.jsonl", "b.jsonl.gz", "c.csv", "d.txt"]


def _shards(folder: Path, count: int = 4) -> list[Shard]:
    shards = []
    for number in range(count):
        path = folder / f"{number}.jsonl"
        path.write_bytes(line(f"{number} {ROWS[0]}") * 3)
        shards.append(Shard(DataFile(path.name, str(path)), Reading()))
    return shards


def test_a_worker_that_does_not_see_the_index_says_so(tmp_path: Path) -> None:
    (shard,) = _shards(tmp_path, 1)
    fault = scan_task(engine_module.Task(str(tmp_path / "elsewhere"), shard)).fault
    assert fault is not None
    assert (fault.path, "--cache-dir" in fault.what) == ("0.jsonl", True)


def test_few_tasks_wait_in_the_executor(tmp_path: Path) -> None:
    shards, index = _shards(tmp_path, 12), build([Query(ROWS[0], "runs", 12, 12)])
    (tmp_path / "index").mkdir()
    save(index, tmp_path / "index")
    handed, taken = [], []

    class Watched(ThreadPoolExecutor):
        def submit(self, *task: object, **more: object) -> Future:  # type: ignore[override,type-arg]
            handed.append(len(handed) - len(taken))
            return super().submit(*task, **more)  # type: ignore[arg-type]

    def done(number: int, result: ShardResult) -> None:
        taken.append((number, result.records, result.counts.tolist()[0]))

    scan_all(shards, index, str(tmp_path / "index"), Engine(lambda: Watched(2), 2), done)
    assert sorted(taken) == [(number, 3, 3) for number in range(12)]
    assert max(handed) <= 2


class Interrupted(Bare):
    def submit(self, function: Callable[..., object], *arguments: object) -> Future:  # type: ignore[override,type-arg]
        raise KeyboardInterrupt


def test_an_interrupt_ends_any_executor_without_waiting(folder: Path) -> None:
    Bare.ended.clear()
    assert _code(folder, "--engine", "test_engine:Interrupted") == 130
    assert Bare.ended == [False]


# What the control groups grant. A fake root stands for /proc and /sys.


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(executors, "_ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    return tmp_path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("limit", "granted"),
    [("max 100000", 16), ("400000 100000", 4), ("150000 100000", 2), ("50000 100000", 1), ("9900000 100000", 16),
     ("", 16), ("nonsense", 16), ("200000", 16), ("0 100000", 1)],
)  # fmt: skip
@pytest.mark.parametrize("group", ["/", "/a.slice/b.scope"])
def test_the_limit_of_a_control_group_counts(root: Path, limit: str, granted: int, group: str) -> None:
    _write(root / "proc/self/cgroup", f"0::{group}\n")
    _write(root / f"sys/fs/cgroup{group}/cpu.max", limit + "\n")
    assert processors() == granted


def test_the_limit_of_a_group_around_ours_counts(root: Path) -> None:
    _write(root / "proc/self/cgroup", "0::/pod/container\n")
    _write(root / "sys/fs/cgroup/pod/cpu.max", "300000 100000")
    _write(root / "sys/fs/cgroup/pod/container/cpu.max", "max 100000")
    assert processors() == 3


@pytest.mark.parametrize(("quota", "granted"), [("-1", 16), ("250000", 3)])
@pytest.mark.parametrize("place", ["", "docker/abc/"])
def test_the_limit_of_an_old_control_group_counts(root: Path, quota: str, granted: int, place: str) -> None:
    _write(root / "proc/self/cgroup", "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n")
    _write(root / f"sys/fs/cgroup/cpu/{place}cpu.cfs_quota_us", quota)
    _write(root / f"sys/fs/cgroup/cpu/{place}cpu.cfs_period_us", "100000")
    assert processors() == granted


def test_without_control_groups_the_affinity_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert processors() == 16
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert processors() == 1


# Real processes that are killed. The files are large enough that the scan still runs when the signal comes.


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset repository that takes workers some seconds."""
    folder = tmp_path_factory.mktemp("busy")
    block = b"".join(line(sentence(f"busy {number}", 150)) for number in range(1500))
    for number in range(6):
        (folder / f"{number}.jsonl").write_bytes(block * 9)
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in ROWS])
    world.config(folder, train="'[0-9].jsonl'")
    return folder


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    shutil.rmtree(folder / "evalspill-reports", ignore_errors=True)
    command = [sys.executable, "-m", "evalspill_guard", "check", "-c", str(folder / "evalspill.yaml"), *arguments]
    with (folder / "output.log").open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)


def _output(folder: Path) -> str:
    return (folder / "output.log").read_text()


def _until(true: Callable[[], object], seconds: float = 20) -> float:
    """Wait until something is true; the seconds that it took."""
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < seconds, "waited too long"
        time.sleep(0.02)
    return time.monotonic() - begin


@pytest.fixture
def running(busy: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run with two workers, both of which are scanning."""
    process = _start(busy, "--engine", "process", "--jobs", "2")
    _until(lambda: len(world.workers(process.pid)) == 2 or process.poll() is not None)
    _until(lambda: sum(_has_open(number, busy) for number in world.workers(process.pid)) == 2)
    yield process
    for number in [process.pid, *world.session(process.pid)]:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait(10)


def _has_open(number: int, folder: Path) -> bool:
    links = []
    for link in Path(f"/proc/{number}/fd").glob("*"):
        try:
            links.append(os.readlink(link))  # noqa: PTH115
        except OSError:
            continue
    return any(link.startswith(str(folder)) and link.endswith("jsonl") for link in links)


linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds its processes in /proc")


@linux
def test_a_killed_worker_leaves_the_scan_incomplete_and_nothing_running(
    busy: Path, running: subprocess.Popen[bytes]
) -> None:
    os.kill(world.workers(running.pid)[0], signal.SIGKILL)
    assert running.wait(20) == 3
    found = [problem for problem in world.problems(busy) if "lost" in problem[2] or "not scanned" in problem[2]]
    assert {path for path, *_ in found} <= {f"{number}.jsonl" for number in range(6)}
    assert [what for path, _, what in found if path == "0.jsonl"] == [engine_module._LOST]
    _until(lambda: not world.session(running.pid), 3)
    assert "Traceback" not in _output(busy)
    assert checked(busy, "--jobs", "1", code=0) == uncached(busy, code=0)


@linux
def test_workers_never_see_ctrl_c(running: subprocess.Popen[bytes]) -> None:
    states = [Path(f"/proc/{number}/status").read_text() for number in world.workers(running.pid)]
    blocked = [int(state.partition("SigBlk:")[2].split()[0], 16) for state in states]
    assert [mask >> (signal.SIGINT - 1) & 1 for mask in blocked] == [1, 1]


@linux
def test_workers_end_by_themselves_when_the_process_that_started_them_is_killed(
    busy: Path, running: subprocess.Popen[bytes]
) -> None:
    workers = world.workers(running.pid)
    os.kill(running.pid, signal.SIGKILL)
    running.wait(5)
    assert len(workers) == 2
    _until(lambda: not world.session(running.pid), 3)


@linux
def test_ctrl_c_ends_everything_at_once_and_says_so_in_a_word(busy: Path, running: subprocess.Popen[bytes]) -> None:
    os.killpg(running.pid, signal.SIGINT)
    begin = time.monotonic()
    assert running.wait(10) == 130
    assert time.monotonic() - begin < 1.5
    _until(lambda: not world.session(running.pid), 1)
    assert _output(busy).strip() == "interrupted"
    assert not (busy / "evalspill-reports").exists()


@linux
def test_sigterm_ends_a_run_as_ctrl_c_does(busy: Path, running: subprocess.Popen[bytes]) -> None:
    os.kill(running.pid, signal.SIGTERM)
    assert running.wait(10) == 130
    _until(lambda: not world.session(running.pid), 1)
    assert _output(busy).strip() == "interrupted"
    assert not (busy / "evalspill-reports").exists()


@linux
@pytest.mark.parametrize("moment", [0.0, 0.05, 0.15, 0.3])
def test_ctrl_c_while_workers_start_leaves_no_traceback(busy: Path, moment: float) -> None:
    process = _start(busy, "--engine", "process", "--jobs", "2", "--no-cache")
    _until(lambda: world.workers(process.pid) or process.poll() is not None)
    time.sleep(moment)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    _until(lambda: not world.session(process.pid), 2)
    assert _output(busy).strip() == "interrupted"


@linux
def test_a_run_that_ends_well_leaves_no_process_and_no_index(folder: Path, tmp_path: Path) -> None:
    process = _start(folder, "--engine", "process", "--jobs", "2", "--exit-zero", "--format", "json")
    assert process.wait(60) == 0
    _until(lambda: not world.session(process.pid), 2)  # the tracker of shared resources ends after us
    assert world.session(process.pid) == {}
    assert list((tmp_path / "cache-of-the-test").glob("evalspill-index-*")) == []
    assert json.loads(_output(folder))["exit_code"] == 1
