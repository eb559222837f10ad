"""Finding data files, and opening them as one stream of bytes."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspill_guard.errors import Unreadable
from evalspill_guard.files import expand, pointer_kind
from evalspill_guard.model import DataFile
from evalspill_guard.streams import compress, encode_like, open_source


def _zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": _zst
}  # fmt: skip
PACKED = pytest.mark.parametrize("kind", PACK)


def _make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def _found(folder: Path, *patterns: str, own: tuple[str, ...] = ()) -> list[str]:
    files, problems = expand(patterns, folder, [folder / name for name in own])
    assert problems == []
    return [file.path for file in files]


def _problems(folder: Path, *patterns: str) -> list[tuple[str, str]]:
    return [(problem.path, problem.what) for problem in expand(patterns, folder, [])[1]]


def _data(raw: bytes) -> tuple[bytes, Unreadable | None]:
    """All bytes of a file's stream, and the fault that ended it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(raw)
        got = b""
        try:
            with open_source(DataFile("a", str(path))) as source:
                while block := source.stream.read1(100_000):
                    got += block
        except Unreadable as fault:
            return got, fault
        return got, None


# --- globs


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.jsonl", ["a.jsonl"]),
        ("./a.jsonl", ["a.jsonl"]),
        ("*.jsonl", ["a.jsonl", "b.jsonl"]),
        ("*", ["a.jsonl", "b.jsonl"]),
        ("d/*", ["d/a.jsonl", "d/b.csv"]),
        ("*/*.csv", ["d/b.csv"]),
        ("**/a.jsonl", ["a.jsonl", "d/a.jsonl", "d/e/f/a.jsonl"]),
        ("d/**/a.jsonl", ["d/a.jsonl", "d/e/f/a.jsonl"]),
        ("d//**/**/a.jsonl", ["d/a.jsonl", "d/e/f/a.jsonl"]),
        ("d/**", ["d/a.jsonl", "d/b.csv", "d/e/f/a.jsonl"]),
        ("**/f/*", ["d/e/f/a.jsonl"]),
        ("**/*.{csv,jsonl}", ["a.jsonl", "b.jsonl", "d/a.jsonl", "d/b.csv", "d/e/f/a.jsonl"]),
        ("{a,b}.jsonl", ["a.jsonl", "b.jsonl"]),
        ("{d/{a,e/f/a},b}.jsonl", ["b.jsonl", "d/a.jsonl", "d/e/f/a.jsonl"]),
        ("[!a].jsonl", ["b.jsonl"]),
        ("?.jsonl", ["a.jsonl", "b.jsonl"]),
        (".*.jsonl", [".hidden.jsonl"]),
        ("**/.h/*", [".h/a.jsonl"]),
    ],
)
def test_globs(pattern: str, expected: list[str], tmp_path: Path) -> None:
    _make(
        tmp_path, "a.jsonl", "b.jsonl", "d/a.jsonl", "d/b.csv", "d/e/f/a.jsonl", ".hidden.jsonl", ".h/a.jsonl", "d/.x"
    )
    assert _found(tmp_path, pattern) == expected


def test_excludes_hold_wherever_they_stand_in_the_list(tmp_path: Path) -> None:
    _make(tmp_path, "a/x.jsonl", "a/drafts/y.jsonl", "b/z.jsonl")
    expected = ["a/x.jsonl", "b/z.jsonl"]
    assert _found(tmp_path, "**/*.jsonl", "!a/drafts/**") == expected
    assert _found(tmp_path, "!**/{drafts,other}/*", "**/*.jsonl") == expected


def test_paths_may_lead_outside_and_may_be_absolute(tmp_path: Path) -> None:
    _make(tmp_path, "data/a.jsonl", "config/x")
    assert _found(tmp_path / "config", "../data/*.jsonl") == ["../data/a.jsonl"]
    assert _found(tmp_path / "config", f"{tmp_path}/data/*.jsonl") == [f"{tmp_path}/data/a.jsonl"]


