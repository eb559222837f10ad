"""Files behind addresses: read over http from a server of our own, shown without secrets."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import web
import world
import xxhash

from evalspill_guard import readers, remote
from evalspill_guard.errors import Unreadable, UsageError
from evalspill_guard.files import expand
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.readers import open_records, records_at, shards_of
from evalspill_guard.remote import is_remote, shown
from evalspill_guard.reports.clean import clean_path
from evalspill_guard.reports.flagged import located, uri
from evalspill_guard.setup import tables_of
from evalspill_guard.streams import file_stamp, open_source

pytest.importorskip("aiohttp", reason="aiohttp is not installed")
pytestmark = pytest.mark.network

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


def lines(numbers: list[int], around: str = "") -> bytes:
    texts = [" ".join(f"{word}{number}" for word in WORDS) for number in numbers]
    records = [
        {"question": f"{around} {text} {around}".strip(), "id": number}
        for number, text in zip(numbers, texts, strict=True)
    ]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.fixture
def server() -> Iterator[web.Server]:
    with web.serving() as running:
        running.files = {"/train/a.jsonl": lines([1, 3, 50], "around"), "/eval.jsonl": lines([0, 1, 2, 3, 4])}
        yield running


def file(server: web.Server, path: str) -> DataFile:
    return DataFile(f"{server.url}{path}", f"{server.url}{path}")


def questions(one: DataFile) -> list[str]:
    with open_records(one, Reading(fields=("id",)), "train") as stream:
        found = [record.leaves[0] for record in stream]
        stream.source.digest()
    return found


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("https://user:password@host/f.jsonl", "https://host/f.jsonl"),
        ("https://user:p4/SECRET@host/f.jsonl", "https://host/f.jsonl"),
        ("https://user:p4?SECRET@host/f@2.jsonl", "https://2.jsonl"),
        ("s3://AKIA:SEC/RET#KEY@bucket/f.jsonl", "s3://bucket/f.jsonl"),
        ("https://host:8080/data@v2/f.jsonl", "https://host:8080/data@v2/f.jsonl"),
        ("https://[::1]:80/data@v2/f.jsonl", "https://[::1]:80/data@v2/f.jsonl"),
        ("https://token@host:8080/f.jsonl", "https://host:8080/f.jsonl"),
        ("https://host/f.jsonl?X-Amz-Signature=abc&sig=d", "https://host/f.jsonl"),
        ("https://host/f.jsonl#access_token=abc", "https://host/f.jsonl"),
        ("https://host?sig=abc", "https://host"),
        ("s3://key:secret@bucket/f.jsonl", "s3://bucket/f.jsonl"),
        ("s3://bucket/a?/*.jsonl", "s3://bucket/a?/*.jsonl"),
        ("hf://datasets/org/name@main/f.parquet", "hf://datasets/org/name@main/f.parquet"),
        ("az://container/f.jsonl", "az://container/f.jsonl"),
        ("data/f@x?.jsonl", "data/f@x?.jsonl"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(address: str, safe: str) -> None:
    assert shown(address) == safe


def test_only_addresses_are_remote() -> None:
    named = ("s3://b/k", "gs://b/k", "az://c/k", "hf://datasets/o/n", "https://h/f", "http://h/f", "s3/b", "./https:/x")
    assert [is_remote(name) for name in named] == [True] * 6 + [False] * 2


def test_addresses_keep_their_place_in_reports() -> None:
    assert located("sub/folder", "s3://bucket/f.jsonl") == "s3://bucket/f.jsonl"
    assert uri("https://host:80/a b.jsonl") == "https://host:80/a%20b.jsonl"
    assert clean_path("s3://bucket/../f.jsonl.gz") == "clean/_s3/bucket/_up/f.clean.jsonl.gz"[len("clean/") :]
    assert clean_path("http://host:80/f.jsonl") == "_http/host_80/f.clean.jsonl"


def test_nothing_is_contacted_unless_a_path_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    world.jsonl(tmp_path / "train.jsonl", [{"question": "nothing of the kind"}])
    (tmp_path / "eval.jsonl").write_bytes(lines([0]))
    world.config(tmp_path)
    assert world.check(tmp_path, "--engine", "serial") == 0
    checked = f"import sys; from evalspill_guard.cli import run_command; run_command(['check', '-c', {str(tmp_path / 'evalspill.yaml')!r}])"
    done = subprocess.run([sys.executable, "-c", f"{checked}; sys.exit('fsspec' in sys.modules)"], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_file_is_read_whatever_the_server_can_do(server: web.Server, ranges: bool, pack: Any) -> None:
    server.ranges = ranges
    server.files["/t.jsonl"] = pack(lines(list(range(500))))
    one = file(server, "/t.jsonl")
    assert questions(one) == [str(number) for number in range(500)]
    wanted = [(3, 0), (0, 0)]
    with open_records(one, Reading(), "train") as stream:
        starts = [record.start for record in stream]
    wanted = [(number, starts[number]) for number in (3, 400)]
    again = records_at(one, Reading(fields=("id",)), "train", wanted)
    assert [record.leaves for record in again] == [["3"], ["400"]]


def test_a_whole_file_is_asked_for_once(server: web.Server) -> None:
    server.files["/t.txt"] = lines(list(range(3000)))
    with open_source(file(server, "/t.txt")) as source:
        source.digest()
    assert [method for method, _, _ in server.asked].count("GET") == 1
    assert server.sent == len(server.files["/t.txt"])


def test_plain_json_lines_are_cut_into_byte_ranges(server: web.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", 20_000)
    server.files["/t.jsonl"] = lines(list(range(1000)))
    one = file(server, "/t.jsonl")
    found = []
    for shard in shards_of(one, Reading()):
        with open_records(one, Reading(fields=("id",)), "train", shard.start, shard.end) as stream:
            found += [record.leaves[0] for record in stream]
            stream.source.digest()
    assert len(shards_of(one, Reading())) > 3
    assert found == [str(number) for number in range(1000)]


def test_without_byte_ranges_a_file_is_one_shard(server: web.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SHARD_BYTES", 20_000)
    server.ranges = False
    server.files["/t.jsonl"] = lines(list(range(1000)))
    assert len(shards_of(file(server, "/t.jsonl"), Reading())) == 1


def test_a_size_that_is_not_told_is_found_out(server: web.Server) -> None:
    server.fault = "no size"
    assert questions(file(server, "/train/a.jsonl")) == ["1", "3", "50"]


def test_a_server_that_refuses_to_be_asked_for_the_head_is_read(server: web.Server) -> None:
    server.head = False
    assert questions(file(server, "/train/a.jsonl")) == ["1", "3", "50"]


def test_what_is_stored_packed_is_digested_packed(server: web.Server) -> None:
    server.files["/t.jsonl.gz"] = gzip.compress(lines([7, 8]))
    server.fault = "says gzip"
    assert questions(file(server, "/t.jsonl.gz")) == ["7", "8"]
    with open_source(file(server, "/t.jsonl.gz")) as source:
        assert source.digest() == xxhash.xxh3_128_hexdigest(server.files["/t.jsonl.gz"])


def test_globs_follow_the_links_of_a_page(server: web.Server, tmp_path: Path) -> None:
    for name in ("/train/b.jsonl", "/train/deep/er/c.jsonl", "/train/.hidden.jsonl", "/train/d.csv"):
        server.files[name] = b"{}\n"
    base = f"{server.url}/train"
    found, problems = expand([f"{base}/**/*.jsonl", f"!{base}/b.*"], tmp_path, [])
    assert [one.path.removeprefix(base) for one in found] == ["/a.jsonl", "/deep/er/c.jsonl"]
    assert problems == []
    found, _ = expand([f"{base}/*"], tmp_path, [])
    assert [one.path.removeprefix(base) for one in found] == ["/a.jsonl", "/b.jsonl", "/d.csv"]
    found, _ = expand([f"{base}/{{b,d}}.*"], tmp_path, [])
    assert [one.path.removeprefix(base) for one in found] == ["/b.jsonl", "/d.csv"]


def _problem(tmp_path: Path, pattern: str) -> str:
    _, problems = expand([pattern], tmp_path, [])
    return "; ".join(problem.what for problem in problems)


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("404", "is not there"),
        ("403", "access is denied"),
        ("401", "access is denied"),
        ("503", "the server answered 503"),
    ],
)
def test_what_the_server_refuses_is_a_problem(server: web.Server, tmp_path: Path, fault: str, what: str) -> None:
    server.fault = fault
    assert what in _problem(tmp_path, f"{server.url}/train/a.jsonl")


def test_a_refused_connection_is_a_problem(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert "the connection failed" in _problem(tmp_path, f"http://127.0.0.1:{port}/f.jsonl?sig=SECRET")


def test_a_glob_that_matches_nothing_is_a_problem(server: web.Server, tmp_path: Path) -> None:
    assert _problem(tmp_path, f"{server.url}/train/*.csv") == "matches no file"
    assert _problem(tmp_path, f"{server.url}/none/*.csv") == "matches no file"


def test_a_connection_that_breaks_is_incomplete(server: web.Server) -> None:
    server.files["/t.jsonl"] = lines(list(range(3000)))
    server.fault = "breaks"
    with pytest.raises(Unreadable, match="connection failed or broke"):
        questions(file(server, "/t.jsonl"))


@pytest.mark.parametrize("fault", ["head is short", "206 for the whole"])
def test_a_server_that_cuts_the_file_short_is_incomplete(server: web.Server, fault: str) -> None:
    server.files["/t.txt"] = b"a paragraph\n\n" * 40_000
    server.fault = fault
    with pytest.raises(Unreadable):
        _read_whole(file(server, "/t.txt"))


def _read_whole(one: DataFile) -> None:
    with open_records(one, Reading(), "train") as stream:
        list(stream)
        stream.source.digest()


def test_an_object_that_changes_is_incomplete(server: web.Server) -> None:
    one = file(server, "/train/a.jsonl")
    with open_records(one, Reading(), "train") as stream:
        next(iter(stream))
        server.files["/train/a.jsonl"] = lines([1, 3, 51], "around")  # of the same size
        with pytest.raises(Unreadable, match="changed during the scan"):
            stream.source.digest()


def test_without_a_tag_the_state_of_a_file_is_never_believed(server: web.Server) -> None:
    tagged = file_stamp(file(server, "/train/a.jsonl"))
    server.tags = False
    untagged = file_stamp(file(server, "/train/a.jsonl"))
    assert (tagged[1], untagged[1]) == (0, remote.UNTRUSTED)


def test_without_the_extra_it_is_wrong_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote._file_system.cache_clear()
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"s3:// needs the extra: pip install 'evalspill-guard\[remote\]'"):
        expand(["s3://bucket/f.jsonl"], tmp_path, [])
    remote._file_system.cache_clear()


def test_addresses_that_only_a_secret_tells_apart_are_a_problem(server: web.Server, tmp_path: Path) -> None:
    one = f"{server.url}/eval.jsonl"
    _, problems = expand([f"{one}?sig=1", f"{one}?sig=2"], tmp_path, [])
    assert ["cannot tell them apart" in problem.what for problem in problems] == [True]


def _check(folder: Path, train: str, evals: str) -> tuple[int, dict[str, Any], list[dict[str, str]]]:
    folder.mkdir()
    world.config(folder, train=f"'{train}'", evals=f"'{evals}'")
    code = world.check(folder, "--engine", "serial", "--no-cache")
    return code, world.only_check(folder), world.csv_rows(folder, "contamination-report.csv")


def _paths_aside(table: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{key: value for key, value in row.items() if key not in ("eval_file", "train_file")} for row in table]


def test_over_http_the_report_is_that_of_local_files(server: web.Server, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/a.jsonl").write_bytes(server.files["/train/a.jsonl"])
    (tmp_path / "eval.jsonl").write_bytes(server.files["/eval.jsonl"])
    code, figures, table = _check(tmp_path / "local", "../train/*.jsonl", "../eval.jsonl")
    over, remote_figures, remote_table = _check(
        tmp_path / "web", f"{server.url}/train/*.jsonl", f"{server.url}/eval.jsonl"
    )
    assert (code, over, len(table)) == (1, 1, 2)
    assert _paths_aside(remote_table) == _paths_aside(table)
    inputs = [[{**one, "path": ""} for one in side["train"]["files"]] for side in (figures, remote_figures)]
    assert inputs[0] == inputs[1]
    host = server.url.removeprefix("http://").replace(":", "_")
    clean = tmp_path / f"web/evalspill-reports/default/clean/_http/{host}/eval.clean.jsonl"
    assert clean.read_bytes() == lines([0, 2, 4])


def test_a_secret_is_in_no_report_log_or_message(
    server: web.Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "SECRET5f3a"
    login = server.url.replace("http://", f"http://user:{secret}@")
    train, evals = f"{login}/train/a.jsonl?X-Amz-Signature={secret}", f"{login}/eval.jsonl?sig={secret}"
    world.config(
        tmp_path, train=f"['{train}', '{login}/none.jsonl?token={secret}', '!{login}/x?{secret}']", evals=f"'{evals}'"
    )
    assert world.check(tmp_path, "-v", "--engine", "serial", "--no-cache") == 3
    tables_of([evals])
    printed = capsys.readouterr()
    reports = [path for path in (tmp_path / "evalspill-reports").rglob("*") if path.is_file()]
    assert any(secret in path for _, path, _ in server.asked)
    assert len(reports) > 5
    assert [path.name for path in reports if secret in path.read_text()] == []
    assert secret not in printed.out + printed.err


def test_an_eval_file_that_is_a_training_file_is_refused(server: web.Server, tmp_path: Path) -> None:
    world.config(tmp_path, train=f"'{server.url}/*.jsonl'", evals=f"'{server.url}/eval.jsonl?sig=1'")
    assert world.check(tmp_path) == 2


@pytest.mark.parametrize("ranges", [True, False])
def test_parquet_over_http_needs_byte_ranges(server: web.Server, ranges: bool) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["a", "b"]}), sink)
    server.files["/f.parquet"] = sink.getvalue().to_pybytes()
    server.ranges = ranges
    if ranges:
        assert questions(file(server, "/f.parquet")) == ["a", "b"]
    else:
        with pytest.raises(Unreadable, match="no byte ranges"):
            questions(file(server, "/f.parquet"))


class _CredentialsMissing(Exception):
    """As a library may name it."""


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (PermissionError("Forbidden https://host/?sig=SECRET"), "access is denied: check the credentials"),
        (_CredentialsMissing("SECRET"), "no valid credentials were found"),
        (FileNotFoundError("SECRET"), "is not there"),
        (ConnectionResetError("SECRET"), "could not be read: the connection failed or broke (ConnectionResetError)"),
        (KeyError("SECRET"), "could not be read: KeyError"),
    ],
)
def test_what_a_library_raises_is_told_in_our_words(error: Exception, what: str) -> None:
    with pytest.raises(Unreadable) as caught, remote._explained():
        raise error
    assert caught.value.what == what
