"""Compressed or UTF-16 bytes as plain UTF-8, in bounded memory; a fault is told after the bytes before it."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
from collections.abc import Callable
from typing import Any, Protocol

import zstandard
from isal import igzip_lib

from evalspill_guard.errors import Unreadable

_BLOCK = 1 << 18
_MOST_WINDOW = 1 << 31
_FED = 1 << 14  # packed bytes handed on at once; small, since what follows the end of a member is copied
_FED_ZST = 1 << 11  # four bytes may stand for 128 KiB, so that this much never unpacks to more than 64 MiB


class Readable(Protocol):
    """Anything that bytes are read from."""

    def read1(self, size: int, /) -> bytes: ...


class Recoded:
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


class Guarded(io.RawIOBase):
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


def unpacked(stream: Readable, compression: str) -> Readable:
    """What a compressed stream holds: gz, bz2, xz or zst, with all members."""
    if compression == "zst":
        return _Members(stream, _ZstFrame, _FED_ZST)
    units: dict[str, Callable[[], Any]] = {
        "gz": lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
        "bz2": bz2.BZ2Decompressor,
        "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_WINDOW),
    }
    return _Members(stream, units[compression], _FED)
