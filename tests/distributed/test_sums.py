"""What shards know of a tree: added, and written for another process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from lmart.distributed.sums import Counts, DrawnRows, PackedRoot, SplitsDone


def done(n_splits: int, n_summed: int, n_bins: int, largest: int, seed: int) -> SplitsDone:
    rng = np.random.default_rng(seed)
    histograms = (rng.integers(-largest, largest, (n_summed, n_bins)) << 32) + rng.integers(0, largest, n_bins)
    return SplitsDone(rng.integers(0, 99, (n_splits, 2)), rng.integers(0, 2**60, n_summed), histograms)


def test_sums_of_shards_add_up() -> None:
    root = PackedRoot(5, 2**33 + 1, np.array([1, 2])).plus(PackedRoot(7, 2**34, np.array([10, 20])))
    assert (root.largest_hessian, root.total, root.histogram.tolist()) == (7, 3 * 2**33 + 1, [11, 22])
    assert DrawnRows(3, (0.5, 1.0)).plus(DrawnRows(4, (0.25, 2.0))) == DrawnRows(7, (0.75, 3.0))
    assert Counts(np.array([1, 2])).plus(Counts(np.array([3, 4]))).counts.tolist() == [4, 6]
    first, second = done(3, 2, 5, 9, 1), done(3, 2, 5, 9, 2)
    expected = [one + other for one, other in zip(fields(first), fields(second), strict=True)]
    for found, wanted in zip(fields(first.plus(second)), expected, strict=True):
        assert found.tolist() == wanted.tolist()


def fields(one: SplitsDone) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    return [one.counts, one.totals, one.histograms]


@pytest.mark.parametrize("n_summed", [0, 1, 3])
@pytest.mark.parametrize("largest, share", [(2**15, 0.66), (2**28, 1.0)])
def test_another_process_gets_the_same_in_fewer_bytes(n_summed: int, largest: int, share: float) -> None:
    before = done(4, n_summed, 2000, largest, 3)
    written = pickle.dumps(before, protocol=5)
    after = pickle.loads(written)
    for found, wanted in zip(fields(after), fields(before), strict=True):
        assert found.tolist() == wanted.tolist() and found.shape == wanted.shape
    assert len(written) < share * before.histograms.nbytes + 800
