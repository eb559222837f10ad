"""Make untrusted names harmless before they are printed: file names, ids and keys come from the scanned data."""

from __future__ import annotations


def safe(text: str) -> str:
    """One line that no terminal or CI log takes for a command.

    What is not printable (control characters, bidi marks, lone surrogates, line breaks) is shown as an escape;
    a leading `::` and every `##[` are broken up.
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
    shown = shown.replace("##[", "##\\[")
    stripped = shown.lstrip()
    return shown.replace("::", "\\:\\:", 1) if stripped.startswith("::") else shown


def safe_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(safe(line) for line in text.split("\n"))
