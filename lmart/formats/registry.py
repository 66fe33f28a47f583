"""Reading by format: each format's reader, and how the format is recognised from the name and content of a file."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, ModelError
from lmart.formats.documents.cell_buffers import CellBuffer
from lmart.formats.documents.column_roles import LABEL_NAMES, QUERY_NAMES
from lmart.formats.documents.dataset_builder import DatasetBuilder, QuerySizes, SizedRows
from lmart.formats.documents.delimited import DelimitedReader, TsvReader
from lmart.formats.documents.delimited_writer import DELIMITERS
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.letor import LetorReader
from lmart.formats.documents.parquet import MAGIC, ParquetReader
from lmart.formats.documents.row_blocks import RowBlock, RowReader, SeenQueries
from lmart.formats.metadata_files import read_query_sizes
from lmart.formats.names import FORMATS, format_of_name
from lmart.formats.read_options import ReadOptions
from lmart.scoring.ensemble import Ensemble
from lmart.streams import InputStream, Spool, open_input
from lmart.threads import WorkerPool

__all__ = ["ReadOptions", "RowBlock", "RowReader", "detect_format", "open_rows", "read_dataset", "read_model"]

Blocks = TypeVar("Blocks", RowBlock, list[RowBlock])

_HEAD = 1 << 16
_TEXT_READERS: dict[str, Callable[..., RowReader]] = {"letor": LetorReader, "csv": DelimitedReader, "tsv": TsvReader}
_BLANKS = b" \t\r\n"
_JSON = re.compile(rb"\s*(\{\s*(\"|\}|$)|\[\s*([\[{\"]|$))")
_MODEL = re.compile(rb'\s*\{\s*"format"\s*:\s*"lmart"')
_FOREIGN = {
    b"ARROW1": "Arrow (Feather)",
    b"Obj\x01": "Avro",
    b"SQLite format 3\0": "an SQLite database",
    b"\x89HDF": "HDF5",
    b"\x93NUMPY": "a NumPy array",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
}
_READ = "give LETOR, CSV, TSV or Parquet"
_LETOR_CELL = re.compile(rb"(^|[ \t])(qid|\d+):")


def open_rows(path: str, options: ReadOptions, pool: WorkerPool | None = None) -> RowReader:
    """Open one input for reading in blocks, in constant memory. DataError when it cannot be read."""
    shared = _Shared(FeatureTable(), SeenQueries(options.group_by_qid), _query_sizes(options))
    return _open(path, options, pool or WorkerPool(1), shared, alone=True)


class Batch(NamedTuple):
    """Adjacent blocks of one input, whose arrays last until the next batch; progress: as far as known, else 0."""

    path: str
    blocks: list[RowBlock]
    progress: float


def read_batches(
    paths: Sequence[str],
    options: ReadOptions,
    pool: WorkerPool,
    table: FeatureTable,
    spools: Sequence[Spool | None] = (),
    cell_buffer: CellBuffer | None = None,
) -> Iterator[Batch]:
    """Read the inputs, in order, as one data set. DataError on the first fault, with those that follow it.

    table       : the features met so far; new ones are added
    spools      : for each input that cannot be read twice, what stores its bytes and replays them; None for the others
    cell_buffer : where LETOR, CSV and TSV readers put the cells of rows; None: in buffers of their own
    """
    shared = _Shared(table, SeenQueries(options.group_by_qid), _query_sizes(options))
    sizes = shared.sizes
    for path, spool in zip(paths, spools or [None] * len(paths), strict=True):
        with _open(path, options, pool, shared, spool, cell_buffer) as reader:
            for blocks in reader.volatile_batches():
                yield Batch(path, blocks, reader.progress if len(paths) == 1 else 0.0)
    if sizes is not None:
        sizes.check_end(source_name(paths))
    if not options.beside_others and (unmet := table.never_met()):
        options.warning(f"{source_name(paths)}: {unmet}")


def source_name(paths: Sequence[str]) -> str:
    """Return what to call the inputs in messages."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def read_dataset(paths: Sequence[str], options: ReadOptions, pool: WorkerPool | None = None) -> RankingDataset:
    """Read the inputs, in order, as one data set in memory. DataError on the first fault, with those that follow it.

    A query whose rows are not adjacent is refused, even across inputs; with group_by_qid its rows are put together.
    Without labels (only if require_labels is off) all labels are 0; without queries all rows are one query, ''.
    """
    pool = pool or WorkerPool(1)
    table, builder = FeatureTable(), DatasetBuilder(pool)
    for path, blocks, progress in read_batches(paths, options, pool, table, cell_buffer=builder):
        for block in blocks:
            builder.add(block, path)
            builder.expect(progress)
    return builder.finish(table, source_name(paths), options.group_by_qid)


def for_models(options: ReadOptions, models: Sequence[Ensemble]) -> ReadOptions:
    """Return the options for data that only these models are to score: of tables only their features are parsed."""
    named = {model.feature_names is not None for model in models}
    if len(named) > 1:  # matched by name for one, by number for the other
        return options
    known = {model.feature_name(column) for model in models for column in range(model.n_features)}
    return dataclasses.replace(options, known_features=frozenset(known))


def detect_format(path: str, kind: str | None = None) -> str:
    """Return the name of the format of a file, by its name, else by its content. DataError when it cannot be read.

    kind : "data" when the file is to be read as data, so that other JSON than a model is refused as such
    Not for standard input or pipes, whose content can be read only once.
    """
    if (named := format_of_name(path)) is not None:
        return named.name
    stream = open_input(path)
    try:
        head = _read_head(stream)
    finally:
        stream.close()
    if kind == "data":
        _refuse_foreign(path, head, "")
    return "lmart" if head.lstrip(_BLANKS).startswith(b"{") else _data_format(path, head, ReadOptions())


