"""The texts of a record that leaf paths select.

Both values of a duplicate key are data, but a fast parser keeps the last alone. So a record is parsed fast, the keys
met are counted against what its bytes hold, and where the two differ it is parsed again with every pair. The counts
may differ without need; they never agree while a value is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import orjson

from evalspill_guard.fieldtable import FieldInfo, propose, table
from evalspill_guard.jsontext import DECODER, Pairs, decode, decode_pairs, is_data_url, leaf_text
from evalspill_guard.paths import (
    Each,
    FieldError,
    FieldPath,
    Key,
    Shape,
    Step,
    disjoint,
    literal,
    names,
    parse_path,
    shape,
)

__all__ = [
    "DECODER",
    "FieldError",
    "FieldInfo",
    "FieldPath",
    "Pairs",
    "Selector",
    "decode",
    "parse_path",
    "propose",
    "table",
]

MAX_DEPTH = 200  # the same wherever a record is read, and well inside the interpreter's stack
_EXACT = 2.0**63  # the fast parser turns integers beyond 64 bits into floats
_BACKSLASH = ord("\\")  # one byte is found ten times faster as a number
_UNSURE = 1 << 60  # added to a count, it makes sure that the count differs
_CELLS = frozenset((str, int, float, bool, type(None)))
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
_ONE_SPELLING = re.compile(r"[ !#-.0-\[\]-~]+")  # printable ASCII without the quote, \ and /: nothing else is escaped


class Selector:
    """Selects the texts of a record: those that `paths` name, in that order, or every text leaf (None).

    `unmet` are those of several paths that led to nothing so far, in any record.
    """

    def __init__(self, paths: Sequence[str] | None) -> None:
        parsed = [parse_path(path) for path in paths or ()]
        self._every = not any(path.steps for path in parsed)
        written = paths or ()
        self._paths = [
            (literal(path), [_walk(step) for step in path.steps], name)
            for path, name in zip(parsed, written, strict=True)
        ]
        self.unmet = set(written) if len(written) > 1 and not self._every else set()
        self._apart = all(disjoint(one, two) for one, two in combinations(parsed, 2))
        self._shape = shape(parsed)
        self._names = sorted(names(self._shape))
        self._quoted = [f'"{name}"'.encode("utf-8", "replace") for name in self._names]
        self.from_json = self._way()

    def _way(self) -> Callable[[bytes], list[str]]:
        """The fastest way to select from a JSON text that is right for these paths."""
        if self._every:
            return _every_leaf
        if not self._countable():
            return self._exact
        single = len(self._names) == len(self._paths) == 1 and self._shape == {self._names[0]: {}}
        return partial(_one_key, self._names[0], self._quoted[0], self._named) if single else self._named

    def _countable(self) -> bool:
        return self._apart and all(_ONE_SPELLING.fullmatch(name) and not name.isdecimal() for name in self._names)

    def leaves(self, value: object) -> list[str]:
        """The selected texts of a parsed record; a leaf that two paths name counts once, where it is named first."""
        found: list[str] = []
        if self._every:
            _gather((value,), found)
            return found
        if len(self._paths) == 1 or (self._apart and _is_row(value)):
            self._select(value, found)
            return found
        self._select(_with_own_leaves(value), found)
        return [str(leaf) for leaf in {id(leaf): leaf for leaf in found}.values()]

    def _named(self, raw: bytes) -> list[str]:
        """The selected texts of a JSON text. No key that a path names may stand in it more often than it is met."""
        try:
            value = orjson.loads(raw)
        except ValueError:
            return self._exact(raw)
        if sum(map(raw.count, self._quoted)) != _count(value, self._shape):
            return self._exact(raw)
        if _BACKSLASH in raw and b"\\u00" in raw and _ESCAPED_ASCII.search(raw):
            return self._exact(raw)
        found: list[str] = []
        return found if self._select(value, found) else self._exact(raw)

    def _exact(self, raw: bytes) -> list[str]:
        return self.leaves(decode_pairs(raw))

    def _select(self, value: object, found: list[str]) -> bool:
        """Append the selected texts; whether all of them are plain, so that no parser can have lost a part."""
        plain = True
        for name, steps, written in self._paths:
            nodes = [value]
            for step in steps:
                nodes = step(nodes)
            if name:  # a column's name may look like a path
                nodes = _by_key(name, [value]) + nodes
            if self.unmet and written in self.unmet and (nodes or _ends_in_nothing(steps, value)):
                self.unmet.discard(written)
            plain = _gather_named(nodes, found) and plain
        return plain


def _ends_in_nothing(steps: Sequence[Callable[[list[Any]], list[Any]]], value: object) -> bool:
    """Whether a path leads to an empty list or object or to null: its field is there, and may hold more elsewhere."""
    nodes = [value]
    for step in steps:
        if nodes and all(node is None or node in ([], {}) for node in nodes):
            return True
        nodes = step(nodes)
    return False


def _one_key(name: str, quoted: bytes, otherwise: Callable[[bytes], list[str]], raw: bytes) -> list[str]:
    """The text under one key of the record itself, the commonest choice; all but plain cases are for `otherwise`."""
    try:
        text = orjson.loads(raw)[name]
    except (ValueError, KeyError, TypeError):
        return otherwise(raw)
    plain = type(text) is str and text and text[0] not in "dD" and raw.count(quoted) == 1
    return [text] if plain and not (_BACKSLASH in raw and b"\\u00" in raw) else otherwise(raw)


def _every_leaf(raw: bytes) -> list[str]:
    """Every text of a JSON text. Its colons are those of its entries and of its strings, unless some are escaped."""
    found: list[str] = []
    try:
        colons = _gather((orjson.loads(raw),), found)
    except ValueError:
        colons = _UNSURE
    if raw.count(b":") == colons and not (_BACKSLASH in raw and b"\\u003" in raw):
        return found
    found = []
    _gather((decode_pairs(raw),), found)
    return found


def _gather(values: Iterable[Any], found: list[str], depth: int = 0) -> int:
    """Append every text below `values`; the number of entries there, and of colons in the strings."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    colons = 0
    for value in values:
        kind = type(value)
        if kind is str:
            if value:
                if ":" in value:  # far cheaper than to count none
                    colons += value.count(":")
                if value[0] not in "dD" or not is_data_url(value):
                    found.append(value)
        elif kind is dict:
            colons += len(value) + _gather(value.values(), found, depth + 1)
        elif kind is list:
            colons += _gather(value, found, depth + 1)
        elif kind is int or (kind is float and -_EXACT < value < _EXACT):
            found.append(str(value))
        elif value is not None and kind is not bool:
            colons += _gather_rare(value, found, depth)
    return colons


