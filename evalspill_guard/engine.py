"""Run the scan of many shards on whatever has `submit`: this process, a pool of processes, a cluster.

The seam is `concurrent.futures`: a picklable function, a picklable task, a Future. The index travels as a path and
is opened once a worker.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalspill_guard.index import RunIndex
from evalspill_guard.indexfile import opened
from evalspill_guard.model import Problem, Shard
from evalspill_guard.scanner import ShardResult, scan_shard

Done = Callable[[int, Any], None]
Work = Callable[..., Any]
"""Called as scan_shard is, with a shard, an index and whom to tell; it can be pickled, and its result tells a fault."""

_LOOK_EVERY = 5.0  # seconds
_LOST = "lost with a worker that was killed, perhaps for want of memory: run again with fewer --jobs"
_NEVER = "not scanned, since a worker was killed: run again with fewer --jobs"
_GONE = "not scanned: the workers cannot be reached any more"
_UNSEEN = "the worker does not see the index: --cache-dir must name a folder that all workers share"


@dataclass(frozen=True, slots=True)
class Task:
    """One shard to scan for what the index in a folder holds, or to do other work with."""

    index: str
    shard: Shard
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """Where shards are scanned: `workers` at once, by executors that `executor` makes; None: in this process.

    With less than `worth` bytes to scan, or a single shard, this process is faster than starting others.
    """

    executor: Callable[[], Executor] | None
    workers: int
    worth: int = 0
    reached: Callable[[], bool] = lambda: True  # whether its workers can be; a cluster may go without a word

    def for_work(self, shards: Sequence[Shard], size: int) -> Engine:
        """The engine to use for these shards, which hold so many bytes."""
        return SERIAL if self.worth and (size < self.worth or len(shards) < 2) else self


SERIAL = Engine(None, 1)


def scan_task(task: Task) -> Any:
    """What a worker runs."""
    try:
        index = _index(task.index)
    except OSError:
        return _failed(task.shard, _UNSEEN)
    return (task.work or scan_shard)(task.shard, index)


@lru_cache(maxsize=2)
def _index(folder: str) -> RunIndex:
    return opened(Path(folder))


def scan_all(
    shards: Sequence[Shard],
    index: RunIndex,
    folder: str,
    engine: Engine,
    done: Done,
    inside: Callable[[int], None] = lambda _: None,
    works: Sequence[Work] | None = None,
) -> None:
    """Scan every shard; `done` is told the number of each and what it holds, in the order in which they end.

    `folder` is where the index is saved; it is not read where the shards are scanned in this process. Then `inside`
    is told the bytes read of the shard at hand. `works` is what is done with each shard, where that is not a scan;
    a shard that failed is a ShardResult then, too. Raises UsageError where an executor cannot be made.
    """
    given: Sequence[Work | None] = works or [None] * len(shards)
    tasks = [Task(folder, shard, work) for shard, work in zip(shards, given, strict=True)]
    if engine.executor is None:
        for number, task in enumerate(tasks):
            done(number, (task.work or scan_shard)(task.shard, index, inside))
        return
    with _executor(engine.executor) as executor:
        _run(executor, tasks, engine, done)


def _run(executor: Executor, tasks: Sequence[Task], engine: Engine, done: Done) -> None:
    """A few tasks at a time are with the executor; those that it no longer takes have failed."""
    waiting = iter(enumerate(tasks))
    running: dict[Future[Any], int] = {}
    try:
        while True:
            for number, task in waiting:
                future = _submitted(executor, task) if engine.reached() else None
                if future is None:
                    done(number, _failed(task.shard, _NEVER if engine.reached() else _GONE))
                    continue
                running[future] = number
                if len(running) > engine.workers:  # one more than can run: nobody waits for the next
                    break
            if not running:
                return
            ended = wait(running, _LOOK_EVERY, FIRST_COMPLETED).done
            for future in ended if ended or engine.reached() else list(running):
                number = running.pop(future)
                done(number, _result(tasks[number].shard, future))
    finally:
        for future in running:
            future.cancel()


def _submitted(executor: Executor, task: Task) -> Future[Any] | None:
    """None where the executor takes no more: it is broken, or shut down."""
    with _interrupt_held():
        try:
            return executor.submit(scan_task, task)
        except RuntimeError:
            return None


@contextmanager
def _interrupt_held() -> Iterator[None]:
    """Processes started meanwhile never see Ctrl-C: this one does, once they are whole, and ends them.

    They inherit the mask; but it does not hold the signal here, where other threads may take it.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        if held and callable(handler):
            handler(signal.SIGINT, None)


def _result(shard: Shard, future: Future[Any]) -> Any:
    """Of a future that has ended; one that never will, since its worker cannot be reached, is given up."""
    future.cancel()
    try:
        return future.result()
    except CancelledError:
        return _failed(shard, _GONE)
    except (BrokenExecutor, MemoryError):
        return _failed(shard, _LOST)
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        return _failed(shard, f"the cluster gave up on it: {type(error).__name__}")


def _failed(shard: Shard, what: str) -> ShardResult:
    """Nothing is known of this shard, and why."""
    part = "" if shard.end is None else f"bytes {shard.start} to {shard.end}: "
    return ShardResult.failed(Problem(shard.file.path, None, part + what))


@contextmanager
def _executor(make: Callable[[], Executor]) -> Iterator[Executor]:
    """An executor that ends with the block; whatever ends the block early kills the processes that still work."""
    executor = make()
    try:
        yield executor
    except BaseException:
        workers = list((getattr(executor, "_processes", None) or {}).values())
        for worker in workers:
            worker.kill()
        executor.shutdown(wait=False)
        raise
    executor.shutdown()
