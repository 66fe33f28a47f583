"""Every measure against its slow twin: levels, unjudged and unretrieved documents, conventions; what always holds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.measures import Document, Question, measure_of_query

from lmart.gains import Gain
from lmart.measures import KINDS, Conventions, Evaluator, Measure, parse_measures
from lmart.measures.judgments import Judgments

LABEL = st.none() | st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0])
SCORE = st.none() | st.sampled_from([0.0, 1.0, 2.5, -1.0])
QUERY = st.lists(st.builds(Document, LABEL, SCORE), min_size=0, max_size=6)
GAINS = {"exp2": lambda label: 2**label - 1, "linear": lambda label: label}


def evaluate(queries: list[list[Document]], measures: list[Measure]) -> dict[str, list[float]]:
    documents = [one for query in queries for one in query]
    report = Evaluator(
        Judgments(
            np.array([9.0 if one.label is None else one.label for one in documents]),
            np.cumsum([0, *map(len, queries)]),
            judged=np.array([one.label is not None for one in documents], np.bool_),
            retrieved=np.array([one.score is not None for one in documents], np.bool_),
        ),
        measures,
        scale=4,
    ).evaluate(np.array([np.nan if one.score is None else one.score for one in documents]))
    return {name: values.tolist() for name, values in report.per_query.items()}


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_the_twin_agrees(name: str, data: st.DataObject) -> None:
    draw, kind = data.draw, KINDS[name]
    queries = draw(st.lists(QUERY, min_size=1, max_size=3))
    cutoff = None if kind.cutoff == "none" else draw(st.sampled_from([1, 2, 4, 9]))
    level = draw(st.sampled_from([None, 1.0, 2.0, 2.5])) if kind.is_binary else None
    general = draw(st.sampled_from([None, 2.0]))
    gain = draw(st.sampled_from(sorted(GAINS)))
    words: dict[str, Any] = {
        "discount": draw(st.sampled_from(["log2", "letor"])),
        "short": draw(st.sampled_from(["whole", "zero"])),
        "p_divisor": draw(st.sampled_from(["k", "length"])),
        "map_divisor": draw(st.sampled_from(["relevant", "k", "length"])),
        "ties": "input" if kind.parameter == "recall level" else draw(st.sampled_from(["input", "average"])),
        "unjudged": draw(st.sampled_from(["count", "remove"])),
    }
    recall = draw(st.sampled_from([0.0, 0.1, 0.5, 2 / 3, 1.0])) if kind.parameter == "recall level" else None
    conventions = Conventions(Gain(gain), "skip", relevant=general, **words)
    persistence = 0.9 if kind.parameter == "persistence" else None
    measure = Measure(name, cutoff, persistence, conventions, level=level, recall_level=recall)
    asked = Question(
        name,
        cutoff,
        general if level is None else level,
        0.9,
        4,
        GAINS[gain],
        words["discount"] == "letor",
        words["short"] == "zero",
        words["p_divisor"] == "length",
        words["map_divisor"],
        recall or 0.0,
        words["unjudged"] == "remove",
    )
    average = words["ties"] == "average" and name not in ("kendall", "auc")
    (found,) = evaluate(queries, [measure]).values()
    for query, value in zip(queries, found, strict=True):
        wanted = measure_of_query(asked, query, average)
        if name == "gmap":  # of the mean over orders, not the mean of logarithms
            of_map = measure_of_query(replace(asked, name="map"), query, average)
            wanted = None if of_map is None else math.log(max(of_map, 0.00001))
        assert value == pytest.approx(np.nan if wanted is None else wanted, rel=1e-12, abs=1e-14, nan_ok=True)


def test_the_twins_on_a_worked_query() -> None:
    """Ranked: unjudged, 0, 2, unjudged; a document of label 3 is not retrieved."""
    query = [Document(3, None), Document(None, 5), Document(0, 4), Document(2, 3), Document(None, 2)]
    wanted = {"map": 1 / 6, "mrr": 1 / 3, "bpref": 0.0, "kendall": -1.0, "judged": 0.5, "err": 3 / 16 / 3}
    wanted |= {"success": 1.0, "rprec": 0.0, "f1": 1 / 3, "iprec": 1 / 3, "auc": 0.0, "gmap": math.log(1 / 6)}
    assert {name: measure_of_query(Question(name), query) for name in wanted} == pytest.approx(wanted)


# ---- what always holds


def measured(metric: str, labels: list[float], scores: list[float], **conventions: Any) -> dict[str, float]:
    queries = [[Document(label, score) for label, score in zip(labels, scores, strict=True)]]
    measures = list(parse_measures(metric, Conventions(**conventions)))
    return {name: values[0] for name, values in evaluate(queries, measures).items()}


@given(queries=st.lists(QUERY, min_size=1, max_size=3), ties=st.sampled_from(["input", "reverse", "average"]))
def test_bounds(queries: list[list[Document]], ties: str) -> None:
    names = "ndcg,ndcg@2,map,map@2,map(rel=2),mrr,p@3,recall@3,err,rbp,rbp@0.5,bpref,bpref(rel=2),judged@2,kendall,"
    names += "success@2,rprec,f1@3,f1,recall_cap@2,auc"
    found = evaluate(queries, list(parse_measures(names, Conventions(ties=ties))))
    for name, values in found.items():
        low = -1 if name == "kendall" else 0
        assert all(low - 1e-15 <= value <= 1 + 1e-15 for value in values), name


@given(
    labels=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=2, max_size=12),
    ties=st.sampled_from(["input", "average"]),
)
def test_the_best_and_the_worst_order(labels: list[float], ties: str) -> None:
    names = "ndcg,ndcg@1,ndcg@3,map,mrr,bpref,kendall,success@1,rprec,recall_cap@1,recall_cap@3,auc"
    best = measured(names, labels, labels, ties=ties, empty="one")
    assert best == pytest.approx(dict.fromkeys(best, 1.0), rel=1e-14)
    if len(set(labels)) > 1:
        worst = measured("kendall", labels, [-label for label in labels])
        assert worst["kendall"] == pytest.approx(-1.0, rel=1e-14)
        assert measured("kendall", labels, [1.0] * len(labels))["kendall"] == 0.0
    n_relevant = sum(label > 0 for label in labels)
    if 0 < n_relevant <= len(labels) - n_relevant:
        lowest = measured("bpref", labels, [-label for label in labels], ties=ties)["bpref"]
        assert lowest == pytest.approx(0, abs=1e-15)
