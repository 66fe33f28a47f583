"""Writers of LETOR, CSV and TSV: kernels write pieces of a block side by side, which go to the output in order."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from lmart.array_types import UInt8Array, UInt64Array
from lmart.data.dataset import even_ranges
from lmart.errors import OutputError, quote
from lmart.formats.documents.blocks import FeatureColumns, RowBlock
from lmart.formats.documents.column_names import data_fault, refuse_usual
from lmart.formats.documents.quoted import DELIMITERS
from lmart.formats.format_records import BYTE_ORDER_MARK
from lmart.formats.read_options import ReadOptions
from lmart.kernels.text import shortest_decimals
from lmart.kernels.text.row_text import MARGIN, NAME_WORDS, RowsToWrite, Texts, write_letor_rows, write_table_rows
from lmart.kernels.text.shortest_decimals import LONGEST_NUMBER
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool

PIECE_FIELDS = 1 << 16  # about as many are written at once, which takes less than a megabyte as a rule
powers_of_ten = cache(shortest_decimals.powers_of_ten)
FIELD = LONGEST_NUMBER + 1  # bytes of a number and what stands behind it
_BREAKS_WORDS = re.compile(r"[\s\x00-\x1f\x7f]")


def texts_of(strings: Sequence[str] | None) -> Texts:
    """Return texts as kernels take them; None: there are none."""
    joined = "".join(strings or ())
    raw = joined.encode("utf-8", "surrogateescape")
    content = np.zeros(len(raw) + MARGIN, np.uint8)
    content[: len(raw)] = np.frombuffer(raw, np.uint8)
    offsets = np.zeros(len(strings or ()) + 1, np.int64)
    if strings:
        if len(raw) == len(joined):
            lengths = list(map(len, strings))
        else:
            lengths = [len(text.encode("utf-8", "surrogateescape")) for text in strings]
        np.cumsum(lengths, out=offsets[1:])
    return Texts(content, offsets)


def rows_of(block: RowBlock, queries: Texts, documents: Texts) -> RowsToWrite:
    """Return the rows of a block as kernels write them, with ids as they are to be written."""
    features = block.features
    labels = np.empty(0) if block.labels is None else block.labels
    return RowsToWrite(
        np.require(labels, np.float64, ["C", "W"]),
        np.require(block.query_offsets, np.int64, ["C", "W"]),
        queries,
        documents,
        np.require(features.offsets, np.int64, ["C", "W"]),
        np.require(features.columns, np.int32, ["C", "W"]),
        np.require(features.values, np.float64, ["C", "W"]),
    )


class RowTextWriter:
    """Writes the rows of blocks in pieces, on a pool of workers; buffers are used again."""

    def __init__(self, output: AtomicOutput, pool: WorkerPool) -> None:
        self._output = output
        self._pool = pool
        self._buffers: list[UInt8Array] = []

    def write(
        self, rows: RowsToWrite, fields: int, longest_name: int, write_rows: Callable[[int, int, UInt8Array], int]
    ) -> None:
        """Append rows; write_rows(start, stop, out) writes some to `out` and returns how many bytes that takes.

        Besides its cells a row has at most `fields` fields; besides its number a cell takes up to `longest_name` bytes.
        """
        longest_ids = sum(int(np.diff(texts.offsets).max(initial=0)) for texts in (rows.queries, rows.documents))
        row_bytes = FIELD + len("qid:#docid =   ") + longest_ids + 2 * fields  # a field without a cell: '0,'
        fields_before = rows.offsets - rows.offsets[0] + np.arange(len(rows.offsets)) * (fields + 1)
        calls = []
        for piece, (start, stop) in enumerate(even_ranges(fields_before, PIECE_FIELDS)):
            n_cells = int(rows.offsets[stop] - rows.offsets[start])
            size = (stop - start) * row_bytes + n_cells * (FIELD + longest_name) + MARGIN
            calls.append((start, stop, self._buffer(piece, size)))
        for (_, _, buffer), size in zip(calls, self._pool.run(write_rows, calls), strict=True):
            self._output.write(buffer[:size].tobytes())

    def _buffer(self, piece: int, size: int) -> UInt8Array:
        if piece == len(self._buffers):
            self._buffers.append(np.empty(size, np.uint8))
        elif size > len(self._buffers[piece]):
            self._buffers[piece] = np.empty(size + size // 8, np.uint8)
        return self._buffers[piece]


class LetorWriter:
    """Writes blocks of rows as LETOR text, every number in the shortest form that reads back equal."""

    def __init__(self, output: AtomicOutput, absent: float, pool: WorkerPool) -> None:
        """Write to `output` on `pool`; `absent` is for formats that write something where a row has no cell."""
        self._writer = RowTextWriter(output, pool)
        self._names = np.zeros((0, NAME_WORDS), np.uint64)
        self._lengths = np.zeros(0, np.uint64)

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows. OutputError when an id cannot stand in LETOR text."""
        self._check_queries(block)
        self._check_documents(block)
        if len(features.ids) != len(self._names):  # ids of columns stay as they are
            self._names, self._lengths = _names_of(features.ids.tolist())
        documents = block.document_ids if block.document_ids and any(block.document_ids) else None
        rows = rows_of(block, texts_of(block.query_ids), texts_of(documents))

        def write_rows(start: int, stop: int, out: UInt8Array) -> int:
            return write_letor_rows(rows, start, stop, self._names, self._lengths, powers_of_ten(), out)

        self._writer.write(rows, 0, int(self._lengths.max(initial=0)), write_rows)

    def finish(self) -> None:
        """Nothing is left to write."""

    @staticmethod
    def _check_queries(block: RowBlock) -> None:
        ids = block.query_ids or ()
        joined = "".join(ids)
        if _BREAKS_WORDS.search(joined) or "#" in joined or not all(ids):
            for query_id, start in zip(ids, block.query_offsets.tolist(), strict=False):
                if not query_id or _BREAKS_WORDS.search(query_id) or "#" in query_id:
                    raise _misfit("query id", query_id, block.first_line + start)

    @staticmethod
    def _check_documents(block: RowBlock) -> None:
        ids = block.document_ids or ()
        if _BREAKS_WORDS.search("".join(ids)):
            row = next(row for row, document_id in enumerate(ids) if _BREAKS_WORDS.search(document_id))
            raise _misfit("document id", ids[row], block.first_line + row)


