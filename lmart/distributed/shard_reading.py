"""The sets in a shard: their parts, read in as many passes as bins need, and their metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.binning.binned_features import BinnedFeatures, CodedBins, TrainingCoder, count_bins, lay_out
from lmart.binning.categories import numbered_part
from lmart.binning.edge_sample import ColumnCounts, RowSample
from lmart.binning.edges import BinEdges, count_sample, gather_cells
from lmart.binning.two_passes import code_batches, read_again
from lmart.binning.validation_set import CodedDataset, ValidationCoder
from lmart.data.metadata import Metadata
from lmart.distributed.categories import CategoryRows
from lmart.distributed.reading import PartsFound, PartsReader, WeightsFound, joined_weights, read_part_weights
from lmart.formats import metadata_files
from lmart.formats.documents.dataset_builder import LabelAndIdBuilder
from lmart.formats.documents.reading import Batch
from lmart.scoring.ensemble import Ensemble
from lmart.training.checkpoint import content_hash


class TrainingReader(PartsReader):
    """The parts of a training set in a shard: read once for labels and queries, and again for bins if they are many."""

    def first_pass(self, seed: int, most_kept: int, absent: str | None) -> PartsFound:
        """Read labels and queries, and keep the rows if they are few, or what they hold of categories.

        absent : what an index that is not in the row means, where features are categories; None: none is
        """
        self._seed = seed
        names = self._options.categories
        self.categories = None if absent is None else CategoryRows(self.table, names, absent)
        ids_and_labels, counts = LabelAndIdBuilder(), ColumnCounts()
        self._sample: RowSample | None = RowSample(seed)
        for path, blocks, _ in self.batches(queries=self._queries):
            first_row = ids_and_labels.n_documents
            for block in blocks:
                ids_and_labels.add(block, path)
            parts = [block.features for block in blocks]
            counts.add(parts, len(self.table), self._pool)
            if self.categories is not None:
                self.categories.add(parts)
                self._sample = None
            elif self._sample is not None and ids_and_labels.n_documents <= most_kept:
                self._sample.add(parts, first_row, self._pool)
            else:
                self._sample = None
        self._counts = counts.finish(len(self.table))
        found = self.found(ids_and_labels)
        return found if self.categories is None else found._replace(texts=self.categories.texts)

    def sample(self, first_row: int, places: Int32Array, halvings: int) -> tuple[int, int]:
        """Choose the rows of the sample that bin edges are chosen from; return how many, and how often it was halved.

        halvings : how often the sample is halved at least
        """
        self._places = places
        if self._sample is None:
            self._sample, row = RowSample(self._seed, halvings), first_row
            counts = ColumnCounts()
            for _, blocks, _ in self._again():
                parts = [block.features for block in blocks]
                self._sample.add(parts, row, self._pool)
                self._sample.expect(len(self.labels) >> halvings)
                if self.categories is not None:  # whose numbers were not known in the first pass
                    counts.add(parts, len(self.table), self._pool)
                row += sum(map(len, parts))
            if self.categories is not None:
                self._counts = counts.finish(len(self.table))
        elif halvings and self._sample.has_every_row:
            self._sample.move(first_row)
        self._sample.halve_to(halvings)
        return len(self._sample), self._sample.halvings

    def counts(self, n_features: int) -> tuple[Int64Array, Int64Array]:
        """Return cells by feature: int64[2, m] in the sample (numbers, missing), int64[3, m] of all rows."""
        assert self._sample is not None
        of_sample, of_all = np.zeros((2, n_features), np.int64), np.zeros((3, n_features), np.int64)
        of_sample[:, self._places] = count_sample(self._sample, len(self._places))
        of_all[:, self._places] = self._counts
        self._sampled_numbers = of_sample[0]
        return of_sample, of_all

    def cells(self, first: int, last: int) -> Float64Array:
        """Return the numbers of features in the sample, one feature after the other."""
        assert self._sample is not None
        return gather_cells(self._sample.rows, self._places, first, self._sampled_numbers[first:last])

    def code(self, edges: BinEdges) -> Int64Array:
        """Find the bins of all rows; return the documents in each, int64[n_bins]."""
        n = len(self.labels)
        self._edges, coder = edges, TrainingCoder(edges, self._places, n, self._pool)
        if self._sample is not None and self._sample.has_every_row:
            coder.add([self._sample.rows])
            self._coded = coder.finish()
        else:
            self._sample = None
            self._coded = code_batches(self._again(), coder)
        self._sample = None
        return count_bins(edges, self._coded, self._pool)

    def lay_out(self, counts_of_all: Int64Array, min_documents: int) -> BinnedFeatures:
        """Return the rows laid out for growing trees."""
        coded: CodedBins = self._coded
        del self._coded
        return lay_out(self._edges, coded, min_documents, self._pool, counts_of_all)

    def _again(self) -> Iterator[Batch]:
        """Yield all rows once more; DataError when they are not those of the first pass.

        Categories have their numbers in place of their values.
        """
        batches = read_again(self.batches(), self.labels, self.table, self.refuse_changed, self.paths)
        if self.categories is None:
            yield from batches
            return
        row, numbers = 0, self.categories.numbers
        for batch in batches:
            blocks = []
            for block in batch.blocks:
                blocks.append(replace(block, features=numbered_part(block.features, row, numbers)))
                row += len(block)
            yield batch._replace(blocks=blocks)


class ValidationReader(PartsReader):
    """The parts of a validation set in a shard."""

    def read(self, model: Ensemble, edges: BinEdges) -> PartsFound:
        """Read the parts into bins."""
        ids_and_labels, coder = LabelAndIdBuilder(), ValidationCoder(model, edges, self._pool)
        for path, blocks, _ in self.batches(queries=self._queries):
            for block in blocks:
                ids_and_labels.add(block, path)
            coder.add([block.features for block in blocks], self.table.ids, self.table.names)
        found = self.found(ids_and_labels)
        self.coded: CodedDataset = coder.collect(self.labels, self.query_offsets, self.source)
        return found._replace(unseen=dict(coder.unseen))


def read_init_scores(parts: PartsReader, paths: Sequence[str]) -> Float64Array:
    """Return the scores that training starts from, float64[n_documents]."""
    found = [
        metadata_files.read_init_scores(path, int(offsets[-1]), part)
        for path, (part, offsets) in zip(paths, _queries_of_parts(parts), strict=True)
    ]
    return np.concatenate([np.zeros(0), *found])


def read_weights(parts: PartsReader, paths: Sequence[str] | None) -> tuple[WeightsFound, Float64Array | None]:
    """Return facts about the weights of the parts, and the weights, per query or per document."""
    if paths is None:
        return WeightsFound(None, None, True, 0), None
    found, weights = [], [np.zeros(0)]
    for path, (_, offsets) in zip(paths, _queries_of_parts(parts), strict=True):
        what, own = read_part_weights(path, offsets)
        found.append(what)
        weights.append(own)
    return joined_weights(found), np.concatenate(weights)


class RowHashes(NamedTuple):
    """Hashes of what rows are: of their labels, queries and bins, of their weights, and of their initial scores."""

    rows: str
    weights: str
    init_scores: str


def hash_parts(
    parts: PartsReader, metadata: Metadata, codes: Callable[[int, int], npt.NDArray[np.generic]]
) -> list[RowHashes]:
    """Return the hashes of each part, which do not depend on how parts are assigned to shards.

    codes : returns numbers that stand for the bins of rows start..stop - 1
    """
    found, start = [], 0
    for n_rows in parts.part_rows:
        stop = start + n_rows
        first, last = np.searchsorted(parts.query_offsets, [start, stop])
        rows = parts.labels[start:stop], parts.query_offsets[first : last + 1] - start, codes(start, stop)
        weights, scores = metadata.weights, metadata.init_scores
        if weights is not None:
            weights = weights[start:stop] if len(weights) == len(parts.labels) else weights[first:last]
        scores = None if scores is None else scores[start:stop]
        found.append(RowHashes(content_hash(rows), content_hash(weights), content_hash(scores)))
        start = stop
    return found


def coded_rows(dataset: CodedDataset, start: int, stop: int) -> npt.NDArray[np.integer]:
    """Return the bins of rows start..stop - 1 of a validation set, uint8[stop - start, m].

    Where they are kept row by row: how many codes each row has, and the codes.
    """
    if dataset.rows is not None:
        offsets, codes = dataset.rows
        return np.concatenate([np.diff(offsets[start : stop + 1]), codes[offsets[start] : offsets[stop]]])
    found, first = [], 0
    for piece in dataset.bins:
        found.append(piece[:, max(0, start - first) : max(0, stop - first)].T)
        first += piece.shape[1]
    return np.concatenate(found) if found else np.zeros((0, 0), np.uint8)


def _queries_of_parts(parts: PartsReader) -> Iterator[tuple[str, Int64Array]]:
    """Yield each part and its query offsets."""
    start = 0
    for path, n_rows in zip(parts.paths, parts.part_rows, strict=True):
        stop = start + n_rows
        offsets = parts.query_offsets
        first, last = np.searchsorted(offsets, [start, stop])
        yield path, offsets[first : last + 1] - start
        start = stop
