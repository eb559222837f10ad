"""Data in a bucket: moto's S3 server on loopback, the tool as its users start it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import world

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto.server", reason="moto[server] is not installed")

SECRET = "SECRET5f3a"
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


def lines(numbers: range | list[int], around: str = "") -> bytes:
    return "".join(
        json.dumps({"question": f"{around} {sentence(n)} {around}".strip(), "n": n}) + "\n" for n in numbers
    ).encode()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert server.poll() is None, "moto's server ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("moto's server does not answer")


@pytest.fixture
def bucket(endpoint: str) -> Iterator[Any]:
    login = {"aws_access_key_id": "key", "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=endpoint, **login)
    name = f"data-{time.monotonic_ns()}"
    client.create_bucket(Bucket=name)
    yield lambda key, data: client.put_object(Bucket=name, Key=key, Body=data) and f"s3://{name}/{key}"
    client.close()


def check(folder: Path, endpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET,
           "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}  # fmt: skip
    command = [sys.executable, "-m", "evalspill_guard", "check", "-v", "-c", str(folder / "evalspill.yaml")]
    return subprocess.run(
        [*command, "--cache-dir", str(folder / "cache"), *arguments],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def _local(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _table(folder: Path) -> list[dict[str, str]]:
    aside = ("eval_file", "train_file")
    rows = world.csv_rows(folder, "contamination-report.csv")
    return [{key: value for key, value in row.items() if key not in aside} for row in rows]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_bucket_gives_the_report_of_local_files(tmp_path: Path, endpoint: str, bucket: Any, jobs: str) -> None:
    files = {
        "train/a.jsonl": lines([1, 3], "around"),
        "train/deep/b.jsonl": lines([1, 4, 99]),
        "eval.jsonl": lines(range(5)),
    }
    _local(tmp_path / "local", files)
    world.config(tmp_path / "local", train="train/**/*.jsonl")
    assert check(tmp_path / "local", endpoint).returncode == 1
    root = [bucket(key, data) for key, data in files.items()][-1].removesuffix("/eval.jsonl")
    (tmp_path / "s3").mkdir()
    world.config(tmp_path / "s3", train=f"{root}/train/**/*.jsonl", evals=f"{root}/eval.jsonl")
    done = check(tmp_path / "s3", endpoint, "--engine", "process", "--jobs", jobs)
    assert (done.returncode, SECRET in done.stdout + done.stderr) == (1, False)
    assert len(_table(tmp_path / "local")) == 3
    assert _table(tmp_path / "s3") == _table(tmp_path / "local")
    clean = tmp_path / f"s3/evalspill-reports/default/clean/_{root.replace('://', '/')}/eval.clean.jsonl"
    assert clean.read_bytes() == lines([0, 2])


def test_what_did_not_change_is_not_read_again(tmp_path: Path, endpoint: str, bucket: Any) -> None:
    train, evals = bucket("t.jsonl", lines(range(50))), bucket("e.jsonl", lines(range(3)))
    world.config(tmp_path, train=train, evals=evals)
    first = check(tmp_path, endpoint, "--engine", "serial")
    report = (tmp_path / "evalspill-reports/report.json").read_bytes()
    second = check(tmp_path, endpoint, "--engine", "serial")
    assert (first.returncode, second.returncode) == (1, 1)
    assert ("known from an earlier run" in first.stderr, "known from an earlier run" in second.stderr) == (False, True)
    assert (tmp_path / "evalspill-reports/report.json").read_bytes() == report
    bucket("t.jsonl", lines(range(10, 60)))
    assert check(tmp_path, endpoint, "--engine", "serial").returncode == 0


@pytest.mark.parametrize(("train", "what"), [("missing.jsonl", "is not there"), ("none/*.jsonl", "matches no file")])
def test_what_is_not_there_is_incomplete(tmp_path: Path, endpoint: str, bucket: Any, train: str, what: str) -> None:
    evals = bucket("e.jsonl", lines(range(3)))
    world.config(tmp_path, train=evals.replace("e.jsonl", train), evals=evals)
    done = check(tmp_path, endpoint)
    assert (done.returncode, what in done.stdout) == (3, True)


def test_a_bucket_that_is_not_there_is_incomplete(tmp_path: Path, endpoint: str, bucket: Any) -> None:
    world.config(tmp_path, train="s3://no-such-bucket-here/*.jsonl", evals=bucket("e.jsonl", lines(range(3))))
    assert check(tmp_path, endpoint).returncode == 3


def test_a_refused_connection_is_incomplete(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    (tmp_path / "eval.jsonl").write_bytes(lines(range(3)))
    world.config(tmp_path, train="s3://bucket/t.jsonl")
    done = check(tmp_path, f"http://127.0.0.1:{port}")
    assert (done.returncode, "the connection failed" in done.stdout) == (3, True)
    assert SECRET not in done.stdout + done.stderr


def test_parquet_in_a_bucket_gives_the_same_figures(tmp_path: Path, endpoint: str, bucket: Any) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    found = {}
    for form in ("jsonl", "parquet"):
        (tmp_path / form).mkdir()
        for name, numbers in (("train", [1, 3, 80]), ("eval", list(range(5)))):
            data = [{"question": sentence(n), "n": n} for n in numbers]
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist(data), sink, row_group_size=2)
            root = bucket(f"{name}.{form}", lines(numbers) if form == "jsonl" else sink.getvalue().to_pybytes())
        root = root.removesuffix(f"/eval.{form}")
        world.config(tmp_path / form, train=f"{root}/train.{form}", evals=f"{root}/eval.{form}")
        assert check(tmp_path / form, endpoint).returncode == 1
        found[form] = [{**row, "line": "", "train_line": ""} for row in _table(tmp_path / form)]
    assert len(found["jsonl"]) == 2
    assert found["parquet"] == found["jsonl"]
