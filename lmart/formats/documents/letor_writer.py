"""Writing blocks of rows as LETOR text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from lmart.array_types import UInt8Array, UInt64Array
from lmart.errors import OutputError, quote
from lmart.formats.documents.row_blocks import FeatureColumns, RowBlock
from lmart.formats.documents.row_text_writer import RowTextWriter, powers, rows_of, texts_of
from lmart.kernels.text.row_text import NAME_WORDS, RowsToWrite, write_letor_rows
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool

_BREAKS_WORDS = re.compile(r"[\s\x00-\x1f\x7f]")


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
        write_rows = partial(_write_rows, rows, self._names, self._lengths)
        self._writer.write(rows, 0, int(self._lengths.max(initial=0)), write_rows)

    def finish(self) -> None:
        """Nothing is left to write."""

    @staticmethod
    def _check_queries(block: RowBlock) -> None:
        ids = block.query_ids or ()
        whole = "".join(ids)
        if _BREAKS_WORDS.search(whole) or "#" in whole or not all(ids):
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


def _write_rows(
    rows: RowsToWrite, names: UInt64Array, lengths: UInt64Array, start: int, stop: int, out: UInt8Array
) -> int:
    return write_letor_rows(rows, start, stop, names, lengths, powers(), out)
