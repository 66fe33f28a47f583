"""The registry of measures."""

import inspect

import pytest

from lmart.kernels import measures as kernels
from lmart.measures import KINDS, MeasureKind, parse_measure
from lmart.measures.values import SYNTAX


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
        assert (measure.kind, measure.cutoff) == (kind, 10)
        assert (measure.persistence is not None) == (kind.parameter == "persistence")
        assert (measure.largest_label is not None) == ("max=" in form)


def test_only_a_sum_of_gains_may_exceed_1() -> None:
    assert [name for name, kind in KINDS.items() if not kind.at_most_1] == ["dcg"]
