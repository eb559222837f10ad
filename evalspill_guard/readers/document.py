"""JSON read whole: an array, an object that holds one, columns, or several values one after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from json.decoder import JSONDecodeError
from typing import Any

from evalspill_guard.errors import Unreadable
from evalspill_guard.fields import DECODER, Pairs, parse_path
from evalspill_guard.model import Record
from evalspill_guard.paths import Each, Key, Step
from evalspill_guard.readers.stream import BOM, RecordStream, undecodable
from evalspill_guard.text import words

_SEVERAL = "several arrays of objects, so that all of them would be one row: name one as records, in a check for each"
_LEAST_SEARCHED = 3  # words: no shorter row is looked for, so no shorter text beside the records matters
MOST_BYTES = 1_000_000_000
_SPACE = " \t\r\n"
_BLOCK = 1 << 20
_DEEP = "nested too deeply"
Found = tuple[int, int, object, int]


class Missing(str):
    """What stands in the place of elements that a `records` path does not lead to."""

    __slots__ = ()


class _Walker:
    """Steps through a JSON text and tells where each element begins and ends, in characters."""

    def __init__(self, text: str) -> None:
        self.text, self.arrays = text, 0

    def space(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in _SPACE:
            at += 1
        return at

    def value(self, at: int) -> tuple[object, int]:
        value, end = DECODER.raw_decode(self.text, at)
        return value, end

    def elements(self, at: int, inner: tuple[Any, ...]) -> Iterator[Found]:
        """The elements of the array at `at`; inner: the steps to the records below each. The end is in self.end."""
        group = self.arrays
        self.arrays += not inner
        at = self.space(at + 1)
        if self.text[at : at + 1] == "]":
            self.end = at + 1
            return
        while True:
            if inner:
                yield from self.below(at, inner)
                end = self.end
            else:
                value, end = self.value(at)
                yield at, end, value, group
            at = self.space(end)
            if self.text[at : at + 1] == "]":
                self.end = at + 1
                return
            at = self._comma(at)

    def _comma(self, at: int) -> int:
        if self.text[at : at + 1] != ",":
            raise JSONDecodeError("Expecting ',' delimiter", self.text, at)
        return self.space(at + 1)

    def below(self, at: int, steps: tuple[Any, ...]) -> Iterator[Found]:
        """The elements that the steps lead to, below the value at `at`."""
        step, opens = steps[0], self.text[at : at + 1]
        if isinstance(step, Each) and opens == "[":
            yield from self.elements(at, steps[1:])
        elif isinstance(step, Key) and opens == "{":
            yield from self._members(at, step, steps[1:])
        else:
            _, self.end = self.value(at)
            yield at, self.end, Missing(f"no {'array' if isinstance(step, Each) else 'object'}"), self.arrays

    def _members(self, at: int, step: Key, rest: tuple[Any, ...]) -> Iterator[Found]:
        begin, met = at, False
        at = self.space(at + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                raise JSONDecodeError("Expecting property name", self.text, at)
            name, end = self.value(at)
            at = self.space(end)
            if self.text[at : at + 1] != ":":
                raise JSONDecodeError("Expecting ':' delimiter", self.text, at)
            at = self.space(at + 1)
            if name == step.name:
                met = True
                yield from self.below(at, rest)
            else:
                _, self.end = self.value(at)
            at = self.space(self.end)
            if self.text[at : at + 1] != "}":
                at = self._comma(at)
                if self.text[at : at + 1] == "}":
                    raise JSONDecodeError("Expecting property name", self.text, at)
        self.end = at + 1
        if not met:
            yield begin, self.end, Missing(f"no key {step.name!r}"), self.arrays


class Document(RecordStream):
    """An element of the array, a column-oriented row, or one of several values."""

    format = "json"

    def __iter__(self) -> Iterator[Record]:
        fault = self._load()
        line, at, size = 1, 0, self._bom_size
        try:
            for begin, end, value, group in self._found():
                line += self.text.count("\n", at, begin)
                start = size + _bytes(self.text[at:begin])
                raw = self.text[begin:end]
                size, at, self.lines = start + _bytes(raw), end, line - 1
                yield self._record(line, start, size, raw, value, group)
                line += self.text.count("\n", begin, end)
        except JSONDecodeError as error:
            if fault is None:
                rest = self.text[at:]
                why = f"not JSON: {error.msg} (column {error.colno})"
                yield Record(error.lineno, size, size + _bytes(rest), [rest], None, why)
                if error.pos >= len(self.text.rstrip()) or error.msg.startswith("Unterminated"):
                    raise Unreadable("the file ends in the middle of a value: get a whole copy", error.lineno) from None
        except RecursionError:
            raise Unreadable(_DEEP, line) from None
        if fault := fault or self._doubt:
            raise fault
        self.lines = self.text.count("\n")

    _doubt: Unreadable | None = None

    def _record(self, line: int, start: int, end: int, raw: str, value: object, group: int) -> Record:
        if end - start > self.reading.max_record:
            why = f"above max_record ({self.reading.max_record} bytes)"
            return Record(line, start, end, [raw], None, why, group)
        if isinstance(value, Missing):
            return Record(line, start, end, [raw], None, f"{value} here, where records looks for its rows", group)
        try:
            return Record(line, start, end, self.select.leaves(value), self.name_of(value), None, group)
        except ValueError:
            return Record(line, start, end, [raw], None, _DEEP, group)

    def values(self) -> Iterator[object]:
        fault = self._load()
        with suppress(JSONDecodeError, RecursionError):
            yield from (value for _, _, value, _ in self._found() if not isinstance(value, Missing))
        if fault:
            raise fault

    _bom_size = 0
    text = ""

    def _load(self) -> Unreadable | None:
        """Read the whole text; what cuts it short is given back, since the elements before that still count."""
        data, fault = self._all_bytes()
        self._bom_size = len(BOM) if data.startswith(BOM) else 0
        inner = memoryview(data)[self._bom_size :]
        try:
            self.text = str(inner, "utf-8")
        except UnicodeDecodeError as error:
            self.text = str(inner[: error.start], "utf-8")
            line = 1 + self.text.count("\n")
            fault = fault or Unreadable(undecodable(error, self._bom_size), line)
        return fault

    def _all_bytes(self) -> tuple[bytearray, Unreadable | None]:
        data = bytearray()
        try:
            while block := self.source.stream.read1(_BLOCK):
                data += block
                if len(data) > MOST_BYTES:
                    raise Unreadable("above 1 GB, and JSON is read whole: write it as JSON Lines")
        except Unreadable as fault:
            return data, fault
        return data, None

    def _found(self) -> Iterator[Found]:
        walker = _Walker(self.text)
        at = walker.space(0)
        if self.reading.records:
            while at < len(self.text):  # one value, or several
                yield from walker.below(at, _steps_to_elements(self.reading.records))
                at = walker.space(walker.end)
        elif self.text[at : at + 1] == "[":
            yield from walker.elements(at, ())
            if walker.space(walker.end) != len(self.text):
                raise JSONDecodeError("Extra data", self.text, walker.space(walker.end))
        elif at < len(self.text):
            yield from self._objects(walker, at)

    def _objects(self, walker: _Walker, at: int) -> Iterator[Found]:
        value, end = walker.value(at)
        if walker.space(end) == len(self.text):
            yield from self._one_object(walker, at, end, value)
            return
        while True:  # several values one after another
            yield at, end, value, 0
            at = walker.space(end)
            if at == len(self.text):
                return
            value, end = walker.value(at)

    def _one_object(self, walker: _Walker, at: int, end: int, value: object) -> Iterator[Found]:
        columns = _columns(value, least=1 if self.role == "eval" else 2)
        if columns is not None:
            self.clean_possible = False
            yield from ((at, at, row, 0) for row in columns)
            return
        named = [name for name, inner in _items(value) if isinstance(inner, list) and any(map(_is_object, inner))]
        if len(named) == 1:
            yield from walker.below(at, (Key(named[0]), Each()))
            beside = Pairs([(name, inner) for name, inner in _items(value) if name != named[0]])
            if self.role == "train" and len(words("\n".join(self.select.leaves(beside)))) >= _LEAST_SEARCHED:
                yield end, end, beside, walker.arrays
        else:
            asked = {path.steps[:1] for path in map(parse_path, self.reading.fields or ())}
            if self.role == "eval" and sum((Key(name),) in asked for name in named) > 1:
                self._doubt = Unreadable(_SEVERAL, 1)
            self.format = "stream"
            yield at, end, value, 0


def _steps_to_elements(records: str) -> tuple[Step, ...]:
    """The steps of a `records` path; one that ends at the array's name means its elements."""
    steps = parse_path(records).steps
    return steps if steps[-1:] == (Each(),) else (*steps, Each())


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict | Pairs)


