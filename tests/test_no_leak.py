"""Nothing leaves this tool but by the files that are named: what it writes, what it starts, who may read it, and that
private text stands in no log, cache or report for others."""

import gzip
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest
import world
from audit import Audited, audited, command, environment
from test_purge import leaking, tree
from test_training import sentence

from evalspill_guard import remote
from evalspill_guard.cache import FORMAT
from evalspill_guard.cli import FORMATS, run_command
from evalspill_guard.config import load
from evalspill_guard.indexfile import save
from evalspill_guard.indexing import build
from evalspill_guard.loading import load_checks
from evalspill_guard.reports.writer import write_reports

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of open folders are read from /proc")

# --- what is written and started --------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "docs/privacy.md"
CHECK = {"contamination-report.csv", "too-short-to-score.csv", "overlap-report.html"}
RUN = {"report.json", "results.sarif", "junit.xml", "gl-code-quality.json", "summary.md"}
VERSION = f"evalspill-cache-v{FORMAT}"
CACHE = {
    f"cache{'/' if part else ''}{part}"
    for part in ("", VERSION, *(f"{VERSION}/{kind}" for kind in ("shards", "sought", "stamps")))
} | {
    f"cache/{VERSION}/{kind}"
    for kind in ("shards/*", "shards/*/*.new", "shards/*/*.shard", "sought/*.new", "sought/*.sought", "stamps/*.new", "stamps/*.stamp")
}  # fmt: skip


def _report_files() -> set[str]:
    aside, place = "evalspill-reports/.evalspill-tmp-*", "evalspill-reports"
    inside = {f"default/{name}" for name in CHECK} | {"default", "default/clean", "default/clean/eval.clean.jsonl"}
    return (
        {place, f"{place}/.gitignore", f"{place}/.evalspill-lock", f"{place}/default", f"{place}/contaminated-training.csv"}
        | {f"{place}/{name}" for name in RUN} | {f"{aside}/run/{name}" for name in RUN}
        | {aside, f"{aside}/new", f"{aside}/old", f"{aside}/run"}
        | {f"{aside}/{which}/{name}" for which in ("new", "old") for name in inside}
    )  # fmt: skip


REPORTS = _report_files()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "repository").mkdir()
    return leaking(tmp_path / "repository")


def accepted(folder: Path) -> None:
    arguments = ["baseline", "create", "-c", str(folder / "evalspill.yaml"), "--reason", "known", "--no-cache"]
    assert run_command([*arguments, "--row", "data/none#1"]) == 2
    assert run_command([*arguments, "--row", "eval.jsonl#1"]) == 0


COMMANDS: dict[str, tuple[list[str], int, set[str]]] = {
    "check": (["check"], 1, REPORTS | CACHE),
    "check by one": (["check", "--no-cache", "--jobs", "1"], 1, REPORTS),
    "purge": (["purge", "--out", "purged", "--list", "gone.csv", "--no-cache"], 0, {
        "gone.csv", ".gone.csv.evalspill-tmp-*", "purged", ".purged.evalspill-tmp-*", ".purged.evalspill-tmp-*/new",
        ".purged.evalspill-tmp-*/new/data", ".purged.evalspill-tmp-*/new/data/train.jsonl"}),
    "dry run": (["purge", "--out", "purged", "--dry-run", "--no-cache"], 0, set()),
    "baseline": (["baseline", "update", "--reason", "x", "--no-cache"], 0,
                 {"evalspill-baseline.jsonl", ".evalspill-baseline.jsonl.*"}),
    "prune": (["baseline", "prune", "--no-cache"], 0, {"evalspill-baseline.jsonl", ".evalspill-baseline.jsonl.*"}),
    "explain": (["explain", "eval.jsonl#1", "--no-cache"], 0, set()),
    "doctor": (["doctor"], 0, set()),
    "init": (["init", "data", "eval.jsonl", "-o", "new.yaml"], 0, {"new.yaml", "evalspill.schema.json"}),
    "fields": (["fields", "eval.jsonl"], 0, set()),
    "validate": (["validate"], 0, set()),
    "schema": (["schema"], 0, set()),
}  # fmt: skip


