"""Data from one format to another: rows stream from reader to writer, in constant memory where the header allows it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from lmart.data.dataset import RankingDataset
from lmart.errors import OutputError
from lmart.formats.documents.blocks import FeatureColumns, RowBlock, RowReader, RowWriter
from lmart.formats.documents.feature_table import ascending
from lmart.formats.documents.reading import open_rows, read_dataset
from lmart.formats.documents.splitting import QueryDraw, SplitWriter, names_of_parts
from lmart.formats.format_records import DataFormat
from lmart.formats.read_options import ReadOptions, ReadState
from lmart.streams import AtomicOutputs
from lmart.threads import WorkerPool, chunks

BLOCK_ROWS = 1 << 13


def convert_data(
    src: str,
    dst: str,
    target: DataFormat,
    absent: float,
    options: ReadOptions,
    pool: WorkerPool,
    draw: QueryDraw | None = None,
) -> tuple[str, ...] | None:
    """Write the rows of `src` to `dst` in the format `target`; return the names of the features, None if numbered.

    With a `draw`, whole queries go to the files that `names_of_parts` gives, one of each part; all of them have ids.
    A row without a cell gets `absent` (0 or nan) in a table. A table's header needs all features: LETOR text is held in
    memory for it, all else is streamed. With group_by_qid labels and query ids are required. DataError when there are
    no rows, or a part gets no query.
    """

    def make_writer(outputs: AtomicOutputs) -> RowWriter:
        paths = [dst] if draw is None else names_of_parts(dst, len(draw.n_queries))
        load = target.load_writer
        writers: list[RowWriter] = [load(path, OutputError)(outputs.open(path), absent, pool) for path in paths]
        return writers[0] if draw is None else SplitWriter(writers, draw, src)

    if options.group_by_qid:
        options = dataclasses.replace(options, require_labels=True, require_queries=True)
        dataset = read_dataset([src], options, pool)
        with AtomicOutputs() as outputs:
            blocks = _without_empty_document_ids(list(_blocks_of(dataset)))
            _write(blocks, dataset, dataset.feature_names, make_writer(outputs), target.is_named)
        return dataset.feature_names
    with open_rows(src, options, pool) as reader, AtomicOutputs() as outputs:
        writer = make_writer(outputs)
        blocks = iter(reader)
        blocks = itertools.chain([next(blocks)], blocks)  # the names are known after the first block
        names = None if reader.feature_names is None else tuple(reader.feature_names)
        if target.is_named and names is None:
            blocks = _watched(list(blocks), dst, options)  # the header needs all features
        _write(blocks, reader, names, writer, target.is_named)
        return names


def _without_empty_document_ids(blocks: list[RowBlock]) -> Iterator[RowBlock]:
    if any(text for block in blocks for text in block.document_ids or ()):
        return iter(blocks)
    return (dataclasses.replace(block, document_ids=None) for block in blocks)


def _watched(blocks: list[RowBlock], dst: str, options: ReadOptions) -> Iterator[RowBlock]:
    """Yield blocks that are all in memory, and report how far their writing is, as reading is reported."""
    for number, block in enumerate(_without_empty_document_ids(blocks)):
        if options.watch is not None:
            options.watch(ReadState(dst, number / len(blocks), 0, 0, False))
        yield block
    if options.watch is not None:
        options.watch(ReadState(dst, 1.0, 0, 0, True))


def _write(
    blocks: Iterator[RowBlock],
    source: RowReader | RankingDataset,
    names: tuple[str, ...] | None,
    writer: RowWriter,
    is_named: bool,
) -> None:
    """Write blocks of rows; `is_named` outputs have a header of the features that `source` has after the last block."""
    if not is_named:
        for block in blocks:
            ids = np.arange(1, len(names) + 1) if names is not None else source.feature_ids
            writer.write(block, FeatureColumns(ids))
        writer.finish()
        return
    feature_ids = source.feature_ids
    order, number = ascending(feature_ids)
    is_ascending = np.array_equal(order, np.arange(len(order)))
    header = [names[i] if names is not None else str(feature_ids[i]) for i in order.tolist()]
    features = FeatureColumns(feature_ids[order], header)
    for block in blocks:
        columns = block.features.columns if is_ascending else number[block.features.columns]
        rows = dataclasses.replace(block.features, columns=columns)
        writer.write(dataclasses.replace(block, features=rows), features)
    writer.finish()


def _blocks_of(dataset: RankingDataset) -> Iterator[RowBlock]:
    offsets = dataset.query_offsets
    for start, stop in chunks(dataset.n_documents, BLOCK_ROWS):
        first = int(np.searchsorted(offsets, start, "right")) - 1
        last = int(np.searchsorted(offsets, stop, "left"))
        yield RowBlock(
            dataset.features.between(start, stop),
            dataset.labels[start:stop],
            list(dataset.query_ids[first:last]),
            np.clip(offsets[first : last + 1], start, stop) - start,
            bool(offsets[first] < start),
            None if dataset.document_ids is None else list(dataset.document_ids[start:stop]),
            start + 1,
        )
