"""What many cores, a cache and a cluster save, and what many eval rows cost. Prints one table a run.

Usage: scale.py [--tiny] [--turns N] [--folder DIR]. --tiny checks that everything runs; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path

import numpy as np
import orjson
from bench import TOOL, Goal
from generate import CONFIG, MB, Data, N, enlarge, generate
from measure import Measured, once
from prose import Prose, questions, records

from evalspill_guard.evalset import read_eval_set
from evalspill_guard.executors import processors
from evalspill_guard.index import Query, RunIndex
from evalspill_guard.indexing import build
from evalspill_guard.kernel import batch
from evalspill_guard.model import DataFile, Reading

ALONE = ("--no-cache",)


def check(config: Path, *arguments: str) -> list[str]:
    return [TOOL, "check", "--quiet", "--config", str(config), *arguments]


def config(data: Data, train: str, name: str) -> Path:
    path = data.folder / f"{name}.yaml"
    path.write_text(CONFIG.format(train=train, n=N))
    return path


def at_least(what: str, found: float, wanted: float) -> Goal:
    return Goal(what, f"{found:.3g}", f"at least {wanted:g}", found >= wanted)


def at_most(what: str, found: float, wanted: float) -> Goal:
    return Goal(what, f"{found:.3g}", f"at most {wanted:g}", found <= wanted)


@dataclass(frozen=True, slots=True)
class Cost(Measured):
    """With the seconds that the processors worked, all processes of a command together."""

    work: float


def row(what: str, size: float, one: Cost) -> None:
    speed = size / MB / one.seconds
    print(
        f"| {what} | {one.seconds:.2f} | {one.work:.2f} | {speed:.1f} | {one.spread:.0%} | {one.peak:.0f} |", flush=True
    )


def cut(source: Path, folder: Path, parts: int, pack: bool) -> str:
    """A folder of so many files of about the same size; the glob that matches them."""
    folder.mkdir(exist_ok=True)
    size, suffix = source.stat().st_size, "jsonl.gz" if pack else "jsonl"
    with source.open("rb") as lines:
        for number in range(parts):
            name, most = folder / f"part-{number:02d}.{suffix}", size * (number + 1) // parts
            with gzip.open(name, "wb", 1) if pack else name.open("wb") as part:
                while lines.tell() < most and (line := lines.readline()):
                    part.write(line)
    return f"{folder.name}/*.{suffix}"


def nothing(_: int) -> None:
    """No preparation."""


def best(turns: int, *steps: tuple[Sequence[str], Callable[[int], object]]) -> list[Cost]:
    """All commands in turn, each prepared first, again and again: the fastest run of each.

    Whatever else the machine does only slows a run, and those with two processes most.
    """
    runs = [[_once(command, prepare, turn) for command, prepare in steps] for turn in range(turns)]
    return [_fastest([run[number] for run in runs]) for number in range(len(steps))]


def _once(command: Sequence[str], prepare: Callable[[int], object], turn: int) -> tuple[float, float, float]:
    prepare(turn)
    before = _worked()
    seconds, peak = once(command)
    return seconds, peak, _worked() - before


def _worked() -> float:
    """Seconds of the processors in all commands that have ended; what works for dask is none of them."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _fastest(runs: Sequence[tuple[float, float, float]]) -> Cost:
    seconds, peaks, works = zip(*runs, strict=True)
    return Cost(min(seconds), (max(seconds) - min(seconds)) / min(seconds), max(peaks), min(works))


def workers(data: Data, plain: Path, turns: int) -> list[Goal]:
    """One and two processes on one plain file, and on 16 files of gzip."""
    size, goals = plain.stat().st_size, []
    globs = {"plain": plain.name, "16 gz": cut(plain, data.folder / "gz", 16, pack=True)}
    for name, glob in globs.items():
        path = config(data, f'"{glob}"', "workers")
        one, two = best(turns, *((check(path, *ALONE, "--jobs", jobs), nothing) for jobs in "12"))
        row(f"{name}, 1 process", size, one)
        row(f"{name}, 2 processes", size, two)
        goals.append(at_least(f"2 processes, times 1, {name}", one.seconds / two.seconds, 1.7))
    return goals


