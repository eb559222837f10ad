"""A purge of data and folders that try to break it: the leak goes, every other byte stays, nothing else is touched."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import world
import zstandard
from test_purge import LEFT, ROWS, TEXTS, flagged, in_place, leaking, purge, tree
from test_training import sentence

from evalspill_guard import purgewriter
from evalspill_guard.cli import run_command

Parts = tuple[str, list[str], str]
"""What stands before the records, the text of each record with all that goes with it, and what stands after them."""


def repository(folder: Path, name: str, raw: bytes, extra: str = "", more: str = "") -> Path:
    world.jsonl(folder / "eval.jsonl", [{"question": row} for row in ROWS])
    (folder / name).write_bytes(raw)
    world.config(folder, extra, train=name + more)
    return folder


# --- generated data, in each format -----------------------------------------------------------------------------------


def _jsonl(texts: Sequence[str], rng: random.Random) -> Parts:
    ends = ["\n", "\r\n", "\n\n", "\r\n \t\r\n"]
    lines = [json.dumps({"n": 1.50, "text": text, "u": "é\u2028"}, ensure_ascii=rng.random() < 0.5) for text in texts]
    return "", [line + rng.choice(ends[:2]) for line in lines], ""


def _blank_lines(texts: Sequence[str], rng: random.Random) -> Parts:
    """Blank lines belong to no record, and stay; so the last record has no line feed and is no leak."""
    before, lines, _ = _jsonl(texts, rng)
    return before + "\n\r\n", lines, '{"text": "the end"}'


def _csv(texts: Sequence[str], rng: random.Random) -> Parts:
    end = rng.choice(["\n", "\r\n"])
    rows = [f'"7, 8","{text}{end}and ""more"", {end}{end}of it",x{end}' for text in texts]
    return f'n,"te""xt",z{end}', rows, '7,"the end",'


def _tsv(texts: Sequence[str], rng: random.Random) -> Parts:
    end = rng.choice(["\n", "\r\n"])
    return f"n\ttext{end}{end}", [f'"7\t{text}\t{end}' for text in texts], "\t\tthe end"


def _paragraphs(texts: Sequence[str], rng: random.Random) -> Parts:
    return "\n\n", [f"{text}\nsecond line\n" + "\n" * rng.randint(1, 3) for text in texts], "the end"


def _lines(texts: Sequence[str], rng: random.Random) -> Parts:
    return "", [f"{text} \u2028\u0085 \r more" + rng.choice(["\n", "\r\n"]) for text in texts], "the end"


def _array(texts: Sequence[str], rng: random.Random) -> Parts:
    """The separator stands after each but the last; a record that is none closes the array."""
    return " [ ", [f'{{"n": 1.50, "text": {json.dumps(text)}}} ,\n\t' for text in texts], '{"text": "the end"} ]\n'


def _inside(texts: Sequence[str], rng: random.Random) -> Parts:
    before, records, after = _array(texts, rng)
    return '{"version": 1.10, "no": [], "data" :' + before, records, after + ', "note": "x" }'


def _nested(texts: Sequence[str], rng: random.Random) -> Parts:
    return (
        '{"data": [{"title": "t", "qas": [',
        [f'{{"text": {json.dumps(text)}}}, ' for text in texts],
        '{"text": "the end"}], "more": [1]}, {"qas": []}, {"qas": [{"text": "z"}], "x": {}}], "v": "1"}',
    )


def _pretty(texts: Sequence[str], rng: random.Random) -> Parts:
    """JSON values one after another, over several lines each; what stands between them is no record."""
    return "", [json.dumps({"text": text, "n": [1]}, indent=2) for text in texts], ""


KINDS: dict[str, tuple[str, str, Callable[[Sequence[str], random.Random], Parts]]] = {
    "jsonl": ("t.jsonl", "", _jsonl), "blank lines": ("t.ndjson", "", _blank_lines), "csv": ("t.csv", "", _csv),
    "tsv": ("t.tsv", "", _tsv), "paragraphs": ("t.md", "", _paragraphs), "lines": ("t.txt", "\n  split: line", _lines),
    "array": ("t.json", "", _array), "inside": ("t.json", "", _inside), "pretty": ("t.json", "", _pretty),
    "nested": ("t.json", "\n  records: data[].qas[]", _nested),
}  # fmt: skip


def _in_two(pack: Callable[[bytes], bytes], data: bytes) -> bytes:
    return pack(data[: len(data) // 3]) + pack(data[len(data) // 3 :])


PACKINGS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "": (bytes, bytes),
    ".gz": (lambda data: _in_two(gzip.compress, data), gzip.decompress),
    ".bz2": (lambda data: _in_two(bz2.compress, data), bz2.decompress),
    ".xz": (lambda data: _in_two(lzma.compress, data), lzma.decompress),
    ".zst": (lambda data: _in_two(zstandard.ZstdCompressor().compress, data),
             lambda data: zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()),
}  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16")


def _texts(rng: random.Random, leaks: bool) -> list[tuple[str, bool]]:
    """Texts, and whether one holds a row: all of it, quoted in another text, or most of it."""
    found = []
    for number in range(rng.randint(3, 25)):
        row = rng.choice(ROWS)
        shapes = [row, f"{sentence(number, 9)} {row.upper()}! {sentence(-number, 5)}", " ".join(row.split()[:15])]
        leak = leaks and rng.random() < 0.4
        found.append((rng.choice(shapes) if leak else sentence(f"{rng.random()} {number}", 30), leak))
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_records_that_leak_are_gone(tmp_path: Path, kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    packing, encoding = rng.choice(list(PACKINGS)), ENCODINGS[seed]
    pack, unpack = PACKINGS[packing]
    name, more, make = KINDS[kind]
    texts = _texts(rng, leaks=True)
    before, records, after = make([text for text, _ in texts], rng)
    repository(tmp_path, name + packing, pack("".join([before, *records, after]).encode(encoding)), more=more)
    assert purge(tmp_path) == 0
    kept = [record for record, (_, leak) in zip(records, texts, strict=True) if not leak]
    written = unpack((tmp_path / "purged" / (name + packing)).read_bytes())
    assert written == "".join([before, *kept, after]).encode(encoding)
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_clean_data_of_every_format_keep_every_byte(tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    name, more, make = KINDS[kind]
    for packing, (pack, _) in PACKINGS.items():
        before, records, after = make([text for text, _ in _texts(rng, leaks=False)], rng)
        raw = pack("".join([before, *records, after]).encode(rng.choice(ENCODINGS)))
        folder = tmp_path / f"as{packing}"
        folder.mkdir()
        repository(folder, name + packing, raw, more=more)
        assert purge(folder) == 0
        assert tree(folder / "purged") == {name + packing: raw}


@pytest.mark.parametrize(
    ("name", "bad"),
    [("t.jsonl", '{"text": "%s\n'), ("t.jsonl", '{"text": "\xff %s"}\n'), ("t.csv", '1,"z" %s\n'), ("t.csv", '1,"\xff %s"\n'),
     ("t.tsv", "1\t\xff %s\n"), ("t.txt", "\xff %s\n\n")],
)  # fmt: skip
def test_a_bad_record_that_leaks_goes_too_and_a_bad_one_that_does_not_stays(
    tmp_path: Path, name: str, bad: str
) -> None:
    good = {"t.jsonl": '{"text": "%s"}\n', "t.csv": '1,"%s"\n', "t.tsv": "1\t%s\n", "t.txt": "%s\n\n"}[name]
    header = {"t.csv": "n,text\n", "t.tsv": "n\ttext\n"}.get(name, "")
    records = [(bad if i in (2, 4, 7) else good) % text for i, text in enumerate(TEXTS)]
    raw = (header + "".join(records)).encode("latin-1")
    repository(tmp_path, name, raw, "on_bad_record: skip\nmax_bad: 50%\n")
    assert purge(tmp_path) == 0
    kept = [record for record, text in zip(records, TEXTS, strict=True) if text not in ROWS]
    assert (tmp_path / "purged" / name).read_bytes() == (header + "".join(kept)).encode("latin-1")
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


def test_what_stood_around_pieces_of_a_long_text_does_not_become_a_leak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalspill_guard.loading.LEAST_OVERLAP", 1000)
    text = bytearray(" ".join(sentence(f"filler {i}") for i in range(60)).encode())
    words = ROWS[2].split()
    head, tail = f"{' '.join(words[:7])} ", f" {' '.join(words[7:14])} "
    for at, part in ((2000 - len(head), head), (3500, f" {ROWS[2]} "), (5000, tail)):  # pieces begin at each 1,000
        text[at : at + len(part)] = part.encode()
    repository(tmp_path, "t.txt", bytes(text) + b"\n\nthe next one", more="\n  max_record: 2000")
    assert purge(tmp_path) == 0
    left = (tmp_path / "purged/t.txt").read_bytes()
    assert left == text[:2000] + b"\n\n" + text[5000:] + b"\n\nthe next one"
    in_place(tmp_path)
    assert flagged(tmp_path) == 0


def test_the_end_of_a_long_text_takes_no_blank_line_from_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalspill_guard.loading.LEAST_OVERLAP", 1000)
    text = " ".join(sentence(f"filler {i}") for i in range(24))[:2500]
    repository(tmp_path, "t.txt", f"{text} {ROWS[2]}\n\nnext".encode(), more="\n  max_record: 2000")
    assert purge(tmp_path) == 0
    assert (tmp_path / "purged/t.txt").read_text() == f"{text[:1000]}\n\nnext"


def test_parquet_keeps_every_type_value_and_row_group(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    many = {
        "text": pyarrow.array(TEXTS), "dict": pyarrow.array(["a", "b", None] * 4).dictionary_encode(),
        "list": pyarrow.array([["a", None], None, []] * 4), "fixed": pyarrow.array([b"abcd", None] * 6, pyarrow.binary(4)),
        "struct": pyarrow.array([{"a": 1, "b": {"c": ["x", None]}}, None, {"a": None, "b": None}] * 4),
        "map": pyarrow.array([[("k", 1)], None, []] * 4, pyarrow.map_(pyarrow.string(), pyarrow.int32())),
        "time": pyarrow.array([1_577_836_923_456_789_123, None] * 6, pyarrow.timestamp("ns", "Europe/Berlin")),
        "large": pyarrow.array(["x", None] * 6, pyarrow.large_string()), "null": pyarrow.nulls(12),
        "zero": pyarrow.array([-0.0, 1.5] * 6, pyarrow.float32()),
    }  # fmt: skip
    table = pyarrow.table(many).replace_schema_metadata({"mine": "yes", "pandas": "{}"})
    kinds = table.schema.set(0, table.schema.field(0).with_metadata({"PARQUET:field_id": "7", "k": "v"}))
    parquet.write_table(
        table.cast(kinds), tmp_path / "t.parquet", row_group_size=5, compression={"text": "zstd", "dict": "snappy"}
    )
    repository(tmp_path, "t.parquet", (tmp_path / "t.parquet").read_bytes(), more="\n  fields: [text]")
    assert purge(tmp_path) == 0
    before, after = parquet.read_table(tmp_path / "t.parquet"), parquet.read_table(tmp_path / "purged/t.parquet")
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.equals(before.filter(pyarrow.array([text not in ROWS for text in TEXTS])))
    facts = [parquet.ParquetFile(path).metadata for path in (tmp_path / "t.parquet", tmp_path / "purged/t.parquet")]
    assert [one.row_group(0).column(0).compression for one in facts] == ["ZSTD", "ZSTD"]
    assert [facts[1].row_group(number).num_rows for number in range(3)] == [3, 4, 1]


# --- folders, links, names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["data", "data/inner", "data/deep/inner"])
def test_a_folder_that_a_glob_reaches_by_a_link_is_refused(tmp_path: Path, link: str) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    world.jsonl(tmp_path / "real/sub/t.jsonl", [{"text": text} for text in TEXTS])
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "real")
    world.config(tmp_path, train="'data/**/*.jsonl'")
    before = tree(tmp_path / "real")
    assert [purge(tmp_path, out=out) for out in ("real/new", "real/sub/new", f"{link}/new")] == [2, 2, 2]
    assert tree(tmp_path / "real") == before
    assert purge(tmp_path, out="elsewhere") == 0


def test_a_hard_link_to_a_training_file_keeps_its_bytes(tmp_path: Path) -> None:
    leaking(tmp_path)
    (tmp_path / "outside.bin").hardlink_to(tmp_path / "data/train.jsonl")
    before = (tmp_path / "outside.bin").read_bytes()
    assert purge(tmp_path) == 0
    assert (tmp_path / "outside.bin").read_bytes() == (tmp_path / "data/train.jsonl").read_bytes() == before
    assert not (tmp_path / "purged/data/train.jsonl").samefile(tmp_path / "outside.bin")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_stands_where_a_killed_run_left_its_folder_is_not_followed(tmp_path: Path, kind: str) -> None:
    leaking(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/kept").write_text("x")
    trap = tmp_path / ".purged.evalspill-tmp-trap"
    if kind == "link":
        trap.symlink_to(tmp_path / "mine")
    else:
        trap.write_text("x")
    assert purge(tmp_path) == 0
    assert (tmp_path / "mine/kept").read_text() == "x"
    assert os.path.lexists(trap)


def test_a_name_with_glob_marks_is_only_a_name(tmp_path: Path) -> None:
    leaking(tmp_path)
    (tmp_path / ".other.evalspill-tmp-1/new").mkdir(parents=True)
    assert purge(tmp_path, out="*") == 0
    assert (tmp_path / ".other.evalspill-tmp-1/new").is_dir()
    assert list(tree(tmp_path / "*")) == ["data/train.jsonl"]


def test_names_that_a_file_system_takes_for_one_are_an_error_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaking(tmp_path)
    shutil.copy(tmp_path / "data/train.jsonl", tmp_path / "data/TRAIN.jsonl")
    real = purgewriter.write_new
    monkeypatch.setattr(
        purgewriter, "write_new", lambda path, *rest: real(path.with_name(path.name.lower()), *rest)
    )  # as a file system does that ignores case
    assert purge(tmp_path) == 4
    assert [path.name for path in tmp_path.iterdir() if "purged" in path.name] == []


def test_awkward_names_stay_as_they_are(tmp_path: Path) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    names = ["-rf.jsonl", "a b\n.jsonl", "é\u202e.jsonl", "$(touch x).jsonl", "..jsonl", "~.jsonl", "_up/x.jsonl"]
    for name in names:
        world.jsonl(tmp_path / "data" / name, [{"text": text} for text in TEXTS])
    (tmp_path / "data/..jsonl").rename(tmp_path / "data/...jsonl")
    world.config(tmp_path, train="['data/**/*.jsonl', 'data/...jsonl']")
    assert purge(tmp_path) == 0
    expected = {f"data/{name}" for name in names if name != "..jsonl"} | {"data/...jsonl"}
    assert set(tree(tmp_path / "purged")) == expected
    assert {data.count(b"\n") for data in tree(tmp_path / "purged").values()} == {len(LEFT)}


def test_paths_that_lead_up_stay_below_the_folder(tmp_path: Path) -> None:
    world.jsonl(tmp_path / "conf/eval.jsonl", [{"question": row} for row in ROWS])
    for name in ("up/t.jsonl", "conf/a/t.jsonl", "abs/t.jsonl"):
        world.jsonl(tmp_path / name, [{"text": text} for text in TEXTS])
    absolute = tmp_path / "abs/t.jsonl"
    world.config(tmp_path / "conf", train=f"['../up/*.jsonl', 'a/../../conf/a/t.jsonl', '{absolute}']")
    before = tree(tmp_path)
    assert purge(tmp_path / "conf") == 0
    root = f"_root{absolute.parent.as_posix()}/t.jsonl"
    assert set(tree(tmp_path / "conf/purged")) == {"_up/up/t.jsonl", "a/_up/_up/conf/a/t.jsonl", root}
    others = {name: data for name, data in tree(tmp_path).items() if not name.startswith(("conf/purged", "cache"))}
    assert others == before


def test_two_files_that_would_be_one_are_refused_also_from_two_checks(tmp_path: Path) -> None:
    world.jsonl(tmp_path / "conf/eval.jsonl", [{"question": row} for row in ROWS])
    for name in ("t.jsonl", "conf/_up/t.jsonl"):
        world.jsonl(tmp_path / name, [{"text": text} for text in TEXTS])
    (tmp_path / "conf/evalspill.yaml").write_text("""
