"""Write training files without the records that go: the bytes of the rest as they stand in the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import xxhash
import zstandard

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import Stamp
from evalspill_guard.pool import ScannedFile
from evalspill_guard.purge import Purged
from evalspill_guard.readers import kept_bytes, open_records
from evalspill_guard.readers.parquetclean import kept_rows
from evalspill_guard.readers.stream import BOM
from evalspill_guard.streams import CHANGED, Source, changed, compress, encode_like, open_raw, open_source
from evalspill_guard.training import Searched

_BLOCK = 1 << 20
_BY_LINE = ("jsonl", "tsv")  # a record is a line, so that nothing has to be parsed to know where it ends
_IMPOSSIBLE = "no record can be taken out of a file of this form: write it as JSON Lines"
_BREAK = b"\n\n"
_Span = tuple[int, int | None, bool]
"""Where a record begins and ends (None: with its line), and whether it begins inside a text that began before it."""


@dataclass(slots=True)
class Sizes:
    """Bytes read and bytes left, both unpacked."""

    read: int = 0
    left: int = 0


def is_emptied(one: Purged) -> bool:
    """Whether no record is left of a file."""
    return len(one.gone) == one.file.seen.records


def starved(purged: Iterable[Purged], checks: Iterable[Searched]) -> list[tuple[str, int, int]]:
    """(path, records without text, records) of what is left of files with fewer texts than the next scan asks for."""
    gone = {one.file.file.path: len(one.gone) for one in purged if one.gone}
    found: set[tuple[str, int, int]] = set()
    for check in checks:
        most = check.loaded.check.train.max_empty
        for seen in (file.seen for file in check.files if file.file.path in gone):
            left = seen.records - gone[seen.path]
            if left and (seen.empty == left or seen.empty > most * left):
                found.add((seen.path, seen.empty, left))
    return sorted(found, key=lambda one: one[0].encode())


def purged_bytes(one: Purged, sizes: Sizes) -> Iterator[bytes]:
    """The file as it is written; where nothing goes, the very bytes of the input.

    Raises Unreadable for a file that changed since it was scanned, and where a record cannot be taken out of it.
    """
    try:
        yield from _kept(one, sizes) if one.gone else _copy(one.file, sizes)
    except Unreadable as error:
        raise Unreadable(f"{one.file.file.path}: {error.what}", error.line) from None
    except OSError as error:
        raise Unreadable(f"{one.file.file.path}: could not be read: {error.strerror}") from None


def _kept(one: Purged, sizes: Sizes) -> Iterator[bytes]:
    starts = {number - 1: start for number, start in one.gone}
    with open_records(one.file.file, one.file.reading, "train") as stream:
        form, compression, encoding = stream.format, stream.source.compression, stream.source.encoding
        if not stream.clean_possible:
            raise Unreadable(_IMPOSSIBLE)
    if form == "parquet":
        return _parquet(one.file, starts, sizes)
    make = _document if form == "json" else _lines

    def pieces() -> Iterator[bytes]:
        return encode_like(_counted(make(one.file, form, starts, sizes), sizes), encoding)

    return _packed(pieces, compression)


def _packed(pieces: Callable[[], Iterator[bytes]], compression: str) -> Iterator[bytes]:
    """Compressed as the input was, and never held whole: the size in the header of zstd is counted first."""
    if compression != "zst":
        yield from compress(pieces(), compression)
        return
    packer = zstandard.ZstdCompressor().compressobj(size=sum(map(len, pieces())))
    yield from map(packer.compress, pieces())
    yield packer.flush()


def _counted(pieces: Iterable[bytes], sizes: Sizes) -> Iterator[bytes]:
    sizes.left = 0
    for piece in pieces:
        sizes.left += len(piece)
        yield piece


def _copy(file: ScannedFile, sizes: Sizes) -> Iterator[bytes]:
    hashed = xxhash.xxh3_128()
    with open_raw(file.file) as raw:
        while block := raw.read(_BLOCK):
            hashed.update(block)
            sizes.read += len(block)
            yield block
        same = not _stamps_differ(file, raw.stamp) and not changed(raw.stamp, raw.state())
    if not same or (len(file.shards) == 1 and hashed.hexdigest() != file.shards[0].digest):
        raise Unreadable(CHANGED)
    sizes.left = sizes.read


def _check_same(file: ScannedFile, source: Source) -> None:
    """Raises Unreadable where the file is not what was scanned."""
    whole = file.shards[0].digest if len(file.shards) == 1 else ""
    if _stamps_differ(file, source.stamp) or (whole and source.digest() != whole):
        raise Unreadable(CHANGED)
    source.check_unchanged()


def _stamps_differ(file: ScannedFile, stamp: Stamp) -> bool:
    return any(changed(shard.stamp, stamp) for shard in file.shards if shard.stamp)


def _lines(file: ScannedFile, form: str, starts: Mapping[int, int], sizes: Sizes) -> Iterator[bytes]:
    """A file of which no more than a block is held."""
    by_line: Iterable[_Span] = ((start, None, False) for start in starts.values())
    spans = by_line if form in _BY_LINE else _spans(file, starts)
    with open_source(file.file) as source:
        yield from _without(source.stream, spans, sizes)
        _check_same(file, source)


def _spans(file: ScannedFile, starts: Mapping[int, int]) -> Iterator[_Span]:
    """Where the records that go begin and end."""
    left, before = len(starts), 0
    with open_records(file.file, file.reading, "train") as stream:
        for ordinal, record in enumerate(stream):
            if ordinal in starts:
                if record.start != starts[ordinal]:
                    raise Unreadable(CHANGED)
                yield record.start, record.end, record.start < before
                left -= 1
                if not left:
                    return
            before = record.end


def _without(stream: Any, spans: Iterable[_Span], sizes: Sizes) -> Iterator[bytes]:
    """What stands outside of these spans, which may overlap; a byte order mark stays, an open span ends its line.

    Of a text that lost its middle, or its end, the rest is no part of what comes after it: a blank line parts them.
    """
    at, gap = 0, b""
    if stream.peek(len(BOM))[: len(BOM)] == BOM:
        at = len(BOM)
        yield stream.read(at)
    for start, end, inside in spans:
        if at < start:
            yield gap
            gap = _BREAK if inside else b""
        while at < start:
            at += len(block := _read(stream, start - at))
            yield block
        while end is not None and at < end:
            at += len(_read(stream, end - at))
        while end is None and (part := stream.readline(_BLOCK)):
            at += len(part)
            if part.endswith(b"\n"):
                break
    while block := stream.read(_BLOCK):
        at += len(block)
        yield gap + block
        gap = b""
    sizes.read = at


def _read(stream: Any, size: int) -> bytes:
    block: bytes = stream.read(min(size, _BLOCK))
    if not block:
        raise Unreadable(CHANGED)
    return block


class _Element(NamedTuple):
    start: int
    end: int
    group: int
    bad: bool


def _document(file: ScannedFile, _: str, starts: Mapping[int, int], sizes: Sizes) -> Iterator[bytes]:
    """A JSON document, which is read whole."""
    with open_records(file.file, file.reading, "train") as stream:
        elements = [_Element(one.start, one.end, one.group, one.bad is not None) for one in stream]
        form, possible = stream.format, stream.clean_possible
    if any(n >= len(elements) or elements[n].start != start for n, start in starts.items()):
        raise Unreadable(CHANGED)
    if not possible:
        raise Unreadable(_IMPOSSIBLE)
    if any(elements[number].end == elements[number].start for number in starts):
        raise Unreadable("text beside its array holds a flagged row and cannot be taken out: mend the file by hand")
    if any(one.bad for one in elements):
        raise Unreadable("holds a record that cannot be read, so none can be taken out: mend it first")
    with open_source(file.file) as source:
        data = source.stream.read()
        _check_same(file, source)
    sizes.read = len(data)
    yield from kept_bytes(form, data, elements, [number not in starts for number in range(len(elements))])


def _parquet(file: ScannedFile, starts: Mapping[int, int], sizes: Sizes) -> Iterator[bytes]:
    with open_source(file.file) as source:
        digest = source.digest()
        _check_same(file, source)
        sizes.read = source.size
    keep = [number not in starts for number in range(file.seen.records)]
    yield from _counted(kept_rows(file.file, digest, keep), sizes)
