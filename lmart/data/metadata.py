"""Metadata of documents: weights, initial scores and positions, in the order of the documents."""

from __future__ import annotations

from dataclasses import dataclass

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import rows_of


@dataclass(frozen=True)
class Positions:
    """Where each document was shown when its label, such as a click, was recorded.

    names : what the positions are called, each once
    codes : int32[n_documents], the place in `names` of each document's position
    """

    names: tuple[str, ...]
    codes: Int32Array


@dataclass(frozen=True)
class Metadata:
    """The metadata of a training set.

    weights     : float64, one number >= 0 a query, or one a document; None: all count the same
    init_scores : float64[n_documents], finite, what training starts from; None: 0. They are not in the model
    positions   : of the documents; their bias is learned with the model, but not stored in it; None: no bias
    """

    weights: Float64Array | None = None
    init_scores: Float64Array | None = None
    positions: Positions | None = None

    def of_queries(self, query_offsets: Int64Array, queries: Int64Array) -> Metadata:
        """Return the metadata of these queries, one after the other, as `dataset.select_queries` takes them.

        query_offsets : int64[n_queries + 1], of the whole set
        queries       : int64, each from 0 to n_queries - 1
        """
        rows = rows_of(query_offsets, queries)
        weights, positions = self.weights, self.positions
        if weights is not None:
            weights = weights[queries if len(weights) == len(query_offsets) - 1 else rows]
        return Metadata(
            weights,
            None if self.init_scores is None else self.init_scores[rows],
            None if positions is None else Positions(positions.names, positions.codes[rows]),
        )


NO_METADATA = Metadata()
