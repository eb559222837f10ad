"""The grammar of leaf paths: `question`, `meta.source`, `messages[role=user].content`, `choices[]`, `["a.b"]`, `.`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

_LONGEST_NAME = 4  # words
_LONGEST_SHOWN = 80  # characters
_SPECIAL = frozenset('.[]"')


class FieldError(ValueError):
    """A leaf path that cannot be read; the message shows the path and the character where it went wrong."""

    def __init__(self, path: str, at: int, what: str) -> None:
        super().__init__(f"field path {path!r}, character {at + 1}: {what}")


@dataclass(frozen=True, slots=True)
class Key:
    """The value of a key; in a list, a name of digits is the element at that place."""

    name: str


@dataclass(frozen=True, slots=True)
class Each:
    """Every element of a list."""


@dataclass(frozen=True, slots=True)
class Where:
    """The elements of a list in which `key` has the value `value`."""

    key: str
    value: str


Step: TypeAlias = Key | Each | Where


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A leaf path as written, and its steps; no steps: the record itself."""

    text: str
    steps: tuple[Step, ...]


def parse_path(text: str) -> FieldPath:
    """Read a leaf path; FieldError says where it is wrong and what would be right."""
    if text == ".":
        return FieldPath(text, ())
    steps: list[Step] = []
    at = 0
    while at < len(text) or not steps:
        step, at = _step(text, at, first=not steps)
        steps.append(step)
    return FieldPath(text, tuple(steps))


def format_path(steps: Sequence[Step]) -> str:
    """The text of a path with these steps; `parse_path` reads it back."""
    parts = [_format_step(step) for step in steps]
    dots = ["" if not place or part.startswith("[") else "." for place, part in enumerate(parts)]
    return "".join(dot + part for dot, part in zip(dots, parts, strict=True)) or "."


def _format_step(step: Step) -> str:
    if isinstance(step, Each):
        return "[]"
    if isinstance(step, Where):
        return f"[{_quoted_if(step.key, '=')}={_quoted_if(step.value)}]"
    name = _quoted_if(step.name)
    return f"[{name}]" if name.startswith('"') else name


def _quoted_if(name: str, also: str = "") -> str:
    plain = (
        name and name == name.strip() and name.isprintable() and not _SPECIAL & set(name) and (also or ".") not in name
    )
    return name if plain else json.dumps(name, ensure_ascii=not name.isprintable())


def _step(text: str, at: int, *, first: bool) -> tuple[Step, int]:
    if text[at : at + 1] == "[":
        return _bracket(text, at + 1)
    if not first:
        if text[at] != ".":
            raise FieldError(text, at, 'expected "." or "["')
        at += 1
    name, end = _until(text, at, '.[]"')
    if not name:
        raise FieldError(text, at, 'expected a key (a key with dots or brackets is written ["a.b"])')
    if text[end : end + 1] in ("]", '"'):
        raise FieldError(text, end, f'unexpected {text[end]} (a key with dots, quotes or brackets is written ["a.b"])')
    return Key(name), end


def _bracket(text: str, at: int) -> tuple[Step, int]:
    """What stands after an opening bracket: nothing, a place, a quoted key, or key=value."""
    if text[at : at + 1] == "]":
        return Each(), at + 1
    quoted = text[at : at + 1] == '"'
    name, end = _word(text, at, "=]")
    if text[end : end + 1] == "=":
        value, end = _word(text, end + 1, "]")
        return Where(name, value), _close(text, end)
    if not quoted and not name.isdecimal():
        raise FieldError(text, at, 'expected [], [key=value] or ["key"]')
    return Key(name), _close(text, end)


def _word(text: str, at: int, stops: str) -> tuple[str, int]:
    """A JSON string, or everything up to one of `stops`; and the place after it."""
    if text[at : at + 1] != '"':
        return _until(text, at, stops)
    try:
        word, end = json.JSONDecoder().raw_decode(text, at)
    except ValueError:
        raise FieldError(text, at, "the quoted name is not closed, or holds an unknown escape") from None
    return str(word), end


def _until(text: str, at: int, stops: str) -> tuple[str, int]:
    end = at
    while end < len(text) and text[end] not in stops:
        end += 1
    return text[at:end], end


def _close(text: str, at: int) -> int:
    if text[at : at + 1] != "]":
        raise FieldError(text, at, 'expected "]"')
    return at + 1


def literal(path: FieldPath) -> str | None:
    """The path as the name of one key (a column's name may hold dots), where it is not that anyway."""
    return None if path.steps in ((), (Key(path.text),)) or '"' in path.text else path.text


Shape: TypeAlias = dict[str | None, Any]  # what a selection looks up: key (None: every list element) -> below it


def shape(paths: Iterable[FieldPath]) -> Shape:
    """Everything that a selection by these paths looks up."""
    top: Shape = {}
    for path in paths:
        below = top
        for step in path.steps:
            below = below.setdefault(step.name if isinstance(step, Key) else None, {})
            if isinstance(step, Where):
                below.setdefault(step.key, {})
        name = literal(path)
        if name:
            top.setdefault(name, {})
    return top


def names(looked_up: Shape) -> set[str]:
    """Every key in a shape."""
    return {name for name in looked_up if name is not None}.union(*map(names, looked_up.values()))


def disjoint(one: FieldPath, two: FieldPath) -> bool:
    """Whether both paths cannot select the same leaf of a record without duplicate keys."""
    if one.steps[:1] == (Key(two.text),) or two.steps[:1] == (Key(one.text),):
        return False
    for a, b in zip(one.steps, two.steps, strict=False):
        if a != b:
            keys = isinstance(a, Key) and isinstance(b, Key)
            return keys or (isinstance(a, Where) and isinstance(b, Where) and a.key == b.key)
    return False


def shown_leaf(path: str) -> str:
    """A leaf path as it is shown: a key may be a text, and so may a cell that stands where a column's name should."""
    count = len(path.split())
    is_text = count > _LONGEST_NAME or len(path) > _LONGEST_SHOWN or path.rstrip('"]) ').endswith(("?", "\uff1f"))
    return f"(a name of {count} words)" if is_text else path
