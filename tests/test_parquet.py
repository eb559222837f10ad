"""Parquet and Arrow files as training data and as eval sets."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import world
import xxhash

from evalspill_guard import readers
from evalspill_guard.cli import run_command
from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading, Shard
from evalspill_guard.readers import open_records, records_at, shards_of, values
from evalspill_guard.readers import parquet as parquet_module
from evalspill_guard.readers.parquetclean import kept_rows
from evalspill_guard.streams import range_digest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

WORDS = [
    "alpha",
    "bravo",
    "charlie",
    "delta",
    "echo",
    "foxtrot",
    "golf",
    "hotel",
    "india",
    "juliet",
    "kilo",
    "lima",
    "mike",
    "november",
    "oscar",
    "papa",
]


def sentence(number: int) -> str:
    return " ".join(f"{word}{number}" for word in WORDS)


def rows(count: int) -> list[dict[str, Any]]:
    return [{"question": sentence(number), "meta": {"n": number}, "tags": [f"t{number}"]} for number in range(count)]


def parquet(path: Path, data: list[dict[str, Any]] | Any, **how: Any) -> DataFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(data) if isinstance(data, list) else data, path, **how)
    return DataFile(path.name, str(path))


def leaves(file: DataFile, *fields: str) -> list[list[str]]:
    with open_records(file, Reading(fields=fields or None), "train") as stream:
        return [record.leaves for record in stream]


def fault(file: DataFile) -> str:
    with pytest.raises(Unreadable) as caught:
        leaves(file)
    return caught.value.what


NESTED = [
    {
        "messages": [{"role": "user", "content": "ask"}, {"role": "assistant", "content": "say"}],
        "a": {"b": {"c": "deep"}},
    },
    {"messages": [], "a": None},
]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("messages[].content", ["ask", "say"]),
        ("messages[role=user].content", ["ask"]),
        ("messages[1].content", ["say"]),
        ("a.b.c", ["deep"]),
        ("a", ["deep"]),
        (".", ["user", "ask", "assistant", "say", "deep"]),
        ("missing", []),
    ],
)
def test_nested_columns_are_selected_by_the_same_paths(tmp_path: Path, path: str, found: list[str]) -> None:
    schema = pa.schema(
        [
            ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
            ("a", pa.struct([("b", pa.struct([("c", pa.string())]))])),
        ]
    )
    file = parquet(tmp_path / "f.parquet", pa.Table.from_pylist(NESTED, schema))
    assert leaves(file, path) == [found, []]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([1]), ["1"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([np.float16(1.5)], pa.float16()), ["1.5"]),
        (pa.array([decimal.Decimal("1E+3")], pa.decimal128(10, 2)), ["1000.00"]),
        (pa.array(["word"]).dictionary_encode(), ["word"]),
        (pa.array([[("k", "v"), ("l", "w")]], pa.map_(pa.string(), pa.string())), ["v", "w"]),
        (pa.array([[("k", "v"), ("k", "w")]], pa.map_(pa.string(), pa.string())), ["v", "w"]),
        (pa.array(["naïve".encode()]), ["naïve"]),
        (pa.array([b"\xff\xd8\xff"]), []),
        (pa.array([b"abcd"], pa.binary(4)), ["abcd"]),
        (pa.array([True]), []),
        (pa.array([None], pa.null()), []),
        (pa.array([datetime.date(2024, 1, 31)]), []),
        (pa.array([1], pa.timestamp("ns", "Europe/Paris")), []),
        (pa.array([{"at": 1, "x": "y"}], pa.struct([("at", pa.timestamp("ns")), ("x", pa.string())])), ["y"]),
        (pa.array([["a", None, "b"]], pa.large_list(pa.large_string())), ["a", "b"]),
    ],
    ids=str,
)
def test_strings_and_numbers_are_text_and_nothing_else(tmp_path: Path, column: Any, text: list[str]) -> None:
    assert leaves(parquet(tmp_path / "f.parquet", pa.table({"c": column}))) == [text]


def test_columns_of_one_name_all_count(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["one"]), pa.array(["two"])], names=["c", "c"])
    assert leaves(parquet(tmp_path / "f.parquet", table), "c") == [["one", "two"]]


def test_a_key_with_a_dot_is_found_by_its_quoted_name(tmp_path: Path) -> None:
    assert leaves(parquet(tmp_path / "f.parquet", [{"a.b": "x", "a": {"b": "y"}}]), '["a.b"]') == [["x"]]


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    file = parquet(tmp_path / "f.parquet", rows(3))
    with open_records(file, Reading(fields=("meta.n",), id="tags[0]"), "eval") as stream:
        assert stream.columns == ["meta.n", "tags.list.element"]  # type: ignore[attr-defined]
        assert [(record.leaves, record.id) for record in stream] == [(["0"], "t0"), (["1"], "t1"), (["2"], "t2")]


def test_rows_are_numbered_and_have_no_line(tmp_path: Path) -> None:
    file = parquet(tmp_path / "f.parquet", rows(5), row_group_size=2)
    with open_records(file, Reading(), "train") as stream:
        assert [(record.line, record.start) for record in stream] == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
        assert stream.source.digest() == xxhash.xxh3_128_hexdigest(Path(file.real).read_bytes())


def test_records_are_found_again_by_their_row(tmp_path: Path) -> None:
    file = parquet(tmp_path / "f.parquet", rows(3000), row_group_size=1100)
    again = records_at(file, Reading(fields=("meta.n",)), "train", [(0, 1), (5, 1099), (6, 1100), (7, 2999)])
    assert [record.leaves for record in again] == [["1"], ["1099"], ["1100"], ["2999"]]


def test_row_groups_are_the_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", 20_000)
    file = parquet(tmp_path / "f.parquet", rows(2000), row_group_size=100, compression="none", use_dictionary=False)
    shards = shards_of(file, Reading())
    assert len(shards) > 5
    found = []
    for shard in shards:
        with open_records(file, Reading(fields=("meta.n",)), "train", shard.start, shard.end) as stream:
            found += [(record.start, record.leaves) for record in stream]
            assert stream.source.digest() == range_digest(file, shard.start, shard.end)
    assert found == [(number, [str(number)]) for number in range(2000)]


def test_a_renamed_column_changes_the_digest_of_every_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", 5_000)
    table = pa.Table.from_pylist([{"a": sentence(number)} for number in range(500)])
    one = parquet(tmp_path / "1.parquet", table, row_group_size=50)
    two = parquet(tmp_path / "2.parquet", table.rename_columns(["b"]), row_group_size=50)
    first = shards_of(one, Reading())[0]
    assert first.end is not None
    raw = [Path(file.real).read_bytes()[: first.end] for file in (one, two)]
    digests = {range_digest(file, first.start, first.end) for file in (one, two)}
    assert (raw[0] == raw[1], len(digests)) == (True, 2)


def test_the_first_bytes_decide_over_the_name(tmp_path: Path) -> None:
    file = parquet(tmp_path / "f.jsonl", rows(2))
    assert leaves(file, "meta.n") == [["0"], ["1"]]
    assert shards_of(file, Reading()) == [Shard(file, Reading())]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _scratched(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[40:200] = b"\xff" * 160
    path.write_bytes(raw)


def _encrypted(path: Path) -> None:
    path.write_bytes(b"PARE" + path.read_bytes()[4:-4] + b"PARE")


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (_cut, "cut off or damaged"),
        (_scratched, "cut off or damaged"),
        (_encrypted, "encrypted"),
        (lambda path: path.write_bytes(b""), "cut off or damaged"),
        (lambda path: path.write_bytes(b"PAR1"), "cut off or damaged"),
        (lambda path: path.write_text('{"question": "no parquet"}\n'), "cut off or damaged"),
        (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"),
    ],
)
def test_what_cannot_be_read_says_so(tmp_path: Path, harm: Any, what: str) -> None:
    file = parquet(tmp_path / "f.parquet", rows(50), compression="zstd")
    harm(Path(file.real))
    assert what in fault(file)


@pytest.mark.parametrize("groups", [0, 1])
def test_a_file_without_rows_has_no_records(tmp_path: Path, groups: int) -> None:
    table = pa.table({"question": pa.array([], pa.string())})
    with pq.ParquetWriter(tmp_path / "f.parquet", table.schema) as writer:
        for _ in range(groups):
            writer.write_table(table)
    assert leaves(DataFile("f.parquet", str(tmp_path / "f.parquet"))) == []


def test_text_that_is_not_utf_8_is_a_bad_record_that_is_still_searched(tmp_path: Path) -> None:
    raw = pa.py_buffer(b"fine\xff\xfe broken")
    column = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\4\0\0\0\15\0\0\0"), raw])
    file = parquet(tmp_path / "f.parquet", pa.table({"c": column}))
    with open_records(file, Reading(), "train") as stream:
        found = [(record.leaves, record.bad) for record in stream]
    assert found == [(["fine"], None), (["\ufffd\ufffd broken"], "row 2: not UTF-8")]


def test_a_row_above_max_record_is_bad(tmp_path: Path) -> None:
    file = parquet(tmp_path / "f.parquet", [{"c": "x" * 101}, {"c": "y" * 100}])
    with open_records(file, Reading(max_record=100), "train") as stream:
        assert [record.bad for record in stream] == ["row 1: above max_record (100 bytes)", None]


def test_without_the_extra_the_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = parquet(tmp_path / "f.parquet", rows(1))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert fault(file) == "needs the extra: pip install 'evalspill-guard[parquet]'"


def test_arrow_files_and_streams_are_read_alike(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(rows(3))
    for name, new in (("f.arrow", pa.ipc.new_file), ("s.arrow", pa.ipc.new_stream), ("f.feather", pa.ipc.new_file)):
        with new(tmp_path / name, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        file = DataFile(name, str(tmp_path / name))
        assert leaves(file, "meta.n") == [["0"], ["1"], ["2"]]
        assert [record.leaves for record in records_at(file, Reading(("tags[]",)), "train", [(2, 2)])] == [["t2"]]


def _kept(file: DataFile, keep: list[bool]) -> Any:
    digest = xxhash.xxh3_128_hexdigest(Path(file.real).read_bytes())
    return pa.BufferReader(b"".join(kept_rows(file, digest, keep)))


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_the_clean_file_keeps_schema_metadata_codec_and_order(tmp_path: Path, codec: str) -> None:
    table = pa.Table.from_pylist(rows(10)).replace_schema_metadata({b"pandas": b"{}", b"huggingface": b'{"info": 1}'})
    file = parquet(tmp_path / "f.parquet", table, row_group_size=4, compression=codec)
    keep = [number not in (1, 4, 5, 6, 7) for number in range(10)]
    before, after = pq.ParquetFile(file.real), pq.ParquetFile(_kept(file, keep))
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert after.schema.equals(before.schema)
    assert after.metadata.metadata.keys() == before.metadata.metadata.keys()
    assert after.metadata.row_group(0).column(0).compression == before.metadata.row_group(0).column(0).compression
    assert after.read().to_pylist() == [row for row, stays in zip(rows(10), keep, strict=True) if stays]


def test_a_clean_file_may_be_left_with_no_row(tmp_path: Path) -> None:
    file = parquet(tmp_path / "f.parquet", rows(3))
    assert pq.ParquetFile(_kept(file, [False] * 3)).read().num_rows == 0


def test_a_clean_file_is_never_made_from_a_file_that_changed(tmp_path: Path) -> None:
    file = parquet(tmp_path / "f.parquet", rows(3))
    with pytest.raises(Unreadable, match="changed"):
        list(kept_rows(file, "0" * 32, [True] * 3))


def _repository(folder: Path, form: str) -> Path:
    """Five eval rows, of which the training data hold two."""
    train = [{"question": f"before {sentence(number)} after", "meta": {"n": number}} for number in (1, 3, 50, 51, 52)]
    for name, data in (("train", train), ("eval", rows(5))):
        if form == "jsonl":
            world.jsonl(folder / f"{name}.jsonl", data)
        else:
            parquet(folder / f"{name}.parquet", data, row_group_size=2)
    world.config(folder, train=f"train.{form}", evals=f"eval.{form}")
    return folder


def test_parquet_gives_the_figures_of_json_lines(tmp_path: Path) -> None:
    found = {}
    for form in ("jsonl", "parquet"):
        folder = _repository(tmp_path / form, form)
        assert world.check(folder) == 1
        table = world.csv_rows(folder, "contamination-report.csv")
        assert {row["train_line"] == row["line"] == "" for row in table} == {form == "parquet"}
        aside = ("eval_file", "train_file", "line", "train_line")
        found[form] = [{key: value for key, value in row.items() if key not in aside} for row in table]
    assert len(found["jsonl"]) == 2
    assert found["parquet"] == found["jsonl"]
    clean = pq.read_table(tmp_path / "parquet/evalspill-reports/default/clean/eval.clean.parquet")
    assert [row["meta"]["n"] for row in clean.to_pylist()] == [0, 2, 4]


def test_nothing_left_out_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = _repository(tmp_path, "parquet")
    parquet(folder / "train.parquet", [{"question": "nothing of the kind"}])
    assert world.check(folder) == 0
    clean = folder / "evalspill-reports/default/clean/eval.clean.parquet"
    assert clean.read_bytes() == (folder / "eval.parquet").read_bytes()


def test_a_damaged_training_file_is_incomplete_and_has_no_line(tmp_path: Path) -> None:
    folder = _repository(tmp_path, "parquet")
    _cut(folder / "train.parquet")
    assert world.check(folder) == 3
    assert ("train.parquet", None) in [(path, line) for path, line, _ in world.problems(folder)]


def test_fields_and_init_work_on_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _repository(tmp_path, "parquet")
    output = tmp_path / "new.yaml"
    named = [str(tmp_path / "train.parquet"), str(tmp_path / "eval.parquet")]
    assert run_command(["init", *named, "-o", str(output)]) == 0
    assert "question" in output.read_text()
    assert run_command(["fields", named[1]]) == 0
    assert "meta.n" in capsys.readouterr().out


def test_what_polars_writes_is_read_and_cleaned(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    polars.DataFrame(rows(4)).write_parquet(tmp_path / "f.parquet", compression="zstd")
    file = DataFile("f.parquet", str(tmp_path / "f.parquet"))
    assert [json.loads(json.dumps(value)) for value in values(file, Reading(), "eval")] == rows(4)
    assert polars.read_parquet(_kept(file, [True, False, True, False])).to_dicts() == [rows(4)[0], rows(4)[2]]


Q = " ".join(f"word{number}" for number in range(14))


def _arrow_repository(folder: Path, table: Any, fields: str = "", name: str = "train.arrow") -> Path:
    world.jsonl(folder / "eval.jsonl", [{"question": Q}])
    if name.endswith("parquet"):
        pq.write_table(table, folder / name)
    else:
        with pa.ipc.new_file(str(folder / name), table.schema) as file:
            file.write_table(table)
    (folder / "evalspill.yaml").write_text(
        f"version: 1\ntrain: {{files: {name}{fields}}}\neval: {{files: eval.jsonl, fields: question}}\n"
        "on_bad_record: skip\n"
    )
    return folder


@pytest.mark.parametrize("kind", ["list", "struct", "dictionary", "string", "binary"])
def test_a_broken_string_in_another_column_hides_nothing_of_its_row(tmp_path: Path, kind: str) -> None:
    column = {
        "list": pa.array([[Q]] * 1 + [["x"]] * 299),
        "struct": pa.array([{"content": Q}] + [{"content": "x"}] * 299),
        "dictionary": pa.array([Q] + ["x"] * 299).dictionary_encode(),
        "string": pa.array([Q] + ["x"] * 299),
        "binary": pa.array([Q.encode()] + [b"x"] * 299),
    }[kind]
    broken = pa.array([b"\xff\xfe"] + [b"x"] * 299).view(pa.string())
    _arrow_repository(tmp_path, pa.table({"t": column, "o": broken}))
    assert world.check(tmp_path) == 1


def test_a_broken_string_inside_a_list_is_no_row_to_pass_over(tmp_path: Path) -> None:
    values = pa.array([Q.encode() + b"\xff"] + [b"x"] * 299).view(pa.string())
    column = pa.ListArray.from_arrays(list(range(301)), values)
    _arrow_repository(tmp_path, pa.table({"t": column}))
    assert world.check(tmp_path) == 3


@pytest.mark.parametrize("name", ["train.arrow", "train.parquet"])
def test_the_keys_of_a_map_are_never_text(tmp_path: Path, name: str) -> None:
    half, rest = " ".join(Q.split()[:7]), " ".join(Q.split()[7:])
    flags = pa.array([[("checked", True)]], pa.map_(pa.string(), pa.bool_()))
    _arrow_repository(tmp_path, pa.table({"a": [half], "flags": flags, "b": [rest]}), name=name)
    assert world.check(tmp_path) == 1
    _arrow_repository(tmp_path, pa.table({"flags": flags}), name=name)
    assert world.check(tmp_path) == 3


def test_a_path_leads_into_a_dictionary_of_structs(tmp_path: Path) -> None:
    inner = pa.array([{"text": Q, "x": "y"}])
    column = pa.DictionaryArray.from_arrays(pa.array([0]), inner)
    _arrow_repository(tmp_path, pa.table({"d": column, "b": ["filler words"]}), ", fields: [d.text, b]")
    assert world.check(tmp_path) == 1


@pytest.mark.parametrize("error", [MemoryError, SystemError, TypeError, RecursionError, OverflowError, OSError])
def test_whatever_the_library_breaks_at_is_a_fault_of_the_file(
    tmp_path: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = parquet(tmp_path / "f.parquet", rows(2))

    def breaks(number: int, batch: object) -> None:
        raise error("quotes the data")

    monkeypatch.setattr(parquet_module, "as_rows", breaks)
    said = fault(file)
    assert "quotes" not in said
    assert ("memory" in said) == (error is MemoryError)


def _patched(table: Any, old: bytes, new: bytes, path: Path) -> DataFile:
    """An Arrow file in which some bytes that stand in it once are others."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    raw = sink.getvalue().to_pybytes()
    assert raw.count(old) == 1
    path.write_bytes(raw.replace(old, new))
    return DataFile(path.name, str(path))


