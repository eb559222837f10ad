"""The first steps: look at data, show their fields, and propose an evalspill.yaml."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from evalspill_guard.config import NAMES, Reports, json_schema
from evalspill_guard.errors import Unreadable, UsageError
from evalspill_guard.evalset import HEAD
from evalspill_guard.fields import FieldInfo, propose, table
from evalspill_guard.files import expand
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.proposal import SetProposal, check_name, render_config
from evalspill_guard.readers import Role, open_records, values
from evalspill_guard.remote import is_remote, shown
from evalspill_guard.streams import identity
from evalspill_guard.tables import Table
from evalspill_guard.tables import field_table as drawn

SCHEMA_NAME = "evalspill.schema.json"
_SUFFIXES = "{jsonl,ndjson,json,csv,tsv,txt,md,text,parquet,arrow,feather}{,.gz,.bz2,.xz,.zst}"


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
    if is_remote(given):
        return given
    path = Path(given)
    relative = Path(os.path.relpath(path.absolute(), base)).as_posix()
    if path.is_dir():
        return f"{_literal(relative)}/**/*.{_SUFFIXES}"
    return _literal(relative) if path.exists() else relative


def _literal(path: str) -> str:
    """The glob that matches this path; braces have no spelling of their own, so that they become wildcards."""
    shown = re.sub(r"[{}]", "?", re.sub(r"[*?\[]", r"[\g<0>]", path))
    return f"./{shown}" if shown.startswith("!") else shown


def _found(given: str, base: Path) -> tuple[str, list[DataFile]]:
    """The pattern for what was given, and the data files that it matches."""
    pattern = _pattern(given, base)
    own = [base / name for name in (*NAMES, SCHEMA_NAME, Reports().dir, "evalspill-baseline.jsonl")]
    files, problems = expand((pattern,), base, own)
    if problems or not files:
        raise UsageError(f"{shown(given)}: {problems[0].what if problems else 'matches no file'}")
    return shown(pattern), files


def _count(files: Sequence[DataFile], role: Role) -> int:
    total = 0
    for file in files:
        with _readable(file), open_records(file, Reading(), role) as stream:
            total += sum(1 for _ in stream)
    return total


@contextmanager
def _readable(file: DataFile) -> Iterator[None]:
    """Says which file could not be read."""
    try:
        yield
    except Unreadable as error:
        place = file.path if error.line is None else f"{file.path}:{error.line}"
        raise Unreadable(f"{place}: {error.what}") from None
    except OSError as error:
        raise Unreadable(f"{file.path}: could not be read: {error.strerror or type(error).__name__}") from None


def tables_of(given: Sequence[str]) -> list[Table]:
    """The field table of each file, glob or folder."""
    tables = []
    for one in given:
        _, files = _found(one, Path.cwd())
        tables.append(drawn(_fields(files, "eval"))._replace(title=f"fields of {shown(one)}"))
    return tables


def _fields(files: Sequence[DataFile], role: Role) -> list[FieldInfo]:
    """The field table of the files' heads; raises Unreadable, which names the file."""
    sample: list[object] = []
    for file in files:
        with _readable(file):
            sample += islice(values(file, Reading(), role), HEAD - len(sample))
    return propose(table(sample, HEAD), len(sample))


def propose_config(train: str, evals: str, output: Path) -> Proposal:
    """A config for these training and eval data (files, globs or folders), and what it rests on.

    Raises UsageError where one of them matches nothing or the files cannot be written here, and Unreadable where a
    data file cannot be read.
    """
    schema_path = output.parent / SCHEMA_NAME
    _refuse_foreign(schema_path)
    base = output.absolute().parent
    pattern, matched = _found(train, base)
    _, eval_files = _found(evals, base)
    train_files, excluded = _apart(matched, eval_files)
    if not train_files:
        raise UsageError(f"{shown(train)}: every training file is an eval file, too; name other training files")
    training = SetProposal("train", (pattern, *excluded), len(train_files), _count(train_files, "train"))
    sets: list[SetProposal] = []
    for file in eval_files:
        name = check_name(file.path, [one.name for one in sets])
        sets.append(SetProposal(name, (_literal(file.path),), 1, _count([file], "eval"), _fields([file], "eval")))
    tables = [
        drawn(_fields(train_files, "train"))._replace(title=f"training fields ({shown(train)}): all are compared")
    ]
    tables += [drawn(one.fields)._replace(title=f"eval fields ({one.files[0]})") for one in sets]
    return Proposal(render_config(training, sets, SCHEMA_NAME), schema_bytes(), schema_path, tuple(tables))


def _refuse_foreign(schema: Path) -> None:
    """A file in the schema's place is replaced only where it is one of ours."""
    if not schema.parent.is_dir():
        raise UsageError(f"{schema.parent}: there is no such folder")
    if not os.path.lexists(schema):
        return
    try:
        title = json.loads(schema.read_bytes())["title"]
    except (OSError, ValueError, LookupError, TypeError):
        title = None
    if title != json_schema()["title"]:
        raise UsageError(f"{schema}: is there already and is no schema of this tool; move it")


def _apart(train: Sequence[DataFile], evals: Sequence[DataFile]) -> tuple[list[DataFile], list[str]]:
    """The training files that are no eval files, and what keeps the others out: a check refuses a shared file."""
    tested = {identity(file) for file in evals}
    shared = [file for file in train if identity(file) in tested]
    return [file for file in train if file not in shared], [f"!{_literal(file.path)}" for file in shared]
