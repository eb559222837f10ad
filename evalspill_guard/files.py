"""Find data files, tell pointers from data, and open them as one stream of UTF-8 bytes."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import xxhash
import zstandard
from isal import igzip

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Problem

_BLOCK = 1 << 18
_GLOB = re.compile(r"[*?\[{]")
_MAGIC = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zst"))


def expand(patterns: Iterable[str], base: Path, exclude: Collection[Path]) -> tuple[list[DataFile], list[Problem]]:
    """The files that globs match, sorted by the bytes of their path, each file once; and what matches nothing."""
    wanted = [one for pattern in patterns for one in _braces(pattern) if not pattern.startswith("!")]
    refused = [_matcher(one) for pattern in patterns if pattern.startswith("!") for one in _braces(pattern[1:])]
    own = [os.path.realpath(path) for path in exclude]
    found: dict[str, DataFile] = {}
    problems: list[Problem] = []
    for pattern in wanted:
        matches = [p for p in _matches(pattern, base) if not any(m(p) for m in refused) and not _is_own(p, base, own)]
        problems.extend(_problem(path, base) for path in matches if _fault(base / path))
        good = [path for path in matches if not _fault(base / path)]
        if not matches:
            problems.append(Problem(_shown(pattern), None, _why_nothing(pattern, base)))
        found.update((path, DataFile(_shown(path), str(base / path))) for path in good)
    return _each_once(sorted(found.values(), key=lambda file: os.fsencode(file.path))), problems


def _braces(pattern: str) -> list[str]:
    """`{a,b}` spelt out."""
    inner = re.search(r"\{([^{}]*)\}", pattern)
    if not inner:
        return [pattern]
    head, tail = pattern[: inner.start()], pattern[inner.end() :]
    return [spelt for option in inner.group(1).split(",") for spelt in _braces(head + option + tail)]


@lru_cache(maxsize=256)
def _compiled(part: str) -> re.Pattern[str]:
    import fnmatch

    return re.compile(fnmatch.translate(part))


def _fits(name: str, part: str) -> bool:
    hidden = name.startswith(".") and not part.startswith(".")
    return not hidden and _compiled(part).match(name) is not None


def _parts_match(path: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    if not parts:
        return not path
    if parts[0] == "**":
        return any(_parts_match(path[skip:], parts[1:]) for skip in range(len(path) + 1))
    return bool(path) and _fits(path[0], parts[0]) and _parts_match(path[1:], parts[1:])


def _matcher(pattern: str) -> Callable[[str], bool]:
    parts = tuple(_clean(pattern).split("/"))
    return lambda path: _parts_match(tuple(path.split("/")), parts)


def _clean(path: str) -> str:
    return "/".join(part for number, part in enumerate(path.split("/")) if (part or not number) and part != ".")


def _matches(pattern: str, base: Path) -> list[str]:
    pattern = _clean(pattern)
    if not _GLOB.search(pattern):
        return [pattern] if os.path.lexists(base / pattern) else []
    parts = pattern.split("/")
    fixed = next(number for number, part in enumerate(parts) if _GLOB.search(part))
    root = "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else "")
    return sorted(_walk(base, root, tuple(parts[fixed:]), frozenset()))


def _walk(base: Path, folder: str, parts: tuple[str, ...], seen: frozenset[str]) -> set[str]:
    """Files below a folder that match; a folder is not entered again below itself, so that links cannot loop."""
    real = os.path.realpath(base / folder)
    if real in seen:
        return set()
    try:
        entries = list(os.scandir(base / folder if folder else base))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    found: set[str] = set()
    for entry in entries:
        path = f"{folder.rstrip('/')}/{entry.name}" if folder else entry.name
        if entry.is_dir():
            for rest in _rests(entry.name, parts):
                found |= _walk(base, path, rest, seen | {real})
        elif _parts_match((entry.name,), parts):
            found.add(path)
    return found


def _rests(name: str, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What is left to match below a folder of this name."""
    if not parts:
        return []
    if parts[0] == "**":
        return ([parts] if not name.startswith(".") else []) + _rests(name, parts[1:])
    return [parts[1:]] if _fits(name, parts[0]) and len(parts) > 1 else []