def _items(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, dict) else value.pairs if isinstance(value, Pairs) else []


def _columns(value: object, least: int) -> list[object] | None:
    """Rows of a column-oriented object: of equally long arrays, or of objects with the same keys; else None.

    One array alone may be one training record, but hardly one eval row: `least` is the number of columns that it takes.
    """
    items = _items(value)
    kinds = {type(inner) for _, inner in items}
    if not isinstance(value, dict) or len(items) < least or len(kinds) != 1:
        return None
    inner: Any = [column for _, column in items]
    head = inner[0]
    if kinds == {list} and len({len(column) for column in inner}) == 1 and not any(map(_is_object, head)):
        return [dict(zip(value, row, strict=True)) for row in zip(*inner, strict=True)]
    if kinds == {dict} and head and all(map(str.isdigit, head)) and all(list(c) == list(head) for c in inner):
        return [{name: column[key] for (name, _), column in zip(items, inner, strict=True)} for key in head]
    return None


def first_value_ends(line: str) -> bool | None:
    """True: the line is one JSON value; False: it is the beginning of one; None: it is no JSON."""
    try:
        json.loads(line)
    except JSONDecodeError as error:
        return False if error.pos >= len(line.rstrip()) else None
    except (ValueError, RecursionError):
        return None
    return True
