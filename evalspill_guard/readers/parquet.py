"""Columnar files, read with pyarrow: Parquet, and Arrow IPC as a file or a stream. A record is a row.

A row has no place in bytes: `start` of its record is its 0-based number in the file, `end` lies beyond it by the size
of its text, `line` is 0. Strings, binary values that are UTF-8, integers, floats and decimals are text; dates, times,
durations, true and false are not, and are not read.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from types import TracebackType
from typing import Any

from evalspill_guard.errors import Unreadable
from evalspill_guard.fields import parse_path
from evalspill_guard.model import DataFile, Reading, Record
from evalspill_guard.paths import Key, literal
from evalspill_guard.readers.arrowtypes import Ways, arrow, as_rows, below, check_sound, needed_leaves
from evalspill_guard.readers.stream import RecordStream
from evalspill_guard.streams import Source, file_size, footer, open_raw, open_source

_MOST_ROWS = 1024
_MOST_BYTES = 1 << 22
_DAMAGED = "is cut off or damaged, or no Parquet or Arrow file: get a whole copy"
_TOO_BIG = "needs more memory than there is, or is damaged: get a whole copy, or write it in smaller row groups"


@contextmanager
def faults() -> Iterator[None]:
    """What pyarrow raises, in our words: its own may quote the data."""
    library = arrow()
    try:
        yield
    except Unreadable:
        raise
    except MemoryError:  # a damaged file may call for petabytes
        raise Unreadable(_TOO_BIG) from None
    except library.ArrowException:
        raise Unreadable(_DAMAGED) from None
    except OSError as error:
        if error.errno is not None:
            raise
        locked = "ncrypt" in str(error) or "ecrypt" in str(error)
        raise Unreadable("is encrypted: write it without encryption" if locked else _DAMAGED) from None
    except Exception as error:  # whatever the library, or what it was given, breaks at
        raise Unreadable(f"holds a value that cannot be read: {type(error).__name__}") from None


def check_count(rows: int, told: int) -> None:
    """Raises Unreadable where a row group holds fewer rows, or more, than the file says."""
    if rows != told:
        raise Unreadable(_DAMAGED)


class Columnar(RecordStream):
    """The rows of a columnar file, a few at a time."""

    has_lines = False

    def __init__(self, source: Source, reading: Reading, role: str, start: int = 0, end: int | None = None) -> None:
        super().__init__(source, reading, role, start, end)
        named = [*(reading.fields or ()), *((reading.id,) if reading.id and reading.fields else ())]
        self.paths = [parse_path(path) for path in named]
        self._own: io.BufferedReader | None = None
        if source.compression:
            raise Unreadable(f"a columnar file inside {source.compression}: unpack it")
        try:
            with faults():
                self._begin()
        except BaseException:
            self._close()
            raise

    @abstractmethod
    def _begin(self) -> None:
        """Read what says where the rows are."""

    @abstractmethod
    def _batches(self, wanted: Callable[[int, int], bool]) -> Iterator[tuple[int, Any]]:
        """(number of its first row, batch) of those whose rows, from the first to before the last, are wanted."""

    def _random_access(self) -> io.BufferedReader:
        """The file once more, to be read here and there."""
        raw = open_raw(self.source.file)
        if not raw.ranges:
            raw.close()
            raise Unreadable("a columnar file is read in parts, and the server gives no byte ranges: copy it here")
        self._own = io.BufferedReader(raw, 1 << 16)
        return self._own

    def _see(self, schema: Any) -> None:
        """Columns are there, whatever is in them; what lies inside of objects shows in the rows."""
        there = {field.name for field in schema if not arrow().types.is_struct(field.type)}
        for path, steps in [(path, parse_path(path).steps) for path in self.select.unmet]:
            if literal(parse_path(path)) in there or (isinstance(steps[0], Key) and steps[0].name in there):
                self.select.unmet.discard(path)

    def _ways(self, column: str) -> Ways:
        """How the paths go on below a column of the record."""
        if not self.paths:
            return [()]
        here = [below(path.steps, column) for path in self.paths]
        return [way for way in here if way is not None] + [() for path in self.paths if literal(path) == column]

    def __iter__(self) -> Iterator[Record]:
        return self._records(self._rows(lambda first, last: True))

    def at(self, numbers: Collection[int]) -> Iterator[Record]:
        """The records of these rows."""
        ordered = sorted(numbers)

        def holds(first: int, last: int) -> bool:
            return bisect_right(ordered, last - 1) > bisect_right(ordered, first - 1)

        return self._records(row for row in self._rows(holds) if row[0] in numbers)

    def values(self) -> Iterator[object]:
        return (value for _, value, fault in self._rows(lambda first, last: True) if not fault)

    def _records(self, rows: Iterable[tuple[int, object, str]]) -> Iterator[Record]:
        for number, value, fault in rows:
            leaves = self.select.leaves(value)
            size = max(1, sum(map(len, leaves)))
            if size > self.reading.max_record:
                fault = f"row {number + 1}: above max_record ({self.reading.max_record} bytes)"
            yield Record(0, number, number + size, leaves, self.name_of(value), fault or None)

    def _rows(self, wanted: Callable[[int, int], bool]) -> Iterator[tuple[int, object, str]]:
        """(number, row, why it cannot be read)."""
        with faults():
            for first, batch in self._batches(wanted):
                step = max(1, min(_MOST_ROWS, _MOST_BYTES * batch.num_rows // max(1, batch.nbytes)))
                for at in range(0, batch.num_rows, step):
                    if wanted(first + at, first + min(at + step, batch.num_rows)):
                        yield from as_rows(first + at, batch.slice(at, step))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()
        super().__exit__(kind, error, at)

    def _close(self) -> None:
        if self._own is not None:
            self._own.close()


class Parquet(Columnar):
    """The rows of the row groups whose first byte lies in the range.

    `table` is the open file, `first_rows` the number of the first row of each row group and, at last, of all rows,
    `columns` those that are read (None: all).
    """

    format = "parquet"

    def __enter__(self) -> Parquet:
        return self

    def _begin(self) -> None:
        file = self._random_access()
        if self.end is not None:
            self.source.beyond = footer(file)
        self.table = _opened(file)
        facts = self.table.metadata
        sizes = [facts.row_group(number).num_rows for number in range(facts.num_row_groups)]
        self.first_rows = list(accumulate(sizes, initial=0))
        self.columns = self._needed()
        self._see(self.table.schema_arrow)

    def _needed(self) -> list[str] | None:
        kinds = self.table.schema_arrow
        chosen = [wanted for field in kinds for wanted in needed_leaves(field.type, self._ways(field.name))]
        leaves = self.table.schema
        if len(chosen) != len(leaves):  # an Arrow type that is stored in another way
            return None
        return [leaves.column(number).path for number, wanted in enumerate(chosen) if wanted]

    def _batches(self, wanted: Callable[[int, int], bool]) -> Iterator[tuple[int, Any]]:
        facts = self.table.metadata
        for number in self._groups():
            first, last = self.first_rows[number : number + 2]
            if not (first < last and wanted(first, last)):
                continue
            each = max(1, facts.row_group(number).total_byte_size // (last - first))
            rows = max(1, min(_MOST_ROWS, _MOST_BYTES // each))
            for batch in self.table.iter_batches(rows, [number], self.columns, use_threads=False):
                yield first, batch
                first += batch.num_rows
            check_count(first, last)

    def _groups(self) -> Sequence[int]:
        """The numbers of the row groups in the range."""
        if not self.start and self.end is None:  # on some damaged places of groups pyarrow ends the process
            return range(self.table.num_row_groups)
        starts = enumerate(_group_starts(self.table.metadata))
        return [number for number, at in starts if self.start <= at and (self.end is None or at < self.end)]


class Arrow(Columnar):
    """The rows of an Arrow IPC file (also called Feather), or of an IPC stream."""

    format = "arrow"
    clean_possible = False

    def _begin(self) -> None:
        head = bytes(self.source.stream.peek(8)[:8])
        self._is_file = head.startswith(b"ARROW1")
        self._data = self._random_access() if self._is_file else self.source.stream
        self.table = self._reader(None)
        fields = self.table.schema
        self._see(fields)
        wanted = [
            number for number, field in enumerate(fields) if any(needed_leaves(field.type, self._ways(field.name)))
        ]
        if self._is_file and len(wanted) < len(fields):
            self.table = self._reader(wanted)

    def _reader(self, columns: list[int] | None) -> Any:
        ipc = arrow().ipc
        options = ipc.IpcReadOptions(included_fields=columns or [], use_threads=False)
        return (ipc.open_file if self._is_file else ipc.open_stream)(self._data, options=options)

    def _batches(self, wanted: Callable[[int, int], bool]) -> Iterator[tuple[int, Any]]:
        first = 0
        count = self.table.num_record_batches if self._is_file else 0
        for batch in map(self.table.get_batch, range(count)) if self._is_file else self.table:
            if wanted(first, first + batch.num_rows):
                check_sound(batch)
                yield first, batch
            first += batch.num_rows


def _opened(file: Any) -> Any:
    parquet = arrow().parquet
    return parquet.ParquetFile(file, buffer_size=_MOST_BYTES, pre_buffer=False)


def _group_starts(facts: Any) -> list[int]:
    """Where each row group begins in the file."""
    return [_group_start(facts.row_group(number)) for number in range(facts.num_row_groups)]


def _group_start(group: Any) -> int:
    columns = [group.column(number) for number in range(group.num_columns)]
    return min((c.dictionary_page_offset or c.data_page_offset for c in columns), default=0)


def group_starts(file: DataFile) -> list[int]:
    """Where the row groups of a Parquet file begin; none where they do not follow each other inside of the file."""
    with open_source(file) as source, Parquet(source, Reading(), "train") as stream:
        starts = _group_starts(stream.table.metadata)
    size = file_size(file)
    inside = all(0 <= start < size for start in starts)
    return starts if inside and starts == sorted(set(starts)) else []
