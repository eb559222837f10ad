"""The longest shared passage, in both texts."""

import numpy as np

from evalspill_guard.evidence import Passage, RecordText, RowText, cut, longest_passage

ROW = "One two three four, five six seven eight."


def _longest(row: str, record: str, n: int, live: list[bool] | None = None) -> Passage | None:
    alive = None if live is None else np.array(live)
    return longest_passage(RowText(row, n, alive), RecordText([record]))


def test_the_longest_of_several_passages_wins() -> None:
    assert _longest(ROW, "one two three x four five six seven y", 3) == Passage(4, 3, 4)


def test_the_first_in_the_row_wins_among_equals() -> None:
    assert _longest(ROW, "six seven eight x one two three", 3) == Passage(3, 0, 4)


def test_a_passage_shorter_than_a_run_is_none() -> None:
    assert _longest(ROW, "one two x", 3) is None


def test_a_passage_must_hold_a_live_run() -> None:
    live = [False, False, False, False, False, True]
    assert _longest(ROW, "one two three four x six seven eight", 3, live) == Passage(3, 5, 5)


def test_a_passage_may_cross_from_one_leaf_into_the_next() -> None:
    assert longest_passage(RowText(ROW, 4, None), RecordText(["one two", "three four"])) == Passage(4, 0, 0)


def test_the_passage_is_cut_with_its_punctuation_and_surroundings() -> None:
    row, record = RowText(ROW, 4, None), RecordText(["so it goes: THREE four -- Five six, and so on"])
    passage = longest_passage(row, record)
    assert passage is not None
    evidence = cut(row, record, passage, "a.jsonl", 7)
    assert (evidence.train_file, evidence.train_line) == ("a.jsonl", 7)
    assert row.text[evidence.first : evidence.last] == "three four, five six"
    assert (evidence.before, evidence.shared, evidence.after) == (
        "so it goes: ",
        "THREE four -- Five six",
        ", and so on",
    )


def test_one_word_repeated_without_end_is_found_in_bounded_time() -> None:
    passage = _longest("no " * 3000, "no " * 9000, 8)
    assert passage is not None
    assert passage.length >= 8
