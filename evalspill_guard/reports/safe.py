"""Makes text that somebody else wrote harmless before it stands in a report."""

from __future__ import annotations

import re

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
# C0 and C1 controls, line separators, bidirectional embeddings, overrides and isolates, lone surrogates.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_BREAKS = re.compile("[\t\n]")


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold, lone surrogates, replaced by U+FFFD."""
    return _LONE_SURROGATES.sub("\ufffd", text)


def visible(text: str) -> str:
    """The text with characters that change how others are shown replaced by escapes; tabs and line feeds stay."""
    return _HIDDEN.sub(_escape, text)


def visible_line(text: str) -> str:
    """As `visible`, on one line: for paths, ids and messages."""
    return _LINE_BREAKS.sub(_escape, visible(text))


def fold(text: str) -> str:
    """The text with each stretch of white space made one space, and none at its ends."""
    return " ".join(text.split())


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
