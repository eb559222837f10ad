"""The faults, and the page that tells their outcome: python tests/faults_list.py --kills 100 writes it.

This process stays small, since the memory of a process counts from that of the one which starts it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import world
import zstandard
from faults import REPORTS, ROWS, Fault, Outcome, Run, ended, outcome, reports, repository, run, start, wrong_after

DOC = Path(__file__).parents[1] / "docs" / "reliability.md"
UNPRIVILEGED = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"] if os.geteuid() == 0 else []
_MEGABYTE = 1 << 20


def _plain(folder: Path, *arguments: str, **env: str) -> Run:
    return run(folder, *arguments, env=env)


def _with(**env: str) -> Callable[[Path], Run]:
    return lambda folder: _plain(folder, **env)


def _spoil(change: Callable[[Path], object]) -> Callable[[Path], Run]:
    def do(folder: Path) -> Run:
        change(folder)
        return run(folder)

    return do


def _cut(name: str, size: int) -> Callable[[Path], Run]:
    return _spoil(lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size]))


def _write(name: str, text: str) -> Callable[[Path], Run]:
    return _spoil(lambda folder: (folder / name).write_text(text))


# --- files that break or change while they are read -------------------------------------------------------------------

# Stands between the package and the bytes of a file: they come 3,000 at a time, and something happens after the first.
_SEAM = """
import errno, os
from evalspill_guard import streams

read = streams._Watched.readinto

def readinto(watched, buffer):
    path = watched.raw.name
    if path.endswith({name!r}):
        if watched.count:
            {what}
        buffer = memoryview(buffer)[:3000]
    return read(watched, buffer)

