"""Faults done to real runs of the gate: how a run is started, and what must hold after it.

The data are contaminated: exit 0 is wrong whatever happens. After each fault the earlier reports are whole, no process and
no temporary file is left, and the next run gives the bytes of a run without a fault.
"""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import world
import zstandard

ROWS = [" ".join(f"word{number}of{row}" for number in range(20)) for row in range(40)]
REPORTS = "evalspill-reports"


class Run(NamedTuple):
    """How a run ended: exit code (minus the signal where one ended it), what it printed, its most memory in MB, and the
    session that its processes belong to."""

    code: int
    said: str
    memory: int
    session: int


class Fault(NamedTuple):
    """What is done to a folder before or during a run, the exit code that must come of it, and words that it says."""

    name: str
    code: int
    says: str
    do: Callable[[Path], Run]


class Outcome(NamedTuple):
    """A fault that was done, the run, and what did not hold (empty: all did)."""

    fault: Fault
    run: Run
    wrong: str


def data(folder: Path) -> None:
    """Contaminated data, whole."""
    train = folder / "train"
    shutil.rmtree(train, ignore_errors=True)
    records = [{"text": f"{text} and more"} for text in ROWS[:7]]
    records += [{"text": f"nothing of the kind {number}"} for number in range(3000)]
    raw = world.jsonl(train / "a.jsonl", records).read_bytes()
    (train / "b.jsonl.gz").write_bytes(gzip.compress(raw, mtime=0))
    (train / "c.jsonl.zst").write_bytes(zstandard.compress(raw))
    world.jsonl(folder / "eval.jsonl", [{"question": text} for text in ROWS])
    world.config(folder, train="'train/**'")


def start(
    folder: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    output: int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Run `check` there in a session and with a folder for temporary files of its own."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    own = {**os.environ, "TMPDIR": str(scratch), "EVALSPILL_CACHE_DIR": str(folder / "cache"), "COLUMNS": "400"}
    command = [*before, sys.executable, "-m", "evalspill_guard", "check", "--jobs", "2", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env={**own, **(env or {})}, stdout=output, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes], seconds: float = 120) -> Run:
    """Wait for the end; the memory is that of the largest of its processes that it waited for."""
    stop = threading.Timer(seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
    stop.start()
    said = b""
    if process.stdout and not process.stdout.closed:
        with process.stdout:
            said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    stop.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(process.returncode, said.decode("utf-8", "replace"), used.ru_maxrss // 1024, process.pid)


def run(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, before: Sequence[str] = ()) -> Run:
    return ended(start(folder, *arguments, env=env, before=before))


def reports(folder: Path) -> dict[str, bytes]:
    """Every file of the report folder, those of an unfinished run too."""
    root = folder / REPORTS
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@contextmanager
def repository() -> Iterator[tuple[Path, dict[str, bytes]]]:
    """A folder with contaminated data and no cache after one whole run, and the reports of that run."""
    with tempfile.TemporaryDirectory(prefix="evalspill-faults-", ignore_cleanup_errors=True) as made:
        folder = Path(made).resolve() / "repository"
        folder.mkdir()
        data(folder)
        first = run(folder)
        assert first.code == 1, first
        shutil.rmtree(folder / "cache")
        yield folder, reports(folder)


def outcome(fault: Fault) -> Outcome:
    """Do a fault in a repository of its own."""
    with repository() as (folder, whole):
        done = fault.do(folder)
        if done.code != fault.code or fault.says not in done.said:
            return Outcome(fault, done, f"exit {done.code}: {done.said[-600:]}")
        return Outcome(fault, done, wrong_after(folder, whole, done.session))


def wrong_after(folder: Path, whole: Mapping[str, bytes], session: int) -> str:
    """What is wrong after a fault: a process or a file left over, or a next run that is not that of before."""
    for _ in range(50):
        if not (left := world.session(session)):
            break
        time.sleep(0.1)
    if left:
        return f"processes are left: {sorted(left)}"
    data(folder)
    again = run(folder)
    if (again.code, reports(folder)) != (1, whole):
        return f"the next run ended with {again.code}, reports {sorted(reports(folder))}: {again.said[-600:]}"
    scratch = sorted(path.name for path in (folder / "scratch").iterdir())
    return f"temporary files are left: {scratch}" if scratch else ""
