"""Files behind an address (s3, gs, az, hf, https): listed and read through fsspec, and only where a path says so.

Credentials are those that the libraries find by themselves. No address is shown with what may be a secret in it, and
no message of a library is passed on.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import xxhash

from evalspill_guard.errors import Unreadable, UsageError
from evalspill_guard.model import CHANGED, Stamp

UNTRUSTED = 1 << 62
"""The time in the stamp of a file of which no tag of its content is known: later than any clock, so never believed."""

_ADDRESS = re.compile(r"(s3|gs|az|hf|https?)://")
_BLOCK = 1 << 22
_TAGS = ("ETag", "etag", "e_tag", "md5Hash", "content_md5", "blob_id", "generation", "Content-MD5", "VersionId")
_TIMES = ("LastModified", "Last-Modified", "last_modified", "mtime", "updated")


def is_remote(path: str) -> bool:
    """Whether this is an address, and no path of the file system."""
    return _ADDRESS.match(path) is not None


def is_web(path: str) -> bool:
    """Whether this is an address of a web server, in which a question mark begins the query."""
    return path.startswith(("http://", "https://"))


def shown(address: str) -> str:
    """An address or glob without user, password, query and fragment; a path of the file system as it is."""
    scheme = _ADDRESS.match(address)
    if not scheme:
        return address
    rest = _without_raw_password(address[scheme.end() :])
    if is_web(address):
        rest = re.split("[?#]", rest, maxsplit=1)[0]
    host, slash, path = rest.partition("/")
    user, at, name = host.rpartition("@")
    if at and (is_web(address) or ":" in user):
        host = name
    return f"{scheme[0]}{host}{slash}{path}"


def _without_raw_password(rest: str) -> str:
    """What follows a password in which / ? or # is not escaped, so that it ends the host: no port is such a text."""
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    _, colon, port = host.partition(":")
    is_password = colon and "@" not in host and not host.startswith("[") and not port.isdecimal()
    return rest.rpartition("@")[2] if is_password and "@" in rest else rest


def shown_pattern(pattern: str) -> str:
    """The same for a glob as it stands in a config, where an exclamation mark excludes."""
    return f"!{shown(pattern[1:])}" if pattern.startswith("!") else shown(pattern)


@lru_cache(maxsize=8)
def _file_system(scheme: str) -> Any:
    """The file system of a scheme. Raises UsageError where its library is not installed."""
    try:
        import fsspec

        if scheme in ("http", "https"):
            return fsspec.filesystem(scheme, use_listings_cache=False, headers=_AS_STORED, client_kwargs=_patient())
        return fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError:
        raise UsageError(f"{scheme}:// needs the extra: pip install 'evalspill-guard[remote]'") from None


_AS_STORED = {"Accept-Encoding": "identity"}


