"""Modules import in one direction only."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "evalspill_guard"
LAYERS = (
    ("__main__",),
    ("cli",),
    ("cli_baseline", "cli_purge", "cli_setup"),
    ("cli_options",),
    ("terminal",),
    ("setup", "pipeline", "explain", "doctor"),
    ("purgewriter",),
    ("purgefiles",),
    ("purge",),
    ("training",),
    ("loading", "estimate", "guess"),
    ("tables",),
    ("repository",),
    ("gather", "reports", "baseline", "baselinefile"),
    ("config",),
    ("kinds", "yamlfile"),
    ("scan",),
    ("executors",),
    ("pool", "evalset", "evidence", "engine", "cache"),
    ("holding", "known"),
    ("aim", "scanner", "indexfile"),
    ("readers",),
    ("scoring",),
    ("indexing",),
    ("index", "files", "streams", "remote", "unpack", "proposal"),
    ("fields",),
    ("fieldtable",),
    ("jsontext", "paths"),
    ("kernel",),
    ("text",),
    ("model",),
    ("durable", "errors", "sink", "checkout", "__init__"),
)
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}


def _module(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evalspill_guard"):
            parts = (node.module or "").split(".")
            names |= {parts[1]} if len(parts) > 1 else {"__init__"}
    return names


def test_every_module_has_a_layer() -> None:
    assert {_module(path) for path in PACKAGE.rglob("*.py")} == set(RANK)


def test_modules_import_only_from_their_own_layer_or_below() -> None:
    upward = [
        (path.name, name)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in _imports(path)
        if name != "__init__" and RANK[name] < RANK[_module(path)]
    ]
    assert upward == []


def test_only_the_command_line_prints_or_exits() -> None:
    calls = [
        path.name
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "exit")
    ]
    assert calls == []


def test_only_the_command_line_and_what_it_shows_know_click() -> None:
    known = [
        p.name for p in sorted(PACKAGE.rglob("*.py")) if re.search(r"^\s*(import|from) click", p.read_text(), re.M)
    ]
    assert known == ["cli.py", "cli_baseline.py", "cli_options.py", "cli_purge.py", "cli_setup.py", "terminal.py"]
