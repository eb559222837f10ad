"""Open data files, local or remote, as one stream of UTF-8 bytes; digest what is read, and see whether it changed."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

import xxhash
import zstandard

from evalspill_guard.errors import Unreadable
from evalspill_guard.files import pointer_kind
from evalspill_guard.model import CHANGED as CHANGED
from evalspill_guard.model import DataFile, Stamp
from evalspill_guard.remote import RemoteRaw, info, is_remote, shown, stamp_of
from evalspill_guard.unpack import Guarded, Recoded, unpacked

_BLOCK = 1 << 18
_MAGIC = (
    (re.compile(rb"\x1f\x8b\x08"), "gz"),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bz2"),
    (re.compile(rb"\xfd7zXZ\x00"), "xz"),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "zst"),
)
_COLUMNAR = ((b"PAR1\x15", "parquet"), (b"PARE", "parquet"), (b"ARROW1\0\0", "arrow"), (b"\xff\xff\xff\xff", "arrow"))
_BARE_UTF_16 = re.compile(rb"[^\0]\0[^\0]\0|\0[^\0]\0[^\0]")
_PARQUET_END = 8


class LocalRaw(io.FileIO):
    """The raw bytes of a file of the file system."""

    ranges = True

    def __init__(self, path: str) -> None:
        super().__init__(path, "rb")
        self._first = self.state()

    @property
    def stamp(self) -> Stamp:
        """What told this state of the file from another one when it was opened."""
        return self._first

    @property
    def size(self) -> int:
        return self._first[0]

    def state(self) -> Stamp:
        """The same, as it is now."""
        return _state(os.fstat(self.fileno()))


Raw = LocalRaw | RemoteRaw


def open_raw(file: DataFile) -> Raw:
    """The bytes of a file as they are stored."""
    return RemoteRaw(file.real) if is_remote(file.real) else LocalRaw(file.real)


class _Watched(io.RawIOBase):
    """Raw bytes of a file; counts what passes, and digests those of the range from `first` to `last`.

    Of a file that grows it gives no byte beyond the size it had: a writer faster than this would never let it end.
    """

    def __init__(self, raw: Raw, first: int, last: int | None) -> None:
        self.raw, self.first, self.last = raw, first, sys.maxsize if last is None else last
        self._whole = sys.maxsize if raw.size is None else raw.size
        self.count, self.digested, self.hash = 0, 0, xxhash.xxh3_128()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.raw.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        at = self.raw.tell()
        size = int(self.raw.readinto(buffer) or 0)
        if at + size > self._whole:
            raise Unreadable(CHANGED)
        wanted = memoryview(buffer)[max(0, self.first - at) : max(0, min(size, self.last - at))]
        self.hash.update(wanted)
        self.digested += len(wanted)
        self.count += size
        return size


class Source:
    """A data file, open: `stream` gives decompressed UTF-8 (a UTF-8 BOM stays, UTF-16 is recoded without its BOM).

    `start` and `end` are the range of bytes that is wanted of an uncompressed file; the stream begins a byte early.
    Of a file that its first bytes show to be columnar, `columnar` is the format, and nothing is decoded.
    `beyond` are bytes outside of it on which its meaning hangs, too: they count in its digest.
    """

    def __init__(self, file: DataFile, start: int = 0, end: int | None = None) -> None:
        self.file, self.end = file, end
        self.raw = open_raw(file)
        try:
            self._open(start)
        except BaseException:
            self.raw.close()
            raise

    def _open(self, start: int) -> None:
        whole = self.raw.size
        last = whole if self.end is None or whole is None else min(self.end, whole)
        self._known_size = None if last is None else last - start
        self.beyond = b""
        self.raw.seek(max(0, start - 1))
        self._watched = _Watched(self.raw, start, last)
        self._packed = io.BufferedReader(self._watched, _BLOCK)
        self.compression, self.encoding, self.columnar = "", "utf-8", ""
        self.stream: Any = self._packed
        if not start:
            self._look_at_head(self._packed.peek(1024)[:1024])

    def _look_at_head(self, head: bytes) -> None:
        if pointer := pointer_kind(head):
            raise Unreadable(pointer)
        self.columnar = next((name for magic, name in _COLUMNAR if head.startswith(magic)), "")
        if self.columnar:
            return
        self.compression = next((name for magic, name in _MAGIC if magic.match(head)), "")
        if not self.compression and _is_cut_magic(self.file.path, head):
            raise Unreadable("the compressed file is cut off: get a whole copy", 1)
        if self.compression:
            self.stream = io.BufferedReader(Guarded(unpacked(self._packed, self.compression)), _BLOCK)
        self.encoding = _encoding(self.stream.peek(4)[:4])
        if self.encoding.startswith("utf-16"):
            self.stream.read(2)
            self.stream = io.BufferedReader(Guarded(Recoded(self.stream, self.encoding)), _BLOCK)

    @property
    def raw_bytes(self) -> int:
        """Bytes read so far, as they are stored."""
        return self._watched.count

    @property
    def size(self) -> int:
        """Bytes of the wanted range; where a server does not tell it, those read so far."""
        return self._watched.digested if self._known_size is None else self._known_size

    @property
    def seekable_lines(self) -> bool:
        """Whether offsets in the stream are offsets in the file."""
        return not self.compression and not self.encoding.startswith("utf-16") and self.raw.ranges

    def digest(self) -> str:
        """xxh3-128 of the wanted bytes; reads on to their end. Raises Unreadable where the file changed meanwhile."""
        while (self.end is None or self._watched.digested < self.size) and self._read_on():
            pass
        self.check_unchanged()
        if self._watched.digested != self.size:
            raise Unreadable(CHANGED)
        whole = self._watched.hash.copy()
        whole.update(self.beyond)
        return whole.hexdigest()

    def _read_on(self) -> bool:
        return bool(self._packed.read(_BLOCK))

    def check_unchanged(self) -> None:
        """Raises Unreadable where the file is not the one that was opened, or was written to since."""
        try:
            now = file_stamp(self.file)
        except OSError:
            raise Unreadable(CHANGED) from None
        if changed(self.stamp, now) or changed(now, self.raw.state()):
            raise Unreadable(CHANGED)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.raw.close()

    @property
    def stamp(self) -> Stamp:
        """What tells this state of the file from another one without reading it."""
        return self.raw.stamp


def _state(known: os.stat_result) -> Stamp:
    return known.st_size, known.st_mtime_ns, known.st_ctime_ns, known.st_ino


def changed(before: Stamp, now: Stamp) -> bool:
    """Whether these are two states of a file; new links to it or new permissions (ctime) are no change."""
    return before[:2] + before[3:] != now[:2] + now[3:]


def file_stamp(file: DataFile) -> Stamp:
    """The stamp of a file as it is now; raises OSError where it cannot be told."""
    if not is_remote(file.real):
        return _state(Path(file.real).stat())
    try:
        return stamp_of(info(file.real))
    except Unreadable as error:
        raise OSError(error.what) from None


def file_size(file: DataFile) -> int:
    """The bytes of a file as it is now; 0 where nobody can tell."""
    try:
        return file_stamp(file)[0]
    except OSError:
        return 0


def identity(file: DataFile) -> str:
    """The same for two names of one file, whatever links lie between them."""
    return shown(file.real) if is_remote(file.real) else os.path.realpath(file.real)


def footer(raw: Any) -> bytes:
    """The last part of a Parquet file, without which no other part of it can be read; of any other file nothing."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - _PARQUET_END))
    length, magic = int.from_bytes(raw.read(4), "little"), raw.read(4)
    if magic != b"PAR1" or length > size - _PARQUET_END:
        return b""
    raw.seek(size - _PARQUET_END - length)
    return bytes(raw.read(length))


