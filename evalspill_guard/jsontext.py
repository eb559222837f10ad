"""JSON as it is found in data files: duplicate keys, NaN, lone surrogates and numbers of any length are all read."""

from __future__ import annotations

import json
import re

import orjson

_INT_DIGITS = 4_000  # below the interpreter's own limit for int(), which is 4,300
_DATA_URL = re.compile(r"data:[^\s,]*;base64,[A-Za-z0-9+/=_%-]*\s*", re.IGNORECASE)


class Pairs:
    """A JSON object in which a key stands more than once; every pair, in document order."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        self.pairs = pairs

    def __repr__(self) -> str:
        return f"<Pairs: {len(self.pairs)}>"


def _object(pairs: list[tuple[str, object]]) -> object:
    values = dict(pairs)
    return values if len(values) == len(pairs) else Pairs(pairs)


def _integer(digits: str) -> object:
    return int(digits) if len(digits) <= _INT_DIGITS else digits


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def decode(raw: bytes | str) -> object:
    """The value of a JSON text, fast: of duplicate keys the last value, of integers beyond 64 bits a float."""
    try:
        return orjson.loads(raw)
    except ValueError:
        return decode_pairs(raw)


def decode_pairs(raw: bytes | str) -> object:
    """The value of a JSON text, exactly. A ValueError says where the text is wrong, never what stands there."""
    try:
        return DECODER.decode(raw if isinstance(raw, str) else raw.decode())
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ValueError(f"{error.msg} ({line}column {error.colno})") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not valid UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def leaf_text(value: object) -> str | None:
    """The text of a string or number; None for what is no text."""
    if isinstance(value, str):
        return value if value and not is_data_url(value) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return None


def is_data_url(text: str) -> bool:
    """Whether the whole text is a base64 data URL; one that words follow is text."""
    return text[0] in "dD" and _DATA_URL.fullmatch(text) is not None
