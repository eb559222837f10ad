"""Normalise text and split it into words: the one path that both sides of a comparison take.

Words are those of GPT-3's appendix C ("a lowercase, whitespace delimited word with no punctuation"), made exact
for Unicode; a letter of a script written without spaces is a word of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from math import ceil

import numpy as np
import numpy.typing as npt

from evalspill_guard.model import Script

Codes = npt.NDArray[np.uint32]
Kinds = npt.NDArray[np.uint8]

UNICODE_VERSION = unicodedata.unidata_version
RECORD_END = "\x00"
LEAF_END = "\x01"

_SPACE, _BASE, _UNSPACED, _MARK, _OTHER, _DROP = range(6)
_CODE_POINTS = 0x110000
_BLOCK = 256

# Thai and Lao, Tibetan, Myanmar, Khmer: the scripts in which a character carries least of a word.
_THAI = ((0x0E00, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0xAA60, 0xAA7F), (0xA9E0, 0xA9FF), (0x1780, 0x17FF))
_FIRST_UNSPACED = chr(_THAI[0][0])
_KANA = ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0x1AFF0, 0x1B16F))
_HAN = ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))

# Tables of one entry a code point, filled a block at a time when a text first needs it: all at once costs 0.3 s.
# _flags holds the kind after NFKC, and _HARD where NFKC of the character depends on its neighbours or is longer.
_flags = np.zeros(_CODE_POINTS, dtype=np.uint8)
_folded = np.zeros(_CODE_POINTS, dtype=np.uint32)
_filled = np.zeros(_CODE_POINTS // _BLOCK, dtype=bool)
_HARD = 0x80
# Letters that NFKC joins with the letter before: Hangul jamo, and vowels of Kirat Rai.
_JOINING = ((0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF), (0x16D60, 0x16D6F))


def _within(code: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= code <= last for first, last in ranges)


@lru_cache(maxsize=1 << 14)
def _kind(code: int) -> int:
    character = chr(code)
    category = unicodedata.category(character)
    if category == "Cf" or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return _DROP
    if category[0] in "PS" or category in ("Cc", "Cs", "Co") or character.isspace():
        return _SPACE
    if category[0] == "M":
        return _MARK
    if (category[0] == "L" or category == "Nl") and _within(code, _THAI + _KANA + _HAN):
        return _UNSPACED
    return _BASE if category[0] in "LN" else _OTHER


def _lowered(code: int) -> int:
    if code in (0x130, 0x3C2):  # İ would become two characters; ς is σ at the end of a word
        return 0x69 if code == 0x130 else 0x3C3
    return ord(chr(code).lower())


def _nfkc_alone(code: int) -> int | None:
    """The one character that NFKC makes of this one wherever it stands.

    None where its neighbours matter (only marks and the letters in _JOINING join with what stands before) or where
    it becomes several; but several separators are as good as one.
    """
    if unicodedata.category(chr(code))[0] == "M" or _within(code, _JOINING):
        return None
    folded = unicodedata.normalize("NFKC", chr(code))
    kinds = [_kind(ord(character)) for character in folded]
    if len(folded) == 1 and kinds[0] != _MARK and not _within(ord(folded), _JOINING):
        return ord(folded)
    return 0x20 if set(kinds) == {_SPACE} else None


def _fill(blocks: npt.NDArray[np.intp]) -> None:
    for block in blocks.tolist():
        for code in range(block * _BLOCK, (block + 1) * _BLOCK):
            alone = _nfkc_alone(code) if _kind(code) != _DROP else code
            kind = _kind(code if alone is None else alone)
            _flags[code] = kind | (_HARD if alone is None else 0)
            _folded[code] = 0x20 if kind == _SPACE and code > 1 else _lowered(code if alone is None else alone)
        _filled[block] = True


def _codes(text: str) -> Codes:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    wanted = np.zeros(len(_filled), dtype=bool)
    wanted[codes >> 8] = True
    missing = np.flatnonzero(wanted & ~_filled)
    if len(missing):
        _fill(missing)
    return codes


def _text(codes: Codes) -> str:
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


def _nfkc(text: str) -> str:
    """NFKC record by record: most are normalised already, and asking is far cheaper than doing."""
    return RECORD_END.join(
        part if part.isascii() or unicodedata.is_normalized("NFKC", part) else unicodedata.normalize("NFKC", part)
        for part in text.split(RECORD_END)
    )


def _before_marks(kinds: Kinds) -> Kinds:
    """For each place the kind of the last character there or before that is no mark."""
    places = np.where(kinds == _MARK, -1, np.arange(len(kinds)))
    last = np.maximum.accumulate(places)
    return np.where(last < 0, _SPACE, kinds[last]).astype(np.uint8)


def _drop_stray_marks(codes: Codes, kinds: Kinds) -> tuple[Codes, Kinds]:
    stray = (kinds == _MARK) & ~np.isin(_before_marks(kinds), (_BASE, _UNSPACED))
    return codes[~stray], kinds[~stray]


def _set_apart(codes: Codes, kinds: Kinds, marks: bool) -> Codes:
    """Put a space before each letter of an unspaced script, and after it and its marks."""
    letters = kinds == _UNSPACED
    apart = letters.copy()
    if marks:
        apart[1:] |= (_before_marks(kinds)[:-1] == _UNSPACED) & (kinds[1:] != _MARK)
    else:
        apart[1:] |= letters[:-1]
    spaced = np.full(len(codes) + int(apart.sum()), 0x20, dtype=np.uint32)
    spaced[np.arange(len(codes)) + np.cumsum(apart)] = codes
    return spaced


def _normalise_any(text: str) -> bytes:
    codes = _codes(text)
    flags = _flags[codes]
    dropped = flags == _DROP
    if dropped.any():
        codes, flags = codes[~dropped], flags[~dropped]
    if (flags >= _HARD).any():
        codes = _codes(_nfkc(_text(codes)))
        flags = _flags[codes]
    kinds = flags & ~np.uint8(_HARD)
    marks = bool((kinds == _MARK).any())
    if marks:
        codes, kinds = _drop_stray_marks(codes, kinds)
    codes = _folded[codes]
    if (kinds == _UNSPACED).any():
        codes = _set_apart(codes, kinds, marks)
    return _text(codes).encode("utf-8", "surrogatepass")


def _ascii_table() -> bytes:
    kinds = [_kind(code) for code in range(128)]
    return bytes(0x20 if kinds[c] == _SPACE and c > 1 else _lowered(c) for c in range(128)) + bytes(128)


_ASCII = _ascii_table()


def normalise(text: str) -> bytes:
    """The words of a text as UTF-8, separated by spaces (one or more); RECORD_END and LEAF_END stay as they are."""
    if text.isascii():
        return text.encode().translate(_ASCII)
    return _normalise_any(text)


def without_ends(text: str) -> str:
    """The text with the two characters that mark ends replaced by the space that any control character becomes."""
    if RECORD_END in text or LEAF_END in text:
        return text.replace(RECORD_END, " ").replace(LEAF_END, " ")
    return text


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    return normalise(without_ends(text)).decode().split()


def script(row_words: Sequence[str]) -> Script:
    """The class of a row by its own words: is it written without spaces, and in which family of scripts?"""
    codes = [ord(word[0]) for word in row_words if word[0] >= _FIRST_UNSPACED]
    codes = [code for code in codes if _kind(code) == _UNSPACED]
    if 2 * len(codes) <= len(row_words):
        return "spaced"
    if 2 * sum(_within(code, _THAI) for code in codes) > len(codes):
        return "thai"
    return "japanese" if 10 * sum(_within(code, _KANA) for code in codes) >= len(codes) else "chinese"


_HALVES: dict[Script, int] = {"spaced": 2, "chinese": 2, "japanese": 3, "thai": 4}
FLOOR, CAP = 8, 13


def scaled(number: int, kind: Script) -> int:
    """A number of words, in the words of a script: in Japanese and Thai a character carries less than a word."""
    return ceil(number * _HALVES[kind] / 2)


def choose_n(lengths: Sequence[int], kind: Script) -> int:
    """GPT-3's N: the 5th percentile (nearest rank) of the rows' lengths in words, from 8 to 13, scaled for the script.

    Rows of no words do not count; without any other row it is the floor.
    """
    counted = sorted(length for length in lengths if length)
    if not counted:
        return scaled(FLOOR, kind)
    percentile = counted[-(-len(counted) // 20) - 1]
    return min(max(percentile, scaled(FLOOR, kind)), scaled(CAP, kind))


def spans(text: str) -> list[tuple[int, int]]:
    """Where each of `words(text)` stands in the text, in characters (first, last + 1).

    Words are looked for in the pieces between separators; where one piece holds several words (scripts without
    spaces, ligatures of letter and sign) each takes the characters that give it, or else the whole piece.
    """
    if text.isascii():  # then every character stays where it is
        return [word.span() for word in re.finditer(rb"[^ ]+", normalise(without_ends(text)))]
    found: list[tuple[int, int]] = []
    for first, last in _pieces(text):
        found.extend(_spans_in_piece(text, first, last))
    return found


@lru_cache(maxsize=1 << 14)
def _separates(character: str) -> bool:
    """Whether no word can hold this character: ™ and 🄐 are symbols that NFKC turns into letters."""
    if character.isascii():
        return _kind(ord(character)) == _SPACE
    return all(_kind(ord(c)) == _SPACE for c in unicodedata.normalize("NFKC", character))


def _pieces(text: str) -> list[tuple[int, int]]:
    pieces, begin = [], -1
    for at, character in enumerate(text):
        if _separates(character):
            if begin >= 0:
                pieces.append((begin, at))
            begin = -1
        elif begin < 0:
            begin = at
    if begin >= 0:
        pieces.append((begin, len(text)))
    return pieces


@lru_cache(maxsize=1 << 14)
def _kind_alone(character: str) -> int:
    """The kind of a character that stays one character; _HARD for all others."""
    alone = _nfkc_alone(ord(character))
    return _HARD if alone is None or _kind(ord(character)) == _DROP else _kind(alone)


def _spans_in_piece(text: str, first: int, last: int) -> list[tuple[int, int]]:
    kinds = [_kind_alone(character) for character in text[first:last]]
    if _HARD in kinds:
        return _spans_by_words(text, first, last)
    cuts = [at for at in range(1, len(kinds)) if _UNSPACED in kinds[at - 1 : at + 1]]
    return [(first + a, first + b) for a, b in zip([0, *cuts], [*cuts, len(kinds)], strict=True)]


def _spans_by_words(text: str, first: int, last: int) -> list[tuple[int, int]]:
    whole = words(text[first:last])
    if len(whole) < 2:
        return [(first, last)] * len(whole)
    split: list[tuple[int, int]] = []
    parts: list[str] = []
    for begin, end in _clusters(text, first, last):
        here = words(text[begin:end])
        joins = parts and here and not _starts_word(text[begin])
        if joins and not _is_unspaced(parts[-1]):
            parts[-1] += here[0]
            split[-1] = (split[-1][0], end)
            here = here[1:]
        parts.extend(here)
        split.extend([(begin, end)] * len(here))
    return split if parts == whole else [(first, last)] * len(whole)


def _clusters(text: str, first: int, last: int) -> list[tuple[int, int]]:
    starts = [at for at in range(first, last) if at == first or _kind(ord(text[at])) not in (_MARK, _DROP)]
    return list(zip(starts, [*starts[1:], last], strict=True))


def _is_unspaced(word: str) -> bool:
    return _kind(ord(word[0])) == _UNSPACED


def _starts_word(character: str) -> bool:
    return _kind(ord(unicodedata.normalize("NFKC", character)[0])) == _UNSPACED
