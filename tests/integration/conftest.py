"""Everything in this folder starts a real tool, and is marked as such."""

import sys
from pathlib import Path

import pytest
import scratch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tool's repository as its users see it."""
    return scratch.own_repository(tmp_path_factory.mktemp("own") / "evalspill-guard")


@pytest.fixture(scope="session")
def wheels(own: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of wheels that the documentation tells air-gapped users to make."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", folder, own, "hatchling"]
    done = scratch.run(command, own)
    if done.returncode:
        pytest.skip(f"no package index to take wheels from: {done.stdout[-200:]}")
    return folder
