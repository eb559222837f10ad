"""A dataset repository whose names and ids try to be commands, markup or code, and how a CI log would read them."""

from __future__ import annotations

import re
from pathlib import Path

from scratch import LEAKED, dataset, question, write_lines

NAMES = (
    "::error::forged", "::add-mask::forged", "##[add-mask]forged", "##[error]forged", "a\n::error::forged", "b\r##[group]x",
    "\x1b[31mforged", "\u202eforged", "=cmd|' /C calc'!A1", "<script>alert(1)</script>", "x|y`z`", "%0A::error::forged",
    "]]><forged/>", "$(touch forged)", "--help",
)  # fmt: skip
CODE = "import pathlib\npathlib.Path(__file__).with_name('EXECUTED').touch()\n"
MODULES = ("yaml", "click", "json", "evalspill_guard", "sitecustomize", "pip", "venv")


def hostile(folder: Path) -> Path:
    """Contaminated, with every name above as a training file, an eval file, an id and a key of a record."""
    dataset(folder)
    (folder / "evals/qa.jsonl").unlink()
    for number, name in enumerate(NAMES):
        rows = [{"id": f"{name}{i}", "question": question(100 * number + i)} for i in range(10)]
        rows[3]["question"] = f"{LEAKED} number {number}"
        write_lines(folder / f"evals/{name}.jsonl", rows)
        write_lines(folder / f"data/{name}.jsonl", [{name: f"So: {LEAKED} number {number}. And so on."}])
    config = folder / "evalspill.yaml"
    config.write_text(
        config.read_text().replace("*.jsonl", "**/*.jsonl").replace("[data/", '["data/').replace("jsonl]", 'jsonl"]')
    )
    for module in MODULES:
        (folder / f"{module}.py").write_text(CODE)
    return folder


def executed(folder: Path) -> bool:
    return any(folder.rglob("EXECUTED"))


def commands(log: str) -> list[str]:
    """What a GitHub runner would take for a command: `::name::` at the start of a line, `##[name]` anywhere."""
    lines = re.split(r"\r\n|\r|\n", log)
    second = [line for line in lines if line.lstrip().startswith("::")]
    return second + [line for line in lines if "##[" in line]


def unprintable(text: str) -> set[str]:
    return {character for character in text if not character.isprintable() and character != "\n"}


def cells(markdown: str) -> list[set[int]]:
    """For each table, how many cells its lines have: one number where no cell broke it."""
    tables: list[set[int]] = []
    last = -2
    for number, line in enumerate(markdown.split("\n")):
        if line.startswith("|"):
            if number != last + 1:
                tables.append(set())
            tables[-1].add(len(re.findall(r"(?<!\\)\|", line)))
            last = number
    return tables
