"""Nothing is contacted: the tests run with sockets blocked, and every command works where there is no network at all."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import world
from audit import command, environment
from test_no_leak import COMMANDS, accepted
from test_purge import leaking
from test_training import sentence

from evalspill_guard import pool

ALONE = ["unshare", "--user", "--map-root-user", "--net", "--"]


def _can_be_alone() -> bool:
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def test_a_test_that_uses_a_socket_fails() -> None:
    with pytest.raises(BaseException, match=r"socket\.bind"), socket.socket() as mine:
        mine.bind(("127.0.0.1", 0))
    with pytest.raises(BaseException, match=r"socket\.getaddrinfo"):
        socket.create_connection(("example.org", 443), 1)


def test_in_a_namespace_without_interfaces_nothing_can_be_reached() -> None:
    """The means of the test below."""
    if not _can_be_alone():
        pytest.skip("this machine does not let a test make a network namespace")
    ask = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    done = subprocess.run([*ALONE, sys.executable, "-c", ask], capture_output=True, text=True)
    assert "Network is unreachable" in done.stderr


@pytest.mark.parametrize("name", [*COMMANDS, "check by workers"])
def test_every_command_works_in_a_namespace_without_interfaces(tmp_path: Path, name: str) -> None:
    if not _can_be_alone():
        pytest.skip("this machine does not let a test make a network namespace")
    folder = tmp_path / "repository"
    folder.mkdir()
    leaking(folder)
    world.jsonl(folder / "data/more.jsonl", [{"text": sentence(number)} for number in range(9)])
    arguments, code, _ = COMMANDS.get(name, (["check", "--jobs", "2", "--engine", "process"], 1, set()))
    if name in ("baseline", "prune"):
        accepted(folder)
    done = subprocess.run(
        [*ALONE, *command(*arguments)], cwd=folder, env=environment(folder), capture_output=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr


def test_no_module_of_the_network_is_loaded_for_local_files(tmp_path: Path) -> None:
    leaking(tmp_path)
    code = "import sys; from evalspill_guard.cli import run_command; run_command(['check']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    loaded = set(done.stderr.split())
    assert pool.__name__ in loaded
    assert loaded & {"fsspec", "aiohttp", "s3fs", "distributed", "urllib.request", "http.client", "ssl"} == set()
