"""Ways in which people break a gate that works. Each is a name, why people do it, and a function on the folder.

`code` is how the gate has to end: 1 where the leak can still be seen, else 2 or 3 with `says` in what it prints.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import html
import json
import lzma
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import zstandard
from setup_example import (
    LEAKED,
    RECORDS,
    ROWS,
    Gate,
    action,
    command,
    gitlab,
    hook,
    lines,
    macros,
    question,
    sentence,
    typed,
    world_baseline,
)

Change = Callable[[Path], object]
CONFIG = "evalspill.yaml"
TICKETS, MAIL, KB, HANDBOOK, MACROS = (
    f"data/train/{name}" for name in ("tickets.jsonl", "mail.jsonl.gz", "kb.csv", "handbook.md", "macros.parquet")
)
QA, REFUND, BASELINE = "evals/support_qa.jsonl", "evals/refund_policy.csv", "evalspill-baseline.jsonl"
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 12345\n".encode()
DVC = b"outs:\n- md5: 22a1a2931c8370d3aeedd7183606fd7f\n  size: 14445097\n  path: tickets.jsonl\n"
_LOCKED = b"\0GITCRYPT\0" + bytes(range(128, 256)) * 40
ANNEX = b"/annex/objects/SHA256E-s123--abc.jsonl\n"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break a set-up. `leak` is the training file in which the leak stands before."""

    name: str
    why: str
    change: Change
    code: int
    says: str = ""
    leak: str = "tickets.jsonl"
    gate: Gate = command


def nothing(_: Path) -> None:
    """Only the command line differs."""


def swap(path: str, old: str, new: str, count: int = -1) -> Change:
    """Replace a text that has to be there."""

    def change(folder: Path) -> None:
        text = (folder / path).read_text()
        assert old in text
        (folder / path).write_text(text.replace(old, new, count))

    return change


def config(old: str, new: str, count: int = -1) -> Change:
    return swap(CONFIG, old, new, count)


def append(path: str, text: str) -> Change:
    return lambda folder: (folder / path).write_text((folder / path).read_text() + text)


def put(path: str, data: bytes) -> Change:
    return lambda folder: (folder / path).write_bytes(data)


def recode(path: str, how: Callable[[bytes], bytes]) -> Change:
    """Other bytes in the same file."""
    return lambda folder: (folder / path).write_bytes(how((folder / path).read_bytes()))


def move(old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder / old, folder / new)

    return change


def both(*changes: Change) -> Change:
    return lambda folder: [change(folder) for change in changes]


def records(path: str, how: Callable[[int, dict[str, object]], object]) -> Change:
    """Another record in the place of each."""

    def rewritten(data: bytes) -> bytes:
        return lines([how(number, json.loads(line)) for number, line in enumerate(data.splitlines())])

    return recode(path, rewritten)


def packed_records(how: Callable[[int, dict[str, object]], object]) -> Change:
    """The same for the mail."""

    def change(folder: Path) -> None:
        (folder / MAIL).write_bytes(gzip.decompress((folder / MAIL).read_bytes()))
        records(MAIL, how)(folder)
        (folder / MAIL).write_bytes(gzip.compress((folder / MAIL).read_bytes()))

    return change


def linked(path: str, target: str) -> Change:
    """A link in the place of a file or folder."""

    def change(folder: Path) -> None:
        old = folder / path
        shutil.rmtree(old) if old.is_dir() else old.unlink()
        old.symlink_to(target)

    return change


def without(path: str) -> Change:
    def change(folder: Path) -> None:
        old = folder / path
        shutil.rmtree(old) if old.is_dir() else old.unlink()

    return change


def accepted(edit: Callable[[dict[str, object]], object]) -> Change:
    """Accept the leak, then edit its entry of the baseline."""

    def change(folder: Path) -> None:
        before = (folder / BASELINE).read_text().splitlines()
        world_baseline(folder)
        entries = [json.loads(line) for line in (folder / BASELINE).read_text().splitlines() if line not in before]
        assert len(entries) == 1
        edit(entries[0])
        (folder / BASELINE).write_text("".join(f"{line}\n" for line in [*before, json.dumps(entries[0])]))

    return change


def with_env(gate: Callable[..., object], **more: str) -> Gate:
    """The gate where a job's environment holds this, too."""

    def run(folder: Path):  # type: ignore[no-untyped-def]
        kept = {name: os.environ.get(name) for name in more}
        os.environ.update({name: value.replace("FOLDER", str(folder)) for name, value in more.items()})
        try:
            return gate(folder)
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    return run


