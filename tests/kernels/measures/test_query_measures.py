"""The kernels of measures against their plain twins, over all orders of tied documents, and planted answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference.measures
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.measures import query_measures

WHOLE = 1000
DISCOUNTS = np.array([1.0 / (1.0 + 0.37 * rank) for rank in range(64)])
TABLES = {"discounted_sums": (DISCOUNTS,), "first_relevant_values": (np.arange(1.0, 3001.0),)}


def documents(queries: list[tuple[list[float], list[float]]]) -> query_measures.RankedDocuments:
    """(scores, relevance) pairs laid end to end, and the rows of each in ranked order."""
    scores = np.array([score for query in queries for score in query[0]])
    relevance = np.array([relevance for query in queries for relevance in query[1]])
    offsets = np.cumsum([0, *(len(query[0]) for query in queries)])
    rows = [start + row for start, query in zip(offsets, queries, strict=False)
            for row in reference.measures.ranked_rows(query[0])]  # fmt: skip
    return query_measures.RankedDocuments(np.array(rows, np.int32), scores, relevance, offsets)


def run(name: str, queries: list[tuple[list[float], list[float]]], cutoff: int, average: bool) -> list[float]:
    """Call a kernel on (scores, relevance) pairs laid end to end."""
    out = np.full(len(queries), np.nan)
    kernel = getattr(query_measures, name)
    kernel(
        documents(queries),
        *TABLES.get(name, ()),
        0,
        len(queries),
        cutoff,
        average,
        out,
    )
    return out.tolist()


def twin(name: str, scores: list[float], relevance: list[float], cutoff: int, average: bool) -> float:
    measure = getattr(reference.measures, name)
    rest: list[Any] = [cutoff, *((lambda rank, own=own: float(own[rank])) for own in TABLES.get(name, ()))]
    if average:
        return reference.measures.over_tied_orders(measure, scores, relevance, *rest)
    return float(measure([relevance[row] for row in reference.measures.ranked_rows(scores)], *rest))


def queries_of(
    relevance: st.SearchStrategy[float], largest: int
) -> st.SearchStrategy[list[tuple[list[float], list[float]]]]:
    document = st.tuples(st.sampled_from([-1.5, 0.0, 2.0]), relevance)
    query = st.lists(document, min_size=0, max_size=largest).map(
        lambda rows: ([r[0] for r in rows], [r[1] for r in rows])
    )
    return st.lists(query, min_size=1, max_size=3)


BINARY = st.sampled_from([0.0, 1.0])
RELEVANCE = {
    "discounted_sums": st.sampled_from([0.0, 1.0, 3.0, 0.3]),
    "precision_sums": BINARY,
    "first_relevant_values": BINARY,
    "expected_reciprocal_ranks": st.sampled_from([0.0, 0.0625, 0.4375, 0.9375, 1.0]),
}


@pytest.mark.parametrize("name", RELEVANCE)
@given(data=st.data())
def test_the_twin_agrees_in_input_order(name: str, data: st.DataObject) -> None:
    queries = data.draw(queries_of(RELEVANCE[name], 8))
    cutoff = data.draw(st.sampled_from([1, 2, 3, 5, WHOLE]))
    wanted = [twin(name, *query, cutoff, False) for query in queries]
    assert run(name, queries, cutoff, False) == pytest.approx(wanted, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("name", RELEVANCE)
@given(data=st.data())
def test_tied_documents_count_as_the_mean_over_all_their_orders(name: str, data: st.DataObject) -> None:
    queries = data.draw(queries_of(RELEVANCE[name], 6))
    cutoff = data.draw(st.sampled_from([1, 2, 3, 5, WHOLE]))
    wanted = [twin(name, *query, cutoff, True) for query in queries]
    assert run(name, queries, cutoff, True) == pytest.approx(wanted, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", RELEVANCE)
@given(data=st.data())
def test_averages_do_not_depend_on_the_order_of_the_rows(name: str, data: st.DataObject) -> None:
    ((scores, relevance),) = data.draw(queries_of(RELEVANCE[name], 12).filter(lambda queries: len(queries) == 1))
    cutoff = data.draw(st.sampled_from([1, 3, WHOLE]))
    rows = data.draw(st.permutations(range(len(scores))))
    moved = ([scores[row] for row in rows], [relevance[row] for row in rows])
    here, there = run(name, [(scores, relevance)], cutoff, True), run(name, [moved], cutoff, True)
    assert here == pytest.approx(there, rel=1e-13, abs=1e-15)


def preferences(queries: list[tuple[list[float], list[float]]], average: bool) -> tuple[list[float], list[float]]:
    """What the kernel writes and what its twin says, with one more judged document of each kind than is ranked."""
    counts = [(1.0 + rows[1].count(1.0), 1.0 + rows[1].count(0.0)) for rows in queries]
    ranked = documents(queries)
    out = np.full(len(queries), np.nan)
    relevant, others = (np.array(column) for column in zip(*counts, strict=True))
    query_measures.preference_sums(ranked, relevant, others, 0, len(queries), average, out)
    wanted = []
    for query, count in zip(queries, counts, strict=True):
        if average:
            twin = reference.measures.over_tied_orders(reference.measures.preference_sums, *query, *count)
        else:
            in_order = [query[1][row] for row in reference.measures.ranked_rows(query[0])]
            twin = reference.measures.preference_sums(in_order, *count)
        wanted.append(twin)
    return out.tolist(), wanted


@pytest.mark.parametrize("average", [False, True])
@given(queries=queries_of(st.sampled_from([1.0, 0.0, 0.0, -1.0]), 6))
def test_the_twin_of_preferences_agrees(average: bool, queries: list[tuple[list[float], list[float]]]) -> None:
    found, wanted = preferences(queries, average)
    assert found == pytest.approx(wanted, rel=1e-13, abs=1e-14)


@given(queries=queries_of(st.sampled_from([0.0, 1.0, 2.5, float("nan")]), 12))
def test_the_twin_of_the_rank_correlation_agrees(queries: list[tuple[list[float], list[float]]]) -> None:
    ranked = documents(queries)
    out = np.full(len(queries), -9.0)
    query_measures.rank_correlations(ranked, 0, len(queries), out)
    for query, found in zip(queries, out.tolist(), strict=True):
        judged = [(score, label) for score, label in zip(*query, strict=True) if label == label]  # noqa: PLR0124
        wanted = reference.measures.rank_correlation([score for score, _ in judged], [label for _, label in judged])
        assert (wanted is None and found != found) or found == pytest.approx(wanted, rel=1e-14)  # noqa: PLR0124


def test_only_the_given_queries_are_written() -> None:
    out = np.full(3, -1.0)
    order = np.arange(6, dtype=np.int32)
    scores, relevant = np.zeros(6), np.ones(6)
    ranked = query_measures.RankedDocuments(order, scores, relevant, np.array([0, 2, 4, 6]))
    for name in RELEVANCE:
        out[:] = -1
        getattr(query_measures, name)(ranked, *TABLES.get(name, ()), 1, 2, 1, True, out)
        assert out.tolist() == [-1, 1, -1], name


def test_planted_answers() -> None:
    assert run("precision_sums", [([2, 1, 0], [1, 0, 1])], WHOLE, False) == [1 + 2 / 3]
    assert run("first_relevant_values", [([2, 1, 0], [0, 0, 1]), ([], []), ([1, 0], [0, 1])], 2, False) == [0, 0, 0.5]
    assert run("expected_reciprocal_ranks", [([2, 1], [0.5, 0.5])], WHOLE, False) == [0.5 + 0.25 * 0.5]
    # one relevant among four tied: 1/4 (1 + 1/2 + 1/3 + 1/4)
    for name in ("precision_sums", "first_relevant_values", "expected_reciprocal_ranks"):
        assert run(name, [([0] * 4, [0, 1, 0, 0])], WHOLE, True) == pytest.approx([25 / 48], rel=1e-14)


def test_large_groups_stay_exact() -> None:
    n = 3000
    relevant = [1.0] * (n // 3) + [0.0] * (n - n // 3)
    scores = [0.0] * n
    # a relevant document tied with all: the chance that the first i are all irrelevant, summed in exact integers
    wanted, none_yet = 0.0, 1.0
    for i in range(n - n // 3 + 1):
        wanted += none_yet * (n // 3) / (n - i) / (i + 1)
        none_yet *= 1 - (n // 3) / (n - i)
    assert run("first_relevant_values", [(scores, relevant)], n, True) == pytest.approx([wanted], rel=1e-12)
    assert run("expected_reciprocal_ranks", [(scores, relevant)], n, True) == pytest.approx([wanted], rel=1e-9)
    third = [0.25] * n  # equal documents: their order cannot matter
    plain = run("expected_reciprocal_ranks", [(scores, third)], n, False)
    assert run("expected_reciprocal_ranks", [(scores, third)], n, True) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("average", [False, True])
@given(queries=queries_of(st.sampled_from([0.0, 1.0, 3.0, 0.3]), 6), depths=st.lists(st.integers(0, 8), min_size=3))
def test_sums_to_a_depth_of_each_query_are_those_without_a_discount(
    average: bool, queries: list[tuple[list[float], list[float]]], depths: list[int]
) -> None:
    ranked, out = documents(queries), np.full(len(queries), np.nan)
    query_measures.sums_to_depths(ranked, np.array(depths[: len(queries)]), 0, len(queries), average, out)
    for (scores, values), depth, found in zip(queries, depths, out.tolist(), strict=False):
        orders = reference.measures.tied_orders(scores) if average else [reference.measures.ranked_rows(scores)]
        sums = [sum(values[row] for row in order[:depth]) for order in orders]
        assert found == pytest.approx(sum(sums) / len(sums), rel=1e-13, abs=1e-14)


@given(queries=queries_of(BINARY, 8), n_needed=st.integers(0, 4))
def test_the_twin_of_interpolated_precision_agrees(
    queries: list[tuple[list[float], list[float]]], n_needed: int
) -> None:
    out = np.full(len(queries), np.nan)
    needed = np.full(len(queries), float(n_needed))
    query_measures.interpolated_precisions(documents(queries), needed, 0, len(queries), out)
    in_order = [[values[row] for row in reference.measures.ranked_rows(scores)] for scores, values in queries]
    assert out.tolist() == [reference.measures.interpolated_precisions(one, n_needed) for one in in_order]


@given(
    queries=queries_of(st.sampled_from([1.0, 0.0, -1.0]), 8), missing=st.tuples(st.integers(0, 2), st.integers(0, 2))
)
def test_the_twin_of_ordered_pairs_agrees(
    queries: list[tuple[list[float], list[float]]], missing: tuple[int, int]
) -> None:
    """With documents of each kind that are not ranked, which stand below all others."""
    out = np.full(len(queries), np.nan)
    relevant, others = (
        np.array([float(values.count(kind) + missing[1 - int(kind)]) for _, values in queries]) for kind in (1.0, 0.0)
    )
    query_measures.ordered_pairs(documents(queries), relevant, others, 0, len(queries), out)
    for (scores, values), found in zip(queries, out.tolist(), strict=True):
        judged = [(score, value == 1) for score, value in zip(scores, values, strict=True) if value >= 0]
        judged += [(-9.0, True)] * missing[0] + [(-9.0, False)] * missing[1]
        wanted = reference.measures.ordered_pairs([score for score, _ in judged], [kind for _, kind in judged])
        assert found == wanted
