"""After a purge no row is flagged, what is left are the original bytes, and nobody finds half of it."""

import bz2
import csv
import difflib
import gzip
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import web
import world
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from test_pairs import DATA, PAIRS, Pair
from test_training import repository, sentence

from evalspill_guard import readers
from evalspill_guard.cli import run_command
from evalspill_guard.config import load
from evalspill_guard.pipeline import run
from evalspill_guard.purge import out_path


def purge(folder: Path, *arguments: str, out: str = "purged") -> int:
    return run_command(["purge", "-c", str(folder / "evalspill.yaml"), "--out", str(folder / out), *arguments])


def in_place(folder: Path, out: str = "purged") -> None:
    """Put the purged files where the original ones were; files of which nothing is left are gone."""
    for path in [path for path in (folder / out).rglob("*") if path.is_file()]:
        path.replace(folder / path.relative_to(folder / out))


def flagged(folder: Path) -> int:
    """Rows that a scan still flags; it has to be complete."""
    result = run(load(folder / "evalspill.yaml")).result
    assert result.problems == ()
    return sum(check.flagged - check.accepted for check in result.checks)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def listed(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    rows = [sentence(i) for i in range(20)]
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in rows])
    for name in "ab":
        leak = f" {rows[3]}" if name == "a" else ""
        world.jsonl(
            tmp_path / name / "train.jsonl", [{"text": sentence(f"{name}{i}") + leak * (i == 6)} for i in range(9)]
        )
    world.config(tmp_path, train="'*/train.jsonl'")
    before = tree(tmp_path)
    assert purge(tmp_path) == 0
    lines = before["a/train.jsonl"].splitlines(keepends=True)
    assert tree(tmp_path / "purged") == {
        "a/train.jsonl": b"".join(lines[:6] + lines[7:]), "b/train.jsonl": before["b/train.jsonl"],
    }  # fmt: skip
    assert {name: data for name, data in tree(tmp_path).items() if not name.startswith(("purged", "cache"))} == before


def test_a_row_copied_into_a_thousand_records_is_gone_with_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = sentence("copied", 30)
    train = [{"n": i, "text": f"{sentence(i)} {row}" if i % 3 == 1 else sentence(i)} for i in range(3000)]
    repository(tmp_path, [row, *(sentence(f"row {i}") for i in range(20))], train)
    assert purge(tmp_path) == 0
    assert "1000 of 3000" in capsys.readouterr().out
    kept = [json.loads(line)["n"] for line in (tmp_path / "purged/train.jsonl").read_text().splitlines()]
    assert kept == [i for i in range(3000) if i % 3 != 1]
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


def test_clean_data_stay_byte_for_byte(tmp_path: Path) -> None:
    texts = [sentence(f"text {i}") for i in range(40)]
    raw = "".join(json.dumps({"text": text}) + "\r\n\n" for text in texts).encode()
    packed = gzip.compress(raw[:900], 1) + gzip.compress(raw[900:], 9)
    world.jsonl(tmp_path / "eval.jsonl", [{"question": sentence(i)} for i in range(20)])
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + raw)
    (tmp_path / "b.jsonl.gz").write_bytes(packed)
    (tmp_path / "c.json").write_text(json.dumps({"text": texts, "n": texts}))
    world.config(tmp_path, train="'[abc].*'")
    assert purge(tmp_path) == 0
    assert tree(tmp_path / "purged") == {
        name: (tmp_path / name).read_bytes() for name in ("a.jsonl", "b.jsonl.gz", "c.json")
    }


# --- formats ----------------------------------------------------------------------------------------------------------

ROWS = [sentence(i) for i in range(20)]
TEXTS = [ROWS[i] if i in (0, 4, 5, 10) else sentence(f"text {i}") for i in range(12)]
LEFT = [text for text in TEXTS if text not in ROWS]
Make = Callable[[list[str]], str]

