"""The door for Python programs."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from trees import grow, plain_scores

from lmart.ensemble import Ensemble
from lmart.errors import DataError, ModelError
from lmart.formats.model_json import write_model
from lmart.model import Model, load

SAMPLE = Path(__file__).parent.parent / "data" / "sample" / "test.svm"


def sample_model(names: tuple[str, ...] | None = None, absent: str = "zero") -> Ensemble:
    rng = random.Random(2)
    trees = tuple(grow(rng, 9, range(3), [0.5, 1.5, 2.5]) for _ in range(5))
    return Ensemble(trees, np.array([2, 5, 9]), names, absent=absent)


ROWS = [[0.0, 1.0, 2.0], [math.nan, 0.5, 9.0], [3.0, math.nan, -1.0]]


def expected(ensemble: Ensemble, rows: list[dict[int, float]]) -> list[float]:
    return plain_scores(ensemble, rows)


def test_columns_are_the_features_in_order(tmp_path: Path) -> None:
    ensemble = sample_model()
    write_model(ensemble, str(tmp_path / "m.json"))
    model = load(str(tmp_path / "m.json"))
    assert model.feature_ids == [2, 5, 9]
    assert model.feature_names is None
    scores = expected(ensemble, [dict(enumerate(row)) for row in ROWS])
    assert model.predict(ROWS).tolist() == scores
    assert model.predict(np.asfortranarray(ROWS), threads=2).tolist() == scores
    assert model.predict(np.array(ROWS, np.float32)).tolist() == scores
    assert model.predict(np.zeros((0, 3))).tolist() == []


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_columns_may_be_named(absent: str) -> None:
    ensemble = sample_model(("a", "b", "c"), absent)
    model = Model(ensemble)
    assert model.feature_names == ["a", "b", "c"]
    scores = expected(ensemble, [{2: row[0], 0: row[2]} for row in ROWS])
    assert model.predict(ROWS, feature_ids=[9, 4, 2]).tolist() == scores
    assert model.predict(ROWS, feature_names=["c", "x", "a"]).tolist() == scores


def test_wrong_arrays_are_refused() -> None:
    model = Model(sample_model())
    with pytest.raises(ValueError, match="features has 1 dimensions"):
        model.predict([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="features has 2 columns, where 3 are due"):
        model.predict([[1.0, 2.0]])
    with pytest.raises(ValueError, match="features has 3 columns, where 2 are due"):
        model.predict(ROWS, feature_ids=[2, 5])
    with pytest.raises(ValueError, match="no feature names"):
        model.predict(ROWS, feature_names=["a", "b", "c"])
    with pytest.raises(DataError, match="no feature of the data is in the model"):
        model.predict(ROWS, feature_ids=[1, 3, 4])


def test_threads_may_share_a_model() -> None:
    model = Model(sample_model())
    rows = np.random.default_rng(1).normal(1, 1, (500, 3))
    alone = model.predict(rows)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: model.predict(rows), range(40)):
            assert (scores == alone).all()


def test_files(tmp_path: Path) -> None:
    ensemble = Ensemble(sample_model().trees, np.array([1, 2, 20]))
    data = tmp_path / "d.svm"
    data.write_text("1:1 2:2 20:3\n\n7:1\n")
    scores = expected(ensemble, [{0: 1.0, 1: 2.0, 2: 3.0}, {}])
    assert Model(ensemble).predict_letor(str(data)).tolist() == scores
    assert len(Model(ensemble).predict_letor(str(SAMPLE), threads=2)) == len(SAMPLE.read_text().splitlines())
    with pytest.raises(ModelError):
        load(str(data))
    with pytest.raises(DataError, match="no such file"):
        Model(ensemble).predict_letor(str(tmp_path / "no"))