def slope(data: Data, sizes: tuple[int, int], turns: int) -> list[Goal]:
    """Speed and memory of one process on little and on much."""
    trains = [enlarge(data, size) for size in sizes]
    paths = [config(data, train.name, f"slope-{train.stem}") for train in trains]
    little, much = best(turns, *((check(path, *ALONE, "--jobs", "1"), nothing) for path in paths))
    for size, train, one in zip(sizes, trains, (little, much), strict=True):
        row(f"{size / MB:g} MB, 1 process", size, one)
        train.unlink()
    share = sizes[1] / much.seconds / (sizes[0] / little.seconds)
    each = (much.seconds - little.seconds) / (sizes[1] - sizes[0]) * 1_000 * MB
    print(f"| each GB more, 1 process | {each:.1f} | | {1_000 / each:.1f} | | |")
    return [
        at_least(f"MB/s at {sizes[1] / MB:g} MB, of that at {sizes[0] / MB:g} MB", share, 0.8),
        at_most("peak memory, likewise", much.peak / little.peak, 1.1),
    ]


def cached(data: Data, plain: Path, turns: int, jobs: str) -> list[Goal]:
    """A first run, and runs after it: nothing changed, one file of 50 changed, a hundredth more eval rows.

    What a later run takes is mostly its start, so that more processes make the first one shorter and its share larger.
    """
    glob, size = cut(plain, data.folder / "files", 50, pack=False), plain.stat().st_size
    path, files = config(data, f'"{glob}"', "cached"), sorted((data.folder / "files").iterdir())
    rows = data.eval.read_bytes().splitlines(keepends=True)
    news = [_new_rows(max(1, len(rows) // 100), turn) for turn in range(turns)]
    kept, fresh = data.folder / "cache", data.folder / "fresh-cache"
    shutil.rmtree(kept, ignore_errors=True)
    time.sleep(4)  # so that the files are old enough to be known by their times
    run, first_run = (check(path, "--jobs", jobs, "--cache-dir", str(folder)) for folder in (kept, fresh))
    once(run)
    try:
        found = best(
            turns,
            (first_run, lambda _: shutil.rmtree(fresh, ignore_errors=True)),
            (run, lambda _: _write(data.eval, rows)),
            (run, lambda turn: _touch(files[turn])),
            (run, lambda turn: _write(data.eval, [*rows, *news[turn]])),
            (check(path, "--jobs", jobs, *ALONE), lambda turn: _write(data.eval, news[turn])),
        )
    finally:
        _write(data.eval, rows)
    names = ("first run", "nothing changed", "1 of 50 files changed", "1 % new rows", "those rows alone")
    for name, one in zip(names, found, strict=True):
        row(f"{name}, --jobs {jobs}", size, one)
    first, again, changed, more, alone = (one.seconds for one in found)
    return [
        at_least(f"second run, times the first, --jobs {jobs}", first / again, 20),
        at_most(f"1 of 50 files changed, of the first run, --jobs {jobs}", changed / first, 0.1),
        at_most(f"1 % new rows, of a scan for them alone, --jobs {jobs}", more / alone, 1.3),
    ]


def _touch(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"text": "one record more"}\n')


def _new_rows(count: int, seed: int) -> list[bytes]:
    asked = questions(Prose(random.Random(f"new {seed}")), count)
    return [orjson.dumps({"id": f"n-{seed}-{i}", "question": text}) + b"\n" for i, text in enumerate(asked)]


def _write(path: Path, rows: Sequence[bytes]) -> None:
    path.write_bytes(b"".join(rows))


def many_rows(data: Data, count: int) -> list[Goal]:
    """The index of a million rows: how fast it is built, how large it is, how fast it is searched."""
    path = data.folder / "many.jsonl"
    size = _write_many(path, count)
    begin = time.perf_counter()
    rows = read_eval_set([DataFile(path.name, str(path))], Reading(fields=("question",))).rows
    reading = size / MB / (time.perf_counter() - begin)
    path.unlink()
    queries = [Query(one.text, "runs", N, one.words) for one in rows]
    begin = time.perf_counter()
    index = build(queries)
    building = size / MB / (time.perf_counter() - begin)
    runs = sum(len(table.hashes) for table in index.tables)
    texts = [[str(record["text"])] for record in islice(records(Prose(random.Random(1))), 20_000)]
    few, many = _looked_up(build(queries[:5_000]), texts), _looked_up(index, texts)
    print(f"| {count:,} rows, {runs:,} runs: read, MB/s | | | {reading:.1f} | | |")
    return [
        at_least(f"index of {count:,} rows, MB/s of eval text", building, 20),
        at_most("its bytes a run", _bytes(index) / runs, 64),
        at_least("its look-up, of the speed at 5,000 rows", few / many, 1 / 3),
    ]


def _write_many(path: Path, count: int) -> int:
    """Rows of shuffled words, since prose takes its time; the bytes of their text."""
    rng = random.Random(4)
    some = [text.split() for text in questions(Prose(rng), 5_000)]
    size = 0
    with path.open("wb") as file:
        for number in range(count):
            words = some[number % len(some)]
            rng.shuffle(words)
            text = " ".join(words)
            size += len(text)
            file.write(orjson.dumps({"question": text}) + b"\n")
    return size


def _bytes(index: RunIndex) -> int:
    parts = [getattr(one, field.name) for one in (index, *index.tables) for field in fields(one)]
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))


def _looked_up(index: RunIndex, texts: Sequence[list[str]]) -> float:
    """Seconds to hash these texts and look up all their runs; the best of three."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for first in range(0, len(texts), 800):
            index.found_in(batch(texts[first : first + 800]))
        times.append(time.perf_counter() - begin)
    return min(times)


def cluster(data: Data, plain: Path, turns: int) -> list[Goal]:
    """One and two workers of dask; each has one thread."""
    path = config(data, plain.name, "cluster")
    with _dask(data.folder, 1) as few, _dask(data.folder, 2) as more:
        engines = [[*ALONE, "--engine", "dask", "--scheduler", address] for address in (few, more)]
        one, two = best(turns, *((check(path, *engine), nothing) for engine in engines))
    row("plain, dask, 1 worker", plain.stat().st_size, one)
    row("plain, dask, 2 workers", plain.stat().st_size, two)
    return [at_least("2 workers of dask, times 1", one.seconds / two.seconds, 1.6)]


@contextmanager
def _dask(folder: Path, count: int) -> Iterator[str]:
    file = folder / f"scheduler-{count}.json"
    file.unlink(missing_ok=True)
    dask = [str(Path(sys.executable).parent / "dask")]
    common = ["--scheduler-file", str(file), "--no-dashboard", "--host", "127.0.0.1"]
    commands = [[*dask, "scheduler", *common, "--port", "0"]]
    commands += [[*dask, "worker", *common, "--no-nanny", "--nthreads", "1", "--local-directory", str(folder)]] * count
    started = [subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for one in commands]
    try:
        while not (file.exists() and file.read_text().endswith("}")):
            time.sleep(0.1)
        time.sleep(5)  # until the workers have come
        yield str(json.loads(file.read_text())["address"])
    finally:
        for process in started:
            process.kill()
            process.wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--tiny", action="store_true", help="small data, to see that everything runs")
    options.add_argument("--turns", type=int, default=3, help="runs of each command; the table shows the fastest")
    options.add_argument("--folder", type=Path, default=Path(__file__).parent / "data", help="where the data are made")
    options.add_argument(
        "--size", type=int, default=1_000, help="MB of training data; the slope is taken to four times"
    )
    chosen = options.parse_args()
    turns, size, rows = (1, 8, 5_000) if chosen.tiny else (chosen.turns, chosen.size, 1_000_000)
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, {processors()} usable")
    data = generate(chosen.folder, (2 if chosen.tiny else 100) * MB, 100 if chosen.tiny else 5_000)
    plain = enlarge(data, size * MB).rename(data.folder / "plain.jsonl")
    print(f"\n| {size} MB | seconds | of work | MB/s | spread | peak MB |\n|---|---|---|---|---|---|")
    goals = slope(data, (size * MB // 10, 4 * size * MB), max(1, turns // 2))
    goals += workers(data, plain, turns)
    goals += [goal for jobs in "12" for goal in cached(data, plain, turns, jobs)]
    goals += cluster(data, plain, turns)
    plain.unlink()
    goals += many_rows(data, rows)
    print("\n| figure | found | wanted | |\n|---|---|---|---|")
    print("\n".join(goal.line() for goal in goals))


if __name__ == "__main__":
    main()
