"""What programs write with lmart passes `mypy --strict`, and what is wrong does not: mypy reads this file.

Each `type: ignore` names the error that must be there, as an unused one is an error too.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
import numpy.typing as npt
import pytest
from helpers.paths import SAMPLE

import lmart


def test_usage() -> None:
    data = lmart.read(SAMPLE / "train.svm", threads=1)
    assert_type(data, lmart.Dataset)
    rounds: list[lmart.RoundReport] = []
    X, y, qid = data.to_numpy(), data.labels, data.qid
    settings: lmart.Settings = {"trees": 3, "leaves": "auto", "gain": [0, 1, 3, 7, 15]}
    model = lmart.train(X, y, qid=qid, valid=(X, y, qid), threads=1, callback=rounds.append, **settings)
    assert_type(model, lmart.Model)
    assert_type(model.predict(X), npt.NDArray[np.float64])
    assert_type(model.explain(X), lmart.Explanation)
    assert_type(model.evaluate(data), lmart.Evaluation)
    assert_type(lmart.compare(y, {"a": y, "b": y}, qid), lmart.Comparisons)
    assert_type(model.n_trees, int)
    assert_type(lmart.train(X, y, qid, **model.settings), lmart.Model)
    assert_type(model.feature_names, list[str] | None)
    assert_type(rounds[0].validation, tuple[float | None, ...])


def test_mistakes_that_mypy_finds() -> None:
    data = lmart.read(SAMPLE / "train.svm")
    with pytest.raises(TypeError):
        lmart.train(data, n_estimators=3)  # type: ignore[call-arg]
    with pytest.raises(lmart.SettingsError):
        lmart.train(data, trees="many")  # type: ignore[arg-type]
    with pytest.raises(lmart.SettingsError, match="objective is 'lambdamrt'; use"):
        lmart.train(data, objective="lambdamrt")  # type: ignore[arg-type]
    with pytest.raises(lmart.SettingsError, match="tree is 'leaf-wise'; use"):
        lmart.tune(data, folds=2, trials=1, tree="leaf-wise")  # type: ignore[arg-type]
    with pytest.raises(lmart.SettingsError, match="absent is 'nan'; use"):
        lmart.cross_validate(data, absent="nan")  # type: ignore[arg-type]
    with pytest.raises(lmart.LmartError, match="returned a str"):
        lmart.train(data, objective=lambda scores, labels, offsets, weights: "no")  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError):
        lmart.read()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        lmart.fit(data)  # type: ignore[attr-defined]