streams._Watched.readinto = readinto
"""
_BREAKS = "raise OSError(errno.EIO, os.strerror(errno.EIO))"
_GROWS = "open(path, 'a').write('{\"text\": \"one more\"}\\n')"
_CHANGES = "open(path, 'r+').write('{\"TEXT')"
_VANISHES = "os.path.exists(path) and os.unlink(path)"


def _meanwhile(name: str, what: str) -> Callable[[Path], Run]:
    """Something happens to a file after its first bytes were read."""
    return _patched(_SEAM.format(name=name, what=what))


def _patched(code: str) -> Callable[[Path], Run]:
    def do(folder: Path) -> Run:
        aside = folder.parent / "aside"
        aside.mkdir()
        (aside / "sitecustomize.py").write_text(code)
        return _plain(folder, PYTHONPATH=str(aside))

    return do


def _appended(folder: Path) -> Run:
    """Another process appends from the start to the end of the run."""
    over = threading.Event()

    def append() -> None:
        while not over.is_set():
            with (folder / "train/a.jsonl").open("a") as file:
                file.write('{"text": "one more"}\n')
            time.sleep(0.001)

    writer = threading.Thread(target=append)
    writer.start()
    try:
        return run(folder)
    finally:
        over.set()
        writer.join()


# --- permissions, disks, output ---------------------------------------------------------------------------------------


def _without_rights(path: str, mode: int, back: int) -> Callable[[Path], Run]:
    def do(folder: Path) -> Run:
        (folder / path).mkdir(exist_ok=True) if path == "cache" else None
        (folder / path).chmod(mode)
        try:
            return run(folder, before=UNPRIVILEGED)
        finally:
            (folder / path).chmod(back)

    return do


def _full(
    size: str, *paths: str, arguments: Iterable[str] = (), change: Callable[[Path], object] = id
) -> Callable[[Path], Run]:
    """Small disks of their own are mounted on these folders, for this run only."""

    def do(folder: Path) -> Run:
        change(folder)
        for path in paths:
            (folder / path).mkdir(exist_ok=True)
        mounts = [f"mount -t tmpfs -o size={size} tmpfs {shlex.quote(str(folder / path))}" for path in paths]
        script = " && ".join([*mounts, 'exec "$@"'])
        return run(folder, *arguments, before=["unshare", "-m", "sh", "-c", script, "sh"])

    return do


def _closed_output(folder: Path) -> Run:
    process = start(folder)
    assert process.stdout is not None
    process.stdout.close()
    return ended(process)


def _full_output(folder: Path) -> Run:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        return ended(start(folder, output=full))
    finally:
        os.close(full)


# --- signals ----------------------------------------------------------------------------------------------------------


def _large(folder: Path) -> None:
    """So much that workers are started."""
    with (folder / "train/big.jsonl").open("w") as file:
        file.writelines(f'{{"text": "line {number} of many"}}\n' for number in range(3_000_000))


def _signalled(number: int, worker: bool = False) -> Callable[[Path], Run]:
    """The signal comes when both workers are there, to the process that was started or to a worker."""

    def do(folder: Path) -> Run:
        _large(folder)
        process = start(folder, "--no-cache")
        while len(workers := world.workers(process.pid)) < 2 and process.poll() is None:
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(workers[0] if worker else process.pid, number)
        return ended(process)

    return do


# --- odd files --------------------------------------------------------------------------------------------------------


def _gone(folder: Path) -> None:
    (folder / "train/b.jsonl.gz").unlink()
    (folder / "train/b.jsonl.gz").symlink_to(folder / "gone")


def _long_path(folder: Path) -> None:
    here = os.open(folder / "train", os.O_RDONLY)
    for _ in range(14):
        os.mkdir("d" * 250, dir_fd=here)
        here, outer = os.open("d" * 250, os.O_RDONLY, dir_fd=here), here
        os.close(outer)
    file = os.open("leak.jsonl", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here)
    os.write(file, b'{"text": "far below"}\n')
    os.close(file)
    os.close(here)


def _many(folder: Path) -> None:
    for number in range(10_000):
        (folder / f"train/{number}.jsonl").write_text('{"text": "small"}\n')


def _link_loop(folder: Path) -> None:
    (folder / "train/loop").symlink_to(folder / "train")
    (folder / "train/self.jsonl").symlink_to("self.jsonl")


def _foreign_name(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/train/caf\xe9.jsonl")).write_text('{"text": "fine"}\n')


def _long_record(folder: Path) -> None:
    """A record of 70 MB, a copied row at its end."""
    with (folder / "train/long.jsonl").open("w") as file:
        file.write('{"text": "')
        file.writelines("so many words in one record " * 1000 for _ in range(2500))
        file.write(f'{ROWS[20]}"}}\n')


def _gzip_bomb(piece: bytes) -> Callable[[Path], Run]:
    def write(folder: Path) -> None:
        with gzip.open(folder / "train/bomb.jsonl.gz", "wb", compresslevel=1) as file:
            for _ in range(256):
                file.write(piece * (_MEGABYTE // len(piece)))

    return _spoil(write)


def _zstd_bomb(piece: bytes) -> Callable[[Path], Run]:
    def write(folder: Path) -> None:
        with (
            (folder / "train/bomb.jsonl.zst").open("wb") as file,
            zstandard.ZstdCompressor().stream_writer(file) as packed,
        ):
            for _ in range(256):
                packed.write(piece * (_MEGABYTE // len(piece)))

    return _spoil(write)


def _aliases(folder: Path) -> None:
    levels = "".join(f"  - &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    (folder / "evalspill.yaml").write_text(f"version: 1\nignore:\n  - &l0 [a]\n{levels}")


QUICK = [
    Fault("gzip file cut off", 3, "b.jsonl.gz", _cut("train/b.jsonl.gz", 3000)),
    Fault("zstd file cut off", 3, "c.jsonl.zst", _cut("train/c.jsonl.zst", 500)),
    Fault("read error in the middle of a training file", 3, "a.jsonl", _meanwhile("/a.jsonl", _BREAKS)),
    Fault("read error in the middle of a compressed training file", 3, "b.jsonl.gz", _meanwhile("/b.jsonl.gz", _BREAKS)),
    Fault("read error in the middle of an eval file", 3, "eval.jsonl", _meanwhile("/eval.jsonl", _BREAKS)),
    Fault("training file that grows after its first bytes were read", 3, "a.jsonl", _meanwhile("/a.jsonl", _GROWS)),
    Fault("training file that changes, its size the same", 3, "a.jsonl", _meanwhile("/a.jsonl", _CHANGES)),
    Fault("training file that is removed while it is read", 3, "a.jsonl", _meanwhile("/a.jsonl", _VANISHES)),
    Fault("eval file that is removed while it is read", 3, "eval.jsonl", _meanwhile("/eval.jsonl", _VANISHES)),
    Fault("link to nothing", 3, "b.jsonl.gz", _spoil(_gone)),
    Fault("closed standard output", 1, "", _closed_output),
    Fault("named pipe that the glob matches", 3, "pipe.jsonl", _spoil(lambda f: os.mkfifo(f / "train/pipe.jsonl"))),
    Fault("link to a device", 3, "zero", _spoil(lambda f: (f / "train/zero").symlink_to("/dev/zero"))),
    Fault("YAML aliases in aliases", 2, "", _spoil(_aliases)),
]  # fmt: skip

FAULTS = [
    *QUICK,
    Fault("JSON Lines file cut off inside a line", 3, "a.jsonl", _cut("train/a.jsonl", 3000)),
    Fault("eval file cut off inside a line", 3, "eval.jsonl", _cut("eval.jsonl", 3000)),
    Fault("another process appends to a training file all the time", 3, "a.jsonl", _appended),
    Fault("training file that may not be read", 3, "a.jsonl", _without_rights("train/a.jsonl", 0, 0o644)),
    Fault("training folder that may not be listed", 3, "train", _without_rights("train", 0, 0o755)),
    Fault("report folder that may not be written", 4, "", _without_rights(REPORTS, 0o500, 0o700)),
    Fault("cache folder that may not be written", 1, "", _without_rights("cache", 0o500, 0o700)),
    *(
        Fault(f"disk of {size} full while reports are written", 4, "", _full(size, "small", arguments=["--reports-dir", "small/r"]))
        for size in ("4k", "12k", "20k", "40k")
    ),
    Fault("disk full while the cache is written", 1, "", _full("4k", "cache")),
    Fault("disks full while the index for workers is written", 1, "", _full("4k", "cache", "scratch", change=_large)),
    Fault("SIGINT in the middle", 130, "", _signalled(signal.SIGINT)),
    Fault("SIGTERM in the middle", 130, "", _signalled(signal.SIGTERM)),
    Fault("worker killed, as for want of memory", 3, "big.jsonl", _signalled(signal.SIGKILL, worker=True)),
    Fault("full standard output", 4, "", _full_output),
    Fault("no HOME", 1, "", _with(HOME="", XDG_CACHE_HOME="")),
    Fault("TMPDIR that is not there", 1, "", _with(TMPDIR="/not/there")),
    Fault("locale C", 1, "", _with(LC_ALL="C", PYTHONUTF8="0")),
    Fault("clock at 1970", 1, "", _patched("import time\ntime.time = lambda: 1.0\ntime.time_ns = lambda: 1\n")),
    Fault("file dated in the future", 1, "", _spoil(lambda f: os.utime(f / "train/a.jsonl", (4e9, 4e9)))),
    Fault("file name that is not UTF-8", 1, "", _spoil(_foreign_name)),
    Fault("path of 3,500 bytes and more", 1, "", _spoil(_long_path)),
    Fault("10,000 files", 1, "", _spoil(_many)),
    Fault("links in a circle", 3, "self.jsonl", _spoil(_link_loop)),
    Fault("record above max_record", 3, "long.jsonl", _spoil(_long_record)),
    Fault("gzip bomb: 256 MiB of NUL", 3, "bomb.jsonl.gz", _gzip_bomb(b"\0")),
    Fault("zstd bomb: 256 MiB of NUL", 3, "bomb.jsonl.zst", _zstd_bomb(b"\0")),
    Fault("zstd bomb: one word of 256 MiB", 3, "bomb.jsonl.zst", _zstd_bomb(b"a")),
    Fault("zstd bomb: 256 MiB of two-letter words in one line", 3, "bomb.jsonl.zst", _zstd_bomb(b"ab ab cd ")),
    Fault("zstd bomb: 256 MiB of opening brackets", 3, "bomb.jsonl.zst", _zstd_bomb(b"[")),
    Fault("100,000 brackets", 3, "deep.jsonl", _write("train/deep.jsonl", "[" * 100_000 + "\n")),
]  # fmt: skip


def kills(folder: Path, whole: Mapping[str, bytes], count: int, seed: int = 1) -> dict[str, int]:
    """Kill runs at random moments until so many were killed while they ran; how many had ended, what was lost."""
    drawn, found = random.Random(seed), {"killed": 0, "had ended": 0, "lost": 0}
    began = time.monotonic()
    run(folder, "--no-cache")
    usual = time.monotonic() - began
    while found["killed"] < count:
        shutil.rmtree(folder / "cache", ignore_errors=True)
        process = start(folder)
        time.sleep(drawn.random() * usual)
        had_ended = process.poll() is not None
        process.kill()
        process.communicate()
        found["had ended" if had_ended else "killed"] += 1
        kept = {name: text for name, text in reports(folder).items() if not name.startswith(".evalspill-tmp-")}
        found["lost"] += kept != whole or bool(wrong_after(folder, whole, process.pid))
    return found


_HEAD = """\
# Reliability

