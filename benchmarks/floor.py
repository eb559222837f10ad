"""The floor: read the lines, parse each with orjson, and do nothing else. Usage: floor.py TRAIN"""

from __future__ import annotations

import sys

import orjson

if __name__ == "__main__":
    with open(sys.argv[1], "rb") as lines:  # noqa: PTH123
        for line in lines:
            orjson.loads(line)