FORMATS: dict[str, Make] = {
    "train.jsonl": lambda texts: "".join(json.dumps({"text": text, "é": "\u2028"}) + "\r\n" for text in texts),
    "cut.jsonl": lambda texts: "\n".join(json.dumps({"text": text}) for text in texts),
    "train.csv": lambda texts: "id,text\r\n" + "".join(f'7,"{text}\nand ""more"""\r\n' for text in texts),
    "train.tsv": lambda texts: "id\ttext\n" + "".join(f'"7\t{text}\n' for text in texts),
    "train.txt": lambda texts: "".join(f"{text}\nsecond line\n\n\n" for text in texts),
    "train.json": lambda texts: json.dumps([{"text": text} for text in texts], indent=2) + "\n",
    "inside.json": lambda texts: json.dumps({"version": 2, "data": [{"text": text} for text in texts], "note": "ok"}),
}


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress,
              ".zst": lambda data: zstandard.ZstdDecompressor().decompress(data)}  # fmt: skip
    return unpack.get(path.suffix, lambda data: data)(data)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
    ".zst": lambda data: b"".join(zstandard.ZstdCompressor(write_content_size=False).compress(part) for part in (data[:99], data[99:])),
}  # fmt: skip


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_keeps_the_bytes_of_the_rest(tmp_path: Path, name: str, packing: str) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    (tmp_path / (name + packing)).write_bytes(PACKED[packing](FORMATS[name](TEXTS).encode()))
    world.config(tmp_path, train=name + packing)
    assert purge(tmp_path) == 0
    expected = FORMATS[name](LEFT).encode()
    assert _unpacked(tmp_path / "purged" / (name + packing)) == expected
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_the_encoding_of_a_file_stays(tmp_path: Path, name: str, encoding: str) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    (tmp_path / name).write_bytes(FORMATS[name](TEXTS).encode(encoding))
    world.config(tmp_path, train=name)
    assert purge(tmp_path) == 0
    assert (tmp_path / "purged" / name).read_bytes() == FORMATS[name](LEFT).encode(encoding)


def test_parquet_loses_rows_and_keeps_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(readers, "SHARD_BYTES", 1500)
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    table = pyarrow.table({"n": list(range(12)), "text": TEXTS}).replace_schema_metadata({"mine": "yes"})
    parquet.write_table(table, tmp_path / "train.parquet", row_group_size=3, compression="zstd")
    world.config(tmp_path, train="train.parquet")
    assert purge(tmp_path) == 0
    left = parquet.read_table(tmp_path / "purged/train.parquet")
    assert left.column("text").to_pylist() == LEFT
    assert (left.schema.names, left.schema.metadata[b"mine"]) == (["n", "text"], b"yes")
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


