"""The baseline as a file: a line an accepted row, and nothing else, so that it merges line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

from evalspill_guard.errors import UsageError
from evalspill_guard.evalset import fingerprint, fingerprint_key
from evalspill_guard.model import Accepted

RULES = 1
"""The rules for words by which fingerprints are made. Raise it with every change that gives a row other words."""

_MOST_MISTAKES = 10
_MORE_THAN_ANY = 1 << 53  # words; what is larger is no longer the same number wherever it is read
_MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
_AGAIN = "move the file away and accept the rows anew with `evalspill-guard baseline create --reason ...`"
# What a terminal or an editor hides or reorders, and what UTF-8 cannot hold: written as escapes.
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def key_mark() -> str | None:
    """A mark of EVALSPILL_KEY by which another key is noticed; None where it is not set."""
    key = fingerprint_key()
    return fingerprint(["evalspill guard baseline"], key)[:8] if key else None


def is_date(value: object) -> bool:
    """Whether this is a date such as 2030-12-31."""
    if not (isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value)):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MORE_THAN_ANY


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_fingerprint(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{32}", value) is not None


_FIELDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "check": ("a name", _is_text),
    "eval_file": ("a path", _is_text),
    "fingerprint": ("32 hexadecimal digits", _is_fingerprint),
    "kind": ("run or whole", lambda value: value in ("run", "whole")),
    "n": ("a number or null", lambda value: value is None or _is_count(value)),
    "longest": ("a number", _is_count),
    "coverage": ("a number from 0 to 1", _is_share),
    "reason": ("a text", _is_text),
}
_EXPIRES = {"expires": ("a date such as 2030-12-31", is_date)}


def parse(raw: bytes, shown: str) -> tuple[Accepted, ...]:
    """The entries of a baseline file; raises UsageError with what is wrong in which line, and what to do."""
    entries, wrong = [], []
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            if line.strip():
                entries.append(_entry(line))
        except UsageError as error:
            wrong.append(f"{shown}:{number}: {error}")
    if wrong:
        more = [f"{len(wrong) - _MOST_MISTAKES} more lines are wrong"] if len(wrong) > _MOST_MISTAKES else []
        raise UsageError("\n".join(wrong[:_MOST_MISTAKES] + more))
    return tuple(entries)


def _entry(line: bytes) -> Accepted:
    found = _object(line)
    _refuse_foreign(found.pop("rules", None), found.pop("key", None))
    fields = {**_FIELDS, **(_EXPIRES if "expires" in found else {})}
    unknown = [name for name in found if name not in fields]
    if unknown:
        raise UsageError(f"unknown key {unknown[0][:40]!r}; a line holds {', '.join(fields)}")
    for name, (what, fits) in fields.items():
        if name not in found:
            raise UsageError(f"{name} is missing")
        if not fits(found[name]):
            raise UsageError(f"{name} must be {what}")
    return Accepted(**found)


def _object(line: bytes) -> dict[str, Any]:
    if line.startswith(_MARKERS):
        raise UsageError(
            "a merge conflict: keep the lines of both sides and remove the markers "
            "(`evalspill-baseline.jsonl merge=union` in .gitattributes does that)"
        )
    try:
        found = json.loads(line.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise UsageError("not an accepted row: it is no JSON") from None
    if not isinstance(found, dict):
        raise UsageError("not an accepted row: it is no JSON object")
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"the key {twice[:40]!r} stands there twice")
    return found


def _refuse_foreign(rules: object, key: object) -> None:
    if not _is_count(rules):
        raise UsageError(f"rules is missing or no number: the line was not written by this tool; {_AGAIN}")
    if rules != RULES:
        raise UsageError(f"made under rules {rules} for words, and this version has rules {RULES}; {_AGAIN}")
    mark = key_mark()
    if key == mark:
        return
    if key is None:
        raise UsageError(f"made without EVALSPILL_KEY, which is set here: unset it, or {_AGAIN}")
    made = "is not set here" if mark is None else "is another one here"
    raise UsageError(f"made with an EVALSPILL_KEY, which {made}: set the one it was made with, or {_AGAIN}")


def render(entries: Iterable[Accepted]) -> bytes:
    """The file: a line an entry, sorted by bytes, each once."""
    lines = sorted({_line(entry) for entry in entries})
    return b"".join(lines)


def _line(entry: Accepted) -> bytes:
    facts: dict[str, object] = {name: getattr(entry, name) for name in _FIELDS}
    mark = key_mark()
    facts |= {"expires": entry.expires} if entry.expires else {}
    facts |= {"rules": RULES} | ({"key": mark} if mark else {})
    text = json.dumps(facts, ensure_ascii=False)
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode() + b"\n"
