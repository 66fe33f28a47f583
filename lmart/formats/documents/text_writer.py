"""Rows of blocks as text: kernels write pieces of a block side by side, which go to the output in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from lmart.array_types import Int64Array, UInt8Array
from lmart.formats.documents.blocks import RowBlock
from lmart.kernels.text import shortest_decimals
from lmart.kernels.text.row_text import MARGIN, RowsToWrite, Texts
from lmart.kernels.text.shortest_decimals import LONGEST_NUMBER
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool

PIECE_FIELDS = 1 << 16  # about as many are written at once, which takes less than a megabyte as a rule
powers_of_ten = cache(shortest_decimals.powers_of_ten)
FIELD = LONGEST_NUMBER + 1  # bytes of a number and what stands behind it


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
        calls = []
        for piece, (start, stop) in enumerate(_pieces(rows.offsets, fields)):
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


def _pieces(offsets: Int64Array, fields: int) -> list[tuple[int, int]]:
    """Return (start, stop) of adjacent ranges of rows, of about PIECE_FIELDS fields each."""
    n = len(offsets) - 1
    fields_above = offsets - offsets[0] + np.arange(n + 1) * (fields + 1)
    marks = np.arange(PIECE_FIELDS, int(fields_above[-1]), PIECE_FIELDS)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(fields_above, marks), [n]])).tolist()
    return list(pairwise(bounds))
