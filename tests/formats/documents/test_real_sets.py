"""Every real set there is: read number by number, and written back."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from helpers.reading import SERIAL
from helpers.real_sets import real_files

from lmart.formats.documents.conversion import convert_data
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS


@pytest.mark.slow
@pytest.mark.parametrize("path", real_files())
def test_every_real_set_is_read_as_it_stands_and_written_back(path: Path, tmp_path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    data = read_dataset([str(path)], ReadOptions())
    words = [line.split() for line in text.splitlines()]
    cells = [cell.split(b":") for row in words for cell in row[2:]]
    assert data.labels.tolist() == [float(row[0]) for row in words]
    assert np.repeat(data.query_ids, np.diff(data.query_offsets)).tolist() == [row[1][4:].decode() for row in words]
    assert np.diff(data.features.offsets).tolist() == [len(row) - 2 for row in words]
    assert data.feature_ids[data.features.columns].tolist() == [int(index) for index, _ in cells]
    assert np.array_equal(data.features.values, [float(value) for _, value in cells])
    for name in ("back.svm.gz", "back.csv", "back.parquet") if path.match("ohsumed2/S1*") else ("back.svm.gz",):
        pytest.importorskip("pyarrow" if name.endswith("parquet") else "gzip")
        back = tmp_path / name
        target = DATA_FORMATS["letor" if "svm" in name else back.suffix[1:]]
        convert_data(str(path), str(back), target, 0.0, ReadOptions(), SERIAL)
        again = read_dataset([str(back)], ReadOptions())
        assert np.array_equal(again.feature_ids, data.feature_ids)
        assert np.array_equal(again.labels, data.labels)
        assert np.array_equal(again.query_offsets, data.query_offsets)
        assert list(again.query_ids) == list(data.query_ids)
        if name.endswith(".svm.gz"):
            assert np.array_equal(again.features.offsets, data.features.offsets)
            assert np.array_equal(again.features.values, data.features.values)
            assert np.array_equal(again.features.columns, data.features.columns)
        else:
            width = data.n_features
            assert np.array_equal(again.features.dense(width, 0.0), data.features.dense(width, 0.0))
