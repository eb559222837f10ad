"""The command line's edges: help, exit codes, what is printed and what never is."""

import fcntl
import gzip
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import world

import evalspill_guard.pipeline
from evalspill_guard import __version__
from evalspill_guard.cli import cli, run_command
from evalspill_guard.errors import ExitCode, worst

COMMANDS = sorted(cli.commands)
MARKER = "quibbleword"  # in every row and every training text; must never be printed


def _text(number: int) -> str:
    return f"{MARKER} number {number} asks why the {number * 7} boats of harbour {number * 3} sail before the tide"


def _other(number: int) -> str:
    return f"{MARKER} ticket {number}: order {number * 5} of customer {number * 9} waits for a parcel nobody has sent"


Spoil = Callable[[Path], object]


def _leak(folder: Path) -> None:
    world.jsonl(folder / "more.jsonl", [{"text": _text(3)}])


def _missing(folder: Path) -> None:
    (folder / "train.jsonl").unlink()


def _no_ignore(folder: Path) -> None:
    with (folder / "evalspill.yaml").open("a") as file:
        file.write("ignore: none.txt\n")


def _no_report_folder(folder: Path) -> None:
    (folder / "evalspill-reports").write_text("a file")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset repository whose gate passes; it is the working directory."""
    world.jsonl(tmp_path / "eval.jsonl", [{"question": _text(i), "qid": f"q{i}"} for i in range(20)])
    world.jsonl(tmp_path / "train.jsonl", [{"text": _other(i)} for i in range(20)])
    world.jsonl(tmp_path / "more.jsonl", [{"text": _other(i)} for i in range(20, 30)])
    world.config(tmp_path, train="[train.jsonl, more.jsonl]")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    """A verbose run leaves the logger as it was."""
    yield
    logger = logging.getLogger("evalspill_guard")
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)


def _process(arguments: Sequence[str], stdout: int | None = subprocess.DEVNULL, **more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evalspill_guard", *arguments]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **more})


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Exit code and stderr of a process."""
    _, err = process.communicate(timeout=30)
    return process.returncode, err.decode()


# --- help, version, wrong use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_command_explains_itself(command: list[str], option: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command([*command, option]) == 0
    out, err = capfd.readouterr()
    assert out.startswith(" ".join(["Usage: evalspill-guard", *command]))
    assert "--help" in out
    assert err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_every_option_has_a_line_of_help(command: str) -> None:
    info = cli.commands[command].to_info_dict(cli.make_context("evalspill-guard", [command], resilient_parsing=True))
    silent = [one["name"] for one in info["params"] if one["param_type_name"] == "option" and not one["help"]]
    assert (bool(info["help"] or info["short_help"]), silent) == (True, [])


def test_the_help_names_every_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--help"]) == 0
    shown = [line.split()[0] for line in capfd.readouterr().out.rpartition("Commands:")[2].splitlines() if line.strip()]
    assert set(COMMANDS) <= set(shown)


