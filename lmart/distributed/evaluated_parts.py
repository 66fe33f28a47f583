"""EvaluatedParts: a data set whose parts workers measure, as the driver knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from lmart.array_types import Float64Array
from lmart.distributed.evaluation import MeasuredPart, PartInputs, PartPlan
from lmart.distributed.joined_set import joined_set
from lmart.distributed.part_weights import joined_weights, refuse_unfit
from lmart.distributed.query_places import places_of, refuse_repeated, repeated_codes
from lmart.errors import DataError
from lmart.formats.documents.reading import source_name
from lmart.measures.results import MeasuredQueries, joined_queries
from lmart.streams import changed_while_read

MeasureParts: TypeAlias = Callable[[Sequence[tuple[PartInputs, PartPlan]]], Iterable[MeasuredPart]]
"""Measures parts by their plans somewhere else, and gives what was found in the same order."""


class QueryWeights(NamedTuple):
    """Weights of the queries of all parts: float64[n_queries]; 'query' or 'row', as they were given."""

    per_query: Float64Array
    given_per: str


class EvaluatedParts:
    """The parts of one data set, each measured once, or again when all parts together show that it must be.

    measure : measures parts
    files   : what is read of each part, in order
    plan    : how they are read and measured
    watch   : called with the number of parts measured so far

    data      : what is known of the rows and features of all parts
    query_ids : n_queries texts

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
            for one in measure([(own, plan) for own in files]):
                parts.append(one)
                watch(len(parts))
        except DataError:
            _refuse_spanning(parts)  # which one process would have met before
            raise
        _refuse_spanning(parts)
        self._parts = parts
        paths = [one.path for one in files]
        found = [one.found for one in parts]
        self.data, _ = joined_set(source_name(paths), found, [[path] for path in paths])
        self.query_ids = [query_id for one in parts for query_id in one.query_ids]

    def weights(self) -> QueryWeights | None:
        """Return the weights of all queries, None without any; DataError when those of parts do not fit together."""
        given = [one.weights for one in self._parts if one.weights is not None]
        first = self._files[0].weights
        if first is None:
            return None
        found = joined_weights([what for what, _ in given])
        refuse_unfit(found, first)
        return QueryWeights(np.concatenate([own for _, own in given]), "query" if found.per_document is None else "row")

    def agree(self, scale: int, matches_by_number: bool) -> None:
        """Measure those parts again that were measured otherwise than in one data set.

        DataError when a part has changed meanwhile.
        """
        by_scale = any(one.kind.uses_label_scale and one.largest_label is None for one in self._plan.measures)
        names = self.data.feature_names or ()
        again = {}
        for number, one in enumerate(self._parts):
            own = one.found.names or ()
            if (by_scale and one.scale != scale) or (matches_by_number and own != names[: len(own)]):
                plan = replace(self._plan, scale=scale, names=names if own else ())
                again[number] = self._files[number]._replace(weights=None), plan
        for number, one in zip(again, self._measure(list(again.values())), strict=True):
            if one.digest != self._parts[number].digest:
                raise changed_while_read(one.path)
            self._parts[number] = self._parts[number]._replace(systems=one.systems, scale=one.scale)

    def system(self, number: int) -> MeasuredQueries:
        """Return the queries of all parts as a system ranks them.

        number : of the system, from 0
        """
        return joined_queries([one.systems[number] for one in self._parts])


def _refuse_spanning(parts: Sequence[MeasuredPart]) -> None:
    """Raise DataError when a query spans parts, naming both places."""
    again = repeated_codes([one.found.query_codes for one in parts]).tolist()
    if again:
        refuse_repeated(places_of(one.places, again) for one in parts)
