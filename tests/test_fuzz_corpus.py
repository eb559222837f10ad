"""Every input kept in fuzz/corpus, those that once failed among them, holds for its target."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fuzz.targets import NAMES, target  # noqa: E402

CORPUS = ROOT / "fuzz" / "corpus"


def test_every_target_has_a_corpus() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_no_kept_input_fails(name: str) -> None:
    if name == "columnar":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    check = target(name)
    assert [kept.name for kept in sorted((CORPUS / name).iterdir()) if not _holds(check, kept)] == []


def _holds(check: Callable[[bytes], object], kept: Path) -> bool:
    try:
        check(kept.read_bytes())
    except AssertionError:
        return False
    return True
