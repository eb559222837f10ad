"""The writer leaves whole reports, old or new, whatever happens to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalspill_guard.errors import ReportError
from evalspill_guard.reports import writer
from evalspill_guard.reports.writer import write_reports

OLD = {"report.csv": [b"old"], "clean/a.jsonl": [b"old rows"]}
NEW = {"report.csv": [b"new", b"er"]}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder except those with which the writer keeps order."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in files.items() if name not in (".gitignore", ".evalspill-lock")}


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A report folder with the reports of an earlier run."""
    write_reports(tmp_path / "reports", {"qa": OLD, "math": OLD}, {"report.json": [b"old run"]})
    return tmp_path / "reports"


BEFORE = {
    "qa/report.csv": b"old", "qa/clean/a.jsonl": b"old rows",
    "math/report.csv": b"old", "math/clean/a.jsonl": b"old rows", "report.json": b"old run",
}  # fmt: skip


def breaking() -> Iterator[bytes]:
    """A report that breaks off as a full disk does."""
    yield b"half"
    raise OSError(28, "No space left on device")


def test_writes_every_file_and_says_where(tmp_path: Path) -> None:
    paths = write_reports(tmp_path / "deep" / "reports", {"qa": OLD}, {"report.json": [b"{}"]})
    assert [path.relative_to(tmp_path / "deep/reports").as_posix() for path in paths] == [
        "qa/report.csv", "qa/clean/a.jsonl", "report.json",
    ]  # fmt: skip
    assert all(path.exists() for path in paths)


def test_the_folder_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    write_reports(tmp_path / "reports", {"qa": OLD}, {"report.json": [b"{}"]})
    assert (tmp_path / "reports/.gitignore").read_text() == "*\n"
    modes = {
        path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "reports", *(tmp_path / "reports").rglob("*")]
    }
    assert modes == {
        "reports": 0o700, "qa": 0o700, "clean": 0o700, "report.csv": 0o600, "a.jsonl": 0o600, "report.json": 0o600,
        ".gitignore": 0o600, ".evalspill-lock": 0o600,
    }  # fmt: skip


def test_a_check_is_replaced_as_a_whole(reports: Path) -> None:
    write_reports(reports, {"qa": NEW}, {"report.json": [b"new run"]})
    kept = {name: data for name, data in BEFORE.items() if name.startswith("math/")}
    assert contents(reports) == {"qa/report.csv": b"newer", **kept, "report.json": b"new run"}


def test_no_hidden_folder_is_left(reports: Path) -> None:
    assert not list(reports.glob(".evalspill-tmp-*"))


@pytest.mark.parametrize("place", ["first check", "second check", "run"])
def test_a_failure_leaves_the_earlier_reports_whole(reports: Path, place: str) -> None:
    broken = {"report.csv": breaking()}
    checks = {"qa": broken if place == "first check" else NEW, "math": broken if place == "second check" else NEW}
    with pytest.raises(ReportError, match=r"cannot be written: No space left on device"):
        write_reports(reports, checks, {"report.json": breaking() if place == "run" else [b"new"]})
    assert contents(reports) == BEFORE
    assert not list(reports.glob(".evalspill-tmp-*"))


def test_the_error_names_the_report(reports: Path) -> None:
    with pytest.raises(ReportError) as error:
        write_reports(reports, {"qa": {"report.csv": [b""], "clean/x.jsonl": breaking()}}, {})
    assert str(error.value) == f"{reports}/qa/clean/x.jsonl: cannot be written: No space left on device"


