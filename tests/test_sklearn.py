"""LambdaMARTRanker in scikit-learn: its own checks, cloning, pickling, and cross-validation by query."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.paths import SAMPLE

import lmart
from lmart.settings import options

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.inspection import permutation_importance  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from lmart.sklearn import LambdaMARTRanker  # noqa: E402

pytestmark = pytest.mark.peers

DATA, VALID = lmart.read(SAMPLE / "train.svm"), lmart.read(SAMPLE / "vali.svm")
X, Y, QID = DATA.to_numpy(), DATA.labels, DATA.qid
FEW: dict[str, Any] = {"trees": 8, "rankers": 1}

# Checks that ask for what a ranker by pairs cannot have, each with the reason.
_WEIGHTS = (
    "a row of weight 2 is not the row twice, nor one of weight 0 a row less: each row still takes a rank, and all "
    "rows of a query are compared with each other"
)
NOT_OF_RANKERS = {
    "check_sample_weight_equivalence_on_dense_data": _WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": _WEIGHTS,
    "check_sample_weights_invariance": _WEIGHTS,  # what both were called before 1.7
    "check_sample_weight_equivalence": _WEIGHTS,
}


# With settings by which it learns from a few rows too.
CHECKS = parametrize_with_checks([LambdaMARTRanker(trees=5, min_docs=1, min_hessian=0.0)]).mark


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    name = check.func.__name__
    if name in NOT_OF_RANKERS and check.keywords.get("kind") != "ones":  # weights of 1 are as none
        with pytest.raises(AssertionError):
            check(estimator)
        pytest.skip(NOT_OF_RANKERS[name])
    check(estimator)


def test_a_last_training_may_take_the_validation_set_too() -> None:
    valid = VALID.to_numpy(), VALID.labels, VALID.qid
    plain, again = (LambdaMARTRanker(**FEW, refit=refit).fit(X, Y, QID, eval_set=valid) for refit in (False, True))
    assert again.model_.n_trees == plain.model_.n_trees and again.evals_result_ == plain.evals_result_
    assert not np.array_equal(again.predict(X), plain.predict(X))


def test_parameters_are_the_settings_of_the_command_line() -> None:
    own = {"validation_fraction": None, "refit": False, "threads": None, "verbose": False, "query_column": None}
    expected = {one.name: one.default for one in options()} | own
    expected |= {"gain": str(expected["gain"])}
    assert LambdaMARTRanker().get_params() == expected
    assert list(LambdaMARTRanker().get_params()) == sorted(expected)


def test_the_model_is_that_of_train(tmp_path: Path) -> None:
    weights = np.arange(len(Y)) % 3 + 1.0
    ranker = LambdaMARTRanker(trees=30, early_stop=3, learning_rate=0.2, monotone={3: 1})
    assert ranker.fit(X, Y, QID, sample_weight=weights, eval_set=(VALID.to_numpy(), VALID.labels, VALID.qid)) is ranker
    model = lmart.train(X, Y, QID, VALID, trees=30, early_stop=3, learning_rate=0.2, monotone={3: 1}, weights=weights)
    for name, one in (("a", ranker.model_), ("b", model)):
        one.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert ranker.predict(X).tolist() == model.predict(X).tolist()
    assert ranker.score(X, Y, QID) == model.evaluate(X, Y, QID)["ndcg@10"]


def test_a_share_of_the_queries_is_held_out_for_early_stopping(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"trees": 60, "rankers": 1, "early_stop": 5, "seed": 3}
    weights = np.arange(DATA.n_queries) % 3 + 1.0
    ranker = LambdaMARTRanker(**chosen, validation_fraction=0.2).fit(X, Y, QID, sample_weight=weights)
    model = lmart.train(X, Y, QID, weights=weights, validation_fraction=0.2, **chosen)
    assert ranker.predict(X).tolist() == model.predict(X).tolist() and list(ranker.evals_result_) == [
        "training",
        "valid",
    ]
    assert ranker.n_iter_ < 60 and model.history is not None
    n_kept = model.history.content["data"]["queries"]
    assert n_kept == DATA.n_queries - round(0.2 * DATA.n_queries)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = LambdaMARTRanker(**chosen, validation_fraction=0.25)
        routed.set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(routed, {"leaves": [3, 8], "early_stop": [0, 4]}, cv=GroupKFold(2))
        search.fit(X, Y, qid=QID, groups=QID)
    assert search.best_estimator_.n_iter_ <= 60
    nothing = LambdaMARTRanker(**FEW, validation_fraction=0.5).fit(X, Y, QID)  # without early_stop
    assert nothing.predict(X).tolist() == LambdaMARTRanker(**FEW).fit(X, Y, QID).predict(X).tolist()
    with pytest.warns(UserWarning, match="one query"), pytest.raises(lmart.DataError, match="has 1 query, of which no"):
        ranker.fit(X[:50], Y[:50])


def test_importances_add_up_to_one_and_find_what_matters() -> None:
    noise = np.random.default_rng(0).random((len(Y), 2))
    ranker = LambdaMARTRanker(trees=20, rankers=2).fit(np.column_stack([noise, Y + noise[:, 0] / 9]), Y, qid=QID)
    importances = ranker.feature_importances_
    assert importances.shape == (3,) == (ranker.n_features_in_,)
    assert importances.sum() == pytest.approx(1.0) and importances[2] > 0.9
    flat = LambdaMARTRanker(**FEW)
    with pytest.warns(UserWarning, match="nothing to split on"):
        flat.fit(np.ones((len(Y), 2)), Y, qid=QID)
    assert flat.feature_importances_.tolist() == [0.0, 0.0]


def test_clones_and_pickles() -> None:
    ranker = LambdaMARTRanker(trees=5, gain=[0, 1, 3, 7, 15]).fit(X, Y, QID)
    again = clone(ranker)
    assert not hasattr(again, "model_") and again.get_params() == ranker.get_params()
    assert again.set_params(trees=3).fit(X, Y, QID).model_.n_trees == 3
    assert pickle.loads(pickle.dumps(ranker)).predict(X).tolist() == ranker.predict(X).tolist()


def by_hand(column: bool = False) -> list[float]:
    values = []
    for train, test in GroupKFold(3).split(X, Y, QID):
        ranker = LambdaMARTRanker(**FEW).fit(X[train], Y[train], qid=QID[train])
        values.append(ranker.score(X[test], Y[test], qid=QID[test]))
    return values


def test_cross_validation_by_query_with_metadata_routing() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = LambdaMARTRanker(**FEW).set_fit_request(qid=True).set_score_request(qid=True)
        found = cross_val_score(ranker, X, Y, cv=GroupKFold(3), params={"qid": QID, "groups": QID})
        assert found.tolist() == by_hand()
        search = GridSearchCV(ranker, {"leaves": [3, 8], "l2": np.array([0.0, 1.0])}, cv=GroupKFold(3))
        search.fit(X, Y, qid=QID, groups=QID)
    assert search.best_params_["leaves"] in (3, 8) and 0.7 < search.best_score_ <= 1.0
    best = LambdaMARTRanker(**FEW | search.best_params_).fit(X, Y, qid=QID)
    assert search.best_estimator_.predict(X).tolist() == best.predict(X).tolist()


def test_cross_validation_by_a_column_of_queries() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]).assign(query=QID)
    ranker = LambdaMARTRanker(**FEW, query_column="query")
    assert cross_val_score(ranker, frame, Y, groups=QID, cv=GroupKFold(3)).tolist() == by_hand()
    search = GridSearchCV(ranker, {"leaves": [3, 8]}, cv=GroupKFold(3)).fit(frame, Y, groups=QID)
    assert search.best_estimator_.model_.feature_names == list(frame.columns[:-1])
    fitted = search.best_estimator_
    assert fitted.predict(frame).tolist() == fitted.predict(frame.drop(columns="query")).tolist()
    assert list(fitted.feature_names_in_) == list(frame.columns[:-1]) and fitted.n_features_in_ == X.shape[1]
    fitted.set_params(early_stop=2).fit(frame, Y, eval_set=[(frame[:200], Y[:200])])
    with pytest.raises(ValueError, match="query_column already gives the queries"):
        fitted.fit(frame, Y, qid=QID)
    with pytest.raises(ValueError, match="X is not a DataFrame"):
        fitted.fit(X, Y)


def test_a_column_of_queries_that_is_not_there() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(q__qid=QID)
    for column, hint in (("qid", "q__qid"), ("q__QID", "q__qid"), ("session", None)):
        with pytest.raises(ValueError, match=r"the columns are 'a', 'b', 'q__qid'") as said:
            LambdaMARTRanker(**FEW, query_column=column).fit(frame, Y)
        assert f"there is no column '{column}' for the query" in str(said.value)
        assert str(said.value).endswith(f"; perhaps '{hint}'" if hint else "'q__qid'")
    with pytest.raises(ValueError, match="perhaps 'qid'"):  # as such columns are usually called
        LambdaMARTRanker(**FEW, query_column="session").fit(frame.rename(columns={"q__qid": "qid"}), Y)
    fitted = LambdaMARTRanker(**FEW, query_column="q__qid").fit(frame, Y)
    for wrong in (frame[["a", "b"]], X[:, :2]):
        with pytest.raises(ValueError, match=r"query_column|there is no column"):
            fitted.score(wrong, Y)
        with pytest.raises(ValueError, match=r"query_column|there is no column"):
            fitted.fit(frame, Y, eval_set=(wrong, Y))
    assert fitted.score(frame[["a", "b"]], Y, qid=QID) == fitted.score(frame, Y)
    with pytest.raises(ValueError, match=r"call set_output\(transform='pandas'\) of the step before"):
        make_pipeline(StandardScaler(), LambdaMARTRanker(**FEW, query_column="q__qid")).fit(frame, Y)


def test_a_column_of_queries_in_any_table() -> None:
    pd, pa, pl = map(pytest.importorskip, ("pandas", "pyarrow", "polars"))
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(query=QID)
    ranker = LambdaMARTRanker(**FEW, query_column="query")
    scores = ranker.fit(frame, Y).predict(frame).tolist()
    for table in (pa.Table.from_pandas(frame), pl.DataFrame(frame)):
        assert ranker.fit(table, Y).predict(table).tolist() == scores
    with pytest.raises(ValueError, match="the columns are 'a', 'b', 'query'"):
        LambdaMARTRanker(query_column="session").fit(pa.Table.from_pandas(frame), Y)
    with pytest.raises(ValueError, match="X is a LazyFrame, not computed yet"):
        ranker.fit(pl.DataFrame(frame).lazy(), Y)
    with pytest.raises(ValueError, match="two columns of X are named 'query'"):
        ranker.fit(pd.concat([frame, frame[["query"]]], axis=1), Y)
    missing = frame.assign(query=[*QID[:-1].astype(object), None])
    with pytest.raises(ValueError, match=r"is missing, in column 'query' of X; give every row the id of its query$"):
        ranker.fit(missing, Y)


def test_permutation_importance_needs_queries_that_are_not_shuffled() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(qid=QID)
    ranker = LambdaMARTRanker(**FEW, query_column="qid").fit(frame, Y)
    with pytest.raises(ValueError, match=r"in column 'qid' of X; sort X and y by it; for permutation_importance leave"):
        permutation_importance(ranker, frame, Y, n_repeats=1)
    found = permutation_importance(
        ranker, frame[["a", "b"]], Y, n_repeats=1, scoring=lambda ranker, X, y: ranker.score(X, y, qid=QID)
    )
    assert found.importances_mean.shape == (2,)


def test_labels_among_the_features_are_told() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :2], columns=["a", "Label"])
    with pytest.warns(UserWarning, match="the feature 'Label' is named as labels usually are; leave it out") as told:
        LambdaMARTRanker(**FEW).fit(frame, Y, qid=QID)
    assert told[0].filename == __file__


@pytest.mark.parametrize("labels", [["2", "1", "10"], [0, 1, 2], [2, 1, 0], ["0", "1", "2"], ["b", "a", "2"]])
def test_columns_of_a_frame_are_those_of_train(labels: list[object], tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :3], columns=labels)
    valid = pd.DataFrame(VALID.to_numpy()[:, :3], columns=labels)
    ranker = LambdaMARTRanker(**FEW).fit(frame, Y, QID, eval_set=(valid, VALID.labels, VALID.qid))
    model = lmart.train(frame, Y, QID, **FEW)
    assert (ranker.model_.feature_ids, ranker.model_.feature_names) == (model.feature_ids, model.feature_names)
    scores = ranker.predict(frame).tolist()
    assert scores == ranker.model_.predict(frame).tolist() == model.predict(frame).tolist()
    assert ranker.score(frame, Y, QID) == model.evaluate(frame, Y, QID)["ndcg@10"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert ranker.model_.predict_letor(tmp_path / "t.csv").tolist() == scores
    shares = ranker.model_.importance()
    assert ranker.feature_importances_.tolist() == [shares[str(label)] for label in labels]
    with warnings.catch_warnings():  # of scikit-learn: an array has no names
        warnings.simplefilter("ignore")
        assert ranker.predict(frame.to_numpy()).tolist() == scores


def test_a_frame_is_scored_in_its_order_when_fit_had_an_array() -> None:
    pd = pytest.importorskip("pandas")
    ranker = LambdaMARTRanker(**FEW).fit(X, Y, QID, eval_set=(pd.DataFrame(X), Y, QID))
    assert ranker.predict(pd.DataFrame(X)).tolist() == ranker.predict(X).tolist()


def test_masked_cells_are_missing_and_masked_labels_refused() -> None:
    hidden = np.ma.array(X, mask=np.median(X) < X)
    plain = np.where(hidden.mask, np.nan, X)
    ranker = LambdaMARTRanker(**FEW).fit(hidden, Y, QID)
    assert ranker.predict(hidden).tolist() == LambdaMARTRanker(**FEW).fit(plain, Y, QID).predict(plain).tolist()
    with pytest.raises(ValueError, match="of y is masked"):
        ranker.fit(X, np.ma.array(Y, mask=Y > 1), QID)
    with pytest.raises(ValueError, match="of weights is masked"):
        ranker.fit(X, Y, QID, sample_weight=np.ma.array(Y, mask=Y > 1))


def test_categories_are_refused_by_the_estimator() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(np.arange(len(Y)) % 3)})
    with pytest.raises(ValueError, match="column 'c' holds categories"):
        LambdaMARTRanker(**FEW).fit(frame, Y, QID)


def test_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), LambdaMARTRanker(**FEW))
    pipeline.fit(X, Y, lambdamartranker__qid=QID)
    assert pipeline.predict(X).shape == (len(Y),)


def test_without_queries_all_rows_are_one_and_that_is_told() -> None:
    ranker = LambdaMARTRanker(**FEW)
    with pytest.warns(UserWarning, match="fit and score take all rows as one query, as no qid is given") as told:
        ranker.fit(X[:100], Y[:100])
    assert told[0].filename == __file__
    same = lmart.train(X[:100], Y[:100], [0] * 100, **FEW)
    assert ranker.predict(X).tolist() == same.predict(X).tolist()
    with pytest.warns(UserWarning, match="one query"):
        assert ranker.score(X[:100], Y[:100]) == same.evaluate(X[:100], Y[:100], [0] * 100)["ndcg@10"]


def test_queries_that_fit_had_are_missed_in_score() -> None:
    ranker = LambdaMARTRanker(**FEW).fit(X, Y, QID)
    with pytest.raises(ValueError, match=r"score needs qid, as fit had it; .*set_score_request\(qid=True\)"):
        ranker.score(X, Y)
    with pytest.raises(ValueError, match="eval_set has no queries, but X has"):
        ranker.fit(X, Y, QID, eval_set=(X, Y))
    with pytest.raises(ValueError, match="eval_set holds a int"):
        ranker.fit(X, Y, QID, eval_set=[1])


def test_settings_are_checked_in_fit() -> None:
    with pytest.raises(lmart.SettingsError, match=r"early_stop needs .* eval_set="):
        LambdaMARTRanker(early_stop=3).fit(X, Y, QID)
    with pytest.raises(lmart.SettingsError, match="trees is -1"):
        LambdaMARTRanker(trees=-1).fit(X, Y, QID)


def test_the_score_is_nan_when_no_query_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ranker = LambdaMARTRanker(**FEW).fit(X, Y, QID)
    monkeypatch.setattr(ranker.model_, "evaluate", lambda *args, **named: {"ndcg@10": None})
    assert np.isnan(ranker.score(X, Y, QID))


def test_without_scikit_learn_the_message_says_what_to_install() -> None:
    program = "import sys; sys.modules['sklearn'] = None\nimport lmart.sklearn"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    what = "lmart.sklearn needs scikit-learn 1.5 or newer: pip install -U scikit-learn"
    assert done.stderr.endswith(f"ImportError: {what}\n")


def test_what_the_estimator_knows_of_its_training() -> None:
    valid = (VALID.to_numpy(), VALID.labels, VALID.qid)
    ranker = LambdaMARTRanker(trees=60, rankers=1, early_stop=5).fit(X, Y, QID, eval_set=[valid, valid])
    curves = {name: curve["ndcg@10"] for name, curve in ranker.evals_result_.items()}
    assert list(curves) == ["training", "valid[0]", "valid[1]"] and curves["valid[0]"] == curves["valid[1]"]
    assert ranker.n_iter_ == len(curves["training"]) == ranker.best_iteration_ + 5 < 60
    assert (
        ranker.best_iteration_ == 1 + int(np.argmax(np.array(curves["valid[0]"], np.float64))) == ranker.model_.n_trees
    )
    assert ranker.model_.history is not None
    ranker.set_params(metric="map,mrr").fit(X, Y, QID, eval_set=valid)
    assert [list(curves) for curves in ranker.evals_result_.values()] == [["map", "mrr"]] * 2
    assert ranker.model_.history is not None
    frame = ranker.model_.history.to_dataframe()
    assert list(frame)[3:] == ["training", "valid", "training mrr", "valid mrr"]
    assert frame["valid mrr"].tolist() == ranker.evals_result_["valid"]["mrr"]
    ranker.set_params(metric="ndcg@10").fit(X, Y, QID, eval_set=[valid, valid])
    assert ranker.model_.history is not None
    frame = ranker.model_.history.to_dataframe()
    assert frame["valid[0]"].tolist() == curves["valid[0]"] and frame["kept"].sum() == ranker.best_iteration_


def test_categories_of_frames() -> None:
    pd = pytest.importorskip("pandas")
    shop = np.array(["a", "b", "7"])[np.digitize(X[:, 0], np.quantile(X[:, 0], [0.4, 0.7]))]
    frame = pd.DataFrame({"a": X[:, 1], "c": pd.Categorical(shop), "qid": QID})
    expected = lmart.train(frame[["a", "c"]], Y, QID, categorical=["c"], **FEW)
    for categorical in (["c"], "auto"):
        ranker = LambdaMARTRanker(categorical=categorical, query_column="qid", early_stop=9, **FEW)
        ranker.fit(frame, Y, eval_set=(frame.astype({"c": str}), Y))
        assert ranker.predict(frame.astype({"c": object})).tolist() == expected.predict(frame[["a", "c"]]).tolist()
        assert ranker.score(frame, Y) == pytest.approx(ranker.evals_result_["valid"]["ndcg@10"][-1])
