"""Measuring on workers: one task a part, which reads it, scores its rows and measures its queries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.metadata import spread_weights
from lmart.data.named_documents import document_names
from lmart.distributed.actors import check_run
from lmart.distributed.query_places import Place, places_of, refuse_repeated, repeated_codes
from lmart.distributed.reading import (
    PartsFound,
    PartsReader,
    WeightsFound,
    joined_set,
    joined_weights,
    read_part_weights,
    refuse_unfit,
)
from lmart.errors import DataError, input_name
from lmart.formats.documents.dataset_builder import LabelAndIdBuilder
from lmart.formats.documents.reading import source_name
from lmart.formats.read_options import ReadOptions
from lmart.formats.results.scores import read_scores
from lmart.gains import grade_scale
from lmart.measures.evaluation import Measurement
from lmart.measures.judgments import Judgments, docid_order
from lmart.measures.measure import Measure
from lmart.measures.results import MeasuredQueries, joined_queries
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.scorer import Scorer
from lmart.streams import changed_while_read
from lmart.threads import WorkerPool


class PartInputs(NamedTuple):
    """What a worker reads to measure a part: the part itself, and with it files of scores and weights.

    scores : file of each system whose scores are given, in their order
    """

    path: str
    scores: tuple[str, ...] = ()
    weights: str | None = None


@dataclass(frozen=True)
class PartPlan:
    """How a part is read and measured.

    systems : kind of each system: 'model', or 'scores' that are given
    scale   : largest label that err assumes without max=; None, or below a label of the part: the part's largest
    names   : features known in advance, in the order of their numbers; may be empty
    """

    measures: tuple[Measure, ...]
    options: ReadOptions
    systems: tuple[str, ...]
    scale: int | None = None
    names: tuple[str, ...] = ()

    @property
    def keeps_document_ids(self) -> bool:
        """Whether ties are ordered by document id."""
        return self.measures[0].conventions.ties == "docid"


class MeasuredPart(NamedTuple):
    """What a worker found in a part.

    first_lines : int64[n_queries], line or row of the file where each query begins
    weights     : facts about them, and float64[n_queries]; None: no weights
    systems     : the queries as each system ranks them; empty when a label is above the largest one that a measure
                  names, which all parts together refuse
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
        what, weight_numbers = read_part_weights(files.weights, offsets)
        weights = what, spread_weights(weight_numbers, offsets).per_query
    own_scale = grade_scale(labels)
    largest = labels.max(initial=0.0)
    scale = own_scale if plan.scale is None or largest > plan.scale else plan.scale
    systems: list[MeasuredQueries] = []
    if not any(measure.largest_label is not None and largest > measure.largest_label for measure in plan.measures):
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
        matchers = [FeatureMatcher(scorer_used.ensemble) for scorer_used in scorers]
        scores: list[list[Float64Array]] = [[np.zeros(0)] for _ in scorers]
        for path, blocks, _ in self.batches(queries=self._queries):
            columns = [matcher.column_map(self.table.ids, self.table.names) for matcher in matchers]
            for block in blocks:
                ids_and_labels.add(block, path)
                for scorer, own, so_far in zip(scorers, columns, scores, strict=True):
                    so_far.append(scorer.score(block.features, own, self._pool))
        self.query_ids, self.document_ids = ids_and_labels.query_ids, ids_and_labels.document_ids
        self.first_lines: Int64Array = np.array([line for _, line in self._queries.places.values()], np.int64)
        return self.found(ids_and_labels), [np.concatenate(of_model) for of_model in scores]


MeasureParts: TypeAlias = Callable[[Sequence[tuple[PartInputs, PartPlan]]], Iterable[MeasuredPart]]
"""Measures parts by their plans somewhere else, and gives what was found in the same order."""


class QueryWeights(NamedTuple):
    """Weights of the queries of all parts: float64[n_queries]; 'query' or 'row', as they were given."""

    per_query: Float64Array
    given_per: str


class EvaluatedParts:
    """The parts of one data set, each measured once, or again when all parts together show that it must be.

    DataError as one process raises it, when a query spans parts too.
    """

    def __init__(
        self,
        measure: MeasureParts,
        files: Sequence[PartInputs],
        plan: PartPlan,
        watch: Callable[[int], None] = lambda number: None,
    ) -> None:
        self._measure, self._files, self._plan = measure, files, plan
        parts: list[MeasuredPart] = []
        try:
            for part in measure([(own, plan) for own in files]):
                parts.append(part)
                watch(len(parts))
        except DataError:
            _refuse_spanning(parts)  # which one process would have met before
            raise
        _refuse_spanning(parts)
        self._parts = parts
        paths = [file.path for file in files]
        found = [part.found for part in parts]
        self.data, _ = joined_set(source_name(paths), found, [[path] for path in paths])
        self.query_ids = [query_id for part in parts for query_id in part.query_ids]

    def weights(self) -> QueryWeights | None:
        """Return the weights of all queries, None without any; DataError when those of parts do not fit together."""
        found_weights = [part.weights for part in self._parts if part.weights is not None]
        first = self._files[0].weights
        if first is None:
            return None
        found = joined_weights([what for what, _ in found_weights])
        refuse_unfit(found, first)
        return QueryWeights(
            np.concatenate([own for _, own in found_weights]), "query" if found.per_document is None else "row"
        )

    def agree(self, scale: int, matches_by_number: bool) -> None:
        """Measure those parts again that were measured otherwise than in one data set.

        DataError when a part has changed meanwhile.
        """
        by_scale = any(
            measure.kind.uses_label_scale and measure.largest_label is None for measure in self._plan.measures
        )
        names = self.data.feature_names or ()
        again = {}
        for number, part in enumerate(self._parts):
            own = part.found.names or ()
            if (by_scale and part.scale != scale) or (matches_by_number and own != names[: len(own)]):
                plan = replace(self._plan, scale=scale, names=names if own else ())
                again[number] = self._files[number]._replace(weights=None), plan
        for number, measured in zip(again, self._measure(list(again.values())), strict=True):
            if measured.digest != self._parts[number].digest:
                raise changed_while_read(measured.path)
            self._parts[number] = self._parts[number]._replace(systems=measured.systems, scale=measured.scale)

    def system(self, number: int) -> MeasuredQueries:
        """Return the queries of all parts as a system ranks them."""
        return joined_queries([part.systems[number] for part in self._parts])


def _refuse_spanning(parts: Sequence[MeasuredPart]) -> None:
    """Raise DataError when a query spans parts, naming both places."""
    again = repeated_codes([part.found.query_codes for part in parts]).tolist()
    if again:
        refuse_repeated(places_of(part.places, again) for part in parts)
