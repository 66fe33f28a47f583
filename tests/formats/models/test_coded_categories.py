"""Models that LightGBM and XGBoost trained on categories of a DataFrame: the scores that they give its values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmart
from lmart.errors import ModelError
from lmart.formats.models.coded_categories import category_of_codes
from lmart.formats.models.model_files import content_of, parse_model

GROUPS = [6] * 50


def frame() -> tuple[Any, Any]:
    """Columns of texts, whole numbers and truth values that are categories, with missing ones, and labels by them."""
    pd: Any = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(1), sum(GROUPS)
    shop, size, flag = rng.choice(["b", "a, c", "ünï"], n), rng.choice([7, 0, 11], n), rng.random(n) < 0.5
    labels = (shop == "b") * 1 + (size == 7) * 1 + flag
    shops = pd.Series(shop).where(rng.random(n) > 0.1)
    columns = {"x": rng.random(n).round(3), "shop": shops, "size": size, "flag": flag, "land": "de"}
    return pd.DataFrame(columns).astype(dict.fromkeys(["shop", "size", "flag", "land"], "category")), labels


def same_scores(model: lmart.Model, X: Any, expected: Any, folder: Path) -> None:
    """Assert that the model, and what is written of it, gives these scores, to a frame and to a table."""
    texts = [model.ensemble.feature_name(each.column) for each in model.ensemble.categories if each.of_texts]
    assert model.predict(X).tolist() == expected.tolist()
    X.assign(rel=0, qid=1).to_csv(folder / "t.csv", index=False)
    assert model.predict(lmart.read(folder / "t.csv", categorical=texts)).tolist() == expected.tolist()
    again = parse_model(content_of(model.ensemble, "m.json", "lmart").content, "m.json")
    assert lmart.Model(again).predict(X).tolist() == expected.tolist()


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_lightgbm(tmp_path: Path) -> None:
    lightgbm: Any = pytest.importorskip("lightgbm")
    X, y = frame()
    settings = {"objective": "lambdarank", "verbose": -1, "num_leaves": 6, "min_data_per_group": 5, "cat_smooth": 1}
    booster = lightgbm.train({**settings, "num_threads": 1}, lightgbm.Dataset(X, y, group=GROUPS), 6)
    expected = booster.predict(X)
    (tmp_path / "m.txt").write_text(booster.model_to_string())
    (tmp_path / "m.json").write_text(json.dumps(booster.dump_model()))
    for name in ("m.txt", "m.json"):
        model = lmart.load(tmp_path / name)
        assert [each.values for each in model.ensemble.categories] == [
            ("a, c", "b", "ünï"),
            (0, 7, 11),
            ("False", "True"),
            ("de",),
        ]
        same_scores(model, X, expected, tmp_path)
        base, contributions = model.explain(X)
        theirs = booster.predict(X, pred_contrib=True)
        assert contributions == pytest.approx(theirs[:, :-1], abs=1e-6)
        assert base == pytest.approx(theirs[0, -1], abs=1e-6)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_xgboost(tmp_path: Path) -> None:
    xgboost: Any = pytest.importorskip("xgboost")
    X, y = frame()
    X = X.drop(columns="flag")  # it takes no categories of truth values
    beyond = xgboost.train({"tree_method": "hist"}, xgboost.DMatrix(X, y, enable_categorical=True), 3)
    beyond.save_model(tmp_path / "m.json")
    with pytest.raises(ModelError, match="texts beyond ASCII"):
        lmart.load(tmp_path / "m.json")
    X["shop"] = X["shop"].cat.rename_categories({"ünï": "u"})
    data = xgboost.DMatrix(X, y, group=GROUPS, enable_categorical=True)
    settings = {"objective": "rank:ndcg", "max_leaves": 6, "tree_method": "hist", "min_child_weight": 0, "nthread": 1}
    booster = xgboost.train(settings, data, 6)
    for name in ("m.json", "m.ubj"):
        booster.save_model(tmp_path / name)
        model = lmart.load(tmp_path / name)
        assert model.ensemble.categories[0].values == ("a, c", "b", "u")
        same_scores(model, X, booster.predict(data).astype(np.float64), tmp_path)


def test_values_that_are_no_categories() -> None:
    for listed in ([1.5], ["a", "a"], [None], [2.0**60], [float("nan")]):
        assert category_of_codes(0, listed) is None
    made = category_of_codes(2, [4.0, 0, 7])
    assert made is not None and made.values == (4, 0, 7)
    assert made.numbers.tolist() == [-1.0, 0.0, 1.0]
    assert made.unseen_number == -2.0
    mixed = category_of_codes(0, ["a", 5, True])
    assert mixed is not None and mixed.values == ("a", "5", "True")
