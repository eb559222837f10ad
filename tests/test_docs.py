"""What the documentation says is so."""

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from evalspill_guard import __version__
from evalspill_guard.cli import cli
from evalspill_guard.config import load, parse
from evalspill_guard.errors import ExitCode

ROOT = Path(__file__).parent.parent
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|<(?:img|a)\b[^>]*\b(?:src|href)=\"([^\"]+)\"")
TEXTS = {".md", ".py", ".toml", ".yaml", ".yml", ".txt", ".cfg", ".sh", ".html", ".j2", ".json", ""}
OURS = ("evalspill_guard", "tests", "docs", "examples", "benchmarks", "ci", "templates", "scan", ".github")


def _blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language in languages]


def _commands(page: Path) -> Iterator[list[str]]:
    """Each line of a shell block as words, a prompt and comments left out."""
    for block in _blocks(page, "console", "sh", "shell", "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                yield words


def _unknown(words: list[str], command: click.Command = cli) -> list[str]:
    """The words after evalspill-guard that its help does not know: commands, and the options of the last one."""
    words = list(itertools.takewhile(lambda word: word not in (">", "|", "&&", ";"), words))
    if isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = command.commands.get(words[0])
        return words[:1] if below is None else _unknown(words[1:], below)
    known = {"-h", "--help"}.union(*(param.opts for param in command.params))
    return [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("check -c x.yaml --format=sarif > results.sarif", []),
        ("baseline create --reason x --surprise", ["--surprise"]),
        ("baseline surprise", ["surprise"]),
        ("surprise --help", ["surprise"]),
        ("--version", []),
        ("--surprise", ["--surprise"]),
    ],
)
def test_a_command_or_option_that_there_is_not_would_be_noticed(line: str, unknown: list[str]) -> None:
    assert _unknown(shlex.split(line)) == unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_shown_exists_with_its_options(page: Path) -> None:
    shown = [words[words.index("evalspill-guard") + 1 :] for words in _commands(page) if "evalspill-guard" in words]
    assert [words for words in shown if _unknown(words)] == []
    assert shown or page.name != "README.md"


def _shown_in_help(command: click.Command, name: str) -> Iterator[tuple[str, list[str]]]:
    """(name, words) of each example in the help of a command and of those below it."""
    text = command.help or ""
    for line in re.findall(r"^ *(evalspill-guard \S.*)$", text, re.MULTILINE):
        yield name, shlex.split(line)[1:]
    for below, one in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _shown_in_help(one, f"{name} {below}".strip())


def _all_commands(command: click.Command, name: str = "") -> Iterator[str]:
    yield name
    for below, one in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _all_commands(one, f"{name} {below}".strip())


def test_the_help_of_every_command_has_an_example_that_is_right() -> None:
    shown = list(_shown_in_help(cli, ""))
    assert sorted({name for name, _ in shown}) == sorted(_all_commands(cli))
    wrong = [(name, words) for name, words in shown if not " ".join(words).startswith(name)]
    assert wrong == []
    assert [words for name, words in shown if name and _unknown(words)] == []


def test_the_readme_names_every_command() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Commands")[2].partition("##")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {words.split()[0] for cell in rows for words in re.findall("`([^`]+)`", cell)} - {"update", "prune"}
    assert named == set(cli.commands)


def test_the_readme_gives_a_reason_for_every_dependency() -> None:
    page, project = (ROOT / "README.md").read_text(encoding="utf-8"), (ROOT / "pyproject.toml").read_text()
    tables = page.partition("## Dependencies")[2]
    listed = re.findall(r"^\| (\w+) \| \w", tables, re.MULTILINE)
    needed = re.search(r"^dependencies = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    assert needed is not None
    assert sorted(set(listed) - {"package", "extra"}) == re.findall(r'^    "(\w+)', needed[1], re.MULTILINE)
    extras = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", tables, re.MULTILINE))
    for extra, packages in re.findall(
        r"^(\w+) = \[(.*?)\]", project.partition("optional-dependencies]")[2].partition("\n[")[0], re.M | re.S
    ):
        if extra != "test":
            assert sorted(extras[extra].split(", ")) == sorted(re.findall(r'"(\w+)', packages)), extra


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    links = [one or other for one, other in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))]
    for path, _, anchor in (link.partition("#") for link in links if "#" in link and not re.match("[a-z]+:", link)):
        target = (page.parent / path if path else page).read_text(encoding="utf-8")
        assert anchor in map(_anchor, re.findall("^#+ (.*)$", target, re.MULTILINE)), (path, anchor)


def test_every_make_target_shown_exists() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shown = [words[1] for page in PAGES for words in _commands(page) if words[0] == "make"]
    assert set(shown) <= set(targets)
    assert "demo" in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    links = [one or other for one, other in LINK.findall(text)]
    local = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:|#|//", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_yaml_block_is_yaml_and_every_config_is_valid(page: Path) -> None:
    blocks = [(block, yaml.safe_load(block)) for block in _blocks(page, "yaml", "yml")]
    ours = [block for block, loaded in blocks if isinstance(loaded, dict) and {"train", "checks", "eval"} & set(loaded)]
    whole = [parse(block, page) for block in ours if "version:" in block]
    assert all(config.checks for config in whole)
    assert whole or page.name != "README.md"


def test_the_example_config_is_valid() -> None:
    assert [check.name for check in load(ROOT / "examples/evalspill.yaml").checks] == ["support-qa", "refund-policy"]


def test_the_readme_lists_every_exit_code() -> None:
    listed = re.findall(r"^\| (\d+) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code in listed] == sorted(ExitCode)


def test_the_newest_entry_of_the_changelog_and_the_package_have_one_version() -> None:
    newest = re.search(r"^## \[?v?(\d+\.\d+\.\d+\S*?)\]?(?:\s|$)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    package = re.search(r'^version = "([^"]+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert newest is not None
    assert package is not None
    assert (newest[1], package[1]) == (__version__, __version__)


def _own_texts() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in TEXTS)
    for name in OURS:
        for path in (ROOT / name).rglob("*"):
            made = {".venv", "__pycache__", "data", "evalspill-reports", "node_modules"}.intersection(path.parts)
            if path.is_file() and path.suffix in TEXTS and not made and path.stat().st_size < 1_000_000:
                yield path


def test_no_file_holds_a_path_of_the_machine_it_was_written_on() -> None:
    here = [re.escape(bytes(path)) for path in (ROOT, Path.home()) if len(path.parts) > 1]
    machine = re.compile(rb"(?<![\w.])(?:/(?:home|Users)/\w|(?:%s)(?![\w.]))" % b"|".join(here))
    assert [str(path.relative_to(ROOT)) for path in _own_texts() if machine.search(path.read_bytes())] == []