@pytest.mark.network
@pytest.mark.parametrize("ranges", [True, False])
def test_remote_files_are_written_here(tmp_path: Path, ranges: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(readers, "SHARD_BYTES", 900)
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    with web.serving() as server:
        server.ranges = ranges
        server.files["/d/train.jsonl"] = FORMATS["train.jsonl"](TEXTS).encode()
        server.files["/d/clean.jsonl.gz"] = gzip.compress(FORMATS["train.jsonl"](LEFT).encode(), 1)
        world.config(tmp_path, train=f"['{server.url}/d/train.jsonl', '{server.url}/d/clean.jsonl.gz']")
        assert purge(tmp_path) == 0
        kept = server.files["/d/clean.jsonl.gz"]
        place = f"_http/127.0.0.1_{server.server_port}/d"
    assert tree(tmp_path / "purged") == {
        f"{place}/clean.jsonl.gz": kept, f"{place}/train.jsonl": FORMATS["train.jsonl"](LEFT).encode()
    }  # fmt: skip


def test_long_text_loses_the_pieces_and_their_overlap_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalspill_guard.loading.LEAST_OVERLAP", 1000)
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    texts = [sentence(f"t{i}") + (f" {ROWS[2]}" if i == 30 else "") for i in range(80)]
    (tmp_path / "train.txt").write_text("\n".join(texts))
    world.config(tmp_path, "", train="train.txt\n  max_record: 2000")
    assert purge(tmp_path) == 0
    left, before = (tmp_path / "purged/train.txt").read_text(), (tmp_path / "train.txt").read_text()
    assert ROWS[2] not in left
    kept = difflib.SequenceMatcher(None, before, left, autojunk=False).get_matching_blocks()
    assert sum(block.size for block in kept) == len(left) > len(before) / 3
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("columns.json", json.dumps({"text": TEXTS, "more": TEXTS}), "write it as JSON Lines"),
        ("beside.json", json.dumps({"canary": ROWS[2], "data": [{"text": text} for text in LEFT]}), "beside its array"),
    ],
)
def test_what_cannot_be_taken_out_is_told_and_nothing_is_written(
    tmp_path: Path, name: str, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    (tmp_path / name).write_text(text)
    world.config(tmp_path, train=name)
    assert purge(tmp_path) == 3
    told = capsys.readouterr().err
    assert name in told and says in told and ROWS[2][:20] not in told
    assert [path.name for path in tmp_path.iterdir() if "purged" in path.name] == []


def test_a_file_of_which_nothing_is_left_is_not_written_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    world.jsonl(tmp_path / "train/all.jsonl", [{"text": row} for row in ROWS[:5]])
    world.jsonl(tmp_path / "train/some.jsonl", [{"text": text} for text in TEXTS])
    world.config(tmp_path, train="'train/*.jsonl'")
    assert purge(tmp_path) == 0
    assert "train/all.jsonl: no record is left" in capsys.readouterr().out
    assert list(tree(tmp_path / "purged")) == ["train/some.jsonl"]


# --- which records ----------------------------------------------------------------------------------------------------


def spread(row: str, parts: int, per: int) -> list[str]:
    """Stretches of a row that follow each other, none of them half of it."""
    words = row.split()
    return [" ".join(words[at * per : at * per + per]) for at in range(parts)]


def test_a_row_spread_over_records_goes_until_it_is_no_longer_flagged(tmp_path: Path) -> None:
    row = sentence("spread", 90)
    parts = spread(row, 5, 18)
    popular = [f"{parts[0]} {sentence(i, 5)}" for i in range(9)]
    repository(
        tmp_path,
        [row, *(sentence(i) for i in range(9))],
        [{"text": text} for text in (*popular, *parts[1:], sentence(3.5))],
    )
    assert flagged(tmp_path) == 1
    assert purge(tmp_path, "--list", str(tmp_path / "gone.csv")) == 0
    gone = listed(tmp_path / "gone.csv")
    assert 0 < len(gone) < 5
    assert {(one["eval_rows"], one["longest"]) for one in gone} == {("eval.jsonl#1", "18")}
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


def test_a_template_that_becomes_rare_by_the_purge_is_looked_at_again(tmp_path: Path) -> None:
    template = sentence("template", 30)
    rows = [f"{template} {sentence(i, 12)}" for i in range(30)]
    train = [{"text": f"{template} {sentence(f'other {i}', 12)}"} for i in range(7)] + [
        {"text": row} for row in rows[:5]
    ]
    repository(tmp_path, rows, [*train, *({"text": sentence(f"x{i}")} for i in range(5))])
    assert flagged(tmp_path) == 5
    assert purge(tmp_path) == 0
    assert (tmp_path / "purged/train.jsonl").read_text().count("\n") == 5
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


def hidden_passage(folder: Path, also: str) -> list[str]:
    """The one record with 40 words of a row comes after four others with each run of them, so that no scan sees it."""
    row, other = sentence("long", 120), sentence("other")
    words = row.split()
    parts = [" ".join(words[at : at + 39]) for at in (40, 41)]
    texts = [f"{part} {also}" for part in parts for _ in range(4)] + [" ".join(words[40:80]), sentence(3)]
    repository(folder, [row, other], [{"text": text} for text in texts])
    return texts


def test_what_a_scan_does_not_flag_stays(tmp_path: Path) -> None:
    hidden_passage(tmp_path, "")
    assert flagged(tmp_path) == 0
    assert purge(tmp_path) == 0
    assert (tmp_path / "purged/train.jsonl").read_bytes() == (tmp_path / "train.jsonl").read_bytes()


def test_a_passage_that_comes_to_light_by_a_purge_goes_too(tmp_path: Path) -> None:
    texts = hidden_passage(tmp_path, sentence("other"))
    assert flagged(tmp_path) == 1
    assert purge(tmp_path) == 0
    left = [json.loads(line)["text"] for line in (tmp_path / "purged/train.jsonl").read_text().splitlines()]
    assert left == texts[9:]
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


def test_records_that_only_hold_accepted_rows_stay(tmp_path: Path) -> None:
    repository(tmp_path, ROWS, [{"text": text} for text in TEXTS])
    config = str(tmp_path / "evalspill.yaml")
    assert run_command(["baseline", "create", "-c", config, "--reason", "known", "--row", "eval.jsonl#5"]) == 0
    assert purge(tmp_path) == 0
    left = [json.loads(line)["text"] for line in (tmp_path / "purged/train.jsonl").read_text().splitlines()]
    assert left == [text for text in TEXTS if text in (*LEFT, ROWS[4])]


def test_a_file_that_two_checks_read_in_other_fields_loses_the_records_of_both(tmp_path: Path) -> None:
    for name in ("one", "two"):
        world.jsonl(tmp_path / f"{name}.jsonl", [{"q": sentence(f"{name} {i}")} for i in range(9)])
    records = [{"a": sentence(f"a{i}"), "b": sentence(f"b{i}"), "n": i} for i in range(8)]
    records[2]["a"], records[5]["b"] = sentence("one 3"), sentence("two 4")
    world.jsonl(tmp_path / "train.jsonl", records)
    (tmp_path / "evalspill.yaml").write_text("""
version: 1
checks:
- {name: one, eval: {files: one.jsonl, fields: [q]}, train: {files: train.jsonl, fields: [a]}}
- {name: two, eval: {files: two.jsonl, fields: [q]}, train: {files: train.jsonl, fields: [b]}}
""")
    assert purge(tmp_path) == 0
    left = [json.loads(line)["n"] for line in (tmp_path / "purged/train.jsonl").read_text().splitlines()]
    assert left == [0, 1, 3, 4, 6, 7]
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


def test_a_file_that_two_checks_cut_in_two_ways_is_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    (tmp_path / "train.txt").write_text("\n".join(TEXTS))
    (tmp_path / "evalspill.yaml").write_text("""
version: 1
checks:
- {name: one, eval: {files: eval.jsonl, fields: [question]}, train: {files: train.txt, split: line}}
- {name: two, eval: {files: eval.jsonl, fields: [question]}, train: {files: train.txt}}
""")
    assert purge(tmp_path) == 2
    assert "train.txt: two checks cut this file into records in two ways" in capsys.readouterr().err


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@pytest.mark.skipif(not DATA.is_dir(), reason="EVALSPILL_DATA names no folder of public benchmarks")
def test_a_pair_is_green_after_a_purge_and_only_lines_went(pair: Pair, tmp_path: Path) -> None:
    name = Path(pair.train_file).name
    shutil.copy(DATA / pair.train_file, tmp_path / name)
    header = ", header: false" if pair.eval_file.endswith(".tsv") else ""
    (tmp_path / "evalspill.yaml").write_text(f"""
version: 1
train: {{files: '{name}', fields: [{pair.train_fields}]}}
eval: {{files: '{DATA.resolve()}/{pair.eval_file}', fields: [{pair.eval_fields}]{header}}}
""")
    assert purge(tmp_path, "--list", str(tmp_path / "gone.csv")) == 0
    before = (tmp_path / name).read_bytes()
    gone = {int(one["train_line"]) for one in listed(tmp_path / "gone.csv")}
    assert bool(gone) == (pair.figures[4] > 0)
    if pair.name == "seed-tasks-in-gpteacher":  # every record of it leaks
        assert (len(gone), tree(tmp_path / "purged")) == (before.count(b"\n"), {})
        return
    after = (tmp_path / "purged" / name).read_bytes()
    if pair.name == "bbh-date-in-bigbench":
        assert len(json.loads(after)["examples"]) == len(json.loads(before)["examples"]) - len(gone) > 0
    else:
        kept = [line for number, line in enumerate(before.splitlines(keepends=True), 1) if number not in gone]
        assert after == b"".join(kept)
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


pieces = st.lists(st.integers(0, 25).map(lambda number: sentence(number, 4)), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(pieces, min_size=1, max_size=12), st.lists(pieces, min_size=2, max_size=40),
    st.sampled_from(["", "boilerplate: {records: 2, rows: 2}\n", "boilerplate: off\n"]),
    st.sampled_from(["", "flag_at: any\n", "flag_at: {containment: 0.3}\n", "flag_at: {longest: 20}\n", "flag_at: {coverage: 0.8, longest: 17}\n"]),
)  # fmt: skip
def test_no_row_is_flagged_after_a_purge(rows: list[str], train: list[str], boilerplate: str, flag_at: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        extra = f"{boilerplate}{flag_at}n: 8\nmax_unchecked: 100%\n"
        repository(
            folder, [*rows, sentence("own", 30)], [{"text": text} for text in (*train, sentence("kept", 30))], extra
        )
        assert purge(folder) == 0
        in_place(folder)
        assert flagged(folder) == 0


# --- where it is written ----------------------------------------------------------------------------------------------


def leaking(folder: Path) -> Path:
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in ROWS])
    world.jsonl(folder / "data/train.jsonl", [{"text": text} for text in TEXTS])
    world.config(folder, train="'data/**/*.jsonl'")
    return folder


