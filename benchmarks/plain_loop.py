"""What one would write first: lower, translate, split, and one hash a run. Usage: plain_loop.py TRAIN EVAL N"""

from __future__ import annotations

import string
import sys
from collections.abc import Iterator

import orjson
from xxhash import xxh3_64_intdigest

SPACES = str.maketrans(dict.fromkeys(string.punctuation, " "))


def runs(text: str, n: int) -> Iterator[int]:
    """A hash of each sequence of n consecutive words."""
    words = text.lower().translate(SPACES).split()
    return (xxh3_64_intdigest(" ".join(words[start : start + n]).encode()) for start in range(len(words) - n + 1))


def main(train: str, evals: str, n: int) -> None:
    with open(evals, "rb") as lines:  # noqa: PTH123
        rows = [set(runs(orjson.loads(line)["question"], n)) for line in lines]
    wanted, found = set[int]().union(*rows), set[int]()
    with open(train, "rb") as lines:  # noqa: PTH123
        for line in lines:
            found.update(run for run in runs(orjson.loads(line)["text"], n) if run in wanted)
    print(sum(not row.isdisjoint(found) for row in rows), "dirty rows")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
