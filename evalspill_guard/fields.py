"""Leaf paths, and the texts of a record that they select.

Two values of one duplicated key are both data, but every fast parser keeps the last alone. So a record is parsed fast,
the keys that were met are counted against what its bytes hold, and where they do not add up it is parsed again with
all its pairs. The counts may ask for that too often; they never miss a hidden value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson

from evalspill_guard.paths import Each, FieldError, FieldPath, Key, Step, Where, parse_path

__all__ = ["DECODER", "FieldError", "FieldPath", "Pairs", "Selector", "decode", "leaf_text", "parse_path"]

MAX_DEPTH = 200  # well inside what the parsers and the interpreter's stack can take, wherever a record is read
_INT_DIGITS = 4_000  # below the interpreter's own limit for int(), which is 4,300
_EXACT = 2.0**63  # orjson turns integers beyond 64 bits into floats
_REPARSE = 1 << 60  # added to a count of keys, it makes sure that the count cannot match
_DATA_URL = re.compile(r"data:[^\s,]*;base64,[A-Za-z0-9+/=_%-]*\s*", re.IGNORECASE)
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
_PLAIN_KEY = re.compile(r'[ -!#-.0-\[\]-~]+')  # printable ASCII that JSON writes in one way only: no quote, \ or /


class Pairs:
    """A JSON object in which a key stands more than once; every pair, in document order."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        self.pairs = pairs

    def __repr__(self) -> str:
        return f"Pairs({len(self.pairs)})"


def _object(pairs: list[tuple[str, object]]) -> object:
    values = dict(pairs)
    return values if len(values) == len(pairs) else Pairs(pairs)


def _integer(digits: str) -> object:
    return int(digits) if len(digits) <= _INT_DIGITS else digits


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def decode(raw: bytes | str) -> object:
    """The value of a JSON text; objects with duplicate keys as orjson sees them (last value) unless it refuses."""
    try:
        return orjson.loads(raw)
    except ValueError:
        return decode_pairs(raw)


def decode_pairs(raw: bytes | str) -> object:
    """The value of a JSON text with all pairs of every object; a ValueError says where it broke, never what stood there."""
    try:
        text = raw if isinstance(raw, str) else raw.decode()
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg}, line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not valid UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def leaf_text(value: object) -> str | None:
    """The text of a string or number; None for what is no text."""
    if isinstance(value, str):
        return None if not value or _is_data_url(value) else value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return None


def _is_data_url(text: str) -> bool:
    return text[0] in "dD" and _DATA_URL.fullmatch(text) is not None


def _gather(values: Iterable[object], found: list[str], depth: int = 0) -> int:
    """Append the text of every leaf below `values`; the colons that their JSON must hold (keys with colons apart)."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    colons = 0
    for value in values:
        kind = type(value)
        if kind is str:
            if value:
                colons += value.count(":")  # type: ignore[attr-defined]
                if value[0] not in "dD" or not _is_data_url(value):  # type: ignore[index,arg-type]
                    found.append(value)  # type: ignore[arg-type]
        elif value is None or kind is bool:
            continue
        elif kind is dict:
            colons += len(value) + _gather(value.values(), found, depth + 1)  # type: ignore[arg-type,attr-defined]
        elif kind is list:
            colons += _gather(value, found, depth + 1)  # type: ignore[arg-type]
        else:
            colons += _gather_rare(value, found, depth)
    return colons


def _gather_rare(value: object, found: list[str], depth: int) -> int:
    if isinstance(value, Pairs):
        return _gather([item for _, item in value.pairs], found, depth + 1)
    text = leaf_text(value)
    if text is not None:
        found.append(text)
    return _REPARSE if isinstance(value, float) and abs(value) >= _EXACT else 0
