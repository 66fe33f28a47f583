"""Judged documents and rankings that are known by the ids of queries and documents, as TREC files have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, quote


@dataclass(frozen=True, eq=False)
class JudgedDocuments:
    """What is known to be relevant, query by query.

    query_ids     : n_queries texts, distinct
    query_offsets : int64[n_queries + 1]
    document_ids  : n_documents ids in UTF-8, distinct in a query
    labels        : float64[n_documents]; below 0: in the file, but not judged
    rows          : int64[n_documents], row of the input, or line of the file, of each document, from 0
    """

    query_ids: Sequence[str]
    query_offsets: Int64Array
    document_ids: Sequence[bytes]
    labels: Float64Array
    source: str
    rows: Int64Array


@dataclass(frozen=True, eq=False)
class Run:
    """What a system returned, query by query.

    query_offsets, query_ids, document_ids : as in JudgedDocuments
    rises         : whether scores rise with the ranks of the file
    """

    query_ids: Sequence[str]
    query_offsets: Int64Array
    document_ids: Sequence[bytes]
    scores: Float64Array
    source: str
    rises: bool = False


def judgments_of(dataset: RankingDataset) -> JudgedDocuments:
    """Return the labels of a data set by the ids of its documents.

    DataError when a row has no document id, or a query names a document twice.
    """
    ids = dataset.document_ids or [""] * dataset.n_documents
    rows = np.arange(dataset.n_documents) if dataset.input_rows is None else dataset.input_rows
    if "" in ids:
        row = int(rows[[i for i, text in enumerate(ids) if not text]].min()) + 1
        what = f"row {row} has no document id, by which a run would name it"
        raise DataError(f"{what}; lmart convert --to qrels numbers the rows of a query as predict does", dataset.source)
    bounds = dataset.query_offsets.tolist()
    for query, (start, stop) in enumerate(pairwise(bounds)):
        own = ids[start:stop]
        if len(set(own)) < stop - start:
            first: dict[str, int] = {}
            for place, text in enumerate(own):
                if first.setdefault(text, place) != place:
                    both = " and ".join(str(int(rows[start + i]) + 1) for i in (first[text], place))
                    what = f"query {quote(dataset.query_ids[query])} names document {quote(text)} twice, in rows {both}"
                    raise DataError(f"{what}; keep one of them", dataset.source)
    encoded = [text.encode("utf-8") for text in ids]
    return JudgedDocuments(dataset.query_ids, dataset.query_offsets, encoded, dataset.labels, dataset.source, rows)


def document_names(document_ids: Sequence[str] | None, query_offsets: Int64Array) -> list[str]:
    """Return what predict calls each document in a TREC run: its id if it has one, else its number in the query."""
    n_documents = int(query_offsets[-1])
    starts = np.repeat(query_offsets[:-1], np.diff(query_offsets))
    places = np.arange(1, n_documents + 1) - starts
    own_ids = document_ids or [""] * n_documents
    return [own_id or str(place) for own_id, place in zip(own_ids, places.tolist(), strict=True)]
