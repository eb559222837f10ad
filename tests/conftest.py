"""What all tests share."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as where a shell runs the tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("fixed", derandomize=True)  # the same examples in every run; a search: HYPOTHESIS_PROFILE
settings.register_profile("search", max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tests say themselves when they run as if in CI, and keep nothing in the user's own cache."""
    monkeypatch.setenv("EVALSPILL_CACHE_DIR", str(tmp_path / "cache-of-the-test"))
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "EVALSPILL_KEY", "PRE_COMMIT"):
        monkeypatch.delenv(name, raising=False)
