"""Names of measures: they print and parse back, and what is wrong with a name is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import ExitStatus, SettingsError
from lmart.gains import Gain
from lmart.measures import KINDS, Conventions, Measure, parse_measure, parse_measures


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("ndcg@10", Measure("ndcg", 10)),
        ("NDCG@3", Measure("ndcg", 3)),
        (" nDCG ", Measure("ndcg")),
        ("ndcg@010", Measure("ndcg", 10)),
        ("dcg@5", Measure("dcg", 5)),
        ("map", Measure("map")),
        ("AP@3", Measure("map", 3)),
        ("MRR", Measure("mrr")),
        ("rr@10", Measure("mrr", 10)),
        ("recip_rank", Measure("mrr")),
        ("P@5", Measure("p", 5)),
        ("precision@5", Measure("p", 5)),
        ("recall@100", Measure("recall", 100)),
        ("ERR@20", Measure("err", 20)),
        ("rbp", Measure("rbp", None, 0.8)),
        ("rbp(0.8)", Measure("rbp")),
        ("RBP(.95)@7", Measure("rbp", 7, 0.95)),
        ("rbp(1e-3)", Measure("rbp", None, 0.001)),
    ],
)
def test_accepted_syntax(text: str, measure: Measure) -> None:
    assert parse_measure(text) == measure
    assert parse_measure(str(measure)) == measure


@given(
    name=st.sampled_from(sorted(KINDS)),
    cutoff=st.integers(1, 2**31 - 1),
    persistence=st.floats(0, 1, exclude_min=True, exclude_max=True),
    gain=st.sampled_from(["exp2", "linear", "0,1,2.5"]),
    empty=st.sampled_from(["zero", "one", "skip"]),
)
def test_printing_and_parsing_are_inverse(name: str, cutoff: int, persistence: float, gain: str, empty: str) -> None:
    conventions = Conventions(Gain.parse(gain), empty, "average")
    measure = Measure(name, cutoff, persistence if name == "rbp" else None, conventions)
    assert parse_measure(str(measure), conventions) == measure
    assert len({measure, parse_measure(str(measure).upper(), conventions)}) == 1


@pytest.mark.parametrize(
    "text",
    ["", "ndcg@0", "ndcg@-1", "ndcg@x", "ndcg@", "ndcg@1.5", "ndcg@1e3", "ndcg@1_0", "ndcg@\u0661", "ndcg@3000000000",
     "ndcg10", "ndgc@10", "p", "recall", "auc", "rbp(0)", "rbp(1)", "rbp(1.5)", "rbp(nan)", "rbp()", "rbp(0_1)",
     "rbp(-0.5)", "ndcg(0.5)", "map@3@4", "rbp(0.5", "ndcg@3\x1b[0m"],
)  # fmt: skip
def test_bad_names_are_usage_errors(text: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        parse_measure(text)
    assert refusal.value.status == ExitStatus.USAGE
    assert "\x1b" not in str(refusal.value) and "\n" not in str(refusal.value)


def test_all_bad_names_of_a_list_are_told_together() -> None:
    with pytest.raises(SettingsError) as refusal:
        parse_measures("ndcg@0,map,auc@3,,p,gini")
    for part in ("'ndcg@0'", "'auc@3'", "''", "'p' needs a cutoff", "'gini'"):
        assert part in str(refusal.value)
    assert str(refusal.value).count("use ndcg[@k]") == 1
    assert "'map'" not in str(refusal.value)


def test_lists_keep_their_order_and_name_each_once() -> None:
    assert [str(m) for m in parse_measures("ndcg@4, map,NDCG@1,ndcg@4,ap")] == ["ndcg@4", "map", "ndcg@1"]


@pytest.mark.parametrize(("name", "value"), [("empty", "two"), ("ties", "best")])
def test_conventions_are_checked(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=value):
        Conventions(**{name: value})  # type: ignore[arg-type]


def test_the_largest_label_of_err_prints_and_parses_back() -> None:
    for text in ("err@10(max=4)", "ERR(max=4)@10", "err@10( MAX = 04 )"):
        assert parse_measure(text) == Measure("err", 10, largest_label=4)
    assert [str(one) for one in parse_measures("err(max=5),err@3(max=5),err")] == ["err(max=5)", "err@3(max=5)", "err"]


@given(st.none() | st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_any_largest_label_prints_and_parses_back(cutoff: int | None, largest: int) -> None:
    measure = Measure("err", cutoff, largest_label=largest)
    assert parse_measure(str(measure)) == measure


@pytest.mark.parametrize(
    "text",
    ["err(4)", "err(max=0)", "err(max=-1)", "err(max=4.5)", "err(max=)", "err(min=4)", "err()", "err(max=4)@10(max=4)",
     "err(max=4294967296)", "ndcg@10(max=4)", "rbp(max=4)", "err@(max=4)"],
)  # fmt: skip
def test_a_wrong_largest_label_is_a_usage_error(text: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        parse_measure(text)
    assert refusal.value.status == ExitStatus.USAGE and repr(text) in str(refusal.value)