Made by `make reliability`: each fault is done to a run of the command, with reports and a cache, over contaminated
training data. Held means: the exit code is the one told here, and the message names the file where there is one; no
process and no temporary file is left; and the next run over the mended data has exit code 1 and the same bytes in every
report. Memory is the most that a process of the run took.

| Fault | Exit code | Memory, MB | Held |
|---|---:|---:|---|
"""


def table(outcomes: Iterable[Outcome], killed: Mapping[str, int]) -> str:
    """The page."""
    rows = [f"| {o.fault.name} | {o.run.code} | {o.run.memory} | {'no' if o.wrong else 'yes'} |\n" for o in outcomes]
    return f"""{_HEAD}{"".join(rows)}
**`kill -9`:** {killed["killed"]} runs with an empty cache, each killed while it ran, at a random moment ({killed["had ended"]}
more had ended before); the earlier reports were not whole, or the next run was not right, after {killed["lost"]} of them.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    outcomes = []
    for fault in FAULTS:
        outcomes.append(outcome(fault))
        print(fault.name, outcomes[-1].run.memory, outcomes[-1].wrong or "held", flush=True)
    with repository() as (folder, whole):
        killed = kills(folder, whole, options.kills)
    print(json.dumps(killed))
    DOC.write_text(table(outcomes, killed))
    return int(any(one.wrong for one in outcomes) or killed["lost"] > 0)


if __name__ == "__main__":
    sys.exit(main())
