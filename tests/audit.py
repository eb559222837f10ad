"""Runs the command line in a process of its own and tells what it, and every process that it starts, does outside of
its memory: files opened for writing, made, renamed or removed, processes started, sockets."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

MAIN = "from evalspill_guard.cli import main; main()"

# Loaded by every Python process below, workers too, before anything else.
HOOK = """
import os, sys

log = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.rename": 2, "os.link": 2, "os.symlink": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1,
           "os.truncate": 1, "os.chmod": 1, "os.chown": 1, "os.setxattr": 1}
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn")

def tell(what, *parts):
    os.write(log, (ascii((what, *map(str, parts))) + "\\n").encode())

def whole(path, folder):
    path = os.fsdecode(path) if isinstance(path, (str, bytes)) else os.readlink(f"/proc/self/fd/{path}")
    return os.path.join(os.getcwd() if folder == -1 else os.readlink(f"/proc/self/fd/{folder}"), path)

def hook(event, given):
    if event == "open":
        if isinstance(given[0], (str, bytes)) and given[2] & WRITES:
            tell("write", whole(given[0], -1))
    elif event in CHANGES:
        paths = CHANGES[event]
        folders = [one for one in given[paths:] if isinstance(one, int)][-paths:] if event != "os.mkdir" else given[2:]
        folders = list(folders) if event not in ("os.chmod", "os.truncate", "os.setxattr") else []
        tell(event[3:], *(whole(path, folder) for path, folder in zip(given[:paths], [*folders, -1, -1])))
    elif event in STARTS:
        tell("start", *given[:2])
    elif event.startswith("socket."):
        tell(event, *given[1:])

tell("python", *sys.orig_argv[1:])
sys.addaudithook(hook)
"""


class Event(NamedTuple):
    """What was done, and to what."""

    what: str
    parts: tuple[str, ...]


class Audited(NamedTuple):
    """How a command ended, and what it did."""

    code: int
    out: str
    events: list[Event]

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.what in kinds]

    def changed(self, folder: Path) -> set[str]:
        """Every path that was written, made, renamed or removed; random parts of names as `*`."""
        kinds = (
            "write",
            "rename",
            "link",
            "symlink",
            "remove",
            "mkdir",
            "rmdir",
            "truncate",
            "chmod",
            "chown",
            "setxattr",
        )
        return {_plain(path, folder) for event in self.of(*kinds) for path in event.parts}

    def started(self) -> list[tuple[str, ...]]:
        """The arguments of every process that was started, the command itself left out."""
        own = [event.parts for event in self.of("python")[1:]]
        return own + [event.parts for event in self.of("start")]

    def sockets(self) -> list[Event]:
        return [event for event in self.events if event.what.startswith("socket.")]


def _plain(path: str, folder: Path) -> str:
    relative = os.path.relpath(path, folder)
    shown = re.sub(r"(evalspill-tmp-|evalspill-index-)[a-z0-9_]{8}", r"\1*", relative)
    shown = re.sub(r"(^|/)tmp[a-z0-9_]{8}(\.new)?$", r"\1*\2", shown)
    shown = re.sub(r"(\.evalspill-baseline\.jsonl\.)[0-9a-f]{16}", r"\1*", shown)
    return re.sub(r"([0-9a-f]{2}/)?[0-9a-f]{32}\.", "*.", re.sub(r"(shards/)[0-9a-f]{2}($|/)", r"\1*\2", shown))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", MAIN, *arguments]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """As the tests have it, with a cache in the folder, and nothing of git or CI."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "EVALSPILL_", "PYTHON", "LC_"))}
    package = str(Path(sys.modules["evalspill_guard"].__file__ or "").resolve().parents[1])
    own = {"EVALSPILL_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **own, **more}


def audited(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, given: str = "") -> Audited:
    """Run the command line in a folder, under the hook."""
    aside = folder.parent / f"{folder.name}-audit"
    aside.mkdir(exist_ok=True)
    (aside / "sitecustomize.py").write_text(HOOK)
    log = aside / "log"
    log.write_bytes(b"")
    plain = environment(folder, **(env or {}))
    under = {**plain, "AUDIT_LOG": str(log), "PYTHONPATH": f"{aside}{os.pathsep}{plain['PYTHONPATH']}"}
    done = subprocess.run(
        command(*arguments), cwd=folder, env=under, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="surrogateescape", timeout=300,
    )  # fmt: skip
    events = [Event(what, tuple(parts)) for what, *parts in map(ast.literal_eval, log.read_text().splitlines())]
    return Audited(done.returncode, done.stdout, events)
