"""The gate from config to exit code, on small dataset repositories."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import world

WORDS = [a + b for a in ("ba", "ko", "mi", "tur", "sel", "dra") for b in ("n", "lo", "rim", "sta", "ge", "vo", "pek")]


def sentence(seed: int, size: int = 20) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=size))


def repository(folder: Path, rows: list[str], train: list[object], extra: str = "") -> Path:
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in rows])
    world.jsonl(folder / "train.jsonl", train)
    world.config(folder, extra)
    return folder


def clean_repository(folder: Path) -> Path:
    return repository(folder, [sentence(i) for i in range(30)], [{"text": sentence(100 + i)} for i in range(50)])


def test_clean_data_pass(tmp_path: Path) -> None:
    assert world.check(clean_repository(tmp_path)) == 0


def test_a_row_quoted_inside_a_longer_record_fails_the_gate(tmp_path: Path) -> None:
    rows = [sentence(i) for i in range(30)]
    repository(
        tmp_path, rows, [{"text": sentence(99)}, {"text": sentence(98) + " " + rows[7].upper() + "! " + sentence(97)}]
    )
    assert world.check(tmp_path) == 1
    found = world.csv_rows(tmp_path, "contamination-report.csv")
    assert [
        (r["row"], r["flagged"], r["containment"], r["longest"], r["train_file"], r["train_line"]) for r in found
    ] == [("8", "true", "1.0000", "20", "train.jsonl", "2")]


def test_exit_zero_turns_one_into_zero_and_nothing_else(tmp_path: Path) -> None:
    repository(tmp_path, [sentence(1)] * 3, [{"text": sentence(1)}])
    assert world.check(tmp_path, "--exit-zero") == 0
    (tmp_path / "train.jsonl").unlink()
    assert world.check(tmp_path, "--exit-zero") == 3


def test_a_row_in_more_records_than_the_filter_allows_is_still_flagged(tmp_path: Path) -> None:
    half = sentence(500, 10)
    rows = [f"{half} {sentence(i, 12)}" if i < 20 else sentence(i, 22) for i in range(100)]
    repository(tmp_path, rows, [{"text": rows[3]} for _ in range(12)] + [{"text": half} for _ in range(20)])
    assert world.check(tmp_path) == 1
    found = [(r["row"], r["containment"], r["flagged"]) for r in world.csv_rows(tmp_path, "contamination-report.csv")]
    assert ("4", "1.0000", "true") in found
    assert [row for row, _, flagged in found if flagged == "true"] == ["4"]


def test_an_instruction_template_flags_nothing_and_the_report_says_what_was_set_aside(tmp_path: Path) -> None:
    template = sentence(900, 25)
    rows = [f"{template} {sentence(i, 15)}" if i % 2 else sentence(i, 30) for i in range(60)]
    repository(tmp_path, rows, [{"text": f"{template} {sentence(2000 + i, 15)}"} for i in range(40)])
    assert world.check(tmp_path) == 0
    check = world.only_check(tmp_path)
    assert (check["flagged"], check["boilerplate_rows"]) == (0, 30)
    assert check["boilerplate_runs"] == 25 - check["n"] + 1


def test_rows_that_are_hardly_more_than_a_template_are_not_called_clean(tmp_path: Path) -> None:
    def filled(number: int) -> str:
        return f"{sentence(900, 14)} {number} {sentence(901, 14)}"

    rows = [filled(i) for i in range(20)] + [sentence(i, 29) for i in range(20)]
    train = [{"text": filled(1000 + i)} for i in range(15)]
    repository(tmp_path, rows, train, "max_unchecked: 60%\n")
    assert world.check(tmp_path) == 0
    check = world.only_check(tmp_path)
    assert (check["boilerplate_only"], check["clean"], check["unchecked"]) == (20, 20, 20)
    assert {r["reason"] for r in world.csv_rows(tmp_path, "too-short-to-score.csv")} == {"boilerplate-only"}


def test_a_renamed_field_is_incomplete_where_fields_are_named_and_found_where_not(tmp_path: Path) -> None:
    rows = [sentence(i) for i in range(10)]
    repository(tmp_path, rows, [{"text": sentence(99)}])
    world.jsonl(tmp_path / "more.jsonl", [{"content": rows[2]}])
    world.config(tmp_path, train="'*.jsonl'", extra="")
    text = (tmp_path / "evalspill.yaml").read_text().replace("files: '*.jsonl'", "files: ['[mt]*.jsonl']")
    (tmp_path / "evalspill.yaml").write_text(text)
    assert world.check(tmp_path) == 1
    (tmp_path / "evalspill.yaml").write_text(text.replace("['[mt]*.jsonl']", "['[mt]*.jsonl']\n  fields: text"))
    assert world.check(tmp_path) == 3
    assert world.problems(tmp_path) == [("more.jsonl", None, "none of its 1 records yields text in text")]


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"


def _no_match(folder: Path) -> None:
    world.config(folder, train="trian/*.jsonl")


def _lfs(folder: Path) -> None:
    (folder / "train.jsonl").write_text(LFS)


def _wrong_field(folder: Path) -> None:
    config = folder / "evalspill.yaml"
    config.write_text(config.read_text().replace("[question]", "[qestion]"))


def _empty_eval(folder: Path) -> None:
    (folder / "eval.jsonl").write_text("")


def _nulls(folder: Path) -> None:
    world.jsonl(folder / "train.jsonl", [{"text": None}] * 5)


def _cut_gz(folder: Path) -> None:
    packed = gzip.compress((folder / "train.jsonl").read_bytes())
    (folder / "train.jsonl").write_bytes(packed[: len(packed) // 2])


@pytest.mark.parametrize(
    ("spoil", "path", "says"),
    [
        (_no_match, "trian/*.jsonl", "matches no file"),
        (_lfs, "train.jsonl", "git lfs pull"),
        (_wrong_field, "check default", "no eval row could be scored"),
        (_empty_eval, "eval.jsonl", "has no rows"),
        (_nulls, "train.jsonl", "none of its 5 records yields text"),
        (_cut_gz, "train.jsonl", "cut off"),
    ],
)
def test_a_scan_that_proves_nothing_is_incomplete_and_says_why(tmp_path: Path, spoil, path: str, says: str) -> None:  # type: ignore[no-untyped-def]
    spoil(clean_repository(tmp_path))
    assert world.check(tmp_path) == 3
    assert any(where == path and says in what for where, _, what in world.problems(tmp_path))


def test_the_clean_file_and_the_rows_left_out_are_the_original(tmp_path: Path) -> None:
    rows = [sentence(i) for i in range(10)]
    repository(tmp_path, rows, [{"text": rows[4]}])
    lines = [
        json.dumps({"n": 1.0, "question": row, "é": "\u2028"}, ensure_ascii=i % 2 == 0) + "\r\n"
        for i, row in enumerate(rows)
    ]
    (tmp_path / "eval.jsonl").write_bytes(("\ufeff" + "".join(lines)).encode())
    assert world.check(tmp_path) == 1
    clean = (tmp_path / "evalspill-reports/default/clean/eval.clean.jsonl").read_bytes()
    assert clean == ("\ufeff" + "".join(lines[:4] + lines[5:])).encode()


def test_an_incomplete_scan_removes_an_older_clean_file(tmp_path: Path) -> None:
    clean_repository(tmp_path)
    assert world.check(tmp_path) == 0
    assert (tmp_path / "evalspill-reports/default/clean/eval.clean.jsonl").exists()
    _nulls(tmp_path)
    assert world.check(tmp_path) == 3
    assert not (tmp_path / "evalspill-reports/default/clean").exists()


def test_row_text_never_reaches_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    repository(tmp_path, [sentence(i) for i in range(5)], [{"text": sentence(2)}, "not json"])
    for arguments in ([], ["-v"], ["--format", "json"]):
        world.check(tmp_path, *arguments)
        printed = "".join(capfd.readouterr())
        assert "verdict" in printed or "passed" in printed
        assert not any(sentence(i)[:30] in printed for i in range(5))


def test_show_text_is_refused_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path, [sentence(1)], [{"text": sentence(1)}])
    assert world.check(tmp_path, "--show-text") == 1
    assert sentence(1) in capfd.readouterr().out
    monkeypatch.setenv("CI", "true")
    assert world.check(tmp_path, "--show-text") == 2


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    repository(tmp_path, [sentence(i) for i in range(20)], [{"text": sentence(i)} for i in range(0, 40, 3)])

    def everything() -> dict[str, bytes]:
        world.check(tmp_path)
        root = tmp_path / "evalspill-reports"
        return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}

    assert everything() == everything()


def test_a_training_file_that_is_an_eval_file_is_refused(tmp_path: Path) -> None:
    clean_repository(tmp_path)
    world.config(tmp_path, train="eval.jsonl")
    assert world.check(tmp_path) == 2


def test_missing_eval_fields_are_refused_with_the_field_table(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clean_repository(tmp_path)
    config = tmp_path / "evalspill.yaml"
    config.write_text(config.read_text().replace("  fields: [question]\n", ""))
    assert world.check(tmp_path) == 2
    assert "question" in capfd.readouterr().err
    config.write_text(config.read_text() + "  fields: auto\n")
    assert world.check(tmp_path) == 0


def _start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evalspill_guard", "check", "-c", str(folder / "evalspill.yaml")]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _reports(folder: Path) -> dict[str, bytes]:
    root = folder / "evalspill-reports"
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_a_run_that_is_killed_leaves_the_earlier_reports_whole(tmp_path: Path) -> None:
    repository(tmp_path, [sentence(i) for i in range(200)], [{"text": sentence(i)} for i in range(0, 4000, 3)])
    assert world.check(tmp_path) == 1
    before = _reports(tmp_path)
    for delay in (0.1, 0.2, 0.3, 0.4, 0.5):
        process = _start(tmp_path)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        left = {name: data for name, data in _reports(tmp_path).items() if not name.startswith(".evalspill-tmp-")}
        assert left == before
    assert world.check(tmp_path) == 1
    assert _reports(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk needs root")
def test_a_full_disk_is_exit_four_and_leaves_the_earlier_reports_whole(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], check=False).returncode:
        pytest.skip("this machine does not let a test mount a small disk")
    try:
        repository(
            tmp_path, [sentence(i) for i in range(5)], [{"text": sentence(2)}], "reports: {dir: small/reports}\n"
        )
        assert world.check(tmp_path) == 1
        before = {p.name: p.read_bytes() for p in sorted((small / "reports").rglob("*")) if p.is_file()}
        rows = [sentence(i, 60) for i in range(900)]
        repository(tmp_path, rows, [{"text": row} for row in rows], "reports: {dir: small/reports}\n")
        assert world.check(tmp_path) == 4
        assert {p.name: p.read_bytes() for p in sorted((small / "reports").rglob("*")) if p.is_file()} == before
    finally:
        subprocess.run(["umount", str(small)], check=True)
