"""What each feature of data is like: its values, and how well the documents of queries are ranked by it alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt64Array
from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel
from lmart.kernels.numba_support.intrinsics import number_bits
from lmart.kernels.row_arrays import RowArrays

NDCG_UNITS = float(1 << 40)  # sums of NDCG count these, so that they are exact in any order


class JudgedQueries(NamedTuple):
    """Whole queries with what their documents are worth.

    offsets   : int64[n_queries + 1], the rows of query q are offsets[q]:offsets[q + 1]
    gains     : float64[n], by row
    inverse_ideal_dcg : float64[n_queries], of the k best gains; 0 where there is none
    discount  : float64[k], 1 / log2(rank + 2) to the cutoff k
    first_row : int64, number of row 0 in the data
    """

    offsets: Int64Array
    gains: Float64Array
    inverse_ideal_dcg: Float64Array
    discount: Float64Array
    first_row: int


class FeatureTotals(NamedTuple):
    """Totals over documents and queries, by feature; those of several parts of the data add up.

    n_values  : int64[m], written values but 0 and missing ones
    n_missing : int64[m], values written as missing
    lowest, highest : float64[m], of the written values that are not missing; inf and -inf without any
    content   : uint64[m], equal for features with the same values everywhere, and hardly ever for others
    n_varying : int64[m], queries with two different values
    high_first, low_first : int64[m], the sum of NDCG@k in NDCG_UNITS over queries where some document has the feature,
                largest or smallest values first, less the NDCG@k of the order of the data
    """

    n_values: Int64Array
    n_missing: Int64Array
    lowest: Float64Array
    highest: Float64Array
    content: UInt64Array
    n_varying: Int64Array
    high_first: Int64Array
    low_first: Int64Array


class FeatureCells(NamedTuple):
    """Room for the cells of one query, feature by feature.

    places   : int32[m], -1: the feature is not in the query; -1 everywhere between queries
    features : int32[>= distinct features of a query], those that are
    starts   : int64[>= distinct features of a query + 1], where the cells of each start
    documents : int32[>= cells of a query], the row of each cell, from the start of the query, ascending
    values   : float64[>= cells of a query]
    best     : float64[k], scratch for the values of the first k ranks
    best_documents : int32[k], their rows
    """

    places: Int32Array
    features: Int32Array
    starts: Int64Array
    documents: Int32Array
    values: Float64Array
    best: Float64Array
    best_documents: Int32Array


@inner_kernel
def _gather(rows: RowArrays, start: int, stop: int, cells: FeatureCells) -> int:
    """Write the cells of rows start:stop feature by feature; return the number of features."""
    n_features = 0
    for c in range(rows.offsets[start], rows.offsets[stop]):
        feature = rows.columns[c]
        place = cells.places[feature]
        if place < 0:
            place = n_features
            cells.places[feature] = place
            cells.features[place] = feature
            cells.starts[place + 1] = 0
            n_features += 1
        cells.starts[place + 1] += 1
    cells.starts[0] = 0
    for place in range(n_features):
        cells.starts[place + 1] += cells.starts[place]
    for row in range(stop - 1, start - 1, -1):  # backwards: starts[place + 1] moves down to where its cells start
        for c in range(rows.offsets[row], rows.offsets[row + 1]):
            end = cells.places[rows.columns[c]] + 1
            cells.starts[end] -= 1
            cells.documents[cells.starts[end]] = row - start
            cells.values[cells.starts[end]] = rows.values[c]
    for place in range(n_features):
        cells.starts[place] = cells.starts[place + 1]
        cells.places[cells.features[place]] = -1
    cells.starts[n_features] = rows.offsets[stop] - rows.offsets[start]
    return n_features


@inner_kernel
def _offer(value: float, document: int, cells: FeatureCells, n_best: int) -> int:
    """Put a document of a value among the n_best of the first ranks in `cells`; return how many there are then."""
    k = len(cells.best)
    if n_best == k:
        last = cells.best[k - 1]
        if value < last or (value == last and document > cells.best_documents[k - 1]):
            return n_best
        rank = k - 1
    else:
        rank = n_best
        n_best += 1
    while rank > 0 and (
        cells.best[rank - 1] < value or (cells.best[rank - 1] == value and cells.best_documents[rank - 1] > document)
    ):
        cells.best[rank] = cells.best[rank - 1]
        cells.best_documents[rank] = cells.best_documents[rank - 1]
        rank -= 1
    cells.best[rank] = value
    cells.best_documents[rank] = document
    return n_best


@inner_kernel
def _dcg_by_value(
    first: int, last: int, sign: float, query: tuple[int, int], queries: JudgedQueries, cells: FeatureCells
) -> float:
    """Return the DCG of a query of `queries`, ranked by cells[first:last] times a sign; without a cell it is 0."""
    start, stop = query
    n_best = 0
    for c in range(first, last):
        value = cells.values[c] * sign
        n_best = _offer(-np.inf if np.isnan(value) else value, cells.documents[c], cells, n_best)
    n_absent = 0
    c = first
    for document in range(stop - start):
        if n_absent == len(cells.best):
            break  # more of equal value are below these
        if c < last and cells.documents[c] == document:
            c += 1
        else:
            n_best = _offer(0.0, document, cells, n_best)
            n_absent += 1
    dcg = 0.0
    for rank in range(n_best):
        dcg += queries.gains[start + cells.best_documents[rank]] * queries.discount[rank]
    return dcg


@inner_kernel
def _add_values(
    feature: int, first: int, last: int, first_row: int, n: int, cells: FeatureCells, totals: FeatureTotals
) -> None:
    """Add cells[first:last], those of a feature in a query of n documents from first_row on, to the totals."""
    lowest, highest = np.inf, -np.inf
    if last - first < n:
        lowest = highest = 0.0
    n_missing = 0
    for c in range(first, last):
        value = cells.values[c]
        row = np.uint64(first_row + cells.documents[c])
        if np.isnan(value):
            n_missing += 1
            totals.content[feature] += mix_bits(mix_bits(row))
            continue
        lowest = min(lowest, value)
        highest = max(highest, value)
        totals.lowest[feature] = min(totals.lowest[feature], value)
        totals.highest[feature] = max(totals.highest[feature], value)
        if value != 0.0:
            totals.n_values[feature] += 1
            totals.content[feature] += mix_bits(mix_bits(row) ^ number_bits(value))
    totals.n_missing[feature] += n_missing
    totals.n_varying[feature] += lowest < highest or 0 < n_missing < n


@kernel
def add_feature_facts(
    rows: RowArrays,
    queries: JudgedQueries,
    first_query: int,
    last_query: int,
    cells: FeatureCells,
    totals: FeatureTotals,
) -> int:
    """Add what the features are like in some queries to the totals; return the NDCG of their order in the data.

    rows    : the rows of the queries and more, in      queries : in
    first_query, last_query : the queries first_query..last_query - 1 are added, in
    cells   : scratch      totals : in, out
    Equation: NDCG@k = sum over ranks r < k of gain(r) discount(r), times the inverse ideal DCG, by value, ties by row,
    missing values last. The result and the totals count NDCG_UNITS. Source: Järvelin and Kekäläinen 2002.
    A feature that no document of a query has ranks it as the data does: nothing is added for it, so the cost does not
    depend on the number of features. Parallel: ranges of queries with totals of their own, which are added afterwards.
    Cost: O(cells + k log k) a feature that is in a query.
    """
    in_order = 0
    for q in range(first_query, last_query):
        start, stop = queries.offsets[q], queries.offsets[q + 1]
        n_features = _gather(rows, start, stop, cells)
        dcg = 0.0
        for rank in range(min(len(queries.discount), stop - start)):
            dcg += queries.gains[start + rank] * queries.discount[rank]
        scale = queries.inverse_ideal_dcg[q] * NDCG_UNITS
        of_data = int(np.rint(dcg * scale))
        in_order += of_data
        for place in range(n_features):
            feature, first, last = cells.features[place], cells.starts[place], cells.starts[place + 1]
            _add_values(feature, first, last, queries.first_row + start, stop - start, cells, totals)
            if scale > 0.0:
                high = _dcg_by_value(first, last, 1.0, (start, stop), queries, cells)
                low = _dcg_by_value(first, last, -1.0, (start, stop), queries, cells)
                totals.high_first[feature] += int(np.rint(high * scale)) - of_data
                totals.low_first[feature] += int(np.rint(low * scale)) - of_data
    return in_order
