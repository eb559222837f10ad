"""evalspill.yaml: all mistakes at once, each with its key path and line."""

from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
import yaml

from evalspill_guard.cli import run_command
from evalspill_guard.config import Check, find, json_schema, parse
from evalspill_guard.errors import ConfigError, UsageError
from evalspill_guard.model import Reading
from evalspill_guard.scoring import BoilerplateRule, FlagRule, Gate

SHORT = "version: 1\ntrain: {files: a.jsonl}\neval: {files: b.jsonl, fields: q}\n"


def only(extra: str = "") -> Check:
    return parse(SHORT + extra, Path("evalspill.yaml")).checks[0]


def mistakes(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(ConfigError) as caught:
        parse(text, Path("evalspill.yaml"))
    return [(m.line, m.key, m.what) for m in caught.value.mistakes]


SIX = """\
train:
  files: []
checks:
  - name: qa
    evals: {files: x.jsonl}
    eval:
      files: e.jsonl
      fields: ["messages[.content"]
    n: many
    short_rows: 5
    short_rows: 6
"""


def test_six_mistakes_are_reported_at_once_with_key_path_and_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = {(line, key): what for line, key, what in mistakes(SIX)}
    assert set(found) == {
        (2, "train.files"), (5, "checks[0].evals"), (8, "checks[0].eval.fields"), (9, "checks[0].n"),
        (11, "checks[0].short_rows"), (1, "version"),
    }  # fmt: skip
    assert "did you mean eval?" in found[5, "checks[0].evals"]
    (tmp_path / "evalspill.yaml").write_text(SIX)
    assert run_command(["validate", str(tmp_path / "evalspill.yaml")]) == 2
    assert capfd.readouterr().err.count("evalspill.yaml:") == 6


def test_the_defaults_are_resolved() -> None:
    check = only()
    assert check.name == "default"
    assert (check.train.files, check.train.reading) == (("a.jsonl",), Reading())
    assert (check.eval.files, check.eval.reading.fields) == (("b.jsonl",), ("q",))
    assert (check.n, check.short_rows, check.max_unchecked) == (None, 5, Fraction(1, 2))
    assert check.boilerplate == BoilerplateRule(10, Fraction(1, 20))
    assert check.flag_at == FlagRule(Fraction(1, 2), 40, None, False)
    assert check.fail_over == Gate(0, None)


def test_shares_are_exact_and_off_is_a_word() -> None:
    check = only("boilerplate: off\nshort_rows: off\nfail_over: 0.5%\nflag_at: {coverage: 0.1, containment: 30%}\n")
    assert (check.boilerplate, check.short_rows, check.fail_over) == (None, None, Gate(None, Fraction(1, 200)))
    assert check.flag_at == FlagRule(Fraction(1, 10), None, Fraction(3, 10), False)
    assert only("flag_at: any\n").flag_at.any


def test_a_checks_own_train_replaces_the_common_one() -> None:
    text = "version: 1\ntrain: {files: a}\nchecks:\n- {name: x, eval: {files: e, fields: q}}\n"
    text += "- {name: y, train: {files: [b, '!c']}, eval: {files: e, fields: auto}}\n"
    checks = parse(text, Path("evalspill.yaml")).checks
    assert [check.train.files for check in checks] == [("a",), ("b", "!c")]
    assert [check.eval.auto_fields for check in checks] == [False, True]


@pytest.mark.parametrize(
    ("extra", "key"),
    [
        ("n: 0\n", "n"), ("n: -3\n", "n"), ("n: 1.5\n", "n"), ("max_unchecked: 150%\n", "max_unchecked"),
        ("short_rows: no\n", "short_rows"), ("fail_over: -1\n", "fail_over"), ("boilerplate: {record: 3}\n", "boilerplate.record"),
        ("flag_at: {longst: 3}\n", "flag_at.longst"), ("boilerplate: {rows: many}\n", "boilerplate.rows"), ("flag_at: 3\n", "flag_at"),
        ("ignore: []\n", "ignore"), ("reports: {text: some}\n", "reports.text"), ("reports: {clean: yes}\n", "reports.clean"),
        ("on_bad_record: ignore\n", "on_bad_record"), ("max_bad: 2\n", "max_bad"), ("flagat: any\n", "flagat"),
        ("baseline: []\n", "baseline"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_a_mistake_of_its_key(extra: str, key: str) -> None:
    assert [(line, found) for line, found, _ in mistakes(SHORT + extra)] == [(4, key)]


@pytest.mark.parametrize(
    ("extra", "near"), [("boilerplate: {record: 3}\n", "records"), ("flag_at: {longst: 3}\n", "longest")]
)
def test_an_unknown_key_of_a_rule_names_the_nearest_valid_one(extra: str, near: str) -> None:
    assert [what for _, _, what in mistakes(SHORT + extra)] == [f"unknown key; did you mean {near}?"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "(top level)"), ("- a\n", "(top level)"), ("a: [\n", "(top level)"), ("version: 2\n" + SHORT[11:], "version"),
        ("version: 1\ntrain: {files: '!x'}\neval: {files: e, fields: q}\n", "train.files"),
        ("version: 1\neval: {files: e, fields: q}\n", "train"), ("version: 1\ntrain: {files: a}\n", "eval"),
        ("version: 1\ntrain: {files: a}\nchecks: []\n", "checks"),
        ("version: 1\ntrain: {files: a}\nchecks:\n- {name: A_b, eval: {files: e, fields: q}}\n", "checks[0].name"),
    ],
)  # fmt: skip
def test_a_config_that_lacks_something_says_what(text: str, key: str) -> None:
    assert key in [found for _, found, _ in mistakes(text)]


def test_aliases_of_aliases_are_refused_in_bounded_time() -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [{', '.join(['*' + a] * 20)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
    )
    assert any("too many values" in what for _, _, what in mistakes(SHORT + bomb))


def test_two_checks_of_one_name_are_a_mistake() -> None:
    one = "- {name: x, eval: {files: e, fields: q}}\n"
    assert mistakes("version: 1\ntrain: {files: a}\nchecks:\n" + one + one)[0][:2] == (5, "checks[1].name")


@pytest.mark.parametrize(("glob", "wrong"), [
    ("data/**.jsonl", True), ("data/**/*.jsonl", False), ("data**/a", True), ("!**.bak", True), ("**", False),
    ("!drafts/**", False), ("s3://b/**.jsonl", True), ("{data/**,extra}/*.jsonl", False), ("data/{**/,}*.jsonl", False), ("{a,b**}/c", True),
])  # fmt: skip
def test_two_stars_beside_something_else_are_a_mistake(glob: str, wrong: bool) -> None:
    text = f"version: 1\ntrain: {{files: [a.jsonl, '{glob}']}}\neval: {{files: b.jsonl, fields: [q]}}\n"
    if not wrong:
        assert parse(text, Path("evalspill.yaml")).checks[0].train.files == ("a.jsonl", glob)
    else:
        said = f"{glob}: ** leads into folders only alone between slashes, as in **/*.jsonl"
        assert mistakes(text) == [(2, "train.files", said)]


def test_settings_pasted_back_give_the_same_check() -> None:
    check = only("n: 9\nflag_at: {coverage: 0.125, longest: 7}\nfail_over: 2.5%\nboilerplate: {records: 3, rows: 2}\n")
    again = parse(yaml.safe_dump({"version": 1, "checks": [check.settings()]}), Path("evalspill.yaml")).checks[0]
    assert again == check


@pytest.mark.parametrize("extra", ["", "n: 9\n", "boilerplate: off\n", "fail_over: 0.5%\n", "reports: {text: none}\n"])
def test_the_schema_accepts_what_the_loader_accepts(extra: str) -> None:
    jsonschema.validate(
        yaml.safe_load((SHORT + extra).replace(": off", ": 'off'").replace(": none", ": 'none'")), json_schema()
    )


@pytest.mark.parametrize("extra", ["n: 0\n", "flagat: any\n", "reports: {text: some}\n", "max_bad: 2\n"])
def test_the_schema_refuses_what_the_loader_refuses(extra: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(SHORT + extra), json_schema())


def test_find_tells_what_to_do_without_a_config_and_with_two(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="init"):
        find(tmp_path)
    (tmp_path / "evalspill.yml").write_text(SHORT)
    assert find(tmp_path).name == "evalspill.yml"
    (tmp_path / "evalspill.yaml").write_text(SHORT)
    with pytest.raises(UsageError, match="both"):
        find(tmp_path)


@pytest.mark.parametrize("text", [r'"\UFFFFFFFF": q', r'version: "\x31\u0041\U700000041\n"'])
def test_an_escape_that_is_no_character_is_a_mistake_with_its_line(text: str) -> None:
    assert mistakes(SHORT + text) == [
        (4, "(top level)", "this is not YAML, holds what is no character, or is nested too deeply")
    ]
