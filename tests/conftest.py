"""What all tests share."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True)  # the same examples in every run; a search: HYPOTHESIS_PROFILE
settings.register_profile("search", max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests say themselves when they run as if in CI."""
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "EVALSPILL_KEY", "PRE_COMMIT"):
        monkeypatch.delenv(name, raising=False)
