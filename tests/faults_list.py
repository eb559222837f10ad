"""The faults, and the page that tells their outcome."""

from __future__ import annotations

import gzip
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import zstandard
from faults import REPORTS, UNPRIVILEGED, Fault, Run, data, ended, run, start


def _spoil(change: Callable[[Path], object], **how: Mapping[str, str]) -> Callable[[Path], Run]:
    def do(folder: Path) -> Run:
        change(folder)
        return run(folder, env=how.get("env"))

    return do


def _cut(name: str, size: int) -> Callable[[Path], Run]:
    return _spoil(lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size]))


def _grows(folder: Path) -> Run:
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


def _vanishes(folder: Path) -> Run:
    """A worker is given a file that is gone when it is opened."""
    (folder / "train/b.jsonl.gz").replace(folder / "b")
    (folder / "train/b.jsonl.gz").symlink_to(folder / "gone")
    done = run(folder)
    (folder / "b").unlink()
    return done


def _without_rights(path: str, mode: int, back: int) -> Callable[[Path], Run]:
    def do(folder: Path) -> Run:
        (folder / path).chmod(mode)
        try:
            return run(folder, before=UNPRIVILEGED)
        finally:
            (folder / path).chmod(back)

    return do


def _full(path: str, size: str, *arguments: str) -> Callable[[Path], Run]:
    """A small disk of its own is mounted on the folder, for this process only."""

    def do(folder: Path) -> Run:
        (folder / path).mkdir(exist_ok=True)
        mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
        return run(folder, *arguments, before=["unshare", "-m", "sh", "-c", mount, str(folder / path)])

    return do


def _large(folder: Path) -> None:
    """So much that workers are started."""
    (folder / "train/big.jsonl").write_text("".join(f'{{"text": "line {n} of many"}}\n' for n in range(3_000_000)))


def _signalled(number: int) -> Callable[[Path], Run]:
    def do(folder: Path) -> Run:
        _large(folder)
        process = start(folder, "--no-cache")
        time.sleep(1)
        process.send_signal(number)
        return ended(process)

    return do


def _closed_output(folder: Path) -> Run:
    process = start(folder)
    assert process.stdout is not None
    process.stdout.close()
    return ended(process)


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


