"""Find data files by globs, on the file system or behind addresses, and tell pointers from data."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

from evalspill_guard.checkout import Absent, absent
from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Problem
from evalspill_guard.remote import entries, info, is_remote, is_web, shown

_GLOB = re.compile(r"[*?\[{]")
_SUFFIX = re.compile(r"\.[A-Za-z]\w*$")
_NOTHING = "matches no file"
_BY_QUERY = "addresses that differ only in user or query: a report cannot tell them apart"
_LINK_AS_TEXT = "a symbolic link that was checked out as text: set core.symlinks, or copy its target"
_LONGEST_LINK = 4096  # bytes
_DVC = "a DVC pointer without its data: run `dvc pull`"
_ANNEX = re.compile(rb"/annex/objects/|(\.\./)*\.git/annex/objects/")


def expand(
    patterns: Iterable[str],
    base: Path,
    exclude: Collection[Path],
    excluded: Callable[[DataFile], None] = lambda _: None,
    gone: Iterable[Absent] | None = None,
) -> tuple[list[DataFile], list[Problem]]:
    """The files that globs match, sorted by the bytes of their path, each file once; and what matches nothing.

    `excluded` is told of each that would match if it were not one of `exclude`, or below it. `gone` is what the
    repository lacks, where that is known already. Raises UsageError for an address whose library is not installed.
    """
    patterns = list(patterns)
    refused = [_matcher(one) for pattern in patterns if pattern.startswith("!") for one in _braces(shown(pattern[1:]))]
    own = [os.path.realpath(path) for path in exclude]

    def is_wanted(path: str) -> bool:
        if any(matches(path) for matches in refused):
            return False
        is_own = _is_own(path, base, own)
        if is_own and (base / path).is_file():
            excluded(DataFile(_shown(path), str(base / path)))
        return not is_own

    found: dict[str, DataFile] = {}
    problems: list[Problem] = []
    for pattern in patterns:
        if pattern.startswith("!"):
            continue
        if is_remote(pattern):
            addresses, missing = _addresses(pattern, lambda p: not any(m(shown(p)) for m in refused))
            problems += missing
            found.update((address, DataFile(shown(address), address)) for address in addresses)
            continue
        paths, missing = _wanted(pattern, base, is_wanted)
        faults = [(path, _fault(base / path)) for path in paths]
        problems += missing + [Problem(_shown(path), None, fault) for path, fault in faults if fault]
        found.update((path, DataFile(_shown(path), str(base / path))) for path, fault in faults if not fault)
    problems += _told_apart_by_query(found.values())
    lacking = absent(base) if gone is None else gone
    problems += [Problem(_shown(one.path), None, one.what) for one in lacking if _would_hold(patterns, one, base)]
    return _each_once(sorted(found.values(), key=lambda file: os.fsencode(file.path))), list(dict.fromkeys(problems))


def would_match(patterns: Collection[str], path: str) -> bool:
    """Whether globs would match a file at this path, if there were one."""
    here, refused = ([one for one in patterns if one.startswith("!") is excludes] for excludes in (False, True))
    return any(_matcher(one)(path) for pattern in here for one in _braces(pattern)) and not any(
        _matcher(one)(path) for pattern in refused for one in _braces(pattern[1:])
    )


def _would_hold(patterns: Collection[str], gone: Absent, base: Path) -> bool:
    """Whether globs would match what is not there: a file, or one in a folder of which nothing is known."""
    here, refused = ([p for p in patterns if p.startswith("!") is excludes] for excludes in (False, True))
    refusing = [_matcher(one) for pattern in refused for one in _braces(os.path.normpath(pattern[1:]))]
    names = {
        name for pattern in here for one in _braces(pattern) for name in _names_of(gone, os.path.normpath(one), base)
    }
    return any(not any(refuses(name) for refuses in refusing) for name in names)


def _names_of(gone: Absent, pattern: str, base: Path) -> Iterator[str]:
    """Names that a glob would match, of a folder two of those that may be in it: right there, and deeper."""
    places = {gone.path}
    if pattern.startswith("/"):
        places = {os.path.normpath(f"{place}/{gone.path}") for place in (os.path.abspath(base), os.path.realpath(base))}  # noqa: PTH100
    for place in places:
        if gone.is_folder:
            folder = tuple(part for part in _clean(place).split("/")) if _clean(place) else ()
            for rest in _below(folder, tuple(_clean(pattern).split("/"))):
                yield from (f"{place}/{name}" for name in (_example(rest, 0), _example(rest, 2)))
        elif _matcher(pattern)(place):
            yield place


def _below(folder: tuple[str, ...], parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What is left of a glob below a folder, in each way in which it may lead there."""
    if not folder:
        yield parts
        return
    for rest in _rests(folder[0], parts):
        yield from _below(folder[1:], rest)


def _example(parts: tuple[str, ...], deep: int) -> str:
    """A name that parts of a glob match, of so many folders for two stars."""
    plain = [["q7z"] * deep if part == "**" else [re.sub(r"\[!?(.)[^]]*\]", r"\1", part)] for part in parts]
    return "/".join(re.sub(r"\*+", "q7z", one).replace("?", "q") for group in plain for one in group) or "q7z"