@linux
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_changes_what_it_is_for_and_nothing_else(repository: Path, name: str) -> None:
    arguments, code, allowed = COMMANDS[name]
    if name in ("baseline", "prune"):
        accepted(repository)
        if name == "prune":
            (repository / "data/train.jsonl").write_text('{"text": "nothing here"}\n')
    runs = [audited(repository, *arguments) for _ in range(2 if name == "check" else 1)]
    assert [run.code for run in runs] == [code] * len(runs), runs[0].out
    changed = set().union(*(run.changed(repository) for run in runs)) - {".", os.path.relpath(os.devnull, repository)}
    assert changed <= allowed
    assert {name for name in allowed if "*" not in name and "evalspill-cache" not in name} <= changed
    assert [event for run in runs for event in run.sockets()] == []
    started = [parts for run in runs for parts in run.started()]
    if name == "doctor":
        assert {Path(parts[0]).name for parts in started} <= {"git"}
    else:
        assert started == []


@linux
def test_workers_write_nothing_and_start_nothing(repository: Path) -> None:
    for number in range(3):
        world.jsonl(repository / f"data/{number}.jsonl", [{"text": sentence(number * 100 + i)} for i in range(9)])
    run = audited(repository, "check", "--jobs", "2", "--engine", "process")
    index = {path for path in run.changed(repository) if path.startswith("cache/evalspill-index-*")}
    assert run.code == 1
    assert index and run.changed(repository) - index <= REPORTS | CACHE
    assert run.sockets() == []
    assert {re.sub(r"\d+|spawn_main\(.*\)", "", parts[-2] if parts[-1].startswith("--multi") else parts[-1])
            for parts in run.started()} == {
        "from multiprocessing.spawn import spawn_main; ", "from multiprocessing.resource_tracker import main;main()"
    }  # fmt: skip
    assert not list((repository / "cache").glob("evalspill-index-*"))


SHOWN = {"<reports>": "evalspill-reports", "<cache>": "cache", "<out>": "purged", "<list>": "gone.csv",
         "<baseline>": "evalspill-baseline.jsonl", "<config>": "new.yaml"}  # fmt: skip


def test_the_page_on_privacy_lists_every_file_that_a_command_may_write() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|[^|]+\|[^|]+\|$", PAGE.read_text(), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    for shown, here in SHOWN.items():
        listed = {name.replace(shown, here) for name in listed}
    written = {"cache/evalspill-index-*"}.union(*(allowed for _, _, allowed in COMMANDS.values()))
    written |= {name.replace("/.evalspill-tmp-*/new", "") for name in written}  # whole folders are moved to their place
    assert {name for name in written if not any(fnmatch(name, pattern) for pattern in listed)} == set()
    assert {pattern for pattern in listed if not any(fnmatch(name, pattern) for name in written)} == set()


SPY = "#!/bin/sh\ntouch '{mark}'\ncat\n"
PROGRAMS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy", "diff.external",
    "filter.spy.clean", "filter.spy.smudge", "filter.spy.process", "diff.spy.textconv", "diff.spy.command",
    "credential.helper", "gpg.program", "merge.spy.driver", "core.alternateRefsCommand", "uploadpack.packObjectsHook",
)  # fmt: skip
HOOKS = ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction")


def _hostile_git(folder: Path, mark: Path) -> None:
    """Make it a git repository whose configuration and hooks name a program wherever git might run one."""
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    for arguments in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=folder, env=quiet, check=True, capture_output=True)
    spy = folder / "spy.sh"
    spy.write_text(SPY.format(mark=mark))
    spy.chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=spy diff=spy merge=spy\n")
    (folder / "hooks").mkdir()
    for name in HOOKS:
        for where in (folder / ".git/hooks" / name, folder / "hooks" / name):
            where.parent.mkdir(exist_ok=True)
            where.write_text(SPY.format(mark=mark))
            where.chmod(0o755)
    settings = {**dict.fromkeys(PROGRAMS, str(spy)), "core.hooksPath": str(folder / "hooks")}
    settings |= {f"alias.{name}": f"!{spy}" for name in ("rev-parse", "ls-files", "status", "config")}
    for key, value in settings.items():
        subprocess.run(["git", "config", key, value], cwd=folder, env=quiet, check=True)
    os.utime(folder / "eval.jsonl", (1, 1))  # the index has to be looked at again


