"""One module a target; each has `check`, which takes any bytes and fails where something is not true of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

NAMES = (
    "jsonl", "delimited", "document", "plaintext", "columnar",
    "packed", "leafpaths", "configfile", "textwords", "stored",
)  # fmt: skip


def target(name: str) -> Callable[[bytes], None]:
    """The check of a target."""
    check: Callable[[bytes], None] = import_module(f"fuzz.targets.{name}").check
    return check
