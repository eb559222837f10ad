"""What commonly breaks in a dataset repository, found before a scan: from the heads of files, names and settings."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from evalspill_guard.baseline import Baseline
from evalspill_guard.config import Check, Config, Source
from evalspill_guard.errors import EvalSpillError, ExitCode, UsageError
from evalspill_guard.evalset import EvalSet, read_eval_set, with_fields
from evalspill_guard.fields import Selector, propose, table
from evalspill_guard.files import expand
from evalspill_guard.model import DataFile
from evalspill_guard.paths import shown_leaf
from evalspill_guard.proposal import SCHEMA_NAME
from evalspill_guard.readers import Role, values
from evalspill_guard.remote import is_remote
from evalspill_guard.repository import Finding, of_repository
from evalspill_guard.scoring import lengths_for
from evalspill_guard.streams import identity, open_source
from evalspill_guard.text import words

SAMPLE = 1_000
_MOST_FILES = 20_000
_MOST_WORDS = 500
_ALIKE = 0.5  # as much of a row as flags it
_DATA = re.compile(r"\.(jsonl|ndjson|json|csv|tsv|parquet|arrow|feather)(\.(gz|bz2|xz|zst))?$", re.IGNORECASE)
_COLUMNAR = re.compile(r"\.(parquet|arrow|feather)$", re.IGNORECASE)
_NO_DATA = {".git", ".dvc", ".venv", ".tox", ".cache", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


@dataclass(frozen=True, slots=True)
class _Read:
    """The files of a source, and those of its first records that could be read."""

    source: Source
    key: str
    role: Role
    files: Sequence[DataFile]
    sample: Sequence[object]


def diagnose(config: Config, baseline: Baseline, cache: Path) -> list[Finding]:
    """Everything found, the gravest first; reads no more than heads of training files."""
    own = [config.path, config.base / SCHEMA_NAME, baseline.path, config.base / config.reports.dir, cache]
    found: list[Finding] = []
    seen: dict[Source, _Read] = {}
    for check in config.checks:
        found += _of_check(check, config.base, own, seen)
    found += of_repository(config, baseline, cache, [file for read in seen.values() for file in read.files])
    return sorted(_merged(found), key=lambda one: (one.code == ExitCode.PASSED, one.code != ExitCode.USAGE))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """The same thing found in many files is one finding."""
    alike: dict[Finding, list[str]] = {}
    for one in dict.fromkeys(findings):
        alike.setdefault(replace(one, where=""), []).append(one.where)
    return [
        replace(one, where=places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else ""))
        for one, places in alike.items()
    ]


def _of_check(check: Check, base: Path, own: Sequence[Path], seen: dict[Source, _Read]) -> Iterator[Finding]:
    for source, side in ((check.train, "train"), (check.eval, "eval")):
        if source not in seen:
            role: Role = "eval" if side == "eval" else "train"
            seen[source], found = _look(source, f"checks.{check.name}.{side}", role, base, own)
            yield from found
    train, evals = seen[check.train], seen[check.eval]
    yield from _shared(check.name, train.files, evals.files)
    yield from _fields(train)
    if check.eval.fields_missing:
        yield Finding(evals.key, "fields are not named", "`evalspill-guard fields FILE` lists them", ExitCode.USAGE)
    elif evals.files:
        yield from _fields(evals)
        infos = propose(table(evals.sample, SAMPLE), len(evals.sample)) if check.eval.auto_fields else None
        reading = check.eval.reading if infos is None else with_fields(check.eval.reading, infos)
        yield from _rows(check, read_eval_set(evals.files, reading))


# --- files ------------------------------------------------------------------------------------------------------------


def _look(source: Source, key: str, role: Role, base: Path, own: Sequence[Path]) -> tuple[_Read, list[Finding]]:
    """The files of a source, opened, and what is wrong with them."""
    try:
        files, problems = expand(source.files, base, own)
    except UsageError as error:
        return _Read(source, key, role, (), ()), [Finding(key, str(error), "install it", error.code)]
    found = [Finding(p.path, p.what, "see that its data are here", ExitCode.INCOMPLETE) for p in problems]
    found += [one for file in files if not is_remote(file.real) for one in _opened(file)]
    found += _extra(files)
    broken = {one.where for one in found}
    sample: list[object] = []
    for file in (file for file in files if file.path not in broken):
        try:
            sample += islice(values(file, replace(source.reading, fields=None), role), SAMPLE - len(sample))
        except (EvalSpillError, OSError) as error:
            found.append(_unreadable(file, error))
        if len(sample) >= SAMPLE:
            break
    return _Read(source, key, role, files, sample), [*found, *_hidden(source, key, base, own, files)]


def _opened(file: DataFile) -> Iterator[Finding]:
    """A pointer, a file that is closed to us, or one whose extra is missing."""
    try:
        with open_source(file):
            pass
    except (EvalSpillError, OSError) as error:
        yield _unreadable(file, error)


def _extra(files: Sequence[DataFile]) -> Iterator[Finding]:
    columnar = [file.path for file in files if _COLUMNAR.search(file.path)]
    if columnar and find_spec("pyarrow") is None:
        advice = "pip install 'evalspill-guard[parquet]'"
        yield Finding(columnar[0], "Parquet and Arrow need an extra", advice, ExitCode.INCOMPLETE)


def _unreadable(file: DataFile, error: Exception) -> Finding:
    code = error.code if isinstance(error, EvalSpillError) else ExitCode.INCOMPLETE
    what = str(error) if isinstance(error, EvalSpillError) else f"could not be read: {type(error).__name__}"
    return Finding(file.path, what, "`check` ends in 3 until it can be read", code)


def _hidden(
    source: Source, key: str, base: Path, own: Sequence[Path], files: Collection[DataFile]
) -> Iterator[Finding]:
    """Data that a glob passes over since a name on the way begins with a dot."""
    named = {os.path.realpath(file.real) for file in files}
    kept_out = [os.path.realpath(path) for path in own]
    for root in {_fixed(one) for one in source.files if "*" in one and not one.startswith("!") and not is_remote(one)}:
        passed = [
            path
            for path in _dotted(base / root)
            if str(path.resolve()) not in named and not any(str(path.resolve()).startswith(o) for o in kept_out)
        ]
        if passed:
            first = os.path.relpath(passed[0], base)
            what = f"globs pass over {len(passed)} hidden data files, such as {first}"
            yield Finding(key, what, "name them with their dot (**/.name/*.jsonl) where they are data")


def _fixed(pattern: str) -> str:
    """The folder in which a glob begins to look."""
    parts = pattern.split("/")
    first = next(number for number, part in enumerate(parts) if re.search(r"[*?\[{]", part))
    return "/".join(parts[:first]) or "."


def _dotted(root: Path) -> Iterator[Path]:
    left = _MOST_FILES
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _NO_DATA]
        inside = any(part.startswith(".") for part in Path(folder).relative_to(root).parts)
        for name in sorted(names):
            left -= 1
            if _DATA.search(name) and (inside or name.startswith(".")):
                yield Path(folder, name)
        if left < 0:
            return


def _shared(check: str, train: Sequence[DataFile], evals: Sequence[DataFile]) -> Iterator[Finding]:
    trained = {identity(file) for file in train}
    for file in [file for file in evals if identity(file) in trained][:1]:
        advice = f"leave it out of train.files (!{file.path}) or of eval.files"
        yield Finding(f"check {check}", f"{file.path} is matched on both sides", advice, ExitCode.USAGE)


# --- fields and rows --------------------------------------------------------------------------------------------------


def _fields(read: _Read) -> Iterator[Finding]:
    """Named fields that none of the first records fills."""
    reading = read.source.reading
    named = [*(reading.fields or ()), *((reading.id,) if reading.id else ())]
    if not read.sample or not named:
        return
    empty = [path for path in named if not any(map(Selector((path,)).leaves, read.sample))]
    none_left = bool(reading.fields) and all(path in empty for path in reading.fields or ())
    known = [info.path for info in table(read.sample, SAMPLE)]
    for path in empty:
        near = get_close_matches(path, known, 3, 0.5) or known[:5]
        there = f"there are {', '.join(map(shown_leaf, near))}" if near else "no field holds text"
        code = ExitCode.INCOMPLETE if none_left and path != reading.id else ExitCode.PASSED
        yield Finding(read.key, f"none of the first {len(read.sample)} records fills {shown_leaf(path)}", there, code)


def _rows(check: Check, rows: EvalSet) -> Iterator[Finding]:
    """Rows of which the scan will know little: they cannot be read, are too short, or are all alike."""
    where = f"check {check.name}"
    for problem in rows.problems[:5]:
        at = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        yield Finding(at, problem.what, "mend the eval set", ExitCode.INCOMPLETE)
    total = len(rows.rows)
    lengths = lengths_for(rows.rows, check.n, check.short_rows)
    searches = Counter(lengths.search(row) for row in rows.rows)
    short = total - searches["runs"]
    if searches["none"] > check.max_unchecked * total:
        what = f"{searches['none']} of {total} rows are too short for any search, more than max_unchecked"
        yield Finding(where, what, "name more fields, such as the answer, in eval.fields", ExitCode.INCOMPLETE)
    elif short > total / 2:
        what = f"{short} of {total} rows are too short to score and are only looked for as a whole"
        yield Finding(where, what, "name more fields, such as the answer, in eval.fields")
    texts = list(dict.fromkeys(row.text for row in rows.rows if lengths.search(row) == "runs"))[:SAMPLE]
    alike = _alike([words(text) for text in texts], min(lengths.n.values()))
    if len(texts) > 1 and alike > len(texts) / 2:
        what = f"{alike} of {len(texts)} rows share half of their words or more with another row"
        advice = (
            "one leaked row will flag them all, and a question alone is a small part: compare the fields that differ"
        )
        yield Finding(where, what, advice)


def _alike(rows: Sequence[Sequence[str]], n: int) -> int:
    """How many rows are covered to half or more by runs that other rows hold, too."""
    rows = [row[:_MOST_WORDS] for row in rows]
    runs = [[tuple(row[at : at + n]) for at in range(len(row) - n + 1)] for row in rows]
    owners = Counter(run for each in runs for run in set(each))
    alike = 0
    for row, each in zip(rows, runs, strict=True):
        covered = {at + step for at, run in enumerate(each) if owners[run] > 1 for step in range(n)}
        alike += len(covered) >= _ALIKE * len(row)
    return alike
