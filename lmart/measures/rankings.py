"""Joining a run to judgments: the documents that either has, query by query, as measures take them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.data.dataset import rows_of
from lmart.data.named_documents import JudgedDocuments, Run
from lmart.errors import DataError, input_name, quote
from lmart.measures.judgments import Judgments


@dataclass(frozen=True, eq=False)
class AlignedRun:
    """The documents that are judged or that the run has, for every judged query.

    documents : first those of the judgments in their order, then the others of the run; nothing is retrieved for a
                query that the run lacks
    scores    : float64[n_documents], 0 where a document is not retrieved
    n_unknown : queries of the run that are not judged, which are left out
    found     : bool[n_queries], judged queries that the run has
    """

    documents: Judgments
    scores: Float64Array
    n_unknown: int
    found: BoolArray

    @property
    def n_missing(self) -> int:
        """Judged queries that the run lacks."""
        return int(np.count_nonzero(~self.found))


def align_run(judgments: JudgedDocuments, run: Run, by_document: bool) -> AlignedRun:
    """Join a run to judgments by the ids of queries and documents.

    by_document : whether documents with the same score, even as float32, stand in the order of their ids, descending by
                  bytes, as in trec_eval; else in the order of the run
    DataError when no query of the run is judged.
    """
    of_run = {query_id: place for place, query_id in enumerate(run.query_ids)}
    theirs = np.fromiter(map(of_run.get, judgments.query_ids, repeat(-1)), np.int64, len(judgments.query_ids))
    in_both = np.flatnonzero(theirs >= 0)
    if not len(in_both):
        ids = f"it has {quote(run.query_ids[0])}, {input_name(judgments.source)} has {quote(judgments.query_ids[0])}"
        raise DataError(f"no query of the run is judged: {ids}; do both name the queries alike?", run.source)
    run_rows = rows_of(run.query_offsets, theirs[in_both])
    queries = np.repeat(in_both, np.diff(run.query_offsets)[theirs[in_both]])
    judged_rows = _judged_rows(judgments, run, in_both, theirs)

    n_judged = np.diff(judgments.query_offsets)
    is_other = judged_rows < 0
    others = queries[is_other]
    n_others = np.bincount(others, minlength=len(theirs))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(n_judged + n_others)])
    shift = offsets[:-1] - judgments.query_offsets[:-1]  # from a row of the judgments to its place here
    rows = judged_rows + shift[queries]
    rows[is_other] = (offsets[:-1] + n_judged - np.cumsum(n_others) + n_others)[others] + np.arange(len(others))

    n = int(offsets[-1])
    labels, judged = np.zeros(n), np.zeros(n, np.bool_)
    at = np.arange(len(judgments.labels)) + np.repeat(shift, n_judged)
    labels[at], judged[at] = np.maximum(judgments.labels, 0.0), judgments.labels >= 0
    scores, retrieved, tie_order = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.int64)
    scores[rows], retrieved[rows] = run.scores[run_rows], True
    tie_order[rows] = _order_of_ties(run, run_rows, queries) if by_document else run_rows
    documents = Judgments(labels, offsets, judged, retrieved, tie_order)
    return AlignedRun(documents, scores, len(run.query_ids) - len(in_both), theirs >= 0)


def _judged_rows(judgments: JudgedDocuments, run: Run, in_both: Int64Array, theirs: Int64Array) -> Int64Array:
    """Return the row in the judgments of each document of the run, -1 where it has none, query after query.

    in_both : int64, places in the judgments of the queries that the run has
    theirs  : int64, place in the run of each query of the judgments, -1: none
    """
    found: list[int] = []
    bounds, run_bounds = judgments.query_offsets.tolist(), run.query_offsets.tolist()
    for query, other in zip(in_both.tolist(), theirs[in_both].tolist(), strict=True):
        start, stop = bounds[query], bounds[query + 1]
        rows = dict(zip(judgments.document_ids[start:stop], range(start, stop), strict=True))
        own = run.document_ids[run_bounds[other] : run_bounds[other + 1]]
        found += map(rows.get, own, repeat(-1))
    return np.array(found, np.int64)


def _order_of_ties(run: Run, rows: Int64Array, queries: Int64Array) -> Int64Array:
    """Return the place of each document among those of its query with the same score, by id, descending."""
    with np.errstate(over="ignore"):
        scores = run.scores[rows].astype(np.float32)  # what is the same in float64 is the same here
    order = np.lexsort((scores, queries))
    scores, queries = scores[order], queries[order]
    same = (scores[1:] == scores[:-1]) & (queries[1:] == queries[:-1])
    places = np.zeros(len(rows), np.int64)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    for first, last in edges.reshape(-1, 2).tolist():
        tied = order[first : last + 1]
        ids = [run.document_ids[row] for row in rows[tied].tolist()]
        ranked = sorted(range(len(ids)), key=ids.__getitem__, reverse=True)
        places[tied[ranked]] = np.arange(len(ids))
    return places
