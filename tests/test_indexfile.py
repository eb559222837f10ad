"""An index as files: what is opened finds what was saved."""

from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspill_guard.index import Query, RunIndex, Search
from evalspill_guard.indexfile import opened, save
from evalspill_guard.indexing import build
from evalspill_guard.kernel import batch

WORD = st.sampled_from(["a", "b", "c", "d", "e"])
TEXT = st.lists(WORD, min_size=1, max_size=9).map(" ".join)


def _plain(thing: object) -> object:
    """Everything that an index holds, as lists and numbers."""
    if isinstance(thing, np.ndarray):
        return str(thing.dtype), thing.tolist()
    if is_dataclass(thing):
        return {field.name: _plain(getattr(thing, field.name)) for field in fields(thing)}
    return [_plain(one) for one in thing] if isinstance(thing, tuple) else thing


def _queries(texts: list[str]) -> list[Query]:
    searches: list[Search] = ["none", "tiny", "whole", "runs"]
    return [
        Query(text, searches[min(3, len(text.split()) // 2)], min(6, len(text.split())), len(text.split()))
        for text in texts
    ]


@given(st.lists(TEXT, max_size=12), st.lists(TEXT, min_size=1, max_size=6))
def test_an_index_is_opened_as_it_was_saved(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], training: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("index")
    index = build(_queries(rows))
    save(index, folder)
    again = opened(folder)
    assert _plain(again) == _plain(index)
    texts = batch([[text] for text in training])
    assert _plain(again.found_in(texts)) == _plain(index.found_in(texts))


def test_two_equal_indexes_are_saved_as_the_same_bytes(tmp_path: Path) -> None:
    saved = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        save(build(_queries(["a b c d e a b", "c d", "e"])), tmp_path / name)
        saved.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert saved[0] == saved[1]


def test_what_is_opened_is_mapped_and_cannot_be_written(tmp_path: Path) -> None:
    save(build(_queries(["a b c d e a b"])), tmp_path)
    hashes = opened(tmp_path).tables[0].hashes
    assert (type(hashes), isinstance(hashes.base, np.memmap), hashes.flags.writeable) == (np.ndarray, True, False)


@pytest.mark.parametrize("missing", ["numbers.npy", "runs_at.npy"])
def test_an_index_that_is_not_there_or_not_whole_is_an_error_of_the_file_system(tmp_path: Path, missing: str) -> None:
    save(build(_queries(["a b c d e a b"])), tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(OSError, match=missing):
        opened(tmp_path)


def test_an_index_of_no_rows_is_opened(tmp_path: Path) -> None:
    empty: RunIndex = build([])
    save(empty, tmp_path)
    assert _plain(opened(tmp_path)) == _plain(empty)
