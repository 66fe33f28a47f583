"""Columns of texts and of categories in DataFrames train and are scored as those of a CSV file of the same data."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmart

pytestmark = pytest.mark.peers
FEW: dict[str, Any] = {"rankers": 1, "trees": 6, "min_docs": 4}
RNG = np.random.default_rng(3)
VALUES = ["plain", "x y", "12", "1.5", "ün"]  # some are texts of numbers
SHOPS = [None if i % 17 == 0 else VALUES[k] for i, k in enumerate(RNG.integers(0, 5, 300))]
PRICES = RNG.normal(size=300).round(3).tolist()
WORTH = {None: 0.0, "plain": 1.0, "x y": -1.0, "12": 0.3, "1.5": -0.3, "ün": 0.6}
WORTHS = RNG.normal(size=300) + [WORTH[shop] + price for shop, price in zip(SHOPS, PRICES, strict=True)]
LABELS = [int(worth > 0.5) for worth in WORTHS]
QID = np.repeat(np.arange(50), 6)


def of_pandas(dtype: str, shops: list[str | None] = SHOPS) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"shop": pd.Series(shops, dtype=dtype), "price": PRICES[: len(shops)]})


def of_polars(dtype: str) -> Any:
    pl = pytest.importorskip("polars")
    types = {"String": pl.String, "Categorical": pl.Categorical, "Enum": pl.Enum(sorted(VALUES))}
    return pl.DataFrame({"shop": SHOPS, "price": PRICES}, schema={"shop": types[dtype], "price": pl.Float64})


def of_pyarrow(encoded: str) -> Any:
    pa = pytest.importorskip("pyarrow")
    shops = pa.array(SHOPS)
    return pa.table({"shop": shops.dictionary_encode() if encoded else shops, "price": PRICES})


FRAMES = [
    *((of_pandas, dtype) for dtype in ("object", "str", "string", "category")),
    *((of_polars, dtype) for dtype in ("String", "Categorical", "Enum")),
    *((of_pyarrow, encoded) for encoded in ("", "dictionary")),
]


@pytest.fixture
def from_file(in_folder: None) -> lmart.Model:
    """The model of a CSV file."""
    rows = zip(LABELS, QID, SHOPS, PRICES, strict=True)
    lines = ["rel,qid,shop,price", *(f"{label},{qid},{shop or ''},{price}" for label, qid, shop, price in rows)]
    Path("d.csv").write_text("\n".join([*lines, ""]))
    return lmart.train(lmart.read("d.csv", categorical="shop"), categorical=["shop"], **FEW)


def written(model: lmart.Model) -> bytes:
    model.save("m.json")
    return Path("m.json").read_bytes()


@pytest.mark.parametrize(("made", "kind"), FRAMES)
def test_a_frame_gives_the_model_of_the_file(made: Callable[[str], Any], kind: str, from_file: lmart.Model) -> None:
    frame = made(kind)
    model = lmart.train(frame, LABELS, QID, categorical=["shop"], **FEW)
    assert written(model) == written(from_file)
    expected = from_file.predict(lmart.read("d.csv", categorical="shop"))
    assert len(set(expected.tolist())) > 5
    assert model.predict(frame).tolist() == expected.tolist()
    automatic = lmart.train(frame, LABELS, QID, (frame, LABELS, QID), categorical="auto", **FEW)
    assert automatic.predict(frame).tolist() == expected.tolist()
    data = lmart.Dataset(frame, LABELS, QID, categorical="auto")
    assert written(lmart.train(data, categorical="shop", **FEW)) == written(from_file)
    assert from_file.predict(pickle.loads(pickle.dumps(data))).tolist() == expected.tolist()
    with pytest.raises(lmart.ArrayError, match=r"column 'shop' holds .*; give categorical=\['shop'\]"):
        lmart.train(frame, LABELS, QID, **FEW)


def test_texts_are_known_by_what_they_say(from_file: lmart.Model) -> None:
    """Whatever numbers a frame has for its categories; what training did not see is counted, once."""
    whole = from_file.predict(of_pandas("object"))
    part = of_pandas("category", SHOPS[1:6])
    part["price"] = PRICES[1:6]
    assert from_file.predict(part).tolist() == whole[1:6].tolist()
    base, contributions = from_file.explain(part)
    assert base + contributions.sum(axis=1) == pytest.approx(whole[1:6])
    with pytest.warns(UserWarning) as told:
        from_file.predict(of_pandas("category", ["new", "plain", None, "other"]))
    assert [str(each.message) for each in told] == [
        "features: 2 rows with a value of category 'shop' that training did not see; "
        "the model has one place for all such values"
    ]
    same = lmart.train(
        of_pandas("object"), LABELS, QID, (of_pandas("category"), LABELS, QID), categorical="shop", **FEW
    )
    history = same.history
    assert history is not None
    curves = {curve.name: curve.values for curve in history.rankers[0].curves_of(history.metrics[0])}
    assert from_file.evaluate(of_pandas("string"), LABELS, QID)["ndcg@10"] == pytest.approx(curves["valid"][-1])


def test_numbers_are_no_texts(from_file: lmart.Model) -> None:
    pd = pytest.importorskip("pandas")
    line = "feature 'shop' is a category of texts, but has the number 1; give its texts"
    frame = pd.DataFrame({"shop": [1], "price": [0.5]})
    data = lmart.Dataset([[1.0, 0.5]], [0], [0])
    for given in ([[1.0, 0.5]], frame, data, lmart.Dataset(frame, [0], [0])):
        with pytest.raises(lmart.ArrayError, match=line):
            from_file.predict(given)
    with pytest.raises(lmart.ArrayError, match=line):
        lmart.train(of_pandas("object"), LABELS, QID, (frame, [0], [0]), categorical="shop", **FEW)
    assert (
        from_file.predict([[np.nan, 0.5]]).tolist()
        == from_file.predict(of_pandas("object", [None]).assign(price=0.5)).tolist()
    )


def test_texts_are_no_numbers() -> None:
    numbers = lmart.train(
        [[float(len(shop or "")), 1.0] for shop in SHOPS], LABELS, QID, feature_names=["shop", "price"]
    )
    with pytest.raises(lmart.ArrayError, match="column 'shop' holds categories; turn them into numbers"):
        numbers.predict(of_pandas("category"))
    data = lmart.Dataset(of_pandas("object"), LABELS, QID, categorical="auto")
    with pytest.raises(lmart.ArrayError, match="feature 'shop' holds texts, but is no category of the model"):
        numbers.predict(data)


def test_categories_of_numbers_and_of_other_things() -> None:
    pd = pytest.importorskip("pandas")
    ids = pd.Series([len(shop or "ab") * 3 for shop in SHOPS])
    models = [
        lmart.train(pd.DataFrame({"shop": column, "price": PRICES}), LABELS, QID, categorical=["shop"], **FEW)
        for column in (ids, ids.astype("category"), ids.astype(str), ids.astype("Int64"), ids.astype(float))
    ]
    assert all(model == models[0] for model in models)
    assert models[0].ensemble.categories[0].values and not models[0].ensemble.categories[0].of_texts
    with pytest.raises(lmart.ArrayError, match="column 'day' holds a Timestamp, no category; turn it into text"):
        lmart.Dataset(pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), [0], [0], categorical="day")


def test_titles_are_left_out_with_a_warning() -> None:
    frame = of_pandas("object").assign(title=[f"t{i}" for i in range(300)])
    with pytest.warns(UserWarning, match="X: column 'title' is left out: its values hardly repeat"):
        lmart.train(frame, LABELS, QID, categorical="auto", **FEW)


def test_folds_and_going_on() -> None:
    frame = of_pandas("category")
    found = lmart.cross_validate(frame, LABELS, QID, folds=3, categorical="auto", **FEW)
    assert found.scores.shape == (300,)
    first = lmart.train(frame, LABELS, QID, categorical=["shop"], **FEW)
    given = {"categorical": ["shop"], "continue_from": first, **FEW}
    more = lmart.train(frame, LABELS, QID, (frame, LABELS, QID), **given)
    assert more.n_trees == 12
    history = more.history
    assert history is not None
    curves = {curve.name: curve.values for curve in history.rankers[0].curves_of(history.metrics[0])}
    assert curves["valid"][-1] == pytest.approx(more.evaluate(frame, LABELS, QID)["ndcg@10"])
