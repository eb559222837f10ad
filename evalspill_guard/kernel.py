"""The hot loop: a batch of texts -> the hash of every word, and from these the hash of any run.

A run's hash is a polynomial over its words' hashes, modulo 2**64. With running sums of word x base**place, the
hash of the run at any place and of any length is one subtraction and one product, so all N share one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from evalspill_guard.text import LEAF_END, RECORD_END, normalise, without_ends

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_BASE = 0x9E3779B97F4A7C15
_UNBASE = pow(_BASE, -1, 1 << 64)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
_LONG = 512  # bytes; a longer word is hashed by itself, since one of megabytes would take a turn for each eight bytes
_PAD = b" " * 16  # so that eight bytes can be read at the last word's end


def _powers(base: int, count: int) -> Hashes:
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


class _Powers:
    """base**0, base**1, ... and their inverses, grown as longer batches come."""

    def __init__(self) -> None:
        self._up = self._down = np.ones(1, dtype=np.uint64)

    def up_to(self, count: int) -> tuple[Hashes, Hashes]:
        if len(self._up) < count:
            size = 1 << max(16, count.bit_length())
            self._up, self._down = _powers(_BASE, size), _powers(_UNBASE, size)
        return self._up[:count], self._down[:count]


_POWERS = _Powers()


@dataclass(frozen=True, slots=True)
class Batch:
    """The words of a batch of texts.

    hashes   one a word, in the order of `order`
    texts    the first word of each text, and the number of words at the end
    leaves   the first word of each leaf, and the number of words at the end
    order    which of the given texts stands at each place: ASCII texts first
    """

    hashes: Hashes
    sums: Hashes
    texts: Places
    leaves: Places
    order: Places

    def windows(self, length: int) -> Hashes:
        """The hash of the run of so many words at every place; runs that cross from one text into another too."""
        count = len(self.hashes) - length + 1
        if count <= 0:
            return np.empty(0, dtype=np.uint64)
        _, down = _POWERS.up_to(count)
        windows = self.sums[length:] - self.sums[:-length]
        windows *= down
        return windows

    def at(self, places: Places, lengths: Places) -> Hashes:
        """The hashes of single runs, each with a length of its own; every run must lie inside the batch."""
        _, down = _POWERS.up_to(len(self.sums))
        hashes: Hashes = (self.sums[places + lengths] - self.sums[places]) * down[places]
        return hashes


def batch(texts: Sequence[Sequence[str]]) -> Batch:
    """Normalise texts, each given by its leaves, and hash their words."""
    buffer, order = _joined([LEAF_END.join(leaves) for leaves in texts])
    ends = _ends(buffer)
    if np.count_nonzero(ends) != sum(map(len, texts)) + len(texts) - sum(map(bool, texts)):  # some text holds one
        buffer, order = _joined([LEAF_END.join(map(without_ends, leaves)) for leaves in texts])
        ends = _ends(buffer)
    return _hashed(buffer, np.flatnonzero(ends), np.array(order, dtype=np.int64))


def _ends(buffer: bytes) -> npt.NDArray[np.bool_]:
    """Whether a leaf or a text ends at each byte."""
    return np.frombuffer(buffer, dtype=np.uint8) < 2


def _joined(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    """The words of all texts in one buffer, and which text stands at each place: the ASCII ones first."""
    plain = [number for number, text in enumerate(texts) if text.isascii()]
    other = [number for number, text in enumerate(texts) if not text.isascii()] if len(plain) < len(texts) else []
    parts = [normalise(RECORD_END.join([texts[n] for n in group]) + RECORD_END) for group in (plain, other) if group]
    return b"".join([b" ", *parts, _PAD]), plain + other


def _hashed(buffer: bytes, borders: npt.NDArray[np.intp], order: Places) -> Batch:
    data = np.frombuffer(buffer, dtype=np.uint8)
    inside = data > 0x20
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    hashes = _word_hashes(buffer, starts, ends - starts)
    up, _ = _POWERS.up_to(len(hashes))
    sums = np.zeros(len(hashes) + 1, dtype=np.uint64)
    np.cumsum(hashes * up, out=sums[1:])
    first_words = np.searchsorted(starts, borders)
    leaves = np.concatenate(([0], first_words))
    texts = np.concatenate(([0], first_words[data[borders] == 0]))
    return Batch(hashes, sums, texts, leaves, order)


def _eights(buffer: bytes) -> Hashes:
    """The eight bytes at every place but the last eight, as a view that copies nothing."""
    return np.ndarray((len(buffer) - 8,), dtype="<u8", buffer=buffer, strides=(1,))


def _word_hashes(buffer: bytes, starts: npt.NDArray[np.intp], sizes: npt.NDArray[np.intp]) -> Hashes:
    """Mix a word's bytes, eight at a time; longer words take further turns on the shrinking rest, up to _LONG."""
    eights = _eights(buffer)
    hashes = eights[starts].astype(np.uint64, copy=False)
    hashes &= _MASKS.take(np.minimum(sizes, 8))
    mix(hashes)
    rest = np.flatnonzero(sizes > 8)
    done = 8
    while len(rest):
        more = eights[starts[rest] + done].astype(np.uint64, copy=False)
        more &= _MASKS.take(np.minimum(sizes[rest] - done, 8))
        more += hashes[rest] * np.uint64(_BASE)
        mix(more)
        hashes[rest] = more
        done += 8
        rest = rest[sizes[rest] > done]
        if done == _LONG:
            hashes[rest] = [_long_hash(buffer, starts[word], sizes[word]) for word in rest]
            break
    return hashes


def _long_hash(buffer: bytes, start: np.intp, size: np.intp) -> int:
    return xxhash.xxh3_64_intdigest(memoryview(buffer)[start : start + size])


def mix(hashes: Hashes) -> None:
    """A bijection that spreads every bit over all (Stafford's variant 13 of MurmurHash3's finaliser)."""
    hashes ^= hashes >> np.uint64(30)
    hashes *= _MIX_1
    hashes ^= hashes >> np.uint64(27)
    hashes *= _MIX_2
    hashes ^= hashes >> np.uint64(31)