def _bomb(folder: Path) -> None:
    with gzip.open(folder / "train/bomb.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(256):
            file.write(bytes(1 << 20))


def _zstd_bomb(folder: Path) -> None:
    (folder / "train/bomb.jsonl.zst").write_bytes(zstandard.compress(bytes(1 << 28)))


def _within(change: Callable[[Path], object], megabytes: int) -> Callable[[Path], Run]:
    """The run may take so much memory."""

    def do(folder: Path) -> Run:
        done = _spoil(change)(folder)
        MEMORY[change.__name__] = done.memory
        assert done.memory < megabytes, done.memory
        return done

    return do


def _aliases(folder: Path) -> None:
    levels = "".join(f"  - &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    (folder / "evalspill.yaml").write_text(f"version: 1\nignore:\n  - &l0 [a]\n{levels}")


def _link_loop(folder: Path) -> None:
    (folder / "train/loop").symlink_to(folder / "train")
    (folder / "train/self.jsonl").symlink_to("self.jsonl")


def _foreign_name(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/train/caf\xe9.jsonl")).write_text('{"text": "fine"}\n')


def _write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def _nothing(_: Path) -> None:
    data(_)


MEMORY: dict[str, int] = {}
FAULTS = [
    Fault("gzip file cut off", 3, "b.jsonl.gz", _cut("train/b.jsonl.gz", 3000)),
    Fault("zstd file cut off", 3, "c.jsonl.zst", _cut("train/c.jsonl.zst", 500)),
    Fault("JSON Lines file cut off inside a line", 3, "a.jsonl", _cut("train/a.jsonl", 3000)),
    Fault("eval file cut off inside a line", 3, "eval.jsonl", _cut("eval.jsonl", 3000)),
    Fault("training file that grows during the scan", 3, "a.jsonl", _grows),
    Fault("training file that is gone when it is opened", 3, "b.jsonl.gz", _vanishes),
    Fault("training file that may not be read", 3, "a.jsonl", _without_rights("train/a.jsonl", 0, 0o644)),
    Fault("training folder that may not be listed", 3, "train", _without_rights("train", 0, 0o755)),
    Fault("report folder that may not be written", 4, "", _without_rights(REPORTS, 0o500, 0o700)),
    Fault("cache folder that may not be written", 1, "", _without_rights("cache", 0o500, 0o700)),
    Fault("disk full while reports are written", 4, "", _full("small", "8k", "--reports-dir", "small/r")),
    Fault("disk full while the cache is written", 1, "", _full("cache", "4k")),
    Fault("SIGINT in the middle", 130, "", _signalled(signal.SIGINT)),
    Fault("SIGTERM in the middle", 130, "", _signalled(signal.SIGTERM)),
    Fault("closed standard output", 1, "", _closed_output),
    Fault("no HOME", 1, "", _spoil(_nothing, env={"HOME": "", "XDG_CACHE_HOME": ""})),
    Fault("TMPDIR that is not there", 1, "", _spoil(_nothing, env={"TMPDIR": "/not/there"})),
    Fault("locale C", 1, "", _spoil(_nothing, env={"LC_ALL": "C", "PYTHONUTF8": "0"})),
    Fault("file dated in the future", 1, "", _spoil(lambda f: os.utime(f / "train/a.jsonl", (4e9, 4e9)))),
    Fault("file name that is not UTF-8", 1, "", _spoil(_foreign_name)),
    Fault("path of 3,500 bytes and more", 1, "", _spoil(_long_path)),
    Fault("10,000 files", 1, "", _spoil(_many)),
    Fault("links in a circle", 3, "self.jsonl", _spoil(_link_loop)),
    Fault("named pipe that the glob matches", 3, "pipe.jsonl", _spoil(lambda f: os.mkfifo(f / "train/pipe.jsonl"))),
    Fault("link to a device", 3, "zero", _spoil(lambda f: (f / "train/zero").symlink_to("/dev/zero"))),
    Fault("gzip bomb of 256 MiB", 3, "bomb.jsonl.gz", _within(_bomb, 2500)),
    Fault("zstd bomb of 256 MiB", 3, "bomb.jsonl.zst", _within(_zstd_bomb, 2500)),
    Fault("YAML aliases in aliases", 2, "", _spoil(_aliases)),
    Fault("100,000 brackets", 3, "deep.jsonl", _spoil(_write("train/deep.jsonl", "[" * 100_000 + "\n"))),
]  # fmt: skip

_HEAD = """\
# Reliability

Made by `make reliability`: each fault is done to a run of the command over contaminated training data, with two workers,
reports and cache. Held means: the exit code is the one told here, the message names the file where there is one; no process
and no temporary file is left; and the next run over the mended data has exit code 1 and the same bytes in every report.

| Fault | Exit code | Held |
|---|---:|---|
"""


def table(outcomes: Iterable[tuple[Fault, str]], killed: Mapping[str, int]) -> str:
    """The page."""
    rows = [f"| {fault.name} | {fault.code} | {'no' if said else 'yes'} |\n" for fault, said in outcomes]
    count = killed["killed"] + killed["had ended"]
    memory = ", ".join(f"{name.strip('_').replace('_', ' ')} {size} MB" for name, size in sorted(MEMORY.items()))
    return f"""{_HEAD}{"".join(rows)}
**`kill -9`:** {count} runs with an empty cache, each killed at a random moment between its start and its usual end
({killed["killed"]} were still running); the earlier reports were not whole, or the next run was not right, after
{killed["lost"]}.

**Most memory of the process, bombs of 256 MiB:** {memory}. A run without a bomb takes about 60 MB.
"""
