"""The leaf paths of a data set, with the figures that show which of them hold its questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from evalspill_guard.jsontext import Pairs, leaf_text
from evalspill_guard.paths import Each, Key, Step, Where, format_path, parse_path

QUESTION_NAMES = ("question", "prompt", "instruction", "query", "problem", "input", "text")
TEMPLATE_SHARE = 0.5  # a value in more of the rows than this is no question of its own
TEMPLATE_ROWS = 20  # with fewer rows than this a repeated value says nothing
_USER_TURNS = (("role", "user"), ("from", "human"), ("from", "user"))
_DEEPEST = 50  # the table is for reading

_Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A leaf path: share of records that fill it, mean characters of a leaf, share of records with its top value.

    `chosen` and `why` are what `propose` says of it.
    """

    path: str
    fill: float
    average: float
    top_share: float
    chosen: bool = False
    why: str = ""


@dataclass(slots=True)
class _Column:
    records: int = 0
    leaves: int = 0
    characters: int = 0
    values: Counter[int] = field(default_factory=Counter)

    def add(self, texts: list[str]) -> None:
        self.records += 1
        self.leaves += len(texts)
        self.characters += sum(map(len, texts))
        self.values.update(set(map(hash, texts)))


def table(values: Iterable[object], limit: int = 1000) -> list[FieldInfo]:
    """The leaf paths of the first `limit` records, in the order in which they first appear."""
    columns: dict[_Steps, _Column] = {}
    rows = 0
    for value in islice(values, limit):
        rows += 1
        record: dict[_Steps, list[str]] = {}
        for steps, text in _leaves(value, ()):
            record.setdefault(steps, []).append(text)
        for steps, texts in record.items():
            columns.setdefault(steps, _Column()).add(texts)
    return [_info(steps, column, rows) for steps, column in columns.items()]


def _info(steps: _Steps, column: _Column, rows: int) -> FieldInfo:
    top = max(column.values.values())
    return FieldInfo(format_path(steps), column.records / rows, column.characters / column.leaves, top / rows)


def _leaves(value: object, path: _Steps) -> Iterator[tuple[_Steps, str]]:
    """Every text with its path; the user's turns of a chat a second time, under a path that names the user."""
    text = leaf_text(value)
    if text is not None:
        yield path, text
    if len(path) > _DEEPEST:
        return
    for key, item in _entries(value):
        yield from _leaves(item, (*path, Key(key)))
    for item in value if isinstance(value, list) else ():
        yield from _leaves(item, (*path, Each()))
        user = _user_turn(item)
        for key, said in _entries(item) if user else ():
            if user and key != user.key:
                yield from _leaves(said, (*path, user, Key(key)))


def _entries(value: object) -> Iterable[tuple[str, object]]:
    if isinstance(value, Pairs):
        return value.pairs
    return value.items() if isinstance(value, dict) else ()


def _user_turn(item: object) -> Where | None:
    """The step that selects this list element as something the user says."""
    return next((Where(key, who) for key, who in _USER_TURNS if (key, who) in _entries(item)), None)


def propose(infos: Iterable[FieldInfo], rows: int) -> list[FieldInfo]:
    """The same table, with the fields chosen that seem to hold the questions of an eval set, and each one's reason."""
    every = list(infos)
    fit = [info for info in every if not _is_template(info, rows)]
    whole_chats = {_whole_chat(info) for info in fit} - {info.path for info in fit if _is_user(info)}
    choice = _choose([info for info in fit if info.path not in whole_chats])
    return [
        replace(
            info, chosen=info.path in choice, why=choice.get(info.path) or _why_not(info, rows, whole_chats, choice)
        )
        for info in every
    ]


def _choose(fit: Sequence[FieldInfo]) -> dict[str, str]:
    """The paths chosen, each with its reason: by their names, else the user's turns, else the longest."""
    named = [info for info in fit if _last_key(info).lower() in QUESTION_NAMES]
    top = min(map(_depth, named), default=0)
    named = [info for info in named if _depth(info) == top]
    if any(info.fill >= 0.5 for info in named):
        return {info.path: f'called "{_last_key(info)}"' for info in named}
    full = [info for info in fit if info.fill >= 0.5]
    asked = [info for info in full if _is_user(info)]
    longest = max(asked or full, key=lambda info: info.average, default=None)
    if longest is None:
        return {}
    return {longest.path: "what the user says" if asked else "the longest text that half of the rows fill"}


def _why_not(info: FieldInfo, rows: int, whole_chats: set[str], choice: dict[str, str]) -> str:
    if _is_template(info, rows):
        return f"the same value in {info.top_share:.0%} of the rows"
    if info.path in whole_chats:
        return "holds more than what the user says"
    if _last_key(info).lower() in QUESTION_NAMES and choice:
        return "deeper in the record than the chosen field" if info.fill >= 0.5 else _rarely(info)
    if info.fill < 0.5:
        return _rarely(info)
    return "no question by its name" if any(why.startswith("called") for why in choice.values()) else "shorter"


def _rarely(info: FieldInfo) -> str:
    return f"filled in {int(info.fill * 100)}% of the rows only"


def _is_template(info: FieldInfo, rows: int) -> bool:
    return rows >= TEMPLATE_ROWS and info.top_share > TEMPLATE_SHARE


def _steps(info: FieldInfo) -> _Steps:
    return parse_path(info.path).steps


def _is_user(info: FieldInfo) -> bool:
    return any(isinstance(step, Where) for step in _steps(info))


def _whole_chat(info: FieldInfo) -> str:
    """The path of the same leaves in every turn."""
    return format_path([Each() if isinstance(step, Where) else step for step in _steps(info)]) if _is_user(info) else ""


def _depth(info: FieldInfo) -> int:
    return sum(isinstance(step, Key) for step in _steps(info))


def _last_key(info: FieldInfo) -> str:
    return next((step.name for step in reversed(_steps(info)) if isinstance(step, Key)), "")
