"""What the checks of a config read: their files found, their eval rows read, and what is wrong with either."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evalspill_guard.cache import is_entry
from evalspill_guard.checkout import Absent, absent
from evalspill_guard.config import Check, Config, EvalSource, Source
from evalspill_guard.errors import Unreadable, UsageError
from evalspill_guard.evalset import EvalSet, field_table, read_eval_set, with_fields
from evalspill_guard.files import expand
from evalspill_guard.model import LEAST_OVERLAP, DataFile, Problem, Reading
from evalspill_guard.paths import shown_leaf
from evalspill_guard.proposal import SCHEMA_NAME
from evalspill_guard.reports import is_report
from evalspill_guard.reports.clean import clean_path
from evalspill_guard.scoring import Lengths, lengths_for
from evalspill_guard.streams import identity
from evalspill_guard.tables import render_table

log = logging.getLogger(__name__)
_ROOM = 4  # a row may stand in training with more white space and marks than in the eval set


@dataclass(frozen=True, slots=True)
class Loaded:
    """A check with its files found and its eval rows read; its rows are queries first, first + 1, ... ."""

    check: Check
    train: Sequence[DataFile]
    rows: EvalSet
    lengths: Lengths
    first: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """This tool's own files, and the folders in which it writes; no glob matches either. `gone` is not there at all."""

    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    gone: tuple[Absent, ...]


def load_checks(config: Config, baseline: Path, cache: Path | None, problems: list[Problem]) -> list[Loaded]:
    """Every check of a config, in order; what cannot be read is added to the problems."""
    own = _own(config, baseline, cache)
    loaded: list[Loaded] = []
    first = 0
    for check in config.checks:
        one = _load(check, config.base, own, first, problems)
        loaded.append(one)
        first += len(one.rows.rows)
    longest = max((len(row.text.encode("utf-8", "replace")) for one in loaded for row in one.rows.rows), default=0)
    return [_with_overlap(one, longest) for one in loaded]


def _with_overlap(one: Loaded, longest: int) -> Loaded:
    """Pieces of plain text overlap by the longest row, which is known only now."""
    room = _ROOM * longest
    overlap = LEAST_OVERLAP if room <= LEAST_OVERLAP else 1 << room.bit_length()
    train = replace(one.check.train, reading=replace(one.check.train.reading, overlap=overlap))
    return replace(one, check=replace(one.check, train=train))


def _own(config: Config, baseline: Path, cache: Path | None) -> _Place:
    files = [config.path, config.base / SCHEMA_NAME, config.base / config.baseline, baseline]
    folders = [config.base / name for name in (config.reports.dir, *config.other_reports)]
    own = tuple(path for path in files if not path.is_dir())
    return _Place(own, (*folders, *([cache] if cache else [])), tuple(absent(config.base)))


def _load(check: Check, base: Path, own: _Place, first: int, problems: list[Problem]) -> Loaded:
    train = _files(check.train, f"checks.{check.name}.train", base, own, problems)
    evals = _files(check.eval, f"checks.{check.name}.eval", base, own, problems)
    _refuse_shared(check.name, train, evals)
    reading, notes = _eval_reading(check, evals)
    rows = read_eval_set(evals, reading)
    problems.extend(rows.problems)
    problems.extend(too_few(check.eval, f"check {check.name}: eval", len(rows.rows)))
    problems.extend(in_no_record(f"check {check.name}: eval", rows.unmet))
    log.info(
        "check %s: %d eval rows from %d files, %d training files", check.name, len(rows.rows), len(evals), len(train)
    )
    lengths = lengths_for(rows.rows, check.n, check.short_rows)
    settled = replace(check, eval=replace(check.eval, reading=reading))
    return Loaded(settled, train, rows, lengths, first, notes)


def _files(source: Source, key: str, base: Path, own: _Place, problems: list[Problem]) -> list[DataFile]:
    excluded: list[DataFile] = []
    files, missing = expand(source.files, base, (*own.files, *own.folders), excluded.append, own.gone)
    problems.extend(missing)
    problems.extend(_hidden(excluded, own))
    problems.extend(_alike(files))
    if not missing and len(files) < source.min_files:
        problems.append(Problem(key, None, f"{len(files)} files match, and min_files asks for {source.min_files}"))
    for file in files:
        log.info("%s: matched by %s", file.path, key)
    return files


def _hidden(excluded: Sequence[DataFile], own: _Place) -> Iterator[Problem]:
    """Data in a folder in which this tool writes: it is not scanned there, which must not go unnoticed."""
    ours = {os.path.realpath(path) for path in own.files}
    for file in dict.fromkeys(excluded):
        path = Path(os.path.realpath(file.real))
        if str(path) not in ours and not is_entry(path) and not any(is_report(path, one) for one in own.folders):
            yield Problem(file.path, None, "lies in the folder of the reports or of the cache, which is not scanned")


def _alike(files: Sequence[DataFile]) -> Iterator[Problem]:
    """Files that reports cannot tell apart, or whose clean files would be one."""
    seen: dict[str, str] = {}
    for file in files:
        first = seen.setdefault(clean_path(file.path), file.path)
        if first is not file.path:
            yield Problem(file.path, None, f"stands for two files in the reports (as does {first}): rename one")


def _refuse_shared(name: str, train: Sequence[DataFile], evals: Sequence[DataFile]) -> None:
    real = {identity(file) for file in train}
    shared = [file.path for file in evals if identity(file) in real]
    if shared:
        raise UsageError(f"check {name}: {shared[0]} is both a training file and an eval file of this check")


def _eval_reading(check: Check, evals: Sequence[DataFile]) -> tuple[Reading, tuple[str, ...]]:
    source: EvalSource = check.eval
    if source.fields_missing or source.auto_fields:
        try:
            infos = field_table(evals, source.reading)
        except (Unreadable, OSError):
            infos = []
        if source.fields_missing:
            raise UsageError(
                f"check {check.name}: eval.fields must name the fields that hold the question "
                f"(or be auto); the fields are:\n{render_table(infos)}"
            )
        if not any(info.chosen for info in infos):
            raise UsageError(f"check {check.name}: no field could be chosen; name eval.fields:\n{render_table(infos)}")
        notes = tuple(
            f"eval.fields auto: {shown_leaf(info.path)} {'chosen' if info.chosen else 'left out'}: {info.why}"
            for info in infos
        )
        return with_fields(source.reading, infos), notes
    return source.reading, ()


def in_no_record(what: str, unmet: Iterable[str]) -> Iterator[Problem]:
    """A problem for each of several fields that no record or row of a source has."""
    for field in unmet:
        yield Problem(what, None, f"no record has the field {field}: mend its name, or leave it out of fields")


def too_few(source: Source, what: str, records: int) -> Iterator[Problem]:
    """A problem where there are fewer records than the config asks for."""
    if records < source.min_records:
        yield Problem(what, None, f"{records} records, and min_records asks for {source.min_records}")