def test_what_the_source_of_a_report_raises_is_passed_on(reports: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield b"half"
        raise KeyError("source")

    with pytest.raises(KeyError):
        write_reports(reports, {"qa": {"report.csv": failing()}}, {})
    assert contents(reports) == BEFORE


def test_a_failed_exchange_puts_the_old_folder_back(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def refusing(self: Path, target: Path) -> Path:
        if self.parent.name == "new":
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refusing)
    with pytest.raises(ReportError, match="Permission denied"):
        write_reports(reports, {"qa": NEW}, {})
    assert contents(reports) == BEFORE


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounting a small disk takes root on Linux")
def test_a_full_disk_leaves_the_earlier_reports_whole(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "small", str(tmp_path)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        reports = tmp_path / "reports"
        write_reports(reports, {"qa": OLD}, {"report.json": [b"old run"]})
        with pytest.raises(ReportError, match="No space left on device"):
            write_reports(reports, {"qa": {"report.csv": [b"x" * 1_000_000]}}, {"report.json": [b"new"]})
        assert contents(reports) == {
            "qa/report.csv": b"old",
            "qa/clean/a.jsonl": b"old rows",
            "report.json": b"old run",
        }
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def start(reports: Path, program: str) -> subprocess.Popen[str]:
    """Another run that writes to the same folder; it prints a line when it has come as far as the test wants."""
    code = "import sys, time\nfrom pathlib import Path\nfrom evalspill_guard.reports import writer\n"
    code += textwrap.dedent(program)
    return subprocess.Popen([sys.executable, "-c", code, str(reports)], stdout=subprocess.PIPE, text=True)


SLOW = """
def slow():
    yield b"half"
    print("writing", flush=True)
    time.sleep(60)
writer.write_reports(Path(sys.argv[1]), {"qa": {"report.csv": slow()}}, {})
"""

STUCK_BETWEEN_RENAMES = """
rename = Path.rename
def stuck(self, target):
    if self.parent.name == "new":
        print("between", flush=True)
        time.sleep(60)
    return rename(self, target)
Path.rename = stuck
writer.write_reports(Path(sys.argv[1]), {"qa": {"report.csv": [b"new"]}}, {})
"""


@pytest.mark.parametrize("program", [SLOW, STUCK_BETWEEN_RENAMES])
def test_a_killed_run_leaves_nothing_that_the_next_one_does_not_mend(reports: Path, program: str) -> None:
    with start(reports, program) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.send_signal(signal.SIGKILL)
    assert list(reports.glob(".evalspill-tmp-*"))
    with pytest.raises(ReportError):
        write_reports(reports, {"math": {"report.csv": breaking()}}, {})
    assert contents(reports) == BEFORE
    assert not list(reports.glob(".evalspill-tmp-*"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
def test_a_run_waits_for_another_that_is_writing(reports: Path) -> None:
    with start(reports, SLOW.replace("time.sleep(60)", "time.sleep(1)")) as other:
        assert other.stdout is not None
        other.stdout.readline()
        began = time.monotonic()
        write_reports(reports, {"qa": NEW}, {})
        assert time.monotonic() - began > 0.5
        assert other.wait() == 0
    assert contents(reports)["qa/report.csv"] == b"newer"


def test_a_link_in_place_of_a_check_is_replaced_not_followed(reports: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "report.csv").write_bytes(b"precious")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "qa").symlink_to(victim)
    (tmp_path / "linked" / "report.json").symlink_to(victim / "report.csv")
    write_reports(tmp_path / "linked", {"qa": NEW}, {"report.json": [b"{}"]})
    assert contents(victim) == {"report.csv": b"precious"}
    assert not (tmp_path / "linked" / "qa").is_symlink()
    assert not (tmp_path / "linked" / "report.json").is_symlink()


def test_links_inside_a_replaced_folder_lead_nowhere(reports: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (reports / "qa" / "link").symlink_to(tmp_path)
    (reports / ".evalspill-tmp-link").symlink_to(tmp_path)
    write_reports(reports, {"qa": NEW}, {})
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert sorted(path.name for path in (reports / "qa").iterdir()) == ["report.csv"]


def test_a_report_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "reports").symlink_to(tmp_path / "real")
    with pytest.raises(ReportError, match="symbolic link"):
        write_reports(tmp_path / "reports", {"qa": NEW}, {})
    assert list((tmp_path / "real").iterdir()) == []


def test_a_folder_that_is_no_report_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_bytes(b"precious")
    with pytest.raises(ReportError, match="exists and is no report"):
        write_reports(tmp_path, {"data": NEW}, {})
    assert contents(tmp_path) == {"data/train.jsonl": b"precious"}


def test_a_folder_of_the_user_gets_no_gitignore(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    write_reports(tmp_path, {"qa": NEW}, {})
    assert not (tmp_path / ".gitignore").exists()


def test_a_file_in_place_of_the_report_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(ReportError, match="File exists"):
        write_reports(tmp_path / "reports", {"qa": NEW}, {})


def test_everything_is_on_disk_before_it_is_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, writer._replace_folder
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("sync"), fsync(handle))[1])
    monkeypatch.setattr(writer, "_replace_folder", lambda *paths: (steps.append("exchange"), replace(*paths))[1])
    write_reports(tmp_path / "reports", {"qa": OLD}, {})
    assert steps.index("exchange") >= 5
    assert steps[-1] == "sync"
