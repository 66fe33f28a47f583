"""Training: trees, rounds, early stopping, and equal bytes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import reference.boosting
import reference.random_numbers
from helpers.datasets import dataset, random_dataset
from helpers.score_data import score_dataset
from helpers.settings import tree_settings
from hypothesis import assume, given
from hypothesis import strategies as st

from lmart.data.dataset import RankingDataset
from lmart.data.metadata import Metadata
from lmart.errors import DataError
from lmart.formats.models.lmart_json import model_to_json
from lmart.gains import Gain
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.early_stopping import EarlyStopping
from lmart.training.rankers import RoundReport
from lmart.training.train_result import TrainResult

POOL = WorkerPool(1)
PLAIN = TrainSettings(trees=1, min_docs=1, min_hessian=0, truncation=0, normalize=False)
SMALL = TrainSettings(objective="lambdamart", trees=20, leaves=8, min_docs=5)


def fit(data: RankingDataset, chosen: TrainSettings = SMALL, **named: object) -> TrainResult:
    return train(data, [], chosen, POOL, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "scores"), [([0, 1, 2], [-0.2, 0.033985, 0.2]), ([2, 1, 0], [0.2, -0.139738, -0.2])]
)
def test_the_first_tree_by_hand(labels: list[int], scores: list[float]) -> None:
    result = fit(dataset(labels, [1] * 3, [[float(y)] for y in labels]), replace(PLAIN, leaves=3))
    np.testing.assert_allclose(result.scores, scores, atol=5e-7)


rows = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.integers(-40, 40), st.integers(-4, 4)),
    min_size=3,
    max_size=24,
)


@given(rows, st.sampled_from([2, 4, 9]), st.sampled_from([1, 3]), st.sampled_from([0, 2]), st.booleans())
def test_training_follows_the_definition(
    data: list[tuple[int, str, int, int]], leaves: int, min_docs: int, truncation: int, normalize: bool
) -> None:
    data = sorted(data, key=lambda row: row[1])
    labels = [row[0] for row in data]
    ids = [row[1] for row in data]
    features = [[float(row[2]), row[3] / 4] for row in data]
    chosen = TrainSettings(
        trees=2, leaves=leaves, min_docs=min_docs, min_hessian=0, truncation=truncation, normalize=normalize
    )
    result = fit(dataset(labels, ids, features), chosen)
    queries = [[r for r, own in enumerate(ids) if own == q] for q in dict.fromkeys(ids)]
    gains = [2.0**y - 1 for y in labels]
    fixed = (queries, 2, leaves, 0.1, min_docs, truncation, normalize)
    expected, closest = reference.boosting.lambdamart(features, gains, *fixed)
    assume(closest > 1e-6)  # sums are rounded to 2^-31 of their total, so closer decisions may fall otherwise
    np.testing.assert_allclose(result.scores, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sample", [1.0, 0.4])
@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_predict_reproduces_the_training_scores_bit_for_bit(sample: float, absent: str) -> None:
    data = random_dataset(4, n_queries=60)
    result = fit(data, replace(SMALL, sample=sample, absent=absent))
    assert (score_dataset(result.ensemble, data) == result.scores).all()


def test_every_leaf_holds_min_docs_exactly_counted() -> None:
    data = random_dataset(6, n_queries=80)
    for min_docs in (1, 7, 40):
        for tree in fit(data, replace(SMALL, min_docs=min_docs, sample=0.5)).ensemble.trees:
            assert tree.leaf_documents is not None
            assert tree.leaf_documents.min() >= min_docs and tree.leaf_documents.sum() == data.n_documents


def test_documents_are_counted_where_hessians_vanish() -> None:
    from lmart.binning.binned_features import bin_features
    from lmart.binning.edges import fit_bin_edges
    from lmart.training.grower import GrowParams, Histograms, Units, grow_tree
    from lmart.training.grower.leaves import LocalLeaves

    data = dataset([0] * 40, ["q"] * 40, [[float(x)] for x in range(40)])
    edges = fit_bin_edges(data, 255, "zero", 1, 0, POOL)
    packed = np.array([-1000 if row == 0 else 10 for row in range(40)], np.int64) << 32
    rows = np.arange(40, dtype=np.int32)
    leaves = LocalLeaves(bin_features(data, edges, 1, POOL), packed, rows, rows[:0], POOL.threads)
    chosen = TrainSettings(leaves=4, min_docs=10, min_hessian=0, l2=1)
    settings, histograms = tree_settings(chosen), Histograms(edges.n_bins)
    grown = grow_tree(GrowParams(leaves, edges, Units(1.0, 1.0, 0), settings, POOL, histograms), leaves)
    assert grown is not None and grown.tree.leaf_documents is not None
    assert grown.tree.leaf_documents.min() >= 10


def test_an_unlucky_draw_does_not_end_the_training() -> None:
    result = fit(random_dataset(17), replace(SMALL, sample=0.01))
    assert result.stopped == "trees" and len(result.ensemble.trees) == SMALL.trees


def test_weights_of_any_size_train_alike() -> None:
    data = random_dataset(18)
    plain = fit(data, replace(SMALL, min_hessian=0)).scores
    for weight in (2.0**-250, 2.0**250):
        heavy = fit(data, replace(SMALL, min_hessian=0), metadata=Metadata(np.full(data.n_queries, weight))).scores
        assert heavy.tolist() == plain.tolist()


@pytest.mark.parametrize("threads", [2, 3, 30])
@pytest.mark.parametrize("shared", [1, 300, 10_000])
def test_a_tree_does_not_depend_on_how_work_is_handed_out(
    threads: int, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmart.training.grower import expander, leaves, tree

    data = random_dataset(11, n_queries=80)
    chosen = replace(SMALL, leaves=20, min_docs=3)
    expected = fit(data, chosen)
    monkeypatch.setattr(tree, "SHARED", shared)
    monkeypatch.setattr(expander, "SHARED", shared)
    monkeypatch.setattr(leaves, "ADDED", 50)
    monkeypatch.setattr(leaves, "MERGED", 20)
    with WorkerPool(threads) as pool:
        found = train(data, [], chosen, pool)
    assert model_to_json(found.ensemble) == model_to_json(expected.ensemble)
    assert found.scores.tolist() == expected.scores.tolist()


def test_limits_on_leaves_and_depth() -> None:
    data = random_dataset(7, n_queries=60)
    for tree in fit(data, replace(SMALL, leaves=31, max_depth=3, min_docs=1)).ensemble.trees:
        depth = np.zeros(len(tree.left), int)
        for node in range(len(tree.left)):
            for child in (tree.left[node], tree.right[node]):
                if child >= 0:
                    depth[child] = depth[node] + 1
        assert depth.max() <= 2
    assert max(tree.n_leaves for tree in fit(data, replace(SMALL, leaves=5)).ensemble.trees) == 5


@pytest.mark.slow
def test_equal_bytes_for_any_number_of_threads() -> None:
    data = random_dataset(8, n_queries=4000)
    models = set()
    for threads in (1, 2, 3, 8):
        with WorkerPool(threads) as pool:
            models.add(model_to_json(train(data, [], replace(SMALL, sample=0.6), pool).ensemble))
    assert len(models) == 1


def test_the_seed_matters_only_to_what_is_drawn() -> None:
    data = random_dataset(9)
    trees = [fit(data, replace(SMALL, seed=seed)).scores.tolist() for seed in (0, 1)]
    assert trees[0] == trees[1]
    drawn = [fit(data, replace(SMALL, seed=seed, sample=0.5)).scores.tolist() for seed in (0, 1, 1)]
    assert drawn[0] != drawn[1] == drawn[2]


def test_early_stopping_keeps_the_first_best_round() -> None:
    stopping = EarlyStopping(2)
    assert [stopping.update(r, v) for r, v in enumerate([0.1, 0.3, 0.3, 0.2], 1)] == [False, False, False, True]
    assert (stopping.best_round, stopping.best) == (2, 0.3)
    never = EarlyStopping(2)
    assert [never.update(r, None) for r in (1, 2, 3)] == [False, False, True]


def test_the_model_holds_exactly_the_best_rounds_trees() -> None:
    data, valid, other = random_dataset(10), random_dataset(11), random_dataset(12)
    seen: list[RoundReport] = []
    chosen = replace(SMALL, trees=60, early_stop=5)
    result = train(data, [valid, other], chosen, POOL, seen.append)
    decisive = [one.validation[0] for one in seen]
    assert result.n_trees == decisive.index(max(decisive, key=lambda v: v or 0)) + 1
    assert len(result.ensemble.trees) == result.n_trees < result.rounds == len(seen)
    assert result.validation == seen[result.n_trees - 1].validation
    again = train(data, [], replace(chosen, trees=result.n_trees, early_stop=0), POOL)
    assert again.scores.tolist() == result.scores.tolist()
    assert again.training == result.training
    assert (score_dataset(result.ensemble, data) == result.scores).all()


def test_validation_measures_are_those_of_raw_scoring() -> None:
    from lmart.measures import Evaluator, parse_measures
    from lmart.measures.judgments import Judgments

    data, valid = random_dataset(13), random_dataset(14)
    values: list[float | None] = []
    result = train(data, [valid], SMALL, POOL, lambda one: values.append(one.validation[0]))
    scores = score_dataset(result.ensemble, valid)
    report = Evaluator(Judgments(valid.labels, valid.query_offsets), parse_measures("ndcg@10")).evaluate(scores)
    assert report.values["ndcg@10"] == values[-1] == result.validation[0]


def test_a_validation_set_of_other_features_is_refused() -> None:
    data = dataset([0, 1], ["q"] * 2, [[0.0], [1.0]], ids=[1])
    with pytest.raises(DataError):
        train(data, [dataset([0, 1], ["q"] * 2, [[0.0], [1.0]], ids=[2])], SMALL, POOL)


@pytest.mark.parametrize(
    ("labels", "queries", "idle"),
    [([1, 1, 1], ["a"] * 3, 1), ([0, 1, 2], ["a", "b", "c"], 3), ([0, 0, 0], ["a", "a", "b"], 2)],
)
def test_nothing_to_learn_gives_no_tree(labels: list[int], queries: list[str], idle: int) -> None:
    result = fit(dataset(labels, queries, [[0.0], [1.0], [2.0]]), PLAIN)
    assert result.ensemble.trees == () and result.n_idle_queries == idle and not result.scores.any()
    assert result.stopped == "split"


def test_idle_queries_change_no_tree() -> None:
    good = dataset([0, 1, 2], ["g"] * 3, [[0.0], [1.0], [2.0]])
    mixed = dataset([1, 1, 0, 1, 2, 3], ["a", "a", "g", "g", "g", "z"], [[0.0], [2.0], [0.0], [1.0], [2.0], [1.0]])
    chosen = replace(PLAIN, leaves=3, trees=5)
    assert fit(mixed, chosen).scores[2:5].tolist() == fit(good, chosen).scores.tolist()


def test_constant_columns_split_nothing() -> None:
    flat = dataset([0, 1], ["a"] * 2, [[1.0, 1.0]] * 2)
    result = fit(flat, PLAIN)
    assert result.ensemble.trees == () and result.n_features_split == 0
    mixed = dataset([0, 1], ["a"] * 2, [[1.0, 0.0], [1.0, 1.0]])
    assert fit(mixed, PLAIN).ensemble.trees[0].split_columns.tolist() == [1]


def test_query_weights_tip_the_balance() -> None:
    data = dataset([1, 0, 1, 0], ["q1", "q1", "q2", "q2"], [[1.0], [0.0], [0.0], [1.0]])
    assert fit(data, PLAIN).ensemble.trees == ()
    weighted = fit(data, PLAIN, metadata=Metadata(np.array([3.0, 1.0])))
    np.testing.assert_allclose(weighted.scores, [0.1, -0.1, -0.1, 0.1], atol=1e-8)


def test_fractional_labels_are_not_cut() -> None:
    def first(labels: list[float], gain: str = "exp2") -> list[float]:
        data = dataset(labels, ["q"] * 3, [[0.0], [1.0], [2.0]])
        scores: list[float] = fit(data, replace(PLAIN, leaves=3, gain=Gain.parse(gain), trees=3)).scores.tolist()
        return scores

    exponential, linear, cut = first([0.5, 1.5, 1.0]), first([0.5, 1.5, 1.0], "linear"), first([0, 1, 1])
    assert exponential != linear and cut not in (exponential, linear)


def test_nan_takes_the_side_that_gains() -> None:
    data = dataset([2, 2, 0, 0, 1, 1], ["q"] * 6, [[math.nan], [math.nan], [1.0], [2.0], [3.0], [4.0]])
    result = fit(data, replace(PLAIN, leaves=3, trees=3))
    assert result.scores[0] == result.scores[1] > result.scores[4] > result.scores[2]
    assert (score_dataset(result.ensemble, data) == result.scores).all()


def test_thresholds_between_close_values_survive_the_model_file() -> None:
    close = [0.12345678, 0.12345679]
    data = dataset([0, 1, 0, 1], ["a", "a", "b", "b"], [[close[0]], [close[1]], [close[0]], [close[1]]])
    result = fit(data, PLAIN)
    assert result.scores[0] < result.scores[1]
    assert result.ensemble.trees[0].thresholds[0] == pytest.approx(0.123456785, abs=1e-12)


def test_renaming_features_in_order_and_permuting_queries_keeps_the_scores() -> None:
    data = random_dataset(15, n_queries=25)
    renamed = RankingDataset(data.features, data.feature_ids * 7 + 1, data.labels, data.query_offsets, data.query_ids)
    assert fit(renamed).scores.tolist() == fit(data).scores.tolist()
    order = np.random.default_rng(1).permutation(data.n_queries)
    parts = [np.arange(data.query_offsets[q], data.query_offsets[q + 1]) for q in order]
    rows = np.concatenate(parts)
    dense = data.features.dense(data.n_features, 0.0)
    moved = dataset(data.labels[rows].tolist(), np.repeat(order, [len(p) for p in parts]).tolist(), dense[rows])
    np.testing.assert_allclose(fit(moved).scores, fit(data).scores[rows], atol=1e-9)


def test_mirrored_features_tie_and_the_lower_id_wins() -> None:
    data = random_dataset(16)
    dense = data.features.dense(data.n_features, 0.0)
    ids = np.repeat(np.arange(data.n_queries), np.diff(data.query_offsets)).tolist()
    twice = dataset(data.labels.tolist(), ids, np.hstack([dense, dense]))
    trees = fit(twice).ensemble.trees
    assert max(int(tree.split_columns.max()) for tree in trees) < data.n_features


@pytest.mark.parametrize("form", ["leafwise", "oblivious"])
def test_each_tree_splits_on_its_own_draw_of_features(form: str) -> None:
    data = random_dataset(5, n_queries=60)
    chosen = replace(SMALL, trees=12, leaves=16, min_docs=2, tree=form, features=0.5, seed=7)
    drawn = []
    for number, tree in enumerate(fit(data, chosen).ensemble.trees, 1):
        key = reference.random_numbers.mix(reference.random_numbers.mix(7) ^ number) ^ (2**64 - 1)
        order = sorted(
            range(5), key=lambda column: reference.random_numbers.mix(column ^ key)
        )  # the last column never changes
        assert set(tree.split_columns.tolist()) <= set(order[:2])
        drawn.append(frozenset(order[:2]))
    assert len(set(drawn)) > 4
    with WorkerPool(3) as pool:
        assert train(data, [], chosen, pool).scores.tolist() == fit(data, chosen).scores.tolist()


def test_there_is_always_a_feature_to_split_on() -> None:
    result = fit(random_dataset(5), replace(SMALL, features=1e-9))
    assert all(len(set(tree.split_columns.tolist())) == 1 for tree in result.ensemble.trees)
    assert len({int(tree.split_columns[0]) for tree in result.ensemble.trees}) > 1


@pytest.mark.parametrize(
    ("form", "monotone"), [("leafwise", ""), ("leafwise", "1:+1"), ("depthwise", ""), ("oblivious", "")]
)
def test_a_model_does_not_depend_on_whether_rows_are_narrowed(
    form: str, monotone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = replace(SMALL, trees=8, leaves=16, tree=form, features=0.5, sample=0.7, monotone=monotone)
    data = random_dataset(21, n_queries=150)
    models = []
    for share in (0.0, 1.0):
        monkeypatch.setattr("lmart.training.grower.leaves.MOST_NARROWED", share)
        monkeypatch.setattr("lmart.training.grower.leaves.ADDED", 100)
        with WorkerPool(2) as pool:
            models.append(model_to_json(train(data, [], chosen, pool).ensemble))
    assert models[0] == models[1]


def test_an_unlucky_draw_of_features_does_not_end_the_training() -> None:
    rows = [[float(row % 2), float(row % 20 == 0), float(row % 30 == 0)] for row in range(60)]
    data = dataset([row % 2 for row in range(60)], [row // 6 for row in range(60)], rows)
    result = fit(data, replace(SMALL, trees=20, features=0.3, min_docs=10))
    assert len(result.ensemble.trees) == 20
