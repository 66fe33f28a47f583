"""The registry of measures."""

import numpy as np
import pytest

from lmart.array_types import Float64Array
from lmart.measures import KINDS, Evaluator, MeasureKind, kinds, parse_measure
from lmart.measures.judgments import Judgments
from lmart.measures.kinds import measure
from lmart.measures.measure import SYNTAX
from lmart.measures.query_kernels import RankedQueries
from lmart.settings import TrainSettings


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_form_of_the_syntax_parses(kind: MeasureKind) -> None:
    for form in kind.syntax:
        assert form in SYNTAX
        with_cutoff = form.replace("[@k]", "@k").replace("@k", "@10").replace("(R)", "(0.9)").replace("L)", "4)")
        with_cutoff = with_cutoff.replace("@R", "@0.25")
        made = parse_measure(with_cutoff)
        assert (made.kind, made.cutoff) == (kind, None if kind.cutoff == "none" else 10)
        assert (made.persistence is not None) == (kind.parameter == "persistence")
        assert (made.largest_label is not None) == ("max=" in form)
        assert made.recall_level == (0.25 if "@R" in form else None)


def test_only_a_sum_of_gains_may_exceed_1() -> None:
    assert [name for name, kind in KINDS.items() if not kind.at_most_1] == ["dcg"]


def test_a_name_or_alias_stands_for_one_measure() -> None:
    names = [name for kind in KINDS.values() for name in (kind.name, *kind.aliases)]
    assert len(set(names)) == len(names) > len(KINDS)


def test_a_function_is_all_that_a_measure_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmart.measures.kinds.KINDS", KINDS.copy())

    @measure("hits", "relevant documents among the first k", "relevant", equation="", source="", aliases=("hit",))
    def hits(queries: RankedQueries) -> Float64Array:
        return queries.unless_empty(queries.hits())

    monkeypatch.setitem(KINDS, "hits", kinds.KINDS["hits"])
    made = parse_measure("hit@2")
    assert str(made) == "hits@2" and TrainSettings(metric="HITS@2").measure == made
    labels, scores = np.array([1.0, 0.0, 2.0, 3.0]), np.array([4.0, 3.0, 2.0, 1.0])
    report = Evaluator(Judgments(labels, np.array([0, 4])), [made]).evaluate(scores)
    assert report.values == {"hits@2": 1.0}
