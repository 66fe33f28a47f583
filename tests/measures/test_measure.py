"""Names of measures: they print and parse back, and what is wrong with a name is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import ExitStatus, SettingsError
from lmart.gains import Gain
from lmart.measures import KINDS, Conventions, Measure, MeasureKind, parse_measure, parse_measures


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
        ("rbp@0.8", Measure("rbp")),
        ("rbp@.95", Measure("rbp", None, 0.95)),
        ("rbp@20", Measure("rbp", 20)),
        ("rbp@0.95(rel=2)", Measure("rbp", None, 0.95, level=2)),
        ("rbp(0.95, rel=2)", Measure("rbp", None, 0.95, level=2)),
        ("rbp(rel=2)@20", Measure("rbp", 20, level=2)),
        ("rbp(0.95)@20(rel=2)", Measure("rbp", 20, 0.95, level=2)),
        ("p@5(rel=2)", Measure("p", 5, level=2)),
        ("P(REL=02)@5", Measure("p", 5, level=2)),
        ("map(rel=0.5)", Measure("map", level=0.5)),
        ("recall@100(rel=2)", Measure("recall", 100, level=2)),
        ("mrr(rel=2)", Measure("mrr", level=2)),
        ("bpref(rel=2)", Measure("bpref", level=2)),
        ("bpref", Measure("bpref")),
        ("kendall", Measure("kendall")),
        ("judged@10", Measure("judged", 10)),
        ("judged", Measure("judged")),
    ],
)
def test_accepted_syntax(text: str, measure: Measure) -> None:
    assert parse_measure(text) == measure
    assert parse_measure(str(measure)) == measure


@given(
    kind=st.sampled_from(list(KINDS.values())),
    cutoff=st.none() | st.integers(1, 2**31 - 1),
    persistence=st.floats(0, 1, exclude_min=True, exclude_max=True),
    level=st.none() | st.integers(1, 2**31 - 1) | st.floats(0, 2**31 - 1, exclude_min=True),
    largest=st.none() | st.integers(1, 2**31 - 1),
    conventions=st.builds(
        Conventions,
        st.sampled_from(["exp2", "linear", "0,1,2.5"]).map(Gain.parse),
        st.sampled_from(["zero", "one", "skip"]),
        st.just("reverse"),
        relevant=st.sampled_from([None, 2.0]),
    ),
)
def test_printing_and_parsing_are_inverse(
    kind: MeasureKind,
    cutoff: int | None,
    persistence: float,
    level: float | None,
    largest: int | None,
    conventions: Conventions,
) -> None:
    measure = Measure(
        kind.name,
        {"needed": cutoff or 5, "may be": cutoff, "none": None}[kind.cutoff],
        persistence if kind.parameter == "persistence" else None,
        conventions,
        largest if kind.uses_label_scale else None,
        level if kind.is_binary else None,
        1 - persistence if kind.parameter == "recall level" else None,
    )
    assert parse_measure(str(measure), conventions) == measure
    assert len({measure, parse_measure(str(measure).upper(), conventions)}) == 1


@pytest.mark.parametrize(
    "text",
    ["", "ndcg@0", "ndcg@-1", "ndcg@x", "ndcg@", "ndcg@1.5", "ndcg@1e3", "ndcg@1_0", "ndcg@\u0661", "ndcg@3000000000",
     "ndcg10", "ndgc@10", "p", "recall", "aucs", "rbp(0)", "rbp(1)", "rbp(1.5)", "rbp(nan)", "rbp()", "rbp(0_1)",
     "rbp(-0.5)", "ndcg(0.5)", "map@3@4", "rbp(0.5", "ndcg@3\x1b[0m", "bpref@10", "kendall@5", "rbp@0.0", "rbp@1.0",
     "rbp@1.5", "map@0.5", "ndcg(rel=2)", "err(rel=2)", "kendall(rel=2)", "map(rel=0)", "map(rel=-1)", "map(rel=x)",
     "map(rel=)", "map(rel)", "map(rel=2,rel=2)", "map(rel=1)(rel=2)", "p@5(2)", "p@5(rel=2,max=4)", "rbp(0.5,0.6)",
     "rbp@0.5(0.6)", "iprec", "iprec@1.5", "iprec@-0.1", "iprec@x", "iprec(0.5)", "auc@5", "rprec@3", "success",
     "map(rel=1e400)", "map(rel=9999999999)", "rbp(rel=2,)", "map(rel=nan)"],
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


def test_the_commas_in_brackets_divide_no_list() -> None:
    texts = ["rbp(0.95,rel=2)", "p@5(rel=2)", "err@3(max=5)", "map"]
    assert [str(one) for one in parse_measures(", ".join(texts))] == texts
    with pytest.raises(SettingsError) as refusal:
        parse_measures("rbp(0.95,rel=x),map(rel=0),bpref@3")
    for part in ("'rbp(0.95,rel=x)'", "'map(rel=0)'", "'bpref@3'"):
        assert part in str(refusal.value)


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


@pytest.mark.parametrize("value", [10**5000, -1, [1], True, None, "x"], ids="abcdef")
def test_conventions_of_any_type_are_checked(value: object) -> None:
    with pytest.raises(SettingsError, match=r"^ties is .*; use input"):
        Conventions(ties=value)  # type: ignore[arg-type]
    if value not in (None, True):
        with pytest.raises(SettingsError, match="the least label of a relevant document is"):
            Conventions(relevant=value)  # type: ignore[arg-type]


def test_a_measure_that_is_written_well_is_not_proposed_again() -> None:
    with pytest.raises(SettingsError) as refusal:
        parse_measure("iprec@0.5", Conventions(ties="average"))
    assert str(refusal.value).endswith("order them by --ties input, reverse or docid")
