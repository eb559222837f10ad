"""Hashes of words and runs."""

import time

import numpy as np
import pytest

from evalspill_guard.kernel import batch


def test_the_same_words_have_the_same_hash_in_an_ascii_and_in_another_text() -> None:
    plain, other = batch([["one two extraordinarily"]]), batch([["one two extraordinarily é"]])
    assert plain.hashes.tolist() == other.hashes[:3].tolist()


def test_ascii_texts_come_first_and_order_says_which_text_is_which() -> None:
    texts = batch([["é à"], ["one"], ["ü"], ["two three"]])
    assert texts.order.tolist() == [1, 3, 0, 2]
    assert np.diff(texts.texts).tolist() == [1, 2, 2, 1]


def test_leaves_are_counted_in_words() -> None:
    assert np.diff(batch([["one two", "", "three"]]).leaves[:4]).tolist() == [2, 0, 1]


@pytest.mark.parametrize("length", [1, 2, 5, 13])
def test_a_run_has_the_same_hash_at_every_place(length: int) -> None:
    words = [f"word{i}" for i in range(20)]
    alone = batch([[" ".join(words[3 : 3 + length])]]).windows(length)
    assert batch([[" ".join(words)]]).windows(length)[3] == alone[0]


def test_at_gives_the_hash_of_runs_of_different_lengths() -> None:
    texts = batch([["a b c d e f g"]])
    runs = texts.at(np.array([0, 2]), np.array([3, 5]))
    assert runs.tolist() == [texts.windows(3)[0], texts.windows(5)[2]]


def test_words_that_differ_only_beyond_eight_bytes_differ_in_hash() -> None:
    hashes = batch([["abcdefgh abcdefghi abcdefghij abcdefghabcdefghi"]]).hashes.tolist()
    assert len(set(hashes)) == 4


def test_ends_inside_a_leaf_are_spaces() -> None:
    texts = batch([["a\x00b", "c\x01d"], ["e"]])
    assert (texts.texts.tolist(), texts.leaves.tolist()[:3]) == ([0, 4, 5], [0, 2, 4])


def test_no_text_at_all_gives_no_words() -> None:
    assert batch([]).windows(8).tolist() == []


def test_words_of_a_megabyte_differ_by_their_last_letter_and_are_hashed_at_once() -> None:
    long = "a" * 1_000_000
    begin = time.monotonic()
    hashes = batch([[f"{long} {long} {long}b {long[:-1]}"]]).hashes.tolist()
    assert len(set(hashes)) == 3
    assert time.monotonic() - begin < 0.5


@pytest.mark.parametrize("size", [504, 511, 512, 513, 520, 521])
def test_a_word_has_the_same_hash_wherever_it_stands_and_another_than_its_neighbours(size: int) -> None:
    word = "".join(chr(97 + place % 26) for place in range(size))
    alone = batch([[word]]).hashes[0]
    hashes = batch([[f"one {word} {word[:-1]} {word}z {word}"]]).hashes
    assert [hashes[1] == alone, hashes[4] == alone] == [True, True]
    assert len(set(hashes.tolist())) == 4


def test_control_characters_in_place_of_ends_are_spaces_even_where_they_are_as_many() -> None:
    texts = batch([["a\x01b"], ["c", "d"], ["e\x00f", "g"]])
    assert np.diff(texts.texts).tolist() == [2, 2, 3]
