"""Make untrusted text harmless where it is shown: file names, ids and keys come from the scanned data.

One function for each place: `safe` for terminals and job logs, `visible` for pages, `github_data` and
`github_property` for workflow commands, `markdown` for table cells, `xml_legal` for XML, `csv_cell` for spreadsheets.
"""

from __future__ import annotations

import re

# Patterns are compiled when they are first used: --version and --help need none of them.
COMMAND = r"##([A-Za-z]*)\["
_SURROGATES = "[\ud800-\udfff]"
# C0 and C1 controls, line separators, bidirectional embeddings, overrides and isolates, lone surrogates.
_HIDDEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_LINE_BREAKS = "[\t\n]"
_NO_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_FORMULA = tuple("=+-@\t\r")
_CSV_QUOTED = frozenset(',"\r\n')
_MARKDOWN = r"[!-/:-@\[-`{-~]"
_MARKDOWN_PLAIN = frozenset("/,-.;='\"%+?")  # they mean nothing inside a table cell
_GLUE = "&#8288;"  # a word joiner: nothing is seen, and a mention, reference or address no longer stands in one piece
_LINKED = r"(?i)@|#(?=\w)|:(?=/)|(?<=www)(?=\.)"


def safe(text: str) -> str:
    """One line that no terminal or CI log takes for a command.

    What is not printable (control characters, bidi marks, lone surrogates, line breaks) is shown as an escape;
    a leading `::`, every `##[` and every `##word[` are broken up.
    """
    shown = re.sub(COMMAND, r"##\1\\[", _printable(text, keep=""))
    return shown.replace("::", "\\:\\:", 1) if shown.lstrip().startswith("::") else shown


def safe_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(safe(line) for line in text.split("\n"))


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold, lone surrogates, replaced by U+FFFD."""
    return re.sub(_SURROGATES, "\ufffd", text)


def visible(text: str) -> str:
    """The text with characters that change how others are shown replaced by escapes; tabs and line feeds stay."""
    return re.sub(_HIDDEN, _escape, text)


def visible_line(text: str) -> str:
    """As `visible`, on one line: for paths, ids and messages."""
    return re.sub(_LINE_BREAKS, _escape, visible(text))


def fold(text: str) -> str:
    """The text with each stretch of white space made one space, and none at its ends."""
    return " ".join(text.split())


def github_data(text: str) -> str:
    """The message of a GitHub workflow command; its line breaks stay line breaks."""
    shown = re.sub(COMMAND, r"##\1\\[", _printable(text, keep="\r\n"))
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_property(text: str) -> str:
    """The value of a property, such as `file`, of a GitHub workflow command."""
    return github_data(text).replace(":", "%3A").replace(",", "%2C")


def markdown(text: str) -> str:
    """A cell of a Markdown table: shown as it is, on one line, without markup, HTML, links or mentions.

    Character references never have a meaning in Markdown. Mentions and addresses are looked for in what they give,
    so these are parted by an invisible character.
    """
    parted = re.sub(_LINKED, lambda match: match[0] + "\u2060", _printable(text, keep=""))
    return re.sub(_MARKDOWN, _reference, parted).replace("\u2060", _GLUE)


def xml_legal(text: str) -> str:
    """The text with each character that XML 1.0 forbids replaced by U+FFFD; it still needs XML's own escaping."""
    return re.sub(_NO_XML, "\ufffd", text)


def csv_cell(text: str) -> str:
    """A cell of a CSV file, quoted where needed, and never a formula.

    Many readers stop at NUL; the csv module leaves a lone CR unquoted before Python 3.13.
    """
    cell = encodable(text).replace("\0", "\ufffd")
    if cell.startswith(_FORMULA):
        cell = f"'{cell}"
    return '"' + cell.replace('"', '""') + '"' if _CSV_QUOTED.intersection(cell) else cell


def _printable(text: str, keep: str) -> str:
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _reference(match: re.Match[str]) -> str:
    return match[0] if match[0] in _MARKDOWN_PLAIN else f"&#{ord(match[0])};"