def _patient() -> dict[str, Any]:
    """A file may take hours, a silent server no more than a minute; what is stored packed stays packed."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
    return {"timeout": timeout, "auto_decompress": False}


def _of(address: str) -> Any:
    return _file_system(address.partition("://")[0])


@contextmanager
def _explained() -> Iterator[None]:
    """Says in our words what a library raises: its own may hold an address with its secrets."""
    try:
        yield
    except (UsageError, Unreadable):
        raise
    except Exception as error:
        raise Unreadable(_why(error)) from None


def _why(error: BaseException) -> str:
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    names = " ".join(type(one).__name__ for one in chain)
    status = next((int(code) for one in chain if str(code := getattr(one, "status", "")).isdecimal()), 0)
    if status in (401, 403) or any(isinstance(one, PermissionError) for one in chain):
        return "access is denied: check the credentials"
    if "Credential" in names or "Unauthorized" in names:
        return "no valid credentials were found"
    if status not in (0, 404):
        return f"could not be read: the server answered {status}"
    if re.search("Connect|Timeout|DNS|SSL|Payload|Disconnected|Incomplete", names):
        return f"could not be read: the connection failed or broke ({type(chain[-1]).__name__})"
    if status == 404 or isinstance(error, FileNotFoundError):
        return "is not there"
    return f"could not be read: {type(error).__name__}"


def info(address: str) -> Mapping[str, Any]:
    """What the server tells of a file now: at least `type` and `size` (None where it does not tell).

    Raises Unreadable where it tells nothing.
    """
    with _explained():
        fs = _of(address)
        fs.invalidate_cache()
        known: Mapping[str, Any] = fs.info(address)
        return known


def entries(folder: str) -> list[tuple[str, bool]]:
    """(name, whether it is a folder) of what stands in a folder; nothing where there is no such folder."""
    with _explained():
        try:
            fs = _of(folder)
            fs.invalidate_cache()
            listed = fs.ls(folder.rstrip("/") + "/", detail=True)
        except (FileNotFoundError, NotADirectoryError) as error:
            if _why(error) != "is not there":
                raise
            return []
    found = [(str(one["name"]).rstrip("/"), one["type"] == "directory") for one in listed]
    if is_web(folder):  # a page may link to anything
        found = [(name, kind) for name, kind in found if name.rpartition("/")[0] == folder.rstrip("/")]
        found = [(name, kind) for name, kind in found if not re.search("[?#]", name)]
    own = folder.partition("://")[2].rstrip("/")
    return [(name.rpartition("/")[2], kind) for name, kind in found if name != own]


def stamp_of(known: Mapping[str, Any]) -> Stamp:
    """Size, time and tag of a state of a file. Without a tag that speaks of every byte its time is UNTRUSTED."""
    tags = [str(known[key]) for key in _TAGS if known.get(key)]
    times = [str(known[key]) for key in _TIMES if known.get(key)]
    strong = any(not tag.startswith("W/") for tag in tags)
    mark = xxhash.xxh3_64_intdigest("\n".join(tags + times).encode()) >> 1
    size = known.get("size")
    return int(size or 0), 0 if strong else UNTRUSTED, 0, mark


class RemoteRaw(io.RawIOBase):
    """The raw bytes of a file behind an address: one request from its beginning, byte ranges after a seek."""

    def __init__(self, address: str) -> None:
        self.address = address
        known = info(address)
        if known.get("type") == "directory":
            raise Unreadable("is a folder: write a glob such as **/*.jsonl below it")
        self.stamp = stamp_of(known)
        self.size: int | None = None if known.get("size") is None else int(known["size"])
        self._partial = known.get("partial", True)
        self._at, self._in_parts = 0, False
        self._file: Any = None
        self._ranges: bool | None = None if is_web(address) else True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @property
    def ranges(self) -> bool:
        """Whether a part of the file can be asked for."""
        if self._ranges is None:
            self._ranges = bool(self._partial and self.size) and self._answers_ranges()
        return self._ranges

    def _answers_ranges(self) -> bool:
        if not self.size or self.size < 2:
            return False
        with suppress(Exception), self._opened(_BLOCK) as file:
            return len(file._fetch_range(1, 2)) == 1
        return False

    def _opened(self, block: int) -> Any:
        more = {"size": self.size} if is_web(self.address) else {}  # others would no longer ask for this very state
        return _of(self.address).open(self.address, "rb", block_size=block, **more)

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset if whence == 0 else self._at + offset if whence == 1 else (self.size or 0) + offset
        if at != self._at and self._file is not None:
            if self._in_parts:  # with what it holds already
                self._file.seek(at)
            else:
                self._drop()
        self._at = at
        return at

    def state(self) -> Stamp:
        """As it was when it was opened: no open file of a server outlives a change."""
        return self.stamp

    def readinto(self, buffer: Any) -> int:
        left = len(buffer) if self.size is None else self.size - self._at
        if left <= 0:
            self._ends_here()
            return 0
        with _explained():
            if self._file is None:
                self._file = self._begin()
            block = self._file.read(min(left, len(buffer)))
        buffer[: len(block)] = block
        self._at += len(block)
        return len(block)

    def _begin(self) -> Any:
        self._in_parts = bool(self._at) or not is_web(self.address)
        if not self._in_parts:
            return self._whole(self._opened(0))
        if not self.ranges:
            raise Unreadable("could not be read: the server gives no byte ranges")
        file = self._opened(_BLOCK)
        file.seek(self._at)
        return file

    def _whole(self, file: Any) -> Any:
        """The answer to a request for the whole file, which has to be that, and as long as was told before."""
        answer = getattr(file, "r", None)
        status, headers = getattr(answer, "status", 200), getattr(answer, "headers", {})
        if status != 200:
            raise Unreadable(f"could not be read: the server answered {status} to a request for the whole file")
        length = headers.get("Content-Length", "")
        if (
            self.size is not None
            and length.isdecimal()
            and "Content-Encoding" not in headers
            and int(length) != self.size
        ):
            raise Unreadable(CHANGED)
        return file

    def _ends_here(self) -> None:
        """Raises Unreadable where more follows than the server said that there is."""
        if self._file is not None and not self._in_parts:
            with _explained():
                if self._file.read(1):
                    raise Unreadable(CHANGED)

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def close(self) -> None:
        self._drop()
        super().close()