def _addresses(pattern: str, is_wanted: Callable[[str], bool]) -> tuple[list[str], list[Problem]]:
    """What a pattern of addresses matches, and what it misses; a query stays with the address."""
    plain, mark, query = pattern.partition("?") if is_web(pattern) else (pattern, "", "")
    found: list[str] = []
    problems: list[Problem] = []
    for one in _braces(plain):
        try:
            found += filter(is_wanted, _matches_remote(one, mark + query))
        except Unreadable as error:
            problems.append(Problem(shown(one), None, error.what))
    if not (found or problems):
        problems.append(Problem(shown(pattern), None, _NOTHING))
    return found, problems


def _matches_remote(pattern: str, query: str) -> list[str]:
    scheme, _, host, *parts = pattern.split("/")
    fixed = next((number for number, part in enumerate(parts) if _GLOB.search(part)), None)
    if fixed is None:
        if info(pattern + query).get("type") == "directory":
            raise Unreadable("is a folder: write a glob such as **/*.jsonl below it")
        return [pattern + query]
    root = "/".join([scheme, "", host, *parts[:fixed]])
    return sorted(address + query for address in _walk_remote(root, tuple(parts[fixed:])))


def _walk_remote(folder: str, parts: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for name, is_folder in entries(folder):
        address = f"{folder}/{name}"
        if is_folder:
            for rest in _rests(name, parts):
                found |= _walk_remote(address, rest)
        elif _parts_match((name,), parts):
            found.add(address)
    return found


def _told_apart_by_query(files: Collection[DataFile]) -> list[Problem]:
    """Addresses that differ in what is never shown: a report could not say which of them it means."""
    times = Counter(file.path for file in files if is_remote(file.real))
    return [Problem(path, None, _BY_QUERY) for path, count in times.items() if count > 1]


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
    missing += [Problem(_shown(one), None, _NOTHING) for one in _missed(absent, paths)]
    if not (paths or missing):
        missing.append(Problem(_shown(pattern), None, _NOTHING))
    return paths, missing


def _missed(absent: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """Of what braces spell out and is not there: each path without a glob, and one glob of each folder.

    Another suffix in the same folder is a choice; another folder is data that are missing.
    """
    told: set[str] = set()
    for one in absent:
        folder = one.rpartition("/")[0]
        if not _GLOB.search(one):
            yield one
        elif paths and folder not in told and not any(map(_matcher(f"{folder}/*" if folder else "*"), paths)):
            told.add(folder)
            yield one


def stars_joined(pattern: str) -> bool:
    """Whether two stars stand beside something else between slashes, where they are one and lead into no folder."""
    parts = [part for one in _braces(pattern.removeprefix("!")) for part in one.split("/")]
    return any("**" in part and part != "**" for part in parts)


def _without_data(pattern: str, base: Path) -> list[str]:
    """Files that a pattern would match, or folders that it would look into, of which only the DVC pointer is there."""
    parts = _clean(pattern).split("/")
    folders = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    pointers = [folder + ("/*.dvc" if folder.endswith("**") else ".dvc") for folder in folders]
    below = [path.removesuffix(".dvc") for one in pointers for path in _matches(one, base)]
    data = [path.removesuffix(".dvc") for path in _matches(pattern + ".dvc", base)]
    data += [path for path in below if not PurePosixPath(path).suffix]  # one with a suffix is another kind of file
    return [path for path in dict.fromkeys(data) if not os.path.lexists(base / path)]


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
    return lambda path: _parts_match(tuple(_clean(path).split("/")), parts)


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
        elif _parts_match((entry.name,), parts) or (_is_lost_folder(entry, path, base) and _rests(entry.name, parts)):
            found.add(path)
    return found


def _is_lost_folder(entry: os.DirEntry[str], path: str, base: Path) -> bool:
    """Whether this is a link that leads nowhere and may have been one to a folder: files have suffixes, mostly."""
    return entry.is_symlink() and not _SUFFIX.search(entry.name) and not os.path.exists(base / path)  # noqa: PTH110


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
        mode, size = (known := path.stat()).st_mode, known.st_size
    except OSError as error:
        annex = path.is_symlink() and ".git/annex" in path.readlink().as_posix()
        return (
            "a git-annex pointer without its data: run `git annex get`"
            if annex
            else f"cannot be read: {error.strerror}"
        )
    if stat.S_ISDIR(mode):
        return _why_closed(path) or "is a folder: write a glob such as **/*.jsonl below it"
    if not stat.S_ISREG(mode):
        return "is not a regular file"
    return _LINK_AS_TEXT if size <= _LONGEST_LINK and _is_link_as_text(path) else ""


def _is_link_as_text(path: Path) -> bool:
    """Whether a file is nothing but the relative path of another, as git writes a link where it may make none."""
    with suppress(OSError, ValueError):
        target = path.read_bytes().decode()
        is_path = "/" in target and not target.startswith("/") and target.isprintable()
        return is_path and not path.samefile(path.parent / target)
    return False


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
    if is_remote(file.real):
        return file.real
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
