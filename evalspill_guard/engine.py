"""Run the scan of many shards on whatever has `submit`: this process, a pool of processes, a cluster.

The seam is `concurrent.futures`: a picklable function, a picklable task, a Future. The index travels as a path and
is opened once a worker.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from evalspill_guard.errors import UsageError
from evalspill_guard.index import RunIndex
from evalspill_guard.indexfile import opened
from evalspill_guard.model import Problem, Shard
from evalspill_guard.scanner import ShardResult, scan_shard

Done = Callable[[int, ShardResult], None]

_MORE_THAN_RUNNING = 1
_WORTH_STARTING = 1 << 24
_KILLED = "the worker that scanned this file was killed, perhaps for want of memory: run again with fewer --jobs"
_NEVER = "not scanned, since a worker was killed: run again with fewer --jobs"


@dataclass(frozen=True, slots=True)
class Task:
    """One shard to scan for what the index in a folder holds."""

    index: str
    shard: Shard


@dataclass(frozen=True, slots=True)
class Engine:
    """Where shards are scanned: `workers` at once, by executors that `executor` makes; None: in this process.

    With less than `worth` bytes to scan, or a single shard, this process is faster than starting others.
    """

    executor: Callable[[], Executor] | None
    workers: int
    worth: int = 0

    def for_work(self, shards: Sequence[Shard], size: int) -> Engine:
        """The engine to use for these shards, which hold so many bytes."""
        return Engine(None, 1) if self.worth and (size < self.worth or len(shards) < 2) else self


def scan_task(task: Task) -> ShardResult:
    """What a worker runs."""
    _mind_the_parent()
    return scan_shard(task.shard, _index(task.index))


@lru_cache(maxsize=2)
def _index(folder: str) -> RunIndex:
    return opened(Path(folder))


@lru_cache(maxsize=1)
def _mind_the_parent() -> None:
    """A worker process ends with the one that started it, however that ended, and leaves Ctrl-C to it."""
    parent = parent_process()
    if parent is None or threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def scan_all(
    shards: Sequence[Shard],
    index: RunIndex,
    folder: str,
    engine: Engine,
    done: Done,
    inside: Callable[[int], None] = lambda _: None,
) -> None:
    """Scan every shard; `done` is told the number of each and what it holds, in the order in which they end.

    `folder` is where the index is saved; it is not read where the shards are scanned in this process. Then `inside`
    is told the bytes read of the shard at hand.
    """
    if engine.executor is None:
        for number, shard in enumerate(shards):
            done(number, scan_shard(shard, index, inside))
        return
    with _executor(engine.executor) as executor:
        for number, future in _in_turn(executor, shards, folder, engine.workers + _MORE_THAN_RUNNING):
            done(number, _result(shards[number], future))


def _in_turn(
    executor: Executor, shards: Sequence[Shard], folder: str, most: int
) -> Iterator[tuple[int, Future[ShardResult] | None]]:
    """At most so many shards at a time are with the executor; None for those that it no longer takes."""
    waiting = iter(enumerate(shards))
    running: dict[Future[ShardResult], int] = {}
    while True:
        for number, shard in waiting:
            try:
                running[executor.submit(scan_task, Task(folder, shard))] = number
            except RuntimeError:  # broken, or shut down
                yield number, None
            if len(running) >= most:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future


def _result(shard: Shard, future: Future[ShardResult] | None) -> ShardResult:
    if future is None:
        return ShardResult.failed(Problem(shard.file.path, None, _NEVER))
    try:
        return future.result()
    except (BrokenExecutor, CancelledError, MemoryError):
        return ShardResult.failed(Problem(shard.file.path, None, _KILLED))
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        return ShardResult.failed(Problem(shard.file.path, None, f"the cluster gave up on it: {type(error).__name__}"))


@contextmanager
def _executor(make: Callable[[], Executor]) -> Iterator[Executor]:
    """An executor that ends with the block; whatever ends the block early stops the work that still runs."""
    executor = make()
    try:
        yield executor
    except BaseException:
        workers = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
        raise
    executor.shutdown()


def choose(name: str | None, jobs: int | None, scheduler: str | None) -> Engine:
    """The engine of this name: serial, process, dask, or module:factory of an Executor.

    `jobs` defaults to the processors that this process may use. Raises UsageError for what is not there.
    """
    workers = jobs or processors()
    if name in (None, "process", "serial"):
        if scheduler:
            raise UsageError("--scheduler needs --engine dask")
        pool = _process_pool(workers) if name == "process" or (workers > 1 and name is None) else None
        return Engine(pool, workers, 0 if name else _WORTH_STARTING)
    if name == "dask":
        return _dask(scheduler, workers)
    module, _, factory = str(name).partition(":")
    try:
        make: Callable[[], Any] = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--engine {name}: {type(error).__name__}; use serial, process, dask or module:factory"
        ) from None
    return Engine(make, workers)


def _process_pool(workers: int) -> Callable[[], Executor]:
    return lambda: ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _dask(scheduler: str | None, workers: int) -> Engine:
    if not scheduler:
        raise UsageError("--engine dask needs --scheduler tcp://host:8786")
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--engine dask needs the extra: pip install 'evalspill-guard[dask]'") from None
    try:
        client = Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--scheduler {scheduler}: {type(error).__name__}") from None
    threads = sum(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
    return Engine(lambda: client.get_executor(pure=False, retries=2), max(workers, threads))


def processors() -> int:
    """How many processors this process may use: its affinity, and the limit of its control group."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, _control_group_limit() or usable))


def _control_group_limit() -> int | None:
    """Processors that the control group grants, rounded up; None where it sets no limit."""
    for quota, period in (("cpu.max", None), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            numbers = [Path("/sys/fs/cgroup", name).read_text() for name in (quota, period) if name]
            granted, every = map(int, " ".join(numbers).split()[:2])
        except (OSError, ValueError):  # "max" is no number, and means no limit
            continue
        if granted > 0:
            return -(-granted // every)
    return None
