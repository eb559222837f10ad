"""Read YAML into plain nodes that keep their line, and collect every mistake on the way."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import yaml

from evalspill_guard.errors import Mistake

MOST_BYTES = 1_000_000
MOST_NODES = 100_000
MOST_DEPTH = 50
_MOST_KEY = 100  # characters of each key in a key path
_MOST_SHOWN = 300  # characters of a key path in a mistake
_MOST_GUESSED = 20  # unknown keys for which a near one is looked for


class _Loader(yaml.SafeLoader):
    """A safe loader whose only booleans are true and false: off, no and on are words."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar as written; kind is str, int, float, bool or null."""

    line: int
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    line: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping whose keys are strings; keys has the line of each."""

    line: int
    values: dict[str, Node]
    keys: dict[str, int]


Node = Scalar | Items | Mapping


@dataclass(slots=True)
class Mistakes:
    """Collects what is wrong."""

    found: list[Mistake] = field(default_factory=list)

    def add(self, node: Node | int, key: str, what: str) -> None:
        shown = key if len(key) <= _MOST_SHOWN else f"{key[:_MOST_SHOWN]}..."
        self.found.append(Mistake(node if isinstance(node, int) else node.line, shown or "(top level)", what))

    def unknown(self, line: int, key: str, name: str, valid: Iterable[str]) -> None:
        """An unknown key, with the nearest valid one when it is close."""
        near = difflib.get_close_matches(name, list(valid), n=1) if len(self.found) < _MOST_GUESSED else []
        self.add(line, key, "unknown key" + (f"; did you mean {near[0]}?" if near else ""))


def read(text: str, mistakes: Mistakes) -> Node | None:
    """The document, or None where it is no YAML."""
    if len(text) > MOST_BYTES:
        mistakes.add(1, "", "a config above 1 MB is refused")
        return None
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        mistakes.add(mark.line + 1 if mark else 1, "", f"this is not YAML: {error.problem or 'a fault'}")
        return None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:  # "\UFFFFFFFF" is no character
        place = getattr(error, "position", loader.index if loader else 0)
        line = text.count("\n", 0, place) + 1
        mistakes.add(line, "", "this is not YAML, holds what is no character, or is nested too deeply")
        return None
    if root is None:
        mistakes.add(1, "", "the config is empty")
        return None
    return _Reader(mistakes).node(root, "")


class _Reader:
    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes, self.seen, self.too_deep = mistakes, 0, False

    def node(self, raw: yaml.Node, key: str) -> Node | None:
        self.seen += 1
        if key.count(".") + key.count("[") > MOST_DEPTH:  # also an alias that holds itself
            if not self.too_deep:
                self.mistakes.add(raw.start_mark.line + 1, "", "nested too deeply, or an alias holds itself")
            self.too_deep = True
            return None
        if self.seen > MOST_NODES:
            if self.seen == MOST_NODES + 1:
                self.mistakes.add(raw.start_mark.line + 1, key, "too many values; are there aliases of aliases?")
            return None
        line = raw.start_mark.line + 1
        if isinstance(raw, yaml.ScalarNode):
            return Scalar(line, raw.value, raw.tag.rpartition(":")[2])
        if isinstance(raw, yaml.SequenceNode):
            items = [self.node(item, f"{key}[{number}]") for number, item in enumerate(raw.value)]
            return Items(line, tuple(item for item in items if item is not None))
        return self.mapping(raw, key, line)

    def mapping(self, raw: yaml.Node, key: str, line: int) -> Mapping:
        values: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for name_node, value_node in raw.value:
            at = name_node.start_mark.line + 1
            if not isinstance(name_node, yaml.ScalarNode):
                self.mistakes.add(at, key, "a key must be a word")
                continue
            name = name_node.value
            path = f"{key}.{name[:_MOST_KEY]}" if key else name[:_MOST_KEY]
            if name in lines:
                self.mistakes.add(at, path, f"this key stands twice, first on line {lines[name]}")
            lines.setdefault(name, at)
            value = self.node(value_node, path)
            if value is not None:
                values[name] = value
        return Mapping(line, values, lines)