def test_files_are_sorted_by_the_bytes_of_their_path(tmp_path: Path) -> None:
    names = ["Z", "a", "a-b", "a/b", "é", "z", "\U0001f600", "\ufffd"]
    _make(tmp_path, "Z", "z", "a-b", "é", "\U0001f600", "\ufffd", "b/a")
    assert _found(tmp_path, "**/*") == sorted([*(set(names) - {"a", "a/b"}), "b/a"], key=str.encode)


def test_a_file_matched_twice_counts_once_also_by_a_link(tmp_path: Path) -> None:
    _make(tmp_path, "data/b.jsonl")
    (tmp_path / "a.jsonl").symlink_to("data/b.jsonl")
    (tmp_path / "c.jsonl").hardlink_to(tmp_path / "data/b.jsonl")
    (tmp_path / "linked").symlink_to("data")
    assert _found(tmp_path, "**/*.jsonl", "data/b.jsonl", "linked/*") == ["a.jsonl"]


def test_links_may_loop(tmp_path: Path) -> None:
    _make(tmp_path, "a/x.jsonl", "b/y.jsonl")
    (tmp_path / "a/up").symlink_to("..")
    (tmp_path / "a/b").symlink_to("../b")
    (tmp_path / "b/a").symlink_to("../a")
    assert sorted(Path(path).name for path in _found(tmp_path, "**/*.jsonl")) == ["x.jsonl", "y.jsonl"]


def test_a_link_to_itself_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("a.jsonl")
    [(path, what)] = _problems(tmp_path, "*.jsonl")
    assert (path, what[:14]) == ("a.jsonl", "cannot be read")


def test_our_own_files_never_match(tmp_path: Path) -> None:
    _make(tmp_path, "evalspill.yaml", "a.jsonl", "reports/check/clean/a.clean.jsonl", "reports2/b.jsonl")
    (tmp_path / "link").symlink_to("reports")
    found = _found(tmp_path, "**/*", own=("evalspill.yaml", "reports", "baseline.jsonl"))
    assert found == ["a.jsonl", "reports2/b.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes among its files")
def test_a_pipe_is_a_problem_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    assert _problems(tmp_path, "*.jsonl") == [("a.jsonl", "is not a regular file")]
    assert _problems(tmp_path, "/dev/null") == [("/dev/null", "is not a regular file")]


def test_a_folder_is_a_problem(tmp_path: Path) -> None:
    _make(tmp_path, "data/a.jsonl")
    [(path, what)] = _problems(tmp_path, "data")
    assert path == "data"
    assert "is a folder" in what


def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _make(tmp_path, "open/a.jsonl", "closed/a.jsonl")
    real = os.scandir

    def scandir(path: Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert _problems(tmp_path, "**/*.jsonl") == [("closed", "is a folder that cannot be listed: Permission denied")]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux allows any bytes in a name")
def test_names_that_are_not_utf_8_are_found_and_shown_with_a_replacement(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/\xe9.jsonl"
    with open(raw, "wb") as file:  # noqa: PTH123
        file.write(b"x")
    [found], problems = expand(["*.jsonl"], tmp_path, [])
    assert (found.path, problems) == ("\ufffd.jsonl", [])
    with open_source(found) as source:
        assert source.stream.read() == b"x"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["trian/*.jsonl"], ["trian/*.jsonl"]),
        (["a.jsonl", "b.jsonl"], ["b.jsonl"]),
        (["{a,b}.jsonl"], ["b.jsonl"]),
        (["*.{csv,tsv}"], ["*.{csv,tsv}"]),
        (["*.{csv,jsonl}"], []),
        (["a.jsonl", "!*.jsonl"], ["a.jsonl"]),
        (["*.jsonl", "!none"], []),
        (["a.jsonl/*"], ["a.jsonl/*"]),
    ],
)
def test_what_matches_nothing_is_a_problem(patterns: list[str], expected: list[str], tmp_path: Path) -> None:
    _make(tmp_path, "a.jsonl")
    assert _problems(tmp_path, *patterns) == [(path, "matches no file") for path in expected]


