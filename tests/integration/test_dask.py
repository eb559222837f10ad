"""A real dask cluster on loopback: the same reports, also when workers die; and an end when nothing can be done."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import scratch
import world
from test_scan import SMALL_SHARD, corpus, reports, uncached

from evalspill_guard import readers

pytest.importorskip("distributed", reason="the extra dask is not installed")

# Loaded by the workers: each scan of a shard tells where it runs, takes its time, and may kill its worker.
PRELOAD = """
import os, signal, time
from pathlib import Path
from evalspill_guard import engine, scanner
notes, real = Path({notes!r}), scanner.scan_shard
def slow(shard, *rest):
    (notes / f"{{os.getpid()}}-{{shard.file.path}}-{{shard.start}}").touch()
    if shard.file.path == "poison.jsonl":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.15)
    return real(shard, *rest)
engine.scan_shard = slow
"""

CHECK = f"""
import sys
from evalspill_guard import cli, readers
if __name__ == "__main__":
    readers.SHARD_BYTES = {SMALL_SHARD}
    sys.argv[0] = "evalspill-guard"
    cli.main()
"""


class Cluster:
    """A scheduler and two workers."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.file, preload = folder / "scheduler.json", folder / "preload.py"
        preload.write_text(PRELOAD.format(notes=str(self.notes)))
        self.log = (folder / "cluster.log").open("wb")
        self.env = scratch.clean_env(
            DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1", PYTHONPATH=os.pathsep.join(sys.path)
        )
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        common = ("--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--preload", str(preload))
        self.workers = [self._start("worker", *common, "--local-directory", str(folder)) for _ in range(2)]

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], "--scheduler-file", str(self.file)]
        return subprocess.Popen(
            [*command, *arguments[1:]], stdout=self.log, stderr=self.log, env=self.env, start_new_session=True
        )

    @property
    def address(self) -> str:
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        found: str = json.loads(self.file.read_text())["address"]
        return found

    def seen(self) -> dict[int, int]:
        """How many shards each worker process began."""
        numbers = [int(path.name.partition("-")[0]) for path in self.notes.iterdir()]
        return {number: numbers.count(number) for number in set(numbers)}

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        self.log.close()


def wait_until(true: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    one = Cluster(tmp_path)
    try:
        yield one
    finally:
        one.stop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(readers, "SHARD_BYTES", SMALL_SHARD)
    return corpus(tmp_path / "data")


def start(folder: Path, cluster: Cluster, *arguments: str) -> subprocess.Popen[str]:
    """The gate on that cluster, in a process of its own."""
    engine = ("--engine", "dask", "--scheduler", cluster.address, "--quiet", *arguments)
    command = [sys.executable, "-c", CHECK, "check", "-c", str(folder / "evalspill.yaml"), *engine]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**cluster.env, **_cache()}
    )


def _cache() -> dict[str, str]:
    return {"EVALSPILL_CACHE_DIR": os.environ["EVALSPILL_CACHE_DIR"]}


def ended(process: subprocess.Popen[str], code: int) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == code, output
    return output


def test_a_cluster_writes_the_same_bytes_and_fills_the_cache(folder: Path, cluster: Cluster) -> None:
    expected = uncached(folder)
    assert "Traceback" not in ended(start(folder, cluster), 1)
    assert reports(folder) == expected
    assert len(cluster.seen()) == 2
    shards = sum(cluster.seen().values())
    ended(start(folder, cluster), 1)
    assert reports(folder) == expected
    assert sum(cluster.seen().values()) == shards


def test_the_shards_of_a_killed_worker_are_scanned_by_another(folder: Path, cluster: Cluster) -> None:
    expected = uncached(folder)
    process = start(folder, cluster, "--no-cache")
    wait_until(lambda: len(cluster.seen()) == 2)
    killed = min(cluster.seen())
    os.kill(killed, signal.SIGKILL)
    begun = cluster.seen()[killed]
    assert "Traceback" not in ended(process, 1)
    assert reports(folder) == expected
    assert cluster.seen()[killed] == begun < max(cluster.seen().values())


def test_a_shard_that_kills_every_worker_leaves_the_scan_incomplete_and_is_named(
    folder: Path, cluster: Cluster
) -> None:
    world.jsonl(folder / "poison.jsonl", [{"text": "a b c"}])
    ended(start(folder, cluster), 3)
    assert ("poison.jsonl", None, "the cluster gave up on it: KilledWorker") in world.problems(folder)
    (folder / "poison.jsonl").unlink()
    ended(start(folder, cluster), 1)
    assert reports(folder) == uncached(folder)


def test_without_its_scheduler_the_scan_ends_incomplete(folder: Path, cluster: Cluster) -> None:
    process = start(folder, cluster, "--no-cache")
    wait_until(lambda: len(cluster.seen()) == 2)
    cluster.scheduler.kill()
    ended(process, 3)
    assert {path for path, *_ in world.problems(folder)} >= {"b.jsonl.gz", "c.csv", "d.txt"}


def test_an_interrupt_ends_the_run_and_not_the_cluster(folder: Path, cluster: Cluster) -> None:
    process = start(folder, cluster, "--no-cache")
    wait_until(lambda: len(cluster.seen()) == 2)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert ended(process, 130).strip() == "interrupted"
    assert time.monotonic() - begin < 5
    expected = uncached(folder)
    ended(start(folder, cluster), 1)
    assert reports(folder) == expected


def test_a_cluster_of_which_nobody_is_there_is_wrong_use_at_once(folder: Path) -> None:
    begin = time.monotonic()
    assert world.check(folder, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1") == 2
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("address", ["nonsense", "foo://x:1", "127.0.0.1:abc", "tcp://", ":"])
def test_an_address_that_is_none_is_wrong_use(folder: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.check(folder, "--engine", "dask", "--scheduler", address) == 2
    assert capsys.readouterr().err == f"error: --scheduler {address}: ValueError\n"