def read_model(path: str, format: str | None = None) -> Ensemble:
    """Read a model; ModelError when it is damaged or its format cannot be read."""
    if format not in (None, "lmart"):
        raise ModelError(f"the format '{format}' cannot be read yet; convert the model to lmart's own first", path)
    from lmart.formats.models import lmart_json

    return lmart_json.read_model(path)


def write_model(ensemble: Ensemble, path: str, format: str = "lmart") -> None:
    """Write a model; ModelError when its format cannot be written."""
    if format != "lmart":
        raise ModelError(f"the format '{format}' cannot be written yet; use lmart", path)
    from lmart.formats.models import lmart_json

    lmart_json.write_model(ensemble, path)


def _query_sizes(options: ReadOptions) -> QuerySizes | None:
    path = options.query_sizes
    return None if path is None else QuerySizes(path, read_query_sizes(path))


class _Shared(NamedTuple):
    """What the inputs of one data set share: features, queries met so far, and sizes of queries given for all rows."""

    table: FeatureTable
    seen_queries: SeenQueries
    sizes: QuerySizes | None


def _open(
    path: str,
    options: ReadOptions,
    pool: WorkerPool,
    shared: _Shared,
    spool: Spool | None = None,
    cell_buffer: CellBuffer | None = None,
    alone: bool = False,
) -> RowReader:
    """Open one input of a data set; `alone`: no other input follows. The other parameters are as in `read_batches`."""
    table, seen_queries, sizes = shared
    stream = open_input(path, spool)
    try:
        head = _read_head(stream)
        kind = options.format or _data_format(path, head, options)
        _refuse_foreign(path, head, kind)
        reader: RowReader
        if kind == "parquet":
            reader = ParquetReader(stream, head, options, table, seen_queries)
        elif kind in _TEXT_READERS:
            reader = _TEXT_READERS[kind](stream, head, options, pool, table, seen_queries, cell_buffer)
        else:
            raise DataError(f"is a model by its name or content ({kind}); give a file of judged documents", path)
    except BaseException:
        stream.close()
        raise
    reader.alone = alone
    reader = _CheckedRows(reader, stream)
    return reader if sizes is None else SizedRows(reader, sizes)


class _CheckedRows(RowReader):
    """The rows of a reader. DataError when there are none, and in place of others when the file changed meanwhile."""

    def __init__(self, reader: RowReader, stream: InputStream) -> None:
        self.path = reader.path
        self.table = reader.table
        self._reader = reader
        self._stream = stream

    def close(self) -> None:
        self._reader.close()

    def __iter__(self) -> Iterator[RowBlock]:
        return self._checked(iter(self._reader))

    def volatile_batches(self) -> Iterator[list[RowBlock]]:
        return self._checked(self._reader.volatile_batches())

    def _checked(self, blocks: Iterator[Blocks]) -> Iterator[Blocks]:
        try:
            first = next(blocks, None)
            if first is None:
                raise DataError("there are no rows in it; check the step that made it", self.path)
            yield first
            del first  # no block is held while the next one is made
            yield from blocks
        except DataError:
            self._stream.refuse_changed()
            raise

    @property
    def progress(self) -> float:
        return self._reader.progress


def _refuse_foreign(path: str, head: bytes, kind: str) -> None:
    """Raise DataError when the data begins like a format that is not read as data."""
    if _JSON.match(head) and not _MODEL.match(head) and kind != "parquet":
        raise DataError(f"JSON is not read as data; {_READ}", path)
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise DataError(f"is {what}, which is not read as data; {_READ}", path)


def _read_head(stream: InputStream) -> bytes:
    """Return the first bytes, up to a whole line that is neither blank nor a comment where there is one."""
    head = b""
    buffer = memoryview(bytearray(_HEAD))
    while len(head) < _HEAD and _first_line(head, False) is None:
        count = stream.read_block(buffer[: _HEAD - len(head)])
        if not count:
            break
        head += bytes(buffer[:count])
    return head


def _first_line(head: bytes, may_be_cut: bool) -> bytes | None:
    lines = head.split(b"\n")
    for line in lines if may_be_cut else lines[:-1]:
        if (text := line.strip(_BLANKS)) and not text.startswith(b"#"):
            return line
    return None


def _data_format(path: str, head: bytes, options: ReadOptions) -> str:
    """Return the format of data: Parquet by content; else by name; else CSV or TSV when there is a header for it."""
    if head.startswith(MAGIC):
        return "parquet"
    named = format_of_name(path)
    if named is not None and named.kind == "data":
        return named.name
    line = (_first_line(head, True) or b"").removeprefix(b"\xef\xbb\xbf").strip(b"\r\n")
    if _LETOR_CELL.search(line):
        return "letor"
    chosen = (options.label_column, options.query_column, options.document_column)
    features = (name.lower() for name in options.known_features or () if not name.isdigit())
    wanted = {*LABEL_NAMES, *QUERY_NAMES, *(name.lower() for name in chosen if name), *features}
    for name, delimiter in DELIMITERS.items():
        try:
            fields = next(csv.reader([line.decode("utf-8")], delimiter=delimiter, strict=True), [])
        except (UnicodeDecodeError, csv.Error):
            continue
        if len(fields) > 1 and wanted & {field.strip().lower() for field in fields}:
            return name
    if named is not None or head.lstrip(_BLANKS).startswith(b"{"):
        return named.name if named is not None and named.kind == "model" else "lmart"
    return "letor"


assert set(_TEXT_READERS) < set(FORMATS)
