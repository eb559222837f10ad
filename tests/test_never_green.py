"""Ways in which a leak could pass unseen, each of them closed: none of these ends in exit 0."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
import world

Q = " ".join(f"word{number}" for number in range(25))


def repository(folder: Path, train: object = "nothing of the kind stands here", extra: str = "") -> Path:
    world.jsonl(folder / "train.jsonl", [train if isinstance(train, dict) else {"text": train}])
    world.jsonl(folder / "eval.jsonl", [{"question": Q}, {"question": Q.replace("word", "other")}])
    return world.config(folder, extra)


def test_data_in_the_report_folder_do_not_go_unnoticed(tmp_path: Path) -> None:
    repository(tmp_path)
    world.jsonl(tmp_path / "data/sub/leak.jsonl", [{"text": Q}])
    world.jsonl(tmp_path / "data/fine.jsonl", [{"text": "fine"}])
    world.config(tmp_path, train="'data/**/*.jsonl'")
    for _ in range(2):
        assert world.check(tmp_path, "--reports-dir", str(tmp_path / "data/sub")) == 3
    assert json.loads((tmp_path / "data/sub/report.json").read_bytes())["problems"][0]["path"] == "data/sub/leak.jsonl"


def test_reports_of_another_run_are_no_training_data(tmp_path: Path) -> None:
    repository(tmp_path)
    world.config(tmp_path, train="['**/*.jsonl', '!eval.jsonl']")
    assert world.check(tmp_path) == 0
    assert world.check(tmp_path, "--reports-dir", str(tmp_path / "elsewhere")) == 0
    assert world.check(tmp_path) == 1, "a folder that nothing names is data like any other"


def test_what_the_cache_keeps_inside_the_data_is_no_data(tmp_path: Path) -> None:
    repository(tmp_path)
    world.jsonl(tmp_path / "data/fine.jsonl", [{"text": "fine"}])
    world.config(tmp_path, train="'data/**/*'")
    for _ in range(2):
        assert world.check(tmp_path, "--cache-dir", str(tmp_path / "data/cache")) == 0
    world.jsonl(tmp_path / "data/cache/leak.jsonl", [{"text": Q}])
    assert world.check(tmp_path, "--cache-dir", str(tmp_path / "data/cache")) == 3


def test_the_cache_folder_is_no_data_where_the_cache_is_not_used_either(tmp_path: Path) -> None:
    repository(tmp_path)
    world.jsonl(tmp_path / "data/fine.jsonl", [{"text": "fine"}])
    world.jsonl(tmp_path / "data/cache/leak.jsonl", [{"text": Q}])
    world.config(tmp_path, train="'data/**/*'")
    assert world.check(tmp_path, "--no-cache", "--cache-dir", str(tmp_path / "data/cache")) == 3


def test_the_environment_names_no_code_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path)
    monkeypatch.setenv("EVALSPILL_ENGINE", "concurrent.futures:ThreadPoolExecutor")
    assert world.check(tmp_path) == 2
    monkeypatch.setenv("EVALSPILL_ENGINE", "process")
    assert world.check(tmp_path) == 0


def test_a_dvc_folder_that_was_not_pulled_is_told(tmp_path: Path) -> None:
    repository(tmp_path)
    world.jsonl(tmp_path / "data/fine.jsonl", [{"text": "fine"}])
    (tmp_path / "data/shard2.dvc").write_text("outs:\n- path: shard2\n")
    (tmp_path / "data/model.bin.dvc").write_text("outs:\n- path: model.bin\n")
    world.config(tmp_path, train="'data/**/*.jsonl'")
    assert world.check(tmp_path) == 3
    assert [path for path, _, _ in world.problems(tmp_path)] == ["data/shard2"]


@pytest.mark.parametrize("key", ["null", '""', '"z z"'])
def test_a_key_that_looks_like_the_path_does_not_hide_the_path(tmp_path: Path, key: str) -> None:
    repository(tmp_path)
    (tmp_path / "train.jsonl").write_text(f'{{"a.b": {key}, "a": {{"b": "{Q}"}}}}\n')
    (tmp_path / "evalspill.yaml").write_text(
        "version: 1\ntrain: {files: train.jsonl, fields: [a.b]}\neval: {files: eval.jsonl, fields: question}\n"
    )
    assert world.check(tmp_path) == 1


def test_a_json_array_that_is_cut_off_is_not_one_bad_record_among_many(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / "train.json").write_text("[" + '{"text": "fine"},' * 200 + '{"text": "word0 wor')
    world.config(tmp_path, "on_bad_record: skip\n", train="train.json")
    assert world.check(tmp_path) == 3


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
@pytest.mark.parametrize("size", range(1, 10))
def test_a_compressed_file_of_a_few_bytes_is_cut_off(tmp_path: Path, suffix: str, size: int) -> None:
    magic = {"gz": b"\x1f\x8b\x08\0\0\0\0\0\0\xff", "bz2": b"BZh91AY&SY", "xz": b"\xfd7zXZ\0\0\4\xe6\xd6",
             "zst": b"\x28\xb5\x2f\xfd\x24\x00\x01\x00\x00\x99"}[suffix]  # fmt: skip
    repository(tmp_path)
    (tmp_path / f"train.txt.{suffix}").write_bytes(magic[:size])
    world.config(tmp_path, train=f"[train.jsonl, train.txt.{suffix}]")
    assert world.check(tmp_path) == 3


@pytest.mark.parametrize("form", [{"question": [Q, "r two", "r three"]}, {"question": {"0": Q, "1": "r two"}}])
def test_an_eval_file_of_one_column_has_a_row_for_each_value(tmp_path: Path, form: object) -> None:
    repository(tmp_path, Q)
    (tmp_path / "eval.json").write_text(json.dumps(form))
    world.config(tmp_path, "max_unchecked: 100%\n", evals="eval.json")
    assert world.check(tmp_path) == 1


def test_training_text_beside_the_only_array_of_objects_is_searched(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / "train.json").write_text(json.dumps({"question": Q, "answers": [{"text": "one"}, {"text": "two"}]}))
    world.config(tmp_path, train="train.json")
    assert world.check(tmp_path) == 1


@pytest.mark.parametrize("name", ["train.jsonl", "train.csv", "train.tsv", "train.txt"])
def test_a_record_above_max_record_is_searched_to_its_end(tmp_path: Path, name: str) -> None:
    repository(tmp_path)
    long = "filler " * 300 + Q
    line = json.dumps({"text": long}) if name.endswith("jsonl") else long
    (tmp_path / name).write_text("text\n" * (not name.endswith("jsonl")) + "1\n\n" * 200 + line + "\n")
    (tmp_path / "evalspill.yaml").write_text(
        f"version: 1\ntrain: {{files: {name}, max_record: 1000}}\neval: {{files: eval.jsonl, fields: question}}\n"
        "on_bad_record: skip\n"
    )
    assert world.check(tmp_path) == 1


def test_a_row_longer_than_the_usual_overlap_is_whole_in_one_piece_of_long_text(tmp_path: Path) -> None:
    row = " ".join(f"long{number}" for number in range(15_000))
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row}])
    (tmp_path / "train.txt").write_text("x " * 40_000 + row + " y" * 40_000)
    (tmp_path / "evalspill.yaml").write_text(
        "version: 1\ntrain: {files: train.txt, max_record: 100000}\neval: {files: eval.jsonl, fields: question}\n"
    )
    assert world.check(tmp_path) == 1
    assert [row["longest"] for row in world.csv_rows(tmp_path, "contamination-report.csv")] == ["15000"]


@pytest.mark.parametrize("hard", ["", "e\u0301"])
def test_what_stands_in_other_records_does_not_change_the_words_of_one(tmp_path: Path, hard: str) -> None:
    row = "감사ㄳ ㄱㅏ " + " ".join(f"w{number}" for number in range(12))
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row}])
    world.jsonl(tmp_path / "train.jsonl", [{"text": row}, {"text": f"another record {hard}"}])
    world.config(tmp_path, "n: 13\n")
    assert world.check(tmp_path) == 1


def test_a_headerless_csv_in_a_script_without_spaces_is_doubted(tmp_path: Path) -> None:
    row = "小明有十二个苹果他给了小红五个之后又买了七个请问现在他一共有多少个苹果"
    (tmp_path / "train.csv").write_text(f"{row},1\n别的文字,2\n")
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row}])
    world.config(tmp_path, train="train.csv")
    assert world.check(tmp_path) == 3


@pytest.mark.parametrize(
    "extra",
    ["flag_at: {}\n", "fail_over: 1.0\n", "baseline: nope.jsonl\n", 'ignore: ["a\\0b"]\n', "ignore: &x [*x]\n"],
)
def test_settings_that_would_open_the_gate_by_mistake_are_refused(tmp_path: Path, extra: str) -> None:
    repository(tmp_path, extra=extra)
    assert world.check(tmp_path) == 2


@pytest.mark.parametrize("mark", ["'\\t'", "'\"'", '"\\n"', "ab"])
def test_a_delimiter_is_one_character_that_can_part_cells(tmp_path: Path, mark: str) -> None:
    repository(tmp_path)
    (tmp_path / "evalspill.yaml").write_text(
        f"version: 1\ntrain: {{files: train.jsonl, delimiter: {mark}}}\neval: {{files: eval.jsonl, fields: question}}\n"
    )
    assert world.check(tmp_path) == 2


def test_two_eval_files_whose_reports_would_be_one_are_told(tmp_path: Path) -> None:
    repository(tmp_path)
    for name in (b"a\xff.jsonl", b"a\xfe.jsonl"):
        folder = bytes(tmp_path / "v")
        Path(tmp_path / "v").mkdir(exist_ok=True)
        with open(folder + b"/" + name, "w") as file:  # noqa: PTH123
            file.write(json.dumps({"question": Q}) + "\n")
    world.config(tmp_path, evals="'v/*.jsonl'")
    assert world.check(tmp_path) == 3


def test_the_longest_passage_of_a_repeated_word_is_exact(tmp_path: Path) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": "a " * 2500 + "b"}])
    world.jsonl(tmp_path / "train.jsonl", [{"text": "a " * 3000 + "c"}])
    world.config(tmp_path)
    assert world.check(tmp_path) == 1
    assert [row["longest"] for row in world.csv_rows(tmp_path, "contamination-report.csv")] == ["2500"]


def test_in_a_hook_a_green_run_is_quiet_and_a_red_one_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PRE_COMMIT", "1")
    repository(tmp_path)
    assert world.check(tmp_path) == 0
    assert capfd.readouterr() == ("", "")
    repository(tmp_path, Q)
    assert world.check(tmp_path) == 1
    out, _ = capfd.readouterr()
    assert "1 of 2 eval rows flagged" in out
    assert "eval.jsonl:1" in out
    assert len(out.splitlines()) < 40


@pytest.mark.parametrize("side", ["train", "eval"])
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "json"])
def test_one_of_several_fields_that_no_record_has_is_a_problem(tmp_path: Path, side: str, suffix: str) -> None:
    row = " ".join(f"w{number}" for number in range(20))
    for name, key in (("train", "body"), ("eval", "question")):
        world.table(tmp_path / f"{name}.{suffix}", [{"id": "a", key: row}, {"id": "b", key: f"{row} more"}])
    fields = {"train": "[id, body]", "eval": "[id, question]"}
    for code, (old, new) in ((1, ("", "")), (3, ("body", "bodyy") if side == "train" else ("question", "qestion"))):
        lines = (f"{one}: {{files: {one}.{suffix}, fields: {fields[one].replace(old, new)}}}\n" for one in fields)
        (tmp_path / "evalspill.yaml").write_text("version: 1\nflag_at: any\n" + "".join(lines))
        assert [world.check(tmp_path), world.check(tmp_path)] == [code, code], "the second one knows it from the cache"
    said = f"no record has the field {new}: mend its name, or leave it out of fields"
    assert (f"check default: {side}", None, said) in world.problems(tmp_path)


def test_a_field_that_only_one_of_many_shards_has_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalspill_guard.readers.SHARD_BYTES", 1000)
    rows = [{"body": f"text {number} of many"} for number in range(300)] + [{"title": None}]
    world.jsonl(tmp_path / "train.jsonl", rows)
    world.jsonl(tmp_path / "eval.jsonl", [{"question": " ".join(f"w{number}" for number in range(20))}])
    config = "version: 1\ntrain: {files: train.jsonl, fields: [body, title]}\n"
    (tmp_path / "evalspill.yaml").write_text(config + "eval: {files: eval.jsonl, fields: [question]}\n")
    assert (world.check(tmp_path), world.problems(tmp_path)) == (0, [])


LEAK = " ".join(f"word{number}" for number in range(24))
PIECES = LEAK.replace("word12", "\nword12")


def scanned(folder: Path, name: str, raw: bytes, more: str = "", fields: str = "") -> tuple[int, list[str]]:
    """The exit code of a check of one training file, and what its problems are."""
    world.jsonl(folder / "eval.jsonl", [{"question": LEAK}])
    (folder / name).write_bytes(raw)
    train = f"train: {{files: '{name}'{more}{fields}}}\n"
    (folder / "evalspill.yaml").write_text(f"version: 1\n{train}eval: {{files: eval.jsonl, fields: [question]}}\n")
    return world.check(folder), [what for _, _, what in world.problems(folder)]


@pytest.mark.parametrize("columns", [["text"], ["id", "text"], ["text", "id"], ["id", "text", "source"]])
def test_rows_of_a_tsv_that_quotes_cells_with_line_breaks_are_torn_which_is_told(
    tmp_path: Path, columns: list[str]
) -> None:
    row = {"id": "7", "text": PIECES, "source": "web"}
    buffer = io.StringIO(newline="")
    csv.DictWriter(buffer, columns, dialect="excel-tab", extrasaction="ignore").writerow(row)
    raw = ("\t".join(columns) + "\n" + buffer.getvalue() * 3).encode()
    code, told = scanned(tmp_path, "t.tsv", raw)
    assert (code, [what[:21] for what in told]) == (3, ["a quoted cell goes on"])
    assert scanned(tmp_path, "t.csv", raw, ', delimiter: "\\t"')[0] == 1
    assert scanned(tmp_path, "t.tsv", raw, ', delimiter: "\\t"')[0] == 0, "what a config insists on"


@pytest.mark.parametrize(
    "lines",
    [
        ['a "quoted" word\t1', '"whole"\t2', 'an "open one\t3', 'and one closed"\t4'],
        ['1\t"open', "2\tnothing", '3"\tclosed'],
        ['1\t"open', '2"\tclosed in a whole row'],
    ],
)
def test_quotes_of_whole_rows_of_a_tsv_are_characters(tmp_path: Path, lines: list[str]) -> None:
    assert scanned(tmp_path, "t.tsv", "\n".join(["a\tb", *lines, ""]).encode()) == (0, [])


PAGES = [b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", b"\xef\xbb\xbf \n<HTML>\n<p>Sign in\n"]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.md", "t.csv.gz"])
def test_a_page_that_asks_for_a_login_is_no_data(tmp_path: Path, name: str, page: bytes) -> None:
    code, told = scanned(tmp_path, name, gzip.compress(page) if name.endswith("gz") else page)
    assert code == 3
    assert any("an HTML page instead of data" in what for what in told)


def test_pages_that_are_meant_are_text(tmp_path: Path) -> None:
    page = f"<!DOCTYPE html>\n<p>{LEAK}</p>\n".encode()
    assert scanned(tmp_path, "t.txt", page, ", split: paragraph") == (1, [])
    assert scanned(tmp_path, "t.txt", b"about <html> tags\n\n" + page) == (1, [])


@pytest.mark.parametrize("records", [1, 2, 9])
def test_json_lines_by_the_name_of_a_text_are_json_lines(tmp_path: Path, records: int) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in LEAK)
    raw = b"".join(b'{"id": 1, "text": "%s"}\n' % escaped.encode() for _ in range(records))
    assert scanned(tmp_path, "t.txt", raw) == (1, [])
    assert scanned(tmp_path, "t.txt.gz", gzip.compress(raw), "", ", fields: [text]") == (1, [])
    assert scanned(tmp_path, "t.txt", raw, ", split: line") == (0, []), "what a config insists on"
    assert scanned(tmp_path, "t.txt", b'{"an": "example"}\n\nof JSON in a text\n') == (0, [])


@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.tsv"])
def test_a_text_in_iso_2022_is_not_utf_8(tmp_path: Path, name: str) -> None:
    raw = "text\n日本語の文章\n".encode("iso2022_jp")
    code, told = scanned(tmp_path, name, raw)
    assert (code, ["not UTF-8 but ISO-2022 at byte 5" in what for what in told]) == (3, [True])


@pytest.mark.parametrize(("name", "mark"), [("t.csv", ","), ("t.tsv", "\t")])
def test_cells_beyond_the_header_are_not_passed_over_by_named_fields(tmp_path: Path, name: str, mark: str) -> None:
    torn = LEAK.replace("word8 ", f"word8{mark} ")
    raw = f"id{mark}text\n1{mark}fine\n2{mark}{torn}\n3{mark}fine{mark}\n4{mark}fine{mark} {mark}\n".encode()
    said = ["this record cannot be read: 3 cells, where the header has 2: quote those that hold the delimiter"]
    assert scanned(tmp_path, name, raw, "", ", fields: [text]") == (3, said)
    for fields in ("", ", fields: [text, 2]", ", fields: ."):
        assert scanned(tmp_path, name, raw, "", fields) == (1, []), "these name them"


def test_an_eval_row_with_cells_beyond_the_header_is_not_compared_in_part(tmp_path: Path) -> None:
    world.jsonl(tmp_path / "train.jsonl", [{"text": LEAK}])
    (tmp_path / "eval.csv").write_text("id,question\n1," + LEAK.replace("word3 ", "word3, ") + "\n")
    world.config(tmp_path, evals="eval.csv")
    assert world.check(tmp_path) == 3


@pytest.mark.parametrize("row", [
    '1\t"What is this line\nand ""this"" one {leak}\nthe end"\tyes',
    '1\tyes\t"a ""line\n{leak}\nof the"" end"',
])  # fmt: skip
def test_quotes_inside_of_torn_cells_do_not_hide_that_they_are_torn(tmp_path: Path, row: str) -> None:
    code, told = scanned(tmp_path, "t.tsv", ("a\tb\tc\n" + row.format(leak=PIECES) + "\n").encode())
    assert (code, [what[:21] for what in told]) == (3, ["a quoted cell goes on"])


@pytest.mark.parametrize("before", [b"<!-- a -->\n<!-- b\n -->", b'<?xml version="1.0"?>\n'])
def test_a_page_may_begin_with_a_comment_or_a_declaration(tmp_path: Path, before: bytes) -> None:
    assert scanned(tmp_path, "t.txt", before + PAGES[0])[0] == 3
    assert scanned(tmp_path, "t.txt", before + b"<p>text\n") == (0, [])


@pytest.mark.parametrize(("record", "fields"), [
    ({"question": LEAK, "hints": []}, '[question, "hints[]"]'),
    ({"question": LEAK, "meta": [], "more": None}, '[question, "meta[].x", more.y]'),
    ({"question": LEAK, "m": {}}, "[question, m.x]"),
])  # fmt: skip
def test_a_field_that_is_always_empty_is_there(tmp_path: Path, record: dict[str, object], fields: str) -> None:
    assert scanned(tmp_path, "t.jsonl", json.dumps(record).encode(), "", f", fields: {fields}") == (1, [])


ONE_ROW = {"question": LEAK, "choices": [{"text": "a"}], "references": [{"title": "b"}]}
CHAT = {"messages": [{"role": "user", "content": LEAK}], "tools": [{"name": "calculator"}]}


@pytest.mark.parametrize(("row", "fields"), [(ONE_ROW, "question"), (CHAT, '"messages[].content"')])
def test_an_eval_document_may_be_one_row_with_arrays_beside_the_question(
    tmp_path: Path, row: object, fields: str
) -> None:
    world.jsonl(tmp_path / "train.jsonl", [{"text": LEAK}])
    (tmp_path / "eval.json").write_text(json.dumps(row, indent=2))
    config = f"version: 1\ntrain: {{files: train.jsonl}}\neval: {{files: eval.json, fields: [{fields}]}}\n"
    (tmp_path / "evalspill.yaml").write_text(config)
    assert (world.check(tmp_path), world.problems(tmp_path)) == (1, [])
