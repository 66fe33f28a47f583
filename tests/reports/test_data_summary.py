"""What `lmart show DATA` says of data, beside its twin and pandas."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.feature_facts import Query, facts, ndcg

from lmart.errors import DataError
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.reports import data_summary
from lmart.reports.data_summary import DataSummary, summarize_data
from lmart.threads import WorkerPool

SAMPLE = Path("data/sample")
ANY = ReadOptions(require_labels=False, require_queries=False)


def summary_of(path: Path, threads: int = 1, options: ReadOptions = ANY) -> DataSummary:
    with WorkerPool(threads) as pool:
        return summarize_data(str(path), options, Gain(), pool)


def letor(queries: Sequence[Query]) -> str:
    """Return queries as LETOR text."""
    lines = []
    for number, query in enumerate(queries):
        for label, cells in query:
            lines.append(" ".join([f"{label:g} qid:{number}", *(f"{i}:{cells[i]!r}" for i in sorted(cells))]))
    return "\n".join(lines) + "\n"


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 0.5, math.nan])
QUERIES = st.lists(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.0, 2.0, 4.0]), st.dictionaries(st.integers(1, 4), VALUES, max_size=4)),
        min_size=1,
        max_size=14,
    ),
    min_size=1,
    max_size=6,
)


@given(queries=QUERIES)
def test_agrees_with_its_twin(queries: list[Query], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("data") / "d.svm"
    path.write_text(letor(queries))
    summary = summary_of(path)
    named = {feature.name: feature for feature in summary.features}
    assert set(named) == {str(i) for query in queries for _, cells in query for i in cells}
    assert list(named) == sorted(named)
    for name, feature in named.items():
        expected = facts(queries, int(name))
        assert (feature.zeros, feature.missing, feature.varying) == (expected.zeros, expected.missing, expected.varying)
        bounds = (feature.lowest, feature.highest)
        assert bounds == ((None, None) if math.isnan(expected.lowest) else (expected.lowest, expected.highest))
        assert feature.high_first == pytest.approx(expected.high_first, abs=1e-9)
        assert feature.low_first == pytest.approx(expected.low_first, abs=1e-9)
        column = [cells.get(int(name), 0.0) + 0.0 for query in queries for _, cells in query]
        present = [value for value in column if not math.isnan(value)]
        assert feature.sampled.distinct == len(set(present))
        assert feature.sampled.median == (statistics.median(present) if present else None)
        same = [other for other in named if same_values(queries, int(other), int(name))]
        assert feature.equal_to == (same[0] if same[0] != name else None)
    means = [ndcg([label for label, _ in query], range(len(query)), 10) for query in queries]
    assert summary.data_order == pytest.approx(sum(means) / len(means), abs=1e-9)


def same_values(queries: Sequence[Query], first: int, second: int) -> bool:
    pairs = [(cells.get(first, 0.0), cells.get(second, 0.0)) for query in queries for _, cells in query]
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


def test_counts_documents_queries_and_labels(tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("0 qid:1 1:1\n2 qid:1 2:1\n0 qid:b 1:3\n1 qid:c 1:2\n1 qid:c 3:0\n")
    summary = summary_of(tmp_path / "d.svm")
    assert (summary.documents, summary.query_ids, summary.query_sizes.tolist()) == (5, ["1", "b", "c"], [2, 1, 2])
    assert summary.labels == {0.0: 2, 1.0: 2, 2.0: 1}
    assert (summary.one_label, summary.none_relevant) == (2, 1)
    constant = [feature.name for feature in summary.features if feature.is_constant]
    assert constant == ["3"]


@pytest.mark.parametrize("extra", [ANY, ReadOptions(group_by_qid=True)], ids=["in blocks", "by query"])
def test_is_the_same_for_any_number_of_threads_and_blocks(
    extra: ReadOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_summary, "DOCUMENTS_A_CALL", 50)
    expected = summary_of(SAMPLE / "train.svm").to_json()
    assert summary_of(SAMPLE / "train.svm", 3, extra).to_json() == expected
    monkeypatch.setattr(data_summary, "read_batches", in_small_blocks)
    assert summary_of(SAMPLE / "train.svm", 2).to_json() == expected


def in_small_blocks(paths: Sequence[str], options: ReadOptions, pool: WorkerPool, table: Any) -> Any:
    """Read a file as `read_batches` does, but in blocks that end within queries."""
    from lmart.formats.documents.blocks import RowBlock
    from lmart.formats.documents.reading import Batch

    dataset = read_dataset(paths, options, pool)
    table.register(dataset.feature_ids)
    query_of = np.repeat(np.arange(dataset.n_queries), np.diff(dataset.query_offsets))
    for start in range(0, dataset.n_documents, 7):
        stop = min(start + 7, dataset.n_documents)
        queries, firsts = np.unique(query_of[start:stop], return_index=True)
        offsets = np.append(firsts, stop - start).astype(np.int64)
        ids = [dataset.query_ids[q] for q in queries.tolist()]
        goes_on = start > 0 and query_of[start] == query_of[start - 1]
        rows = dataset.features.between(start, stop)
        yield Batch("", [RowBlock(rows, dataset.labels[start:stop], ids, offsets, bool(goes_on), None, start + 1)], 0.0)


def test_a_sample_serves_medians_and_distinct_values(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summary_of(SAMPLE / "train.svm")
    monkeypatch.setattr(data_summary, "SAMPLED_ROWS", 500)
    sampled = summary_of(SAMPLE / "train.svm")
    assert 250 <= sampled.sampled <= 500 and whole.sampled == whole.documents
    for part, all_rows in zip(sampled.features, whole.features, strict=True):
        assert (part.lowest, part.high_first, part.zeros) == (all_rows.lowest, all_rows.high_first, all_rows.zeros)
        assert part.sampled.distinct <= all_rows.sampled.distinct
        assert len(part.sampled) == sampled.sampled


def test_data_without_labels_or_queries(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("qid,price,name_length\na,1.5,3\na,,4\n")
    summary = summary_of(tmp_path / "d.csv")
    assert summary.labels is None and summary.data_order is None
    assert [(feature.name, feature.high_first, feature.missing) for feature in summary.features] == [
        ("price", None, 1),
        ("name_length", None, 0),
    ]
    (tmp_path / "e.csv").write_text("price,stock\n1,3\n2,3\n")
    summary = summary_of(tmp_path / "e.csv")
    assert (summary.documents, summary.query_ids) == (2, None)
    assert summary.to_json()["queries"] is None


def test_a_fault_of_the_data_is_that_of_every_reader(tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("0 qid:1 1:1\n1 qid:1 1:x\n")
    with pytest.raises(DataError, match="'1:x'"):
        summary_of(tmp_path / "d.svm")


@pytest.mark.peers
def test_agrees_with_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    with WorkerPool(1) as pool:
        dataset = read_dataset([str(SAMPLE / "train.svm")], ANY, pool)
    frame = pandas.DataFrame(dataset.features.dense(dataset.n_features, 0.0))
    for column, feature in enumerate(summary_of(SAMPLE / "train.svm").features):
        values = frame[column]
        assert feature.lowest == values.min() and feature.highest == values.max()
        assert feature.sampled.median == pytest.approx(values.median(), abs=1e-15)
        assert (feature.sampled.distinct, feature.zeros) == (values.nunique(), int((values == 0).sum()))


@given(numbers=st.lists(st.floats(-9, 9), max_size=40), absent=st.integers(0, 5), missing=st.integers(0, 3))
def test_histograms_count_every_value_once(numbers: list[float], absent: int, missing: int) -> None:
    sampled = data_summary.SampledValues(np.sort(np.array(numbers)), absent, missing)
    counts = sampled.histogram(-4.0, 6.0, 5)
    expected = [0] * 5
    for value in [*numbers, *[0.0] * absent]:
        expected[sum(value > bound for bound in (-2.0, 0.0, 2.0, 4.0))] += 1
    assert counts.tolist() == expected
    ends = sampled.range_without(0.0)
    every = [*numbers, *[0.0] * absent]
    assert ends == ((min(every), max(every)) if every else ())
