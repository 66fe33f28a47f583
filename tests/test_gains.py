"""Gains and discounts: worked values, exact bits, and no overflow whatever the label."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import DataError, SettingsError
from lmart.gains import Gain, discount_table

EXP2, LINEAR = Gain(), Gain("linear")
labels_of = st.lists(st.one_of(st.integers(0, 1100), st.floats(0, 1100)), min_size=1, max_size=20)


class TestParse:
    @pytest.mark.parametrize("text", ["exp2", "linear", "0,1,3,7,15", "0,0.5,1e-07", "0,1e+300"])
    def test_prints_what_it_parses(self, text: str) -> None:
        assert str(Gain.parse(text)) == text
        assert Gain.parse(str(Gain.parse(text))) == Gain.parse(text)

    @given(st.lists(st.floats(0, allow_infinity=False), min_size=2, max_size=9))
    def test_any_table_comes_back(self, table: list[float]) -> None:
        gain = Gain("table", tuple(table))
        assert Gain.parse(str(gain)) == gain

    @pytest.mark.parametrize("text", ["", "exp", "EXP2", "1", "0,", "0,x", "0,-1", "0,nan", "0,inf", "0 1"])
    def test_refuses_by_name(self, text: str) -> None:
        with pytest.raises(SettingsError, match="gain"):
            Gain.parse(text)


class TestOfLabels:
    def test_worked_values(self) -> None:
        labels = np.array([0, 1, 2, 3, 4, 0.5, 1.5])
        assert EXP2.of_labels(labels)[:5].tolist() == [0, 1, 3, 7, 15]
        assert EXP2.of_labels(labels)[5:] == pytest.approx([0.414213562, 1.828427125], abs=1e-9)
        assert LINEAR.of_labels(labels).tolist() == labels.tolist()
        assert Gain.parse("0,2,5,9,10").of_labels(labels[:5]).tolist() == [0, 2, 5, 9, 10]

    @given(st.integers(0, 1023))
    def test_whole_labels_are_exact(self, label: int) -> None:
        assert EXP2.of_labels(np.array([float(label)]))[0] == float(2**label) - 1

    @given(st.floats(0, 1000))
    def test_other_labels_are_close(self, label: float) -> None:
        assert EXP2.of_labels(np.array([label]))[0] + 1 == pytest.approx(2.0**label, rel=5e-16)

    def test_the_result_is_the_callers_own(self) -> None:
        labels = np.array([1.0, 2.0])
        LINEAR.of_labels(labels)[0] = 9
        assert labels.tolist() == [1, 2]

    @pytest.mark.parametrize("label", ["3", "0.5", "1e+20"])
    def test_a_table_without_entry_names_the_label(self, label: str) -> None:
        with pytest.raises(DataError, match=rf"label {label.replace('1e+20', '1e.20')} .*0 to 2"):
            Gain.parse("0,1,3").of_labels(np.array([1.0, float(label)]))

    @pytest.mark.parametrize("gain", [EXP2, LINEAR, Gain.parse("0,1")])
    def test_no_labels(self, gain: Gain) -> None:
        assert len(gain.of_labels(np.zeros(0))) == len(gain.scaled(np.zeros(0), np.array([0]))) == 0


class TestScaled:
    def scaled(self, gain: Gain, *queries: list[float]) -> list[list[float]]:
        labels = np.array([label for query in queries for label in query])
        offsets = np.cumsum([0, *map(len, queries)])
        flat = gain.scaled(labels, offsets)
        return [flat[a:b].tolist() for a, b in pairwise(offsets)]

    def test_each_query_by_a_power_of_two_of_its_own(self) -> None:
        assert self.scaled(EXP2, [0, 1, 2], [4, 0]) == [[0, 1 / 4, 3 / 4], [15 / 16, 0]]
        assert self.scaled(LINEAR, [0, 1, 5], [4, 0]) == [[0, 1 / 8, 5 / 8], [1 / 2, 0]]

    def test_labels_that_would_overflow(self) -> None:
        assert self.scaled(EXP2, [1024, 1023, 0]) == [[1, 0.5, 0]]
        assert self.scaled(EXP2, [1e6, 1e6 - 1, 3]) == [[1, 0.5, 0]]
        assert self.scaled(LINEAR, [1.75 * 2.0**1023, 0]) == [[0.875, 0]]

    def test_queries_with_nothing(self) -> None:
        assert self.scaled(EXP2, [], [0, 0], [], [1], []) == [[], [0, 0], [], [0.5], []]
        assert self.scaled(LINEAR, [], [0, 0], [1]) == [[], [0, 0], [0.5]]

    @given(labels_of, st.sampled_from([EXP2, LINEAR]))
    def test_never_above_one_and_in_the_order_of_the_labels(self, labels: list[float], gain: Gain) -> None:
        (scaled,) = self.scaled(gain, list(map(float, labels)))
        assert all(0 <= g <= 1 for g in scaled)
        by_label = [g for _, g in sorted(zip(labels, scaled, strict=True))]
        assert by_label == sorted(by_label)

    @given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
    def test_is_the_gain_times_a_power_of_two(self, labels: list[int]) -> None:
        (scaled,) = self.scaled(EXP2, list(map(float, labels)))
        factors = {Fraction(g) / (2**label - 1) for g, label in zip(scaled, labels, strict=True) if label}
        assert len(factors) <= 1
        assert all(math.frexp(float(factor))[0] == 0.5 for factor in factors)


class TestDiscounts:
    def test_worked_values(self) -> None:
        assert discount_table(4) == pytest.approx([1, 0.630929754, 0.5, 0.430676558], abs=1e-9)
        assert discount_table(3)[2] == 0.5 and discount_table(7)[6] == 1 / 3

    def test_within_a_unit_of_the_machines_own_logarithm(self) -> None:
        assert discount_table(5000) == pytest.approx(1 / np.log2(np.arange(2.0, 5002.0)), rel=4e-16)

    def test_length_does_not_change_a_value(self) -> None:
        assert discount_table(1000)[:10].tolist() == discount_table(10).tolist()
        assert len(discount_table(0)) == 0

    def test_falls_strictly(self) -> None:
        assert (np.diff(discount_table(2000)) < 0).all()

    def test_cannot_be_changed_by_a_user(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            discount_table(5)[0] = 2


def test_a_table_of_another_tool_may_be_exp2_or_linear() -> None:
    for text in ("exp2", "linear", "0,1,4", "0,1,3.5", ",".join(map(str, range(2000, 0, -1)))):
        assert str(Gain.parse(text).simplest()) == text
    assert str(Gain.parse("0,1,3,7").simplest()) == "exp2"
    assert str(Gain.parse("0,1,2,3").simplest()) == "linear"
    assert str(Gain.parse(",".join(str(2**label - 1) for label in range(60))).simplest()) == "exp2"
