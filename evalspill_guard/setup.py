"""The first steps: look at data, show their fields, and propose an evalspill.yaml."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from evalspill_guard.config import BASELINE, NAMES, Reports, json_schema
from evalspill_guard.errors import Unreadable, UsageError
from evalspill_guard.estimate import first_scan
from evalspill_guard.evalset import HEAD
from evalspill_guard.fields import FieldInfo, decode, propose, table
from evalspill_guard.files import expand, stars_joined
from evalspill_guard.guess import data_files, guess, literal, train_patterns
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.paths import Each, Key, format_path, parse_path, shown_leaf
from evalspill_guard.proposal import SCHEMA_NAME, SetProposal, check_name, hook, render_config
from evalspill_guard.readers import COMPRESSED, SUFFIXES, Role, open_records, values
from evalspill_guard.readers.stream import BOM
from evalspill_guard.remote import is_remote, shown
from evalspill_guard.repository import HOOK_CONFIG
from evalspill_guard.streams import file_size, identity, open_source
from evalspill_guard.tables import Table
from evalspill_guard.tables import field_table as drawn

_MOST_COUNTED = 1_000_000_000  # bytes; to count the records of more would take longer than anybody waits for init
_LISTED = 5
_WHOLE = Reading()
_DATA = f"{{{','.join(one[1:] for one in SUFFIXES)}}}{{,{','.join(COMPRESSED)}}}"


@dataclass(frozen=True, slots=True)
class Sets:
    """Globs and paths with the reason for each, and the data files that are on neither side."""

    train: Mapping[str, str]
    evals: Mapping[str, str]
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """The config to write, its schema, the field tables and choices that explain it, and how long a scan takes."""

    text: str
    schema: bytes
    schema_path: Path
    tables: tuple[Table, ...]
    choices: tuple[str, ...]
    estimate: str


def schema_bytes() -> bytes:
    """The JSON Schema of evalspill.yaml."""
    return (json.dumps(json_schema(), indent=2) + "\n").encode()


def _pattern(given: str, base: Path) -> str:
    """What was given (a file, a glob or a folder) as a glob relative to the config."""
    if is_remote(given):
        return given
    path = Path(given)
    if stars_joined(given) and not path.exists():
        raise UsageError(f"{given}: ** leads into folders only alone between slashes, as in **/*.jsonl")
    relative = Path(os.path.relpath(path.absolute(), base)).as_posix()
    if path.is_dir():
        return f"{literal(relative)}/**/*.{_DATA}"
    return literal(relative) if path.exists() else relative


def _found(given: str, base: Path) -> tuple[str, list[DataFile]]:
    """The pattern for what was given, and the data files that it matches."""
    pattern = _pattern(given, base)
    own = [base / name for name in (*NAMES, SCHEMA_NAME, Reports().dir, BASELINE)]
    files, problems = expand((pattern,), base, own)
    if problems or not files:
        raise UsageError(f"{shown(given)}: {problems[0].what if problems else 'matches no file'}")
    return shown(pattern), files


def _count(files: Sequence[DataFile], role: Role, reading: Reading = _WHOLE) -> int:
    total = 0
    for file in files:
        with _readable(file), open_records(file, reading, role) as stream:
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


def _fields(files: Sequence[DataFile], role: Role, reading: Reading = _WHOLE) -> list[FieldInfo]:
    """The field table of the files' heads; raises Unreadable, which names the file."""
    sample: list[object] = []
    for file in files:
        with _readable(file):
            sample += islice(values(file, reading, role), HEAD - len(sample))
    return propose(table(sample, HEAD), len(sample))


def choose_sets(train: Sequence[str], evals: Sequence[str], base: Path) -> Sets:
    """What is named, and for a side of which nothing is named what the names of files and folders say.

    Raises UsageError where they say nothing.
    """
    found = [] if train and evals else guess(data_files(base))
    named = {"train": dict.fromkeys(train, "as named"), "eval": dict.fromkeys(evals, "as named")}
    trained = named["train"] or train_patterns(found)
    tested = named["eval"] or {literal(one.path): one.why for one in found if one.side == "eval"}
    for side, chosen, option in (("training files", trained, "--train"), ("an eval set", tested, "--eval")):
        if not chosen:
            raise UsageError(f"nothing here is {side} by its name: say what is, with {option}, or init TRAIN EVAL")
    left = [(one.path, one.why) for one in found if not one.side]
    return Sets(trained, tested, tuple(left if not (train or evals) else ()))


