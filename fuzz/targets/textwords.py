"""Words: the arrays, the plain definition in tests/reference.py and the hashes of the kernel agree on any text."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

from evalspill_guard.kernel import Batch, batch
from evalspill_guard.text import normalise, script, spans, without_ends, words

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import reference


def check(data: bytes) -> None:
    """Texts separated by line feeds, their leaves by tabs; bytes that are not UTF-8 are code points of two bytes."""
    text = _decoded(data)
    texts = [one.split("\t") for one in text.split("\n")]
    for leaves in texts:
        for leaf in leaves:
            _as_defined(leaf)
    _hashes_agree(texts)
    reference.words.cache_clear()  # it keeps every text, which are too many here
    reference.script.cache_clear()


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-16-le", "surrogatepass" if len(data) % 2 == 0 else "replace")


def _as_defined(text: str) -> None:
    found, defined = words(text), list(reference.words(text))
    assert found == defined, (text, found, defined)
    if found:
        assert script(found) == reference.script(tuple(found)), found
    assert words(text + " ") == found, text
    assert normalise(without_ends(text)).decode().split() == found
    _spans_in_order(text, found)


def _spans_in_order(text: str, found: list[str]) -> None:
    """A span for every word, in order and inside of the text; what stands between them is no word."""
    places = spans(text)
    assert len(places) == len(found), (text, places, found)
    assert places == sorted(places), places
    assert all(0 <= first < last <= len(text) for first, last in places), places
    at = 0
    for first, last in places:
        assert not words(text[at:first]), (text, at, first)
        at = max(at, last)
    assert not words(text[at:]), (text, at)


def _hashes_agree(texts: list[list[str]]) -> None:
    """All texts at once, each alone, its words alone: the same hashes at the same places."""
    together = batch(texts)
    assert sorted(together.order.tolist()) == list(range(len(texts)))
    for place, number in enumerate(together.order.tolist()):
        leaves = texts[number]
        first, last = together.texts[place : place + 2].tolist()
        every = [word for leaf in leaves for word in reference.words(leaf)]
        assert last - first == len(every), (leaves, every)
        assert together.hashes[first:last].tolist() == batch([[" ".join(every)]]).hashes.tolist(), leaves
        _leaves_agree(batch([leaves]), leaves)


def _leaves_agree(alone: Batch, leaves: list[str]) -> None:
    sizes = [len(reference.words(leaf)) for leaf in leaves]
    borders = alone.leaves.tolist()
    assert [b - a for a, b in pairwise(borders)] == sizes, (leaves, borders)
    if len(alone.hashes) > 1:
        assert alone.windows(2)[0] == batch([[" ".join(_words(leaves)[:2])]]).windows(2)[0], leaves


def _words(leaves: list[str]) -> list[str]:
    return [word for leaf in leaves for word in reference.words(leaf)]