def test_a_dry_run_tells_the_same_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaking(tmp_path)
    before = tree(tmp_path / "data")
    assert purge(tmp_path, "--dry-run", "--no-cache") == 0
    dry = capsys.readouterr().out
    assert not (tmp_path / "purged").exists()
    assert purge(tmp_path, "--no-cache") == 0
    wet = capsys.readouterr().out
    assert dry.splitlines()[:-1] == wet.splitlines()[:-1]
    gone = (
        sum(len(line) for line in before["train.jsonl"].splitlines(keepends=True))
        - (tmp_path / "purged/data/train.jsonl").stat().st_size
    )
    assert f"4 of 12  {gone}" in wet
    assert not any(row[:25] in wet for row in ROWS)


@pytest.mark.parametrize("spoil", ["{", '{"text": null}\n'])
def test_an_incomplete_scan_is_refused(tmp_path: Path, spoil: str, capsys: pytest.CaptureFixture[str]) -> None:
    leaking(tmp_path)
    (tmp_path / "data/more.jsonl").write_text(spoil)
    assert purge(tmp_path) == 3
    assert "data/more.jsonl" in capsys.readouterr().out
    assert not (tmp_path / "purged").exists()


def test_a_folder_that_is_not_new_or_empty_is_refused(tmp_path: Path) -> None:
    leaking(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert [purge(tmp_path, out=name) for name in ("full", "file", "link", ".", "data")] == [2] * 5
    assert purge(tmp_path, out="empty") == 0
    assert purge(tmp_path, out="empty") == 2


@pytest.mark.parametrize("out", ["data/new", "evalspill-reports/x", "elsewhere/../data/new", "by-link/new"])
def test_a_folder_inside_the_data_is_refused(tmp_path: Path, out: str) -> None:
    leaking(tmp_path)
    (tmp_path / "by-link").symlink_to(tmp_path / "data")
    before = tree(tmp_path / "data")
    assert purge(tmp_path, out=out) == 2
    assert tree(tmp_path / "data") == before


def test_a_folder_that_the_globs_exclude_is_no_data(tmp_path: Path) -> None:
    leaking(tmp_path)
    world.config(tmp_path, train="['**/train.jsonl', '!purged/**']")
    assert purge(tmp_path) == 0
    assert flagged(tmp_path) == 4


def test_links_are_read_through_and_never_written_through(tmp_path: Path) -> None:
    leaking(tmp_path / "repository")
    (tmp_path / "outside").mkdir()
    (tmp_path / "repository/data/train.jsonl").rename(tmp_path / "outside/train.jsonl")
    (tmp_path / "repository/data/train.jsonl").symlink_to(tmp_path / "outside/train.jsonl")
    before = tree(tmp_path / "outside")
    assert purge(tmp_path / "repository") == 0
    assert tree(tmp_path / "outside") == before
    assert not (tmp_path / "repository/purged/data/train.jsonl").is_symlink()
    assert (tmp_path / "repository/purged/data/train.jsonl").read_bytes().count(b"\n") == len(LEFT)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a/b.jsonl", "a/b.jsonl"), ("../x/v1.2.jsonl.gz", "_up/x/v1.2.jsonl.gz"), ("/data/t.csv", "_root/data/t.csv"),
     ("s3://bucket/a/t.jsonl", "_s3/bucket/a/t.jsonl"), ("x", "x")],
)  # fmt: skip
def test_paths_stay_and_never_lead_out(path: str, expected: str) -> None:
    assert out_path(path) == expected


