"""Reading data of any format: one input in blocks of rows, or several as one data set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from lmart.data.dataset import RankingDataset, SparseRows
from lmart.errors import DataError, input_name, listed, quote
from lmart.formats.detection import data_format, read_head, refuse_foreign
from lmart.formats.documents.blocks import (
    CellBuffer,
    RowBlock,
    RowReader,
    RowSource,
    SeenQueries,
    WrappedReader,
    without_cells,
)
from lmart.formats.documents.dataset_builder import DatasetBuilder, QuerySizes, SizedRows
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.metadata_files import read_query_sizes
from lmart.formats.read_options import ReadOptions, ReadState
from lmart.formats.registry import DATA_FORMATS
from lmart.scoring.ensemble import Ensemble
from lmart.streams import InputStream, Spool, open_input
from lmart.threads import WorkerPool

Blocks = TypeVar("Blocks", RowBlock, list[RowBlock])


def open_rows(
    path: str,
    options: ReadOptions,
    pool: WorkerPool | None = None,
    seen_queries: SeenQueries | None = None,
    alone: bool = True,
) -> RowReader:
    """Open one input for reading in blocks, in constant memory. DataError when it cannot be read.

    path  : plain or compressed; '-': standard input
    alone : whether it is all of the data, so that its end tells which features to ignore no row had
    """
    seen_queries = SeenQueries(options.group_by_qid) if seen_queries is None else seen_queries
    shared = _Shared(FeatureTable(), seen_queries, _query_sizes(options))
    return _open(path, options, pool or WorkerPool(1), shared, alone=alone)


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
    seen_queries: SeenQueries | None = None,
) -> Iterator[Batch]:
    """Read the inputs, in order, as one data set. DataError on the first fault, with those that follow it.

    Some of several inputs may have no rows, and all of them with `options.may_be_empty`.

    table       : the features met so far; new ones are added
    spools       : for each input that cannot be read twice, what stores its bytes and replays them; None for the others
    cell_buffer  : where LETOR, CSV and TSV readers put the cells of rows; None: in buffers of their own
    """
    seen_queries = SeenQueries(options.group_by_qid) if seen_queries is None else seen_queries
    shared = _Shared(table, seen_queries, _query_sizes(options))
    sizes = shared.sizes
    empty: list[str] = []
    of_each = dataclasses.replace(options, may_be_empty=options.may_be_empty or len(paths) > 1)
    for number, (path, spool) in enumerate(zip(paths, spools or [None] * len(paths), strict=True)):
        if number == options.others_from:
            shared = shared._replace(seen_queries=SeenQueries(options.group_by_qid))
        with _open(path, of_each, pool, shared, spool, cell_buffer) as reader:
            empty.append(path)
            for blocks in reader.volatile_batches():
                empty = [other for other in empty if other != path]
                yield Batch(path, blocks, reader.progress if len(paths) == 1 else 0.0)
    if not options.may_be_empty:
        refuse_or_tell_empty(empty, len(paths), options)
    if sizes is not None:
        sizes.check_end(source_name(paths))
    if not options.beside_others and (unmet := table.never_met()):
        options.warning(f"{source_name(paths)}: {unmet}")


def refuse_or_tell_empty(empty: Sequence[str], n_inputs: int, options: ReadOptions) -> None:
    """Raise DataError when no input of a data set has rows; tell of those that have none."""
    if not empty:
        return
    if len(empty) == n_inputs:
        raise DataError("there are no rows in it; check the step that made it", source_name(empty))
    options.notice(f"{input_name(source_name(empty))}: there are no rows in {'them' if empty[1:] else 'it'}")


def source_name(paths: Sequence[str]) -> str:
    """Return what to call the inputs in messages."""
    return listed(paths, 1, str)


TakeRows: TypeAlias = Callable[[Sequence[SparseRows], FeatureTable], bool]
"""Gets the next rows, in the order of the inputs, and the features so far; returns whether their cells may go."""


def read_dataset(
    paths: Sequence[str], options: ReadOptions, pool: WorkerPool | None = None, take: TakeRows | None = None
) -> RankingDataset:
    """Read the inputs, in order, as one data set in memory. DataError on the first fault, with those that follow it.

    A query whose rows are not adjacent is refused, even across inputs; with group_by_qid its rows are put together.
    Without labels (only if require_labels is off) all labels are 0; without queries all rows are one query, ''.

    take : gets all rows; those that it has done with have no cells in the data set
    """
    pool = pool or WorkerPool(1)
    table, builder = FeatureTable(), DatasetBuilder(pool)
    cell_buffer = builder if take is None else None
    for path, blocks, progress in read_batches(paths, options, pool, table, cell_buffer=cell_buffer):
        is_done = take is not None and take([block.features for block in blocks], table)
        for block in blocks:
            builder.add(without_cells(block) if is_done else block, path)
            builder.expect(progress)
    return builder.finish(table, source_name(paths), options.group_by_qid)


def for_models(options: ReadOptions, models: Sequence[Ensemble]) -> ReadOptions:
    """Return the options for data that only these models are to score: of tables only their features are parsed.

    DataError when two models have other texts in a category of the same name.
    """
    if any(model.categories for model in models):
        options = dataclasses.replace(options, categories=_texts_of(models), auto_categories=False)
    named = {model.feature_names is not None for model in models}
    if len(named) > 1:  # matched by name for one, by number for the other
        return options
    names = {model.feature_name(column) for model in models for column in range(model.n_features)}
    return dataclasses.replace(options, known_features=frozenset(names))


def _texts_of(models: Sequence[Ensemble]) -> dict[str, dict[str, int]]:
    """Return the place of each text among the values of categories, by the name of the category."""
    found: dict[str, dict[str, int]] = {}
    for model in models:
        for of_feature in model.categories:
            if of_feature.of_texts or not of_feature.values:
                name = model.feature_name(of_feature.column)
                places = {str(value): place for place, value in enumerate(of_feature.values)}
                if found.setdefault(name, places) != places:
                    what = f"the models have other values of category {quote(name)}, or another order of them"
                    raise DataError(f"{what}; give one model at a time")
    return found


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
    """Open one input of a data set; `alone`: no other input follows."""
    stream = open_input(path, spool)
    try:
        head = read_head(stream)
        name = options.format or data_format(path, head, options)
        refuse_foreign(path, head, name)
        if not head:
            name = "csv"  # nothing is data of any format, and this one asks for nothing before there is a header
        if name not in DATA_FORMATS:
            raise DataError(f"is a model by its name or content ({name}); give a file of judged documents", path)
        source = RowSource(stream, head, options, pool, shared.table, shared.seen_queries, cell_buffer)
        reader = DATA_FORMATS[name].load_reader(path, DataError)(source)
    except BaseException:
        stream.close()
        raise
    reader.alone = alone
    reader = _CheckedRows(reader, stream, options)
    return reader if shared.sizes is None else SizedRows(reader, shared.sizes)


class _CheckedRows(WrappedReader):
    """Raises DataError when there must be rows, and in place of another DataError when the file changed meanwhile."""

    def __init__(self, reader: RowReader, stream: InputStream, options: ReadOptions) -> None:
        super().__init__(reader)
        self._stream = stream
        self._options = options
        self._rows = 0

    def __iter__(self) -> Iterator[RowBlock]:
        return self._checked(iter(self._reader))

    def volatile_batches(self) -> Iterator[list[RowBlock]]:
        return self._checked(self._reader.volatile_batches())

    def _checked(self, blocks: Iterator[Blocks]) -> Iterator[Blocks]:
        is_empty = True
        try:
            for more in blocks:
                is_empty = False
                self._report(more)
                yield more
                del more  # no block is held while the next one is made
            if is_empty and not self._options.may_be_empty:
                refuse_or_tell_empty([self.path], 1, self._options)
        except DataError:
            self._stream.refuse_changed()
            raise
        finally:
            self._report([], ended=True)

    def _report(self, block: RowBlock | list[RowBlock], ended: bool = False) -> None:
        if self._options.watch is not None:
            self._rows += sum(map(len, block)) if isinstance(block, list) else len(block)
            self._options.watch(ReadState(self.path, self._reader.progress, self._stream.taken, self._rows, ended))
