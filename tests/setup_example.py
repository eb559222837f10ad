"""A dataset repository as people set one up, with one leak in it, and the ways in which its gate is started."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import world
import yaml

from evalspill_guard.cli import run_command

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError:  # Parquet is an extra
    pa = pq = None

ROOT = Path(__file__).parents[1]
WORDS = [a + b for a in ("ba", "ko", "mi", "tur", "sel", "dra", "fe") for b in ("n", "lo", "rim", "sta", "ge", "vo")]
RECORDS, ROWS = 60, 40
LEAKED, ACCEPTED = 7, 11  # rows of support_qa.jsonl, counted from 0

FIELDS = '  fields: ["messages[].content", body]\n'
CONFIG = f"""\
version: 1

train:
  files:
    - data/train/**/*.{{jsonl,csv,md,parquet}}{{,.gz}}
{FIELDS}  min_files: FILES  # 90% of those seen, as `init` writes it
  min_records: LEAST

checks:
  - name: support-qa
    eval:
      files: evals/support_qa.jsonl
      fields: [question]
      id: qid
      min_records: 36
  - name: refund-policy
    eval:
      files: evals/refund_policy.csv
      fields: [prompt]
      id: case_id
      min_records: 36

reports:
  dir: evalspill-reports
baseline: evalspill-baseline.jsonl
"""
HOOK = """\
repos:
  - repo: https://git.example.org/tools/evalspill-guard
    rev: v0.1.0
    hooks:
      - id: evalspill-guard
        args: [--strict-baseline]
"""
WORKFLOW = """\
on: [push, pull_request]
permissions: {contents: read}
jobs:
  gate:
    runs-on: self-hosted
    steps:
      - uses: actions/checkout@v5
        with: {lfs: true, persist-credentials: false}
      - uses: example/evalspill-guard@v0.1.0
        with:
          config: evalspill.yaml
          fail-on: findings
"""
GITLAB = """\
include:
  - component: $CI_SERVER_FQDN/tools/evalspill-guard/evalspill-guard@v0.1.0
    inputs:
      config: evalspill.yaml
      fail-on: findings
"""


class Ran(NamedTuple):
    """How a gate ended, and what it said."""

    code: int
    said: str


Gate = Callable[[Path], Ran]


def sentence(seed: int, size: int = 18) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=size))


def question(number: int) -> str:
    return sentence(number)


def build(folder: Path, leak: str | None) -> Path:
    """The example. `leak` is the training file that quotes a row of support_qa.jsonl; None: no file does.

    Plain text has no fields, so that with the handbook the config names none.
    """
    texts = {name: _texts(seed + 1) for seed, name in enumerate(TRAIN) if name != "handbook.md" or leak == name}
    texts["kb.csv"][4] += f" {question(ACCEPTED)}"
    for name, lines in texts.items():
        _write(folder / "data/train" / name, lines)
    _write_evals(folder / "evals")
    config = CONFIG.replace("FILES", str(len(texts) * 9 // 10)).replace("LEAST", str(len(texts) * RECORDS * 9 // 10))
    if "handbook.md" in texts:
        config = config.replace(FIELDS, "")
    files = {"evalspill.yaml": config, ".pre-commit-config.yaml": HOOK, ".gitlab-ci.yml": GITLAB}
    files |= {".github/workflows/gate.yml": WORKFLOW, "evalspill-baseline.jsonl": ""}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    world_baseline(folder)
    if leak:
        texts[leak][20] += f" Somebody asked: {question(LEAKED)}? Nobody knew."
        _write(folder / "data/train" / leak, texts[leak])
    return folder


def world_baseline(folder: Path, *more: str) -> None:
    """Accept what is flagged now."""
    arguments = ["baseline", "update", "-c", str(folder / "evalspill.yaml"), "--reason", "quoted on purpose", *more]
    ran = _command(arguments)
    if ran.code:
        raise RuntimeError(ran.said)


def _texts(seed: int) -> list[str]:
    return [sentence(1000 * seed + number, 25) for number in range(RECORDS)]


def _write(path: Path, texts: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(TRAIN[path.name](texts))


def lines(records: Sequence[object]) -> bytes:
    """JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _tickets(texts: Sequence[str]) -> bytes:
    return lines(
        [{"id": number, "messages": [{"role": "user", "content": "please help"}, {"role": "assistant", "content": text}]}
         for number, text in enumerate(texts)]
    )  # fmt: skip


