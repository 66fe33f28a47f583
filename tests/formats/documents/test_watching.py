"""What readers and converters tell of how far they are."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest
from helpers.paths import SAMPLE

from lmart.errors import DataError
from lmart.formats.documents.conversion import convert_data
from lmart.formats.documents.reading import open_rows, read_dataset
from lmart.formats.read_options import ReadOptions, ReadState
from lmart.formats.registry import DATA_FORMATS
from lmart.threads import WorkerPool


def watching() -> tuple[ReadOptions, list[ReadState]]:
    states: list[ReadState] = []
    return ReadOptions().telling(lambda _: None, lambda _: None, states.append), states


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Many blocks of text, of 72,000 rows."""
    path = tmp_path / "long.svm"
    text = (SAMPLE / "train.svm").read_text().replace("qid:", "qid:{}")
    rows = text.splitlines(keepends=True)
    path.write_text("".join("".join(rows).replace("{}", f"{i}.") for i in range(41)))
    return path


def test_shares_and_rows_grow_and_the_end_is_told_once(long: Path) -> None:
    options, states = watching()
    dataset = read_dataset([str(long)], options)
    assert len(states) > 2
    assert [one.share for one in states] == sorted(one.share for one in states)
    assert 0 < states[0].share < 0.5
    assert states[-1] == ReadState(str(long), 1.0, long.stat().st_size, dataset.n_documents, True)
    assert [one.ended for one in states].count(True) == 1


def test_a_reader_that_is_left_early_or_fails_has_ended(long: Path, tmp_path: Path) -> None:
    options, states = watching()
    with open_rows(str(long), options) as reader:
        rows = iter(reader)
        next(rows)
        rows.close()  # type: ignore[attr-defined]
    assert states[-1].ended and states[-1].share < 1
    (tmp_path / "bad.svm").write_text("0 qid:1 1:x\n")
    with pytest.raises(DataError), open_rows(str(tmp_path / "bad.svm"), options) as reader:
        next(iter(reader))
    assert states[-1].ended and states[-1].path.endswith("bad.svm")


@pytest.mark.slow
def test_compressed_input_counts_bytes_of_the_file(long: Path, tmp_path: Path) -> None:
    packed = tmp_path / "long.svm.gz"
    packed.write_bytes(gzip.compress(long.read_bytes()))
    options, states = watching()
    read_dataset([str(packed)], options)
    assert states[-1].taken == packed.stat().st_size


def test_writing_what_was_held_in_memory_is_told_too(long: Path, tmp_path: Path) -> None:
    options, states = watching()
    out = str(tmp_path / "out.csv")
    with WorkerPool(2) as pool:
        convert_data(str(long), out, DATA_FORMATS["csv"], math.nan, options, pool)
    written = [one for one in states if one.path == out]
    assert len(written) > 2 and written[-1] == ReadState(out, 1.0, 0, 0, True)
    assert states.index(written[0]) == len(states) - len(written)
