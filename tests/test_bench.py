"""The sums of the measuring programs; what they measure is not tested."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from helpers.paths import TESTS

BENCH = TESTS / "bench"


class Programs(NamedTuple):
    evaluating: ModuleType
    evaluators: ModuleType
    judged: ModuleType
    quality: ModuleType
    turns: ModuleType


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Import them as they import each other."""
    monkeypatch.syspath_prepend(BENCH)
    import evaluating
    import evaluators
    import judged
    import quality
    import turns

    return Programs(evaluating, evaluators, judged, quality, turns)


def test_ndcg_is_that_of_lmart(programs: Programs) -> None:
    from lmart.measures import Conventions, Evaluator, parse_measures
    from lmart.measures.judgments import Judgments

    rng = np.random.default_rng(1)
    offsets = np.cumsum([0, 1, 3, 30, 12, 11])
    labels = rng.integers(0, 4, offsets[-1]).astype(np.float64)
    labels[1:4] = 0.0  # a query without a relevant document
    scores = rng.integers(0, 5, offsets[-1]).astype(np.float64)  # with ties
    data = programs.judged.Judged(np.zeros((len(labels), 1)), labels, offsets)
    evaluator = Evaluator(Judgments(labels, offsets), parse_measures("ndcg@10", Conventions(empty="skip")))
    report = evaluator.evaluate(scores)
    np.testing.assert_allclose(programs.judged.ndcg_by_query(data, scores), report.per_query["ndcg@10"], rtol=1e-12)
    assert programs.judged.ndcg(data, scores) == pytest.approx(report.values["ndcg@10"])


def test_p_values_of_no_and_of_sure_differences(programs: Programs) -> None:
    p_value = programs.quality.p_value
    assert p_value(np.zeros(20)) == 1.0
    assert p_value(np.full(40, 0.01)) == pytest.approx(1 / 10_001)
    # of four signs two of sixteen are as extreme
    assert p_value(np.full(4, 0.5)) == pytest.approx(2 / 16, abs=0.02)


def test_means_are_over_seeds_then_queries_then_folds(programs: Programs) -> None:
    runs = {
        "tool": {
            "set": {"1": {"0": {"ndcg": [0.5, None]}, "1": {"ndcg": [0.7, None]}}, "2": {"0": {"ndcg": [0.1, 0.3]}}}
        }
    }
    values = programs.quality.by_query(runs, "tool", "set")
    assert math.isnan(values[0][1])
    assert programs.quality.mean_of_folds(values) == pytest.approx(0.4)


def test_turns_come_in_the_opposite_order_each_time(programs: Programs) -> None:
    clock = iter(range(6))
    figures = programs.turns.take_turns({"a": lambda: next(clock), "b": lambda: next(clock)}, 3)
    assert figures == {"a": [0, 3, 4], "b": [1, 2, 5]}


def test_ratios_are_taken_within_a_repeat(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    figures = programs.turns.take_turns({"lmart": iter([1.0, 4.0]).__next__, "peer": iter([2.0, 4.0]).__next__}, 2)
    report = programs.turns.Report()
    report.ratios("work", figures, "s", {"peer": 0.6})
    report.table()
    assert report.rows == [("work: lmart / peer", [0.5, 1.0], 0.6, "")]
    assert "0.750 (0.500 to 1.000)" in capsys.readouterr().out


def test_made_up_documents_are_judged_and_scored_without_ties(programs: Programs, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", programs.evaluating.MAKE, "7", "90", str(tmp_path)], check=True)
    data = dict(np.load(tmp_path / "data.npz"))
    offsets = data["offsets"].tolist()
    assert (len(offsets), offsets[0], offsets[-1]) == (8, 0, 90)
    labels = programs.evaluators.by_query(data, "labels", int)
    scores = programs.evaluators.by_query(data, "scores", float)
    assert [len(one) for one in scores.values()] == np.diff(offsets).tolist()
    assert all(max(one.values()) > 0 for one in labels.values())
    assert all(len(set(one.values())) == len(one) for one in scores.values())
    rows = [line.split() for line in (tmp_path / "data.svm").read_text().splitlines()]
    assert [int(row[0]) for row in rows] == data["labels"].tolist()
    written = [float(line) for line in (tmp_path / "scores.txt").read_text().splitlines()]
    np.testing.assert_allclose(written, data["scores"], atol=1e-9)
    means = programs.evaluators.lmart(data)(1)
    assert len(means) == 6 and all(0 < mean <= 1 for mean in means)
