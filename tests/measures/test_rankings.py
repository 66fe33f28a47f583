"""A run joined to judgments: against a plain join, and measured as trec_eval measures it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Int64Array
from lmart.data.named_documents import JudgedDocuments, Run
from lmart.errors import DataError
from lmart.gains import Gain
from lmart.measures import parse_measures
from lmart.measures.conventions import Conventions
from lmart.measures.evaluation import Measurement
from lmart.measures.presets import conventions_like
from lmart.measures.rankings import AlignedRun, align_run
from lmart.threads import WorkerPool

Lists = dict[str, dict[str, float]]


def flat(lists: Lists) -> tuple[list[str], Int64Array, list[bytes], np.ndarray]:
    offsets = np.cumsum([0, *map(len, lists.values())]).astype(np.int64)
    ids = [one.encode() for own in lists.values() for one in own]
    return list(lists), offsets, ids, np.array([x for own in lists.values() for x in own.values()], np.float64)


def judged(lists: Lists) -> JudgedDocuments:
    query_ids, offsets, ids, labels = flat(lists)
    return JudgedDocuments(query_ids, offsets, ids, labels, "qrels", np.arange(len(labels)))


def run_of(lists: Lists) -> Run:
    return Run(*flat(lists), "run")


def rankings(aligned: AlignedRun) -> list[list[tuple[float, float | None]]]:
    """Of each query the retrieved documents, best first: score, and label, None where it is not judged."""
    found = []
    documents = aligned.documents
    assert documents.judged is not None and documents.retrieved is not None and documents.tie_order is not None
    for start, stop in zip(documents.query_offsets[:-1], documents.query_offsets[1:], strict=True):
        rows = [i for i in range(start, stop) if documents.retrieved[i]]
        rows.sort(key=lambda i: (-aligned.scores[i], documents.tie_order[i]))  # type: ignore[index]
        found.append(
            [(float(aligned.scores[i]), float(documents.labels[i]) if documents.judged[i] else None) for i in rows]
        )
    return found


ids = st.sampled_from(["d1", "d10", "d2", "D3", "é", "z"])
labels = st.dictionaries(ids, st.integers(-1, 3).map(float), min_size=1)
scores = st.dictionaries(ids, st.sampled_from([0.5, 1.0, 1.0 + 2.0**-40, -2.0, 1e300]), min_size=1)
queries = st.sampled_from(["a", "b", "c", "d"])


@given(
    qrels=st.dictionaries(queries, labels, min_size=1),
    run=st.dictionaries(queries, scores, min_size=1),
    by_document=st.booleans(),
)
def test_the_documents_of_a_query_are_those_of_either_file(qrels: Lists, run: Lists, by_document: bool) -> None:
    if not qrels.keys() & run.keys():
        with pytest.raises(DataError, match="no query of the run is judged"):
            align_run(judged(qrels), run_of(run), by_document)
        return
    aligned = align_run(judged(qrels), run_of(run), by_document)
    wanted = []
    for query, own in qrels.items():
        places = {one: place for place, one in enumerate(run.get(query, {}))}
        names = sorted(places, key=str.encode, reverse=True) if by_document else list(places)
        names.sort(key=lambda one: -run[query][one])
        wanted.append([(run[query][one], own[one] if own.get(one, -1) >= 0 else None) for one in names])
    assert rankings(aligned) == wanted
    for i, (query, own) in enumerate(qrels.items()):
        start, stop = aligned.documents.query_offsets[i : i + 2]
        assert stop - start == len(own.keys() | run.get(query, {}).keys())
        assert aligned.documents.labels[start : start + len(own)].tolist() == [max(x, 0.0) for x in own.values()]
    assert aligned.n_missing == len(qrels.keys() - run.keys())
    assert aligned.n_unknown == len(run.keys() - qrels.keys())


def measured(qrels: Lists, run: Lists, metric: str, conventions: Conventions) -> dict[str, float | None]:
    aligned = align_run(judged(qrels), run_of(run), conventions.ties == "docid")
    with WorkerPool(1) as pool:
        how = Measurement(parse_measures(metric, conventions), pool, None, 4)
        return how.evaluator(aligned.documents).evaluate(aligned.scores).values


def test_the_worked_values_of_trec_eval() -> None:
    """Printed by trec_eval 10.0: a tie of three, a document that was not found, and one that is not judged."""
    qrels: Lists = {"q1": {"d1": 3, "d2": 0, "d3": 2, "d4": 1, "d9": 2}}
    run: Lists = {"q1": {"d4": 0.9, "d1": 0.5, "d2": 0.5, "d3": 0.5, "d5": 0.1}}
    values = measured(qrels, run, "map,p@3,recall@5,ndcg,ndcg@1,ndcg@3,mrr", conventions_like("trec_eval"))
    assert [round(value or 0.0, 4) for value in values.values()] == [0.6875, 0.6667, 0.75, 0.6243, 0.3333, 0.4299, 1.0]
    table = conventions_like("trec_eval", gain=Gain.parse("0,1,3,7"))
    assert measured(qrels, run, "ndcg", table)["ndcg"] == pytest.approx(0.5458, abs=5e-5)


@pytest.mark.peers
def test_pytrec_eval_gives_the_same_numbers() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {
        "map": "map",
        "map_cut_3": "map@3",
        "P_5": "p@5",
        "recall_10": "recall@10",
        "recip_rank": "mrr",
        "ndcg": "ndcg",
        "ndcg_cut_5": "ndcg@5",
        "bpref": "bpref",
    }
    asked = {"map", "map_cut.3", "P.5", "recall.10", "recip_rank", "ndcg", "ndcg_cut.5", "bpref"}
    random = np.random.default_rng(5)
    for ties in (False, True):
        qrels: Lists = {}
        run: Lists = {}
        for query in map(str, range(60)):
            documents = [f"doc{i}" for i in random.permutation(40)]
            found = random.random(len(documents)).round(1) if ties else random.random(len(documents)) / 3
            known, kept = random.integers(1, 30), random.integers(1, 40)
            qrels[query] = {one: float(random.integers(-1, 4)) for one in documents[:known]}
            run[query] = dict(zip(documents[10 : 10 + kept], found.tolist(), strict=False))
        del run["3"], qrels["4"]
        run["5"] = {f"none{i}": float(i) for i in range(5)}
        qrels["6"] = dict.fromkeys(qrels["6"], 0.0)
        whole = {query: {one: int(label) for one, label in own.items()} for query, own in qrels.items()}
        theirs = pytrec_eval.RelevanceEvaluator(whole, asked).evaluate(run)
        # it keeps scores in 32 bits
        ours = measured(qrels, run, ",".join(names.values()), conventions_like("trec_eval", precision="single"))
        for their_name, our_name in names.items():
            mean = float(np.mean([values[their_name] for values in theirs.values()]))
            assert ours[our_name] == pytest.approx(mean, rel=1e-12), (our_name, ties)


def test_scores_that_are_the_same_in_32_bits_stand_by_document_when_they_are_compared_so() -> None:
    qrels: Lists = {"q": {"a": 1, "b": 0, "c": 0}}
    run: Lists = {"q": {"a": 1.0 + 2.0**-40, "b": 1.0, "c": 1.0 + 2.0**-41}}
    for precision, value in (("double", 1.0), ("single", 1 / 3)):
        assert measured(qrels, run, "mrr", conventions_like("trec_eval", precision=precision)) == {"mrr": value}


@given(
    qrels=st.dictionaries(queries, labels, min_size=4),
    run=st.dictionaries(queries, scores, min_size=4),
    group=st.sets(queries, min_size=1),
)
def test_a_group_is_measured_as_files_of_its_queries_alone(qrels: Lists, run: Lists, group: set[str]) -> None:
    weights = dict(zip("abcd", (1.0, 4.0, 2.0, 5.0), strict=True))
    names = [query for query in qrels if query in group]
    alone = align_run(judged({query: qrels[query] for query in names}), run_of(run), True)
    whole = align_run(judged(qrels), run_of(run), True)
    metric = parse_measures("ndcg,mrr,bpref,judged@3,err", conventions_like(None, ties="docid"))
    places = np.array([list(qrels).index(query) for query in names], np.int64)
    with WorkerPool(1) as pool:
        of_all = np.array([weights[query] for query in qrels])
        how = Measurement(metric, pool, of_all, 4, {"own": places})
        (report,) = how.by_group(how.evaluator(whole.documents).measure(whole.scores))
        own = Measurement(metric, pool, of_all[places], 4)
        wanted = own.report(own.evaluator(alone.documents).measure(alone.scores))
    assert report.values == wanted.values
    assert report.n_documents == wanted.n_documents


def test_groups_are_measured_by_themselves() -> None:
    qrels: Lists = {"a": {"x": 1, "y": 0}, "b": {"x": 0, "y": 2}, "c": {"x": 3}}
    run: Lists = {"a": {"x": 1, "y": 2, "z": 3}, "b": {"y": 1}, "c": {"x": 1}}
    aligned = align_run(judged(qrels), run_of(run), True)
    weights = np.array([1.0, 3.0, 2.0])
    with WorkerPool(1) as pool:
        groups = {"first": np.array([0, 1]), "second": np.array([2])}
        how = Measurement(parse_measures("mrr,err"), pool, weights, 3, groups)
        first, second = how.by_group(how.evaluator(aligned.documents).measure(aligned.scores))
    assert first.values["mrr"] == pytest.approx((1 / 3 + 3 * 1.0) / 4)
    assert (first.n_queries, first.n_documents, second.n_queries) == (2, 5, 1)
    assert second.values == {"mrr": 1.0, "err": 7 / 8}
    assert first.grade_scale == 3  # of all queries, though its own labels end at 2
