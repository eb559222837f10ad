"""What all tests share."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as where a shell runs the tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("fixed", derandomize=True)  # the same examples in every run; a search: HYPOTHESIS_PROFILE
settings.register_profile("search", max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

sys.path.insert(0, str(Path(__file__).parent))

_NETWORK = {
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
}
_blocked = False


class NetworkUsed(BaseException):
    """A test that is not marked `network` asked for a connection, an address or a name; no code may catch it."""


def _refuse(event: str, given: tuple[object, ...]) -> None:
    if _blocked and event in _NETWORK:
        raise NetworkUsed(f"{event} {given[1:]}")


sys.addaudithook(_refuse)


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Only tests that serve on loopback may use sockets."""
    global _blocked
    _blocked = not any(request.node.get_closest_marker(name) for name in ("network", "integration"))
    yield
    _blocked = False


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tests say themselves when they run as if in CI, and keep nothing in the user's own cache."""
    monkeypatch.setenv("EVALSPILL_CACHE_DIR", str(tmp_path / "cache-of-the-test"))
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "EVALSPILL_KEY", "PRE_COMMIT"):
        monkeypatch.delenv(name, raising=False)
