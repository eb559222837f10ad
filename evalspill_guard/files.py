"""Find data files, tell pointers from data, and open them as one stream of UTF-8 bytes."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import xxhash
import zstandard
from isal import igzip_lib

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Problem, Stamp

CHANGED = "changed during the scan; run again when nothing writes to it"
_BLOCK = 1 << 18
_GLOB = re.compile(r"[*?\[{]")
_NOTHING = "matches no file"
_DVC = "a DVC pointer without its data: run `dvc pull`"
_MAGIC = (
    (re.compile(rb"\x1f\x8b\x08"), "gz"),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bz2"),
    (re.compile(rb"\xfd7zXZ\x00"), "xz"),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "zst"),
)
_ANNEX = re.compile(rb"/annex/objects/|(\.\./)*\.git/annex/objects/")
_BARE_UTF_16 = re.compile(rb"[^\0]\0[^\0]\0|\0[^\0]\0[^\0]")
_MOST_WINDOW = 1 << 31
_FED = 1 << 14  # packed bytes handed on at once; small, since what follows the end of a member is copied
_FED_ZST = 1 << 11  # four bytes may stand for 128 KiB, so that this much never unpacks to more than 64 MiB


def expand(patterns: Iterable[str], base: Path, exclude: Collection[Path]) -> tuple[list[DataFile], list[Problem]]:
    """The files that globs match, sorted by the bytes of their path, each file once; and what matches nothing."""
    patterns = list(patterns)
    refused = [_matcher(one) for pattern in patterns if pattern.startswith("!") for one in _braces(pattern[1:])]
    own = [os.path.realpath(path) for path in exclude]
    found: dict[str, DataFile] = {}
    problems: list[Problem] = []
    for pattern in patterns:
        if pattern.startswith("!"):
            continue
        paths, missing = _wanted(pattern, base, lambda p: not any(m(p) for m in refused) and not _is_own(p, base, own))
        faults = [(path, _fault(base / path)) for path in paths]
        problems += missing + [Problem(_shown(path), None, fault) for path, fault in faults if fault]
        found.update((path, DataFile(_shown(path), str(base / path))) for path, fault in faults if not fault)
    return _each_once(sorted(found.values(), key=lambda file: os.fsencode(file.path))), list(dict.fromkeys(problems))


def _wanted(pattern: str, base: Path, is_wanted: Callable[[str], bool]) -> tuple[list[str], list[Problem]]:
    """What one pattern matches, and what it misses: a path that is spelt out, a whole glob, data behind a pointer."""
    paths: list[str] = []
    missing: list[Problem] = []
    absent: list[str] = []
    for one in _braces(pattern):
        matches = list(filter(is_wanted, _matches(one, base)))
        pointers = [path for path in _without_data(one, base) if is_wanted(path)]
        missing += [Problem(_shown(path), None, _DVC) for path in pointers]
        paths += matches
        if not (matches or pointers):
            absent.append(one)
    spelt_out = [one for one in absent if not _GLOB.search(one)]
    missing += [Problem(_shown(one), None, _NOTHING) for one in spelt_out]
    if not (paths or missing):
        missing.append(Problem(_shown(pattern), None, _NOTHING))
    return paths, missing


def _without_data(pattern: str, base: Path) -> list[str]:
    """Files that a pattern would match, of which only the DVC pointer is there."""
    data = [path.removesuffix(".dvc") for path in _matches(pattern + ".dvc", base)]
    return [path for path in data if not os.path.lexists(base / path)]


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
        further = bool(path) and _fits(path[0], "**") and _parts_match(path[1:], parts)
        return further or _parts_match(path, parts[1:])
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
    except OSError:
        return {folder}  # it is reported as a folder that cannot be listed
    found: set[str] = set()
    for entry in entries:
        path = f"{folder.rstrip('/')}/{entry.name}" if folder else entry.name
        if _is_folder(entry):
            for rest in _rests(entry.name, parts):
                found |= _walk(base, path, rest, seen | {real})
        elif _parts_match((entry.name,), parts):
            found.add(path)
    return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _rests(name: str, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What is left to match below a folder of this name."""
    if not parts:
        return []
    if parts[0] == "**":
        return ([parts] if _fits(name, "**") else []) + _rests(name, parts[1:])
    return [parts[1:]] if _fits(name, parts[0]) and len(parts) > 1 else []


def _is_own(path: str, base: Path, own: Collection[str]) -> bool:
    real = os.path.realpath(base / path)
    return any(real == one or real.startswith(one + os.sep) for one in own)