version: 1
checks:
- {name: one, eval: {files: eval.jsonl, fields: [question]}, train: {files: ../t.jsonl}}
- {name: two, eval: {files: eval.jsonl, fields: [question]}, train: {files: _up/t.jsonl}}
""")
    assert purge(tmp_path / "conf") == 2


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems hold no names that are not Unicode")
def test_names_that_are_shown_alike_are_refused_also_from_two_checks(tmp_path: Path) -> None:
    world.jsonl(tmp_path / "eval.jsonl", [{"question": row} for row in ROWS])
    for name in (b"\xfe.jsonl", b"\xff.jsonl"):
        Path(os.fsdecode(os.fsencode(tmp_path / "t") + name)).write_text(json.dumps({"text": ROWS[1]}) + "\n")
    (tmp_path / "evalspill.yaml").write_text(r"""
version: 1
checks:
- {name: one, eval: {files: eval.jsonl, fields: [question]}, train: {files: ["t*.jsonl", "!t\uDCFE.jsonl"]}}
- {name: two, eval: {files: eval.jsonl, fields: [question]}, train: {files: ["t*.jsonl", "!t\uDCFF.jsonl"]}}
""")
    assert purge(tmp_path) == 2
    assert not (tmp_path / "purged").exists()


def test_a_private_folder_stays_private(tmp_path: Path) -> None:
    leaking(tmp_path)
    (tmp_path / "data/train.jsonl").chmod(0o644)
    (tmp_path / "data").chmod(0o700)
    assert purge(tmp_path) == 0
    assert stat.S_IMODE((tmp_path / "purged").stat().st_mode) == 0o700
    (tmp_path / "data").chmod(0o755)
    before = os.umask(0o022)
    try:
        assert purge(tmp_path, out="open") == 0
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("open", "open/data", "open/data/train.jsonl")] == [
        0o755, 0o755, 0o644,
    ]  # fmt: skip


# --- faults -----------------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from evalspill_guard import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(cli.run_command(sys.argv[2:]))
"""


