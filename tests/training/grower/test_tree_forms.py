"""Trees that grow level by level, and those whose leaves of a level are split alike."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import reference.trees
from helpers.datasets import dataset, random_dataset
from helpers.settings import tree_settings
from helpers.waiting import LIMIT
from hypothesis import assume, given
from hypothesis import strategies as st

from lmart.array_types import Int64Array
from lmart.binning.binned_features import bin_features
from lmart.binning.edges import fit_bin_edges
from lmart.errors import SettingsError
from lmart.formats.models.lmart_json import model_to_json
from lmart.kernels.trees.leaf_expansion import expand_leaf
from lmart.scoring.ensemble import Tree
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training import boosting
from lmart.training.boosting import train
from lmart.training.grower import GrownTree, GrowParams, Histograms, Units, expander, grow_tree, tree
from lmart.training.grower.leaves import LocalLeaves

POOL = WorkerPool(1)
UNIT = 2.0**-16
NAN = float("nan")
documents = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, NAN]), st.integers(0, 3), st.integers(-4, 4), st.integers(1, 3)),
    min_size=1,
    max_size=14,
)


def grow(rows: list[tuple[float, int, int, int]], chosen: TrainSettings) -> tuple[GrownTree | None, LocalLeaves]:
    """Grow a tree on two features with given gradients and hessians."""
    data = dataset([0] * len(rows), ["q"] * len(rows), [[x, float(y)] for x, y, _, _ in rows])
    edges = fit_bin_edges(data, 255, "zero", 1, 0, POOL)
    packed = np.array([(g << 48) + (h << 16) for _, _, g, h in rows], np.int64)
    every = np.arange(len(rows), dtype=np.int32)
    leaves = LocalLeaves(bin_features(data, edges, 1, POOL), packed, every, every[:0], 1)
    settings, histograms = tree_settings(chosen), Histograms(edges.n_bins)
    params = GrowParams(leaves, edges, Units(UNIT, UNIT, 3 << 16), settings, POOL, histograms)
    return grow_tree(params, leaves), leaves


def leaf_sets(grown: GrownTree | None, leaves: LocalLeaves, n: int) -> set[frozenset[int]]:
    if grown is None:
        return {frozenset(range(n))}
    assert len(leaves.partitions) == 1
    partition = leaves.partitions[0]
    return {frozenset(partition.of(leaf).tolist()) for leaf in grown.leaves}


@given(documents, st.sampled_from([2, 4, 5, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([0, 2]), st.booleans())
def test_oblivious_trees_are_those_of_the_definition(
    rows: list[tuple[float, int, int, int]], most: int, min_docs: int, least: int, regularized: bool
) -> None:
    l2 = 1.5 if regularized else 0.0
    chosen = TrainSettings(tree="oblivious", leaves=most, min_docs=min_docs, min_hessian=least, l2=l2)
    grown, leaves = grow(rows, chosen)
    distinct = [sorted({row[f] for row in rows if row[f] == row[f]}) for f in range(2)]
    codes = [[distinct[f].index(row[f]) if row[f] == row[f] else len(distinct[f]) for row in rows] for f in range(2)]
    missing = [len(distinct[f]) if any(row[f] != row[f] for row in rows) else None for f in range(2)]
    sums = ([float(row[2]) for row in rows], [float(row[3]) for row in rows])
    levels = {2: 1, 4: 2, 5: 2, 8: 3}[most]
    expected, closest = reference.trees.oblivious_leaves(codes, missing, *sums, levels, l2, least, min_docs)
    assume(closest > 1e-9)
    assert leaf_sets(grown, leaves, len(rows)) == expected
    if grown is not None:
        for leaf, value in zip(grown.leaves, grown.tree.leaf_values.tolist(), strict=True):
            own = leaves.partitions[0].of(leaf).tolist()
            g, h = (sum(column[d] for d in own) for column in sums)
            assert value == pytest.approx(-chosen.learning_rate * g / (h + l2), rel=1e-12)


def depths(grown: Tree) -> list[int]:
    """The depth of each node, 0 at the root; nodes come after the one above."""
    found = [0] * len(grown.left)
    for node, below in enumerate(zip(grown.left.tolist(), grown.right.tolist(), strict=True)):
        for child in below:
            if child >= 0:
                found[child] = found[node] + 1
    return found


SMALL = TrainSettings(trees=4, leaves=16, min_docs=3)


def fit(form: str, threads: int = 1, **changed: object) -> tuple[str, tuple[Tree, ...]]:
    chosen = replace(SMALL, tree=form, **changed)  # type: ignore[arg-type]
    with WorkerPool(threads) as pool:
        model = train(random_dataset(12, n_queries=120), [], chosen, pool).ensemble
    return model_to_json(model), model.trees


def test_depthwise_trees_are_filled_level_by_level() -> None:
    for grown in fit("depthwise", leaves=11)[1]:
        own = depths(grown)
        assert own == sorted(own) and grown.n_leaves == 11
    assert any(depths(grown) != sorted(depths(grown)) for grown in fit("leafwise", leaves=11)[1])


def test_without_a_limit_of_leaves_the_order_does_not_matter() -> None:
    sizes = [
        [
            sorted(grown.leaf_documents.tolist())
            for grown in fit(form, leaves=4096)[1]
            if grown.leaf_documents is not None
        ]
        for form in ("leafwise", "depthwise")
    ]
    assert sizes[0] == sizes[1]


def test_an_oblivious_tree_has_one_split_a_level() -> None:
    for grown in fit("oblivious")[1]:
        own = np.array(depths(grown))
        assert grown.n_leaves <= 16 and own.max() <= 3
        assert grown.leaf_documents is not None and grown.leaf_documents.min() >= 3
        splits = zip(grown.split_columns.tolist(), grown.thresholds.tolist(), grown.missing_left.tolist(), strict=True)
        assert len(set(splits)) <= 4 < len(own)
    assert len({float(grown.thresholds[0]) for grown in fit("oblivious")[1]}) > 1


def test_depth_and_leaves_both_limit_oblivious_trees() -> None:
    assert max(max(depths(grown)) for grown in fit("oblivious", max_depth=2, leaves=64)[1]) == 1
    assert max(grown.n_leaves for grown in fit("oblivious", leaves=7)[1]) <= 4


@pytest.mark.parametrize("form", ["depthwise", "oblivious"])
def test_threads_leave_no_trace(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fit(form)[0]
    for shared in (1, 400, 100_000):
        monkeypatch.setattr(tree, "SHARED", shared)
        monkeypatch.setattr(expander, "SHARED", shared)
        assert fit(form, threads=3)[0] == expected


@pytest.mark.parametrize("form", ["leafwise", "depthwise", "oblivious"])
@pytest.mark.parametrize(("leaves", "threads"), [(2, 1), (20, 1), (20, 3)])
def test_each_histogram_is_given_back_once(
    form: str, leaves: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: set[int] = set()

    class Watched(tree.Histograms):
        def take(self) -> Int64Array:
            taken = super().take()
            assert id(taken) not in away
            away.add(id(taken))
            return taken

        def give_back(self, leaf: tree.Leaf) -> None:
            if leaf.histogram is not None:
                away.remove(id(leaf.histogram))
            super().give_back(leaf)

    monkeypatch.setattr(boosting, "Histograms", Watched)
    assert len(fit(form, leaves=leaves, threads=threads)[1]) > 1
    assert not away


@pytest.mark.parametrize("form", ["leafwise", "depthwise"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("monotone", ["", "1:+1"])
def test_fewer_histograms_than_leaves_grow_the_same_tree(
    form: str, threads: int, monotone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, trees = fit(form, leaves=40, threads=threads, monotone=monotone)
    made: list[int] = []

    class Few(tree.Histograms):
        def __init__(self, n_bins: int) -> None:
            super().__init__(n_bins, 0)

        def take(self) -> Int64Array:
            taken = super().take()
            made.append(id(taken))
            return taken

    monkeypatch.setattr(boosting, "Histograms", Few)
    assert fit(form, leaves=40, threads=threads, monotone=monotone)[0] == expected
    assert max(len(grown.leaf_values) for grown in trees) > 2 * tree.FEWEST_HISTOGRAMS
    assert len(set(made)) == tree.FEWEST_HISTOGRAMS


@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt])
def test_a_failure_of_one_worker_ends_the_growth(failure: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the calling thread, where an interrupt is raised. The others, which wait for its leaf, are then free again."""
    calling = threading.get_ident()

    def fail(*arguments: Any) -> Any:
        if threading.get_ident() == calling:
            time.sleep(0.1)  # meanwhile the others have begun
            raise failure
        return expand_leaf(*arguments)

    monkeypatch.setattr(expander, "expand_leaf", fail)
    with WorkerPool(3) as pool:
        with pytest.raises(failure):
            train(random_dataset(12, n_queries=120), [], SMALL, pool)
        all_three = threading.Barrier(3, timeout=LIMIT)
        assert sorted(pool.run(all_three.wait, [()] * 3)) == [0, 1, 2]


def test_oblivious_trees_take_no_constraints() -> None:
    with pytest.raises(SettingsError, match="monotone does not go with tree 'oblivious'"):
        TrainSettings(tree="oblivious", monotone="1:+1")
