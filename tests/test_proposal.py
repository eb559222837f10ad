from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard.fields import FieldInfo, Selector, propose, table
from evalspill_guard.jsontext import Pairs
from evalspill_guard.proposal import SetProposal, check_name, render_config

# --- the field table ----------------------------------------------------------------------------------------------


def test_the_table_holds_every_leaf_path_with_its_figures():
    records = [{"q": "abcd", "m": {"a.b": [1, "xyz"]}}, {"q": "ab", "z": None}, {"q": "ab"}, {"q": ""}]
    assert table(records) == [
        FieldInfo("q", fill=0.75, average=8 / 3, top_share=0.5),
        FieldInfo('m["a.b"][]', fill=0.25, average=2.0, top_share=0.25),
    ]


def test_a_value_repeated_within_a_record_counts_once():
    assert table([{"q": ["x", "x"]}, {"q": ["y"]}])[0].top_share == 0.5


def test_the_table_reads_no_more_than_its_limit():
    records = iter([{"q": "a"}, {"q": "b"}, {"r": "c"}])
    assert [info.path for info in table(records, limit=2)] == ["q"]
    assert next(records) == {"r": "c"}


def test_the_table_of_nothing_is_empty():
    assert propose(table([]), 0) == []
    assert table([None, {}, []]) == []


def test_scalars_lists_and_duplicate_keys_have_paths_too():
    paths = [info.path for info in table(["text", ["a"], Pairs([("k", "1"), ("k", "2")])])]
    assert paths == [".", "[]", "k"]


def test_the_users_turns_are_listed_apart():
    chat = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "question"}]}
    paths = [info.path for info in table([chat])]
    assert paths == ["messages[].role", "messages[].content", "messages[role=user].content"]


LEAVES = st.recursive(
    st.text(max_size=3),
    lambda node: st.one_of(st.lists(node, max_size=3), st.dictionaries(st.text(max_size=3), node, max_size=3)),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1, max_size=3), LEAVES, max_size=3))
def test_every_path_in_the_table_selects_something(record):
    for info in table([record]):
        assert Selector((info.path,)).leaves(record)


# --- which fields are proposed ------------------------------------------------------------------------------------


def chosen(records):
    return [info.path for info in propose(table(records), len(records)) if info.chosen]


def why(records):
    return {info.path: info.why for info in propose(table(records), len(records))}


def rows(**columns):
    """Twenty-five rows; a column is a value for all of them, or a function of the row's number."""
    return [{name: made(i) if callable(made) else made for name, made in columns.items()} for i in range(25)]


def number(length=20):
    return lambda i: f"{i}".zfill(length)


@pytest.mark.parametrize("name", ["question", "Prompt", "INSTRUCTION", "query", "problem", "input", "text"])
def test_a_field_called_like_a_question_comes_before_a_longer_one(name):
    assert chosen(rows(**{name: number(5), "answer": number(90)})) == [name]


def test_all_fields_called_so_are_chosen_even_where_one_is_rarely_filled():
    assert chosen(rows(instruction=number(), input=lambda i: str(i) if i < 5 else "", output=number(90))) == [
        "instruction",
        "input",
    ]


def test_a_field_called_so_deeper_in_the_record_is_left_out():
    records = rows(question=number(), answers=lambda i: {"text": [f"{i}", "x" * i]})
    assert chosen(records) == ["question"]
    assert why(records)["answers.text[]"] == "deeper in the record than the chosen field"


def test_a_list_of_prompts_is_called_by_its_key():
    assert chosen(rows(prompt=lambda i: [f"a{i}", f"b{i}"], output=number())) == ["prompt[]"]


def test_a_field_called_so_but_hardly_ever_filled_does_not_decide():
    records = rows(question=lambda i: "x" if i == 3 else None, premise=number())
    assert chosen(records) == ["premise"]
    assert why(records)["question"] == "filled in 4% of the rows only"


def test_without_such_a_name_the_longest_leaf_that_half_of_the_rows_fill_is_chosen():
    records = rows(id=number(3), premise=number(30), notes=lambda i: "n" * 99 + str(i) if i < 12 else "")
    assert why(records) == {
        "id": "shorter",
        "premise": "the longest text that half of the rows fill",
        "notes": "filled in 48% of the rows only",
    }


def test_a_field_with_the_same_value_in_more_than_half_of_the_rows_is_left_out():
    records = rows(question=lambda i: "cause" if i < 13 else f"effect {i}", premise=number())
    assert chosen(records) == ["premise"]
    assert why(records)["question"] == "the same value in 52% of the rows"


