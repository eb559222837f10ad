import json
import pickle
import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalspill_guard.fields import FieldError, Pairs, Selector, decode, parse_path
from evalspill_guard.jsontext import decode_pairs
from evalspill_guard.paths import Each, Key, Where, format_path

# --- a JSON document as pairs, written with any spelling that JSON allows -----------------------------------------


class Obj(list):
    """An object as a list of (key, value), keys repeated at will."""


KEYS = st.sampled_from(["q", "a", "role", "content", "messages", "a.b", ":", '"q":', "é", "x/y", "", "\\", "q\n"])
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from([":", '"q"', '"q":"', "a:b:c", "user", "\\u003a", "data:a/b;base64,QQ==", "data: q", "é:", "q"]),
)
NUMBERS = st.one_of(st.integers(), st.integers(-(10**40), 10**40), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(TEXTS, NUMBERS, st.none(), st.booleans())
TREES = st.recursive(
    SCALARS,
    lambda node: st.one_of(st.lists(node, max_size=4), st.lists(st.tuples(KEYS, node), max_size=5).map(Obj)),
    max_leaves=14,
)
TURNS = st.lists(st.tuples(st.sampled_from(["role", "content", "q"]), st.one_of(TEXTS, TREES)), max_size=4).map(Obj)
TURNS_ONCE = st.tuples(st.sampled_from(["user", "assistant"]), TEXTS).map(
    lambda turn: Obj([("role", turn[0]), ("content", turn[1])])
)
CHATS = st.lists(st.one_of(TURNS, TURNS_ONCE), max_size=3)
RECORDS = st.one_of(
    TREES,
    st.lists(st.tuples(st.sampled_from(["q", "a", "messages", "a.b"]), st.one_of(TEXTS, CHATS, TREES)), max_size=5).map(
        Obj
    ),
)


def escaped(text: str) -> str:
    """The text as a JSON string with every other character escaped."""
    parts = [json.dumps(c)[1:-1] if i % 2 or ord(c) > 0xFFFF else f"\\u{ord(c):04X}" for i, c in enumerate(text)]
    return '"' + "".join(parts) + '"'


def plain(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def slashed(text: str) -> str:
    return plain(text).replace("/", "\\/")


# what spells each string of a document: mostly plain, as a line with escapes is parsed exactly anyway
STYLES = st.sampled_from([[plain]] * 5 + [[json.dumps], [escaped], [plain, plain, plain, escaped], [plain, slashed]])


def spell(tree, style, space) -> str:
    if isinstance(tree, Obj):
        inner = [f"{style(key)}{space}:{space}{spell(value, style, space)}" for key, value in tree]
        return "{" + f",{space}".join(inner) + "}"
    if isinstance(tree, list):
        return "[" + f"{space},".join(spell(item, style, space) for item in tree) + "]"
    return style(tree) if isinstance(tree, str) else json.dumps(tree)


@st.composite
def documents(draw):
    tree = draw(RECORDS)
    styles = draw(STYLES)
    style = styles[0] if len(styles) == 1 else lambda text: draw(st.sampled_from(styles))(text)
    return tree, spell(tree, style, draw(st.sampled_from(["", " "]))).encode()


# --- what a selection means, written as plainly as possible --------------------------------------------------------


def slots(tree, at=()):
    """Every leaf with its place in the document."""
    if isinstance(tree, Obj):
        for place, (_, value) in enumerate(tree):
            yield from slots(value, (*at, place))
    elif isinstance(tree, list):
        for place, value in enumerate(tree):
            yield from slots(value, (*at, place))
    elif is_text(tree):
        yield at, str(tree)


def is_text(value) -> bool:
    if isinstance(value, str):
        return bool(value) and not re.fullmatch(r"(?i)data:[^\s,]*;base64,[A-Za-z0-9+/=_%-]*", value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def nodes(tree, steps, at=()):
    """Every node that the steps lead to, with its place."""
    if not steps:
        yield at, tree
        return
    step, rest = steps[0], steps[1:]
    for place, item in enumerate(tree if isinstance(tree, list) else []):
        if isinstance(tree, Obj):
            if isinstance(step, Key) and item[0] == step.name:
                yield from nodes(item[1], rest, (*at, place))
        elif isinstance(step, Each) or (isinstance(step, Where) and holds(item, step)):
            yield from nodes(item, rest, (*at, place))


def holds(item, step) -> bool:
    return isinstance(item, Obj) and any(k == step.key and is_text(v) and str(v) == step.value for k, v in item)


def reference(tree, paths):
    found = {}
    for path in paths:
        literal = isinstance(tree, Obj) and any(key == path for key, _ in tree)
        steps = (Key(path),) if literal and path != "." else parse_path(path).steps
        for at, node in nodes(tree, steps):
            for place, text in slots(node, at):
                found.setdefault(place, text)
    return list(found.values())


SELECTIONS = [
    ("q",),
    ("a", "q"),
    ("q", "q"),
    ("messages[].content",),
    ("messages[role=user].content",),
    ("messages[role=assistant].content", "messages[role=user].content"),
    ("messages[role=user].content", "messages[].content"),
    ("messages[role=user].role",),
    ("messages",),
    ("messages[]", "q"),
    ("q.a",),
    ("q.q", "q.a"),
    ("a.b",),
    ('["a.b"]', "a.b"),
    ("[]",),
    ("[].q", "[role=user].content"),
    ("é",),
    ("x/y", "q"),
    ("q", "."),
    (".",),
]


@given(documents())
@example((Obj([("q", "hidden"), ("q", "seen")]), b'{"q":"hidden","q":"seen"}'))
@settings(max_examples=400)
def test_every_leaf_is_found_whatever_the_keys_and_their_spelling(document):
    tree, raw = document
    assert Selector(None).from_json(raw) == [text for _, text in slots(tree)]


@pytest.mark.parametrize("paths", SELECTIONS, ids=" ".join)
@given(document=documents())
@settings(max_examples=60)
def test_named_leaves_are_found_whatever_the_keys_and_their_spelling(paths, document):
    tree, raw = document
    selector = Selector(paths)
    assert selector.from_json(raw) == reference(tree, paths)
    assert selector.leaves(decode_pairs(raw)) == reference(tree, paths)


# --- a line whose author hides a value behind a duplicate key ------------------------------------------------------

SPELLINGS = st.sampled_from(['"q"', '"\\u0071"', ' "q" ', '"q"\t'])
DECOYS = st.sampled_from(
    ['"k":"\\"q\\""', '"k":"q"', '"\\"q":1', '"k":"::"', '"k":"\\u003a"', '"k":["q","q"]', '":":":"', '"k":{"q":1}']
)


@given(
    st.lists(st.one_of(DECOYS, SPELLINGS.map(lambda key: key + ':"decoy"')), max_size=4),
    SPELLINGS,
    st.lists(st.one_of(DECOYS, SPELLINGS.map(lambda key: key + ':"last"')), max_size=4),
    st.sampled_from([None, ("q",), ("q", "k"), ("k[].q", "q"), ("r.q", "q")]),
)
@settings(max_examples=600)
def test_no_line_hides_a_value_behind_a_duplicate_key(before, key, after, paths):
    raw = "{" + ",".join([*before, key + ':"the hidden value"', *after]) + "}"
    assert "the hidden value" in Selector(paths).from_json(raw.encode())


USER, SYSTEM = "messages[role=user].content", "messages[role=system].content"


@pytest.mark.parametrize(
    ("raw", "paths", "texts"),
    [
        ('{"q":[{"x":"1","x":"2"}]}', ("q",), ["1", "2"]),
        ('{"q":{"x":"1","x":"2"}}', ("q",), ["1", "2"]),
        ('{"é":"1","\\u00e9":"2"}', ("é",), ["1", "2"]),
        ('{"x/y":"1","x\\/y":"2"}', ("x/y",), ["1", "2"]),
        (
            '{"messages":[{"role":"user","content":"1"}],"messages":[{"role":"user","content":"2"}]}',
            (USER, SYSTEM),
            ["1", "2"],
        ),
        ('{"messages":[{"role":"user","role":"system","content":"1"}]}', (USER,), ["1"]),
        ('{"messages":[{"role":"user","role":"system","content":"1"}]}', (USER, SYSTEM), ["1"]),
        ('{"messages":[{"role":"user","role":"x","content":"1"}]}', ("messages[role=user].role",), ["user", "x"]),
        ('{"messages":[{"role":"user","content":"1"},{"role":"system","content":"2"}]}', (SYSTEM, USER), ["2", "1"]),
        ('{"a.b":"1"}', ("a.b", '["a.b"]'), ["1"]),
        ('{"a.b":"1","a":{"b":"2"},"a.b":"3"}', ("a.b",), ["1", "3", "2"]),
        ('{"a.b":"1","[\\"a.b\\"]":"2"}', ('["a.b"]',), ["1"]),
        ('{",":"1","x":",",",":"2"}', (",",), ["1", "2"]),
        ('{":":":",":":"2"}', (":",), [":", "2"]),
    ],
)
def test_every_value_of_a_duplicate_key_counts_once(raw, paths, texts):
    assert Selector(paths).from_json(raw.encode()) == texts


# --- what is a text -----------------------------------------------------------------------------------------------


def test_null_missing_empty_and_truth_values_are_no_text():
    raw = b'{"a":null,"b":"","c":true,"d":false,"e":[],"f":{},"g":" ","h":0}'
    assert Selector(None).from_json(raw) == [" ", "0"]
    assert Selector(("a", "b", "c", "d", "e", "f", "g", "z", "h")).from_json(raw) == [" ", "0"]


def test_top_level_scalars_are_their_own_leaf():
    assert [Selector(None).from_json(raw) for raw in (b'"a b"', b"12", b"null", b"1.50", b'["x", 1]')] == [
        ["a b"],
        ["12"],
        [],
        ["1.5"],
        ["x", "1"],
    ]


def test_data_urls_are_skipped_but_not_text_that_only_starts_like_one():
    url, text = (
        "DATA:image/png;charset=x;base64,iVBORw0KGgo=",
        "data:image/png;base64,AAAA what is the capital of France",
    )
    values = {"q": [url, text, "data:,plain", "data:;base64,"]}
    assert Selector(None).leaves(values) == [text, "data:,plain"]
    assert Selector(("q",)).leaves(values) == [text, "data:,plain"]


def test_numbers_keep_their_digits_however_many():
    long = "9" * 5000
    for digits in ("18446744073709551615", "18446744073709551616", "-9223372036854775809", "9" * 400, long, "-" + long):
        raw = f'{{"q": {digits}, "m": [{digits}]}}'.encode()
        assert Selector(None).from_json(raw) == [digits, digits]
        for path in ("q", "m", "m[]"):
            assert Selector((path,)).from_json(raw) == [digits]


def test_nan_and_lone_surrogates_are_read():
    assert Selector(None).from_json(b'{"a":NaN,"b":-Infinity,"c":"x\\ud800y"}') == ["nan", "-inf", "x\ud800y"]


# --- selection ----------------------------------------------------------------------------------------------------


def test_leaves_come_in_the_order_of_the_paths_and_each_one_once():
    value = {"a": "1", "b": ["2", "3"], "c": {"d": "1"}}
    assert Selector(("b[]", "a", "b", "c")).leaves(value) == ["2", "3", "1", "1"]
    assert Selector(("c", "a", "c.d")).leaves(value) == ["1", "1"]
    assert Selector(("c.d", ".")).leaves(value) == ["1", "1", "2", "3"]
    assert {type(text) for text in Selector(("b", "a")).leaves(value)} == {str}


def test_a_column_may_be_called_like_a_path():
    row = {"a.b": "column", "Best [x]": "y", "0": "first"}
    assert Selector(("a.b",)).leaves(row) == ["column"]
    assert Selector(('["a.b"]', '["Best [x]"]', "0")).leaves(row) == ["column", "y", "first"]
    assert Selector(("a.b",)).leaves({"a": {"b": "nested"}}) == ["nested"]


def test_a_number_names_a_list_element():
    assert Selector(("choices[1]",)).leaves({"choices": ["a", "b"]}) == ["b"]
    assert Selector(("choices.0",)).from_json(b'{"choices":["a","b"]}') == ["a"]
    assert Selector(("00",)).leaves(["a"]) == []


def test_where_compares_numbers_by_their_text():
    assert Selector(("t[id=3].x",)).from_json(b'{"t":[{"id":3,"x":"yes"},{"id":"4","x":"no"},5]}') == ["yes"]


@pytest.mark.parametrize("raw", [b'{"q": secret}', b'{"q": "secret', b'{"q":"secret\xff"}', b'{"q":"secret"} x', b""])
def test_errors_say_where_and_never_what(raw):
    for read in (decode, Selector(None).from_json, Selector(("q",)).from_json):
        with pytest.raises(ValueError, match=r"column \d|byte \d") as caught:
            read(raw)
        assert "secret" not in str(caught.value)


def test_deep_nesting_is_an_error_of_the_record():
    for depth in (300, 900, 100_000):
        raw = b'{"q":' + b"[" * depth + b'"x"' + b"]" * depth + b"}"
        for paths in (None, ("q",), ("q", ".")):
            with pytest.raises(ValueError, match="nested too deeply"):
                Selector(paths).from_json(raw)


def test_pairs_are_made_for_duplicate_keys_only():
    pairs = decode_pairs('{"a":1,"a":2}')
    assert isinstance(pairs, Pairs)
    assert pairs.pairs == [("a", 1), ("a", 2)]
    assert "1" not in repr(pairs)
    assert decode_pairs('{"a":1,"b":2}') == {"a": 1, "b": 2}


def test_a_selector_travels_to_a_worker():
    selector = pickle.loads(pickle.dumps(Selector(("q", "m[role=user].x"))))
    assert selector.from_json(b'{"q":"x"}') == ["x"]


# --- the grammar --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (".", ()),
        ("question", (Key("question"),)),
        ("Best Answer", (Key("Best Answer"),)),
        ("0", (Key("0"),)),
        ("meta.source", (Key("meta"), Key("source"))),
        ("messages[].content", (Key("messages"), Each(), Key("content"))),
        ("messages[role=user].content", (Key("messages"), Where("role", "user"), Key("content"))),
        ("m[role=a b=c]", (Key("m"), Where("role", "a b=c"))),
        ('m["k=x"="]"]', (Key("m"), Where("k=x", "]"))),
        ("choices[]", (Key("choices"), Each())),
        ("[][].x", (Each(), Each(), Key("x"))),
        ('["a.b"]', (Key("a.b"),)),
        ('meta["a.b"].x', (Key("meta"), Key("a.b"), Key("x"))),
        ('["a\\"\\u00e9"]', (Key('a"é'),)),
        ("choices[2]", (Key("choices"), Key("2"))),
    ],
)
def test_a_path_is_read_into_its_steps(text, steps):
    path = parse_path(text)
    assert (path.text, path.steps) == (text, steps)
    assert parse_path(format_path(steps)).steps == steps


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", 1),
        ("a.", 3),
        (".a", 1),
        ("a..b", 3),
        ("a]", 2),
        ('a"b', 2),
        ("a[", 3),
        ("a[x]", 3),
        ("a[x=1", 6),
        ("a[]b", 4),
        ('["a', 2),
        ('["a"', 5),
        ("a[b", 3),
    ],
)
def test_a_wrong_path_is_an_error_that_points_at_the_place(text, at):
    with pytest.raises(FieldError, match=rf"character {at}: ") as caught:
        parse_path(text)
    assert repr(text) in str(caught.value)