def test_a_written_file_may_be_read_by_no_more_people_than_the_original(tmp_path: Path) -> None:
    leaking(tmp_path)
    (tmp_path / "data/train.jsonl").chmod(0o600)
    assert purge(tmp_path) == 0
    assert (tmp_path / "purged/data/train.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_file_that_changes_after_the_scan_stops_the_purge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking(tmp_path)
    from evalspill_guard import purgewriter

    real = purgewriter.write

    def late(*arguments: object) -> object:
        with (tmp_path / "data/train.jsonl").open("a") as file:
            file.write('{"text": "more"}\n')
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("evalspill_guard.purgewriter.write", late)
    assert purge(tmp_path) == 3
    assert not any("purged" in path.name for path in tmp_path.iterdir())


def _large(folder: Path) -> Path:
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in ROWS])
    lines = [json.dumps({"text": sentence(f"line {i}", 200)}) + "\n" for i in range(400)]
    for number in range(8):
        (folder / "data").mkdir(exist_ok=True)
        leak = json.dumps({"text": ROWS[number]}) + "\n"
        (folder / f"data/{number}.jsonl").write_text("".join(lines) + leak)
    world.config(folder, train="'data/*.jsonl'")
    return folder


def test_a_purge_that_is_killed_leaves_no_half_file(tmp_path: Path) -> None:
    _large(tmp_path)
    before = tree(tmp_path / "data")
    slow = (
        "import sys, time\nfrom evalspill_guard import cli, purgewriter\nreal = purgewriter._written\n"
        "def written(*one):\n    done = real(*one)\n    print('.', flush=True)\n    time.sleep(0.2)\n    return done\n"
        "purgewriter._written = written\nsys.exit(cli.run_command(sys.argv[1:]))\n"
    )
    command = [
        sys.executable,
        "-c",
        slow,
        "purge",
        "-c",
        str(tmp_path / "evalspill.yaml"),
        "--out",
        str(tmp_path / "purged"),
    ]
    for files in (1, 4, 7):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        for _ in range(files):
            assert process.stdout.readline() == b".\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert not (tmp_path / "purged").exists()
        assert [path.name.startswith(".purged.") for path in tmp_path.iterdir() if "purged" in path.name] == [True]
    assert purge(tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir() if "purged" in path.name] == ["purged"]
    assert {name: data.count(b"\n") for name, data in tree(tmp_path / "purged/data").items()} == dict.fromkeys(
        before, 400
    )
    assert tree(tmp_path / "data") == before


