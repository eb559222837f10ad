"""The walk from a config to what a run found out: it reads and computes, and prints nothing."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evalspill_guard import __version__
from evalspill_guard.config import Check, Config, EvalSource, Source
from evalspill_guard.errors import ExitCode, Unreadable, UsageError, worst
from evalspill_guard.evalset import EvalFile, EvalSet, field_table, read_eval_set, with_fields
from evalspill_guard.files import expand
from evalspill_guard.gather import gather
from evalspill_guard.index import RunIndex, build
from evalspill_guard.model import CheckResult, DataFile, InputFile, Problem, Reading, RowScore, RunResult, Script, Shard
from evalspill_guard.pool import Pool, ScannedFile
from evalspill_guard.scan import Means, Progress, scan_files
from evalspill_guard.scoring import SCRIPTS, Lengths, Scored, lengths_for, n_rule, score_rows
from evalspill_guard.tables import render_table

log = logging.getLogger(__name__)
_ALONE = Means()


@dataclass(frozen=True, slots=True)
class Run:
    """What a run found out, and the eval files that the clean files are made from, by check name."""

    result: RunResult
    eval_files: Mapping[str, Sequence[EvalFile]]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A check with its files found and its eval rows read; its rows are queries first, first + 1, ... ."""

    check: Check
    train: Sequence[DataFile]
    rows: EvalSet
    lengths: Lengths
    first: int
    notes: tuple[str, ...]


def run(config: Config, progress: Progress | None = None, means: Means = _ALONE) -> Run:
    """Do every check of a config; wrong use raises UsageError, what cannot be read ends up among the problems."""
    problems: list[Problem] = []
    loaded = _load_checks(config, _own(config, means), problems)
    queries = [one.lengths.query(row) for one in loaded for row in one.rows.rows]
    index = build(queries)
    log.info("indexed %d eval rows", sum(len(one.rows.rows) for one in loaded))
    scanned = scan_files(_files_to_scan(loaded), queries, index, means, progress)
    results = [_finish(one, index, scanned, config, problems) for one in loaded]
    problems = sorted(set(problems), key=lambda p: (p.path, p.line or 0, p.what))
    if problems:
        results = [replace(result, complete=False) for result in results]
    codes = [ExitCode.PASSED if result.passed else ExitCode.FAILED for result in results]
    code = worst([*codes, ExitCode.INCOMPLETE] if problems else codes)
    return Run(
        RunResult(
            tool_version=__version__,
            unicode_version=unicodedata.unidata_version,
            text_policy=config.reports.text,
            clean=config.reports.clean,
            checks=tuple(results),
            problems=tuple(problems),
            exit_code=int(code),
        ),
        {one.check.name: one.rows.files for one in loaded},
    )


def incomplete(result: RunResult, problem: Problem) -> RunResult:
    """The same result with one problem more, and no check complete."""
    return replace(
        result,
        problems=(*result.problems, problem),
        checks=tuple(replace(check, complete=False) for check in result.checks),
        exit_code=int(ExitCode.INCOMPLETE),
    )


def _own(config: Config, means: Means) -> list[Path]:
    """Files and folders of this tool, which no glob matches."""
    named = (config.reports.dir, config.baseline, "evalspill.schema.json")
    return [config.path, *(config.base / name for name in named), *([means.folder] if means.folder else [])]


def _load_checks(config: Config, own: Sequence[Path], problems: list[Problem]) -> list[_Loaded]:
    loaded: list[_Loaded] = []
    first = 0
    for check in config.checks:
        one = _load(check, config.base, own, first, problems)
        loaded.append(one)
        first += len(one.rows.rows)
    return loaded


def _load(check: Check, base: Path, own: Sequence[Path], first: int, problems: list[Problem]) -> _Loaded:
    train = _files(check.train, f"checks.{check.name}.train", base, own, problems)
    evals = _files(check.eval, f"checks.{check.name}.eval", base, own, problems)
    _refuse_shared(check.name, train, evals)
    reading, notes = _eval_reading(check, evals)
    rows = read_eval_set(evals, reading)
    problems.extend(rows.problems)
    problems.extend(_too_few(check.eval, f"check {check.name}: eval", len(rows.rows)))
    log.info(
        "check %s: %d eval rows from %d files, %d training files", check.name, len(rows.rows), len(evals), len(train)
    )
    lengths = lengths_for(rows.rows, check.n, check.short_rows)
    settled = replace(check, eval=replace(check.eval, reading=reading))
    return _Loaded(settled, train, rows, lengths, first, notes)


