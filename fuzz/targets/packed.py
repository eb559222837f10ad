"""Compressed streams: the bytes that the standard library gives, or an error; never more at once than was asked for."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import zstandard

from evalspill_guard.errors import Unreadable
from evalspill_guard.unpack import Guarded, unpacked
from fuzz.targets.common import choose

KINDS = ("gz", "bz2", "xz", "zst")
MOST = 1 << 24
_ASKED = 4096
_PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda plain: gzip.compress(plain, 6, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def check(data: bytes) -> None:
    """One byte for the kind, one for how the stream is made of the rest: as it is, or packed and then damaged."""
    kind, data = choose(data, KINDS)
    how, data = choose(data, (_as_it_is, _members, _edited, _padded, _cut, _raw_deflate))
    packed = how(kind, data)
    plain, fault = _read(kind, packed)
    if len(plain) > MOST:
        return
    expected = _by_library(kind, packed)
    if fault is None:
        assert expected == plain, (kind, packed, plain, expected)
    elif expected is not None:
        assert fault.line == 1 + plain.count(b"\n"), fault
        assert expected.startswith(plain) or plain.startswith(expected), (kind, packed)
    if how in (_members, _padded):
        assert fault is None, fault


def _as_it_is(_: str, data: bytes) -> bytes:
    return data


def _members(kind: str, data: bytes) -> bytes:
    """A member for each line, the empty ones too."""
    return b"".join(map(_PACK[kind], data.split(b"\n")))


def _padded(kind: str, data: bytes) -> bytes:
    return _PACK[kind](data) + bytes(4 * (len(data) % 5))


def _edited(kind: str, data: bytes) -> bytes:
    """Some bytes exchanged: the first one says how many, two for each say where and by what."""
    count = (data[0] if data else 0) % 4
    edits, plain = data[1 : 1 + 2 * count], data[1 + 2 * count :]
    packed = bytearray(_PACK[kind](plain))
    for place, value in zip(edits[::2], edits[1::2], strict=False):
        packed[place % len(packed)] = value
    return bytes(packed)


def _cut(kind: str, data: bytes) -> bytes:
    return _PACK[kind](data[1:])[: -1 - (data[0] if data else 0)]


def _raw_deflate(_: str, data: bytes) -> bytes:
    """Deflated data of any kind inside a right gzip frame, so that its sum does not hide what differs."""
    unit = zlib.decompressobj(-15)
    try:
        plain = unit.decompress(data, MOST)
    except zlib.error:
        plain = b""
    body = data[: len(data) - len(unit.unused_data)]
    end = zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
    return b"\x1f\x8b\x08" + bytes(7) + body + end


def _read(kind: str, packed: bytes) -> tuple[bytes, Unreadable | None]:
    found, stream = bytearray(), Guarded(unpacked(io.BufferedReader(io.BytesIO(packed)), kind))  # type: ignore[arg-type]
    buffer = bytearray(_ASKED)
    try:
        while (size := stream.readinto(buffer)) and len(found) <= MOST:
            found += buffer[:size]
    except Unreadable as fault:
        return bytes(found), fault
    return bytes(found), None


def _by_library(kind: str, packed: bytes) -> bytes | None:
    """All members, by the standard library (zstd: by its streaming reader); None where it finds a fault."""
    new: Callable[[], Any] = {
        "gz": lambda: zlib.decompressobj(31),
        "bz2": bz2.BZ2Decompressor,
        "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
        "zst": lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(),
    }[kind]
    plain = b""
    while packed := packed.lstrip(b"\0"):
        unit = new()
        try:
            plain += unit.decompress(_without_reserved_flags(packed) if kind == "gz" else packed)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError):
            return None
        if not unit.eof:
            return None
        packed = unit.unused_data
    return plain


def _without_reserved_flags(member: bytes) -> bytes:
    """zlib refuses three bits of the header that say nothing of the data; what reads the data may pass them over."""
    return member[:3] + bytes([member[3] & 0x1F]) + member[4:] if len(member) > 3 else member
