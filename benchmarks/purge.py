"""What the training side costs: the list of records beside a scan, and a purge beside a scan. One core, no cache.

Usage: purge.py [--tiny] [--size MB] [--turns N]. --tiny checks that everything runs; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from pathlib import Path

import orjson
from bench import TOOL, Goal
from generate import MB, Data, enlarge, generate
from measure import once, one_core

HERE = Path(__file__).parent
PLAIN = ["--no-cache", "--jobs", "1", "--config"]


def often(data: Data, train: Path) -> Path:
    """The same file with one row in every thousandth record: more places than a scan keeps, in every shard."""
    row = orjson.loads(data.eval.read_bytes().split(b"\n", 1)[0])["question"]
    path = train.with_name("often.jsonl")
    with train.open("rb") as lines, path.open("wb") as output:
        for number, line in enumerate(lines):
            output.write(orjson.dumps({"text": f"{row} {number}"}) + b"\n" if number % 1000 == 0 else line)
    return path


def compared(data: Data, train: Path, turns: int) -> list[tuple[str, float, float]]:
    """(what, seconds, peak MB) of a scan, a scan with the list, and a purge; the best of some turns."""
    config = str(data.config(train))
    out = data.folder / "purged"
    commands = {
        "check": [TOOL, "check", "--quiet", *PLAIN, config],
        "check --training-records": [TOOL, "check", "--quiet", "--training-records", *PLAIN, config],
        "purge": [TOOL, "purge", "--out", str(out), *PLAIN, config],
    }
    best = {name: (float("inf"), 0.0) for name in commands}
    for _ in range(turns):
        for name, command in commands.items():
            shutil.rmtree(out, ignore_errors=True)
            seconds, peak = once(command)
            best[name] = min(best[name], (seconds, peak))
    shutil.rmtree(out, ignore_errors=True)
    return [(name, *figures) for name, figures in best.items()]


def goals(what: str, found: list[tuple[str, float, float]]) -> list[Goal]:
    (_, scan, memory), (_, listed, _), (_, purge, peak) = found
    second = listed / scan - 1
    return [
        Goal(f"{what}: second pass / scan", f"{second:.2f}", "at most 1.3", second <= 1.3),
        Goal(f"{what}: purge / scan", f"{purge / scan:.2f}", "at most 1.5", purge / scan <= 1.5),
        Goal(f"{what}: memory of a purge / of a scan", f"{peak / memory:.2f}", "at most 1.1", peak / memory <= 1.1),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--tiny", action="store_true", help="small data, to see that everything runs")
    options.add_argument("--size", type=int, default=1000, help="MB of training data")
    options.add_argument("--turns", type=int, default=3, help="runs of each command; the table shows the best")
    options.add_argument("--folder", type=Path, default=HERE / "data", help="where the data are made")
    chosen = options.parse_args()
    one_core()
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, one of them used")
    data = generate(chosen.folder, 2 * MB if chosen.tiny else 100 * MB, 100 if chosen.tiny else 5_000)
    train = enlarge(data, 4 * MB if chosen.tiny else chosen.size * MB)
    met = []
    for what, file in (("planted rows", train), ("one row in 0.1 %", often(data, train))):
        found = compared(data, file, 1 if chosen.tiny else chosen.turns)
        print(f"\n| {what}, {file.stat().st_size / MB:.0f} MB | seconds | peak MB |\n|---|---|---|")
        print("\n".join(f"| {name} | {seconds:.2f} | {peak:.0f} |" for name, seconds, peak in found))
        met += goals(what, found)
        file.unlink()
    print("\n| figure | found | wanted | |\n|---|---|---|---|")
    print("\n".join(goal.line() for goal in met))


if __name__ == "__main__":
    main()