def test_a_file_that_grows_too_large_leaves_nothing_and_the_next_run_is_right(tmp_path: Path) -> None:
    leaking(tmp_path)
    before = tree(tmp_path / "data")
    arguments = ["purge", "-c", str(tmp_path / "evalspill.yaml"), "--out", str(tmp_path / "purged"), "--no-cache"]
    command = [sys.executable, "-c", LIMITED, "400", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (4, "")
    assert "File too large" in done.stderr and "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir() if "purged" in path.name] == []
    assert tree(tmp_path / "data") == before
    assert purge(tmp_path) == 0
    assert (tmp_path / "purged/data/train.jsonl").read_bytes().count(b"\n") == len(LEFT)


STOPPED = """
import os, sys
from pathlib import Path
from evalspill_guard import cli, purgewriter
def stop(*_):
    print("here", flush=True)
    sys.stdin.read()
{where}
sys.exit(cli.run_command(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "where", ["purgewriter.sync_folder = stop", "Path.rename = stop", "purgewriter.write_new = stop"]
)
def test_killed_at_any_step_the_folder_is_whole_or_not_there(tmp_path: Path, where: str) -> None:
    leaking(tmp_path)
    before = tree(tmp_path / "data")
    arguments = ["purge", "-c", str(tmp_path / "evalspill.yaml"), "--out", str(tmp_path / "purged")]
    command = [sys.executable, "-c", STOPPED.format(where=where), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "purged").exists()
    assert tree(tmp_path / "data") == before
    assert purge(tmp_path) == 0
    assert (tmp_path / "purged/data/train.jsonl").read_bytes().count(b"\n") == len(LEFT)
    assert [path.name for path in tmp_path.iterdir() if "purged" in path.name] == ["purged"]


def test_of_two_purges_at_once_one_writes_and_the_other_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaking(tmp_path)
    real = purgewriter.write
    inner: list[int] = []

    def late(*arguments: object) -> object:
        monkeypatch.setattr(purgewriter, "write", real)
        inner.append(purge(tmp_path))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(purgewriter, "write", late)
    assert (purge(tmp_path), inner) == (4, [0])
    assert (tmp_path / "purged/data/train.jsonl").read_bytes().count(b"\n") == len(LEFT)
    assert [path.name for path in tmp_path.iterdir() if "purged" in path.name] == ["purged"]


def test_neither_a_dry_run_nor_a_refused_one_leaves_anything(tmp_path: Path) -> None:
    leaking(tmp_path)
    before = tree(tmp_path), sorted(map(str, tmp_path.rglob("*")))
    assert purge(tmp_path, "--dry-run", "--no-cache", out="deep/er/purged") == 0
    assert (tree(tmp_path), sorted(map(str, tmp_path.rglob("*")))) == before
    (tmp_path / "data/bad.jsonl").write_text("{")
    assert purge(tmp_path, "--no-cache", out="deep/er/purged") == 3
    (tmp_path / "data/bad.jsonl").unlink()
    assert (tree(tmp_path), sorted(map(str, tmp_path.rglob("*")))) == before


# --- the list ---------------------------------------------------------------------------------------------------------


def test_every_record_of_the_list_goes_and_no_other_does(tmp_path: Path) -> None:
    leaking(tmp_path)
    assert world.check(tmp_path, "--training-records") == 1
    table = (tmp_path / "evalspill-reports/contaminated-training.csv").read_bytes()
    arguments = ["purge", "-c", str(tmp_path / "evalspill.yaml"), "--out", str(tmp_path / "purged")]
    assert run_command([*arguments, "--list", str(tmp_path / "gone.csv")]) == 0
    assert (tmp_path / "gone.csv").read_bytes() == table
    numbers = [int(line.split(b",")[1]) for line in table.splitlines()[1:]]
    lines = (tmp_path / "data/train.jsonl").read_bytes().splitlines(keepends=True)
    kept = b"".join(line for number, line in enumerate(lines, 1) if number not in numbers)
    assert (tmp_path / "purged/data/train.jsonl").read_bytes() == kept


@pytest.mark.parametrize("name", [
    "data/train.jsonl", "eval.jsonl", "evalspill.yaml", "purged/gone.csv", "purged/data/train.jsonl", "data/gone.jsonl",
    "known.jsonl", "licence.txt", "data", "nowhere/gone.csv", "link.csv", "new-link.csv", "pipe",
])  # fmt: skip
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_list_takes_the_place_of_nothing_that_is_read_and_is_not_found_by_a_glob(
    tmp_path: Path, name: str, more: tuple[str, ...]
) -> None:
    leaking(tmp_path)
    (tmp_path / "known.jsonl").write_bytes(b"")
    (tmp_path / "licence.txt").write_text("nothing")
    (tmp_path / "link.csv").symlink_to("data/train.jsonl")
    (tmp_path / "new-link.csv").symlink_to("elsewhere.csv")
    os.mkfifo(tmp_path / "pipe")
    config = (tmp_path / "evalspill.yaml").read_text()
    (tmp_path / "evalspill.yaml").write_text(config + "ignore: [licence.txt]\nbaseline: known.jsonl\n")
    before = tree(tmp_path)
    assert purge(tmp_path, "--no-cache", "--list", str(tmp_path / name), *more) == 2
    assert tree(tmp_path) == before


def test_a_list_that_cannot_be_written_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking(tmp_path)
    (tmp_path / "gone.csv").write_text("an older list")
    before = tree(tmp_path)

    def full(path: Path, *rest: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evalspill_guard.purgewriter.write_new", full)
    assert purge(tmp_path, "--no-cache", "--list", str(tmp_path / "gone.csv")) == 4
    assert tree(tmp_path) == before


def test_a_purge_that_fails_leaves_the_older_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking(tmp_path)
    (tmp_path / "gone.csv").write_text("an older list")
    before = tree(tmp_path)
    monkeypatch.setattr("evalspill_guard.purgewriter._written", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    assert purge(tmp_path, "--no-cache", "--list", str(tmp_path / "gone.csv")) == 4
    assert tree(tmp_path) == before
    monkeypatch.undo()
    assert purge(tmp_path, "--no-cache", "--list", str(tmp_path / "gone.csv")) == 0
    assert (tmp_path / "gone.csv").read_text().startswith("train_file,")