def elsewhere(folder: Path):  # type: ignore[no-untyped-def]
    """The gate in the wrong folder."""
    return command(folder / "data")


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def cut_at_line(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[: RECORDS // 6])


def renamed(record: dict[str, object], old: str, new: str) -> dict[str, object]:
    return {new if key == old else key: value for key, value in record.items()}


def same_size_and_time(folder: Path) -> None:
    """The file as it was scanned before is clean; then the leak arrives with the same size and time."""
    file = folder / TICKETS
    leaky = file.read_bytes()
    asked = question(LEAKED)
    file.write_bytes(leaky.replace(asked.encode(), asked[::-1].encode()))
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert command(folder).code == 0
    file.write_bytes(leaky)
    os.utime(file, (1_700_000_000, 1_700_000_000))


def swapped_sides(folder: Path) -> None:
    text = (folder / CONFIG).read_text()
    (folder / CONFIG).write_text(text.replace(QA, "SIDE").replace("data/train/**/*.{jsonl,csv,md,parquet}{,.gz}", QA)
                                 .replace("SIDE", "data/train/**/*"))  # fmt: skip


def only_reports_left(folder: Path) -> None:
    command(folder)
    config("data/train/**/*.{jsonl,csv,md,parquet}{,.gz}", "evalspill-reports/**/*.jsonl")(folder)


M = Mutation
_DATA = [
    M("folder renamed", "a tidier name", move("data/train", "data/training"), 3, "matches no file"),
    M("file moved", "an archive folder", move(TICKETS, "data/archive/tickets.jsonl"), 3, "min_records asks for"),
    M("suffix json", "another export", move(TICKETS, "data/train/tickets.json"), 3, "min_records asks for"),
    M("suffix data", "a tool that names all files so", move(TICKETS, "data/train/tickets.data"), 3, "min_records asks for"),
    M("suffix in capitals", "a case-blind file system", move(TICKETS, "data/train/TICKETS.JSONL"), 3, "min_records asks for"),
    M("suffix of a download", "it was not finished", move(TICKETS, TICKETS + ".part"), 3, "min_records asks for"),
    M("zip archive", "it was mailed", move(TICKETS, "data/train/tickets.zip"), 3, "min_records asks for"),
    M("folder of a file's name", "a sharded export", both(move(TICKETS, "data/t"), move("data/t", TICKETS + "/part-0")), 3, "min_records asks for"),
    M("training field renamed", "a new export schema", packed_records(lambda _, r: renamed(r, "body", "text")), 3, "none of its 60 records yields text in messages[].content, body", "mail.jsonl.gz"),
    M("training field emptied", "a privacy filter", packed_records(lambda _, r: {**r, "body": ""}), 3, "none of its 60 records yields text", "mail.jsonl.gz"),
    M("training field null", "a failed join", packed_records(lambda _, r: {**r, "body": None}), 3, "none of its 60 records yields text", "mail.jsonl.gz"),
    M("training field renamed in two thirds", "two exports in one file", packed_records(lambda n, r: renamed(r, "body", "text") if n < 40 else r), 3, "40 of 60 records yield no text", "mail.jsonl.gz"),
    M("column renamed", "a new export schema", recode(KB, lambda data: data.replace(b"title,body", b"title,text")), 3, "none of its 60 records yields text", "kb.csv"),
    M("parquet column renamed", "a new export schema", lambda folder: (folder / MACROS).write_bytes(macros([question(LEAKED)] * RECORDS, "text")), 3, "none of its 60 records yields text", "macros.parquet"),
    M("parquet cut off", "a full disk", recode(MACROS, cut), 3, "macros.parquet", "macros.parquet"),
    M("eval field renamed", "a new version of the eval set", records(QA, lambda _, r: renamed(r, "question", "input")), 3, "no eval row could be scored"),
    M("eval field emptied", "the questions were withheld", records(QA, lambda _, r: {**r, "question": ""}), 3, "no eval row could be scored"),
    M("eval field renamed in two thirds", "two versions in one file", records(QA, lambda n, r: renamed(r, "question", "input") if n < 27 else r), 3, "27 of 40 eval rows were not checked"),
    M("eval rows too short", "ids in the place of questions", records(QA, lambda n, r: {**r, "question": f"id{n}"}), 3, "no eval row could be scored"),
    M("eval rows all the same", "a broken loop", records(QA, lambda _, r: {**r, "question": question(LEAKED)}), 1),
    M("eval rows wrapped", "a new version of the eval set", records(QA, lambda _, r: {"data": r}), 3, "no eval row could be scored"),
    M("training records wrapped", "an API's answer", packed_records(lambda _, r: {"data": r}), 3, "none of its 60 records yields text", "mail.jsonl.gz"),
    M("text as a list of messages", "a chat format", packed_records(lambda _, r: {"body": [{"role": "user", "content": r["body"]}]}), 1, "", "mail.jsonl.gz"),
    M("content as a list of parts", "a multimodal format", records(TICKETS, lambda _, r: {"messages": [{"role": "user", "content": [{"type": "text", "text": str(r["messages"])}]}]}), 1),
    M("messages as one text", "a rendered chat", records(TICKETS, lambda _, r: {"messages": str(r["messages"])}), 3, "none of its 60 records yields text"),
    M("records as JSON in a string", "a log of a queue", packed_records(lambda _, r: {"body": json.dumps(r)}), 1, "", "mail.jsonl.gz"),
    M("LFS pointer, training", "checkout without lfs", put(TICKETS, LFS), 3, "git lfs pull"),
    M("LFS pointer, compressed", "checkout without lfs", put(MAIL, LFS), 3, "git lfs pull", "mail.jsonl.gz"),
    M("LFS pointer, text", "checkout without lfs", put(HANDBOOK, LFS), 3, "git lfs pull", "handbook.md"),
    M("LFS pointer, CSV", "checkout without lfs", put(KB, LFS), 3, "git lfs pull", "kb.csv"),
    M("LFS pointer, Parquet", "checkout without lfs", put(MACROS, LFS), 3, "git lfs pull", "macros.parquet"),
    M("LFS pointer, eval set", "checkout without lfs", put(QA, LFS), 3, "git lfs pull"),
    M("DVC pointer", "no dvc pull in the job", both(without(TICKETS), put(TICKETS + ".dvc", DVC)), 3, "dvc pull"),
    M("DVC pointer, folder", "no dvc pull in the job", both(without("data/train"), put("data/train.dvc", DVC)), 3, "dvc pull"),
    M("DVC pointer, eval set", "no dvc pull in the job", both(without(QA), put(QA + ".dvc", DVC)), 3, "dvc pull"),
    M("git-annex link", "no git annex get in the job", linked(TICKETS, "../../.git/annex/objects/aa/bb/SHA256E-s1/SHA256E-s1"), 3, "git annex get"),
    M("git-annex pointer", "an unlocked file", put(TICKETS, ANNEX), 3, "git annex get"),
    M("dangling link to the folder", "a mount that is not there", linked("data/train", "/mnt/corpora/train"), 3, "matches no file"),
    M("dangling link to a file", "a mount that is not there", linked(TICKETS, "/mnt/corpora/tickets.jsonl"), 3, "cannot be read"),
    M("a link that holds itself", "a script that ran twice", linked("data/train", "."), 3, "matches no file"),
    M("submodule not checked out", "no submodules in the job", both(without("data/train"), lambda f: (f / "data/train").mkdir()), 3, "matches no file"),
    M("wrong delimiter", "a spreadsheet of another country", recode(KB, lambda data: data.replace(b",", b";")), 3, "kb.csv", "kb.csv"),
    M("tabs for commas", "another export", recode(KB, lambda data: data.replace(b",", b"\t")), 3, "kb.csv", "kb.csv"),
    M("header lost", "files joined with tail", recode(KB, lambda data: data.split(b"\n", 1)[1]), 3, "kb.csv", "kb.csv"),
    M("open quote", "a field cut in two", recode(KB, lambda data: data.replace(b"page 3,", b'page 3,"')), 3, "kb.csv", "kb.csv"),
    M("cut inside a record", "a full disk", recode(TICKETS, cut), 3, "tickets.jsonl"),
    M("cut at the end of a line", "head -n 10 for a test", recode(TICKETS, cut_at_line), 3, "min_records asks for"),
    M("gz cut off", "a broken download", recode(MAIL, cut), 3, "cut off", "mail.jsonl.gz"),
    M("gz with something after it", "joined with a log", recode(MAIL, lambda data: data + b"done\n"), 3, "mail.jsonl.gz", "mail.jsonl.gz"),
    M("gz in gz", "compressed twice", recode(MAIL, gzip.compress), 3, "mail.jsonl.gz", "mail.jsonl.gz"),
    M("gz without its suffix", "a server that unpacks names", recode(TICKETS, gzip.compress), 1),
    M("plain text with gz", "a server that unpacks bytes", recode(MAIL, gzip.decompress), 1, "", "mail.jsonl.gz"),
    M("zst called gz", "a faster compressor", recode(MAIL, lambda data: zstandard.compress(gzip.decompress(data))), 1, "", "mail.jsonl.gz"),
    M("bz2 called gz", "an older compressor", recode(MAIL, lambda data: bz2.compress(gzip.decompress(data))), 1, "", "mail.jsonl.gz"),
    M("xz called gz", "a smaller compressor", recode(MAIL, lambda data: lzma.compress(gzip.decompress(data))), 1, "", "mail.jsonl.gz"),
    M("byte order mark", "a Windows editor", recode(TICKETS, lambda data: b"\xef\xbb\xbf" + data), 1),
    M("byte order mark in CSV", "a spreadsheet", recode(KB, lambda data: b"\xef\xbb\xbf" + data), 1, "", "kb.csv"),
    M("UTF-16", "a Windows shell's >", recode(TICKETS, lambda data: data.decode().encode("utf-16")), 1),
    M("UTF-16 without a mark", "another program", recode(TICKETS, lambda data: data.decode().encode("utf-16-le")), 3, "UTF-16 without a byte order mark"),
    M("Latin-1", "an old database", recode(HANDBOOK, lambda data: data + "\n\nGrüße\n".encode("latin-1")), 3, "handbook.md", "handbook.md"),
    M("CRLF", "git's autocrlf", recode(TICKETS, lambda data: data.replace(b"\n", b"\r\n")), 1),
    M("CRLF in text", "git's autocrlf", recode(HANDBOOK, lambda data: data.replace(b"\n", b"\r\n")), 1, "", "handbook.md"),
    M("CR only", "an old program", recode(TICKETS, lambda data: data.replace(b"\n", b"\r")), 3, "tickets.jsonl"),
    M("CR only in CSV", "an old program", recode(KB, lambda data: data.replace(b"\n", b"\r")), 3, "not CSV", "kb.csv"),
    M("CR only in text", "an old program", recode(HANDBOOK, lambda data: data.replace(b"\n", b"\r")), 3, "min_records asks for", "handbook.md"),
    M("zero bytes", "a sparse copy", recode(TICKETS, lambda data: bytes(len(data))), 3, "tickets.jsonl"),
    M("zero bytes in text", "a sparse copy", recode(HANDBOOK, lambda data: bytes(len(data))), 3, "handbook.md", "handbook.md"),
    M("a login page", "curl without --fail", put(TICKETS, b"<html><body>Please log in</body></html>\n"), 3, "tickets.jsonl"),
    M("a login page as text", "curl without --fail", put(HANDBOOK, b"<html><body>Please log in</body></html>\n"), 3, "min_records asks for", "handbook.md"),
    M("a login page as CSV", "curl without --fail", put(KB, b"<html><body>Please, log in</body></html>\n"), 3, "kb.csv", "kb.csv"),
    M("merge conflict in data", "git merge", recode(TICKETS, lambda data: b"<<<<<<< HEAD\n" + data + b"=======\n>>>>>>> main\n"), 3, "tickets.jsonl:1"),
    M("Python literals", "print in the place of json.dumps", recode(TICKETS, lambda data: data.replace(b'"', b"'")), 3, "tickets.jsonl"),
    M("pretty-printed", "a JSON formatter", recode(TICKETS, lambda data: b"".join(json.dumps(json.loads(one), indent=1).encode() + b"\n" for one in data.splitlines())), 1),
    M("an array in jsonl", "another exporter", recode(TICKETS, lambda data: json.dumps([json.loads(one) for one in data.splitlines()]).encode()), 1),
    M("empty training file", "a failed job", put(TICKETS, b""), 3, "holds no records"),
    M("training file of a blank line", "a failed job", put(TICKETS, b"\n"), 3, "holds no records"),
    M("CSV of a header alone", "a query without rows", put(KB, b"title,body\n"), 3, "holds no records", "kb.csv"),
    M("empty eval file", "a failed job", put(QA, b""), 3, "has no rows"),
    M("eval CSV of a header alone", "a query without rows", put(REFUND, b"case_id,prompt\n"), 3, "has no rows"),
    M("shrunken eval set", "a sample for a test", recode(QA, lambda data: b"".join(data.splitlines(keepends=True)[-10:])), 3, "10 records, and min_records asks for 36"),
    M("git-crypt, locked", "no key in the job", put(TICKETS, _LOCKED), 3, "not UTF-8"),
    M("git-crypt, locked text", "no key in the job", put(HANDBOOK, _LOCKED), 3, "not UTF-8", "handbook.md"),
    M("vault, locked", "no key in the job", put(HANDBOOK, b"$ANSIBLE_VAULT;1.1;AES256\n" + b"616263\n" * 500), 3, "min_records asks for", "handbook.md"),
    M("link checked out as text", "git on Windows", put(TICKETS, b"../../corpora/tickets.jsonl"), 3, "not JSON"),
    M("link checked out as text, handbook", "git on Windows", put(HANDBOOK, b"../../corpora/handbook.md"), 3, "min_records asks for", "handbook.md"),
    M("same size and time", "rsync --times; the cache must not know it", same_size_and_time, 1),
]  # fmt: skip
_GLOB = "data/train/**/*.{jsonl,csv,md,parquet}{,.gz}"
_FIELDS = '  fields: ["messages'
_ALIAS = "checks:\n  - &first\n    name: support-qa\n    eval:"
_CONFIG = [
    M("glob with a typo", "typed by hand", config("data/train", "data/trian"), 3, "data/trian"),
    M("glob in capitals", "a case-blind file system", config(_GLOB, "data/train/**/*.{JSONL,CSV,MD,PARQUET}{,.GZ}"), 3, "matches no file"),
    M("glob with backslashes", "Windows", config(_GLOB, r"data\train\**\*.jsonl"), 2, "leads into folders only alone"),
    M("glob with a slash before", "taken for the repository's root", config(_GLOB, "/data/train/**/*.jsonl"), 3, "matches no file"),
    M("glob with a home folder", "a shell's habit", config(_GLOB, "~/data/train/*.jsonl"), 3, "matches no file"),
    M("glob with a variable", "a shell's habit", config(_GLOB, "$DATA/train/*.jsonl"), 3, "matches no file"),
    M("glob with a space behind", "pasted", config(_GLOB, "'data/train/*.jsonl '"), 3, "matches no file"),
    M("folder without a glob", "other tools take folders", config(_GLOB, "data/train"), 3, "write a glob"),
    M("glob of one level", "files went into subfolders", both(config(_GLOB, "data/train/*.jsonl"), move(TICKETS, "data/train/2024/tickets.jsonl")), 3, "matches no file"),
    M("everything excluded", "two rules that meet", config(_FIELDS, f'    - "!data/**"\n{_FIELDS}'), 3, "matches no file"),
    M("exclusion too wide", "drafts were meant", config(_FIELDS, f'    - "!data/train/**/t*"\n{_FIELDS}'), 3, "min_records asks for"),
    M("only exclusions", "two rules that meet", config(f"- {_GLOB}", f'- "!{_GLOB}"'), 2, "name what to read"),
    M("exclusion without quotes", "YAML takes ! for a tag", config(_FIELDS, f"    - !data/train/t*\n{_FIELDS}"), 2, CONFIG),
    M("sides swapped", "train and test mixed up", swapped_sides, 3, "problem"),
    M("training glob over all", "meant to be safe", config(_GLOB, "'**/*.jsonl'"), 2, "is both a training file and an eval file"),
    M("training glob over reports alone", "a wrong folder", only_reports_left, 3, "matches no file"),
    M("reports in the folder of everything", "a dot", config("dir: evalspill-reports", "dir: ."), 3, "which is not scanned"),
    M("reports among the eval sets", "one folder for all", config("dir: evalspill-reports", "dir: evals"), 3, "which is not scanned"),
    M("a training file as the baseline", "typed by hand", config("baseline: evalspill-baseline.jsonl", f"baseline: {TICKETS}"), 2, "not written by this tool"),
    M("reports among the training data", "one data folder for all", config("dir: evalspill-reports", "dir: data/train"), 3, "which is not scanned"),
    M("training field misspelt", "typed by hand", config("body]", "bdy]"), 3, "none of its 60 records yields text", "mail.jsonl.gz"),
    M("role that is not there", "another chat format", config("messages[].content", "messages[role=asistant].content"), 3, "none of its 60 records yields text"),
    M("eval field misspelt", "typed by hand", config("[question]", "[qestion]"), 3, "no eval row could be scored"),
    M("eval fields as one text", "YAML lists look like this elsewhere", config("[question]", "question, answer"), 3, "no eval row could be scored"),
    M("eval fields left out", "lost in a merge", config("      fields: [question]\n", ""), 2, "eval.fields must name"),
    M("records path misspelt", "typed by hand", config("      id: qid", "      records: dta[]\n      id: qid"), 3, "support_qa.jsonl"),
    M("records path misspelt, training", "typed by hand", config("  min_files", "  records: dta[]\n  min_files"), 3, "tickets.jsonl"),
    M("delimiter of another country", "copied from another set", config("  min_files", '  delimiter: ";"\n  min_files'), 3, "kb.csv", "kb.csv"),
    M("header false", "copied from another set", config("  min_files", "  header: false\n  min_files"), 3, "kb.csv", "kb.csv"),
    M("split by line", "copied from another set", config("  min_files", "  split: line\n  min_files"), 1, "", "handbook.md"),
    M("option misspelt", "typed by hand", config("min_records", "min_record"), 2, "did you mean min_records?"),
    M("option in capitals", "another tool's habit", config("  fields", "  Fields"), 2, "unknown key"),
    M("option of another tool", "copied", append(CONFIG, "min_words: 500\n"), 2, "unknown key"),
    M("checks twice", "a merge", append(CONFIG, "checks:\n  - name: refund-policy\n    eval: {files: evals/refund_policy.csv, fields: prompt}\n"), 2, "this key stands twice"),
    M("eval twice", "a merge", config("  - name: refund-policy\n", ""), 2, "this key stands twice"),
    M("name twice", "copied", config("name: refund-policy", "name: support-qa"), 2, "another check is called support-qa"),
    M("tabs", "an editor", config("      fields: [q", "\tfields: [q"), 2, "not YAML"),
    M("no-break spaces", "copied from a web page", config("      fields: [q", "\u00a0\u00a0\u00a0\u00a0\u00a0\u00a0fields: [q"), 2, CONFIG),
    M("key moved out", "two spaces too few", config("      min_records: 36\n  - name: r", "    min_records: 36\n  - name: r"), 2, "unknown key"),
    M("key moved to the top", "no spaces", config("  min_records: ", "min_records: ", 1), 2, "unknown key"),
    M("eval moved out of its check", "two spaces too few", config("    eval:\n      files: evals/s", "  eval:\n      files: evals/s"), 2, CONFIG),
    M("anchor merged", "to share settings", both(config("checks:\n  - name: support-qa\n    eval:", _ALIAS), config("  - name: refund-policy\n", "  - <<: *first\n    name: refund-policy\n")), 2, "checks[1].<<"),
    M("alias of the other eval set", "to share settings", both(config("    eval:\n      files: evals/s", "    eval: &e\n      files: evals/s"), config("    eval:\n      files: evals/refund_policy.csv\n      fields: [prompt]\n      id: case_id\n      min_records: 36", "    eval: *e")), 1),
    M("merge conflict in the config", "git merge", config("checks:", "<<<<<<< HEAD\nchecks:"), 2, "not YAML"),
    M("a second document", "two configs in one file", append(CONFIG, "---\nversion: 1\n"), 2, "not YAML"),
    M("config in UTF-16", "a Windows shell's >", recode(CONFIG, lambda data: data.decode().encode("utf-16")), 2, "not UTF-8"),
    M("config emptied", "a failed template", put(CONFIG, b""), 2, "the config is empty"),
    M("config renamed", "a dot file is usual", move(CONFIG, ".evalspill.yaml"), 2, "no evalspill.yaml here"),
    M("two configs", "a copy", lambda folder: shutil.copy(folder / CONFIG, folder / "evalspill.yml"), 2, "remove one"),
    M("no version", "lost in a merge", config("version: 1\n", ""), 2, "version: 1 is required"),
    M("version of tomorrow", "a newer example", config("version: 1\n", "version: 2\n"), 2, "version: 1 is required"),
    M("no checks", "all commented out", lambda folder: (folder / CONFIG).write_text(re.sub("(?s)  - name.*?\n\n", "", (folder / CONFIG).read_text())), 2, "must be a list of checks"),
    M("N far too large", "thought to be characters", config("    eval:\n      files: evals/s", "    n: 10000\n    eval:\n      files: evals/s"), 1),
    M("fail_over in quotes", "another tool's habit", config("    eval:\n", '    fail_over: "100"\n    eval:\n'), 2, "fail_over"),
    M("fail_over of 1.0", "a share was meant", config("    eval:\n", "    fail_over: 1.0\n    eval:\n"), 2, "fail_over"),
    M("fail_over false", "a switch was meant", config("    eval:\n", "    fail_over: false\n    eval:\n"), 2, "fail_over"),
    M("flag_at above one", "percent were meant", config("    eval:\n", "    flag_at: {coverage: 1.1}\n    eval:\n"), 2, "flag_at.coverage"),
    M("flag_at zero", "a switch was meant", config("    eval:\n", "    flag_at: {coverage: 0}\n    eval:\n"), 1),
    M("flag_at off", "a switch was meant", config("    eval:\n", "    flag_at: off\n    eval:\n"), 2, "flag_at"),
    M("flag_at of a huge length", "characters were meant", config("    eval:\n", "    flag_at: {longest: 4000}\n    eval:\n"), 1),
    M("max_unchecked raised", "to quiet a warning", config("    eval:\n", "    max_unchecked: 100%\n    eval:\n"), 1),
    M("max_unchecked raised, field misspelt", "to quiet a warning", both(config("    eval:\n", "    max_unchecked: 100%\n    eval:\n"), config("[question]", "[qestion]")), 3, "no eval row could be scored"),
    M("max_empty raised, field misspelt", "to quiet a warning", both(config("  min_files", "  max_empty: 100%\n  min_files"), config("body]", "bdy]")), 3, "none of its 60 records yields text", "mail.jsonl.gz"),
    M("short rows off", "to quiet a warning", both(config("    eval:\n", "    short_rows: off\n    eval:\n"), records(QA, lambda _, r: {**r, "question": str(r["question"]).rsplit(" ", 12)[0]})), 3, "no eval row could be scored"),
    M("boilerplate of everything", "thought to be a minimum", config("    eval:\n", "    boilerplate: {records: 0, rows: 0}\n    eval:\n"), 1),
    M("the eval set ignored", "thought to be an allowlist", config("    eval:\n", f"    ignore: [{QA}]\n    eval:\n"), 3, "38 of 40 eval rows were not checked"),
    M("bad records skipped", "to quiet a warning", both(append(CONFIG, "on_bad_record: skip\nmax_bad: 100%\n"), recode(TICKETS, lambda data: data.replace(b'"', b"'"))), 3, "no record has the field messages[].content"),
]  # fmt: skip
_AROUND = [
    M("wrong folder", "a monorepo", nothing, 2, "no evalspill.yaml here", gate=elsewhere),
    M("config that is not there", "typed by hand", nothing, 2, "could not be read", gate=typed("-c evalspil.yaml")),
    M("option misspelt, command line", "typed by hand", nothing, 2, "No such option", gate=typed("--fail-over 0")),
    M("option of a name too few", "typed by hand", nothing, 2, "no such baseline", gate=typed("--baseline base.jsonl")),
    M("empty variable for the baseline", "a variable that is not set", nothing, 2, "--baseline is empty", gate=typed("--baseline ''")),
    M("empty variable for the reports", "a variable that is not set", nothing, 2, "--reports-dir is empty", gate=typed("--reports-dir ''")),
    M("reports among the training data, command line", "one folder for all", nothing, 3, "which is not scanned", gate=typed("--reports-dir data/train")),
    M("cache among the training data", "one folder for all", nothing, 3, "which is not scanned", gate=typed("--cache-dir data/train")),
    M("cache folder of another job", "variables of a group", nothing, 3, "which is not scanned", gate=with_env(command, EVALSPILL_CACHE_DIR="FOLDER/data/train")),
    M("engine of another job", "variables of a group", nothing, 2, "EVALSPILL_ENGINE", gate=with_env(command, EVALSPILL_ENGINE="theirs:make")),
    M("key of another job", "variables of a group", nothing, 2, "EVALSPILL_KEY", gate=with_env(command, EVALSPILL_KEY="x" * 40)),
    M("config of another job", "variables of a group", nothing, 1, gate=with_env(command, EVALSPILL_CONFIG="no.yaml", EVALSPILL_EXIT_ZERO="1", EVALSPILL_CODE="0", EVALSPILL_FAIL_ON="error")),
    M("exit-zero, field misspelt", "a trial that was never ended", config("[question]", "[qestion]"), 3, "no eval row could be scored", gate=typed("--exit-zero")),
    M("hook, option misspelt", "typed by hand", swap(".pre-commit-config.yaml", "--strict-baseline", "--strict"), 2, "option", gate=hook),
    M("hook, arguments in one text", "YAML", swap(".pre-commit-config.yaml", "[--strict-baseline]", '["--strict-baseline -q"]'), 2, "No such option", gate=hook),
    M("hook, file names passed", "pass_filenames was set", swap(".pre-commit-config.yaml", "[--strict-baseline]", "[data/train/tickets.jsonl]"), 2, "unexpected extra argument", gate=hook),
    M("hook, a check commented out", "it was red, and somebody was in a hurry", both(accepted(lambda entry: entry), lambda folder: (folder / CONFIG).write_text(re.sub("(?s)  - name: support-qa.*?(?=  - name)", lambda found: "".join(f"# {one}\n" for one in found[0].splitlines()), (folder / CONFIG).read_text()))), 2, "stale", gate=hook),
    M("workflow, value misspelt", "typed by hand", swap(".github/workflows/gate.yml", "fail-on: findings", "fail-on: finding"), 2, "the input fail-on must be one of", gate=action),
    M("workflow, input misspelt", "typed by hand", swap(".github/workflows/gate.yml", "fail-on", "fail_on"), 1, gate=action),
    M("workflow, config misspelt", "typed by hand", swap(".github/workflows/gate.yml", "config: evalspill.yaml", "config: evalspil.yaml"), 2, "could not be read", gate=action),
    M("workflow, wrong folder", "a monorepo", swap(".github/workflows/gate.yml", "config: evalspill.yaml", "working-directory: data"), 2, "no evalspill.yaml here", gate=action),
    M("workflow, folder that is not there", "a monorepo", swap(".github/workflows/gate.yml", "config: evalspill.yaml", "working-directory: datasets"), 2, "is no folder", gate=action),
    M("workflow, reports of an earlier run", "a folder that is kept", both(lambda folder: command(folder), swap(".github/workflows/gate.yml", "config: evalspill.yaml", "report-dir: evalspill-reports")), 2, "is not empty", gate=action),
    M("workflow, variables of another job", "env at the top", nothing, 1, gate=with_env(action, EVALSPILL_EXIT_ZERO="1", EVALSPILL_JOB_FAIL_ON="error")),
    M("workflow, only errors count, nothing scanned", "a trial that was never ended", both(swap(".github/workflows/gate.yml", "fail-on: findings", "fail-on: error"), put(TICKETS, LFS)), 3, "git lfs pull", gate=action),
    M("GitLab, value misspelt", "typed by hand", swap(".gitlab-ci.yml", "fail-on: findings", "fail-on: finding"), 2, "fail-on", gate=gitlab),
    M("GitLab, input misspelt", "typed by hand", swap(".gitlab-ci.yml", "config:", "confg:"), 2, "confg", gate=gitlab),
    M("GitLab, config misspelt", "typed by hand", swap(".gitlab-ci.yml", "evalspill.yaml", "evalspil.yaml"), 2, "could not be read", gate=gitlab),
    M("baseline lost", "a .gitignore of *.jsonl", without(BASELINE), 2, "no such baseline"),
    M("baseline emptied", "a failed job", put(BASELINE, b""), 1),
    M("baseline of another check", "a check was renamed", accepted(lambda entry: entry.update(check="refund-policy")), 1),
    M("baseline of another eval file", "ids are the same", accepted(lambda entry: entry.update(eval_file="evals/old_qa.jsonl")), 1),
    M("baseline of a shorter passage", "accepted with other settings", accepted(lambda entry: entry.update(n=8, longest=9)), 1),
    M("baseline past its day", "time", accepted(lambda entry: entry.update(expires="2020-01-31")), 1),
    M("baseline of other rules", "an older tool", accepted(lambda entry: entry.update(rules=2)), 2, "rules 2"),
    M("baseline without rules", "another tool", accepted(lambda entry: entry.pop("rules")), 2, "rules is missing"),
    M("baseline of a key", "made by the nightly job", accepted(lambda entry: entry.update(key="0a1b2c3d")), 2, "EVALSPILL_KEY"),
    M("baseline edited, a wildcard", "to accept all", accepted(lambda entry: entry.update(fingerprint="*")), 2, "32 hexadecimal digits"),
    M("baseline edited, a text for a number", "by hand", accepted(lambda entry: entry.update(longest="999")), 2, "longest must be a number"),
    M("baseline edited, a reason lost", "by hand", accepted(lambda entry: entry.update(reason="")), 2, "reason must be a text"),
    M("baseline edited, a fingerprint", "by hand", accepted(lambda entry: entry.update(fingerprint="0" * 32)), 1),
    M("baseline in conflict", "git merge", recode(BASELINE, lambda data: b"<<<<<<< HEAD\n" + data), 2, "merge conflict"),
    M("baseline as a list", "another tool", recode(BASELINE, lambda data: b"[" + data.strip() + b"]\n"), 2, "no JSON object"),
    M("baseline a folder", "a mount", both(without(BASELINE), lambda folder: (folder / BASELINE).mkdir()), 2, "could not be read"),
]  # fmt: skip
_CHECK = "    eval:\n"
NEAR = " ".join("another" if number == 14 else word for number, word in enumerate(question(LEAKED).split()))


def changed(change: Change) -> Change:
    """A word of the leak is another one, as where a question was adapted."""
    near = recode(TICKETS, lambda data: data.replace(question(LEAKED).encode(), NEAR.encode()))
    return both(near, change)


MUTATIONS = (
    *_DATA, *_CONFIG, *_AROUND,
    M("near copy", "a question was adapted", changed(nothing), 1),
    M("file moved while another grew", "min_files of 4 files is 3", both(move(TICKETS, "data/tickets.jsonl"), recode(KB, lambda data: data + data.split(b"\n", 1)[1])), 3, "no record has the field messages[].content"),
    M("engine that leaves", "a licence is missing", nothing, 2, "SystemExit", gate=typed("--engine sys:exit --no-cache")),
)  # fmt: skip

LOOSENED = (
    M("fail_over of 100 %", "to be set later", config(_CHECK, f"    fail_over: 100%\n{_CHECK}"), 0, "fail_over"),
    M("fail_over of all rows", "a percentage was meant", config(_CHECK, f"    fail_over: 100\n{_CHECK}"), 0, "fail_over"),
    M("flag_at of a length alone, near copy", "characters were meant; coverage counts no more", changed(config(_CHECK, f"    flag_at: {{longest: 400}}\n{_CHECK}")), 0),
    M("N far too large, near copy", "characters were meant; each row has one run", changed(config(_CHECK, f"    n: 500\n{_CHECK}")), 0),
    M("a training file ignored, near copy", "thought to be an allowlist", changed(config(_CHECK, f"    ignore: [{TICKETS}]\n{_CHECK}")), 0),
    M("training field renamed in half", "two exports in one file; max_empty is 50 %", packed_records(lambda n, r: renamed(r, "body", "text") if n < 30 else r), 0, "\"empty\": 30", "mail.jsonl.gz"),
    M("eval field renamed in half", "two versions in one file; max_unchecked is 50 %", records(QA, lambda n, r: renamed(r, "question", "input") if n < 20 else r), 0, "\"empty\": 20"),
    M("file of the same fields moved while another grew", "min_files of 4 files is 3", both(move(MAIL, "data/mail.jsonl.gz"), recode(KB, lambda data: data + data.split(b"\n", 1)[1])), 0, "", "mail.jsonl.gz"),
    M("token ids in the place of text", "the tokenised data set was named", packed_records(lambda _, r: {"body": [hash(one) % 50_000 for one in str(r["body"]).split()]}), 0, "mail.jsonl.gz", "mail.jsonl.gz"),
    M("baseline edited, a longest of 999", "to be safe", accepted(lambda entry: entry.update(longest=999)), 0),
)  # fmt: skip
"""What the config, or who edits the baseline, asks for and gets: green, with what was asked for in the report."""


def _spelt(how: Callable[[str], str]) -> Change:
    return packed_records(lambda _, r: {**r, "body": how(str(r["body"]))})


UNSEEN: dict[str, Change] = {
    "base64": _spelt(lambda text: base64.b64encode(text.encode()).decode()),
    "percent signs of an address": _spelt(quote),
    "HTML entities for letters": _spelt(lambda text: "".join(f"&#{ord(one)};" for one in text)),
    "another order of words": _spelt(lambda text: " ".join(reversed(text.split()))),
    "letters of another script that look the same": _spelt(lambda text: text.translate(str.maketrans("aeo", "аео"))),
    "pieces shorter than N words": _spelt(lambda text: " ".join(text.split()[-9:])),
    "other words": _spelt(lambda text: sentence(len(text))),
}
"""What no lexical method finds; the reports say so."""

SEEN: dict[str, Change] = {
    "HTML": _spelt(lambda text: html.escape(f"<p>{text}</p>")),
    "soft hyphens": _spelt(lambda text: "\u00ad".join(text)),
    "wide letters": _spelt(lambda text: "".join(chr(ord(one) + 0xFEE0) if one.isalpha() else one for one in text)),
    "capitals and punctuation": _spelt(lambda text: text.upper().replace(" ", ", ")),
}
"""What looks different and is found all the same."""

assert ROWS == 40, "the figures in MUTATIONS"

OUTSIDE = {
    "the gate is not asked": "`|| true`, continue-on-error, allow_failure: true, a pipe without pipefail, no required check",
    "the gate is not run": "--no-verify, SKIP=, files: or exclude: of the hook, paths: or if: of the workflow, when: manual",
    "another command is run": "the hook evalspill-validate alone reads no data; --exit-zero and fail-on: error let 1 pass",
    "a check is not there": "commented out, or never written for a new eval set; --strict-baseline notices one with entries",
    "data are not named": "a new folder, or a suffix that the globs do not name, beside enough data that they do",
    "a setting says so": "header: true where there is none, split: line for wrapped text, a date in SOURCE_DATE_EPOCH",
}
"""What a gate that reads a config cannot see, or is told to do: review it as code."""
