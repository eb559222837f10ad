"""Words: one normalisation for both sides."""

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard.text import choose_n, normalise, scaled, script, spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't", ["don", "t"]),
        ("3.14", ["3", "14"]),
        ("state-of-the-art --", ["state", "of", "the", "art"]),
        ("İstanbul ΣΟΦΟΣ", ["istanbul", "σοφοσ"]),
        ("ﬁne\u00adtune\ufeff", ["finetune"]),
        ("a\u200bb", ["ab"]),
        ("cafe\u0301 ＡＢ", ["café", "ab"]),
        ("\u0301a -\u0301\u0302b", ["a", "b"]),
        ("我是abc１", ["我", "是", "abc1"]),
        ("ก็ดี", ["ก็", "ดี"]),
        ("\ud800x\udfffy\ufffdz\x00w", ["x", "y", "z", "w"]),
        ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        ("½", ["1", "2"]),
        ("❤\ufe0f 1\ufe0f", ["1"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("mark", string.punctuation)
def test_all_ascii_punctuation_separates(mark: str) -> None:
    assert words(f"a{mark}b é{mark}b") == ["a", "b", "é", "b"]


def test_nfkc_gives_no_character_that_an_earlier_rule_drops() -> None:
    kept = (chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cf", "Cs"))
    dropped = [c for c in kept if any(unicodedata.category(d) == "Cf" for d in unicodedata.normalize("NFKC", c))]
    assert dropped == []


@pytest.mark.parametrize(("text", "places"), [("🄐", [(0, 1)]), ("a brand™, b", [(0, 1), (2, 8), (10, 11)])])
def test_a_symbol_that_becomes_letters_belongs_to_its_word(text: str, places: list[tuple[int, int]]) -> None:
    assert spans(text) == places


@given(st.text())
def test_spans_belong_to_the_words(text: str) -> None:
    places = spans(text)
    assert len(places) == len(words(text))
    assert all(0 <= first < last <= len(text) for first, last in places)


@given(st.text(st.sampled_from("aB é-我ก็カ．ß"), max_size=30))
def test_a_span_holds_its_word(text: str) -> None:
    for (first, last), word in zip(spans(text), words(text), strict=True):
        assert word in words(text[first:last])


@given(st.text())
def test_words_are_stable(text: str) -> None:
    assert words(" ".join(words(text))) == words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two", "spaced"),
        ("我是 one", "chinese"),
        ("我 one", "spaced"),
        ("カな我是我是我是我是", "japanese"),
        ("ก็ดี我", "thai"),
        ("", "spaced"),
    ],
)
def test_script_of_a_row(text: str, expected: str) -> None:
    assert script(words(text)) == expected


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([20] * 40, 13),
        ([3] * 40, 8),
        ([9] * 2 + [20] * 38, 9),
        ([9] + [20] * 19, 9),
        ([9] + [20] * 20 + [0] * 9, 13),
        ([], 8),
    ],
)
def test_n_is_the_fifth_percentile_by_nearest_rank(lengths: list[int], expected: int) -> None:
    assert choose_n(sorted(lengths), "spaced") == expected


def test_lengths_are_scaled_for_scripts_without_spaces_and_rounded_up() -> None:
    assert [scaled(5, kind) for kind in ("spaced", "chinese", "japanese", "thai")] == [5, 5, 8, 10]
    assert (scaled(13, "japanese"), scaled(13, "thai")) == (20, 26)


UNSPACED = [
    *[(0x0E00, 0x0FFF), (0x1000, 0x109F), (0xAA60, 0xAA7F), (0xA9E0, 0xA9FF), (0x1780, 0x17FF), (0x3040, 0x30FF)],
    *[(0x31F0, 0x31FF), (0x1AFF0, 0x1B16F), (0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)],
    (0x20000, 0x3FFFF),
]


def by_the_rules(text: str) -> list[str]:
    """The five rules, one character after the other."""
    selectors = [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
    text = "".join(c for c in text if unicodedata.category(c) != "Cf" and ord(c) not in selectors)
    out, stands_on, apart = "", False, False
    for c in unicodedata.normalize("NFKC", text):
        category = unicodedata.category(c)
        if category[0] == "M" and not stands_on:
            continue
        if category[0] != "M":
            unspaced = (category[0] == "L" or category == "Nl") and any(a <= ord(c) <= b for a, b in UNSPACED)
            out += " " if unspaced or apart else ""
            stands_on, apart = category[0] in "LN", unspaced
        separates = category[0] in "PS" or category in ("Cc", "Cs", "Co") or c == "\ufffd"
        out += " " if separates else {"ς": "σ", "İ": "i"}.get(c, c.lower())
    return out.split()


def test_only_marks_and_the_letters_named_join_with_what_stands_before() -> None:
    pairs = (unicodedata.decomposition(chr(code)).split() for code in range(0x110000))
    seconds = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and not pair[0].startswith("<")}
    assert {c for c in seconds if unicodedata.category(c)[0] != "M"} <= {"\U00016d67"}


@pytest.mark.parametrize("text", ["ㄱㅏ", "감사ㄳ ﾡￂ", "ᄀ㉠", "각ᆨ ｶﾞ", "\u1161ㅏ"])
def test_letters_that_join_do_so_whatever_stands_beside_them(text: str) -> None:
    assert words(text) == by_the_rules(text)
    assert words(f"{text} e\u0301") == [*by_the_rules(text), "é"]


def test_characters_folded_alone_give_the_words_of_the_whole_text() -> None:
    """Every code point between two letters, in one batch of records and each by the rule as it is written."""
    texts = [f"a{chr(code)}b" for code in range(0x80, 0x30000) if unicodedata.category(chr(code)) not in ("Cn", "Co")]
    together = normalise("\x00".join(texts)).decode().split("\x00")
    wrong = [text for text, found in zip(texts, together, strict=True) if found.split() != by_the_rules(text)]
    assert wrong == []