# --- pointers


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"),
        (b"version https://hawser.github.com/spec/v1\n", "git lfs pull"),
        (b"/annex/objects/SHA256E-s1--00.jsonl\n", "git annex get"),
        (b"../../.git/annex/objects/a/b/SHA256E-s1--00/SHA256E-s1--00", "git annex get"),
        (b".git/annex/objects/a/b", "git annex get"),
        (b'{"a": "version https://git-lfs.github.com/spec/v1"}', None),
        (b"", None),
    ],
)
def test_pointers_are_told_from_data(head: bytes, said: str | None) -> None:
    assert (said or "") in (pointer_kind(head) or "")
    assert (pointer_kind(head) is None) == (said is None)
    assert ("pointer" in str(_data(head)[1])) == (said is not None)


def test_an_annex_link_without_its_data_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to(".git/annex/objects/x/y/z")
    assert "git annex get" in _problems(tmp_path, "*.jsonl")[0][1]


def test_a_dvc_pointer_without_its_data_is_a_problem_also_beside_other_files(tmp_path: Path) -> None:
    _make(tmp_path, "a.jsonl", "a.jsonl.dvc", "b.jsonl.dvc", "drafts/c.jsonl.dvc")
    told = "a DVC pointer without its data: run `dvc pull`"
    assert _problems(tmp_path, "*.jsonl") == [("b.jsonl", told)]
    assert _problems(tmp_path, "**/*.jsonl", "!drafts/**") == [("b.jsonl", told)]
    assert _problems(tmp_path, "drafts/*.jsonl") == [("drafts/c.jsonl", told)]
    assert _problems(tmp_path, "b.jsonl") == [("b.jsonl", told)]


# --- compressed files

PARTS = st.lists(st.binary(max_size=3000), min_size=1, max_size=5)


@PACKED
@settings(max_examples=25)
@given(parts=PARTS, padding=st.sampled_from([0, 4, 512]))
def test_all_members_are_read_padded_or_not(kind: str, parts: list[bytes], padding: int) -> None:
    zeros = bytes(padding)
    assert _data(b"".join(PACK[kind](part) + zeros for part in parts)) == (b"".join(parts), None)


@PACKED
def test_many_small_members_and_one_of_several_blocks(kind: str) -> None:
    small = [f"row {number}\n".encode() for number in range(100)]
    large = b"".join(number.to_bytes(4, "big") for number in range(100_000))
    packed = b"".join(map(PACK[kind], small)) + PACK[kind](large) + PACK[kind](b"end")
    assert _data(packed) == (b"".join(small) + large + b"end", None)


def test_skippable_zst_frames_are_skipped() -> None:
    frame = b"\x5e\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
    assert _data(frame + _zst(b"one") + frame + _zst(b"two") + frame) == (b"onetwo", None)


@PACKED
def test_a_file_that_is_cut_off_anywhere_is_unreadable(kind: str) -> None:
    data = b"".join(b"line %d\n" % number for number in range(200))
    packed = PACK[kind](data)
    for cut in range(10, len(packed)):
        got, fault = _data(packed[:cut])
        assert fault is not None
        assert "cut off" in fault.what
        assert data.startswith(got)
        assert fault.line == got.count(b"\n") + 1


@PACKED
def test_what_stands_before_the_cut_is_still_given(kind: str) -> None:
    block = os.urandom(50_000).hex().encode() + b"\n"
    packed = b"".join(PACK[kind](block) for _ in range(8))
    got, fault = _data(packed[:-20])
    assert len(got) >= 7 * len(block)
    assert fault is not None
    assert fault.line == got.count(b"\n") + 1


@PACKED
@pytest.mark.parametrize("rest", [b"garbage, and enough of it", b"\0\0\0\0garbage, and enough of it"])
def test_what_follows_and_is_no_member_is_an_error(kind: str, rest: bytes) -> None:
    got, fault = _data(PACK[kind](b"one\n") + rest)
    assert got == b"one\n"
    assert fault is not None
    assert fault.line == 2


@PACKED
def test_damaged_data_are_an_error(kind: str) -> None:
    packed = bytearray(PACK[kind](os.urandom(5000)))
    packed[2500] ^= 0xFF
    if kind == "zst":  # one block without a checksum: damage of its header
        packed[5:9] = b"\xff\xff\xff\xff"
    assert _data(bytes(packed))[1] is not None