def _ints(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)


@pytest.mark.parametrize("beyond", [-7, 19, 1 << 30, (1 << 31) - 1])
@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string()), pa.map_(pa.string(), pa.string()), "dictionary"])
def test_an_arrow_file_that_points_outside_of_its_data_is_damaged(tmp_path: Path, kind: Any, beyond: int) -> None:
    """Without a look at it first, the whole process ends."""
    column = pa.array(["seven77", "eleven11111"])
    old, new = _ints(0, 7, 18), _ints(0, beyond, 18)
    if kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([1, 1, 0, 1, 1], pa.int32()), column)
        old, new = _ints(1, 1, 0, 1, 1), _ints(1, 1, beyond, 1, 1)
    elif pa.types.is_list(kind):
        column = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), column)
    elif pa.types.is_map(kind):
        column = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b"]), column)
    file = _patched(pa.table({"c": column}), old, new, tmp_path / "f.arrow")
    assert "damaged" in fault(file)


def test_dates_that_are_none_and_broken_strings_are_no_damage_of_an_arrow_file(tmp_path: Path) -> None:
    table = pa.table({
        "d": pa.array([5], pa.int64()).view(pa.date64()), "t": pa.array([-1], pa.int32()).view(pa.time32("s")),
        "c": ["text"],
    })  # fmt: skip
    sink = tmp_path / "f.arrow"
    with pa.ipc.new_file(str(sink), table.schema) as file:
        file.write_table(table)
    assert leaves(DataFile("f.arrow", str(sink))) == [["text"]]


def test_many_rows_of_nothing_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    batch = pa.record_batch({"c": pa.nulls(1 << 26)})
    with pa.ipc.new_file(str(tmp_path / "f.arrow"), batch.schema) as file:
        file.write_batch(batch)
    with open_records(DataFile("f.arrow", str(tmp_path / "f.arrow")), Reading(), "train") as stream:
        assert next(iter(stream)).leaves == []


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_column_that_is_there_is_no_field_that_no_record_has(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"text": [sentence(1)], "flag": [True], "empty": pa.nulls(1), "meta": [{"a": "x"}]})
    if suffix == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    else:
        with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    world.jsonl(tmp_path / "eval.jsonl", [{"question": sentence(1)}])
    for fields, code in (("text, flag, empty, meta.a", 1), ("text, gone", 3), ("text, meta.b", 3)):
        train = f"train: {{files: t.{suffix}, fields: [{fields}]}}\n"
        evals = "eval: {files: eval.jsonl, fields: [question]}\n"
        (tmp_path / "evalspill.yaml").write_text(f"version: 1\n{train}{evals}")
        assert world.check(tmp_path) == code
