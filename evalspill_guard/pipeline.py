"""The walk from a config to what a run found out: it reads and computes, and prints nothing."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalspill_guard import __version__
from evalspill_guard.baseline import Baseline, load, mark_accepted, use_of
from evalspill_guard.config import Check, Config
from evalspill_guard.errors import ExitCode, UsageError, worst
from evalspill_guard.evalset import EvalFile
from evalspill_guard.gather import gather
from evalspill_guard.index import RunIndex
from evalspill_guard.indexing import build
from evalspill_guard.loading import Loaded, in_no_record, load_checks, too_few
from evalspill_guard.model import CheckResult, Problem, RowScore, RunResult, Script, Shard, TrainingRecord
from evalspill_guard.pool import Pool, ScannedFile
from evalspill_guard.scan import Means, Progress, scan_files
from evalspill_guard.scoring import SCRIPTS, Scored, n_rule, score_rows
from evalspill_guard.training import Searched, Trained, training_records

log = logging.getLogger(__name__)
_ALONE = Means()


@dataclass(frozen=True, slots=True)
class Run:
    """What a run found out, the eval files that the clean files are made from, by check name, and how it was found."""

    result: RunResult
    eval_files: Mapping[str, Sequence[EvalFile]]
    trained: Trained
    means: Means


def run(
    config: Config,
    progress: Progress | None = None,
    means: Means = _ALONE,
    baseline: Baseline | None = None,
) -> Run:
    """Do every check of a config; wrong use raises UsageError, what cannot be read ends up among the problems.

    `baseline` holds the accepted rows, where they are not those of the config's own.
    """
    accepted = baseline or own_baseline(config)
    problems: list[Problem] = []
    loaded = load_checks(config, accepted.path, means.folder, problems)
    queries = [one.lengths.query(row) for one in loaded for row in one.rows.rows]
    index = build(queries)
    log.info("indexed %d eval rows", sum(len(one.rows.rows) for one in loaded))
    scanned = scan_files(_files_to_scan(loaded), queries, index, means, progress)
    finished = [_finish(one, index, scanned, config, accepted, problems) for one in loaded]
    results, trained = [result for result, _ in finished], Trained(index, [one for _, one in finished])
    listed: list[TrainingRecord] | None = None
    if config.reports.training and not problems:
        listed, unread = training_records(trained, results, means, progress)
        problems.extend(unread)
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
            baseline=use_of(accepted, results, not problems),
            training=None if listed is None or problems else tuple(listed),
        ),
        {one.check.name: one.rows.files for one in loaded},
        trained,
        means,
    )


def own_baseline(config: Config) -> Baseline:
    """The baseline of a config; raises UsageError where it is wrong, or named in the config and not there."""
    return load(config.base / config.baseline, config.baseline, config.baseline_named)


def strict(result: RunResult) -> RunResult:
    """The same result, as wrong use where the baseline holds stale entries."""
    stale = result.baseline is not None and result.baseline.stale
    return replace(result, exit_code=int(worst([ExitCode(result.exit_code), ExitCode.USAGE]))) if stale else result


def incomplete(result: RunResult, problem: Problem) -> RunResult:
    """The same result with one problem more, and no check complete."""
    return replace(
        result,
        problems=(*result.problems, problem),
        training=None,
        checks=tuple(replace(check, complete=False) for check in result.checks),
        exit_code=int(ExitCode.INCOMPLETE),
    )


def _files_to_scan(loaded: Sequence[Loaded]) -> list[Shard]:
    """Each training file once for each way of reading it, in the order of their paths."""
    wanted = {Shard(file, one.check.train.reading) for one in loaded for file in one.train}
    return sorted(wanted, key=lambda shard: (shard.file.path.encode(), repr(shard.reading)))


def _finish(
    one: Loaded,
    index: RunIndex,
    scanned: Mapping[Shard, ScannedFile],
    config: Config,
    accepted: Baseline,
    problems: list[Problem],
) -> tuple[CheckResult, Searched]:
    check, rows = one.check, one.rows
    shards = [Shard(file, check.train.reading) for file in one.train]
    pool = Pool.of([scanned[shard] for shard in sorted(shards, key=lambda s: s.file.path.encode())])
    problems.extend(pool.problems(check.train, config.on_bad_record, config.max_bad))
    problems.extend(too_few(check.train, f"check {check.name}: train", pool.records))
    problems.extend(in_no_record(f"check {check.name}: train", pool.unmet))
    ignored = [_ignored_text(config, path) for path in check.ignore]
    scored = score_rows(
        rows.rows, rows.fingerprints, one.lengths, index, one.first, pool.findings, check.boilerplate, ignored
    )
    scores, changed = gather(scored.rows, pool)
    problems.extend(changed)
    scores = [replace(score, flagged=True) if check.flag_at.applies(score) else score for score in scores]
    scores = mark_accepted(accepted, check.name, [file.file.path for file in rows.files], scores)
    problems.extend(_unchecked(check, scores))
    return _result(one, pool, scored, scores), Searched(one, pool.files, scored.boilerplate, ignored)


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


def _result(one: Loaded, pool: Pool, scored: Scored, scores: Sequence[RowScore]) -> CheckResult:
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
        eval=tuple(file.seen for file in one.rows.files),
        boilerplate_runs=scored.boilerplate_runs,
        boilerplate_rows=scored.boilerplate_rows,
        limit=one.check.fail_over.shown,
        passed=one.check.fail_over.passes(scores),
        complete=True,
        notes=one.notes,
    )