def test_with_half_of_the_rows_or_less_than_twenty_rows_a_repeated_value_is_kept():
    assert chosen([{"question": "same" if i < 10 else str(i), "text": str(i)} for i in range(20)]) == [
        "question",
        "text",
    ]
    assert chosen([{"question": "same", "a": str(i)} for i in range(19)]) == ["question"]
    assert chosen([{"question": "same", "a": str(i)} for i in range(20)]) == ["a"]


def test_of_a_chat_the_users_turns_are_chosen():
    def turns(i):
        said = (("system", "You are helpful."), ("user", f"q{i}"), ("assistant", f"a much longer answer {i}"))
        return [{"role": role, "content": text} for role, text in said]

    records = rows(id=number(60), messages=turns)
    assert chosen(records) == ["messages[role=user].content"]
    assert chosen(
        [{"c": [{"from": "human", "value": f"q{i}"}, {"from": "gpt", "value": "long" * 9}]} for i in range(25)]
    ) == ["c[from=human].value"]
    assert chosen(rows(messages=lambda i: [{"role": "user", "text": f"{i}"}, {"role": "x", "text": "y"}])) == [
        "messages[role=user].text"
    ]


def test_plain_text_is_chosen_as_a_whole():
    assert chosen([f"line {i}" for i in range(30)]) == ["."]


def test_nothing_is_chosen_where_every_field_is_a_template():
    assert chosen(rows(question="same", answer="same")) == []


def test_every_field_has_a_reason_on_one_line():
    assert all(text and "\n" not in text for text in why(rows(question=number(), a="x", b=number())).values())


# --- the config ---------------------------------------------------------------------------------------------------

TRAIN = SetProposal("train", ["data/train/**/*.jsonl.gz", "!data/train/drafts/**"], file_count=15, records=1000)
FIELDS = [
    FieldInfo("question", 1, 9, 0, True, 'called "question"'),
    FieldInfo("id", 1, 9, 0, False, "no question by its name"),
]
EVAL = SetProposal("support-qa", ["evals/qa.csv"], 1, 57, FIELDS, {"delimiter": ";", "header": False})


def test_the_config_reads_well():
    assert (
        render_config(TRAIN, [EVAL], "../evalspill.schema.json")
        == """\
# yaml-language-server: $schema=../evalspill.schema.json
# Do any of these eval questions already appear in the training data? Run: evalspill-guard check
version: 1

train:
  files:
    - data/train/**/*.jsonl.gz
    - '!data/train/drafts/**'
  # fields: every text leaf, the default; naming some would hide leaks that stand in the others
  min_files: 13  # 90% of the 15 seen
  min_records: 900  # 90% of the 1000 seen

checks:
  - name: support-qa
    eval:
      files:
        - evals/qa.csv
      fields:
        - question  # called "question"
      # left out: id (no question by its name)
      delimiter: ;
      header: false
      min_records: 51  # 90% of the 57 seen
"""
    )


def test_what_was_only_sampled_gets_no_minimum_and_no_fields_become_auto():
    text = render_config(replace(TRAIN, records=None), [replace(EVAL, fields=[replace(FIELDS[0], chosen=False)])])
    config = yaml.safe_load(text)
    assert config["train"] == {"files": TRAIN.files, "min_files": 13}
    assert config["checks"][0]["eval"]["fields"] == "auto"
    assert "# left out: question" in text


TEXTS = st.one_of(
    st.text(min_size=1),
    st.sampled_from(
        [
            "off",
            "no",
            "12",
            "1e3",
            "~",
            "a: b",
            "a #b",
            "- x",
            "*a",
            "&a",
            "[x]",
            "{x}",
            "%",
            "5%",
            "2024-01-01",
            "x\ny",
            "=",
            "<<",
            "!x",
        ]
    ),
)


@given(st.lists(TEXTS, min_size=1), TEXTS)
def test_any_path_and_field_is_read_back(files, path):
    info = FieldInfo(path, 1, 1, 0, True, why="x\ny: - ")
    text = render_config(replace(TRAIN, files=files), [replace(EVAL, fields=[info, replace(info, chosen=False)])])
    config = yaml.safe_load(text)
    assert config["train"]["files"] == files
    assert config["checks"][0]["eval"]["fields"] == [path]
    assert len(config["checks"]) == 1


@pytest.mark.parametrize(
    ("path", "taken", "name"),
    [
        ("evals/Support_QA.test.jsonl.gz", [], "support-qa-test"),
        ("evals/qa.csv", ["qa", "qa-2"], "qa-3"),
        ("evals/*.jsonl", [], "evals"),
        ("データ.json", [], "default"),
        ("v1.2.parquet", [], "v1-2"),
    ],
)
def test_a_check_is_named_after_its_file(path, taken, name):
    assert check_name(path, taken) == name
