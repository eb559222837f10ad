"""The kinds of values that a config holds: each is read with every mistake noted, and is described as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evalspill_guard.errors import Mistake
from evalspill_guard.fields import FieldError, parse_path
from evalspill_guard.files import stars_joined
from evalspill_guard.remote import shown_pattern
from evalspill_guard.yamlfile import Items, Mapping, Mistakes, Node, Scalar


@dataclass(frozen=True, slots=True)
class Kind:
    """What a key may hold: how it is read, and the same as JSON Schema."""

    read: Callable[[Node, str, Mistakes], Any]
    schema: dict[str, Any]

    def __call__(self, node: Node, key: str, mistakes: Mistakes) -> Any:
        return self.read(node, key, mistakes)


def scalar(what: str, pattern: str, kinds: tuple[str, ...], make: Callable[[str], Any], schema: dict[str, Any]) -> Kind:
    """A scalar of these YAML kinds that looks so."""

    def read_one(node: Node, key: str, mistakes: Mistakes) -> Any:
        if isinstance(node, Scalar) and node.kind in kinds and re.fullmatch(pattern, node.text):
            return make(node.text)
        mistakes.add(node, key, f"must be {what}")
        return None

    return Kind(read_one, {"description": what, **schema})


def _share_of(text: str) -> Fraction:
    return Fraction(text[:-1].strip()) / 100 if text.endswith("%") else Fraction(text)


_PERCENTAGE = r"(?:100|[0-9]{1,2}(?:\.[0-9]{1,12})?)\s{0,9}%"
_SHARE = rf"(?:0?\.[0-9]{{1,12}}|[01](?:\.0{{0,12}})?|0\.[0-9]{{0,12}}|{_PERCENTAGE})"
_NUMBERS = ("int", "float", "str")
_PERCENT_SCHEMA: dict[str, Any] = {"type": "string", "pattern": rf"^{_PERCENTAGE}$"}
_SHARE_SCHEMA: dict[str, Any] = {"oneOf": [{"type": "number", "minimum": 0, "maximum": 1}, _PERCENT_SCHEMA]}
whole = scalar("a whole number, 0 or more", r"[0-9]{1,18}", ("int",), int, {"type": "integer", "minimum": 0})
positive = scalar(
    "a whole number, 1 or more", r"0{0,9}[1-9][0-9]{0,17}", ("int",), int, {"type": "integer", "minimum": 1},
)  # fmt: skip
percentage = scalar("a share such as 0.5%", _PERCENTAGE, ("str",), _share_of, _PERCENT_SCHEMA)
share = scalar("a share, such as 0.5 or 50%", _SHARE, _NUMBERS, _share_of, _SHARE_SCHEMA)
word = scalar("a text", r"[^\0\ud800-\udfff]+", ("str", "int"), str, {"type": ["string", "integer"], "minLength": 1})
delimiter = scalar(
    "one character, such as ';' or \"\\t\" (a tab, in double quotes)", r"[^\"\r\n\0\ud800-\udfff]", ("str", "int"), str,
    {"type": ["string", "integer"], "pattern": r"^[^\"\r\n]$"},
)  # fmt: skip
flag = scalar("true or false", "true|false", ("bool",), lambda text: text == "true", {"type": "boolean"})


def choice(*words: str) -> Kind:
    """One of these words."""
    return scalar(" or ".join(words), "|".join(map(re.escape, words)), ("str",), str, {"enum": list(words)})


def either(what: str, *kinds: Kind) -> Kind:
    """The first kind that fits. What is wrong inside a mapping is said at its own key."""

    def read_one(node: Node, key: str, mistakes: Mistakes) -> Any:
        inside: list[Mistake] = []
        for kind in kinds:
            trial = Mistakes()
            value = kind(node, key, trial)
            if not trial.found:
                return value
            inside += [one for one in trial.found if one.key != key]
        mistakes.found += inside
        if not inside:
            mistakes.add(node, key, f"must be {what}")
        return None

    return Kind(read_one, {"description": what, "anyOf": [kind.schema for kind in kinds]})


def _strings(node: Node, key: str, mistakes: Mistakes) -> tuple[str, ...]:
    """A text or a list of texts, at least one."""
    if isinstance(node, Items):
        if not node.items:
            mistakes.add(node, key, "this list is empty; name at least one")
        return tuple(filter(None, (word(item, f"{key}[{n}]", mistakes) for n, item in enumerate(node.items))))
    one = word(node, key, mistakes)
    return (one,) if one else ()


def _paths(node: Node, key: str, mistakes: Mistakes) -> tuple[str, ...]:
    """Leaf paths."""
    named = _strings(node, key, mistakes)
    for path in named:
        _check_path(node, key, path, mistakes)
    return named


def _path(node: Node, key: str, mistakes: Mistakes) -> str | None:
    """One leaf path."""
    named: str | None = word(node, key, mistakes)
    if named:
        _check_path(node, key, named, mistakes)
    return named


def _check_path(node: Node, key: str, named: str, mistakes: Mistakes) -> None:
    try:
        parse_path(named)
    except FieldError as error:
        mistakes.add(node, key, f"bad field path {named!r}: {error}")


def _files(node: Node, key: str, mistakes: Mistakes) -> tuple[str, ...]:
    """Globs, of which at least one does not exclude."""
    named = _strings(node, key, mistakes)
    if named and all(one.startswith("!") for one in named):
        mistakes.add(node, key, "every entry excludes; name what to read, too")
    for one in filter(stars_joined, named):
        how = "leads into folders only alone between slashes, as in **/*.jsonl"
        mistakes.add(node, key, f"{shown_pattern(one)}: ** {how}")
    return named


_WORDS: dict[str, Any] = {
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "items": word.schema}]
}
strings = Kind(_strings, {"description": "a text or a list of texts", **_WORDS})
files = Kind(_files, {"description": "paths or globs, relative to this file; ! excludes", **_WORDS})
paths = Kind(_paths, {"description": "leaf paths, such as question or messages[].content", **_WORDS})
path = Kind(_path, {"description": "a leaf path", **word.schema})


def group(keys: MappingType[str, Kind], least: int = 0) -> Kind:
    """A mapping of these keys, with at least so many of them."""

    def read_one(node: Node, key: str, mistakes: Mistakes) -> dict[str, Any]:
        if not isinstance(node, Mapping):
            mistakes.add(node, key, f"must be a mapping with the keys {', '.join(keys)}")
            return {}
        for name, line in node.keys.items():
            if name not in keys:
                mistakes.unknown(line, f"{key}.{name}" if key else name, name, keys)
        if len(node.keys) < least:
            mistakes.add(node, key, f"is empty; name at least one of {', '.join(keys)}")
        known = {name: value for name, value in node.values.items() if name in keys}
        return {name: keys[name](value, f"{key}.{name}" if key else name, mistakes) for name, value in known.items()}

    properties = {name: kind.schema for name, kind in keys.items()}
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return Kind(read_one, {**schema, "minProperties": least} if least else schema)
