"""How two files of data differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.reports.data_drift import DataDrift, compare_data
from lmart.reports.data_summary import SampledValues, summarize_data
from lmart.threads import WorkerPool


def drift_of(first: str, other: str, folder: Path) -> DataDrift:
    for name, content in {"first.svm": first, "other.svm": other}.items():
        (folder / name).write_text(content)
    with WorkerPool(1) as pool:
        summaries = [
            summarize_data(str(folder / name), ReadOptions(), Gain(), pool) for name in ("first.svm", "other.svm")
        ]
    return compare_data(*summaries)


def test_says_what_only_one_file_has(tmp_path: Path) -> None:
    drift = drift_of("0 qid:1 1:1 2:1\n1 qid:2 1:1\n", "0 qid:2 1:1 3:1\n1 qid:5 1:1\n", tmp_path)
    assert (drift.missing, drift.extra, drift.common_queries) == (["2"], ["3"], ["2"])


def test_equal_data_does_not_drift(tmp_path: Path) -> None:
    rows = "".join(f"{i % 3} qid:{i // 4} 1:{i * 7 % 5} 2:{i}\n" for i in range(40))
    drift = drift_of(rows, rows, tmp_path)
    assert [(one.distance, one.is_clear) for one in drift.features] == [(0.0, False)] * 2
    assert drift.labels is not None and drift.query_sizes is not None
    assert drift.labels.distance == drift.query_sizes.distance == 0.0


def test_what_moved_comes_first(tmp_path: Path) -> None:
    first = "".join(f"{i % 2} qid:{i // 4} 1:{i * 7 % 5} 2:{i}\n" for i in range(400))
    other = "".join(f"{i % 2} qid:{i // 4} 1:{i * 7 % 5} 2:{i + 300}\n" for i in range(400))
    drift = drift_of(first, other, tmp_path)
    assert [(one.name, one.is_clear) for one in drift.features] == [("2", True), ("1", False)]
    assert drift.features[0].distance == pytest.approx(0.75)


def test_missing_values_count(tmp_path: Path) -> None:
    first = "".join(f"0 qid:{i} 1:{i}\n" for i in range(1, 200))
    other = "".join(f"0 qid:{i} 1:{'nan' if i % 2 else i}\n" for i in range(1, 200))
    assert drift_of(first, other, tmp_path).features[0].distance == pytest.approx(100 / 199)


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_that_of_scipy(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(seed)
    columns = [np.round(random.normal(loc, 1, n), 1) for loc, n in ((0, 300), (0.2, 170))]
    sampled = [SampledValues(np.sort(column[column != 0]), int((column == 0).sum()), 0) for column in columns]
    values = np.unique(np.concatenate(columns))
    mine = np.abs(sampled[0].shares_up_to(values) - sampled[1].shares_up_to(values)).max()
    assert mine == pytest.approx(stats.ks_2samp(*columns).statistic, abs=1e-12)
