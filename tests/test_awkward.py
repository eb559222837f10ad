"""Small broken and unusual files as training data: read right, or exit 3 with file and line; never falsely green."""

import json
import shutil
from pathlib import Path

import pytest
import world

FOLDER = Path(__file__).parent / "awkward"
EXPECTED = json.loads((FOLDER / "EXPECTED.json").read_bytes())
UNREADABLE = {"12_truncated.jsonl.gz"}
WITHOUT_RECORDS = {"42_empty.jsonl", "43_newline_only.jsonl"}
DOUBTFUL = {"26_semicolon.csv": 'delimiter: ";"', "26c_no_header.csv": "header: false"}


def _repository(tmp_path: Path, name: str, source: str = "", extra: str = "") -> Path:
    shutil.copy(FOLDER / name, tmp_path / name)
    shutil.copy(FOLDER / "EVAL.jsonl", tmp_path / "EVAL.jsonl")
    (tmp_path / "evalspill.yaml").write_text(
        f"version: 1\ntrain:\n  files: {name}\n  {source}\neval:\n  files: EVAL.jsonl\n  fields: [question]\n{extra}"
    )
    return tmp_path


def _found(folder: Path) -> bool:
    return any(row["row"] == 1 for row in world.only_check(folder)["found"])


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_file_is_read_right_or_the_scan_is_incomplete(name: str, tmp_path: Path) -> None:
    folder = _repository(tmp_path, name)
    code = world.check(folder)
    expected = EXPECTED[name]
    bad = expected["bad_lines"] or name in WITHOUT_RECORDS | set(DOUBTFUL) | {"03_cr_only.jsonl"}
    if bad:
        assert code == 3
        assert any(path == name for path, _, _ in world.problems(folder))
        assert name in WITHOUT_RECORDS or any(line for _, line, _ in world.problems(folder))
    else:
        assert (code, _found(folder)) == ((0, False) if expected["q1_found"] is False else (1, True))
        assert expected["records"] in (None, world.only_check(folder)["train"]["records"])


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - UNREADABLE - WITHOUT_RECORDS - {"45_cjk.jsonl"}))
def test_the_planted_row_is_found_when_bad_records_are_skipped(name: str, tmp_path: Path) -> None:
    folder = _repository(tmp_path, name, DOUBTFUL.get(name, ""), "on_bad_record: skip\nmax_bad: 100%\n")
    assert world.check(folder) == 1
    assert _found(folder)


@pytest.mark.parametrize("name", sorted(DOUBTFUL))
def test_a_doubtful_csv_is_read_right_once_the_config_says_how(name: str, tmp_path: Path) -> None:
    assert world.check(_repository(tmp_path, name, DOUBTFUL[name])) == 1
