"""Run commands on one core, and tell how long they took and how much memory they held."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """Median seconds, the share of the extremes around it, and the highest peak memory in MB."""

    seconds: float
    spread: float
    peak: float


def one_core() -> None:
    """Keep this process and its children on one of the processors that it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def once(command: Sequence[str], codes: Sequence[int] = (0,)) -> tuple[float, float]:
    """(seconds, peak memory in MB) of one run; stops with its output where it ends with another exit code."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{errors.decode(errors='replace')}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return seconds, kilobytes / 1024


def in_turn(commands: Sequence[Sequence[str]], turns: int, codes: Sequence[int] = (0,)) -> list[Measured]:
    """All commands one after the other, again and again: what slows the machine for a while slows all of them."""
    runs = [[once(command, codes) for command in commands] for _ in range(turns)]
    return [_median([run[number] for run in runs]) for number in range(len(commands))]


def _median(runs: Sequence[tuple[float, float]]) -> Measured:
    seconds = [run[0] for run in runs]
    middle = statistics.median(seconds)
    return Measured(middle, (max(seconds) - min(seconds)) / middle, max(run[1] for run in runs))