def _files(source: Source, key: str, base: Path, own: Sequence[Path], problems: list[Problem]) -> list[DataFile]:
    files, missing = expand(source.files, base, own)
    problems.extend(missing)
    if not missing and len(files) < source.min_files:
        problems.append(Problem(key, None, f"{len(files)} files match, and min_files asks for {source.min_files}"))
    for file in files:
        log.info("%s: matched by %s", file.path, key)
    return files


def _refuse_shared(name: str, train: Sequence[DataFile], evals: Sequence[DataFile]) -> None:
    real = {Path(file.real).resolve() for file in train}
    shared = [file.path for file in evals if Path(file.real).resolve() in real]
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
            f"eval.fields auto: {info.path} {'chosen' if info.chosen else 'left out'}: {info.why}" for info in infos
        )
        return with_fields(source.reading, infos), notes
    return source.reading, ()


def _too_few(source: Source, what: str, records: int) -> Iterator[Problem]:
    if records < source.min_records:
        yield Problem(what, None, f"{records} records, and min_records asks for {source.min_records}")


def _files_to_scan(loaded: Sequence[_Loaded]) -> list[Shard]:
    """Each training file once for each way of reading it, in the order of their paths."""
    wanted = {Shard(file, one.check.train.reading) for one in loaded for file in one.train}
    return sorted(wanted, key=lambda shard: (shard.file.path.encode(), repr(shard.reading)))


def _finish(
    one: _Loaded, index: RunIndex, scanned: Mapping[Shard, ScannedFile], config: Config, problems: list[Problem]
) -> CheckResult:
    check, rows = one.check, one.rows
    shards = [Shard(file, check.train.reading) for file in one.train]
    pool = Pool.of([scanned[shard] for shard in sorted(shards, key=lambda s: s.file.path.encode())])
    problems.extend(pool.problems(check.train, config.on_bad_record, config.max_bad))
    problems.extend(_too_few(check.train, f"check {check.name}: train", pool.records))
    ignored = [_ignored_text(config, path) for path in check.ignore]
    scored = score_rows(
        rows.rows, rows.fingerprints, one.lengths, index, one.first, pool.findings, check.boilerplate, ignored
    )
    scores, changed = gather(scored.rows, pool)
    problems.extend(changed)
    scores = [replace(score, flagged=check.flag_at.applies(score)) for score in scores]
    problems.extend(_unchecked(check, scores))
    return _result(one, pool, scored, scores)


def _ignored_text(config: Config, path: str) -> str:
    try:
        return (config.base / path).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"ignore: {path} could not be read as UTF-8 text: {type(error).__name__}") from None


def _unchecked(check: Check, scores: Sequence[RowScore]) -> Iterator[Problem]:
    unchecked = sum(not score.looked_for for score in scores)
    name = f"check {check.name}"
    if scores and unchecked == len(scores):
        yield Problem(name, None, "no eval row could be scored or looked for: name the fields that hold the question")
    elif unchecked > check.max_unchecked * len(scores):
        yield Problem(
            name, None, f"{unchecked} of {len(scores)} eval rows were not checked (too short, no text or "
            f"boilerplate-only), and max_unchecked allows {float(check.max_unchecked):.0%}",
        )  # fmt: skip


def _result(one: _Loaded, pool: Pool, scored: Scored, scores: Sequence[RowScore]) -> CheckResult:
    by_class = {s: sum(row.script == s and row.words > 0 for row in one.rows.rows) for s in SCRIPTS}
    used: dict[Script, int] = {s: one.lengths.n[s] for s in SCRIPTS if by_class[s]} or {
        "spaced": one.lengths.n["spaced"]
    }
    largest = max(used, key=lambda s: (by_class[s], -SCRIPTS.index(s)))
    return CheckResult(
        name=one.check.name,
        settings=one.check.settings(),
        n=used[largest],
        n_by_class=dict(used.items()),
        n_rule=n_rule(one.check.n),
        rows=tuple(scores),
        train=tuple(pool.inputs),
        eval=tuple(_seen(one.rows.files, one.rows)),
        boilerplate_runs=scored.boilerplate_runs,
        boilerplate_rows=scored.boilerplate_rows,
        limit=one.check.fail_over.shown,
        passed=one.check.fail_over.passes(scores),
        complete=True,
        notes=one.notes,
    )


def _seen(files: Sequence[EvalFile], rows: EvalSet) -> Iterator[InputFile]:
    return (file.seen for file in files)
