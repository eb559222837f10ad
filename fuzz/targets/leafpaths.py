"""Leaf paths: read and written back the same; a selection fails on no value, and is what the definition says."""

from __future__ import annotations

from evalspill_guard.fields import FieldError, Pairs, Selector, decode_pairs, parse_path, table
from evalspill_guard.paths import FieldPath, disjoint, format_path, literal, names, shape
from fuzz.targets.oracle import DEEPEST, depth, parsed, selected


def check(data: bytes) -> None:
    """A line with paths, separated by tabs; the rest is a JSON value."""
    head, _, raw = data.partition(b"\n")
    paths = tuple(head.decode("utf-8", "replace").split("\t"))
    read = [one for path in paths for one in _read(path)]
    try:
        value, tree = decode_pairs(raw), parsed(raw.decode())
    except (ValueError, RecursionError):
        return
    if depth(tree) >= DEEPEST:
        return
    if len(read) == len(paths):
        _selects(paths, value, raw, selected(tree, paths))
    if depth(tree) < 40:
        _table_names_every_leaf(value, raw, selected(tree, None))


def _read(text: str) -> list[FieldPath]:
    try:
        path = parse_path(text)
    except FieldError as error:
        assert str(error).startswith("field path "), error
        return []
    written = format_path(path.steps)
    assert parse_path(written).steps == path.steps, (text, written)
    assert format_path(parse_path(written).steps) == written, written
    assert path.text == text
    literal(path)
    names(shape([path]))
    assert not disjoint(path, path), text
    return [path]


def _selects(paths: tuple[str, ...], value: object, raw: bytes, expected: list[str]) -> None:
    selector = Selector(paths)
    assert selector.leaves(value) == expected, (paths, selector.leaves(value), expected)
    assert selector.from_json(raw) == expected, (paths, selector.from_json(raw), expected)


def _table_names_every_leaf(value: object, raw: bytes, every: list[str]) -> None:
    """The paths of the field table lead to every text of the record, and to nothing else."""
    paths = tuple(info.path for info in table([value]))
    assert sorted(set(Selector(paths).leaves(value) if paths else [])) == sorted(set(every)), (paths, every)
    for path in paths:
        assert Selector((path,)).from_json(raw), path
    assert isinstance(value, dict | list | Pairs) or len(paths) <= 1