def _gather_rare(value: object, found: list[str], depth: int) -> int:
    if isinstance(value, Pairs):
        return _gather([item for _, item in value.pairs], found, depth + 1)
    text = leaf_text(value)
    if text is not None:
        found.append(text)
    return _UNSURE if isinstance(value, float) and abs(value) >= _EXACT else 0


def _gather_named(nodes: list[Any], found: list[str]) -> bool:
    """Append every text below `nodes`; False where that may be an object, or a number that was rounded."""
    plain = True
    for node in nodes:
        if type(node) is not str:
            plain = plain and all(map(_is_plain, node if type(node) is list else (node,)))
    _gather(nodes, found)
    return plain


def _is_plain(value: object) -> bool:
    return not isinstance(value, (dict, list)) and not (isinstance(value, float) and abs(value) >= _EXACT)


def _walk(step: Step) -> Callable[[list[Any]], list[Any]]:
    if isinstance(step, Key):
        return partial(_by_key, step.name)
    return _each if isinstance(step, Each) else partial(_where, step.key, step.value)


def _by_key(name: str, nodes: list[Any]) -> list[Any]:
    chosen = []
    for node in nodes:
        if type(node) is dict:
            if name in node:
                chosen.append(node[name])
        else:
            chosen += _by_key_rare(name, node)
    return chosen


def _by_key_rare(name: str, node: object) -> list[Any]:
    """The values of a key of a Pairs, or the list element at a place (which has one spelling: 0, not 00)."""
    if isinstance(node, Pairs):
        return [value for key, value in node.pairs if key == name]
    if not isinstance(node, list) or not name.isdecimal() or len(name) > 9 or name != str(int(name)):
        return []
    return node[int(name) : int(name) + 1]


def _each(nodes: list[Any]) -> list[Any]:
    return [item for node in nodes if type(node) is list for item in node]


def _where(key: str, wanted: str, nodes: list[Any]) -> list[Any]:
    return [item for item in _each(nodes) if wanted in map(leaf_text, _by_key(key, [item]))]


def _is_row(value: object) -> bool:
    """Whether this is a row of a table: a value for each column."""
    return isinstance(value, dict) and _CELLS.issuperset(map(type, value.values()))


class _OwnLeaf(str):
    """A leaf's text as an object of its own, so that a leaf is told from another one of the same text."""

    __slots__ = ()


def _with_own_leaves(value: object, depth: int = 0) -> object:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {key: _with_own_leaves(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Pairs):
        return Pairs([(key, _with_own_leaves(item, depth + 1)) for key, item in value.pairs])
    if isinstance(value, list):
        return [_with_own_leaves(item, depth + 1) for item in value]
    text = leaf_text(value)
    return None if text is None else _OwnLeaf(text)


def _count(value: Any, shape: Shape) -> int:
    """The entries of a record that a selection of this shape looks up, each counted once."""
    met = 0
    if type(value) is dict:
        for name, below in shape.items():
            if name in value:
                met += 1 + (_count(value[name], below) if below else 0)
    elif type(value) is list and None in shape:
        below = shape[None]
        for item in value:
            met += _count(item, below)
    return met
