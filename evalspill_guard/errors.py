"""The one error tree, and the exit codes it ends in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What a run's exit code means. The order of `worst` is 4 > 2 > 3 > 1 > 0."""

    PASSED = 0
    FAILED = 1
    USAGE = 2
    INCOMPLETE = 3
    INTERNAL = 4
    INTERRUPTED = 130


_PRECEDENCE = (ExitCode.INTERNAL, ExitCode.USAGE, ExitCode.INCOMPLETE, ExitCode.FAILED, ExitCode.PASSED)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The code that wins when several apply; PASSED when there is none."""
    return min(codes, key=_PRECEDENCE.index, default=ExitCode.PASSED)


class EvalSpillError(Exception):
    """Anything this tool stops for on purpose; `code` is the exit code it ends in."""

    code = ExitCode.INTERNAL


class UsageError(EvalSpillError):
    """The command line, the config or the baseline is wrong."""

    code = ExitCode.USAGE


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One thing wrong in a config: where (1-based line), at which key, and what to do."""

    line: int
    key: str
    what: str


class ConfigError(UsageError):
    """Everything that is wrong with a config file, found in one reading."""

    def __init__(self, path: str, mistakes: Iterable[Mistake]) -> None:
        self.path = path
        self.mistakes = tuple(sorted(mistakes))
        super().__init__("\n".join(f"{path}:{m.line}: {m.key}: {m.what}" for m in self.mistakes))


class Unreadable(EvalSpillError):
    """A file, or the rest of it, could not be read. The scan goes on without it and ends incomplete."""

    code = ExitCode.INCOMPLETE

    def __init__(self, what: str, line: int | None = None) -> None:
        self.what = what
        self.line = line
        super().__init__(what if line is None else f"line {line}: {what}")


class ReportError(EvalSpillError):
    """A report could not be written."""
