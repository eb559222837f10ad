"""Arrow types and values in the words of JSON: which columns hold text, and what a value of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evalspill_guard.errors import Unreadable
from evalspill_guard.fields import Pairs
from evalspill_guard.paths import Each, Key, Step, Where

Ways = Sequence[tuple[Step, ...]]
"""How some paths go on from a place; an empty one ends here, and means all that is below."""


def arrow() -> Any:
    """The library. Raises Unreadable where it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise Unreadable("needs the extra: pip install 'evalspill-guard[parquet]'") from None
    return pyarrow


def below(steps: tuple[Step, ...], name: str) -> tuple[Step, ...] | None:
    """What is left of a path below a key; None where it leads elsewhere."""
    if not steps:
        return ()
    return steps[1:] if steps[0] == Key(name) else None


def needed_leaves(kind: Any, ways: Ways) -> list[bool]:
    """Whether each leaf column below a type is read, for paths that go on so."""
    types = arrow().types
    if isinstance(kind, arrow().BaseExtensionType):
        kind = kind.storage_type
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return needed_leaves(kind.value_type, ways)
    if types.is_union(kind):
        return [bool(ways)]
    if types.is_struct(kind):
        inner = [[way for way in (below(way, field.name) for way in ways) if way is not None] for field in kind]
        return [one for field, more in zip(kind, inner, strict=True) for one in needed_leaves(field.type, more)]
    if types.is_map(kind):  # a key that a path names is a value here
        more = [()] if ways else []
        keys, items = needed_leaves(kind.key_type, more), needed_leaves(kind.item_type, more)
        return [any(items)] * len(keys + items)  # of a map without its values the keys would be taken for values
    if _is_list(kind):
        return needed_leaves(kind.value_type, [more for way in ways for more in _of_elements(way)])
    return [() in ways and _is_text(kind)]


