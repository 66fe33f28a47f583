"""What writers of data and rankings write is read back equal, or refused in one line."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lmart.data.dataset import RankingDataset, SparseRows
from lmart.errors import LmartError
from lmart.formats.documents.blocks import RowBlock
from lmart.formats.documents.conversion import convert_data
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS
from lmart.formats.results.predictions import PredictionLayout
from lmart.formats.results.trec import TrecWriter, read_qrels, read_run
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool

ODD = [
    "a b", "a,b", 'a"b', '"q"', " lead", "trail ", "a\u00a0b", "a\u2028b", "a\x85b", "a\tb", "a\nb", "a\rb", "\0", "",
    "1", "01", "1.0", "0", "+1", "-1", "1e5", "nan", "NA", "Infinity", "true", "f1", "Column_0", "#x", "x#y", "qid:1",
    "1:2", "'", "\\", "\ufeff", "\ufeffa", "\u200b", "é", "日本", "😀", "Label", "QID", "rel", "docno", "y", "label",
]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(ODD), st.text('ab #,"\t\u3000', min_size=1, max_size=3))
VALUES = st.sampled_from([0.0, -0.0, 1.5, math.nan, 1e300, 5e-324, -1 / 3])
OPTIONS = ReadOptions(keep_document_ids=True, require_labels=False, require_queries=False)
OF_THE_SOURCE = replace(OPTIONS, label_column="the label", query_column="the query", document_column="the document")
ON_TWICE = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def read(path: Path, options: ReadOptions) -> RankingDataset:
    with WorkerPool(1) as pool:
        return read_dataset([str(path)], options, pool)


def converted(source: Path, target: Path, absent: float) -> bool:
    """Whether the table is converted; else it was refused in one line, and there is no output."""
    target.unlink(missing_ok=True)
    form = target.suffix[1:]
    strict = form == "qrels"
    options = replace(OF_THE_SOURCE, ids_for_letor=form == "svm", require_labels=strict, require_queries=strict)
    try:
        with WorkerPool(1) as pool:
            convert_data(
                str(source), str(target), DATA_FORMATS["letor" if form == "svm" else form], absent, options, pool
            )
    except LmartError as fault:
        assert not target.exists()
        assert "\n" not in str(fault)
        return False
    return True


def names_of(data: RankingDataset) -> list[str]:
    return list(data.feature_names or map(str, data.feature_ids.tolist()))


def rows_of(data: RankingDataset, names: list[str]) -> list[list[str]]:
    """The cells by name; what a row lacks is missing."""
    there = names_of(data)
    return [
        [repr(row[there.index(name)]) for name in names] for row in data.features.dense(len(there), math.nan).tolist()
    ]


def documents_of(data: RankingDataset) -> list[str]:
    return [one or "" for one in data.document_ids or [""] * data.n_documents]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".svm", ".qrels"])
@ON_TWICE
@given(
    st.lists(TEXTS, min_size=1, max_size=3, unique=True),
    st.lists(TEXTS, min_size=2, max_size=2, unique=True),
    st.lists(TEXTS, min_size=3, max_size=3),
    st.lists(VALUES, min_size=9, max_size=9),
    st.sampled_from([math.nan, 0.0]),
)
@example(["y"], ["\ufeffa", "b"], ["a", "b", "c"], [1.0] * 9, 0.0)
@example(["a"], ["#x", "b"], ["a", "b", "c"], [1.0] * 9, 0.0)
@example(["1.0", "01"], ["1", "01"], ["", "1.0", "01"], [1.0, 2.0, 3.0, -0.0, math.nan, 1.0, 2.0, 3.0, 4.0], math.nan)
def test_a_table_is_read_back_equal_or_refused(
    tmp_path: Path,
    suffix: str,
    names: list[str],
    queries: list[str],
    documents: list[str],
    values: list[float],
    absent: float,
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    source, target = tmp_path / "source.csv", tmp_path / f"target{suffix}"
    with open(source, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["the label", "the query", "the document", *names])
        for i in range(3):
            writer.writerow([2 - i, queries[i // 2], documents[i], *values[3 * i : 3 * i + len(names)]])
    if not converted(source, target, absent):
        return
    own = read(source, OF_THE_SOURCE)
    if suffix == ".qrels":
        found = read_qrels(str(target))
        assert found.query_ids == own.query_ids
        numbered = [given or place for given, place in zip(documents_of(own), ("1", "2", "1"), strict=True)]
        assert [one.decode() for one in found.document_ids] == numbered
        assert found.labels.tolist() == own.labels.tolist()
        return
    again = read(target, OPTIONS)
    assert (again.query_ids, documents_of(again)) == (own.query_ids, documents_of(own))
    assert again.labels.tolist() == own.labels.tolist()
    if suffix == ".svm":  # numbers the columns
        return
    assert sorted(names_of(again)) == sorted(names_of(own))
    assert (again.feature_names is None) == (own.feature_names is None)
    assert rows_of(again, names_of(own)) == rows_of(own, names_of(own))


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("name", ["1.0", "\ufeffa", "y"])
def test_a_table_of_features_alone_is_read_back_or_refused(name: str, suffix: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source.csv", tmp_path / f"target{suffix}"
    source.write_text(f"a,{name},the label\n1,2,3\n", encoding="utf-8")
    options = replace(OPTIONS, ignore_columns=("a",), label_column="the label", use_labels=False)
    with WorkerPool(1) as pool, pytest.raises(LmartError):
        convert_data(str(source), str(target), DATA_FORMATS[suffix[1:]], 0.0, options, pool)
    assert not target.exists()


@ON_TWICE
@given(
    st.lists(TEXTS, min_size=2, max_size=2, unique=True),
    st.lists(TEXTS, min_size=3, max_size=3),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
)
@example(["#x", "b"], ["1", "2", "3"], [1.0, 2.0, 3.0])
@example(["", "b"], ["1", "2", "3"], [1.0, 2.0, 3.0])
@example(["a", "b"], ["a\u00a0b", "2", "3"], [1.0, 2.0, 3.0])
def test_a_run_is_read_back_equal_or_refused(
    tmp_path: Path, queries: list[str], documents: list[str], scores: list[float]
) -> None:
    target = tmp_path / "run"
    none = SparseRows(np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0))
    block = RowBlock(none, None, queries, np.array([0, 2, 3]), False, documents, 1)
    target.unlink(missing_ok=True)
    try:
        with AtomicOutput(str(target)) as output:
            writer = TrecWriter(output, PredictionLayout("source", None, False, "tag", None))
            writer.write(block, np.array(scores))
            writer.finish()
    except LmartError as fault:
        assert "\n" not in str(fault)
        return
    found = read_run(str(target))
    named = [given or place for given, place in zip(documents, ("1", "2", "1"), strict=True)]
    order = [0, 1, 2] if scores[0] >= scores[1] else [1, 0, 2]
    assert found.query_ids == queries
    assert [one.decode() for one in found.document_ids] == [named[i] for i in order]
    assert found.scores[[0, 2]].tolist() == [scores[order[0]], scores[2]]
    assert found.scores[0] > found.scores[1] or not math.isfinite(found.scores[1])
