"""evalspill.yaml: a config or mistakes with their lines, never another error, soon; what it says can be said again."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cache
from typing import Any

import jsonschema
import yaml

from evalspill_guard.config import Config, json_schema, load, parse
from evalspill_guard.errors import ConfigError, UsageError
from evalspill_guard.yamlfile import Items, Mapping, Mistakes, Node, Scalar, read
from fuzz.targets.common import folder

MOST_SECONDS = 5


def check(data: bytes) -> None:
    """The bytes of the file."""
    path = folder() / "evalspill.yaml"
    path.write_bytes(data)
    began = time.monotonic()
    try:
        config = load(path)
    except ConfigError as error:
        _mistakes_have_lines(error, data)
    except UsageError as error:
        assert str(error).startswith(str(path)), error
    else:
        _said_again(config)
        _schema_agrees(data)
    assert time.monotonic() - began < MOST_SECONDS


def _mistakes_have_lines(error: ConfigError, data: bytes) -> None:
    lines = 1 + len(data.decode("utf-8-sig").splitlines())
    assert error.mistakes
    for mistake in error.mistakes:
        assert 1 <= mistake.line <= lines, mistake
        assert mistake.key, mistake
        assert mistake.what, mistake


def _said_again(config: Config) -> None:
    """The settings of every check, written as a config, are the same checks; `auto` is replaced in a run."""
    if any(one.eval.auto_fields or one.eval.fields_missing for one in config.checks):
        return
    text = yaml.safe_dump({"version": 1, "checks": [one.settings() for one in config.checks]}, allow_unicode=True)
    again = parse(text.encode().decode(), config.path)
    assert again.checks == config.checks, text


@cache
def _validator() -> Any:
    return jsonschema.Draft7Validator(json_schema())


def _schema_agrees(data: bytes) -> None:
    """Editors do not mark what the loader reads."""
    root = read(data.decode("utf-8-sig"), Mistakes())
    assert root is not None
    wrong = [error.message for error in _validator().iter_errors(_plain(root))]
    assert not wrong, wrong


def _plain(node: Node) -> object:
    if isinstance(node, Mapping):
        return {key: _plain(value) for key, value in node.values.items()}
    if isinstance(node, Items):
        return [_plain(item) for item in node.items]
    return _value(node)


def _value(node: Scalar) -> object:
    if node.kind in ("int", "float"):
        with suppress(ValueError):  # text that a tag calls a number
            return int(node.text) if node.kind == "int" else float(node.text)
    return {"bool": node.text == "true", "null": None}.get(node.kind, node.text)
