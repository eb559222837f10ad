"""Write the data to measure with: training records, eval rows with planted overlap, configs."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson
from prose import Prose, plant, questions, records

N = 13
MB = 1_000_000
CONFIG = """\
version: 1
train: {{files: {train}, fields: [text]}}
eval: {{files: eval.jsonl, fields: [question], id: id}}
n: {n}
boilerplate: off
fail_over: 100%
reports: {{dir: reports}}
"""


@dataclass(frozen=True, slots=True)
class Data:
    """What the measured programs read."""

    folder: Path
    size: int

    @property
    def train(self) -> Path:
        return self.folder / "train.jsonl"

    @property
    def zipped(self) -> Path:
        return self.folder / "train.jsonl.gz"

    @property
    def eval(self) -> Path:
        return self.folder / "eval.jsonl"

    def config(self, train: Path) -> Path:
        """A config that scans this training file; it accepts every flagged row, so that only faults end non-zero."""
        path = self.folder / ("evalspill.yaml" if train == self.train else f"{train.name}.yaml")
        path.write_text(CONFIG.format(train=train.name, n=N))
        return path


def generate(folder: Path, size: int, rows: int) -> Data:
    """A folder with `size` bytes of training data and `rows` eval rows, unless it is already there."""
    data, done = Data(folder, size), folder / f"done-{size}-{rows}"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        prose = Prose(random.Random(20_240_229))
        asked = list(questions(prose, rows))
        _write_eval(data.eval, asked)
        _write_train(data, prose, asked)
        done.touch()
    return data


def _write_eval(path: Path, asked: list[str]) -> None:
    with path.open("wb") as file:
        for number, question in enumerate(asked):
            file.write(orjson.dumps({"id": f"q-{number}", "question": question, "answer": "yes"}) + b"\n")


def _write_train(data: Data, prose: Prose, asked: list[str]) -> None:
    with data.train.open("wb") as plain, gzip.open(data.zipped, "wb", compresslevel=6) as zipped:
        for line in _lines(prose, asked, data.size):
            plain.write(line)
            zipped.write(line)


def _lines(prose: Prose, asked: list[str], size: int) -> Iterator[bytes]:
    """Every 25th row is planted, in turn whole, quoted, whole, edited: 2 % whole and 2 % quoted or edited."""
    leaks = list(islice(asked, 0, None, 25))
    gap, leaked = max(1, size // 1_100 // (len(leaks) + 1)), 0
    for number, record in enumerate(records(prose)):
        if number % gap == gap - 1 and leaked < len(leaks):
            record["text"] = plant(str(record["text"]), leaks[leaked], (0, 1, 0, 2)[leaked % 4], prose.rng)
            leaked += 1
        line = orjson.dumps(record) + b"\n"
        yield line
        size -= len(line)
        if size <= 0:
            return


def enlarge(data: Data, size: int) -> Path:
    """A file of about `size` bytes: the records again and again, each time with another start to every text."""
    path = data.folder / f"train-{size // MB}mb.jsonl"
    with path.open("wb") as output:
        turn = 0
        while output.tell() < size:
            with data.train.open("rb") as lines:
                for line in islice(lines, 1000 * turn % 5000, None):
                    output.write(line.replace(b'"text":"', b'"text":"Turn %d, ' % turn, 1))
                    if output.tell() >= size:
                        break
            turn += 1
    return path