def _knowledge(texts: Sequence[str]) -> bytes:
    return ("title,body\n" + "".join(f"page {number},{text}\n" for number, text in enumerate(texts))).encode()


def _mail(texts: Sequence[str]) -> bytes:
    return gzip.compress(lines([{"subject": "hello", "body": text} for text in texts]), mtime=0)


def _handbook(texts: Sequence[str]) -> bytes:
    return "\n\n".join(texts).encode() + b"\n"


def macros(texts: Sequence[str], column: str = "body") -> bytes:
    """Parquet."""
    packed = io.BytesIO()
    pq.write_table(pa.table({"name": ["macro"] * len(texts), column: list(texts)}), packed)
    return packed.getvalue()


TRAIN: Mapping[str, Callable[[Sequence[str]], bytes]] = {
    "tickets.jsonl": _tickets, "kb.csv": _knowledge, "mail.jsonl.gz": _mail, "handbook.md": _handbook,
    **({"macros.parquet": macros} if pa else {}),
}  # fmt: skip


def _write_evals(folder: Path) -> None:
    world.jsonl(folder / "support_qa.jsonl", [{"qid": f"s{n}", "question": question(n)} for n in range(ROWS)])
    cases = "".join(f"c{n},{sentence(500 + n)}\n" for n in range(ROWS))
    (folder / "refund_policy.csv").write_text(f"case_id,prompt\n{cases}")


# --- the ways to start the gate ---------------------------------------------------------------------------------------


def _command(arguments: Sequence[str]) -> Ran:
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = run_command(list(arguments))
    return Ran(code, said.getvalue())


def command(folder: Path, *arguments: str) -> Ran:
    """`evalspill-guard check` typed in the folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return _command(["check", *arguments])
    finally:
        os.chdir(before)


def hook(folder: Path) -> Ran:
    """What pre-commit runs."""
    hooks: Any = yaml.safe_load((folder / ".pre-commit-config.yaml").read_bytes())
    return command(folder, *hooks["repos"][0]["hooks"][0].get("args", []))


def action(folder: Path, **more: str) -> Ran:
    """What the workflow's last step runs; as on a runner, an input that the action does not have is dropped."""
    workflow: Any = yaml.safe_load((folder / ".github/workflows/gate.yml").read_bytes())
    inputs = yaml.safe_load((ROOT / "action.yml").read_bytes())["inputs"]
    given = workflow["jobs"]["gate"]["steps"][-1]["with"]
    values = {name: str(given.get(name, one["default"])) for name, one in inputs.items()}
    home = folder.parent / "runner"
    home.mkdir(exist_ok=True)
    output = home / "output"
    output.write_text("")
    env = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB")} | {"GITHUB_OUTPUT": str(output)}
    env |= {f"EVALSPILL_{name.upper().replace('-', '_')}": value for name, value in values.items()}
    env |= {"EVALSPILL_HOME": str(home), **more}
    scan = _process([sys.executable, "-I", str(ROOT / "action/scan.py")], folder, env)
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    env |= {"EVALSPILL_CODE": outputs.get("exit-code", "")}
    gate = _process(["bash", str(ROOT / "action/gate.sh")], folder, env)
    return Ran(gate.code, scan.said + gate.said)


def _process(arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> Ran:
    done = subprocess.run(
        arguments, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout.decode())


def gitlab(folder: Path) -> Ran:
    """What the component's job runs; as GitLab does, an input that the component does not have is refused (2)."""
    said: Any = yaml.safe_load((folder / ".gitlab-ci.yml").read_bytes())
    spec = next(iter(yaml.safe_load_all((ROOT / "templates/evalspill-guard.yml").read_bytes())))["spec"]["inputs"]
    given = said["include"][0]["inputs"]
    for name, value in given.items():
        if name not in spec or value not in spec[name].get("options", [value]):
            return Ran(2, f"unknown input or value: {name}")
    exit_zero = ["--exit-zero"] if given.get("fail-on", "findings") == "error" else []
    return command(folder, f"--config={given.get('config', 'evalspill.yaml')}", *exit_zero)


def typed(line: str) -> Gate:
    """The gate with more arguments on the command line."""
    return lambda folder: command(folder, *shlex.split(line))
