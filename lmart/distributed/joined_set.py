"""JoinedSet: what the driver knows of a data set whose parts were read elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.distributed.part_reading import PartsFound
from lmart.errors import DataError
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import refuse_or_tell_empty
from lmart.formats.read_options import ReadOptions


@dataclass(frozen=True)
class JoinedSet:
    """What the driver knows of a data set.

    source         : what to call it in messages
    found          : in its parts or shards, in order
    feature_ids    : int64[n_features], ascending
    feature_names  : n_features texts; None: they have numbers only
    table_features : for each part that is a table, the ids of the features that it has a column for
    """

    source: str
    found: Sequence[PartsFound] = field(repr=False)
    feature_ids: Int64Array
    feature_names: tuple[str, ...] | None
    table_features: Mapping[str, Int64Array]

    @property
    def n_documents(self) -> int:
        """The number of rows."""
        return sum(one.n_documents for one in self.found)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return sum(one.n_queries for one in self.found)

    @property
    def n_single(self) -> int:
        """The number of queries of one row."""
        return sum(one.n_single for one in self.found)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.feature_ids)

    @property
    def labels(self) -> Float64Array:
        """float64[n]: the labels of parts that are above all labels before them."""
        return np.concatenate([one.labels for one in self.found])

    @property
    def label_rows(self) -> Int64Array:
        """int64[n]: the rows of these labels, from 0 through all parts."""
        starts = np.cumsum([0, *(one.n_documents for one in self.found)])
        return np.concatenate([one.label_rows + start for one, start in zip(self.found, starts, strict=False)])


def joined_set(
    source: str, found: Sequence[PartsFound], paths: Sequence[Sequence[str]]
) -> tuple[JoinedSet, Int64Array]:
    """Return the set of all parts, and the ids of its features in the order of first appearance.

    source : what to call it in messages
    found  : in its parts, or in the parts of each shard, in order
    paths  : the files of each
    DataError when features have names in some and numbers in others.
    """
    named = [one.names is not None for one in found if len(one.ids)]
    for first, own, one in zip(paths, found, found, strict=True):
        if len(own.ids) and (one.names is not None) != named[0]:
            have, others = ("names", "numbers") if one.names else ("numbers", "names")
            what = f"the features have {have} but those of other inputs {others}; give them the same columns"
            raise DataError(what, first[0] if first else source)
    names: tuple[str, ...] | None = None
    tables: dict[str, Int64Array] = {}
    if named and named[0]:
        names = tuple(dict.fromkeys(name for one in found for name in one.names or ()))
        ids = np.arange(1, len(names) + 1)
        number = {name: place + 1 for place, name in enumerate(names)}
        for one in found:
            own_names = one.names or ()
            for path, of_table in one.of_tables.items():
                tables[path] = np.array([number[own_names[i - 1]] for i in of_table.tolist()], np.int64)
    else:
        ids = np.array(list(dict.fromkeys(i for one in found for i in one.ids.tolist())), np.int64)
        for one in found:
            tables |= one.of_tables
    return JoinedSet(source, found, np.sort(ids), names, tables), ids


def pass_on(found: Sequence[PartsFound], options: ReadOptions) -> None:
    """Pass on what readers of parts told; DataError when no part has rows."""
    empty = [path for one in found for path in one.empty]
    refuse_or_tell_empty(empty, sum(one.n_parts for one in found), options)
    for one in found:
        for text, is_warning in one.told:
            (options.warning if is_warning else options.notice)(text)


def warn_of_never_met(joined: JoinedSet, options: ReadOptions) -> None:
    """Warn of indices to ignore that no row of LETOR text had."""
    table = FeatureTable()
    table.of_tables = dict(joined.table_features)
    for one in joined.found:
        table.ignored |= {index: met or table.ignored.get(index, False) for index, met in one.ignored.items()}
    if unmet := table.never_met():
        options.warning(f"{joined.source}: {unmet}")
