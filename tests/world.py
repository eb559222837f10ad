"""Small dataset repositories for tests: write files, run the gate, read what it wrote."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalspill_guard.cli import run_command

CONFIG = """\
version: 1
train:
  files: {train}
eval:
  files: {evals}
  fields: [question]
"""


def jsonl(path: Path, records: Sequence[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def table(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    """Rows of the same keys, in the format that the suffix names: jsonl, json or csv."""
    if path.suffix == ".jsonl":
        return jsonl(path, rows)
    with path.open("w", newline="") as file:
        if path.suffix == ".json":
            json.dump(rows, file)
        else:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return path


def config(folder: Path, extra: str = "", train: str = "train.jsonl", evals: str = "eval.jsonl") -> Path:
    path = folder / "evalspill.yaml"
    path.write_text(CONFIG.format(train=train, evals=evals) + extra)
    return path


def check(folder: Path, *arguments: str) -> int:
    """Run `check` on the folder's config; its exit code."""
    return run_command(["check", "-c", str(folder / "evalspill.yaml"), *arguments])


def report(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "evalspill-reports/report.json").read_bytes())
    return loaded


def only_check(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = report(folder)["checks"][0]
    return found


def problems(folder: Path) -> list[tuple[str, int | None, str]]:
    return [(p["path"], p["line"], p["what"]) for p in report(folder)["problems"]]


def csv_rows(folder: Path, name: str, check_name: str = "default") -> list[dict[str, str]]:
    with (folder / "evalspill-reports" / check_name / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def session(leader: int) -> dict[int, str]:
    """The living processes of a session but its leader, and their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (path / "stat").read_text().rpartition(")")[2].split()
            if int(after_name[3]) == leader and after_name[0] != "Z" and int(path.name) != leader:
                found[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


def workers(leader: int) -> list[int]:
    """The workers of a process pool that this session started."""
    return [number for number, command in session(leader).items() if "spawn_main" in command]
