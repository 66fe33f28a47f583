"""Reading files into bins: the raw values are never all in memory.

A training set is read twice: once for its labels, its queries and the sample that bin edges are chosen from, and once
for the bins, unless the sample holds every row. The result is that of binning the data set in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.binning.binned_features import BinnedDataset, CodedBins, TrainingCoder, lay_out, row_arrays
from lmart.binning.categories import bin_training_set, describe_automatic
from lmart.binning.edge_sample import ColumnCounts, RowSample
from lmart.binning.edges import BinEdges, choose_bin_edges
from lmart.binning.validation_set import CodedDataset, ValidationCoder, code_dataset
from lmart.errors import DataError
from lmart.formats.documents.dataset_builder import LabelAndIdBuilder
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import Batch, for_models, read_batches, read_dataset, source_name
from lmart.formats.read_options import ReadOptions
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.scorer import ModelScores
from lmart.settings import TrainSettings
from lmart.streams import Spool, can_be_reread, can_spool, changed_while_read, refuse_changed_files, state_of
from lmart.threads import WorkerPool


def read_training_set(
    paths: Sequence[str],
    options: ReadOptions,
    settings: TrainSettings,
    pool: WorkerPool,
    scores: ModelScores | None = None,
) -> BinnedDataset:
    """Read the inputs, in order, as one training set in bins. DataError as `read_dataset`, and when a file changes.

    With categories, whose order needs the labels of all rows, the whole set is read into memory first.

    scores   : scorer of the model to continue, which sees each row once; None: no model
    """
    once = [not can_be_reread(path) for path in paths]
    sizes_once = options.query_sizes is not None and not can_be_reread(options.query_sizes)
    if options.group_by_qid or sizes_once or settings.categorical or (any(once) and not can_spool()):
        dataset = read_dataset(paths, options, pool)
        for text in describe_automatic(dataset, dataset.n_documents) if options.auto_categories else ():
            options.notice(text)
        return bin_training_set(dataset, settings, pool, scores)
    with ExitStack() as stack:
        spools = [Spool(path) if kept else None for path, kept in zip(paths, once, strict=True)]
        for spool in filter(None, spools):
            stack.callback(spool.close)
        return _TwoPasses(paths, options, spools, pool, scores).read(settings)


def read_validation_set(
    path: str,
    options: ReadOptions,
    model: Ensemble,
    edges: BinEdges,
    pool: WorkerPool,
    strict: bool = False,
    scores: ModelScores | None = None,
) -> CodedDataset:
    """Read a validation set into the training set's bins. DataError as `read_dataset` and `FeatureMatcher.refuse`."""
    options = for_models(options, [model] if scores is None else [model, scores.model])
    if options.group_by_qid:
        dataset = read_dataset([path], options, pool)
        if scores is not None:
            scores.add([dataset.features], dataset.feature_ids, dataset.feature_names)
        return code_dataset(dataset, model, edges, pool, strict)
    table, labels_and_ids, coder = FeatureTable(), LabelAndIdBuilder(), ValidationCoder(model, edges, pool)
    for _, blocks, _ in read_batches([path], options, pool, table):
        for block in blocks:
            labels_and_ids.add(block, path)
        parts = [block.features for block in blocks]
        coder.add(parts, table.ids, table.names)
        if scores is not None:
            scores.add(parts, table.ids, table.names)
    coder.refuse_numbers(path, table.of_tables)
    return coder.finish(*labels_and_ids.finish_labels(), path, table.of_tables, strict=strict)


def read_again(
    batches: Iterable[Batch],
    labels: Float64Array,
    table: FeatureTable,
    refuse_changed: Callable[[], None],
    paths: Sequence[str],
) -> Iterator[Batch]:
    """Yield all rows once more; DataError when they are not those of the first pass."""
    refuse_changed()
    row, n_columns = 0, len(table)
    try:
        for batch in batches:
            for block in batch.blocks:
                first, row = row, row + len(block)
                again = np.zeros(len(block)) if block.labels is None else block.labels
                if len(table) > n_columns or not np.array_equal(labels[first:row], again):
                    raise changed_while_read(batch.path)
            yield batch
    except DataError:
        refuse_changed()
        raise
    refuse_changed()
    if row < len(labels):
        raise changed_while_read(paths[-1])


def code_batches(batches: Iterable[Batch], coder: TrainingCoder) -> CodedBins:
    """Return the bins of all rows of a data set."""
    for batch in batches:
        coder.add([row_arrays(block.features) for block in batch.blocks])
    return coder.finish()


class _TwoPasses:
    """Reads one training set into bins, in two passes."""

    def __init__(
        self,
        paths: Sequence[str],
        options: ReadOptions,
        spools: Sequence[Spool | None],
        pool: WorkerPool,
        scores: ModelScores | None,
    ) -> None:
        self._paths = paths
        self._options = options
        self._spools = spools
        self._pool = pool
        self._scores = scores
        self._table = FeatureTable()
        self._states = {path: state_of(path) for path, spool in zip(paths, spools, strict=True) if spool is None}

    def read(self, settings: TrainSettings) -> BinnedDataset:
        """Return the training set in bins, as the settings want them."""
        labels, query_offsets, edges, coded = self._first_pass(settings)
        if coded is None:
            coded = self._second_pass(edges, labels)
        order, _ = self._table.ascending()
        ids, names = self._table.ids[order], self._table.names_of(order)
        features = lay_out(edges, coded, settings.min_docs, self._pool)
        source, tables = source_name(self._paths), self._table.of_tables
        return BinnedDataset(features, ids, labels, query_offsets, names, source=source, table_features=tables)

    def _first_pass(self, settings: TrainSettings) -> tuple[Float64Array, Int64Array, BinEdges, CodedBins | None]:
        """Return labels, query offsets and bin edges, and the bins, if the sample has every row."""
        labels_and_ids, sample, counts = LabelAndIdBuilder(), RowSample(settings.seed), ColumnCounts()
        for path, blocks, progress in read_batches(self._paths, self._options, self._pool, self._table, self._spools):
            first_row = labels_and_ids.n_documents
            for block in blocks:
                labels_and_ids.add(block, path)
            parts = [block.features for block in blocks]
            counts.add(parts, len(self._table), self._pool)
            sample.add(parts, first_row, self._pool)
            if self._scores is not None:
                self._scores.add(parts, self._table.ids, self._table.names)
            if progress > 0.0:
                sample.expect(int(labels_and_ids.n_documents / progress))
        labels, query_offsets = labels_and_ids.finish_labels()
        n, (_, places) = len(labels), self._table.ascending()
        all_counts = counts.finish(len(places))
        limits = (settings.max_bins, settings.absent, settings.min_docs)
        edges = choose_bin_edges(sample, all_counts, n, places, *limits, self._pool)
        if not sample.has_every_row:
            return labels, query_offsets, edges, None
        coder = TrainingCoder(edges, places, n, self._pool)
        coder.add([sample.rows])
        return labels, query_offsets, edges, coder.finish()

    def _second_pass(self, edges: BinEdges, labels: Float64Array) -> CodedBins:
        """Return the bins of all rows."""
        for spool in filter(None, self._spools):
            spool.rewind()
        coder = TrainingCoder(edges, self._table.ascending()[1], len(labels), self._pool)
        batches = read_batches(self._paths, self._options, self._pool, self._table, self._spools)
        return code_batches(read_again(batches, labels, self._table, self._refuse_changed, self._paths), coder)

    def _refuse_changed(self) -> None:
        refuse_changed_files(self._states)
