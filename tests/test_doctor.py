"""doctor: what commonly breaks is found before a scan, a line each, with what to do."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import world
import yaml

import evalspill_guard.doctor
from evalspill_guard.cli import run_command
from evalspill_guard.repository import HOOK_FILES

ROOT = Path(__file__).parent.parent
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a' * 16}\nsize 12345\n"


def _row(number: int) -> str:
    return " ".join(f"w{number}x{place}" for place in range(20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset repository with which nothing is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALSPILL_CACHE_DIR", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    world.jsonl(tmp_path / "evals/qa.jsonl", [{"question": _row(n), "qid": f"q{n}"} for n in range(30)])
    world.jsonl(tmp_path / "data/train.jsonl", [{"text": _row(100 + n)} for n in range(30)])
    world.config(tmp_path, "  id: qid\n", train="data/**/*.jsonl", evals="evals/*.jsonl")
    return tmp_path


class Doctor:
    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self.capfd = capfd

    def __call__(self, *arguments: str) -> tuple[int, list[str]]:
        """The exit code, and the lines that are printed."""
        self.capfd.readouterr()
        code = run_command(["doctor", *arguments])
        return code, "".join(self.capfd.readouterr()).splitlines()


@pytest.fixture
def doctor(folder: Path, capfd: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(capfd)


def test_where_nothing_is_wrong_it_says_so(doctor: Doctor) -> None:
    assert doctor() == (0, ["nothing found"])


def test_without_a_config_it_is_wrong_use(folder: Path, doctor: Doctor) -> None:
    (folder / "evalspill.yaml").unlink()
    code, lines = doctor()
    assert (code, "evalspill-guard init" in lines[0]) == (2, True)


# --- what makes a scan incomplete -------------------------------------------------------------------------------------


def test_pointers_are_found_and_counted_with_what_to_do(folder: Path, doctor: Doctor) -> None:
    for name in ("a", "b", "c"):
        (folder / f"data/{name}.jsonl").write_text(POINTER)
    assert doctor() == (3, [
        "problem: data/a.jsonl and 2 more: a Git LFS pointer instead of data: run `git lfs pull`; "
        "`check` ends in 3 until it can be read"
    ])  # fmt: skip
    assert run_command(["check"]) == 3


def test_a_dvc_and_an_annex_pointer_are_found(folder: Path, doctor: Doctor) -> None:
    (folder / "data/more.jsonl.dvc").write_text("outs:\n- path: more.jsonl\n")
    (folder / "data/annexed.jsonl").symlink_to("../.git/annex/objects/x/y/z.jsonl")
    code, lines = doctor()
    assert (code, len(lines)) == (3, 2)
    assert re.search("data/more.jsonl: a DVC pointer .* run `dvc pull`", "\n".join(lines))
    assert re.search("data/annexed.jsonl: a git-annex pointer .* run `git annex get`", "\n".join(lines))


def test_a_glob_that_matches_nothing_is_found(folder: Path, doctor: Doctor) -> None:
    world.config(folder, train="[data/train.jsonl, none.jsonl]", evals="evals/*.jsonl")
    code, lines = doctor()
    assert (code, lines) == (3, ["problem: none.jsonl: matches no file; see that its data are here"])


@pytest.mark.parametrize("side", ["train", "eval"])
def test_a_source_none_of_whose_fields_is_there_names_those_that_are(side: str, folder: Path, doctor: Doctor) -> None:
    fields = {"train": "", "eval": "question"} | {side: "txet" if side == "train" else "qestion"}
    train = "data/train.jsonl" + (f"\n  fields: [{fields['train']}]" if fields["train"] else "")
    text = world.CONFIG.format(train=train, evals="evals/*.jsonl").replace("[question]", f"[{fields['eval']}]")
    (folder / "evalspill.yaml").write_text(text)
    code, lines = doctor()
    assert code == 3
    near = "text" if side == "train" else "question"
    assert (
        f"problem: checks.default.{side}: none of the first 30 records fills {fields[side]}; there are {near}" in lines
    )
    assert run_command(["check"]) == 3


def test_one_field_of_several_that_is_not_there_and_a_wrong_id_are_hints(folder: Path, doctor: Doctor) -> None:
    text = (folder / "evalspill.yaml").read_text()
    text = text.replace("[question]", "[question, answr]").replace("qid", "nid")
    (folder / "evalspill.yaml").write_text(text)
    code, lines = doctor()
    assert (code, [line.partition(";")[0] for line in lines]) == (0, [
        "hint: checks.default.eval: none of the first 30 records fills answr",
        "hint: checks.default.eval: none of the first 30 records fills nid",
    ])  # fmt: skip


def test_an_id_that_is_not_there_is_a_hint_where_the_fields_are_not_there_either(folder: Path, doctor: Doctor) -> None:
    text = (folder / "evalspill.yaml").read_text()
    (folder / "evalspill.yaml").write_text(text.replace("[question]", "[zz]").replace("qid", "nid"))
    code, lines = doctor()
    assert code == 3
    assert [line for line in lines if line.startswith("hint") and "fills nid" in line]
    assert [line for line in lines if line.startswith("problem") and "fills zz" in line]


def test_only_the_first_thousand_records_are_looked_at(folder: Path, doctor: Doctor) -> None:
    late = [{"other": "x"}] * 1000 + [{"text": "y"}]
    world.jsonl(folder / "data/train.jsonl", late)
    world.config(folder, train="data/train.jsonl\n  fields: [text]", evals="evals/*.jsonl")
    assert "none of the first 1000 records fills text" in doctor()[1][0]
    world.jsonl(folder / "data/train.jsonl", late[1:])
    assert doctor() == (0, ["nothing found"])


def test_rows_that_are_too_short_for_any_search_beyond_what_is_allowed(folder: Path, doctor: Doctor) -> None:
    rows = [{"question": "yes", "qid": "q"}] * 20 + [{"question": _row(n), "qid": "q"} for n in range(10)]
    world.jsonl(folder / "evals/qa.jsonl", rows)
    code, lines = doctor()
    assert code == 3
    assert lines[0].startswith(
        "problem: check default: 20 of 30 rows are too short for any search, more than max_unchecked"
    )
    assert run_command(["check"]) == 3


def test_a_set_of_mostly_short_rows_is_a_hint(folder: Path, doctor: Doctor) -> None:
    rows = [{"question": f"who is number {n} here", "qid": "q"} for n in range(30)]
    world.jsonl(folder / "evals/qa.jsonl", rows)
    code, lines = doctor()
    assert (code, len(lines)) == (0, 1)
    assert lines[0].startswith("hint: check default: 30 of 30 rows are too short to score")


def test_an_eval_row_that_cannot_be_read_is_named_by_its_line(folder: Path, doctor: Doctor) -> None:
    with (folder / "evals/qa.jsonl").open("a") as file:
        file.write('{"question": \n')
    code, lines = doctor()
    assert code == 3
    assert any(line.startswith("problem: evals/qa.jsonl:31: this eval row cannot be read") for line in lines)


def test_parquet_without_its_extra(folder: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evalspill_guard.doctor, "find_spec", lambda name: None)
    (folder / "data/x.parquet").write_bytes(b"PAR1")
    world.config(folder, train="data/**/*", evals="evals/*.jsonl")
    code, lines = doctor()
    assert code == 3
    assert "problem: data/x.parquet: Parquet and Arrow need an extra; pip install 'evalspill-guard[parquet]'" in lines


# --- what is wrong use ------------------------------------------------------------------------------------------------


def test_an_eval_glob_that_also_matches_training_files(folder: Path, doctor: Doctor) -> None:
    world.config(folder, train="'**/*.jsonl'", evals="evals/*.jsonl")
    code, lines = doctor()
    assert (code, lines[0]) == (2, "problem: check default: evals/qa.jsonl is matched on both sides; "
                                   "leave it out of train.files (!evals/qa.jsonl) or of eval.files")  # fmt: skip
    assert run_command(["check"]) == 2


def test_eval_fields_that_are_not_named(folder: Path, doctor: Doctor) -> None:
    (folder / "evalspill.yaml").write_text("version: 1\ntrain: {files: data/*.jsonl}\neval: {files: evals/*.jsonl}\n")
    code, lines = doctor()
    assert (code, lines) == (
        2, ["problem: checks.default.eval: fields are not named; `evalspill-guard fields FILE` lists them"]
    )  # fmt: skip


def test_a_baseline_that_cannot_be_believed_is_wrong_use(folder: Path, doctor: Doctor) -> None:
    (folder / "evalspill-baseline.jsonl").write_text("<<<<<<<\n")
    code, lines = doctor()
    assert (code, "evalspill-baseline.jsonl:1" in lines[0]) == (2, True)


# --- hints ------------------------------------------------------------------------------------------------------------


def test_rows_that_differ_in_a_word_only_are_found(folder: Path, doctor: Doctor) -> None:
    rows = [{"question": f"{_row(1)} then number {n}", "qid": "q"} for n in range(30)]
    world.jsonl(folder / "evals/qa.jsonl", rows)
    code, lines = doctor()
    assert (code, len(lines)) == (0, 1)
    assert "30 of 30 rows share half of their words or more with another row" in lines[0]


def test_rows_that_share_a_short_template_are_not(folder: Path, doctor: Doctor) -> None:
    rows = [
        {"question": f"Answer the next question in one short and polite sentence please {_row(n)}"} for n in range(30)
    ]
    world.jsonl(folder / "evals/qa.jsonl", [{**row, "qid": "q"} for row in rows])
    assert doctor() == (0, ["nothing found"])


def test_hidden_files_that_a_glob_passes_over(folder: Path, doctor: Doctor) -> None:
    world.jsonl(folder / "data/.old/a.jsonl", [{"text": "x"}])
    world.jsonl(folder / "data/.b.jsonl", [{"text": "x"}])
    world.jsonl(folder / ".elsewhere.jsonl", [{"text": "x"}])
    code, lines = doctor()
    assert (code, len(lines)) == (0, 1)
    assert lines[0].startswith("hint: checks.default.train: globs pass over 2 hidden data files, such as data/.b.jsonl")
    world.config(
        folder, train="[data/**/*.jsonl, data/.b.jsonl, data/.old/*.jsonl]", evals="evals/*.jsonl"
    )  # fmt: skip
    assert doctor() == (0, ["nothing found"])


def test_files_on_which_the_hook_is_not_run(folder: Path, doctor: Doctor) -> None:
    (folder / "notice.rst").write_text("x")
    with (folder / "evalspill.yaml").open("a") as file:
        file.write("ignore: notice.rst\n")
    code, lines = doctor()
    assert code == 0
    assert lines == ["hint: hook: the pre-commit hook is not run when 1 of its files change, such as notice.rst; "
                     "use the hook evalspill-guard-always, and run the gate in CI"]  # fmt: skip
    hooks = {"repos": [{"repo": "x", "rev": "1", "hooks": [{"id": "evalspill-guard-always"}]}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(hooks))
    assert doctor() == (0, ["nothing found"])


def test_data_outside_the_repository_never_run_the_hook(folder: Path, doctor: Doctor) -> None:
    world.jsonl(folder.parent / f"{folder.name}-data.jsonl", [{"text": "x"}])
    world.config(folder, train=f"../{folder.name}-data.jsonl", evals="evals/*.jsonl")
    assert f"such as ../{folder.name}-data.jsonl" in doctor()[1][0]


def test_the_names_on_which_the_hook_is_run_are_those_of_the_hook() -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert hooks["evalspill-guard"]["files"] == HOOK_FILES


def _git(folder: Path, *arguments: str) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    subprocess.run(["git", *arguments], cwd=folder, env=env, check=True, capture_output=True)


def test_a_report_folder_and_a_cache_that_git_tracks(
    folder: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSPILL_CACHE_DIR", str(folder / "kept"))
    _git(folder, "init", "-q")
    for name in ("evalspill-reports/a.csv", "evalspill-reports/b.csv", "kept/c"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    assert doctor() == (0, ["nothing found"])
    _git(folder, "add", "-f", "evalspill-reports", "kept")
    assert doctor() == (0, [
        "hint: evalspill-reports: the report folder is tracked by git (2 files), and may hold row text; "
        "`git rm -r --cached evalspill-reports`, and put it into .gitignore",
        "hint: kept: the cache is tracked by git (1 files), and may hold row text; "
        "`git rm -r --cached kept`, and put it into .gitignore",
    ])  # fmt: skip


def test_nothing_that_the_repository_configures_is_run(folder: Path, doctor: Doctor) -> None:
    _git(folder, "init", "-q")
    _git(folder, "add", "evals")
    spy = folder / "spy.sh"
    spy.write_text(f"#!/bin/sh\ntouch {folder}/was-run\n")
    spy.chmod(0o700)
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor"):
        _git(folder, "config", key, str(spy))
    assert doctor()[0] == 0
    assert not (folder / "was-run").exists()


def test_where_git_cannot_be_asked_it_says_so(folder: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    _git(folder, "init", "-q")
    monkeypatch.setenv("PATH", str(folder))
    assert doctor() == (
        0, ["hint: git: could not be asked; see for yourself that the report folder is not tracked"]
    )  # fmt: skip


def test_a_baseline_without_a_key_is_a_hint(folder: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    world.jsonl(folder / "data/leak.jsonl", [{"text": _row(3)}])
    assert run_command(["baseline", "create", "--reason", "x"]) == 0
    code, lines = doctor()
    assert (code, len(lines), "EVALSPILL_KEY" in lines[0]) == (0, 1, True)
    (folder / "evalspill-baseline.jsonl").unlink()
    monkeypatch.setenv("EVALSPILL_KEY", "a long and random secret")
    assert run_command(["baseline", "create", "--reason", "x"]) == 0
    assert doctor() == (0, ["nothing found"])


def test_no_finding_holds_row_text(folder: Path, doctor: Doctor) -> None:
    (folder / "data/x.csv").write_text(f"{_row(5)};b\n{_row(6)};c\n")
    (folder / "evals/qa.jsonl").write_text(json.dumps({"question": _row(7)}) + "\n" + _row(8) + "\n")
    world.config(folder, train="data/**/*\n  fields: [none]", evals="evals/*.jsonl")
    code, lines = doctor()
    assert (code, "w5x" in str(lines), "w7x" in str(lines), "w8x" in str(lines)) == (3, False, False, False)


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "json", "csv", "tsv", "txt", "md", "text", "parquet", "csv.gz"])
def test_the_hook_is_run_on_the_formats_that_are_read(suffix: str) -> None:
    assert re.search(HOOK_FILES, f"data/x.{suffix}")


@pytest.mark.parametrize("suffix", ["arrow", "feather"])
def test_the_hook_is_run_on_arrow_files_too(suffix: str) -> None:
    assert re.search(HOOK_FILES, f"data/x.{suffix}")