def range_digest(file: DataFile, start: int, end: int | None) -> str:
    """xxh3-128 of a range of a file's bytes, as `Source.digest` tells it; an OSError for what is not here to be read.

    A remote file would be fetched once to know whether it has to be fetched.
    """
    if is_remote(file.real):
        raise OSError("not on this machine")
    with open(file.real, "rb") as stream:  # noqa: PTH123
        beyond = b"" if end is None else footer(stream)
        stream.seek(start)
        left = -1 if end is None else end - start
        digest = xxhash.xxh3_128()
        while left and (block := stream.read(_BLOCK if left < 0 else min(left, _BLOCK))):
            digest.update(block)
            left -= len(block) if left > 0 else 0
    digest.update(beyond)
    return digest.hexdigest()


def _is_cut_magic(name: str, head: bytes) -> bool:
    """Whether a file that calls itself compressed holds less than the first bytes of that."""
    begins = {".gz": b"\x1f\x8b\x08", ".bz2": b"BZh91AY&SY", ".xz": b"\xfd7zXZ\0", ".zst": b"\x28\xb5\x2f\xfd"}
    whole = begins.get(PurePosixPath(name.lower()).suffix, b"")
    if whole.startswith(b"BZh") and head[3:4].isdigit():
        whole = head[:4] + whole[4:]
    return 0 < len(head) < len(whole) and whole.startswith(head)


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise Unreadable("UTF-32: write it as UTF-8", 1)
    if _BARE_UTF_16.match(head):
        raise Unreadable("UTF-16 without a byte order mark: write it as UTF-8", 1)
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    return "utf-16-be" if head.startswith(codecs.BOM_UTF16_BE) else "utf-8"


def open_source(file: DataFile, start: int = 0, end: int | None = None) -> Source:
    """Open a data file; raises Unreadable for a pointer, OSError where it cannot be opened."""
    return Source(file, start, end)


def compress(pieces: Iterable[bytes], compression: str) -> Iterator[bytes]:
    """Compressed as the input was, piece by piece; the same pieces give the same bytes."""
    if not compression:
        yield from pieces
        return
    if compression == "zst":  # held whole, since some readers need the size that a frame's header can give
        yield zstandard.ZstdCompressor().compress(b"".join(pieces))
        return
    packers: dict[str, Callable[[], Any]] = {
        "gz": lambda: zlib.compressobj(9, wbits=31),
        "bz2": bz2.BZ2Compressor,
        "xz": lzma.LZMACompressor,
    }
    packer = packers[compression]()
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def encode_like(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """UTF-8 in the encoding that the input had."""
    if not encoding.startswith("utf-16"):
        yield from pieces
        return
    yield codecs.BOM_UTF16_LE if encoding.endswith("le") else codecs.BOM_UTF16_BE
    decoder = codecs.getincrementaldecoder("utf-8")()
    for piece in pieces:
        yield decoder.decode(piece).encode(encoding)
    yield decoder.decode(b"", final=True).encode(encoding)
