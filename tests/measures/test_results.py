"""Values of queries joined out of parts, their means, exact sums, and names of systems."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import DataError
from lmart.measures import Evaluator, parse_measures
from lmart.measures.judgments import Judgments
from lmart.measures.presets import conventions_like
from lmart.measures.results import (
    EvaluationReport,
    MeasuredQueries,
    best_places,
    distinct_names,
    exact_sum,
    joined_queries,
    scaled_weights,
)

ALL = "ndcg@2,ndcg,dcg,map,mrr,p@2,recall@2,err@3,err(max=9),rbp,bpref,kendall,judged@2"
rows = st.tuples(st.sampled_from([0.0, 0.0, 1.0, 2.0, 7.0]), st.sampled_from([-1.0, 0.0, 0.5]))
queries = st.lists(st.lists(rows, min_size=1, max_size=5), min_size=1, max_size=8)


def measured(own: list[list[tuple[float, float]]], like: str | None) -> MeasuredQueries:
    """Measure queries, given as label and score of each document."""
    offsets = np.cumsum([0, *map(len, own)])
    labels, scores = (np.array([row[i] for query in own for row in query]) for i in (0, 1))
    measures = parse_measures(ALL, conventions_like(like))
    return Evaluator(Judgments(labels, offsets), measures, scale=7).measure(scores)


def report(of: MeasuredQueries, like: str | None, weights: list[float]) -> EvaluationReport:
    offsets = np.concatenate([[0], np.cumsum(of.sizes)])
    return of.report(parse_measures(ALL, conventions_like(like)), scaled_weights(np.array(weights), offsets), 7)


@pytest.mark.slow
@given(
    own=queries,
    cuts=st.sets(st.integers(1, 7), max_size=6),
    like=st.sampled_from([None, "lightgbm", "xgboost", "letor4"]),
    data=st.data(),
)
def test_parts_join_to_the_whole(
    own: list[list[tuple[float, float]]], cuts: set[int], like: str | None, data: st.DataObject
) -> None:
    bounds = [0, *sorted(cut for cut in cuts if cut < len(own)), len(own)]
    joined = joined_queries([measured(own[a:b], like) for a, b in pairwise(bounds)])
    whole = measured(own, like)
    weights = data.draw(st.lists(st.sampled_from([0.0, 1.0, 3.7, 1e-5]), min_size=len(own), max_size=len(own)))
    found, wanted = report(joined, like, weights), report(whole, like, weights)
    assert found.to_json() == wanted.to_json()
    for name, values in wanted.per_query.items():
        assert found.per_query[name].tobytes() == values.tobytes()
    some = np.array(data.draw(st.lists(st.integers(0, len(own) - 1), min_size=1, unique=True)))
    picked = measured([own[i] for i in some.tolist()], like)
    of_some = [weights[i] for i in some.tolist()]
    assert report(joined.taken(some), like, of_some).to_json() == report(picked, like, of_some).to_json()


def test_the_first_query_that_is_too_large_is_told_of_each_measure() -> None:
    def part(labels: list[float]) -> MeasuredQueries:
        offsets = np.arange(len(labels) + 1)
        return Evaluator(Judgments(np.array(labels), offsets), parse_measures("ndcg,dcg@1,dcg@2")).measure(
            np.zeros(len(labels))
        )

    joined = joined_queries([part([1.0]), part([1.0, 1500.0]), part([1600.0])])
    assert joined.too_large == {"dcg@1": 1500.0, "dcg@2": 1500.0}
    with pytest.raises(DataError, match=r"^dcg@1 is too large for a number: the gain exp2 of label 1500 is too"):
        joined.report(parse_measures("ndcg,dcg@1,dcg@2"), None, 4)
    assert joined.report(parse_measures("ndcg"), None, 4).values == {"ndcg": 1.0}


def test_a_weight_of_one_is_scaled_as_the_others_are() -> None:
    weights = scaled_weights(np.array([8.0, 2.0, 0.5]), np.array([0, 1, 2, 3]))
    assert (weights.per_query.tolist(), weights.unit) == ([0.5, 0.125, 0.03125], 0.0625)
    by_row = scaled_weights(np.array([1.0, 3.0, 2.0]), np.array([0, 2, 3]))
    assert by_row.per_query.tolist() == [0.5, 0.5]
    assert math.isclose(by_row.unit, 0.25)


def test_the_smallest_weights_are_scaled_to_finite_ones() -> None:
    scaled = scaled_weights(np.full(2, 5e-324), np.array([0, 1, 2]))
    assert scaled.per_query.tolist() == [2.0**-51] * 2 and scaled.unit == 2.0**1023


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["run.txt"], ["run.txt"]),
        (["/a/b/run.txt", "c/other.txt"], ["run.txt", "other.txt"]),
        (["a/x/run.txt", "b/x/run.txt"], ["a/x/run.txt", "b/x/run.txt"]),
        (["a/x/run.txt", "a/y/run.txt", "other.txt"], ["x/run.txt", "y/run.txt", "other.txt"]),
        (["run.txt", "a/run.txt"], ["run.txt", "a/run.txt"]),
        (["a/run.txt", "a/run.txt", "a/run.txt"], ["run.txt", "run.txt#2", "run.txt#3"]),
        (["a/run.txt", "b/run.txt", "b/run.txt"], ["a/run.txt", "b/run.txt", "b/run.txt#2"]),
        (["-", "a.txt"], ["-", "a.txt"]),
        (["sc", "sc", "sc#2"], ["sc", "sc#3", "sc#2"]),
        (["sc#2", "sc", "sc", "sc#2"], ["sc#2", "sc", "sc#3", "sc#2#2"]),
        (["sc", "sc", "sc", "x/sc#2"], ["sc", "sc#3", "sc#4", "sc#2"]),
    ],
)
def test_names_are_base_names_made_distinct(paths: list[str], names: list[str]) -> None:
    assert distinct_names(paths) == names
    assert len(set(names)) == len(names)


def test_the_best_stand_out_only_among_others() -> None:
    assert best_places([0.1, None, 0.3, 0.3]) == [2, 3]
    assert best_places([0.2, 0.2, None]) == best_places([None]) == best_places([]) == []


NUMBERS = st.lists(st.floats(-1e300, 1e300), max_size=8)


@given(st.lists(NUMBERS, max_size=4))
def test_any_grouping_gives_the_same_sum(groups: list[list[float]]) -> None:
    parts = [part for group in groups for part in exact_sum(group)]
    values = [value for group in groups for value in group]
    assert sum(map(Fraction, parts)) == sum(map(Fraction, values))
    assert math.fsum(parts) == math.fsum(values)


def test_what_rounds_away_is_kept() -> None:
    assert exact_sum([1.0, 2.0**-80, 2.0**-160]) == [1.0, 2.0**-80, 2.0**-160]
    assert exact_sum([]) == exact_sum([1.0, -1.0]) == []


def test_a_sum_that_is_no_number_is_refused() -> None:
    with pytest.raises(OverflowError):
        exact_sum([1e308] * 20)
