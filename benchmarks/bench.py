"""Speed and memory of one core, against a peer, a plain loop and the floor. Prints one table a run.

Usage: bench.py [--tiny] [--turns N]. --tiny checks that everything runs; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from generate import MB, Data, enlarge, generate
from measure import Measured, in_turn, once, one_core

HERE = Path(__file__).parent
TOOL = str(Path(sys.executable).parent / "evalspill-guard")
PEER_VERSION = "1.0.0"


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure, what it has to be, and whether it is."""

    what: str
    found: str
    wanted: str
    met: bool

    def line(self) -> str:
        return f"| {self.what} | {self.found} | {self.wanted} | {'met' if self.met else 'MISSED'} |"


def peer() -> list[str]:
    """toolkit-mmqa in a virtual environment of its own; its command without arguments."""
    folder = HERE / ".venv"
    program = folder / "bin" / "toolkit-mmqa"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"toolkit-mmqa=={PEER_VERSION}"], check=True)
    return [str(program)]


def check(data: Data, train: Path) -> list[str]:
    return [TOOL, "check", "--quiet", "--no-cache", "--jobs", "1", "--config", str(data.config(train))]


def speed(data: Data, turns: int) -> list[Goal]:
    """The four ways through the same file, and the same file as gzip."""
    loop = [sys.executable, str(HERE / "plain_loop.py"), str(data.train), str(data.eval), "13"]
    floor = [sys.executable, str(HERE / "floor.py"), str(data.train)]
    rival = [*peer(), "contamination", "--train", str(data.train), "--eval", str(data.eval)]
    rival += ["--train-field", "text", "--eval-field", "question", "--max-contamination", "1"]
    ours, zipped, bottom, plain = in_turn([check(data, data.train), check(data, data.zipped), floor, loop], turns)
    (other,) = in_turn([rival], max(3, turns // 2))
    print(f"\n| way through {data.size / MB:g} MB | seconds | MB/s | spread | peak MB |\n|---|---|---|---|---|")
    names = ("evalspill-guard", "evalspill-guard, gzip", "orjson.loads alone", "plain loop, xxh3", "toolkit-mmqa 1.0.0")
    for name, one in zip(names, (ours, zipped, bottom, plain, other), strict=True):
        print(_row(name, data.size, one))
    return [
        _ratio("times toolkit-mmqa", other.seconds / ours.seconds, 10),
        _ratio("times the plain loop", plain.seconds / ours.seconds, 6),
        _ratio("of the floor's speed", bottom.seconds / ours.seconds, 0.1),
        _ratio("gzip of plain's speed", ours.seconds / zipped.seconds, 0.7),
    ]


def _row(name: str, size: int, one: Measured) -> str:
    return f"| {name} | {one.seconds:.2f} | {size / MB / one.seconds:.1f} | {one.spread:.0%} | {one.peak:.0f} |"


def _ratio(what: str, found: float, wanted: float) -> Goal:
    return Goal(what, f"{found:.3g}", f"at least {wanted:g}", found >= wanted)


def memory(data: Data, sizes: tuple[int, int]) -> list[Goal]:
    """Peak memory on a large file, and on one twice as large."""
    peaks = []
    for size in sizes:
        train = enlarge(data, size)
        seconds, peak = once(check(data, train))
        print(_row(f"evalspill-guard, {size / MB:g} MB", size, Measured(seconds, 0, peak)))
        train.unlink()
        peaks.append(peak)
    return [
        Goal(f"peak MB at {sizes[0] / MB:g} MB", f"{peaks[0]:.0f}", "below 300", peaks[0] < 300),
        Goal("peak at twice the size", f"{peaks[1] / peaks[0] - 1:+.1%}", "within 10%", peaks[1] <= 1.1 * peaks[0]),
    ]


def startup(turns: int) -> list[Goal]:
    """What a hook costs before it does anything, and the whole of the example repository."""
    examples = [TOOL, "check", "--config", str(HERE.parent / "examples" / "evalspill.yaml")]
    bare, version = in_turn([[sys.executable, "-I", "-c", "pass"], [TOOL, "--version"]], 3 * turns)
    (example,) = in_turn([examples], turns, (1,))
    above = version.seconds - bare.seconds
    return [
        Goal("--version, seconds above bare Python", f"{above:.3f}", "at most 0.1", above <= 0.1),
        Goal("check of examples/, seconds", f"{example.seconds:.2f}", "below 1", example.seconds < 1),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--tiny", action="store_true", help="small data, to see that everything runs")
    options.add_argument("--turns", type=int, default=5, help="runs of each command; the table shows medians")
    options.add_argument("--folder", type=Path, default=HERE / "data", help="where the data are made")
    chosen = options.parse_args()
    one_core()
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, one of them used")
    data = generate(chosen.folder, 2 * MB if chosen.tiny else 100 * MB, 100 if chosen.tiny else 5_000)
    goals = speed(data, 1 if chosen.tiny else chosen.turns)
    goals += memory(data, (4 * MB, 8 * MB) if chosen.tiny else (1_000 * MB, 2_000 * MB))
    goals += startup(1 if chosen.tiny else chosen.turns)
    print("\n| figure | found | wanted | |\n|---|---|---|---|")
    print("\n".join(goal.line() for goal in goals))


if __name__ == "__main__":
    main()
