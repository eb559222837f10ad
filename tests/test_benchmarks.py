"""The benchmark runs, so that it cannot rot; its figures on small data mean nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent / "benchmarks"
PEER = HERE / ".venv" / "bin" / "toolkit-mmqa"


@pytest.mark.skipif(not PEER.exists(), reason="the peer is installed by the first `make bench`")
def test_a_tiny_benchmark_prints_all_figures(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "bench.py"), "--tiny", "--folder", str(tmp_path / "data")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wanted = ("times toolkit-mmqa", "times the plain loop", "of the floor's speed", "gzip of plain's speed", "peak MB")
    assert [name for name in wanted if name not in printed] == []
    assert printed.count("| met |") + printed.count("| MISSED |") == 8
