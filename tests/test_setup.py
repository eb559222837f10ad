"""init, fields and schema: the first steps write a config that works."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import world
import yaml

from evalspill_guard import estimate
from evalspill_guard.cli import run_command
from evalspill_guard.estimate import duration
from evalspill_guard.guess import data_files, guess, train_patterns
from evalspill_guard.model import DataFile

ROOT = Path(__file__).parent.parent
SPEC_SAMPLE = """\
version: 1
train:
  files: ["data/train/**/*.jsonl.gz", "!data/train/drafts/**"]
  fields: ["messages[].content"]
checks:
  - name: support-qa
    eval:
      files: evals/support_qa.jsonl
      fields: [question]
      id: qid
    n: auto
    boilerplate: {records: 10, rows: 5%}
    ignore: [docs/licence-notice.txt]
    short_rows: 5
    flag_at: {coverage: 0.5, longest: 40}
    fail_over: 0
    max_unchecked: 50%
reports:
  dir: evalspill-reports
  text: full
  clean: true
baseline: evalspill-baseline.jsonl
on_bad_record: fail
max_bad: 1%
"""


def _question(number: int) -> str:
    return f"How many crates does dock number {number} hold when ship number {number * 7} has left for the north?"


def _train(number: int) -> str:
    return f"Ticket {number}: the customer of order {number * 3} waits for a parcel that nobody has sent to him yet"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset repository with 50 training records in two files and an eval set of 40 rows."""
    world.jsonl(tmp_path / "data/train/a.jsonl", [{"text": _train(i)} for i in range(30)])
    world.jsonl(tmp_path / "data/train/deep/b.jsonl", [{"text": _train(i)} for i in range(30, 50)])
    world.jsonl(tmp_path / "evals/qa.jsonl", [{"question": _question(i), "level": "easy"} for i in range(40)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _config(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((folder / "evalspill.yaml").read_text())
    return loaded


def _init_and_check(train: str, evals: str) -> tuple[int, int, int]:
    return run_command(["init", train, evals]), run_command(["validate"]), run_command(["check"])


@pytest.mark.parametrize(
    "train", ["data/train/a.jsonl", "data/train/**/*.jsonl", "data/train", "data/train/", "./data"]
)
@pytest.mark.parametrize("evals", ["evals/qa.jsonl", "evals/*.jsonl", "evals"])
def test_init_writes_a_config_that_validates_and_runs(folder: Path, train: str, evals: str) -> None:
    assert _init_and_check(train, evals) == (0, 0, 0)
    check = world.only_check(folder)
    assert (check["name"], check["rows"], check["settings"]["eval"]["fields"]) == ("qa", 40, ["question"])
    assert check["train"]["records"] == (30 if train.endswith("a.jsonl") else 50)


def test_absolute_paths_become_relative_ones(folder: Path) -> None:
    assert _init_and_check(str(folder / "data/train/**/*.jsonl"), str(folder / "evals/qa.jsonl")) == (0, 0, 0)
    assert str(folder) not in (folder / "evalspill.yaml").read_text()


def test_a_config_elsewhere_names_the_files_relative_to_itself(folder: Path) -> None:
    (folder / "ci").mkdir()
    assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl", "-o", "ci/gate.yaml"]) == 0
    assert yaml.safe_load((folder / "ci/gate.yaml").read_text())["train"]["files"] == ["../data/train/a.jsonl"]
    assert (folder / "ci/evalspill.schema.json").exists()
    assert run_command(["check", "-c", "ci/gate.yaml"]) == 0


def test_the_first_line_names_the_schema_that_stands_beside_the_config(folder: Path) -> None:
    assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl"]) == 0
    first, *_ = (folder / "evalspill.yaml").read_text().splitlines()
    assert first == "# yaml-language-server: $schema=evalspill.schema.json"
    schema = json.loads((folder / "evalspill.schema.json").read_bytes())
    jsonschema.validate(_config(folder), schema)


def test_nine_tenths_of_the_files_and_records_seen_are_asked_for_from_then_on(folder: Path) -> None:
    assert run_command(["init", "data/train/**/*.jsonl", "evals/qa.jsonl"]) == 0
    config = _config(folder)
    assert (config["train"]["min_records"], config["checks"][0]["eval"]["min_records"]) == (45, 36)
    world.jsonl(folder / "data/train/deep/b.jsonl", [{"text": _train(i)} for i in range(30, 45)])
    assert run_command(["check"]) == 0
    world.jsonl(folder / "data/train/deep/b.jsonl", [{"text": _train(i)} for i in range(30, 44)])
    assert run_command(["check"]) == 3
    assert [what for _, _, what in world.problems(folder)] == ["44 records, and min_records asks for 45"]


def test_a_config_is_not_replaced_without_force(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "evalspill.yaml").write_text("mine")
    assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl"]) == 2
    assert "--force" in capfd.readouterr().err
    assert (folder / "evalspill.yaml").read_text() == "mine"
    assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl", "--force"]) == 0
    assert _config(folder)["version"] == 1


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"title": "another schema"}'])
def test_a_file_in_the_schemas_place_that_is_not_ours_is_never_replaced(folder: Path, content: str) -> None:
    (folder / "evalspill.schema.json").write_text(content)
    for more in ([], ["--force"]):
        assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl", *more]) == 2
    assert (folder / "evalspill.schema.json").read_text() == content
    assert not (folder / "evalspill.yaml").exists()


def test_an_older_schema_of_ours_is_brought_up_to_date(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "evalspill.schema.json").write_text('{"title": "evalspill.yaml", "old": true}')
    assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl"]) == 0
    capfd.readouterr()
    assert run_command(["schema"]) == 0
    assert (folder / "evalspill.schema.json").read_text() == capfd.readouterr().out


def test_two_eval_files_become_two_checks(folder: Path) -> None:
    world.jsonl(folder / "evals/more.qa.jsonl", [{"prompt": _question(i)} for i in range(50, 80)])
    assert _init_and_check("data/train/**/*.jsonl", "evals/*.jsonl") == (0, 0, 0)
    checks = world.report(folder)["checks"]
    assert [(check["name"], check["rows"], check["settings"]["eval"]["fields"]) for check in checks] == [
        ("more-qa", 30, ["prompt"]), ("qa", 40, ["question"])
    ]  # fmt: skip


def test_compressed_files_are_seen_like_others(folder: Path) -> None:
    for path in ("data/train/a.jsonl", "evals/qa.jsonl"):
        (folder / f"{path}.gz").write_bytes(gzip.compress((folder / path).read_bytes()))
        (folder / path).unlink()
    assert _init_and_check("data/train/a.jsonl.gz", "evals/qa.jsonl.gz") == (0, 0, 0)
    config = _config(folder)
    assert (config["checks"][0]["name"], config["train"]["min_records"]) == ("qa", 27)


def test_names_that_look_like_globs_are_taken_as_they_are(folder: Path) -> None:
    world.jsonl(folder / "data/train/[v1] {x}*.jsonl", [{"text": _train(i)} for i in range(30)])
    world.jsonl(folder / "!eval[1].jsonl", [{"question": _question(i)} for i in range(30)])
    assert _init_and_check("data/train/[v1] {x}*.jsonl", "!eval[1].jsonl") == (0, 0, 0)
    check = world.only_check(folder)
    assert [file["path"] for file in check["train"]["files"]] == ["data/train/[v1] {x}*.jsonl"]
    assert [file["path"] for file in check["eval"]["files"]] == ["!eval[1].jsonl"]


def test_eval_files_among_the_training_files_are_left_out_of_training(folder: Path) -> None:
    world.jsonl(folder / "data/train/qa.jsonl", [{"question": _question(i)} for i in range(30)])
    assert _init_and_check("data/train/*.jsonl", "data/train/qa.jsonl") == (0, 0, 0)
    assert _config(folder)["train"]["files"] == ["data/train/*.jsonl", "!data/train/qa.jsonl"]
    assert world.only_check(folder)["train"]["records"] == 30


def test_the_same_files_on_both_sides_are_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["init", "evals/*.jsonl", "evals/qa.jsonl"]) == 2
    assert "every training file is an eval file" in capfd.readouterr().err
    assert not (folder / "evalspill.yaml").exists()


def test_our_own_files_are_no_training_data(folder: Path) -> None:
    for number in range(3):
        assert run_command(["init", "**/*.js*", "evals/qa.jsonl", "--force"]) == 0
        assert run_command(["check"]) == 0, number
        assert world.only_check(folder)["train"]["records"] == 50


def test_where_no_field_stands_out_the_config_says_so_and_check_asks_for_a_name(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    world.jsonl(folder / "evals/qa.jsonl", [{"question": "Answer the question below.", "n": None} for _ in range(40)])
    assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl"]) == 0
    assert "no field stood out" in (folder / "evalspill.yaml").read_text()
    assert run_command(["validate"]) == 0
    capfd.readouterr()
    assert run_command(["check"]) == 2
    assert "name eval.fields" in capfd.readouterr().err


@pytest.mark.parametrize("given", [("none/*.jsonl", "evals/qa.jsonl"), ("data/train/a.jsonl", "evals/none.jsonl")])
def test_what_matches_no_file_is_wrong_use(folder: Path, given: tuple[str, str]) -> None:
    assert run_command(["init", *given]) == 2
    assert not (folder / "evalspill.yaml").exists()


def test_a_folder_that_is_not_there_is_wrong_use(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["init", "data/train/a.jsonl", "evals/qa.jsonl", "-o", "none/evalspill.yaml"]) == 2
    assert "none: there is no such folder" in capfd.readouterr().err


@pytest.mark.parametrize("role", ["data/train/a.jsonl.gz", "evals/qa.jsonl.gz"])
@pytest.mark.parametrize("command", ["init", "fields"])
def test_a_file_that_cannot_be_read_is_named_and_is_exit_three(
    folder: Path, role: str, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    packed = gzip.compress((folder / role).with_suffix("").read_bytes())
    (folder / role).write_bytes(packed[: len(packed) // 2])
    given = ["data/train/a.jsonl", "evals/qa.jsonl"]
    given[role.startswith("evals")] = role
    assert run_command([command, *given]) == 3
    shown = capfd.readouterr().err
    assert role in shown
    assert "cut off" in shown
    assert not (folder / "evalspill.yaml").exists()


def test_fields_shows_path_fill_length_most_common_choice_and_reason(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"question": "x" * 10, "level": "easy"} if i % 4 else {"level": "hard"} for i in range(40)]
    rows = [{**row, "question": f"{i:010}"} if "question" in row else row for i, row in enumerate(rows)]
    world.jsonl(folder / "evals/qa.jsonl", rows)
    assert run_command(["fields", "evals/qa.jsonl"]) == 0
    title, *lines = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    assert title == "fields of evals/qa.jsonl"
    assert sorted(lines) == [
        "leaf path filled average length most common chosen why",
        "level 100% 4 75% no the same value in 75% of the rows",
        'question 75% 10 2% yes called "question"',
    ]


def test_fields_shows_a_table_for_each_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["fields", "data/train/a.jsonl", "evals/qa.jsonl"]) == 0
    titles = [line for line in capfd.readouterr().out.splitlines() if not line.startswith(" ")]
    assert titles == ["fields of data/train/a.jsonl", "fields of evals/qa.jsonl"]


def test_a_key_of_the_data_cannot_forge_a_line_of_the_table(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    world.jsonl(folder / "evals/qa.jsonl", [{"a\n::error::b\x1b[31m": _question(i)} for i in range(30)])
    assert run_command(["fields", "evals/qa.jsonl"]) == 0
    out = capfd.readouterr().out
    assert len(out.splitlines()) == 3
    assert "\x1b" not in out


def _schema(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run_command(["schema"]) == 0
    loaded: dict[str, Any] = json.loads(capfd.readouterr().out)
    return loaded


def test_the_printed_schema_is_a_schema_and_accepts_the_full_sample(capfd: pytest.CaptureFixture[str]) -> None:
    schema = _schema(capfd)
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(SPEC_SAMPLE), schema)


def test_the_full_sample_is_valid_for_the_loader_too(folder: Path) -> None:
    (folder / "evalspill.yaml").write_text(SPEC_SAMPLE)
    assert run_command(["validate"]) == 0


@pytest.mark.parametrize(
    "where", [(), ("train",), ("checks", 0), ("checks", 0, "eval"), ("checks", 0, "boilerplate"), ("checks", 0, "flag_at"), ("reports",)]
)  # fmt: skip
def test_schema_and_loader_refuse_an_unknown_key_everywhere(
    folder: Path, where: tuple[str | int, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    sample = inner = yaml.safe_load(SPEC_SAMPLE)
    for key in where:
        inner = inner[key]
    inner["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sample, _schema(capfd))
    (folder / "evalspill.yaml").write_text(yaml.safe_dump(sample))
    assert run_command(["validate"]) == 2
    assert "surprise: unknown key" in capfd.readouterr().err


def test_every_schema_file_that_ships_is_the_printed_one(capfd: pytest.CaptureFixture[str]) -> None:
    printed = _schema(capfd)
    shipped = [path for path in ROOT.rglob("evalspill*.schema.json") if ".venv" not in path.parts]
    assert [path.name for path in shipped if json.loads(path.read_bytes()) != printed] == []


# --- init without TRAIN and EVAL --------------------------------------------------------------------------------------


def _sides(*paths: str) -> dict[str, str]:
    return {one.path: one.side for one in guess(paths)}


@pytest.mark.parametrize(
    ("path", "side"),
    [
        ("data/train/a.jsonl", "train"),
        ("data/training_set/x/a.csv.gz", "train"),
        ("sft/chat.parquet", "train"),
        ("data/train-00000-of-00002.jsonl", "train"),
        ("evals/qa.jsonl", "eval"),
        ("data/test.jsonl", "eval"),
        ("data/qa_test_v2.jsonl", "eval"),
        ("human-bench.json", "eval"),
        ("mtbench/a.jsonl", "eval"),
        ("train/test.jsonl", "eval"),
        ("evals/train/a.jsonl", "train"),
        ("evals/eval_train.jsonl", "eval"),
        ("latest/contest.jsonl", ""),
        ("strain/data.jsonl", ""),
        ("evals/notes.md", ""),
    ],
)
def test_the_name_of_a_file_or_else_the_nearest_folder_says_what_it_is_for(path: str, side: str) -> None:
    assert _sides(path, "train/other.jsonl")[path] == side


def test_where_nothing_is_called_training_all_that_is_not_for_evaluation_is() -> None:
    assert _sides("tickets.jsonl", "evals/qa.jsonl", "notes.txt", "settings.json") == {
        "tickets.jsonl": "train", "evals/qa.jsonl": "eval", "notes.txt": "", "settings.json": ""
    }  # fmt: skip
    assert _sides("tickets.jsonl", "train/a.jsonl")["tickets.jsonl"] == ""


@pytest.mark.parametrize(
    ("paths", "patterns"),
    [
        (["data/train/a.jsonl", "data/train/x/b.csv"], ["data/train"]),
        (["data/train.jsonl", "data/test.jsonl"], ["data/train.jsonl"]),
        ([f"data/train-{n:05}.jsonl" for n in range(12)] + ["data/test.jsonl"], ["data/train-*.jsonl"]),
        ([f"data/{n}_train.jsonl" for n in range(5)], [f"data/{n}_train.jsonl" for n in range(5)]),
        ([f"train{n}.jsonl" for n in range(5)] + ["train_test.jsonl"], [f"train{n}.jsonl" for n in range(5)]),
        (["sft/a.jsonl", "corpus/b.txt"], ["corpus", "sft"]),
    ],
)
def test_training_files_are_named_by_folder_else_by_their_beginning(paths: list[str], patterns: list[str]) -> None:
    assert sorted(train_patterns(guess(paths))) == patterns


def test_files_of_programs_and_hidden_ones_are_no_data(tmp_path: Path) -> None:
    for name in (
        "node_modules/x/test.json", ".git/test.json", "tests/cases.json", "tests/test_a.py", "README.md", "package.json",
        "evals/qa.jsonl", "evalspill.schema.json", "evals/.x.jsonl", "evalspill-reports/report.json", "requirements.txt",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert data_files(tmp_path) == ["evals/qa.jsonl"]


def test_init_alone_proposes_by_names_and_writes_with_yes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    world.jsonl(folder / "misc/x.jsonl", [{"text": "x"}])
    assert run_command(["init", "--yes"]) == 0
    lines = capfd.readouterr().out.splitlines()
    for line in (
        'train data/train: the folder is called "train"',
        "train: 2 files, 50 records; every text field is compared, or leaks in others would hide",
        'eval evals/qa.jsonl: the folder is called "evals"; check qa, 40 rows, compares question (called "question")',
        "left out misc/x.jsonl: neither its name nor its folders say what it is for; --train and --eval take what you name",
    ):
        assert line in lines
    size = sum(path.stat().st_size for path in (folder / "data/train").rglob("*.jsonl"))
    assert f"the first scan, of {size / 1000:.1f} kB, takes a few seconds" in lines
    assert (run_command(["validate"]), run_command(["check"])) == (0, 0)
    check = world.only_check(folder)
    assert (check["name"], check["train"]["records"], check["rows"]) == ("qa", 50, 40)


def test_what_it_would_write_is_what_naming_the_folders_writes(folder: Path) -> None:
    assert run_command(["init", "--yes"]) == 0
    guessed = (folder / "evalspill.yaml").read_text()
    assert run_command(["init", "data/train", "evals", "--force"]) == 0
    assert (folder / "evalspill.yaml").read_text() == guessed


def test_with_nobody_to_ask_it_writes_nothing_and_says_what_to_do(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["init"]) == 2
    out, err = capfd.readouterr()
    assert ('train data/train: the folder is called "train"' in out, "--yes" in err) == (True, True)
    assert sorted(path.name for path in folder.iterdir()) == ["data", "evals"]


@pytest.mark.parametrize(("answer", "code"), [("", 0), ("y", 0), ("n", 2)])
def test_on_a_terminal_it_asks(answer: str, code: int, folder: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "evalspill_guard", "init"]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said, _ = process.communicate(timeout=30)
    os.close(ours)
    assert (process.returncode, b"Write evalspill.yaml? [Y/n]" in said) == (code, True)
    assert (folder / "evalspill.yaml").exists() == (code == 0)


def test_either_side_can_be_named_and_the_other_is_found(folder: Path) -> None:
    world.jsonl(folder / "tickets.jsonl", [{"text": _train(i)} for i in range(7)])
    assert run_command(["init", "--train", "tickets.jsonl", "--train", "data/train/a.jsonl", "--yes"]) == 0
    assert _config(folder)["train"]["files"] == ["tickets.jsonl", "data/train/a.jsonl"]
    assert [check["name"] for check in _config(folder)["checks"]] == ["qa"]
    world.jsonl(folder / "more.jsonl", [{"question": _question(i)} for i in range(50, 80)])
    assert run_command(["init", "--eval", "more.jsonl", "--yes", "--force"]) == 0
    assert [check["name"] for check in _config(folder)["checks"]] == ["more"]
    assert _config(folder)["train"]["min_records"] == 45


def test_a_config_elsewhere_explains_the_same_choices(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "ci").mkdir()
    assert run_command(["init", "--yes", "-o", "ci/gate.yaml"]) == 0
    said = capfd.readouterr().out
    assert 'eval ../evals/qa.jsonl: the folder is called "evals"' in said
    assert run_command(["check", "-c", "ci/gate.yaml"]) == 0


def test_with_both_sides_named_by_options_nothing_is_asked(folder: Path) -> None:
    assert run_command(["init", "--train", "data/train", "--eval", "evals"]) == 0
    by_options = (folder / "evalspill.yaml").read_text()
    assert run_command(["init", "data/train", "evals", "--force"]) == 0
    assert (folder / "evalspill.yaml").read_text() == by_options


@pytest.mark.parametrize(
    "arguments", [["data/train"], ["a", "b", "c"], ["data/train", "evals", "--eval", "x"], ["data/train", "--eval", "evals"]]
)  # fmt: skip
def test_places_and_options_are_not_mixed(
    arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["init", *arguments]) == 2
    assert "name TRAIN and EVAL" in capfd.readouterr().err


def test_a_folder_without_an_eval_set_by_its_name_asks_for_one(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "evals").rename(folder / "questions")
    assert run_command(["init", "--yes"]) == 2
    assert "nothing here is an eval set by its name: say what is, with --eval" in capfd.readouterr().err


def test_where_a_row_stands_in_the_place_of_the_header_it_is_not_shown(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "evals/qa.jsonl").unlink()
    (folder / "evals/qa.csv").write_text("".join(f"how many crates hold ship {n},yes\n" for n in range(40)))
    assert run_command(["init", "--yes"]) == 0
    said = "".join(capfd.readouterr())
    assert ("compares (a name of 6 words)" in said, "crates" in said) == (True, False)


def test_the_hook_is_written_where_asked_for_and_never_over_another(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / ".git").mkdir()
    (folder / "sub").mkdir()
    assert run_command(["init", "--yes"]) == 0
    hook = folder / ".pre-commit-config.yaml"
    assert (hook.exists(), "--write-hook writes it" in capfd.readouterr().out) == (False, True)
    assert run_command(["init", "data/train", "evals", "-o", "sub/gate.yaml", "--write-hook"]) == 0
    [repo] = yaml.safe_load(hook.read_text())["repos"]
    [one] = repo["hooks"]
    assert (repo["repo"], one["entry"], one["language"]) == (
        "local",
        "evalspill-guard check -c sub/gate.yaml",
        "system",
    )
    assert (one["always_run"], one["pass_filenames"]) == (True, False)
    hook.write_text("mine")
    capfd.readouterr()
    assert run_command(["init", "--yes", "--force", "--write-hook"]) == 0
    out = capfd.readouterr().out
    assert (hook.read_text(), "is there already; add to it:" in out, "entry: evalspill-guard check\n" in out) == (
        "mine", True, True
    )  # fmt: skip


@pytest.mark.parametrize("gitlab", [False, True])
def test_the_lines_for_ci_are_those_of_the_system_that_is_used(
    gitlab: bool, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if gitlab:
        (folder / ".gitlab-ci.yml").write_text("stages: []\n")
    assert run_command(["init", "--yes"]) == 0
    out = capfd.readouterr().out
    assert ("component: $CI_SERVER_FQDN" in out, "uses: your-org/evalspill-guard@" in out) == (gitlab, not gitlab)


def test_a_corpus_beyond_counting_is_sampled_and_asked_for_by_its_files_alone(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalspill_guard.setup._MOST_COUNTED", 1000)
    assert run_command(["init", "--yes"]) == 0
    assert "too large to count the records here" in capfd.readouterr().out
    assert "min_records" not in _config(folder)["train"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.1, "a few seconds"), (42, "about 42 seconds"), (119, "about 119 seconds"), (180, "about 3 minutes"),
     (7100, "about 118 minutes"), (36000, "about 10 hours")],
)  # fmt: skip
def test_how_long_is_said_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_the_estimate_is_measured_on_no_more_than_the_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "_WORTH_TELLING", 0)
    monkeypatch.setattr(estimate, "SAMPLE", 1)
    files = [DataFile(name, str(folder / name)) for name in ("data/train/a.jsonl", "data/train/deep/b.jsonl")]
    said = estimate.first_scan(files, [])
    first = Path(files[0].real).stat().st_size
    assert f"measured on {first / 1000:.1f} kB" in said
    total = first + Path(files[1].real).stat().st_size
    assert said.startswith(f"the first scan, of {total / 1000:.1f} kB, takes ")


def _articles(count: int) -> list[dict[str, object]]:
    return [
        {"title": f"t{n}", "paragraphs": [
            {"context": f"about {n} {p}", "qas": [{"id": f"{n}-{p}-{q}", "question": _question(100 * n + 10 * p + q)} for q in range(3)]}
            for p in range(2)
        ]}
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(("wrap", "records"), [
    (lambda articles: {"version": "1.1", "data": articles}, "data[].paragraphs[].qas[]"),
    (lambda articles: articles, "[].paragraphs[].qas[]"),
])  # fmt: skip
def test_questions_in_arrays_of_a_document_are_rows_of_their_own(
    folder: Path, wrap: Callable[[object], object], records: str
) -> None:
    """One leaked question of an article is a small part of a row that holds them all."""
    articles = _articles(10)
    (folder / "evals/squad.json").write_text(json.dumps(wrap(articles)))
    world.jsonl(folder / "data/train/leak.jsonl", [{"text": f"Somebody asked: {_question(512)}"}])
    assert run_command(["init", "data/train/leak.jsonl", "evals/squad.json"]) == 0
    source = yaml.safe_load((folder / "evalspill.yaml").read_text())["checks"][0]["eval"]
    assert (source["records"], source["fields"], source["min_records"]) == (records, ["question"], 54)
    assert run_command(["check"]) == 1


def test_an_eval_document_of_several_arrays_is_not_one_row(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    splits = {
        name: [{"question": _question(at + 50 * (name == "hard"))} for at in range(9)] for name in ("easy", "hard")
    }
    (folder / "evals/splits.json").write_text(json.dumps(splits))
    world.jsonl(folder / "data/train/leak.jsonl", [{"text": _question(3)}])
    assert run_command(["init", "data/train/leak.jsonl", "evals/splits.json"]) == 0
    assert run_command(["check"]) == 3
    assert "evals/splits.json:1: several arrays of objects" in capfd.readouterr().out
    for records, code in (("", 3), ("records: 'easy[]', ", 1), ("records: 'hard[]', ", 0)):
        source = f"{{files: evals/splits.json, {records}fields: {'[question]' if records else 'auto'}}}"
        (folder / "evalspill.yaml").write_text(f"version: 1\ntrain: {{files: data/train/*.jsonl}}\neval: {source}\n")
        assert run_command(["check"]) == code


NESTED = [{"id": n, "qas": [{"question": _question(10 * n + q)} for q in range(3)]} for n in range(4)]


@pytest.mark.parametrize(("raw", "records"), [
    ("\n".join(json.dumps(one, indent=1) for one in NESTED).encode(), None),
    (b"\xef\xbb\xbf" + json.dumps({"data": NESTED}).encode(), "data[].qas[]"),
    (json.dumps({"data": [*NESTED, {"id": 9}]}).encode(), None),
    (json.dumps({"data": [*NESTED, {"id": 9, "qas": None}]}).encode(), None),
])  # fmt: skip
def test_records_are_proposed_where_every_record_has_the_inner_array(
    folder: Path, raw: bytes, records: str | None
) -> None:
    (folder / "evals/nested.json").write_bytes(raw)
    assert run_command(["init", "data/train/a.jsonl", "evals/nested.json"]) == 0
    source = yaml.safe_load((folder / "evalspill.yaml").read_text())["checks"][0]["eval"]
    assert source.get("records") == records
    assert run_command(["check"]) == 0