def propose_config(chosen: Sets, output: Path) -> Proposal:
    """A config for these training and eval data (files, globs or folders), and what it rests on.

    Raises UsageError where one of them matches nothing or the files cannot be written here, and Unreadable where a
    data file cannot be read.
    """
    schema_path = output.parent / SCHEMA_NAME
    _refuse_foreign(schema_path)
    base = output.absolute().parent
    patterns, matched = _found_all(chosen.train, base)
    _, eval_files = _found_all(chosen.evals, base)
    train_files, excluded = _apart(list(matched), list(eval_files))
    shown_train = ", ".join(map(shown, chosen.train))
    if not train_files:
        raise UsageError(f"{shown_train}: every training file is an eval file, too; name other training files")
    records = _count(train_files, "train") if sum(map(file_size, train_files)) <= _MOST_COUNTED else None
    training = SetProposal("train", (*patterns, *excluded), len(train_files), records)
    sets: list[SetProposal] = []
    for file in eval_files:
        sets.append(_eval_set(file, check_name(file.path, [one.name for one in sets])))
    tables = [drawn(_fields(train_files, "train"))._replace(title=f"training fields ({shown_train}): all are compared")]
    tables += [drawn(one.fields)._replace(title=f"eval fields ({one.files[0]})") for one in sets]
    estimate = first_scan(train_files, [(file, one.fields) for file, one in zip(eval_files, sets, strict=True)])
    choices = tuple(_choices(chosen, training, list(zip(sets, eval_files.values(), strict=True))))
    text = render_config(training, sets, SCHEMA_NAME)
    return Proposal(text, schema_bytes(), schema_path, tuple(tables), choices, estimate)


def _eval_set(file: DataFile, name: str) -> SetProposal:
    """An eval file; of questions that stand in arrays of its records each is a row of its own."""
    infos = _fields([file], "eval")
    records = _inner_records(file, [info.path for info in infos if info.chosen])
    reading = Reading(records=records)
    if records and any(info.chosen for info in _fields([file], "eval", reading)):
        infos = _fields([file], "eval", reading)
    else:
        records, reading = None, _WHOLE
    options: dict[str, str | bool] = {"records": records} if records else {}
    return SetProposal(name, (literal(file.path),), 1, _count([file], "eval", reading), infos, options)


def _inner_records(file: DataFile, chosen: Sequence[str]) -> str | None:
    """The `records` path to the objects that hold the chosen fields, where these are in one array of each record."""
    heads = {path.rpartition("[].")[0] for path in chosen}
    with open_records(file, Reading(), "eval") as stream:
        is_document = stream.format == "json"
    if not is_document or len(heads) != 1 or "" in heads:
        return None
    with open_source(file) as source, suppress(ValueError):
        document = decode(source.stream.read().removeprefix(BOM))
        outer = [name for name, inner in _entries(document) if isinstance(inner, list) and any(map(_is_object, inner))]
        if len(outer) == isinstance(document, dict):
            path = format_path((*map(Key, outer), Each(), *parse_path(heads.pop()).steps, Each()))
            return path if _all_there(file, path) else None
    return None


def _all_there(file: DataFile, records: str) -> bool:
    """Whether each record has the arrays to which a `records` path leads."""
    with open_records(file, Reading(records=records), "eval") as stream:
        return all(record.bad is None for record in stream)


def _entries(document: object) -> Sequence[tuple[str, object]]:
    return tuple(document.items()) if isinstance(document, dict) else ()


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def hook_for(output: Path) -> tuple[Path, str]:
    """Where the repository keeps its hooks, and the text that runs the gate for this config there."""
    base = output.absolute().parent
    root = next((folder for folder in (base, *base.parents) if (folder / ".git").exists()), base)
    return root / HOOK_CONFIG, hook(Path(os.path.relpath(output.absolute(), root)).as_posix())


def _found_all(given: Mapping[str, str], base: Path) -> tuple[list[str], dict[DataFile, str]]:
    """The patterns, and the files that they match with the reason for each, each file once."""
    found = [(*_found(one, base), why) for one, why in given.items()]
    files = {identity(file): (file, why) for _, matched, why in reversed(found) for file in matched}
    ordered = sorted(files.values(), key=lambda pair: os.fsencode(pair[0].path))
    return [pattern for pattern, _, _ in found], dict(ordered)


def _choices(chosen: Sets, training: SetProposal, sets: Sequence[tuple[SetProposal, str]]) -> Iterator[str]:
    """Each choice in a line, with its reason; never a value of the data."""
    for pattern, why in chosen.train.items():
        yield f"train {shown(pattern)}: {why}"
    counted = f"{training.records} records" if training.records is not None else "too large to count the records here"
    yield f"train: {training.file_count} files, {counted}; every text field is compared, or leaks in others would hide"
    for one, why in sets:
        fields = [f"{shown_leaf(info.path)} ({info.why})" for info in one.fields if info.chosen]
        named = ", ".join(fields) or "no field stood out: name eval.fields yourself"
        yield f"eval {one.files[0]}: {why}; check {one.name}, {one.records} rows, compares {named}"
    for path, why in chosen.left_out[:_LISTED]:
        yield f"left out {path}: {why}; --train and --eval take what you name"
    if len(chosen.left_out) > _LISTED:
        yield f"left out {len(chosen.left_out) - _LISTED} more files"


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
    return [file for file in train if file not in shared], [f"!{literal(file.path)}" for file in shared]
