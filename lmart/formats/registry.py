"""The table of formats: what can be read and written, and how a format is told from a name or from content."""

from __future__ import annotations

from collections.abc import Sequence

from lmart.dataset import RankingDataset
from lmart.errors import DataError
from lmart.formats.assembly import DatasetBuilder, QuerySizes, SizedRows
from lmart.formats.letor import LetorReader
from lmart.formats.options import ReadOptions
from lmart.formats.rows import FeatureTable, QueryLedger, RowBlock, RowReader
from lmart.formats.sidecars import read_query_sizes
from lmart.streams import open_input
from lmart.threads import WorkerPool

__all__ = ["ReadOptions", "RowBlock", "RowReader", "open_rows", "read_dataset"]


def open_rows(path: str, options: ReadOptions, pool: WorkerPool | None = None) -> RowReader:
    """Open one input for reading in blocks, in constant memory. DataError when it cannot be read."""
    sizes = _query_sizes(options)
    return _open(path, options, pool or WorkerPool(1), FeatureTable(), QueryLedger(options.group_by_qid), sizes)


def read_dataset(paths: Sequence[str], options: ReadOptions, pool: WorkerPool | None = None) -> RankingDataset:
    """Read the inputs, in order, as one data set. DataError on the first fault, with those that follow it.

    A query that comes back is refused, in another input too; with group_by_qid its rows are collected at the first.
    Without labels (only if require_labels is off) all labels are 0; without queries all rows are one query, ''.
    """
    pool = pool or WorkerPool(1)
    table, ledger = FeatureTable(), QueryLedger(options.group_by_qid)
    sizes = _query_sizes(options)
    builder = DatasetBuilder(pool)
    for path in paths:
        before = builder.n_documents
        with _open(path, options, pool, table, ledger, sizes) as reader:
            for block in reader.volatile_blocks():
                builder.add(block, path)
                if len(paths) == 1:
                    builder.expect(reader.progress)
        if builder.n_documents == before:
            raise DataError("there are no rows in it; check the step that made it", path)
    if sizes is not None:
        sizes.check_end()
    source = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    return builder.finish(table, source, options.group_by_qid)


def _query_sizes(options: ReadOptions) -> QuerySizes | None:
    path = options.query_sizes
    return None if path is None else QuerySizes(path, read_query_sizes(path))


def _open(
    path: str,
    options: ReadOptions,
    pool: WorkerPool,
    table: FeatureTable,
    ledger: QueryLedger,
    sizes: QuerySizes | None,
) -> RowReader:
    stream = open_input(path)
    reader: RowReader = LetorReader(stream, b"", options, pool, table, ledger)
    return reader if sizes is None else SizedRows(reader, sizes)
