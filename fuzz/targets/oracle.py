"""JSON and leaf paths once more, the slow way, with the standard library's parser and every pair of an object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from evalspill_guard.paths import Each, FieldPath, Key, Step, Where, literal, parse_path

DEEPEST = 200
_DATA_URL = re.compile(r"data:[^\s,]*;base64,[A-Za-z0-9+/=_%-]*\s*", re.IGNORECASE)


class Obj:
    """An object with all its pairs."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


class Leaf:
    """A text, which is the same as another one only if it is the same leaf."""

    def __init__(self, text: str | None) -> None:
        self.text = text


def _integer(digits: str) -> object:
    return int(digits) if len(digits) < 4000 else digits


def _tree(value: object) -> Any:
    if isinstance(value, Obj):
        return Obj([(key, _tree(inner)) for key, inner in value.pairs])
    if isinstance(value, list):
        return [_tree(inner) for inner in value]
    if isinstance(value, str):
        return Leaf(value if value and not _DATA_URL.fullmatch(value) else None)
    return Leaf(None if value is None or isinstance(value, bool) else str(value))


def parsed(text: str) -> Any:
    """A JSON text as objects, lists and leaves; ValueError where it is none."""
    return _tree(json.loads(text, object_pairs_hook=Obj, parse_int=_integer))


def depth(tree: Any) -> int:
    """How deeply it is nested."""
    level, deepest = [tree], 0
    while level := [inner for one in level for inner in _children(one)]:
        deepest += 1
    return deepest


def _children(tree: Any) -> list[Any]:
    return [inner for _, inner in tree.pairs] if isinstance(tree, Obj) else tree if isinstance(tree, list) else []


def _below(tree: Any) -> Iterator[Leaf]:
    if isinstance(tree, Leaf):
        yield tree
    for inner in _children(tree):
        yield from _below(inner)


def _keyed(tree: Any, name: str) -> list[Any]:
    if isinstance(tree, Obj):
        return [inner for key, inner in tree.pairs if key == name]
    if isinstance(tree, list) and re.fullmatch("0|[1-9][0-9]{0,8}", name):
        return tree[int(name) : int(name) + 1]
    return []


def _stepped(tree: Any, step: Step) -> list[Any]:
    if isinstance(step, Key):
        return _keyed(tree, step.name)
    items = tree if isinstance(tree, list) else []
    if isinstance(step, Each):
        return list(items)
    return [item for item in items if _holds(item, step)]


def _holds(item: Any, step: Where) -> bool:
    return any(isinstance(one, Leaf) and one.text == step.value for one in _keyed(item, step.key))


def _walked(tree: Any, path: FieldPath) -> list[Any]:
    nodes = [tree]
    for step in path.steps:
        nodes = [inner for node in nodes for inner in _stepped(node, step)]
    name = literal(path)
    return (_keyed(tree, name) if name else []) + nodes


def selected(tree: Any, paths: tuple[str, ...] | None) -> list[str]:
    """The texts that leaf paths select, each leaf once."""
    nodes = [tree] if paths is None else [node for path in paths for node in _walked(tree, parse_path(path))]
    leaves = {id(leaf): leaf for node in nodes for leaf in _below(node)}
    return [leaf.text for leaf in leaves.values() if leaf.text]
