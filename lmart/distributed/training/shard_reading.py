"""What a worker reads: adjacent parts of a data set, in as many passes as bins need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array, UInt64Array
from lmart.binning.binned_features import BinnedFeatures, Coder, RowsToCode, count_bins, lay_out, row_arrays
from lmart.binning.edge_sample import ColumnCounts, RowSample
from lmart.binning.edges import BinEdges, count_sample, gather_cells
from lmart.binning.validation_set import CodedDataset, ValidationCoder
from lmart.distributed.query_places import Place, codes_of, places_of
from lmart.errors import DataError
from lmart.formats.documents.dataset_builder import LabelAndIdBuilder
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import Batch, read_batches, source_name
from lmart.formats.documents.row_blocks import SeenQueries
from lmart.formats.read_options import ReadOptions
from lmart.gains import grade_scale
from lmart.scoring.ensemble import Ensemble
from lmart.streams import changed_while_read, state_of
from lmart.threads import WorkerPool


class PartsFound(NamedTuple):
    """What a shard found in its parts of a data set.

    n_documents, n_queries, n_single : rows, queries, and queries of one row
    grade_scale : the largest label rounded up, but at least 4
    ids         : int64[n_columns], of its features, in the order of first appearance
    names       : of the columns; None: they have none
    of_tables   : by part with a header: the ids that it has a column for
    ignored     : the indices to ignore, and whether a row had them
    query_codes : uint64[n_queries], a hash of each query id
    told        : what readers told, and whether it is a warning
    """

    n_documents: int
    n_queries: int
    n_single: int
    grade_scale: int
    ids: Int64Array
    names: tuple[str, ...] | None
    of_tables: dict[str, Int64Array]
    ignored: dict[int, bool]
    query_codes: UInt64Array
    told: list[tuple[str, bool]]


class PartsReader:
    """Reads adjacent parts of one data set.

    paths   : the parts, in order
    options : how they are read
    pool    : the workers
    check   : called from time to time; raises when the run was given up
    """

    def __init__(self, paths: Sequence[str], options: ReadOptions, pool: WorkerPool, check: Callable[[], None]) -> None:
        self.paths, self.table, self.source = paths, FeatureTable(), source_name(paths) if paths else "data"
        self.told: list[tuple[str, bool]] = []
        self._options = replace(options, tell=self._tell)
        self._pool, self._check = pool, check
        self._queries = SeenQueries(group_by_qid=False)
        self.labels: Float64Array = np.zeros(0)
        self.query_offsets: Int64Array = np.zeros(1, np.int64)
        self.part_rows = [0] * len(paths)
        self._states = {path: state_of(path) for path in paths}

    def _tell(self, text: str, is_warning: bool) -> None:
        if text != f"{self.source}: {self.table.never_met()}":  # which all parts together decide
            self.told.append((text, is_warning))

    def batches(self, table: FeatureTable | None = None, queries: SeenQueries | None = None) -> Iterator[Batch]:
        """Yield the rows of all parts, in batches of blocks.

        table   : the features met so far; None: those of this reader
        queries : the queries met so far; None: they were all met before
        """
        table = self.table if table is None else table
        seen = SeenQueries(group_by_qid=True) if queries is None else queries
        if queries is not None:
            self.part_rows = [0] * len(self.paths)
        for batch in read_batches(self.paths, self._options, self._pool, table, seen_queries=seen):
            self._check()
            if queries is not None:
                self.part_rows[self.paths.index(batch.path)] += sum(map(len, batch.blocks))
            yield batch

    def found(self, ids_and_labels: LabelAndIdBuilder) -> PartsFound:
        """Keep the labels and queries of all parts, and return what was found.

        ids_and_labels : of all parts
        """
        self.labels, self.query_offsets = ids_and_labels.finish_labels()
        sizes, names = np.diff(self.query_offsets), self.table.names
        return PartsFound(
            len(self.labels),
            len(sizes),
            int((sizes == 1).sum()),
            grade_scale(self.labels),
            self.table.ids.copy(),
            None if names is None else tuple(names),
            dict(self.table.of_tables),
            dict(self.table.ignored),
            codes_of(ids_and_labels.query_ids),
            self.told,
        )

    def first_places(self, codes: Sequence[int]) -> dict[str, Place]:
        """Return part and line of the first row of each query with one of these hashes, by id.

        codes : of query ids
        """
        return places_of(self._queries.places, codes)

    def refuse_changed(self) -> None:
        """Raise DataError when a part is no longer what it was at first."""
        for path, before in self._states.items():
            if state_of(path) != before:
                raise changed_while_read(path)


class TrainingParts(PartsReader):
    """The parts of a training set in a shard: read once for labels and queries, and again for bins if they are many."""

    def first_pass(self, seed: int, most_kept: int) -> PartsFound:
        """Read labels and queries, and keep the rows if they are few.

        seed      : of the sample
        most_kept : rows that are kept at most
        """
        self._seed = seed
        ids_and_labels, counts = LabelAndIdBuilder(), ColumnCounts()
        self._sample: RowSample | None = RowSample(seed)
        for path, blocks, _ in self.batches(queries=self._queries):
            first_row = ids_and_labels.n_documents
            for block in blocks:
                ids_and_labels.add(block, path)
            parts = [block.features for block in blocks]
            counts.add(parts, len(self.table), self._pool)
            if self._sample is not None and ids_and_labels.n_documents <= most_kept:
                self._sample.add(parts, first_row, self._pool)
            else:
                self._sample = None
        self._counts = counts.finish(len(self.table))
        return self.found(ids_and_labels)

    def sample(self, first_row: int, places: Int32Array, halvings: int) -> tuple[int, int]:
        """Choose the rows of the sample that bin edges are chosen from; return how many, and how often it was halved.

        first_row : number of the shard's first row in the data
        places    : int32[n_columns], the feature of each column
        halvings  : how often the sample is halved at least
        """
        self._places = places
        if self._sample is None:
            self._sample, row = RowSample(self._seed, halvings), first_row
            for _, blocks, _ in self._second(len(self.table)):
                parts = [block.features for block in blocks]
                self._sample.add(parts, row, self._pool)
                self._sample.expect(len(self.labels) >> halvings)
                row += sum(map(len, parts))
        elif halvings and self._sample.has_every_row:
            self._sample.move(first_row)
        self._sample.halve_to(halvings)
        return len(self._sample), self._sample.halvings

    def counts(self, n_features: int) -> tuple[Int64Array, Int64Array]:
        """Return cells by feature: int64[2, m] in the sample (numbers, missing), int64[3, m] of all rows.

        n_features : of the data
        """
        assert self._sample is not None
        of_sample, of_all = np.zeros((2, n_features), np.int64), np.zeros((3, n_features), np.int64)
        of_sample[:, self._places] = count_sample(self._sample, len(self._places))
        of_all[:, self._places] = self._counts
        self._sampled_numbers = of_sample[0]
        return of_sample, of_all

    def cells(self, first: int, last: int) -> Float64Array:
        """Return the numbers of features in the sample, one feature after the other.

        first, last : the features first..last - 1
        """
        assert self._sample is not None
        return gather_cells(self._sample.rows, self._places, first, self._sampled_numbers[first:last])

    def code(self, edges: BinEdges) -> Int64Array:
        """Find the bins of all rows; return the documents in each, int64[m, 256].

        edges : of m features
        """
        n = len(self.labels)
        self._edges, self._bins = edges, np.empty((edges.n_features, n), np.uint8)
        coder = Coder(edges, self._places, self._pool)
        if self._sample is not None and self._sample.has_every_row:
            coder.code([RowsToCode(self._sample.rows, 0, n, 0, self._bins)])
        else:
            self._sample = None
            row = 0
            for _, blocks, _ in self._second(len(self.table)):
                pieces = []
                for block in blocks:
                    pieces.append(RowsToCode(row_arrays(block.features), 0, len(block), row, self._bins))
                    row += len(block)
                coder.code(pieces)
        self._sample = None
        return count_bins(self._bins, self._pool)

    def lay_out(self, counts_of_all: Int64Array) -> BinnedFeatures:
        """Return the rows laid out for growing trees.

        counts_of_all : int64[m, 256], documents of all shards in each bin
        """
        bins: UInt8Array = self._bins
        del self._bins
        return lay_out(self._edges, bins, self._pool, counts_of_all)

    def _second(self, n_columns: int) -> Iterator[Batch]:
        """Yield all rows once more; DataError when they are not those of the first pass."""
        self.refuse_changed()
        row = 0
        try:
            for batch in self.batches():
                for block in batch.blocks:
                    before, row = row, row + len(block)
                    own = np.zeros(len(block)) if block.labels is None else block.labels
                    if len(self.table) > n_columns or not np.array_equal(self.labels[before:row], own):
                        raise changed_while_read(batch.path)
                yield batch
        except DataError:
            self.refuse_changed()
            raise
        self.refuse_changed()
        if row < len(self.labels):
            raise changed_while_read(self.paths[-1])


class ValidationParts(PartsReader):
    """The parts of a validation set in a shard."""

    def read(self, model: Ensemble, edges: BinEdges) -> PartsFound:
        """Read the parts into bins.

        model : has the features of the training set
        edges : the bins of the training set
        """
        ids_and_labels, coder = LabelAndIdBuilder(), ValidationCoder(model, edges, self._pool)
        for path, blocks, _ in self.batches(queries=self._queries):
            for block in blocks:
                ids_and_labels.add(block, path)
            coder.add([block.features for block in blocks], self.table.ids, self.table.names)
        found = self.found(ids_and_labels)
        self.coded: CodedDataset = coder.collect(self.labels, self.query_offsets, self.source)
        return found