def test_the_version_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"]) == 0
    assert capfd.readouterr().out == f"evalspill-guard {__version__}\n"


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_an_unknown_option_is_wrong_use(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command([*command, "--surprise"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "No such option" in err


@pytest.mark.parametrize(
    "arguments", [[], ["surprise"], ["init", "one"], ["fields"], ["check", "surprise"], ["check", "--format", "xml"]]
)
def test_wrong_use_is_exit_two_and_prints_to_stderr_alone(
    arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Usage: evalspill-guard" in err


@pytest.mark.parametrize("command", ["check", "validate"])
def test_without_a_config_the_advice_is_to_run_init(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command([command]) == 2
    assert "evalspill-guard init" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["none.yaml", "."])
def test_a_config_that_cannot_be_read_is_named(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "-c", name]) == 2
    assert f"{name}: could not be read" in capfd.readouterr().err


def test_every_config_given_to_validate_is_checked(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("bad1.yaml", "bad2.yaml"):
        (folder / name).write_text("version: 1\nsurprise: 1\n")
    assert run_command(["validate", "bad1.yaml", "evalspill.yaml", "bad2.yaml"]) == 2
    out, err = capfd.readouterr()
    assert "evalspill.yaml is valid" in out
    assert "bad1.yaml:2: surprise" in err
    assert "bad2.yaml:2: surprise" in err


def test_validate_reads_no_data(folder: Path) -> None:
    for path in folder.glob("*.jsonl"):
        path.unlink()
    assert run_command(["validate"]) == 0


# --- exit codes -----------------------------------------------------------------------------------------------------

CODES: list[tuple[int, list[Spoil]]] = [
    (0, []),
    (1, [_leak]),
    (3, [_missing]),
    (3, [_leak, _missing]),
    (2, [_no_ignore]),
    (2, [_leak, _no_ignore]),
    (2, [_leak, _missing, _no_ignore]),
    (4, [_no_report_folder]),
    (4, [_leak, _no_report_folder]),
    (4, [_leak, _missing, _no_report_folder]),
]


def _names(spoils: object) -> str | None:
    return "+".join(one.__name__.strip("_") for one in spoils) or "nothing" if isinstance(spoils, list) else None


@pytest.mark.parametrize(("code", "spoils"), CODES, ids=_names)
def test_the_worst_of_several_faults_decides_and_exit_zero_forgives_only_flagged_rows(
    code: int, spoils: list[Spoil], folder: Path
) -> None:
    for spoil in spoils:
        spoil(folder)
    assert run_command(["check"]) == code
    assert run_command(["check", "--exit-zero"]) == (0 if code == 1 else code)


def test_the_order_of_the_codes_is_4_2_3_1_0() -> None:
    codes = [ExitCode(code) for code in (4, 2, 3, 1, 0)]
    assert [worst(reversed(codes[at:])) for at in range(5)] == codes
    assert worst([]) == 0


@pytest.mark.parametrize("code", [1, 3])
def test_the_exit_code_also_stands_in_the_report(code: int, folder: Path) -> None:
    (_leak if code == 1 else _missing)(folder)
    assert run_command(["check", "--exit-zero"]) == (0 if code == 1 else 3)
    report = world.report(folder)
    assert (report["exit_code"], report["complete"]) == (code, code == 1)


def test_an_internal_error_is_exit_four_and_shows_its_place_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        try:
            raise KeyError(_text(1))
        except KeyError as error:
            raise ValueError(_text(2)) from error

    monkeypatch.setattr(evalspill_guard.pipeline, "run", fails)
    for more in ([], ["-v"], ["--exit-zero"], ["-q"]):
        assert run_command(["check", *more]) == 4
        out, err = capfd.readouterr()
        assert out == ""
        assert "internal error: ValueError at " in err
        assert MARKER not in err


@pytest.mark.parametrize("error", [MemoryError, RecursionError, AssertionError, StopIteration, GeneratorExit, OSError])
def test_whatever_is_raised_never_ends_in_exit_one(
    error: type[BaseException], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error(_text(1))

    monkeypatch.setattr(evalspill_guard.pipeline, "run", fails)
    assert run_command(["check"]) == 4


def test_an_interrupted_run_is_exit_130_and_keeps_the_earlier_reports(folder: Path) -> None:
    assert run_command(["check"]) == 0
    before = (folder / "evalspill-reports/report.json").read_bytes()
    _leak(folder)
    with (folder / "evalspill-reports/.evalspill-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the run waits here until it is interrupted
        process = _process(["check", "-v", "--exit-zero"])
        assert process.stderr is not None
        assert process.stderr.readline()
        process.send_signal(signal.SIGINT)
        code, err = _ended(process)
    assert code == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert (folder / "evalspill-reports/report.json").read_bytes() == before


# --- what is printed ------------------------------------------------------------------------------------------------


def test_quiet_prints_nothing_when_the_gate_passes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--format", "text"], ["--exit-zero"]):
        assert run_command(["check", "-q", *more]) == 0
        assert capfd.readouterr() == ("", "")


def test_quiet_still_prints_the_forms_that_programs_read(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "-q", "--format", "gitlab"]) == 0
    assert capfd.readouterr() == ("[]\n", "")


@pytest.mark.parametrize(("spoil", "says"), [(_leak, "FAILED"), (_missing, "INCOMPLETE")])
@pytest.mark.parametrize("more", [[], ["--exit-zero"]])
def test_quiet_still_prints_what_is_wrong(
    spoil: Spoil, says: str, more: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil(folder)
    run_command(["check", "-q", *more])
    assert says in capfd.readouterr().out


@pytest.mark.parametrize(("spoil", "code"), [(_leak, 1), (_missing, 3)])
def test_json_is_the_report_without_row_text(
    spoil: Spoil, code: int, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil(folder)
    assert run_command(["check", "--format", "json"]) == code
    out, err = capfd.readouterr()
    printed, written = json.loads(out), world.report(folder)
    assert (MARKER in out, err) == (False, "")
    assert printed.pop("text") == "none"
    assert written.pop("text") == "full"
    for report in (printed, written):
        for found in report["checks"][0]["found"]:
            del found["passage"], found["context"]
    assert printed == written


def test_json_and_show_text_together_print_no_text(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _leak(folder)
    assert run_command(["check", "--format", "json", "--show-text"]) == 1
    assert MARKER not in "".join(capfd.readouterr())


@pytest.mark.parametrize("value", ["true", "1", "false"])
def test_show_text_is_refused_where_ci_is_set(
    value: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _leak(folder)
    assert run_command(["check", "--show-text"]) == 1
    assert _text(3) in capfd.readouterr().out
    monkeypatch.setenv("CI", value)
    assert run_command(["check", "--show-text"]) == 2
    out, err = capfd.readouterr()
    assert (MARKER in out + err, "--show-text" in err) == (False, True)


def test_text_is_shown_on_one_line_without_a_command_in_it(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hostile = f"{_text(1)}\n::error::x ##[add-mask]y\x1b[31m {_text(2)}"
    world.jsonl(folder / "eval.jsonl", [{"question": hostile}])
    world.jsonl(folder / "more.jsonl", [{"text": hostile}])
    assert run_command(["check", "--show-text"]) == 1
    out = capfd.readouterr().out
    assert _text(2) in out
    assert not any(line.lstrip().startswith("::") or "##[" in line or "\x1b" in line for line in out.splitlines())


def test_a_hostile_file_name_and_id_are_shown_escaped(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name = "\u202e\x1b[31m\n::error::more.jsonl"
    world.jsonl(folder / "eval.jsonl", [{"question": _text(3), "qid": "x\n::error::y\rz"}])
    world.jsonl(folder / name, [{"text": _text(3)}])
    world.config(folder, train="['*more.jsonl', 'no\\n::error::ne.jsonl']")
    text = (folder / "evalspill.yaml").read_text().replace("'no\\n", '"no\\n').replace("ne.jsonl'", 'ne.jsonl"')
    (folder / "evalspill.yaml").write_text(text + "  id: qid\n")
    for more in ([], ["-v"], ["--format", "json"]):
        assert run_command(["check", *more]) == 3
        out, err = capfd.readouterr()
        lines = (out + err).split("\n")
        assert not any(set(line) & set("\x1b\r\u202e") or line.lstrip().startswith("::") for line in lines)


def test_the_event_log_names_the_files_read_and_written_and_goes_to_stderr(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["check", "-v"]) == 0
    out, err = capfd.readouterr()
    assert "verdict" in out
    named = ["eval.jsonl", "train.jsonl", "more.jsonl", "report.json", "contamination-report.csv", "eval.clean.jsonl"]
    assert [name for name in named if name not in err] == []


def test_a_run_after_a_verbose_one_is_silent_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_command(["check", "-v"])
    capfd.readouterr()
    run_command(["check"])
    assert capfd.readouterr().err == ""


# --- row text is private --------------------------------------------------------------------------------------------


def _bad_train(folder: Path) -> None:
    (folder / "more.jsonl").write_text(f'{{"text": "{MARKER}" {MARKER}}}\n"{MARKER}\n[1, {MARKER}]\n')


def _bad_eval(folder: Path) -> None:
    (folder / "eval.jsonl").write_text(f'{{"question": "{MARKER}" {MARKER}}}\n{{"question": "{_text(1)}"}}\n')


def _not_utf8(folder: Path) -> None:
    (folder / "more.jsonl").write_bytes(b'{"text": "' + MARKER.encode() + b' \xff\xfe"}\n')


def _cut_off(folder: Path) -> None:
    (folder / "more.jsonl").write_bytes(gzip.compress((folder / "more.jsonl").read_bytes())[:-20])


def _use(folder: Path, name: str, content: str) -> None:
    """One more training file, and the same content as the eval file."""
    (folder / name).write_text(content)
    (folder / f"eval-{name}").write_text(content)
    world.config(folder, train=f"[train.jsonl, {name}]", evals=f"eval-{name}")


def _open_quote(folder: Path) -> None:
    _use(folder, "x.csv", f'question,b\n{_text(1)},c\n"{_text(2)},d\n')


def _no_header(folder: Path) -> None:
    _use(folder, "x.csv", "".join(f"{i},{_text(i)}\n" for i in range(5)))


def _semicolons(folder: Path) -> None:
    _use(folder, "x.csv", "question;b\n" + "".join(f"{_text(i)};{i}\n" for i in range(5)))


def _broken_array(folder: Path) -> None:
    _use(folder, "x.json", f'[{{"question": "{_text(1)}"}}, {{"question": {MARKER}}}]')


def _plain_text(folder: Path) -> None:
    _use(folder, "x.txt", f"{_text(1)}\n\n{_text(2)}\n")


def _no_fields(folder: Path) -> None:
    config = folder / "evalspill.yaml"
    config.write_text(config.read_text().replace("  fields: [question]\n", ""))


def _skipped(folder: Path) -> None:
    _bad_train(folder)
    with (folder / "evalspill.yaml").open("a") as file:
        file.write("on_bad_record: skip\nmax_bad: 100%\n")


PRIVATE: list[Spoil] = [
    _leak, _bad_train, _bad_eval, _not_utf8, _cut_off, _open_quote, _no_header, _semicolons, _broken_array,
    _plain_text, _no_fields, _skipped,
]  # fmt: skip


@pytest.mark.parametrize("spoil", PRIVATE, ids=lambda spoil: spoil.__name__.strip("_"))
def test_no_command_prints_row_text(spoil: Spoil, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spoil(folder)
    data = sorted(path.name for path in folder.iterdir() if path.name != "evalspill.yaml")
    commands = [
        ["check"], ["check", "-v"], ["check", "--format", "json"], ["check", "-q"], ["validate"],
        *(["fields", name] for name in data),
        *(["init", name, "eval.jsonl", "-o", "out.yaml", "--force"] for name in data),
        *(["init", "train.jsonl", name, "-o", "out.yaml", "--force"] for name in data),
    ]  # fmt: skip
    told = []
    for command in commands:
        code = run_command(command)
        out, err = capfd.readouterr()
        if code not in (0, 1, 2, 3) or MARKER in out + err or not (out + err or "-q" in command):
            told.append((command, code, out + err))
    assert told == []
    assert not (folder / "out.yaml").exists() or MARKER not in (folder / "out.yaml").read_text()


def test_an_internal_error_of_the_real_program_prints_no_traceback(folder: Path) -> None:
    code = (
        "import evalspill_guard.pipeline as pipeline\n"
        "def fails(*_): raise ValueError(open('eval.jsonl').read())\n"
        "pipeline.run = fails\n"
        "from evalspill_guard.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, "check", "-v"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (4, "")
    assert not any(word in ended.stderr for word in (MARKER, "Traceback"))


# --- stdout that goes nowhere ---------------------------------------------------------------------------------------


def _to_a_closed_pipe(*arguments: str) -> tuple[int, str]:
    read, write = os.pipe()
    os.close(read)
    try:
        process = _process(arguments, stdout=write)
    finally:
        os.close(write)
    return _ended(process)


@pytest.mark.parametrize(
    ("code", "spoils", "form"), [(0, [], "text"), (1, [_leak], "json"), (3, [_missing], "text")], ids=_names
)
def test_a_reader_that_went_away_does_not_change_the_exit_code(
    code: int, spoils: list[Spoil], form: str, folder: Path
) -> None:
    for spoil in spoils:
        spoil(folder)
    assert _to_a_closed_pipe("check", "--format", form) == (code, "")


@pytest.mark.parametrize("arguments", [["schema"], ["--help"], ["fields", "eval.jsonl"]])
def test_nothing_but_the_gate_exits_one_when_its_reader_went_away(arguments: list[str], folder: Path) -> None:
    assert _to_a_closed_pipe(*arguments) == (0, "")


def test_a_config_that_is_wrong_stays_wrong_when_nobody_reads_of_the_right_one(folder: Path) -> None:
    (folder / "bad.yaml").write_text("version: 2\n")
    assert _to_a_closed_pipe("validate", "evalspill.yaml", "bad.yaml")[0] == 2


@pytest.mark.parametrize("command", ["doctor", "explain"])
def test_data_that_cannot_be_read_are_told_by_the_exit_code_alone(command: str, folder: Path) -> None:
    _missing(folder)
    assert _to_a_closed_pipe(command, *(["eval.jsonl#1", "--in-ci"] if command == "explain" else []))[0] == 3


@pytest.mark.parametrize(("engine", "code"), [("sys:exit", 2), ("os:_no_such", 2)])
def test_an_engine_that_leaves_is_no_reader_that_went_away(engine: str, code: int, folder: Path) -> None:
    assert run_command(["check", "--no-cache", "--engine", engine]) == code


def test_a_command_that_is_left_for_no_reason_is_a_fault(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalspill_guard.cli.run_scan", lambda *_, **__: sys.exit(0))
    assert run_command(["check"]) == 4


@pytest.mark.parametrize("arguments", [["check", "-c", "none.yaml"], ["check", "--surprise"]])
def test_an_error_that_nobody_reads_is_still_wrong_use(arguments: list[str], folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "evalspill_guard", *arguments]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=write, check=False)
    os.close(write)
    assert ended.returncode == 2


@pytest.mark.parametrize(("code", "spoils"), [(0, []), (1, [_leak])], ids=_names)
def test_a_closed_stdout_does_not_change_the_exit_code(code: int, spoils: list[Spoil], folder: Path) -> None:
    for spoil in spoils:
        spoil(folder)
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "evalspill_guard", "check"]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, "")


@pytest.mark.parametrize(("code", "spoil"), [(1, _leak), (2, _no_ignore), (3, _missing)])
def test_a_closed_stderr_does_not_change_the_exit_code(code: int, spoil: Spoil, folder: Path) -> None:
    spoil(folder)
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "evalspill_guard", "check"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == code


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_name_that_the_output_cannot_encode_does_not_change_the_exit_code(encoding: str, folder: Path) -> None:
    world.jsonl(folder / "éß日.jsonl", [{"text": _text(3)}])
    world.config(folder, train="éß日.jsonl")
    process = _process(["check"], stdout=subprocess.PIPE, PYTHONIOENCODING=encoding)
    assert _ended(process) == (1, "")
