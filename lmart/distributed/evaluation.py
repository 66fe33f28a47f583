"""What a worker does for an evaluation: it reads a part of the data, scores its rows and measures its queries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.metadata_checks import spread_weights
from lmart.data.named_documents import document_names
from lmart.distributed.part_reading import PartsFound, PartsReader
from lmart.distributed.part_weights import WeightsFound, read_part_weights
from lmart.distributed.query_places import Place
from lmart.distributed.runs import check_run
from lmart.errors import input_name
from lmart.formats.documents.dataset_builder import LabelAndIdBuilder
from lmart.formats.read_options import ReadOptions
from lmart.formats.results.scores import read_scores
from lmart.gains import grade_scale
from lmart.measures.evaluation import Measurement
from lmart.measures.judgments import Judgments, docid_order
from lmart.measures.results import MeasuredQueries
from lmart.measures.values import Measure
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool


class PartInputs(NamedTuple):
    """What a worker reads to measure a part: the part itself, and with it files of scores and weights.

    path    : the part
    scores  : file of each system whose scores are given, in their order
    weights : file of those of its queries or rows; None: there are none
    """

    path: str
    scores: tuple[str, ...] = ()
    weights: str | None = None


@dataclass(frozen=True)
class PartPlan:
    """How a part is read and measured.

    measures : to be computed, all with the same conventions
    options  : how it is read
    systems  : kind of each system: 'model', or 'scores' that are given
    scale    : L of a measure of err that names none itself, unless a label of the part is above it; None: as the labels
               of the part have it
    names    : of features that are known before, in the order of their numbers; empty: none are
    """

    measures: tuple[Measure, ...]
    options: ReadOptions
    systems: tuple[str, ...]
    scale: int | None = None
    names: tuple[str, ...] = ()

    @property
    def keeps_document_ids(self) -> bool:
        """Whether documents of equal score stand by their ids."""
        return self.measures[0].conventions.ties == "docid"


class MeasuredPart(NamedTuple):
    """What a worker found in a part.

    path        : of the part
    found       : its rows and features
    query_ids   : n_queries texts
    first_lines : int64[n_queries], line or row of the file where each query begins
    scale       : L of a measure of err that names none itself
    weights     : what they are like, and float64[n_queries]; None: there are none
    systems     : the queries as each system ranks them; empty when a label is above the largest one that a measure
                  names, which all parts together refuse
    digest      : of labels and queries
    """

    path: str
    found: PartsFound
    query_ids: Sequence[str]
    first_lines: Int64Array
    scale: int
    weights: tuple[WeightsFound, Float64Array] | None
    systems: tuple[MeasuredQueries, ...]
    digest: bytes

    @property
    def places(self) -> dict[str, Place]:
        """Part and line of the first row of each query, by id."""
        lines = zip(self.query_ids, self.first_lines.tolist(), strict=True)
        return {query_id: (self.path, line) for query_id, line in lines}


def measure_part(run: str, files: PartInputs, plan: PartPlan, scorers: Sequence[Scorer]) -> MeasuredPart:
    """Measure the queries of a part for each system; DataError as one process raises it."""
    part = ScoringReader([files.path], plan.options, WorkerPool(1), partial(check_run, run))
    found, of_models = part.read(scorers, plan.names)
    scored, given_scores = iter(of_models), iter(files.scores)
    labels, offsets = part.labels, part.query_offsets
    weights = None
    if files.weights is not None:
        what, given = read_part_weights(files.weights, offsets)
        weights = what, spread_weights(given, offsets).per_query
    own_scale = grade_scale(labels)
    largest = labels.max(initial=0.0)
    scale = own_scale if plan.scale is None or largest > plan.scale else plan.scale
    systems: list[MeasuredQueries] = []
    if not any(one.largest_label is not None and largest > one.largest_label for one in plan.measures):
        ties = None
        if plan.keeps_document_ids:
            ties = docid_order(document_names(part.document_ids, offsets), offsets)
        documents = Judgments(labels, offsets, tie_order=ties)
        evaluator = Measurement(plan.measures, WorkerPool(1), None, scale).evaluator(documents)
        for kind in plan.systems:
            check_run(run)
            if kind == "model":
                scores = next(scored)
            else:
                scores = read_scores(next(given_scores), len(labels), input_name(files.path))
            systems.append(evaluator.measure(scores))
    return MeasuredPart(
        files.path,
        found,
        part.query_ids,
        part.first_lines,
        scale,
        weights,
        tuple(systems),
        hashlib.blake2b(labels.tobytes() + offsets.tobytes() + found.query_codes.tobytes()).digest(),
    )


class ScoringReader(PartsReader):
    """Reads a part and scores its rows by each model as they come; their features are not kept."""

    def read(self, scorers: Sequence[Scorer], names: Sequence[str]) -> tuple[PartsFound, list[Float64Array]]:
        """Read the part; return what was found, and the score of each row by each model."""
        if names:
            self.table.register_names(list(names))
        ids_and_labels = LabelAndIdBuilder()
        matchers = [FeatureMatcher(one.ensemble) for one in scorers]
        scores: list[list[Float64Array]] = [[np.zeros(0)] for _ in scorers]
        for path, blocks, _ in self.batches(queries=self._queries):
            columns = [one.column_map(self.table.ids, self.table.names) for one in matchers]
            for block in blocks:
                ids_and_labels.add(block, path)
                for scorer, own, so_far in zip(scorers, columns, scores, strict=True):
                    so_far.append(scorer.score(block.features, own, self._pool))
        self.query_ids, self.document_ids = ids_and_labels.query_ids, ids_and_labels.document_ids
        self.first_lines: Int64Array = np.array([line for _, line in self._queries.places.values()], np.int64)
        return self.found(ids_and_labels), [np.concatenate(one) for one in scores]
