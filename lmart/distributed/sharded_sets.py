"""What the driver knows of data that shards hold: sizes, features, bin edges."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array, UInt8Array
from lmart.binning import edge_sample
from lmart.binning.binned_features import can_be_split, most_frequent_of
from lmart.binning.categories import describe_automatic, refuse_texts, with_unseen_bins
from lmart.binning.edges import BinEdges, count_zeros, edges_of_cells, feature_groups, join_edges, most_others
from lmart.distributed.actors import Actors
from lmart.distributed.categories import joined_texts, number_categories
from lmart.distributed.query_places import refuse_repeated, repeated_codes
from lmart.distributed.reading import (
    JoinedSet,
    PartsFound,
    WeightsFound,
    columns_of_part,
    joined_set,
    joined_weights,
    pass_on,
    refuse_unfit,
    warn_of_never_met,
)
from lmart.distributed.shard_reading import RowHashes
from lmart.distributed.sums import Counts
from lmart.errors import DataError
from lmart.formats.documents.columns import texts_after_numbers
from lmart.formats.documents.reading import for_models
from lmart.formats.read_options import ReadOptions
from lmart.gains import grade_scale
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.settings import TrainSettings
from lmart.settings.data_facts import DataFacts
from lmart.settings.resolved import ResolvedSettings, resolve
from lmart.training.boosting import without_trees
from lmart.training.checkpoint import content_hash
from lmart.training.resolving import refuse_above_largest

KEPT = 4  # shards keep rows from the first pass if they are fewer than this share of a sample; to read again is cheap
GATHERED = 1 << 20  # cells of the sample that the driver holds at a time


class SetFiles(NamedTuple):
    """The files of a data set that is to be read.

    weights, init_scores : a file for each part; None: none
    """

    name: str
    parts: Sequence[str]
    weights: Sequence[str] | None = None
    init_scores: Sequence[str] | None = None


class DataParts(NamedTuple):
    """All that a run reads."""

    train: SetFiles
    validation: Sequence[SetFiles]
    sizes: Mapping[str, int]

    @property
    def files(self) -> list[str]:
        """All files that are read, also those of weights and initial scores."""
        return list(self.sizes)


@dataclass(frozen=True, eq=False)
class ShardedSets:
    """All that a run learns from and is measured on.

    exponents : power of two that the largest weight of each set is below, the training set first
    """

    shards: Actors
    train_set: JoinedSet
    validation_sets: Sequence[JoinedSet]
    edges: BinEdges
    bin_counts: Int64Array
    exponents: Sequence[int]
    has_start: bool
    warnings: Sequence[str]

    @cached_property
    def most_frequent_bins(self) -> UInt8Array:
        """uint8[m], each feature's most frequent bin."""
        return most_frequent_of(self.edges, self.bin_counts)


def adjacent_parts(sizes: Sequence[int], n_shards: int) -> list[tuple[int, int]]:
    """Return ranges of parts, one a shard, of about the same bytes each; empty ones last where parts are few."""
    ends = np.cumsum([0, *sizes])
    bounds, first = [], 0
    for number in range(n_shards):
        goal = ends[first] + (ends[-1] - ends[first]) / (n_shards - number)
        last = int(np.abs(ends - goal).argmin())
        most = len(sizes) - max(0, n_shards - number - 1)  # one is left for each shard that follows
        last = len(sizes) if number == n_shards - 1 else max(min(last, most), min(first + 1, len(sizes)))
        bounds.append((first, last))
        first = last
    return bounds


def read_training_set(shards: Actors, parts: DataParts, options: ReadOptions, settings: TrainSettings) -> JoinedSet:
    """Read the labels, queries and features of the training set; DataError as one machine raises it."""
    own = _deal(shards, parts.train.parts, parts.sizes)
    silent = replace(options, tell=None, watch=None)
    most_kept = edge_sample.SAMPLE_LIMIT // (KEPT * len(shards))
    found = _first_pass(shards, own, silent, settings, most_kept)
    joined, _ = joined_set(parts.train.name, found, own)
    columns = [columns_of_part(joined, of_shard) for of_shard in found]
    joined = replace(joined, texts=joined_texts([of_shard.texts for of_shard in found], columns))
    pass_on(found, options)
    _refuse_spanning(shards, None, found)
    warn_of_never_met(joined, options)
    _resolve(settings, [joined], bool(parts.validation))  # refused before all rows are read again
    if not settings.categorical:
        refuse_texts(joined)
        return joined
    for text in describe_automatic(joined, joined.n_documents) if options.auto_categories else ():
        options.notice(text)
    return replace(joined, categories=number_categories(shards, joined, columns, settings))