def _fault(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        annex = path.is_symlink() and ".git/annex" in path.readlink().as_posix()
        return (
            "a git-annex pointer without its data: run `git annex get`"
            if annex
            else f"cannot be read: {error.strerror}"
        )
    if stat.S_ISDIR(mode):
        return _why_closed(path) or "is a folder: write a glob such as **/*.jsonl below it"
    return "" if stat.S_ISREG(mode) else "is not a regular file"


def _why_closed(folder: Path) -> str:
    try:
        os.scandir(folder).close()
    except OSError as error:
        return f"is a folder that cannot be listed: {error.strerror}"
    return ""


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _each_once(files: Iterable[DataFile]) -> list[DataFile]:
    once: dict[object, DataFile] = {}
    for file in files:
        once.setdefault(_identity(file), file)
    return list(once.values())


def _identity(file: DataFile) -> object:
    try:
        known = Path(file.real).stat()
    except OSError:  # gone meanwhile, which is told when it is opened
        return file.real
    return known.st_dev, known.st_ino


def pointer_kind(head: bytes) -> str | None:
    """What to do when a file is only a pointer to its data; None for data."""
    if head.startswith((b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")):
        return "a Git LFS pointer instead of data: run `git lfs pull`"
    if _ANNEX.match(head):
        return "a git-annex pointer instead of data: run `git annex get`"
    return None


class Readable(Protocol):
    """Anything that bytes are read from."""

    def read1(self, size: int, /) -> bytes: ...


class _Watched(io.RawIOBase):
    """Raw bytes of a file; counts what passes, and digests those of the range from `first` to `last`."""

    def __init__(self, raw: io.FileIO, first: int, last: int) -> None:
        self.raw, self.first, self.last = raw, first, last
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
    """

    def __init__(self, file: DataFile, start: int = 0, end: int | None = None) -> None:
        self.file, self.end = file, end
        self._raw = io.FileIO(file.real, "rb")
        try:
            self._open(start)
        except BaseException:
            self._raw.close()
            raise

    def _open(self, start: int) -> None:
        self._before = os.fstat(self._raw.fileno())
        last = self._before.st_size if self.end is None else min(self.end, self._before.st_size)
        self.size = last - start
        self._raw.seek(max(0, start - 1))
        self._watched = _Watched(self._raw, start, last)
        self._packed = io.BufferedReader(self._watched, _BLOCK)
        self.compression, self.encoding = "", "utf-8"
        self.stream: Any = self._packed
        if not start:
            self._look_at_head(self._packed.peek(1024)[:1024])

    def _look_at_head(self, head: bytes) -> None:
        if pointer := pointer_kind(head):
            raise Unreadable(pointer)
        self.compression = next((name for magic, name in _MAGIC if magic.match(head)), "")
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
        """xxh3-128 of the wanted bytes; reads on to their end. Raises Unreadable where the file changed meanwhile."""
        while (self.end is None or self._watched.digested < self.size) and self._packed.read(_BLOCK):
            pass
        self.check_unchanged()
        if self._watched.digested != self.size:
            raise Unreadable(CHANGED)
        return self._watched.hash.hexdigest()

    def check_unchanged(self) -> None:
        """Raises Unreadable where the file is not the one that was opened, or was written to since."""
        try:
            now = _state(Path(self.file.real).stat())
        except OSError:
            raise Unreadable(CHANGED) from None
        if changed(self.stamp, now) or changed(now, _state(os.fstat(self._raw.fileno()))):
            raise Unreadable(CHANGED)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._raw.close()

    @property
    def stamp(self) -> Stamp:
        """What tells this state of the file from another one without reading it."""
        return _state(self._before)


def _state(known: os.stat_result) -> Stamp:
    return known.st_size, known.st_mtime_ns, known.st_ctime_ns, known.st_ino


def changed(before: Stamp, now: Stamp) -> bool:
    """Whether these are two states of a file; new links to it or new permissions (ctime) are no change."""
    return before[:2] + before[3:] != now[:2] + now[3:]


def file_stamp(file: DataFile) -> Stamp:
    """The stamp of a file as it is now."""
    return _state(Path(file.real).stat())


def range_digest(file: DataFile, start: int, end: int | None) -> str:
    """xxh3-128 of a range of a file's bytes."""
    with open(file.real, "rb") as stream:  # noqa: PTH123
        stream.seek(start)
        left = -1 if end is None else end - start
        digest = xxhash.xxh3_128()
        while left and (block := stream.read(_BLOCK if left < 0 else min(left, _BLOCK))):
            digest.update(block)
            left -= len(block) if left > 0 else 0
    return digest.hexdigest()


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
