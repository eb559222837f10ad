"""Which engine a name stands for, and how its workers are started and reached."""

from __future__ import annotations

import importlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path, PurePosixPath
from typing import Any

from evalspill_guard.engine import SERIAL, Engine
from evalspill_guard.errors import UsageError

_WORTH_STARTING = 1 << 24
_ANSWERS_WITHIN = 5.0  # seconds
_ROOT = Path("/")


def choose(name: str | None, jobs: int | None, scheduler: str | None) -> Engine:
    """The engine of this name: serial, process, dask, or module:factory of an Executor.

    `jobs` defaults to the processors that this process may use. Raises UsageError for what is not there.
    """
    workers = jobs or processors()
    if name == "dask":
        return _dask(scheduler, workers)
    if scheduler:
        raise UsageError("--scheduler needs --engine dask")
    if name == "serial" or (name is None and workers == 1):
        return SERIAL
    if name in (None, "process"):
        return Engine(lambda: _pool(workers), workers, 0 if name else _WORTH_STARTING)
    return Engine(_factory(str(name)), workers)


def _factory(name: str) -> Callable[[], Executor]:
    module, _, attribute = name.partition(":")
    try:
        make: Callable[[], Any] = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"--engine {name}: {type(error).__name__}; use serial, process, dask or module:factory"
        ) from None

    def executor() -> Executor:
        try:
            made = make()
        except (Exception, SystemExit) as error:
            raise UsageError(f"--engine {name} cannot be made: {type(error).__name__}") from None
        if not isinstance(made, Executor):
            raise UsageError(f"--engine {name} makes a {type(made).__name__}, not a concurrent.futures.Executor")
        return made

    return executor


def _pool(workers: int) -> Executor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_with_the_parent)


def _end_with_the_parent() -> None:
    """A worker process ends with the one that started it, however that ended."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _dask(scheduler: str | None, workers: int) -> Engine:
    if not scheduler:
        raise UsageError("--engine dask needs --scheduler tcp://host:8786")
    try:
        client = _client(scheduler)
        threads = sum(client.nthreads().values())
    except ImportError:
        raise UsageError("--engine dask needs the extra: pip install 'evalspill-guard[dask]'") from None
    except Exception as error:
        raise UsageError(f"--scheduler {scheduler}: {type(error).__name__}") from None
    executor = partial(client.get_executor, pure=False, retries=2)
    return Engine(executor, max(workers, threads), reached=lambda: client.status == "running")


def _client(scheduler: str) -> Any:
    """A client of dask. It tries for long where nobody listens, and for ever where somebody listens but says nothing.

    So a connection is tried first, and it is made in a thread that is left alone when it takes too long.
    """
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    socket.create_connection(get_address_host_port(scheduler), _ANSWERS_WITHIN).close()
    made: Future[Any] = Future()

    def make() -> None:
        try:
            made.set_result(Client(scheduler, timeout=_ANSWERS_WITHIN, set_as_default=False))
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    return made.result(2 * _ANSWERS_WITHIN)


def processors() -> int:
    """How many processors this process may use: its affinity, and the limits of its control groups."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([usable, *_granted()]))


def _granted() -> Iterator[int]:
    """Processors granted by each control group that this process is in and that sets a limit, rounded up."""
    for line in _text(_ROOT / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            mount, names = "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):
            mount, names = "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        for folder in (PurePosixPath(group), *PurePosixPath(group).parents):
            inside = _ROOT / mount / str(folder).lstrip("/")
            quota, every, *_ = [*" ".join(_text(inside / name) for name in names).split(), "", ""]
            if quota.isdigit() and every.isdigit():  # "max" and -1 are no limit
                yield -(-int(quota) // int(every))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
