"""The registry of measures."""

import inspect

import numpy as np
import pytest

from lmart.kernels.measures import query_measures as kernels
from lmart.measures import KINDS, Evaluator, MeasureKind, parse_measure
from lmart.measures.judgments import Judgments
from lmart.measures.values import SYNTAX
from lmart.settings import TrainSettings


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_the_kernel_exists_and_takes_a_discount_if_the_kind_has_one(kind: MeasureKind) -> None:
    names = inspect.signature(getattr(kernels, kind.kernel)).parameters
    assert next(iter(names)) == "ranked"
    assert "discount" in names or kind.discount == "none"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_form_of_the_syntax_parses(kind: MeasureKind) -> None:
    for form in kind.syntax:
        assert form in SYNTAX
        with_cutoff = form.replace("[@k]", "@k").replace("@k", "@10").replace("(R)", "(0.9)").replace("L)", "4)")
        measure = parse_measure(with_cutoff)
        assert (measure.kind, measure.cutoff) == (kind, None if kind.cutoff == "none" else 10)
        assert (measure.persistence is not None) == (kind.parameter == "persistence")
        assert (measure.largest_label is not None) == ("max=" in form)


def test_only_a_sum_of_gains_may_exceed_1() -> None:
    assert [name for name, kind in KINDS.items() if not kind.at_most_1] == ["dcg"]


def test_a_name_or_alias_stands_for_one_measure() -> None:
    names = [name for kind in KINDS.values() for name in (kind.name, *kind.aliases)]
    assert len(set(names)) == len(names) > len(KINDS)


def test_a_record_is_all_that_a_measure_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = MeasureKind("hits", "relevant documents among the first k", "relevant", cutoff="needed", aliases=("hit",))
    monkeypatch.setitem(KINDS, "hits", kind)
    measure = parse_measure("hit@2")
    assert str(measure) == "hits@2" and TrainSettings(metric="HITS@2").measure == measure
    labels, scores = np.array([1.0, 0.0, 2.0, 3.0]), np.array([4.0, 3.0, 2.0, 1.0])
    report = Evaluator(Judgments(labels, np.array([0, 4])), [measure]).evaluate(scores)
    assert report.values == {"hits@2": 1.0}
