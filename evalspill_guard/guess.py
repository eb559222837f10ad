"""Which files of a dataset repository are for training and which for evaluation, by the names of files and folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Literal

from evalspill_guard.readers import COMPRESSED, SUFFIXES

Side = Literal["train", "eval", ""]
_TRAIN = {"train", "training", "trainset", "sft", "pretrain", "pretraining", "finetune", "finetuning", "corpus",
          "corpora", "dpo", "rlhf", "instruct"}  # fmt: skip
_EVAL = {"eval", "evals", "evalset", "evaluation", "evaluations", "test", "tests", "testset", "bench", "benchmark",
         "benchmarks", "holdout", "heldout", "gold", "golden", "dev", "val", "valid", "validation"}  # fmt: skip
_FORMATS, _PACKED = ("|".join(map(re.escape, names)) for names in (SUFFIXES, COMPRESSED))
_DATA = re.compile(rf"((?:{_FORMATS})(?:{_PACKED})?)$", re.IGNORECASE)
_PROSE = re.compile(r"\.(json|txt|md|text)(\.\w+)?$", re.IGNORECASE)
_NO_DATA = re.compile(
    r"(readme|licen[cs]e|changelog|contributing|notice|requirements|evalspill)\b.*"
    r"|(package(-lock)?|tsconfig|config|dataset_infos?|state|metadata|manifest)\.json",
    re.IGNORECASE,
)
_NO_FOLDERS = {"node_modules", "venv", "env", "__pycache__", "build", "dist", "site-packages", "evalspill-reports"}
_MOST_FILES = 100_000
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Guess:
    """A data file, the side it seems to be on (or neither), the folder whose name says so ("": its own), and why."""

    path: str
    side: Side
    folder: str
    why: str


def data_files(base: Path) -> list[str]:
    """The data files below a folder, as paths relative to it; hidden ones and those of programs are passed over."""
    return sorted(_walk(base))


def _walk(base: Path) -> Iterator[str]:
    seen: set[str] = set()
    count = 0
    for folder, folders, names in os.walk(base, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen or count > _MOST_FILES:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NO_FOLDERS)
        if PurePosixPath(folder).name == "tests" and any(name.endswith(".py") for name in names):
            folders.clear()  # the tests of a program
            continue
        count += len(names)
        for name in names:
            if _DATA.search(name) and not name.startswith(".") and not _NO_DATA.fullmatch(name):
                yield Path(folder, name).relative_to(base).as_posix()


def guess(paths: Iterable[str]) -> list[Guess]:
    """Each file's side: by its own name, else by the nearest folder whose name says so.

    Where nothing is called training, all that is not for evaluation is.
    """
    guesses = [_guess(path) for path in paths]
    if any(one.side == "train" for one in guesses):
        return guesses
    return [
        Guess(one.path, "train", "", "no file is called training, and this one is not for evaluation")
        if not one.side and not _PROSE.search(one.path)
        else one
        for one in guesses
    ]


def _guess(path: str) -> Guess:
    name = PurePosixPath(path)
    for part in (name, *name.parents[:-1]):
        label = _DATA.sub("", part.name) if part is name else part.name
        side = _side(label)
        if side and not (side == "eval" and path.lower().endswith(".md")):
            what = "the file" if part is name else "the folder"
            return Guess(path, side, "" if part is name else part.as_posix(), f'{what} is called "{label}"')
    return Guess(path, "", "", "neither its name nor its folders say what it is for")


def _side(label: str) -> Side:
    said = re.findall("[a-z]+", label.lower())
    train = any(word in _TRAIN for word in said)
    tested = any(word in _EVAL or word.endswith("bench") for word in said)
    if train == tested:
        return ""
    return "train" if train else "eval"


def train_patterns(guesses: Sequence[Guess]) -> dict[str, str]:
    """What holds the training files, each with its reason: folders as a whole, else globs or files by their names."""
    chosen = [one for one in guesses if one.side == "train"]
    patterns = {one.folder: one.why for one in chosen if one.folder}
    for parent in dict.fromkeys(str(PurePosixPath(one.path).parent) for one in chosen if not one.folder):
        mine = [one for one in chosen if not one.folder and str(PurePosixPath(one.path).parent) == parent]
        patterns |= _by_name(mine, [one for one in guesses if one not in mine])
    return patterns


def _suffixes(paths: Iterable[str]) -> str:
    found = sorted({match[1] for path in paths if (match := _DATA.search(path))})
    return found[0] if len(found) == 1 else f"{{{','.join(found)}}}"


def _by_name(mine: Sequence[Guess], others: Sequence[Guess]) -> dict[str, str]:
    """A glob for many files of one beginning, else each by its name."""
    paths = [one.path for one in mine]
    begin = "".join(one[0] for one in takewhile(lambda at: len(set(at)) == 1, zip(*paths, strict=False)))
    begin = begin.rstrip("0123456789")
    apart = not any(fnmatchcase(one.path, f"{literal(begin)}*") for one in others)
    if len(mine) > _MOST_NAMED and apart and _side(PurePosixPath(begin + "x").name[:-1]) == "train":
        return {f"{literal(begin)}*{_suffixes(paths)}": mine[0].why}
    return {literal(one.path): one.why for one in mine}


def literal(path: str) -> str:
    """The glob that matches this path; braces have no spelling of their own, so that they become wildcards."""
    shown = re.sub(r"[{}]", "?", re.sub(r"[*?\[]", r"[\g<0>]", path))
    return f"./{shown}" if shown.startswith("!") else shown