def _of_elements(way: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    if not way:
        return [()]
    step, rest = way[0], way[1:]
    if isinstance(step, Where):
        return [rest, (Key(step.key),)]
    return [rest] if isinstance(step, Each) or step.name.isdecimal() else []


def _is_list(kind: Any) -> bool:
    types = arrow().types
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(is_one(kind) for is_one in lists)


def _is_text(kind: Any) -> bool:
    types = arrow().types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    no_text = (types.is_temporal, types.is_interval, types.is_boolean, types.is_null)
    return not any(is_one(kind) for is_one in no_text)


def check_sound(batch: Any) -> None:
    """Raises an error of pyarrow for a batch that points outside of its data: reading its values could end the process.

    Text that is not UTF-8 and dates that are none are told, or passed over, value by value.
    """
    for column in batch.columns:
        column.validate()
        column.view(_stored(column.type)).validate(full=True)


def _stored(kind: Any) -> Any:
    """The type without what its values must be."""
    lib, types = arrow(), arrow().types
    if isinstance(kind, lib.BaseExtensionType):
        return _stored(kind.storage_type)
    if types.is_dictionary(kind):
        return lib.dictionary(kind.index_type, _stored(kind.value_type))
    if types.is_struct(kind):
        return lib.struct([_stored_field(field) for field in kind])
    if types.is_map(kind):
        return lib.map_(_stored(kind.key_type), _stored(kind.item_type))
    return _stored_list(kind) if _is_list(kind) else _stored_leaf(kind)


def _stored_field(field: Any) -> Any:
    return arrow().field(field.name, _stored(field.type))


def _stored_list(kind: Any) -> Any:
    lib, types, of_each = arrow(), arrow().types, _stored(kind.value_type)
    if types.is_fixed_size_list(kind):
        return lib.list_(of_each, kind.list_size)
    ways = ((types.is_list, lib.list_), (types.is_large_list, lib.large_list), (types.is_list_view, lib.list_view))
    return next((make for is_one, make in ways if is_one(kind)), lib.large_list_view)(of_each)


def _stored_leaf(kind: Any) -> Any:
    """Whatever is not told here, such as a union, stays as it is."""
    lib, types = arrow(), arrow().types
    if types.is_string(kind):
        return lib.binary()
    if types.is_large_string(kind):
        return lib.large_binary()
    if types.is_string_view(kind):
        return lib.binary_view()
    if types.is_decimal(kind):
        return lib.binary(kind.byte_width)
    if types.is_date(kind) or types.is_time(kind):
        return lib.int32() if kind.bit_width == 32 else lib.int64()
    return kind


def as_rows(first: int, batch: Any) -> Iterator[tuple[int, object, str]]:
    """(number, row as JSON would hold it, why it cannot be read) of each row, numbered from `first`."""
    try:
        rows = list(_plain_rows(batch))
    except UnicodeDecodeError:
        rows = []
    if rows:
        yield from ((number, row, "") for number, row in enumerate(rows, start=first))
        return
    for number in range(batch.num_rows):
        one = batch.slice(number, 1)
        try:
            yield first + number, next(iter(_plain_rows(one))), ""
        except UnicodeDecodeError:
            yield first + number, _lossy(one, first + number + 1), f"row {first + number + 1}: not UTF-8"


def _plain_rows(batch: Any) -> Iterator[object]:
    """Each row as JSON would hold it."""
    names = batch.schema.names
    columns = [_plain_values(column) for column in batch.columns]
    cells = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
    if len(set(names)) == len(names):
        return (dict(zip(names, row, strict=True)) for row in cells)
    return (Pairs(list(zip(names, row, strict=True))) for row in cells)


def _plain_values(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    plain = _conversion(column.type)
    return values if plain is None else [None if value is None else plain(value) for value in values]


def _conversion(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of this type one that JSON could hold; None where it is one."""
    types = arrow().types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _conversion(kind.value_type)
    if types.is_struct(kind):
        inner = {field.name: plain for field in kind if (plain := _conversion(field.type))}
        return (lambda row: {k: _apply(inner.get(k), v) for k, v in row.items()}) if inner else None
    if types.is_map(kind):
        key, item = _conversion(kind.key_type), _conversion(kind.item_type)
        return lambda pairs: _mapping([(str(_apply(key, k)), _apply(item, v)) for k, v in pairs])
    if _is_list(kind):
        of_each = _conversion(kind.value_type)
        return (lambda items: [_apply(of_each, one) for one in items]) if of_each else None
    return _conversion_of_leaf(kind)


def _conversion_of_leaf(kind: Any) -> Callable[[Any], Any] | None:
    types = arrow().types
    if types.is_float32(kind):
        return lambda value: float(str(np.float32(value)))  # as it is written: 0.1, not 0.10000000149011612
    if types.is_float16(kind):
        return lambda value: float(str(np.float16(value)))
    if types.is_decimal(kind):
        return lambda value: format(value, "f")
    binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    return _decoded if any(is_one(kind) for is_one in binary) else None


def _apply(plain: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if plain is None or value is None else plain(value)


def _mapping(pairs: list[tuple[str, object]]) -> object:
    values = dict(pairs)
    return values if len(values) == len(pairs) else Pairs(list(pairs))


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _lossy(row: Any, number: int) -> object:
    """A row whose strings are not all UTF-8: its columns, strings decoded with U+FFFD.

    Raises Unreadable where a string inside a list or the like is broken, since its text cannot be searched then.
    """
    types = arrow().types
    texts: list[tuple[str, object]] = []
    for name, column in zip(row.schema.names, row.columns, strict=True):
        if types.is_string(column.type) or types.is_large_string(column.type):
            raw = column.cast(arrow().large_binary())[0].as_py()
            texts.append((name, None if raw is None else raw.decode("utf-8", "replace")))
            continue
        try:
            texts.append((name, _plain_values(column)[0]))
        except UnicodeDecodeError:
            raise Unreadable(f"row {number}: a string inside its column {name!r} is not UTF-8: mend it") from None
    return Pairs(texts)