def _first_pass(
    shards: Actors, parts: Sequence[Sequence[str]], options: ReadOptions, settings: TrainSettings, most_kept: int
) -> list[PartsFound]:
    """Return what each shard finds in its parts.

    They are read again where only some shards found texts in a column, whose numbers are texts in later ones too;
    DataError when it has numbers in the first.
    """
    absent = settings.absent if settings.categorical else None
    found: list[PartsFound] = []
    while True:
        found = shards.each("first_pass", [(own, options, settings.seed, most_kept, absent) for own in parts])
        with_names = [(own, own.names) for own in found if own.names is not None]
        texts = {names[column]: own for own, names in reversed(with_names) for column in own.texts}
        if all({names[column] for column in own.texts} == texts.keys() & names for own, names in with_names):
            return found
        for name, first in texts.items():
            if next(own for own, names in with_names if name in names) is not first:
                raise DataError(texts_after_numbers(name), next(iter(first.of_tables)))
        options = replace(options, categories={**options.categories, **dict.fromkeys(texts)})


def read_bins(shards: Actors, train_set: JoinedSet, settings: TrainSettings) -> tuple[BinEdges, Int64Array]:
    """Choose bin edges and find the bins of all rows; return the edges and the documents in each bin, int64[n_bins]."""
    n_rows = _sample(shards, train_set)
    m = train_set.n_features
    counts = shards.call("counts", m)
    of_shards = [of_sample[0] for of_sample, _ in counts]
    in_sample = np.sum([of_sample for of_sample, _ in counts], axis=0)
    of_all = np.sum([n_cells for _, n_cells in counts], axis=0)
    n_zeros = count_zeros(in_sample, n_rows, settings.absent)
    rare = most_others(of_all, settings.absent) < settings.min_docs
    edges: list[Float64Array] = []
    for first, last in feature_groups(in_sample[0], GATHERED):
        cells = _gathered(shards.call("cells", first, last), [columns[first:last] for columns in of_shards])
        edges += edges_of_cells(
            cells, in_sample[0, first:last], n_zeros[first:last], settings.max_bins, rare[first:last]
        )
    n = train_set.n_documents
    joined = join_edges(edges, in_sample[0] + n_zeros, of_all, n, settings.absent, settings.min_docs)
    found: Counts = shards.add("code", joined)
    categories = train_set.categories
    shards.add("lay_out", found.counts, settings.min_docs, categories)
    kept = can_be_split(joined, found.counts, settings.min_docs)
    return with_unseen_bins(joined.only(kept), categories), found.counts[np.repeat(kept, np.diff(joined.bin_offsets))]


def _sample(shards: Actors, train_set: JoinedSet) -> int:
    """Choose the rows that bin edges are chosen from, as one machine does; return how many there are."""
    first_rows = np.cumsum([0, *(of_shard.n_documents for of_shard in train_set.found)]).tolist()[:-1]
    places = [columns_of_part(train_set, of_shard) for of_shard in train_set.found]
    halvings = edge_sample.least_halvings(train_set.n_documents)
    while True:
        chosen = shards.each("sample", [(row, own, halvings) for row, own in zip(first_rows, places, strict=True)])
        n_rows, most = sum(int(counts[0]) for counts in chosen), max(int(counts[1]) for counts in chosen)
        if n_rows <= edge_sample.SAMPLE_LIMIT and most == halvings:
            return n_rows
        halvings = max(most, halvings + (most == halvings))


def _gathered(cells: Sequence[Float64Array], sizes: Sequence[Int64Array]) -> Float64Array:
    """Return the cells of all shards, feature by feature.

    sizes : int64[k] of each shard, how many cells each feature has
    """
    parts = [np.split(own, np.cumsum(size)[:-1]) for own, size in zip(cells, sizes, strict=True)]
    return np.concatenate([np.zeros(0), *(part for feature in zip(*parts, strict=True) for part in feature)])


def _deal(shards: Actors, parts: Sequence[str], sizes: Mapping[str, int]) -> list[list[str]]:
    """Return the parts of each shard."""
    bounds = adjacent_parts([sizes[part] for part in parts], len(shards))
    return [list(parts[first:last]) for first, last in bounds]


