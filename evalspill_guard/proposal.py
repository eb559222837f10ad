"""What `init` proposes: the commented evalspill.yaml, from what it saw of the data, and the snippets that run it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import yaml

from evalspill_guard.fieldtable import FieldInfo

SCHEMA_NAME = "evalspill.schema.json"
_SUFFIX = re.compile(
    r"(\.(jsonl|ndjson|json|csv|tsv|txt|md|text|parquet|arrow|feather|gz|bz2|xz|zst))+$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SetProposal:
    """One set of files as `init` saw it: its patterns, how many files and records, and of an eval set its fields.

    records is None where only a sample was read. options are further keys of the source, such as `header: false`.
    """

    name: str
    files: Sequence[str]
    file_count: int
    records: int | None = None
    fields: Sequence[FieldInfo] = ()
    options: dict[str, str | bool] = field(default_factory=dict)


def check_name(path: str, taken: Collection[str]) -> str:
    """A name for the check of this eval file or pattern, which no other check has."""
    stem = _SUFFIX.sub("", PurePosixPath(path).name)
    if not re.search("[A-Za-z0-9]", stem):
        stem = PurePosixPath(path).parent.name
    name = re.sub("[^a-z0-9]+", "-", stem.lower()).strip("-") or "default"
    return next(each for each in _numbered(name) if each not in taken)


def _numbered(name: str) -> Iterator[str]:
    yield name
    for number in range(2, 1_000_000):
        yield f"{name}-{number}"


def hook(config: str) -> str:
    """A .pre-commit-config.yaml that runs the installed tool on every commit; `config` is seen from its folder."""
    named = "" if config == "evalspill.yaml" else f" -c {shlex.quote(config)}"
    return "\n".join(
        [
            "repos:",
            "  - repo: local",
            "    hooks:",
            "      - id: evalspill-guard",
            "        name: evalspill-guard",
            f"        entry: {_scalar(f'evalspill-guard check{named}')}",
            "        language: system",
            "        always_run: true",
            "        pass_filenames: false",
            "",
        ]
    )


GITHUB = """\
      - uses: actions/checkout@v5
        with: {lfs: true, persist-credentials: false}
      - uses: your-org/evalspill-guard@v0.1.0   # the mirror of the tool in your organisation
"""
GITLAB = """\
include:
  - component: $CI_SERVER_FQDN/tools/evalspill-guard/evalspill-guard@v0.1.0   # your mirror of the tool
"""


def render_config(train: SetProposal, evals: Sequence[SetProposal], schema: str = SCHEMA_NAME) -> str:
    """The text of an evalspill.yaml: `schema` is the path of its JSON Schema, relative to the config."""
    return "\n".join(
        [
            f"# yaml-language-server: $schema={_one_line(schema)}",
            "# Do any of these eval questions already appear in the training data? Run: evalspill-guard check",
            "version: 1",
            "",
            "train:",
            *_indent(2, _train(train)),
            "",
            "checks:",
            *_indent(2, [line for each in evals for line in _check(each)]),
            "",
        ]
    )


def _train(train: SetProposal) -> list[str]:
    return [
        *_list("files", train.files),
        "# fields: every text leaf, the default; naming some would hide leaks that stand in the others",
        *_options(train),
        *_minimums(train),
    ]


def _check(each: SetProposal) -> list[str]:
    source = [*_list("files", each.files), *_fields(each.fields), *_options(each), *_minimums(each)]
    return [f"- name: {_scalar(each.name)}", "  eval:", *_indent(4, source)]


def _fields(infos: Sequence[FieldInfo]) -> list[str]:
    chosen = [f"  - {_scalar(info.path)}  # {_one_line(info.why)}" for info in infos if info.chosen]
    head = (
        ["fields:", *chosen] if chosen else ["fields: auto  # no field stood out: name those that hold the questions"]
    )
    return head + [f"# left out: {_one_line(info.path)} ({_one_line(info.why)})" for info in infos if not info.chosen]


def _options(each: SetProposal) -> list[str]:
    return [
        f"{key}: {str(value).lower() if isinstance(value, bool) else _scalar(value)}"
        for key, value in each.options.items()
    ]


def _minimums(each: SetProposal) -> list[str]:
    """Nine tenths of what was seen, so that a corpus that shrinks is noticed; 1 is the default and left out."""
    seen = (("min_files", each.file_count), ("min_records", each.records or 0))
    return [f"{key}: {count * 9 // 10}  # 90% of the {count} seen" for key, count in seen if count * 9 // 10 > 1]


def _list(key: str, texts: Sequence[str]) -> list[str]:
    return [f"{key}:", *(f"  - {_scalar(text)}" for text in texts)]


def _indent(by: int, lines: Sequence[str]) -> list[str]:
    return [" " * by + line for line in lines]


def _scalar(text: str) -> str:
    """The text as a YAML scalar on one line, quoted where it would read as something else."""
    style = None if text.isprintable() else '"'
    dumped = yaml.safe_dump([text], default_flow_style=True, default_style=style, allow_unicode=True, width=1 << 30)
    return dumped.strip()[1:-1]


def _one_line(text: str) -> str:
    """The text as it may stand in a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:200]