def test_the_folder_of_a_purge_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    from evalspill_guard.purgewriter import _staging

    with _staging(tmp_path / "purged") as first, _staging(tmp_path / "purged") as second:
        assert first.is_dir() and second.is_dir() and first != second
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk needs root")
def test_a_full_disk_is_exit_four_and_leaves_nothing(tmp_path: Path) -> None:
    _large(tmp_path)
    before = tree(tmp_path / "data")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], check=False).returncode:
        pytest.skip("this machine does not let a test mount a small disk")
    try:
        assert purge(tmp_path, out="small/purged") == 4
        assert list(small.iterdir()) == []
        assert tree(tmp_path / "data") == before
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_row_in_records_of_many_shards_goes_from_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", 4096)
    texts = [f"{sentence(i)} {ROWS[0] if i % 5 == 0 else ''}" for i in range(1000)]
    world.jsonl(tmp_path / "eval.jsonl", [{"question": ROWS[0]}])
    world.jsonl(tmp_path / "train.jsonl", [{"text": text} for text in texts])
    world.config(tmp_path, "boilerplate: off\n")
    assert purge(tmp_path) == 0
    lines = (tmp_path / "train.jsonl").read_bytes().splitlines(keepends=True)
    kept = b"".join(line for number, line in enumerate(lines) if number % 5)
    assert (tmp_path / "purged/train.jsonl").read_bytes() == kept


