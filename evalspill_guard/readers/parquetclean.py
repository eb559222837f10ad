"""A Parquet file without some of its rows."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from evalspill_guard.errors import Unreadable
from evalspill_guard.model import DataFile, Reading
from evalspill_guard.readers.arrowtypes import arrow
from evalspill_guard.readers.parquet import Parquet, check_count, faults
from evalspill_guard.streams import CHANGED, open_source


class _Collected(io.RawIOBase):
    """Holds what is written until it is taken."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, data: Any) -> int:
        self.pieces.append(bytes(data))
        self.size += len(self.pieces[-1])
        return len(self.pieces[-1])

    def take(self) -> bytes:
        pieces, self.pieces = self.pieces, []
        return b"".join(pieces)


def kept_rows(file: DataFile, digest: str, keep: Sequence[bool]) -> Iterator[bytes]:
    """A Parquet file without the rows left out, a row group at a time; schema, metadata and codecs stay.

    Raises Unreadable where the file is not the one of this digest any more, or is damaged.
    """
    with open_source(file) as source, Parquet(source, Reading(), "eval") as stream, faults():
        if source.digest() != digest or stream.table.metadata.num_rows != len(keep):
            raise Unreadable(CHANGED)
        written = _Collected()
        with _writer(stream.table, written) as writer:
            for number in range(stream.table.num_row_groups):
                rows = stream.table.read_row_group(number, use_threads=False)
                first, last = stream.first_rows[number : number + 2]
                check_count(rows.num_rows, last - first)
                rows = rows.filter(arrow().array(keep[first:last], arrow().bool_()))
                if rows.num_rows:
                    writer.write_table(rows, row_group_size=rows.num_rows)
                yield written.take()
        yield written.take()
        source.check_unchanged()


def _writer(file: Any, sink: _Collected) -> Any:
    """A writer of the same schema, metadata, codecs and way of storing."""
    facts = file.metadata
    group = facts.row_group(0) if facts.num_row_groups else None
    columns = [group.column(number) for number in range(group.num_columns)] if group else []
    codecs = {one.path_in_schema: _codec(one.compression) for one in columns}
    return arrow().parquet.ParquetWriter(
        sink, file.schema_arrow, version=facts.format_version, compression=codecs or "none",
        use_dictionary=[one.path_in_schema for one in columns if one.has_dictionary_page],
        write_statistics=[one.path_in_schema for one in columns if one.is_stats_set],
        use_deprecated_int96_timestamps=any(one.physical_type == "INT96" for one in columns),
        store_schema=b"ARROW:schema" in (facts.metadata or {}),
    )  # fmt: skip


def _codec(name: str) -> str:
    return {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(name, name)
