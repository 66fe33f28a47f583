"""The parts of a data set: found, read by workers, and known to the driver."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt64Array
from lmart.data.categories import Categories
from lmart.distributed.cluster import Cluster
from lmart.distributed.query_places import Place, codes_of, places_of
from lmart.errors import DataError
from lmart.formats import metadata_files
from lmart.formats.documents.blocks import SeenQueries
from lmart.formats.documents.dataset_builder import LabelAndIdBuilder
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import Batch, read_batches, refuse_or_tell_empty, source_name
from lmart.formats.read_options import ReadOptions
from lmart.streams import reason, refuse_changed_files, state_of
from lmart.threads import WorkerPool


class PartFile(NamedTuple):
    """A file as a worker sees it: its path, and its size in bytes."""

    path: str
    size: int


def find_files(patterns: Sequence[str]) -> list[list[PartFile]]:
    """Return the files of each pattern, in the order of their names. Runs on a worker, whose storage has the data.

    DataError when a file is not there, or none matches.
    """
    found = []
    for pattern in patterns:
        paths = [pattern]
        if not os.path.exists(pattern) and glob.has_magic(pattern):
            paths = sorted(glob.glob(pattern))  # also folders and the like, which are then refused
            if not paths:
                raise DataError("no file that the workers see matches it; check the pattern", pattern)
        try:
            states = {path: os.stat(path) for path in paths}
        except OSError as fault:
            what = f"{reason(fault)}, as a worker sees it"
            raise DataError(f"{what}; check the name, and that workers share this storage", fault.filename) from None
        for path, state in states.items():
            if stat.S_ISFIFO(state.st_mode) or stat.S_ISSOCK(state.st_mode):
                raise DataError("is a pipe, which workers cannot read; give a file", path)
        found.append([PartFile(path, state.st_size) for path, state in states.items()])
    return found


def seen_by_workers(cluster: Cluster, path: str) -> str:
    """Return the name of a file for workers, which may have another current folder."""
    return path if cluster.on_this_machine else os.path.abspath(path)


def find_parts(cluster: Cluster, patterns: Sequence[str]) -> list[list[PartFile]]:
    """Return the files of each pattern, as a worker sees them; relative patterns are those of this process."""
    names = [seen_by_workers(cluster, pattern) for pattern in patterns]
    (found,) = cluster.run_tasks(find_files, [(names,)])
    return list(found)


class PartsFound(NamedTuple):
    """What was found in parts of a data set.

    n_documents, n_queries, n_single : rows, queries, and queries of one row
    label_rows, labels : int64[n], float64[n], the rows with a label above those of all rows before, and these labels
    ids         : int64[n_columns], of its features, in the order of first appearance
    of_tables   : by part with a header: the ids that it has a column for
    ignored     : the indices to ignore, and whether a row had them
    query_codes : uint64[n_queries], a hash of each query id
    messages    : of readers, and whether it is a warning
    texts       : of a training set, by column that holds texts, what its numbers stand for
    unseen      : of a validation set, by feature, rows with a value of a category that training did not see
    """

    n_documents: int
    n_queries: int
    n_single: int
    label_rows: Int64Array
    labels: Float64Array
    ids: Int64Array
    names: tuple[str, ...] | None
    of_tables: dict[str, Int64Array]
    ignored: dict[int, bool]
    query_codes: UInt64Array
    messages: list[tuple[str, bool]]
    empty: list[str]
    n_parts: int
    texts: Mapping[int, tuple[str, ...]]
    unseen: Mapping[int, int]


class PartsReader:
    """Reads adjacent parts of one data set.

    check : called from time to time; raises when the run was given up
    """

    def __init__(self, paths: Sequence[str], options: ReadOptions, pool: WorkerPool, check: Callable[[], None]) -> None:
        self.paths, self.table, self.source = paths, FeatureTable(), source_name(paths) if paths else "data"
        self.messages: list[tuple[str, bool]] = []
        self._options = replace(options, tell=self._tell, may_be_empty=True)
        self._pool, self._check = pool, check
        self._queries = SeenQueries(group_by_qid=False, can_group=False)
        self.labels: Float64Array = np.zeros(0)
        self.query_offsets: Int64Array = np.zeros(1, np.int64)
        self.part_rows = [0] * len(paths)
        self._states = {path: state_of(path) for path in paths}

    def _tell(self, text: str, is_warning: bool) -> None:
        if text != f"{self.source}: {self.table.never_met()}":  # which all parts together decide
            self.messages.append((text, is_warning))

    def batches(self, table: FeatureTable | None = None, queries: SeenQueries | None = None) -> Iterator[Batch]:
        """Yield the rows of all parts, in batches of blocks; without a table or queries, those of this reader count."""
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
        """Keep the labels and queries of all parts, and return what was found."""
        self.labels, self.query_offsets = ids_and_labels.finish_labels()
        sizes, names = np.diff(self.query_offsets), self.table.names
        rows = rows_above_all_before(self.labels)
        return PartsFound(
            len(self.labels),
            len(sizes),
            int((sizes == 1).sum()),
            rows,
            self.labels[rows],
            self.table.ids.copy(),
            None if names is None else tuple(names),
            dict(self.table.of_tables),
            dict(self.table.ignored),
            codes_of(ids_and_labels.query_ids),
            self.messages,
            [path for path, n_rows in zip(self.paths, self.part_rows, strict=True) if not n_rows],
            len(self.paths),
            {},
            {},
        )

    def first_places(self, codes: Sequence[int]) -> dict[str, Place]:
        """Return part and line of the first row of each query with one of these hashes, by id."""
        return places_of(self._queries.places, codes)

    def refuse_changed(self) -> None:
        """Raise DataError when a part is no longer what it was at first."""
        refuse_changed_files(self._states)


def rows_above_all_before(labels: Float64Array) -> Int64Array:
    """Return the rows of labels, float64[n], that are above those of all rows before, int64; the first row is one."""
    highest_before = np.concatenate([[-1.0], np.maximum.accumulate(labels)[:-1]])
    return np.flatnonzero(labels > highest_before)


class WeightsFound(NamedTuple):
    """Facts about the weights of parts.

    per_query, per_document : file of a part whose weights can only be per query, or only per row; None: no such part
    any_above_zero : a weight is above 0
    exponent       : power of two that the largest weight is below
    """

    per_query: str | None
    per_document: str | None
    any_above_zero: bool
    exponent: int


def read_part_weights(path: str, query_offsets: Int64Array) -> tuple[WeightsFound, Float64Array]:
    """Return facts about the weights of a part, and the weights, per query or per document."""
    numbers = metadata_files.read_weight_numbers(path, query_offsets)
    n_queries, n_documents = len(query_offsets) - 1, int(query_offsets[-1])
    per_query = path if len(numbers) == n_queries != n_documents else None
    per_document = path if len(numbers) == n_documents != n_queries else None
    exponent = int(np.frexp(numbers.max(initial=0.0))[1])
    return WeightsFound(per_query, per_document, bool((numbers > 0).any()), exponent), numbers


def joined_weights(found: Sequence[WeightsFound]) -> WeightsFound:
    """Join the facts about the weights of several parts."""
    of_weights = [part.exponent for part in found if part.any_above_zero]
    return WeightsFound(
        next((part.per_query for part in found if part.per_query is not None), None),
        next((part.per_document for part in found if part.per_document is not None), None),
        bool(of_weights),
        max(of_weights, default=0),
    )


def refuse_unfit(found: WeightsFound, first: str) -> None:
    """Raise DataError when some parts have weights per query and others per row, or all weights are 0."""
    if found.per_query is not None and found.per_document is not None:
        what = f"has one weight per row, but {found.per_query} has one per query"
        raise DataError(f"{what}; use the same form for every part", found.per_document)
    if not found.any_above_zero:
        raise DataError(metadata_files.ALL_ZERO, first)


@dataclass(frozen=True)
class JoinedSet:
    """What the driver knows of a data set.

    feature_names  : n_features texts; None: they have numbers only
    table_features : for each part that is a table, the ids of the features that it has a column for
    texts          : of a training set, by feature, the texts of a column that holds some
    categories     : of a training set, the features that are categories
    """

    source: str
    found: Sequence[PartsFound] = field(repr=False)
    feature_ids: Int64Array
    feature_names: tuple[str, ...] | None
    table_features: Mapping[str, Int64Array]
    texts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    categories: tuple[Categories, ...] = ()

    @property
    def n_documents(self) -> int:
        """The number of rows."""
        return sum(part.n_documents for part in self.found)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return sum(part.n_queries for part in self.found)

    @property
    def n_single(self) -> int:
        """The number of queries of one row."""
        return sum(part.n_single for part in self.found)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.feature_ids)

    @property
    def labels(self) -> Float64Array:
        """float64[n]: the labels of parts that are above all labels before them."""
        return np.concatenate([part.labels for part in self.found])

    @property
    def label_rows(self) -> Int64Array:
        """int64[n]: the rows of these labels, from 0 through all parts."""
        starts = np.cumsum([0, *(part.n_documents for part in self.found)])
        return np.concatenate([part.label_rows + start for part, start in zip(self.found, starts, strict=False)])


def joined_set(
    source: str, found: Sequence[PartsFound], paths: Sequence[Sequence[str]]
) -> tuple[JoinedSet, Int64Array]:
    """Return the set of all parts, and the ids of its features in the order of first appearance.

    DataError when features have names in some and numbers in others.
    """
    named = [part.names is not None for part in found if len(part.ids)]
    for first, own, part in zip(paths, found, found, strict=True):
        if len(own.ids) and (part.names is not None) != named[0]:
            have, others = ("names", "numbers") if part.names else ("numbers", "names")
            what = f"the features have {have} but those of other inputs {others}; give them the same columns"
            raise DataError(what, first[0] if first else source)
    names: tuple[str, ...] | None = None
    tables: dict[str, Int64Array] = {}
    if named and named[0]:
        names = tuple(dict.fromkeys(name for part in found for name in part.names or ()))
        ids = np.arange(1, len(names) + 1)
        number = {name: place + 1 for place, name in enumerate(names)}
        for part in found:
            own_names = part.names or ()
            for path, of_table in part.of_tables.items():
                tables[path] = np.array([number[own_names[i - 1]] for i in of_table.tolist()], np.int64)
    else:
        ids = np.array(list(dict.fromkeys(i for part in found for i in part.ids.tolist())), np.int64)
        for part in found:
            tables |= part.of_tables
    return JoinedSet(source, found, np.sort(ids), names, tables), ids


def columns_of_part(joined: JoinedSet, found: PartsFound) -> Int32Array:
    """Return the feature of each column of a shard, int32[n_columns]."""
    if found.names is not None and joined.feature_names is not None:
        place = {name: number for number, name in enumerate(joined.feature_names)}
        return np.array([place[name] for name in found.names], np.int32)
    return np.searchsorted(joined.feature_ids, found.ids).astype(np.int32)


def pass_on(found: Sequence[PartsFound], options: ReadOptions) -> None:
    """Pass on the messages of readers; DataError when no part has rows."""
    empty = [path for part in found for path in part.empty]
    refuse_or_tell_empty(empty, sum(part.n_parts for part in found), options)
    for part in found:
        for text, is_warning in part.messages:
            (options.warning if is_warning else options.notice)(text)


def warn_of_never_met(joined: JoinedSet, options: ReadOptions) -> None:
    """Warn of indices to ignore that no row of LETOR text had."""
    table = FeatureTable()
    table.of_tables = dict(joined.table_features)
    for part in joined.found:
        table.ignored |= {index: met or table.ignored.get(index, False) for index, met in part.ignored.items()}
    if unmet := table.never_met():
        options.warning(f"{joined.source}: {unmet}")