def test_a_purge_by_workers_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", 40_000)
    _large(tmp_path)
    for name, engine in (("one", "serial"), ("two", "process"), ("three", "concurrent.futures:ThreadPoolExecutor")):
        assert purge(tmp_path, "--no-cache", "--engine", engine, out=name) == 0
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == tree(tmp_path / "three")


def test_a_row_that_a_purge_does_not_touch_stays_green_where_files_sort_in_another_way_afterwards(
    tmp_path: Path,
) -> None:
    """`longest` looks into the first four records of a run, and ../ext, which comes first, is written as _up/ext."""
    row, other = sentence("long", 200).split(), sentence("other")
    repo = tmp_path / "repo"
    parts = [row[:38]] * 4 + [row[26:64]] * 4
    world.jsonl(tmp_path / "ext/x.jsonl", [{"text": " ".join(part)} for part in parts])
    world.jsonl(repo / "Z/y.jsonl", [{"text": " ".join(row[:60])}, {"text": other}, {"text": sentence("fine")}])
    rows = [" ".join(row), other, *(sentence(f"row {i}") for i in range(10))]
    world.jsonl(repo / "eval.jsonl", [{"question": text} for text in rows])
    world.config(repo, train="['../ext/*.jsonl', 'Z/*.jsonl']")
    assert flagged(repo) == 1
    assert purge(repo, out="../purged") == 0
    world.config(repo, train="'../purged/**/*.jsonl'")
    assert flagged(repo) == 0


@pytest.mark.parametrize(("texts", "empty", "left"), [([ROWS[1], ""], 1, 1), ([*ROWS[1:3], "fine", "", "", ""], 3, 4)])
def test_what_is_left_with_too_little_text_for_a_check_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: list[str], empty: int, left: int
) -> None:
    repository(tmp_path, ROWS, [{"text": text} for text in texts])
    assert purge(tmp_path) == 0
    assert f"train.jsonl: {empty} of the {left} records left yield no text: " in capsys.readouterr().out
    in_place(tmp_path)
    assert world.check(tmp_path) == 3