def _git_is_there() -> bool:
    try:
        return subprocess.run(["git", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


@linux
@pytest.mark.skipif(not _git_is_there(), reason="git is not installed")
def test_no_program_that_a_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    _hostile_git(repository, mark)
    accepted(repository)
    for arguments, code, _ in (COMMANDS[name] for name in ("check", "purge", "baseline", "explain", "init")):
        run = audited(repository, *arguments, env={"HOME": str(repository)})
        assert (run.code, mark.exists()) == (code, False), run.out
    told = audited(repository, "doctor", env={"HOME": str(repository)})
    assert (told.code, mark.exists()) == (0, False), told.out
    assert any("rev-parse" in parts[1] for parts in told.started())
    subprocess.run(["git", "status"], cwd=repository, capture_output=True)
    assert mark.exists(), "the repository is as hostile as it should be"


# --- who may read it --------------------------------------------------------------------------------------------------


def _modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_reports_and_cache_are_for_their_owner_alone(repository: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        for _ in range(2):
            assert world.check(repository, "--cache-dir", str(repository / "cache"), "--training-records") == 1
    finally:
        os.umask(before)
    reports = _modes(repository / "evalspill-reports")
    folders = {name for name in reports if (repository / "evalspill-reports" / name).is_dir()}
    assert stat.S_IMODE((repository / "evalspill-reports").stat().st_mode) == 0o700
    assert {name: mode for name, mode in reports.items() if mode != (0o700 if name in folders else 0o600)} == {}
    cached = {path: path.stat() for path in (repository / "cache").rglob("*") if path.is_file()}
    assert {stat.S_IMODE(seen.st_mode) for seen in cached.values()} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in cached} == {0o700}


def test_reports_in_a_folder_that_others_may_read_are_for_their_owner_alone(repository: Path) -> None:
    (repository / "evalspill-reports").mkdir(mode=0o755)
    assert world.check(repository) == 1
    readable = {name for name, mode in _modes(repository / "evalspill-reports").items() if mode & 0o077}
    assert readable == set()


def _outside(folder: Path) -> Path:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (outside / "default").mkdir()
    (outside / "default/overlap-report.html").write_text("mine")
    return outside


@pytest.mark.parametrize("place", ["report.json", "summary.md", "contaminated-training.csv"])
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symlink", "hard link"])
def test_a_report_is_not_written_through_a_link(
    repository: Path, place: str, link: Callable[[Path, Path], None]
) -> None:
    outside = _outside(repository)
    (repository / "evalspill-reports").mkdir()
    for arguments in ([], ["--training-records"]):
        path = repository / "evalspill-reports" / place
        path.unlink(missing_ok=True)
        link(outside / "mine", path)
        assert world.check(repository, *arguments) == 1
        assert (outside / "mine").read_text() == "mine"
        assert not path.is_symlink()


def test_the_folder_of_a_check_is_not_followed_where_it_is_a_link(repository: Path) -> None:
    outside = _outside(repository)
    before = tree(outside)
    (repository / "evalspill-reports").mkdir()
    (repository / "evalspill-reports/default").symlink_to(outside / "default")
    assert world.check(repository) == 1
    assert tree(outside) == before
    assert not (repository / "evalspill-reports/default").is_symlink()


@pytest.mark.parametrize("place", [".", ".evalspill-lock", ".evalspill-tmp-x"])
def test_a_link_in_the_place_of_the_folder_or_of_what_keeps_order_in_it(repository: Path, place: str) -> None:
    outside = _outside(repository)
    before = tree(outside)
    folder = repository / "evalspill-reports"
    if place != ".":
        folder.mkdir()
        (folder / "report.json").write_text("old")
    (folder if place == "." else folder / place).symlink_to(outside)
    assert world.check(repository) == (1 if place == ".evalspill-tmp-x" else 4)
    assert tree(outside) == before


def test_the_lock_changes_no_file_that_it_is_a_hard_link_to(repository: Path) -> None:
    outside = _outside(repository)
    (repository / "evalspill-reports").mkdir()
    (repository / "evalspill-reports/.evalspill-lock").hardlink_to(outside / "mine")
    assert world.check(repository) == 1
    assert (outside / "mine").read_text() == "mine"


# --- private text -----------------------------------------------------------------------------------------------------

MARK = "quokkamark"
"""A word that stands in every private text below."""
SECRET = "Sesame5f3a"
"""What is secret in the config and the environment."""

LEAKED = f"why do seven striped {MARK} on the northern pier always refuse the ripe mango before sunrise"
SHORT = f"{MARK} of peru today please now"


def _private(folder: Path, extra: str = "") -> Path:
    """Rows and records with the mark in all of their texts; three rows leak: one whole, one in part, one short."""
    part = " ".join(sentence("part", 20).split()[:14])
    rows = [LEAKED, f"{part} {MARK} {sentence(1, 5)}", SHORT, f"{MARK} {sentence(2)}", MARK, ""]
    world.jsonl(folder / "eval.jsonl", [{"question": row, "id": f"q{i}", "note": MARK} for i, row in enumerate(rows)])
    texts = [
        f"{MARK} so: {LEAKED}? {MARK}",
        f"{MARK} {part} {MARK}",
        f"{MARK}. {SHORT}! {MARK}",
        f"{MARK} {sentence(3)}",
    ]
    world.jsonl(folder / "train.jsonl", [{"text": text, "meta": {"by": MARK}, "n": i} for i, text in enumerate(texts)])
    world.config(folder, f"max_unchecked: 90%\n{extra}")
    return folder


def _reveals(data: bytes | str) -> bool:
    """Whether it holds the mark or the secret, in any case, in UTF-8 or UTF-16, packed or not."""
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    low = raw.lower()
    words = [word.lower() for word in (MARK, SECRET)]
    return any(word.encode(encoding) in low for word in words for encoding in ("utf-8", "utf-16-le"))


def _revealing(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and _reveals(path.read_bytes())
    ]


FOR_OTHERS = {"results.sarif", "junit.xml", "gl-code-quality.json", "summary.md"}


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Everything that was printed since it was last asked for."""

    def both() -> str:
        out, err = capfd.readouterr()
        return out + err

    return both


@pytest.mark.parametrize("form", FORMATS)
def test_no_form_that_is_printed_holds_text(
    tmp_path: Path, said: Callable[[], str], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSPILL_KEY", SECRET)
    _private(tmp_path)
    assert world.check(tmp_path, "--format", form, "-v", "--training-records") == 1
    printed = said()
    assert "eval.jsonl" in printed and not _reveals(printed)


@pytest.mark.parametrize("policy", ["full", "eval", "none"])
def test_files_for_others_the_cache_and_the_baseline_hold_no_text(
    tmp_path: Path, said: Callable[[], str], policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSPILL_KEY", SECRET)
    monkeypatch.setenv("EVALSPILL_CACHE_DIR", str(tmp_path / "cache"))
    _private(tmp_path, f"reports: {{text: {policy}, training: true}}\n")
    config = str(tmp_path / "evalspill.yaml")
    assert world.check(tmp_path) == 1
    assert run_command(["baseline", "create", "-c", config, "--reason", "known", "--row", "eval.jsonl#1"]) == 0
    assert world.check(tmp_path, "-v") == 1
    reports = tmp_path / "evalspill-reports"
    with_text = {"default/contamination-report.csv", "default/overlap-report.html", "report.json"}
    assert set(_revealing(reports)) == {"default/clean/eval.clean.jsonl"} | (set() if policy == "none" else with_text)
    assert {path.name for path in reports.iterdir()} > FOR_OTHERS
    assert _revealing(tmp_path / "cache") == []
    assert len(list((tmp_path / "cache").rglob("*.shard"))) == 1
    assert not _reveals((tmp_path / "evalspill-baseline.jsonl").read_bytes())
    assert not _reveals(said())


def test_with_the_text_of_eval_rows_only_no_other_word_of_training_is_shown(tmp_path: Path) -> None:
    only = "wombatmark"
    world.jsonl(tmp_path / "eval.jsonl", [{"question": LEAKED}])
    world.jsonl(tmp_path / "train.jsonl", [{"text": f"{only} so: {LEAKED}? {only}"}])
    for policy, shown in (("full", True), ("eval", False)):
        world.config(tmp_path, f"reports: {{text: {policy}}}\n")
        assert world.check(tmp_path) == 1
        told = [
            path.name
            for path in (tmp_path / "evalspill-reports").rglob("*")
            if path.is_file() and only.encode() in path.read_bytes()
        ]
        assert bool(told) is shown


def test_the_index_that_workers_open_holds_no_text(tmp_path: Path) -> None:
    config = load(_private(tmp_path) / "evalspill.yaml")
    checks = load_checks(config, tmp_path / "none", None, [])
    (tmp_path / "index").mkdir()
    save(build([one.lengths.query(row) for one in checks for row in one.rows.rows]), tmp_path / "index")
    assert len(list((tmp_path / "index").iterdir())) > 5
    assert _revealing(tmp_path / "index") == []


GOOD = json.dumps({"text": f"{MARK} {sentence(7)}"}) + "\n"
BAD: dict[str, tuple[str, bytes]] = {
    "not JSON": ("t.jsonl", f'{GOOD}{{"text": "{MARK}\n{MARK}\n'.encode()),
    "bare word": ("t.jsonl", f"{GOOD}{MARK}\n{{{MARK}: 1}}\n".encode()),
    "escape": ("t.jsonl", f'{GOOD}{{"{MARK}": "\\x{MARK}"}}\n'.encode()),
    "number": ("t.jsonl", f'{GOOD}{{"a": 1e999{MARK}}}\n'.encode()),
    "not UTF-8": ("t.jsonl", GOOD.encode() + f'{{"text": "{MARK} '.encode() + b'\xff\xfe"}\n'),
    "UTF-16 cut": ("t.jsonl", GOOD.encode("utf-16") + f"{{{MARK}".encode("utf-16-le") + b"\xd8"),
    "bare UTF-16": ("t.jsonl", GOOD.encode("utf-16-le")),
    "deep": ("t.jsonl", (f'{GOOD}{{"a": "{MARK}", "b": ' + "[" * 5000 + "\n").encode()),
    "array cut": ("t.json", f'[{{"text": "{MARK}"}}, {{"text": "{MARK}'.encode()),
    "array wrong": ("t.json", f'[{{"text": "{MARK}"}}, {MARK}]'.encode()),
    "twice": ("t.json", f'[{{"text": "{MARK}"}}] {MARK}'.encode()),
    "open quote": ("t.csv", f'a,b\n"{MARK}","{MARK}\n{MARK}\n'.encode()),
    "quote inside": ("t.csv", f'a,b\n"{MARK}" {MARK},{MARK}\n'.encode()),
    "delimiter": ("t.csv", f"{MARK} one;two\n{MARK};3\n".encode()),
    "no header": ("t.csv", f"a,{MARK} {sentence(1)}\nb,{MARK}\n".encode()),
    "repeated cell": ("t.csv", f"{MARK},{MARK}\nb,{MARK}\n".encode()),
    "bad cell": ("t.tsv", f"a\tb\n{MARK}\t".encode() + b"\xff\n"),
    "tsv header": ("t.tsv", f"a\t{MARK} {sentence(1)}\n".encode()),
    "text": ("t.txt", f"{MARK} {sentence(1)}\n\n{MARK} ".encode() + b"\xff"),
    "gz cut": ("t.jsonl.gz", gzip.compress(GOOD.encode() * 9)[:-9]),
    "gz wrong": ("t.jsonl.gz", gzip.compress(GOOD.encode() * 9)[:40] + MARK.encode() + b"\0" * 30),
    "not zst": ("t.jsonl.zst", b"\x28\xb5\x2f\xfd" + MARK.encode()),
    "pointer": ("t.jsonl", f"version https://git-lfs.github.com/spec/v1\noid {MARK}\n".encode()),
    "parquet": ("t.parquet", b"PAR1\x15" + MARK.encode() * 9 + b"PAR1"),
    "no text": ("t.jsonl", b'{"text": null}\n'),
    "unknown": ("t.docx", MARK.encode()),
    "empty": ("t.jsonl", b""),
}  # fmt: skip


def _every_command(folder: Path, name: str) -> list[list[str]]:
    config, out = ["-c", str(folder / "evalspill.yaml")], str(folder / "purged")
    return [
        ["check", *config, "-v"], ["check", *config, "--format", "github"],
        ["purge", *config, "--out", out, "--list", str(folder / "gone.csv"), "-v"],
        ["baseline", "create", *config, "--reason", "x", "-v"], ["doctor", *config], ["validate", *config],
        ["fields", str(folder / name)], ["init", str(folder / name), str(folder / "eval.jsonl"), "-o", str(folder / "new.yaml")],
        ["init", str(folder / "train.jsonl"), str(folder / name), "-o", str(folder / "newer.yaml")],
    ]  # fmt: skip


@pytest.mark.parametrize("side", ["train", "eval", "train skip"])
@pytest.mark.parametrize("fault", BAD)
def test_no_fault_of_a_file_is_told_with_its_text(
    tmp_path: Path, said: Callable[[], str], fault: str, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSPILL_CACHE_DIR", str(tmp_path / "cache"))
    name, raw = BAD[fault]
    _private(tmp_path)
    (tmp_path / name).write_bytes(raw)
    skip = "on_bad_record: skip\nmax_bad: 90%\n" if side == "train skip" else ""
    more = f"max_unchecked: 100%\n{skip}"
    if side == "eval":
        world.config(tmp_path, more, evals=name)
    else:
        world.config(tmp_path, more, train=f"[train.jsonl, {name}]")
    codes = [run_command(arguments) for arguments in _every_command(tmp_path, name)]
    assert 4 not in codes
    assert skip or 3 in codes
    assert not _reveals(said())
    assert [path for path in _revealing(tmp_path / "evalspill-reports") if Path(path).name in FOR_OTHERS] == []
    written = [tmp_path / one for one in ("cache", "new.yaml", "newer.yaml", "evalspill-baseline.jsonl", "gone.csv")]
    assert [
        one.name
        for one in written
        if (_revealing(one) if one.is_dir() else one.exists() and _reveals(one.read_bytes()))
    ] == []


QUESTION = f"{MARK} who buried the golden crowns beneath the harbour of the old town before dawn"


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "github"])
def test_a_key_that_is_a_text_is_shown_to_nobody(
    tmp_path: Path, said: Callable[[], str], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "1")
    world.jsonl(tmp_path / "eval.jsonl", [{QUESTION: sentence(number)} for number in range(9)])
    world.jsonl(tmp_path / "train.jsonl", [{"text": sentence(2)}])
    config = "version: 1\ntrain: {files: train.jsonl}\neval: {files: eval.jsonl, fields: auto}\n"
    (tmp_path / "evalspill.yaml").write_text(config)
    more = [] if form == "text" else ["--format", form]
    assert run_command(["check", "-c", str(tmp_path / "evalspill.yaml"), "--no-cache", *more]) == 1
    assert not _reveals(said())
    assert [path for path in _revealing(tmp_path / "evalspill-reports") if Path(path).name in FOR_OTHERS] == []
    assert world.only_check(tmp_path)["settings"]["eval"]["fields"] == [QUESTION], "its own report names it"


@pytest.mark.parametrize("first", [f"Who buried {MARK}?", f"{MARK} buried the golden crowns"])
def test_the_first_row_of_a_file_without_a_header_is_not_shown(
    tmp_path: Path, said: Callable[[], str], first: str
) -> None:
    (tmp_path / "eval.csv").write_text(f"{first}\n" + "".join(f"{sentence(n)}\n" for n in range(9)))
    world.jsonl(tmp_path / "train.jsonl", [{"text": sentence(2)}])
    (tmp_path / "evalspill.yaml").write_text("version: 1\ntrain: {files: train.jsonl}\neval: {files: eval.csv}\n")
    codes = [run_command([one, "-c", str(tmp_path / "evalspill.yaml")]) for one in ("check", "doctor")]
    assert run_command(["fields", str(tmp_path / "eval.csv")]) == 0
    assert codes[0] == 2
    assert not _reveals(said())


@pytest.mark.parametrize("fields", ["[nope]", "[question.deep]", "auto", "[]", "['a[b']", "missing"])
def test_no_fault_of_a_field_is_told_with_text(tmp_path: Path, said: Callable[[], str], fields: str) -> None:
    _private(tmp_path)
    config = (tmp_path / "evalspill.yaml").read_text()
    line = "" if fields == "missing" else f"  fields: {fields}\n"
    (tmp_path / "evalspill.yaml").write_text(config.replace("  fields: [question]\n", line))
    codes = [run_command(arguments) for arguments in _every_command(tmp_path, "train.jsonl")]
    assert (4 not in codes and {2, 3} & set(codes)) or fields == "auto"
    printed = said()
    assert printed and not _reveals(printed)


# --- secrets of the config --------------------------------------------------------------------------------------------

ADDRESS = f"http://user:{SECRET}@127.0.0.1:1/d/%s?token={SECRET}#{SECRET}"


@pytest.mark.network
@pytest.mark.parametrize("side", ["train", "evals"])
def test_what_is_secret_in_an_address_is_told_by_no_command(
    tmp_path: Path, said: Callable[[], str], side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    monkeypatch.setenv("EVALSPILL_CACHE_DIR", str(tmp_path / "cache"))
    _private(tmp_path)
    files = f"['{ADDRESS % 't.jsonl'}', '{ADDRESS % '*.jsonl'}', '!{ADDRESS % 'x.jsonl'}']"
    world.config(tmp_path, **{side: files})
    try:
        codes = [run_command(arguments) for arguments in _every_command(tmp_path, "none.jsonl")]
        codes += [
            run_command(["fields", ADDRESS % "t.jsonl"]),
            run_command(["init", ADDRESS % "t.jsonl", "eval.jsonl"]),
        ]
    finally:
        remote._file_system.cache_clear()
    assert 4 not in codes and 3 in codes
    assert not _reveals(said())
    assert _revealing(tmp_path / "evalspill-reports") == [] or side == "train"
    assert not any(
        SECRET.encode() in path.read_bytes() for path in (tmp_path / "evalspill-reports").rglob("*") if path.is_file()
    )
    assert _revealing(tmp_path / "cache") == []


@pytest.mark.parametrize(
    "line",
    ["n: %s", "version: %s", "flag_at: %s", "flag_at: {coverage: %s}", "boilerplate: %s", "fail_over: %s", "short_rows: %s",
     "max_unchecked: %s", "reports: %s", "reports: {text: %s}", "on_bad_record: %s", "checks: %s", "train: {files: [%s, {a: %s}]}",
     "eval: {files: 3, header: %s}", "x: [%s", "a: 'b' %s", "%s", "- %s", "\t%s: ["],
)  # fmt: skip
def test_what_is_wrong_in_a_config_is_told_without_its_values(
    tmp_path: Path, said: Callable[[], str], line: str
) -> None:
    value = f"https://user:{SECRET}@host.example/{MARK}"
    (tmp_path / "evalspill.yaml").write_text(line.replace("%s", f"'{value}'") + "\n")
    for arguments in (["check"], ["validate"], ["doctor"], ["purge", "--out", str(tmp_path / "x")]):
        assert run_command([*arguments, "-c", str(tmp_path / "evalspill.yaml")]) == 2
    assert not _reveals(said())


# --- what nobody expects ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError, KeyError, MemoryError, OSError])
@pytest.mark.parametrize(
    "place", ["engine.scan_shard", "pipeline.score_rows", "pipeline.gather", "holding.batch", "reports._check_report"]
)
def test_an_error_that_nobody_expects_is_told_without_its_message(
    tmp_path: Path, said: Callable[[], str], place: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    _private(tmp_path, "reports: {text: none, clean: false}\n")

    def fail(*_: object, **__: object) -> None:
        try:
            raise error(MARK)
        except error as first:
            raise error(f"{MARK} again") from first

    monkeypatch.setattr(f"evalspill_guard.{place}", fail)
    assert world.check(tmp_path, "-v", "--no-cache", "--training-records", "--jobs", "1") in (3, 4)
    printed = said()
    assert printed and not _reveals(printed)
    assert _revealing(tmp_path / "evalspill-reports") == []


BOOM = """
import os, sys
if "--multiprocessing-fork" in sys.orig_argv:
    from evalspill_guard import engine
    def fail(*_):
        {what}
    engine.scan_shard = fail
"""


@pytest.mark.parametrize(
    ("what", "code"),
    [
(f"raise RuntimeError('{MARK}')", 4), (f"raise MemoryError('{MARK}')", 3), (f"return lambda: '{MARK}'", 4),
        (f"raise type('{MARK}', (Exception,), {{}})('{MARK}')", 4), ("os._exit(7)", 3),
        (f"text = '{MARK}'; os.kill(os.getpid(), 11)", 3),
    ],
)  # fmt: skip
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_worker_that_breaks_is_told_without_text(tmp_path: Path, what: str, code: int) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    _private(folder)
    world.config(folder, "max_unchecked: 90%\n", train="'*.jsonl'", evals="eval.jsonl")
    config = (folder / "evalspill.yaml").read_text().replace("'*.jsonl'", "[train.jsonl, more.jsonl]")
    (folder / "evalspill.yaml").write_text(config)
    world.jsonl(folder / "more.jsonl", [{"text": f"{MARK} {sentence(9)}"}])
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside/sitecustomize.py").write_text(BOOM.format(what=what))
    env = environment(folder, PYTHONFAULTHANDLER="1", PYTHONWARNINGS="always")
    env["PYTHONPATH"] = f"{tmp_path / 'aside'}{os.pathsep}{env['PYTHONPATH']}"
    done = subprocess.run(
        command("check", "-v", "--jobs", "2", "--engine", "process"),
        cwd=folder,
        env=env,
        capture_output=True,
        timeout=120,
    )
    told = done.stdout + done.stderr
    named = told.replace(f"internal error: {MARK} at".encode(), b"") if "type(" in what else told
    assert done.returncode == code, told
    assert not _reveals(named), told
    assert [path for path in _revealing(folder / "evalspill-reports") if Path(path).name in FOR_OTHERS] == []


def test_a_report_that_cannot_be_written_is_told_without_text(tmp_path: Path, said: Callable[[], str]) -> None:
    _private(tmp_path)
    (tmp_path / "evalspill-reports").write_text(MARK)
    assert world.check(tmp_path, "-v") == 4
    assert not _reveals(said())
    with pytest.raises(KeyError):
        write_reports(tmp_path / "x", {"a": {"b": iter(_broken())}}, {})
    assert not _reveals(said())


def _broken() -> list[bytes]:
    raise KeyError(MARK)


@pytest.mark.parametrize("arguments", [["check", "--show-text"], ["explain", "eval.jsonl#1"]])
def test_where_ci_is_set_no_command_prints_text(
    tmp_path: Path, said: Callable[[], str], arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _private(tmp_path)
    config = ["-c", str(tmp_path / "evalspill.yaml")]
    assert run_command([*arguments, *config]) in (0, 1)
    assert _reveals(said()), "it is what these are for"
    monkeypatch.setenv("CI", "true")
    assert run_command([*arguments, *config]) == 2
    assert not _reveals(said())


def test_what_the_audit_sees(repository: Path) -> None:
    """The means of the tests above: a write, a process and a socket are noticed, in a worker too."""
    code = "import socket, subprocess, sys; open('x', 'w'); subprocess.run([sys.executable, '-c', 'import os; os.mkdir(\"y\")']); socket.socket().bind(('127.0.0.1', 0))"
    import audit

    before, audit.MAIN = audit.MAIN, code
    try:
        run: Audited = audited(repository)
    finally:
        audit.MAIN = before
    if sys.platform.startswith("linux"):
        assert run.changed(repository) == {"x", "y"}
    assert any(parts[-1].startswith("import os") for parts in run.started())
    assert {event.what for event in run.sockets()} >= {"socket.bind"}