def _misfit(what: str, text: str, row: int) -> OutputError:
    why = "it is empty or holds a blank, a control character or '#'"
    return OutputError(f"{what} {quote(text)} (near line {row}) cannot stand in LETOR text: {why}; rename it")


def _names_of(ids: Sequence[int]) -> tuple[UInt64Array, UInt64Array]:
    """Return the bytes of `ID:` of each id as words, uint64[n, NAME_WORDS], and how many bytes they are, uint64[n]."""
    names = [f"{feature_id}:".encode() for feature_id in ids]
    padded = b"".join(name.ljust(8 * NAME_WORDS, b"\0") for name in names)
    words = np.frombuffer(padded, "<u8").reshape(len(names), NAME_WORDS).astype(np.uint64)
    return words, np.array([len(name) for name in names], np.uint64)


class DelimitedWriter:
    """Writes blocks of rows as CSV or TSV with a header; a missing value is an empty field, or nan alone in a line."""

    format: str

    def __init__(self, output: AtomicOutput, absent: float, pool: WorkerPool) -> None:
        """Write to `output` on `pool`; `absent` (0 or nan) stands where a row has no cell."""
        self._output = output
        self._writer = RowTextWriter(output, pool)
        self._delimiter = DELIMITERS[self.format]
        self._needs_quotes = re.compile(f'[{self._delimiter}"\n\r]')
        self._absent = absent
        self._started = False

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows; the first block decides which columns there are besides the features."""
        feature_names = features.names
        if not self._started:
            self._started = True
            there = {"label": block.labels, "qid": block.query_ids, "docid": block.document_ids}
            self._write_header([name for name, values in there.items() if values is not None], feature_names)
        rows = rows_of(block, texts_of(self._quoted(block.query_ids)), texts_of(self._quoted(block.document_ids)))
        n_features, delimiter, is_missing = len(feature_names), ord(self._delimiter), math.isnan(self._absent)

        def write_rows(start: int, stop: int, out: UInt8Array) -> int:
            return write_table_rows(rows, start, stop, n_features, delimiter, is_missing, powers_of_ten(), out)

        self._writer.write(rows, n_features, 0, write_rows)

    def finish(self) -> None:
        """Nothing is left to write."""

    def _write_header(self, names: Sequence[str], feature_names: Sequence[str]) -> None:
        refuse_usual(feature_names, self._output.path)
        first = [*names, *feature_names][:1]
        if first and first[0].startswith(BYTE_ORDER_MARK.decode()):
            what = f"the first column is named {quote(first[0])}, which begins with a byte order mark"
            raise OutputError(f"{what}; rename it", self._output.path)
        if fault := data_fault([*names, *feature_names], ReadOptions(require_labels=False)):
            what = f"the header would be read as data: {fault}"
            raise OutputError(f"{what}; rename the columns, or write LETOR or Parquet", self._output.path)
        header = [*names, *(self._quoted(feature_names) or ())]
        self._output.write(self._delimiter.join(header) + "\n")

    def _quoted(self, texts: Sequence[str] | None) -> Sequence[str] | None:
        """Return texts as they stand in fields: with quotes where they hold what would end a field."""
        if not texts or not self._needs_quotes.search("".join(texts)):
            return texts
        return ['"' + text.replace('"', '""') + '"' if self._needs_quotes.search(text) else text for text in texts]


class CsvWriter(DelimitedWriter):
    """Writes CSV."""

    format = "csv"


class TsvWriter(DelimitedWriter):
    """Writes TSV."""

    format = "tsv"