def _refuse_spanning(shards: Actors, number: int | None, found: Sequence[PartsFound]) -> None:
    """Raise DataError when two shards have rows of one query, naming both places."""
    again = repeated_codes([of_shard.query_codes for of_shard in found])
    if len(again):
        refuse_repeated(shards.call("first_places", number, again.tolist()))


def read_validation_sets(
    shards: Actors, parts: DataParts, options: ReadOptions, sets: tuple[JoinedSet, TrainSettings], strict: bool
) -> tuple[list[JoinedSet], list[str]]:
    """Read the validation sets into bins; return them, and warnings of features that only one side has."""
    read, warnings = [], []
    model = without_trees(*sets, sets[0].categories)
    silent = replace(for_models(options, [model]), tell=None, watch=None, beside_others=True)
    for number, files in enumerate(parts.validation):
        own = _deal(shards, files.parts, parts.sizes)
        found: list[PartsFound] = shards.each("read_valid", [(paths, silent, model) for paths in own])
        joined, ids = joined_set(files.name, found, own)
        pass_on(found, options)
        _refuse_spanning(shards, number, found)
        matcher = FeatureMatcher(model)
        matcher.column_map(ids, joined.feature_names)
        matcher.tables = joined.table_features
        for of_shard in found:
            matcher.unseen.update(of_shard.unseen)
        matcher.refuse_numbers(files.name)
        matcher.refuse(files.name, strict)
        warnings += matcher.warnings(files.name)
        read.append(joined)
    return read, warnings


def read_metadata(shards: Actors, parts: DataParts) -> list[int]:
    """Read weights and initial scores; return the power of two that the largest weight of each set is below."""
    exponents = []
    for number, files in zip([None, *range(len(parts.validation))], [parts.train, *parts.validation], strict=True):
        bounds = adjacent_parts([parts.sizes[part] for part in files.parts], len(shards))
        of_shards = [
            (number, files.weights and files.weights[a:b], files.init_scores and files.init_scores[a:b])
            for a, b in bounds
        ]
        found: WeightsFound = joined_weights(shards.each("read_metadata", of_shards))
        if files.weights is not None:
            refuse_unfit(found, files.weights[0])
        exponents.append(found.exponent)
    return exponents


def read_sets(
    shards: Actors,
    parts: DataParts,
    options: ReadOptions,
    settings: TrainSettings,
    strict: bool = False,
    check: Callable[[JoinedSet], None] = lambda train_set: None,
) -> ShardedSets:
    """Read all sets of a run into shards; DataError as one machine raises it.

    strict : refuse validation sets whose features are not those of the training set
    check  : called with the training set before it is binned
    """
    train_set = read_training_set(shards, parts, options, settings)
    check(train_set)
    edges, bin_counts = read_bins(shards, train_set, settings)
    validation, warnings = read_validation_sets(shards, parts, options, (train_set, settings), strict)
    exponents = read_metadata(shards, parts)
    has_start = parts.train.init_scores is not None
    return ShardedSets(shards, train_set, validation, edges, bin_counts, exponents, has_start, warnings)


def hash_sets(sets: ShardedSets) -> list[RowHashes]:
    """Return hashes of the training set and of each validation set, whatever the number of shards."""
    words = np.frombuffer(hashlib.shake_128(b"bins").digest(4 * sets.edges.n_bins), "<u4")
    of_shards = sets.shards.call("hash_sets", (words >> 2).astype(np.float64))
    found = []
    for joined, parts in zip([sets.train_set, *sets.validation_sets], zip(*of_shards, strict=True), strict=True):
        rows, weights, init_scores = (content_hash(each) for each in zip(*chain(*parts), strict=True))
        features = joined.feature_ids, joined.feature_names, sets.edges
        found.append(RowHashes(content_hash(rows, features), weights, init_scores))
    return found


def resolve_sharded(settings: TrainSettings, sets: ShardedSets) -> ResolvedSettings:
    """Return the settings of a run, worked out from what its data is like.

    DataError when a label is above the largest one that is given, as in err@10(max=5).
    """
    return _resolve(settings, [sets.train_set, *sets.validation_sets], bool(sets.validation_sets))


def _resolve(settings: TrainSettings, sets: Sequence[JoinedSet], with_validation: bool) -> ResolvedSettings:
    scale = max(grade_scale(dataset.labels) for dataset in sets)
    facts = DataFacts(sets[0].n_queries, sets[0].n_documents, scale, with_validation=with_validation)
    resolved = resolve(settings, facts)
    refuse_above_largest(resolved, [(dataset.source, dataset.labels, dataset.label_rows) for dataset in sets])
    return resolved
