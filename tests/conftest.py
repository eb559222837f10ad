"""What all tests share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests say themselves when they run as if in CI."""
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "EVALSPILL_KEY", "PRE_COMMIT"):
        monkeypatch.delenv(name, raising=False)