def _is_own(path: str, base: Path, own: Collection[str]) -> bool:
    real = os.path.realpath(base / path)
    return any(real == one or real.startswith(one + os.sep) for one in own)


def _fault(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        annex = path.is_symlink() and ".git/annex" in str(path.readlink())
        return (
            "a git-annex pointer without its data: run `git annex get`"
            if annex
            else f"cannot be read: {error.strerror}"
        )
    if stat.S_ISDIR(mode):
        return "is a folder: write a glob such as **/*.jsonl below it"
    return "" if stat.S_ISREG(mode) else "is not a regular file"


def _problem(path: str, base: Path) -> Problem:
    return Problem(_shown(path), None, _fault(base / path))


def _why_nothing(pattern: str, base: Path) -> str:
    dvc = _matches(pattern + ".dvc", base)
    return "matches no file, but a DVC pointer: run `dvc pull`" if dvc else "matches no file"


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _each_once(files: Iterable[DataFile]) -> list[DataFile]:
    once: dict[tuple[int, int], DataFile] = {}
    for file in files:
        known = Path(file.real).stat()
        once.setdefault((known.st_dev, known.st_ino), file)
    return list(once.values())


def pointer_kind(head: bytes) -> str | None:
    """What to do when a file is only a pointer to its data; None for data."""
    if head.startswith((b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")):
        return "a Git LFS pointer instead of data: run `git lfs pull`"
    if head.startswith(b"/annex/objects/") or head.startswith(b".git/annex/objects/"):
        return "a git-annex pointer instead of data: run `git annex get`"
    return None


class Readable(Protocol):
    """Anything that bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


class _Watched(io.RawIOBase):
    """Raw bytes of a file; counts and digests what passes."""

    def __init__(self, raw: io.FileIO) -> None:
        self.raw, self.count, self.hash = raw, 0, xxhash.xxh3_128()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.raw.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        size = self.raw.readinto(buffer)
        self.hash.update(memoryview(buffer)[:size])
        self.count += size
        return int(size)


class _Recoded(io.RawIOBase):
    """UTF-16 as UTF-8."""

    def __init__(self, inner: Readable, encoding: str) -> None:
        self.inner, self.decoder, self.waiting = inner, codecs.getincrementaldecoder(encoding)("strict"), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.waiting:
            block = self.inner.read(_BLOCK)
            self.waiting = self.decoder.decode(block, final=not block).encode()
            if not block:
                break
        size = min(len(buffer), len(self.waiting))
        buffer[:size], self.waiting = self.waiting[:size], self.waiting[size:]
        return size


class _Guarded(io.RawIOBase):
    """Turns what decompressors and decoders raise into Unreadable."""

    def __init__(self, inner: Readable) -> None:
        self.inner, self.lines = inner, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self.inner.read(len(buffer))
        except EOFError:
            raise Unreadable("the compressed file is cut off: get a whole copy", self.lines + 1) from None
        except UnicodeDecodeError as error:
            raise Unreadable(f"not UTF-16: {error.reason}", self.lines + 1) from None
        except Exception as error:  # each library has its own
            raise Unreadable(f"could not be read or unpacked: {type(error).__name__}", self.lines + 1) from None
        buffer[: len(block)] = block
        self.lines += block.count(b"\n")
        return len(block)


def _unpacked(stream: Readable, compression: str) -> Readable:
    openers: dict[str, Callable[[Any], Any]] = {"gz": igzip.open, "bz2": bz2.open, "xz": lzma.open, "zst": _Zst}
    unpacked: Readable = openers[compression](stream)
    return unpacked


class _Zst:
    """All frames; a frame that is cut off is an EOFError, which the library's own reader does not tell."""

    def __init__(self, stream: Readable) -> None:
        self.stream, self.out = stream, b""
        self.unit: zstandard.ZstdDecompressionObj | None = None

    def read(self, size: int) -> bytes:
        while not self.out:
            block = self.stream.read(_BLOCK)
            if not block:
                if self.unit is not None:
                    raise EOFError
                return b""
            self._feed(block)
        taken, self.out = self.out[:size], self.out[size:]
        return taken

    def _feed(self, block: bytes) -> None:
        parts = []
        while block:
            if self.unit is None:
                self.unit = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            parts.append(self.unit.decompress(block))
            if not self.unit.eof:
                break
            block, self.unit = self.unit.unused_data, None
        self.out = b"".join(parts)


class Source:
    """A data file, open: `stream` gives decompressed UTF-8 (a UTF-8 BOM stays, UTF-16 is recoded without its BOM)."""

    def __init__(self, file: DataFile, start: int = 0) -> None:
        self.file = file
        self._raw = io.FileIO(file.real, "rb")
        try:
            self._open(start)
        except BaseException:
            self._raw.close()
            raise

    def _open(self, start: int) -> None:
        self._before = os.fstat(self._raw.fileno())
        self.size = self._before.st_size
        self._raw.seek(start)
        self._watched = _Watched(self._raw)
        self._packed = io.BufferedReader(self._watched, _BLOCK)
        self.compression, self.encoding = "", "utf-8"
        self.stream: Any = self._packed
        if not start:
            self._look_at_head(self._packed.peek(1024)[:1024])

    def _look_at_head(self, head: bytes) -> None:
        if pointer := pointer_kind(head):
            raise Unreadable(pointer)
        self.compression = next((name for magic, name in _MAGIC if head.startswith(magic)), "")
        if self.compression:
            self.stream = io.BufferedReader(_Guarded(_unpacked(self._packed, self.compression)), _BLOCK)
        self.encoding = _encoding(self.stream.peek(4)[:4])
        if self.encoding.startswith("utf-16"):
            self.stream.read(2)
            self.stream = io.BufferedReader(_Guarded(_Recoded(self.stream, self.encoding)), _BLOCK)

    @property
    def raw_bytes(self) -> int:
        """Bytes read from disk so far."""
        return self._watched.count

    @property
    def seekable_lines(self) -> bool:
        """Whether offsets in the stream are offsets in the file."""
        return not self.compression and not self.encoding.startswith("utf-16")

    def digest(self) -> str:
        """xxh3-128 of the file's bytes; reads on to its end. Raises Unreadable where the file changed meanwhile."""
        while self._packed.read(_BLOCK):
            pass
        now = Path(self.file.real).stat()
        if (now.st_size, now.st_mtime_ns, now.st_ino) != (
            self._before.st_size, self._before.st_mtime_ns, self._before.st_ino
        ) or self._watched.count != self.size:  # fmt: skip
            raise Unreadable("changed during the scan; run again when nothing writes to it")
        return self._watched.hash.hexdigest()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._raw.close()


def _encoding(head: bytes) -> str:
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    return "utf-16-be" if head.startswith(codecs.BOM_UTF16_BE) else "utf-8"


def open_source(file: DataFile, start: int = 0) -> Source:
    """Open a data file; raises Unreadable for a pointer, OSError where it cannot be opened."""
    return Source(file, start)


def compress(pieces: Iterable[bytes], compression: str) -> Iterator[bytes]:
    """Compressed as the input was; the same pieces give the same bytes."""
    data = b"".join(pieces)
    if compression == "gz":
        yield gzip.compress(data, mtime=0)
    elif compression == "bz2":
        yield bz2.compress(data)
    elif compression == "xz":
        yield lzma.compress(data)
    else:
        yield zstandard.ZstdCompressor().compress(data) if compression == "zst" else data


def encode_like(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """UTF-8 in the encoding that the input had."""
    if not encoding.startswith("utf-16"):
        yield from pieces
        return
    yield codecs.BOM_UTF16_LE if encoding.endswith("le") else codecs.BOM_UTF16_BE
    yield b"".join(pieces).decode().encode(encoding)
