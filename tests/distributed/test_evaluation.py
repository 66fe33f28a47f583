"""What workers do for an evaluation, and how their parts are joined, without a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.parts import as_table, judged_queries
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Float64Array, Int32Array
from lmart.data.dataset import SparseRows
from lmart.data.named_documents import document_names
from lmart.distributed.actors import give_up
from lmart.distributed.evaluation import EvaluatedParts, MeasuredPart, PartInputs, PartPlan, measure_part
from lmart.distributed.reading import rows_above_all_before
from lmart.errors import DataError, LmartError
from lmart.formats.documents import text_reader
from lmart.formats.documents.reading import for_models, read_dataset
from lmart.formats.metadata_files import read_weights
from lmart.formats.read_options import ReadOptions
from lmart.gains import grade_scale
from lmart.measures import parse_measures
from lmart.measures.evaluation import Measurement
from lmart.measures.judgments import Judgments, docid_order
from lmart.measures.presets import conventions_like
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import match_dataset
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool

ALL = "ndcg@2,ndcg,dcg,map,mrr,p@2,recall@2,err@3,err(max=9),rbp,bpref,kendall,judged@2"
Calls = list[tuple[str, PartPlan]]

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ensemble]:
    """A model whose features have numbers only, and one whose features have names."""
    import lmart

    folder = tmp_path_factory.mktemp("models")
    text = "".join(row for query in judged_queries(1, 30) for row in query)
    (folder / "d.svm").write_text(text)
    (folder / "d.csv").write_text(as_table(text.splitlines(), (1, 2, 3), "abc"))
    made = {}
    for name in ("d.svm", "d.csv"):
        made[name] = lmart.train(lmart.read(str(folder / name)), trees=5, rankers=1, min_docs=2).ensemble
    return made


def plan_of(models: Sequence[Ensemble], metric: str = ALL, like: str | None = None, **others: object) -> PartPlan:
    measures = parse_measures(metric, replace(conventions_like(like), **others))  # type: ignore[arg-type]
    options = for_models(ReadOptions(keep_document_ids=True), models)
    return PartPlan(measures, options, ("model",) * len(models))


def evaluated(
    files: Sequence[PartInputs], plan: PartPlan, models: Sequence[Ensemble], calls: Calls | None = None
) -> EvaluatedParts:
    scorers = [Scorer(model) for model in models]

    def measure(given: Sequence[tuple[PartInputs, PartPlan]]) -> Iterable[MeasuredPart]:
        for own, how in given:
            if calls is not None:
                calls.append((own.path, how))
            yield measure_part("test", own, how, scorers)

    return EvaluatedParts(measure, files, plan)


def write(parts: Sequence[str], suffix: str = "svm") -> list[PartInputs]:
    paths = [f"part-{k}.{suffix}" for k in range(len(parts))]
    for path, text in zip(paths, parts, strict=True):
        Path(path).write_text(text)
    return [PartInputs(path) for path in paths]


def texts_of(queries: Sequence[list[str]], bounds: Sequence[int]) -> list[str]:
    return ["".join(row for query in queries[a:b] for row in query) for a, b in pairwise(bounds)]


def assert_as_at_once(
    found: EvaluatedParts, files: Sequence[PartInputs], plan: PartPlan, models: Sequence[Ensemble]
) -> None:
    """Compare with reading all parts as one data set, and measuring it by itself."""
    data = read_dataset([one.path for one in files], plan.options)
    scale = grade_scale(data.labels)
    found.agree(scale, any(model.feature_names is None for model in models))
    assert (found.query_ids, found.data.n_documents) == (data.query_ids, data.n_documents)
    assert found.data.labels.max() == data.labels.max()
    assert data.labels[found.data.label_rows].tolist() == found.data.labels.tolist()
    ties = None
    if plan.keeps_document_ids:
        names = document_names(data.document_ids, data.query_offsets)
        ties = docid_order(names, data.query_offsets)
    with WorkerPool(1) as pool:
        how = Measurement(plan.measures, pool, None, scale)
        evaluator = how.evaluator(Judgments(data.labels, data.query_offsets, tie_order=ties))
        for number, model in enumerate(models):
            scores = Scorer(model).score(data.features, match_dataset(model, data).known_columns)
            wanted, own = how.report(evaluator.measure(scores)), how.report(found.system(number))
            assert own.to_json() == wanted.to_json()
            for name, values in wanted.per_query.items():
                assert own.per_query[name].tobytes() == values.tobytes(), name


@pytest.mark.slow
@given(
    seed=st.integers(0, 99),
    cuts=st.sets(st.integers(1, 9), max_size=6),
    labels=st.sampled_from([(0, 1), (0, 0, 2, 4), (0, 1, 9), (0.5, 3.25)]),
    like=st.sampled_from([None, "lightgbm", "letor4"]),
    ties=st.sampled_from(["input", "average", "docid"]),
)
def test_parts_are_measured_as_one_data_set(
    seed: int,
    cuts: set[int],
    labels: tuple[float, ...],
    like: str | None,
    ties: str,
    models: dict[str, Ensemble],
) -> None:
    queries = judged_queries(seed, 10, labels, named=True)
    queries[seed % 10] = judged_queries(seed, 1, (0, 7), first=77)[0]
    files = write(texts_of(queries, [0, *sorted(cuts), 10]))
    both = [models["d.svm"], models["d.csv"]]
    plan = plan_of(both, like=like, ties=ties)
    assert_as_at_once(evaluated(files, plan, both), files, plan, both)


def test_only_parts_that_lack_the_largest_label_are_measured_again(models: dict[str, Ensemble]) -> None:
    parts = texts_of(judged_queries(1, 9, (0, 1, 2)), [0, 3, 6, 9])
    parts[1] += "7 qid:x 1:1\n"
    files, calls = write(parts), Calls()
    model = [models["d.svm"]]
    plan = plan_of(model)
    found = evaluated(files, plan, model, calls)
    assert len(calls) == 3
    assert_as_at_once(found, files, plan, model)
    assert [(path, how.scale) for path, how in calls[3:]] == [("part-0.svm", 7), ("part-2.svm", 7)]
    del calls[:]
    without = plan_of(model, "ndcg,err(max=9)")
    assert_as_at_once(evaluated(files, without, model, calls), files, without, model)
    assert len(calls) == 3
    del calls[:]
    known = replace(plan, scale=7)
    assert_as_at_once(evaluated(files, known, model, calls), files, known, model)
    assert len(calls) == 3


def test_only_tables_of_another_order_are_measured_again_and_for_models_without_names(
    models: dict[str, Ensemble],
) -> None:
    texts = texts_of(judged_queries(1, 12), [0, 3, 6, 9, 12])
    orders = [(2, 1), (2, 1, 3), (1, 2, 3), (2,)]
    tables = [as_table(text.splitlines(), order, "abc") for text, order in zip(texts, orders, strict=True)]
    files, calls = write(tables, "csv"), Calls()
    unnamed = [models["d.svm"]]
    plan = plan_of(unnamed)
    assert_as_at_once(evaluated(files, plan, unnamed, calls), files, plan, unnamed)
    assert [(path, how.names) for path, how in calls[4:]] == [("part-2.csv", ("b", "a", "c"))]
    del calls[:]
    named = [models["d.csv"]]
    plan = plan_of(named)
    assert_as_at_once(evaluated(files, plan, named, calls), files, plan, named)
    assert len(calls) == 4


def test_a_part_that_changes_before_it_is_measured_again_is_refused(models: dict[str, Ensemble]) -> None:
    files = write(["1 qid:a 1:1\n0 qid:a 1:2\n", "7 qid:b 1:1\n"])
    model = [models["d.svm"]]
    found = evaluated(files, plan_of(model), model)
    Path("part-0.svm").write_text("1 qid:a 1:1\n2 qid:a 1:2\n")
    with pytest.raises(DataError, match=r"^part-0\.svm: the file changed while it was read"):
        found.agree(7, True)


def test_rows_are_scored_block_by_block(models: dict[str, Ensemble], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "FIRST_BLOCK", 512)
    monkeypatch.setattr(text_reader, "BLOCK", 1024)
    seen = []
    score = Scorer.score

    def counted(self: Scorer, rows: SparseRows, columns: Int32Array, pool: WorkerPool) -> Float64Array:
        seen.append(len(rows))
        return score(self, rows, columns, pool)

    monkeypatch.setattr(Scorer, "score", counted)
    (files,) = write(texts_of(judged_queries(1, 2000), [0, 2000]))
    found = measure_part("test", files, plan_of([models["d.svm"]]), [Scorer(models["d.svm"])])
    assert sum(seen) == found.found.n_documents > 3 * max(seen)


def test_a_run_that_is_given_up_ends(models: dict[str, Ensemble]) -> None:
    (files,) = write(["1 qid:a 1:1\n"])
    give_up("ended")
    with pytest.raises(LmartError, match="the run was given up"):
        measure_part("ended", files, plan_of([models["d.svm"]]), [Scorer(models["d.svm"])])


@pytest.mark.parametrize("per_row", [False, True])
def test_weights_of_parts_are_those_of_one_file(per_row: bool, models: dict[str, Ensemble]) -> None:
    """A part whose queries all have one row leaves open what its weights are of."""
    texts = ["1 qid:a 1:1\n0 qid:b 1:2\n", "1 qid:c 1:1\n0 qid:c 1:2\n0 qid:c 1:0\n", "1 qid:d 1:1\n"]
    given = [["1", "2.5"], ["0.1", "0.7", "1e-3"] if per_row else ["4"], ["0"]]
    files = [one._replace(weights=f"w{k}") for k, one in enumerate(write(texts))]
    for own, numbers in zip(files, given, strict=True):
        Path(own.weights or "").write_text("\n".join(numbers) + "\n")
    Path("all").write_text("\n".join(number for own in given for number in own) + "\n")
    model = [models["d.svm"]]
    found = evaluated(files, plan_of(model), model).weights()
    data = read_dataset([one.path for one in files], ReadOptions())
    wanted = read_weights("all", data.query_offsets)
    assert found is not None
    assert (found.per_query.tobytes(), found.given_per) == (wanted.per_query.tobytes(), wanted.given_per)


def test_queries_that_span_parts_are_named_before_faults_of_later_parts(models: dict[str, Ensemble]) -> None:
    files = write(["1 qid:a 1:1\n1 qid:b 1:1\n", "1 qid:c 1:1\n", "\n1 qid:b 1:1\n", "1 qid:d 1:x\n"])
    model = [models["d.svm"]]
    said = "part-2.svm:2: rows of query 'b' are not adjacent (first seen at part-0.svm:2)"
    with pytest.raises(DataError, match=f"^{re.escape(said)}"):
        evaluated(files, plan_of(model), model)
    with pytest.raises(DataError, match=r"^part-3\.svm:1: "):
        evaluated([files[0], files[1], files[3]], plan_of(model), model)


def test_what_is_above_all_before() -> None:
    assert rows_above_all_before(np.array([0.0, 0.0, 2.0, 1.0, 2.0, 2.5])).tolist() == [0, 2, 5]
    assert rows_above_all_before(np.array([3.0])).tolist() == [0]