def test_a_zst_window_above_2_gib_is_refused() -> None:
    header = b"\x28\xb5\x2f\xfd" + bytes([0x00, (32 - 10) << 3])  # a frame of unknown size with a window of 4 GiB
    got, fault = _data(header + b"\x01\x00\x00")
    assert (got, fault is not None) == (b"", True)
    allowed = b"\x28\xb5\x2f\xfd" + bytes([0x00, (31 - 10) << 3])
    assert _data(allowed + b"\x01\x00\x00") == (b"", None)


def _bomb(kind: str) -> bytes:
    if kind == "zst":  # four bytes for each 128 KiB of zeros
        block = ((128 << 10) << 3 | 0b010).to_bytes(3, "little") + b"\0"
        last = (1 << 3 | 0b011).to_bytes(3, "little") + b"\0"
        return b"\x28\xb5\x2f\xfd" + bytes([0x00, (17 - 10) << 3]) + block * 2048 + last
    return PACK[kind](bytes(1 << 22)) * 64


_READ_BOMB = """
import resource, sys
from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.readers import open_records
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open_records(DataFile(sys.argv[1] + ".jsonl", sys.argv[1]), Reading(max_record=1 << 20), "train") as stream:
    try:
        for record in stream:
            print(record.bad)
    except Unreadable as error:
        print(error.what)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in the unit that Linux uses")
@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_bomb_of_one_long_line_is_a_bad_record_in_bounded_memory(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(_bomb(kind))
    command = [sys.executable, "-c", _READ_BOMB, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    bad, fault, kilobytes = done.stdout.splitlines()
    assert "above max_record" in bad
    assert "not searched to its end" in fault
    assert int(kilobytes) < 500_000


@PACKED
@given(pieces=st.lists(st.binary(max_size=50)))
@settings(max_examples=20)
def test_what_is_compressed_again_reads_the_same(kind: str, pieces: list[bytes]) -> None:
    packed = b"".join(compress(pieces, kind))
    assert packed == b"".join(compress(iter(pieces), kind))
    assert _data(packed) == (b"".join(pieces), None)
    assert b"".join(compress(pieces, "")) == b"".join(pieces)


def test_a_compressed_file_names_no_time() -> None:
    assert b"".join(compress([b"x"], "gz"))[4:8] == bytes(4)


# --- encodings

UTF_16 = pytest.mark.parametrize(
    ("mark", "name"), [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")]
)


@UTF_16
@given(text=st.text(max_size=200))
@settings(max_examples=40)
def test_utf_16_is_read_as_utf_8_and_written_back(mark: bytes, name: str, text: str) -> None:
    raw = mark + text.encode(name)
    if raw[:4] == codecs.BOM_UTF32_LE:
        return
    assert _data(raw) == (text.encode(), None)
    assert _data(gzip.compress(raw)) == (text.encode(), None)
    cut = len(text) // 2
    pieces = [text[:cut].encode(), text[cut:].encode()]
    assert b"".join(encode_like(pieces, name)) == raw
    assert b"".join(encode_like(pieces, "utf-8")) == text.encode()


@UTF_16
@pytest.mark.parametrize("before", [0, 10, 300_000])
def test_a_unit_that_is_not_utf_16_is_told_with_line_and_byte_after_the_text_before_it(
    mark: bytes, name: str, before: int
) -> None:
    text = "ok\n" * before
    lone = "\ud800".encode(name, "surrogatepass")
    got, fault = _data(mark + text.encode(name) + lone + "rest".encode(name))
    assert got == text.encode()
    assert fault is not None
    assert (fault.line, f"at byte {2 + 6 * before}:" in fault.what) == (before + 1, True)


@UTF_16
def test_half_a_unit_at_the_end_is_told(mark: bytes, name: str) -> None:
    got, fault = _data(mark + "a\n".encode(name) + b"x")
    assert got == b"a\n"
    assert fault is not None
    assert (fault.line, "byte 6" in fault.what) == (2, True)


@UTF_16
def test_utf_16_in_a_file_that_is_cut_off_counts_lines_of_text(mark: bytes, name: str) -> None:
    text = "\u0a0a\u0a0a\n" * 1000  # characters whose bytes are those of line feeds
    got, fault = _data(gzip.compress(mark + text.encode(name))[:-4])
    assert got.decode() == text
    assert fault is not None
    assert (fault.line, "cut off" in fault.what) == (1001, True)


@pytest.mark.parametrize("name", ["utf-32", "utf-32-le", "utf-16-le", "utf-16-be"])
def test_other_encodings_are_refused_not_guessed(name: str) -> None:
    mark = codecs.BOM_UTF32_LE if name == "utf-32-le" else b""
    _, fault = _data(mark + "one two three".encode(name))
    assert fault is not None
    assert fault.line == 1


# --- files that change


def _source_of(path: Path, raw: bytes) -> DataFile:
    path.write_bytes(raw)
    return DataFile("a", str(path))


def test_the_digest_is_that_of_the_bytes_on_disk_however_much_was_read(tmp_path: Path) -> None:
    raw = gzip.compress(os.urandom(1_000_000))
    with open_source(_source_of(tmp_path / "a", raw)) as source:
        source.stream.read(10)
        assert source.digest() == xxhash.xxh3_128_hexdigest(raw)
        assert source.raw_bytes == source.size == len(raw)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: os.truncate(path, 1_000_001),
        lambda path: os.truncate(path, 5),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.write_bytes(bytes(1_000_000))),
        lambda path: os.utime(path, (1, 1)),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_unreadable(change: Callable[[Path], object], tmp_path: Path) -> None:
    with open_source(_source_of(tmp_path / "a", bytes(1_000_000))) as source:
        source.stream.read(10)
        change(tmp_path / "a")
        with pytest.raises(Unreadable, match="changed during the scan"):
            source.digest()


def test_a_file_can_be_asked_whether_it_changed_without_reading_it(tmp_path: Path) -> None:
    file = _source_of(tmp_path / "a", bytes(1_000_000))
    with open_source(file, 500_000) as source:
        source.check_unchanged()
        os.truncate(file.real, 700_000)
        with pytest.raises(Unreadable, match="changed during the scan"):
            source.check_unchanged()
        assert source.raw_bytes == 0


def test_a_lost_link_that_may_have_been_a_folder_is_a_problem_where_a_glob_would_go_into_it(tmp_path: Path) -> None:
    _make(tmp_path, "a.jsonl", "d/b.jsonl")
    (tmp_path / "shards").symlink_to("/mnt/unmounted/shards")
    (tmp_path / "notes.txt").symlink_to("/mnt/unmounted/notes.txt")
    lost = [("shards", "cannot be read: No such file or directory")]
    for pattern in ("**/*.jsonl", "*/*.jsonl", "sh*/**"):
        assert _problems(tmp_path, pattern) == lost
    for patterns in (["*.jsonl"], ["d/**"], ["**/*.jsonl", "!shards"]):
        assert _problems(tmp_path, *patterns) == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{train,extra}/*.jsonl", ["extra/*.jsonl"]),
        ("{train,extra,more}/*.{jsonl,csv}", ["extra/*.jsonl", "more/*.jsonl"]),
        ("train/*.{jsonl,csv}", []),
        ("{train/**,extra/**}/*.jsonl", ["extra/**/*.jsonl"]),
        ("{train,.}/*.jsonl", ["./*.jsonl"]),
        ("{extra,more}/*.jsonl", ["{extra,more}/*.jsonl"]),
    ],
)
def test_each_folder_in_braces_must_hold_something(pattern: str, expected: list[str], tmp_path: Path) -> None:
    _make(tmp_path, "train/a.jsonl", "extra/a.txt")
    assert _problems(tmp_path, pattern) == [(path, "matches no file") for path in expected]


def test_a_link_that_was_checked_out_as_text_is_a_problem(tmp_path: Path) -> None:
    _make(tmp_path, "s/corpus.txt", "data/a.txt")
    (tmp_path / "data/link.txt").write_text("../s/corpus.txt")
    (tmp_path / "data/other.txt").write_text("../s/nothing.txt")
    (tmp_path / "data/prose.txt").write_text("see ../s/corpus.txt\n")
    [(path, what)] = _problems(tmp_path, "data/*.txt")
    assert (path, what[:44]) == ("data/link.txt", "a symbolic link that was checked out as text")
