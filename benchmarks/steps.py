"""Where the time of a scan goes: the seconds of each step on one core. Usage: steps.py [--tiny] [--turns N]."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import xxhash
from generate import MB, Data, N, generate
from measure import one_core

from evalspill_guard.evalset import read_eval_set
from evalspill_guard.index import Query, RunIndex
from evalspill_guard.indexing import build
from evalspill_guard.kernel import batch
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.readers import open_records

TEXT = Reading(fields=("text",))


class Steps(dict[str, float]):
    """Seconds by step."""

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self[name] = self.get(name, 0.0) + time.perf_counter() - begin


def scanned(train: DataFile, index: RunIndex) -> Steps:
    """The steps of a scan, each batch of records once through all of them."""
    steps = Steps()
    with open_records(train, TEXT, "train") as stream:
        batches = stream.batches()
        while True:
            with steps("read the file, parse JSON, pick the field"):
                records = next(batches, None)
            if records is None:
                return steps
            with steps("normalise, split into words, hash"):
                texts = batch(records.leaves)
            with steps("hash and look up every run"):
                index.found_in(texts)


def apart(path: Path) -> Steps:
    """What the first step cannot do without."""
    steps = Steps()
    with steps("- of that: read the bytes"):
        data = path.read_bytes()
    with steps("- of that: digest them"):
        xxhash.xxh3_128_digest(data)
    lines = data.splitlines()
    with steps("- of that: parse JSON"):
        for line in lines:
            orjson.loads(line)
    return steps


def index_of(data: Data) -> RunIndex:
    rows = read_eval_set([DataFile("eval.jsonl", str(data.eval))], Reading(fields=("question",))).rows
    return build([Query(one.text, "runs", N, one.words) for one in rows])


def fastest(turns: int, measure: Callable[[], Steps]) -> Steps:
    """Of each step the fastest turn."""
    measured = [measure() for _ in range(turns)]
    return Steps({name: min(one[name] for one in measured) for name in measured[0]})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--tiny", action="store_true", help="small data, to see that everything runs")
    options.add_argument("--turns", type=int, default=5, help="how often; the table shows the fastest")
    options.add_argument("--folder", type=Path, default=Path(__file__).parent / "data", help="where the data are made")
    chosen = options.parse_args()
    one_core()
    data = generate(chosen.folder, (2 if chosen.tiny else 100) * MB, 100 if chosen.tiny else 5_000)
    train, index = DataFile("train.jsonl", str(data.train)), index_of(data)
    steps = fastest(chosen.turns, lambda: scanned(train, index))
    steps.update(fastest(chosen.turns, lambda: apart(data.train)))
    size, whole = data.train.stat().st_size / MB, sum(took for name, took in steps.items() if not name.startswith("-"))
    print("| step | seconds | MB/s | of a scan |\n|---|---:|---:|---:|")
    for name in sorted(steps, key=ORDER.index):
        print(f"| {name} | {steps[name]:.3f} | {size / steps[name]:.0f} | {steps[name] / whole:.0%} |")
    print(f"| all | {whole:.3f} | {size / whole:.0f} | 100% |")


ORDER = [
    "read the file, parse JSON, pick the field",
    "- of that: read the bytes",
    "- of that: digest them",
    "- of that: parse JSON",
    "normalise, split into words, hash",
    "hash and look up every run",
]


if __name__ == "__main__":
    main()