STEPS = st.one_of(
    st.builds(Key, st.text(max_size=5)), st.just(Each()), st.builds(Where, st.text(max_size=4), st.text(max_size=4))
)


@given(st.lists(STEPS, max_size=5).map(tuple))
def test_a_path_that_is_written_is_read_back(steps):
    assert parse_path(format_path(steps)).steps == steps


@given(st.text(alphabet='a.[]"=\\0 é', max_size=12))
def test_any_text_is_a_path_or_a_field_error(text):
    try:
        steps = parse_path(text).steps
    except FieldError:
        return
    assert parse_path(format_path(steps)).steps == steps


def test_a_very_long_path_is_read_at_once():
    steps = parse_path("a[]" * 1 + ".b[]" * 20_000).steps
    assert len(steps) == 2 + 40_000
    assert all(one != two for one, two in pairwise(steps))


@pytest.mark.parametrize(
    ("paths", "records", "unmet"),
    [
        (["a", "b"], [{"a": "x"}, {"a": "y"}], {"b"}),
        (["a", "b"], [{"a": "x"}, {"b": None}], set()),
        (["a", "b.c", "b.d"], [{"a": "x", "b": {"c": ""}}], {"b.d"}),
        (["a", "m[role=user].t"], [{"a": "x", "m": [{"role": "bot", "t": "y"}]}], {"m[role=user].t"}),
        (["a", "b"], [], {"a", "b"}),
        (["a"], [{"b": "x"}], set()),
        ([".", "b"], [{"a": "x"}], {"b"}),
        (None, [{"a": "x"}], set()),
    ],
)
def test_of_several_paths_those_that_led_to_nothing_are_known(
    paths: list[str] | None, records: list[dict[str, object]], unmet: set[str]
) -> None:
    by_value, by_json = Selector(paths), Selector(paths)
    for record in records:
        by_value.leaves(record)
        by_json.from_json(json.dumps(record).encode())
    assert (by_value.unmet, by_json.unmet) == (unmet, unmet)
