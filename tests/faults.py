"""Faults done to real runs of the gate, and what must come of each: python tests/faults.py --kills 100 writes the table.

The data are contaminated: exit 0 is wrong whatever happens. After each fault the earlier reports are whole, no process and
no temporary file is left, and the next run gives the bytes of a run without a fault.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
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

import zstandard

Q = [" ".join(f"word{number}of{row}" for number in range(20)) for row in range(40)]
REPORTS = "evalspill-reports"
UNPRIVILEGED = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"] if os.geteuid() == 0 else []
DOC = Path(__file__).parents[1] / "docs" / "reliability.md"


class Run(NamedTuple):
    """How a run ended: exit code (minus the signal where one ended it), what it printed, the most memory in MB."""

    code: int
    said: str
    memory: int


class Fault(NamedTuple):
    """What is done to a folder before or during a run, the exit code that must come of it, and words that it says."""

    name: str
    code: int
    says: str
    do: Callable[[Path], Run]


def data(folder: Path) -> None:
    """Contaminated data, whole."""
    train = folder / "train"
    shutil.rmtree(train, ignore_errors=True)
    train.mkdir(parents=True)
    lines = [json.dumps({"text": f"{text} and more"}) + "\n" for text in Q[:7]]
    lines += [json.dumps({"text": f"nothing of the kind {number}"}) + "\n" for number in range(3000)]
    (train / "a.jsonl").write_text("".join(lines))
    (train / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    (train / "c.jsonl.zst").write_bytes(zstandard.compress("".join(lines).encode()))
    (folder / "eval.jsonl").write_text("".join(json.dumps({"question": text}) + "\n" for text in Q))
    settings = "version: 1\ntrain: {files: 'train/**'}\neval: {files: eval.jsonl, fields: [question]}\n"
    (folder / "evalspill.yaml").write_text(settings)


def start(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, before: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Run `check` there in a process group and with a folder for temporary files of its own."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    own = {**os.environ, "TMPDIR": str(scratch), "EVALSPILL_CACHE_DIR": str(folder / "cache"), "COLUMNS": "400"}
    command = [*before, sys.executable, "-m", "evalspill_guard", "check", "--jobs", "2", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env={**own, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes], seconds: float = 120) -> Run:
    """Wait for the end; the memory is that of the largest child so far."""
    stop = threading.Timer(seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
    stop.start()
    said = process.stdout.read() if process.stdout and not process.stdout.closed else b""
    _, status, used = os.wait4(process.pid, 0)
    stop.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(process.returncode, said.decode("utf-8", "replace"), used.ru_maxrss // 1024)


def run(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, before: Sequence[str] = ()) -> Run:
    return ended(start(folder, *arguments, env=env, before=before))


def reports(folder: Path) -> dict[str, bytes]:
    """Every file of the report folder, those of an unfinished run too."""
    root = folder / REPORTS
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def left(process_group: str) -> list[str]:
    """The processes that still work in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            here = str((entry / "cwd").readlink())
            alive = "\nState:\tZ" not in (entry / "status").read_text()
        except OSError:
            continue
        if here == process_group and alive:
            found.append(entry.name)
    return found


@contextmanager
def world() -> Iterator[tuple[Path, dict[str, bytes]]]:
    """A folder with contaminated data after one whole run, and the reports of that run."""
    with tempfile.TemporaryDirectory(prefix="evalspill-faults-", ignore_cleanup_errors=True) as made:
        folder = Path(made).resolve() / "repository"
        folder.mkdir()
        data(folder)
        first = run(folder)
        assert first.code == 1, first
        yield folder, reports(folder)


def wrong(fault: Fault, folder: Path, whole: dict[str, bytes]) -> str:
    """Do a fault; empty, or what did not hold."""
    done = fault.do(folder)
    if done.code != fault.code or fault.says not in done.said:
        return f"exit {done.code}: {done.said[-600:]}"
    return after(folder, whole)


def after(folder: Path, whole: dict[str, bytes]) -> str:
    """What is wrong after a fault: a process or a file left over, or a next run that is not that of before."""
    for _ in range(50):
        if not (still := left(str(folder))):
            break
        time.sleep(0.1)
    if still:
        return f"processes are left: {still}"
    data(folder)
    again = run(folder)
    if (again.code, reports(folder)) != (1, whole):
        return f"the next run ended with {again.code}, reports {sorted(reports(folder))}"
    scratch = sorted(path.name for path in (folder / "scratch").iterdir())
    return f"temporary files are left: {scratch}" if scratch else ""


def kills(folder: Path, whole: dict[str, bytes], count: int, seed: int = 1) -> dict[str, int]:
    """Kill so many runs at random moments; how many ended before, and what was wrong after any."""
    drawn, found = random.Random(seed), {"killed": 0, "had ended": 0, "lost": 0}
    began = time.monotonic()
    run(folder, "--no-cache")
    usual = time.monotonic() - began
    for _ in range(count):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        process = start(folder)
        time.sleep(drawn.random() * usual * 1.1)
        had_ended = process.poll() is not None
        process.kill()
        process.communicate()
        found["had ended" if had_ended else "killed"] += 1
        kept = {name: text for name, text in reports(folder).items() if not name.startswith(".evalspill-tmp-")}
        found["lost"] += kept != whole or bool(after(folder, whole))
    return found


def main() -> int:
    from faults_list import FAULTS, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="begin with this fault, write nothing")
    options = parser.parse_args()
    outcomes = []
    for fault in FAULTS[options.first :]:
        with world() as (folder, whole):
            outcomes.append((fault, wrong(fault, folder, whole)))
        print(outcomes[-1][0].name, outcomes[-1][1] or "held", flush=True)
    with world() as (folder, whole):
        killed = kills(folder, whole, options.kills)
    print(killed)
    if not options.first:
        DOC.write_text(table(outcomes, killed))
    return int(any(said for _, said in outcomes) or killed["lost"] > 0)


if __name__ == "__main__":
    sys.exit(main())
