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
from typing import Any, Protocol

import xxhash
import zstandard
from isal import igzip_lib

from evalspill_guard.errors import Unreadable
from evalspill_guard.files import pointer_kind
from evalspill_guard.model import CHANGED as CHANGED
from evalspill_guard.model import DataFile, Stamp
from evalspill_guard.remote import RemoteRaw, info, is_remote, shown, stamp_of

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
_MOST_WINDOW = 1 << 31
_FED = 1 << 14  # packed bytes handed on at once; small, since what follows the end of a member is copied
_FED_ZST = 1 << 11  # four bytes may stand for 128 KiB, so that this much never unpacks to more than 64 MiB


class Readable(Protocol):
    """Anything that bytes are read from."""

    def read1(self, size: int, /) -> bytes: ...


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
    """Raw bytes of a file; counts what passes, and digests those of the range from `first` to `last`."""

    def __init__(self, raw: Raw, first: int, last: int | None) -> None:
        self.raw, self.first, self.last = raw, first, sys.maxsize if last is None else last
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
        wanted = memoryview(buffer)[max(0, self.first - at) : max(0, min(size, self.last - at))]
        self.hash.update(wanted)
        self.digested += len(wanted)
        self.count += size
        return size


class _Recoded:
    """UTF-16 as UTF-8, from after its byte order mark."""

    def __init__(self, inner: Readable, encoding: str) -> None:
        self.inner, self.decoder = inner, codecs.getincrementaldecoder(encoding)("strict")
        self.taken, self.ready = len(codecs.BOM_UTF16), io.BytesIO()
        self.fault: Unreadable | None = None

    def read1(self, size: int) -> bytes:
        """What is ready, at most `size` bytes; a unit that cannot be decoded is told after the text before it."""
        while not (piece := self.ready.read(size)):
            if self.fault:
                raise self.fault
            block = self.inner.read1(_BLOCK)
            self.taken += len(block)
            self.ready = io.BytesIO(self._decoded(block).encode())
            if not (block or self.fault):
                return b""
        return piece

    def _decoded(self, block: bytes) -> str:
        try:
            return self.decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = self.taken - len(error.object) + error.start
            self.fault = Unreadable(f"not UTF-16 at byte {place}: {error.reason}")
            return error.object[: error.start].decode(error.encoding)


class _Guarded(io.RawIOBase):
    """Turns what decompressors and decoders raise into Unreadable, told after the bytes before it."""

    def __init__(self, inner: Readable) -> None:
        self.inner, self.lines = inner, 0
        self.fault: Unreadable | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the whole buffer where there is that much, so that a look ahead never depends on the compression."""
        size = 0
        while size < len(buffer) and (block := self._read(len(buffer) - size)):
            buffer[size : size + len(block)] = block
            size += len(block)
        if self.fault and not size:
            raise self.fault
        return size

    def _read(self, size: int) -> bytes:
        if self.fault:
            return b""
        try:
            block = self.inner.read1(size)
        except Exception as error:  # each library has its own
            self.fault = Unreadable(_what_broke(error), self.lines + 1)
            return b""
        self.lines += block.count(b"\n")
        return block


def _what_broke(error: Exception) -> str:
    if isinstance(error, Unreadable):
        return error.what
    if isinstance(error, EOFError):
        return "the compressed file is cut off: get a whole copy"
    return f"could not be read or unpacked: {type(error).__name__}"


class _Members:
    """The data of all members, streams or frames of a compressed file; zero bytes between and after them are padding.

    One that is cut off is an EOFError, what is no member an error of the library.
    """

    def __init__(self, stream: Readable, new: Callable[[], Any], fed: int) -> None:
        self.stream, self.new, self.fed = stream, new, fed
        self.unit: Any = None
        self.packed, self.ready = b"", io.BytesIO()

    def read1(self, size: int) -> bytes:
        """What is ready, at most `size` bytes."""
        while not (piece := self.ready.read(size)):
            if self.unit is None and not self._begin():
                return b""
            self.ready = io.BytesIO(self._unpack(size))
        return piece

    def _begin(self) -> bool:
        """Whether another member follows."""
        while not (rest := self.packed.lstrip(b"\0")):
            self.packed = self.stream.read1(self.fed)
            if not self.packed:
                return False
        self.packed, self.unit = rest, self.new()
        return True

    def _unpack(self, size: int) -> bytes:
        if self.unit.needs_input and not self.packed:
            self.packed = self.stream.read1(self.fed)
            if not self.packed:
                raise EOFError
        data: bytes = self.unit.decompress(self.packed, size)
        self.packed = b""
        if self.unit.eof:
            self.packed, self.unit = self.unit.unused_data, None
        return data


class _ZstFrame:
    """One zstd frame, with the interface that the other decompressors have; it unpacks all it is given at once."""

    needs_input = True

    def __init__(self) -> None:
        library = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
        self._unit = library.decompressobj(write_size=1 << 14)

    @property
    def eof(self) -> bool:
        return self._unit.eof

    @property
    def unused_data(self) -> bytes:
        return self._unit.unused_data

    def decompress(self, data: bytes, _: int) -> bytes:
        """Raises ZstdError for what is no frame, or one whose window is above 2 GiB."""
        return self._unit.decompress(data)


def _unpacked(stream: Readable, compression: str) -> Readable:
    if compression == "zst":
        return _Members(stream, _ZstFrame, _FED_ZST)
    units: dict[str, Callable[[], Any]] = {
        "gz": lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
        "bz2": bz2.BZ2Decompressor,
        "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_WINDOW),
    }
    return _Members(stream, units[compression], _FED)


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
            self.stream = io.BufferedReader(_Guarded(_unpacked(self._packed, self.compression)), _BLOCK)
        self.encoding = _encoding(self.stream.peek(4)[:4])
        if self.encoding.startswith("utf-16"):
            self.stream.read(2)
            self.stream = io.BufferedReader(_Guarded(_Recoded(self.stream, self.encoding)), _BLOCK)

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
