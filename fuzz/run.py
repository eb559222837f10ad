"""Feed mutated bytes to the targets: python -m fuzz.run [TARGET...] --seconds 60. See fuzz/README.md."""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from fuzz.targets import NAMES, target  # noqa: E402

_INSTRUMENTED = ["evalspill_guard", "yaml", "json", "csv", "gzip"]
_LIBRARIES = ["rich", "click", "jinja2", "pyarrow", "numpy"]
_INSIDE = "--inside"
_STAT = re.compile(r"#(\d+).*?cov: (\d+) ft: (\d+) corp: (\d+)")


class Figures(NamedTuple):
    """What one run of a target came to."""

    seconds: int
    executions: int
    edges: int
    features: int
    crashes: int


def main() -> int:
    """Each target in a process of its own, one after the other; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *NAMES], metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0: another one each time")
    parser.add_argument("--crashes", type=Path, default=HERE / "crashes", help="where failing inputs are kept")
    parser.add_argument("--keep", type=Path, help="keep the inputs found in this folder, for later runs")
    parser.add_argument("--minimise", action="store_true", help="make fuzz/corpus from what --keep holds")
    options = parser.parse_args()
    names = options.targets or NAMES
    if options.minimise:
        return max(_minimise(name, options.keep) for name in names)
    found = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            kept = (options.keep or Path(folder)) / name
            figures = _run(name, options.seconds, options.crashes / name, kept, f"-seed={options.seed}")
        print(name, *(f"{key}={value}" for key, value in figures._asdict().items()), flush=True)
        found += figures.crashes
    return 1 if found else 0


def _run(name: str, seconds: int, crashes: Path, work: Path, *flags: str) -> Figures:
    """Run a target for so long; begun anew where the process itself dies, since a library in C may crash."""
    crashes.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    before = set(crashes.iterdir())
    began, executions, edges, features = time.monotonic(), 0, 0, 0
    while (left := seconds - (time.monotonic() - began)) > 1:
        printed = _child(name, crashes, work, f"-max_total_time={int(left)}", *flags)
        stats = [tuple(map(int, found.groups())) for found in _STAT.finditer(printed)]
        if not stats:
            raise SystemExit(printed)
        executions += max(one[0] for one in stats)
        edges, features = max(edges, stats[-1][1]), max(features, stats[-1][2])
    new = sorted(set(crashes.iterdir()) - before)
    for path in new:
        print(f"{name}: failed on {path}", file=sys.stderr)
    if not any(crashes.iterdir()):
        crashes.rmdir()
    return Figures(int(time.monotonic() - began), executions, edges, features, len(new))


def _child(name: str, crashes: Path, work: Path, *flags: str) -> str:
    command = [
        sys.executable, "-m", "fuzz.run", _INSIDE, name, str(crashes), f"-artifact_prefix={crashes}/",
        "-max_len=4096", "-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1", *flags, *_dictionary(name),
        str(work), str(HERE / "corpus" / name),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    printed = done.stdout.decode("utf-8", "replace")
    (work.parent / f"{name}.log").write_text(printed)
    return printed


def _dictionary(name: str) -> list[str]:
    path = HERE / "dictionaries" / f"{name}.txt"
    return [f"-dict={path}"] if path.exists() else []


def _fuzz(name: str, crashes: Path, flags: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED, exclude=_LIBRARIES):
        check = target(name)
    atheris.Setup([sys.argv[0], *flags], _going_on(check, crashes))
    atheris.Fuzz()
    return 0


def _going_on(check: Callable[[bytes], None], crashes: Path) -> Callable[[bytes], None]:
    """Keep the first input of each kind of failure, and go on."""
    seen: set[str] = set()

    def watched(data: bytes) -> None:
        try:
            check(data)
        except Exception as error:
            kind = _kind(error)
            if kind not in seen:
                seen.add(kind)
                (crashes / f"{kind}").write_bytes(data)
                traceback.print_exc()

    return watched


def _kind(error: BaseException) -> str:
    """The type of the error and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)[-2:]
    place = " ".join(f"{frame.name}:{frame.line}" for frame in frames)
    return f"{type(error).__name__}-{hashlib.blake2b(place.encode(), digest_size=4).hexdigest()}"


def _minimise(name: str, kept: Path) -> int:
    """The smallest inputs that reach everything that all inputs reach."""
    corpus = HERE / "corpus" / name
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "fuzz.run", _INSIDE, name, folder, "-merge=1", "-max_len=4096",
            folder, str(corpus), str(kept / name),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, check=False)
        if done.returncode:
            print(done.stderr.decode("utf-8", "replace")[-2000:], file=sys.stderr)
            return done.returncode
        print(name, len(list(Path(folder).iterdir())))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == [_INSIDE]:
        sys.exit(_fuzz(sys.argv[2], Path(sys.argv[3]), sys.argv[4:]))
    sys.exit(main())
