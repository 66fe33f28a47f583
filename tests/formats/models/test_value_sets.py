"""Models with categories in the formats of other tools: the scores of those tools, and what they cannot hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lmart
from lmart.array_types import Float64Array
from lmart.data.categories import Categories
from lmart.errors import ModelError
from lmart.formats.models.model_files import content_of, parse_model
from lmart.formats.registry import MODEL_FORMATS
from lmart.scoring.ensemble import Ensemble


def trained(missing: bool = False) -> tuple[Ensemble, Float64Array]:
    """A model of an id and a number, and rows with values that it has not seen, and with 0, where it saw it."""
    rng = np.random.default_rng(4)
    n = 1200
    ids, other = rng.integers(0, 30, n).astype(np.float64), rng.normal(size=n).astype(np.float32).astype(np.float64)
    worth = rng.normal(size=30)
    labels = np.clip(np.round(worth[ids.astype(int)] + 0.3 * other + 1), 0, 3)
    if missing:
        ids[rng.random(n) < 0.1] = np.nan
    settings = {"rankers": 1, "trees": 8, "leaves": 8, "categorical": "1", "seed": 2}
    model = lmart.train(np.column_stack([ids, other]), labels, np.repeat(np.arange(n // 8), 8), **settings)  # type: ignore[arg-type]
    rows = np.column_stack([np.arange(40.0), rng.normal(size=40).astype(np.float32)])
    return model.ensemble, rows


@pytest.mark.parametrize("form", ["lightgbm", "lightgbm-json", "xgboost", "xgboost-ubj"])
@pytest.mark.filterwarnings("ignore:features")
def test_what_is_written_reads_back_to_the_same_scores(form: str) -> None:
    ensemble, rows = trained()
    again = parse_model(content_of(ensemble, "m", form).content, "m", form)
    assert again.categories == ()
    assert any(tree.bounds is not None for tree in again.trees)
    expected = lmart.Model(ensemble).predict(rows)
    assert lmart.Model(again).predict(rows, feature_ids=[1, 2]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.peers
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.filterwarnings("ignore:features")
def test_lightgbm_gives_the_same_scores(missing: bool) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    ensemble, rows = trained(missing)
    made = content_of(ensemble, "m", "lightgbm")
    if not missing:  # else they are sent with unseen values, with a note
        rows = np.vstack([rows, [[np.nan, 0.5]]])
        assert made.notes == ()
    booster = lightgbm.Booster(model_str=made.content.decode())
    beside = np.column_stack([np.zeros(len(rows)), rows])  # column 0 is no feature
    assert booster.predict(beside).tolist() == lmart.Model(ensemble).predict(rows).tolist()


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:features")
def test_xgboost_gives_the_same_scores() -> None:
    xgboost = pytest.importorskip("xgboost")
    ensemble, rows = trained(missing=True)
    rows = np.vstack([rows, [[np.nan, 0.5], [np.nan, -3.0]]])
    booster = xgboost.Booster()
    booster.load_model(bytearray(content_of(ensemble, "m", "xgboost-ubj").content))
    beside = np.column_stack([np.zeros(len(rows)), rows])
    data = xgboost.DMatrix(beside, feature_types=["float", "c", "float"], enable_categorical=True)
    found = booster.predict(data, output_margin=True, validate_features=False)
    assert found == pytest.approx(lmart.Model(ensemble).predict(rows), abs=1e-5)


@pytest.mark.parametrize("form", [name for name, one in MODEL_FORMATS.items() if one.writer and not one.has_sets])
def test_formats_without_sets_say_so(form: str) -> None:
    if form == "onnx":
        pytest.importorskip("onnx")
    ensemble = Ensemble((), np.array([1]), categories=(Categories(0, (1, 2), 1),))
    with pytest.raises(ModelError, match=r"feature '1' is a category, and .* has no splits on sets of values"):
        content_of(ensemble, "m", form)


def test_values_that_other_tools_do_not_know_are_refused() -> None:
    ensemble, _ = trained()
    below = replace(ensemble, categories=(Categories(0, (-1, 3), 1),))
    for form in ("lightgbm", "xgboost"):
        with pytest.raises(ModelError, match=r"category '1' has the value -1, and .* knows none below 0"):
            content_of(below, "m", form)
    texts = replace(ensemble, categories=(Categories(0, ("a", "b"), 1),))
    with pytest.raises(ModelError, match=r"category '1' has texts, and XGBoost only numbers"):
        content_of(texts, "m", "xgboost")
