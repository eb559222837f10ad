"""The first steps: look at data, show their fields, and propose an evalspill.yaml."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalspill_guard.config import json_schema
from evalspill_guard.errors import Unreadable, UsageError
from evalspill_guard.evalset import field_table
from evalspill_guard.fields import FieldInfo
from evalspill_guard.files import expand
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.proposal import SetProposal, check_name, render_config
from evalspill_guard.readers import open_records
from evalspill_guard.tables import Table
from evalspill_guard.tables import field_table as drawn

SCHEMA_NAME = "evalspill.schema.json"
_SUFFIXES = "{jsonl,ndjson,json,csv,tsv,txt,md}{,.gz,.bz2,.xz,.zst}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """The config to write, its schema, and the field tables that explain it."""

    text: str
    schema: bytes
    schema_path: Path
    tables: tuple[Table, ...]


def schema_bytes() -> bytes:
    """The JSON Schema of evalspill.yaml."""
    return (json.dumps(json_schema(), indent=2) + "\n").encode()


def _pattern(given: str, base: Path) -> str:
    """What was given (a file, a glob or a folder) as a glob relative to the config."""
    path = Path(given)
    relative = Path(os.path.relpath(path.absolute(), base)).as_posix()
    return f"{relative}/**/*.{_SUFFIXES}" if path.is_dir() else relative


def _found(given: str, base: Path) -> tuple[str, list[DataFile]]:
    pattern = _pattern(given, base)
    files, problems = expand((pattern,), base, ())
    if problems or not files:
        raise UsageError(f"{given}: {problems[0].what if problems else 'matches no file'}")
    return pattern, files


def _count(files: Sequence[DataFile], role: str) -> int:
    total = 0
    for file in files:
        with open_records(file, Reading(), "train" if role == "train" else "eval") as stream:
            total += sum(1 for _ in stream)
    return total


def tables_of(given: Sequence[str]) -> list[Table]:
    """The field table of each file, glob or folder."""
    tables = []
    for one in given:
        _, files = _found(one, Path.cwd())
        tables.append(drawn(_fields(files))._replace(title=f"fields of {one}"))
    return tables


def _fields(files: Sequence[DataFile]) -> list[FieldInfo]:
    try:
        return field_table(files, Reading())
    except Unreadable as error:
        raise UsageError(f"{files[0].path}: {error.what}") from None


def propose_config(train: str, evals: str, output: Path) -> Proposal:
    """A config for these training and eval data (files, globs or folders), and what it rests on."""
    base = output.absolute().parent
    train_pattern, train_files = _found(train, base)
    _, eval_files = _found(evals, base)
    sets: list[SetProposal] = []
    for file in eval_files:
        name = check_name(file.path, [one.name for one in sets])
        sets.append(SetProposal(name, (file.path,), 1, _count([file], "eval"), _fields([file])))
    training = SetProposal("train", (train_pattern,), len(train_files), _count(train_files, "train"))
    tables = [drawn(_fields(train_files))._replace(title=f"training fields ({train}): all are compared")]
    tables += [drawn(_fields([file]))._replace(title=f"eval fields ({file.path})") for file in eval_files]
    text = render_config(training, sets, SCHEMA_NAME)
    return Proposal(text, schema_bytes(), output.parent / SCHEMA_NAME, tuple(tables))
