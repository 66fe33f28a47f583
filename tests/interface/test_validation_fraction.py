"""lmart.train(validation_fraction=...): whole queries of X are held out, and it is as if they were given as valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.paths import SAMPLE

import lmart
from lmart.data.python_dataset import in_memory
from lmart.formats.models.lmart_json import model_to_json
from lmart.training.folds import held_out_queries

DATA = lmart.read(SAMPLE / "train.svm")
X, Y, QID = DATA.to_numpy(), DATA.labels, DATA.qid
STOPPING: Any = {"trees": 60, "rankers": 1, "early_stop": 5}


@pytest.mark.parametrize("per", [None, "query", "row"])
@pytest.mark.parametrize("from_file", [False, True])
def test_the_model_is_that_of_the_same_parts_by_hand(from_file: bool, per: str | None) -> None:
    counts = {None: None, "query": DATA.n_queries, "row": len(DATA)}[per]
    weights = None if counts is None else np.arange(counts) % 3 / 2
    starts = np.linspace(-0.1, 0.1, len(DATA))
    held = held_out_queries(in_memory(DATA, "X"), 0.25, 7, weights)
    assert len(held) == 30
    ids = list(dict.fromkeys(QID.tolist()))
    rows = np.isin(QID, [ids[query] for query in held])
    parts = []
    for chosen in (~rows, rows):
        of_part = weights
        if weights is not None:
            queries = np.isin(np.array(ids), QID[chosen])
            of_part = weights[queries if per == "query" else chosen]
        parts.append(lmart.Dataset(X[chosen], Y[chosen], QID[chosen], weights=of_part, init_scores=starts[chosen]))
    by_hand = lmart.train(parts[0], valid=parts[1], seed=7, **STOPPING)
    given = (DATA, None, None) if from_file else (X, Y, QID)
    found = lmart.train(*given, validation_fraction=0.25, weights=weights, init_scores=starts, seed=7, **STOPPING)
    assert model_to_json(found.ensemble) == model_to_json(by_hand.ensemble)
    assert found.history is not None and by_hand.history is not None
    assert found.history.rankers[0].curves[1].values == by_hand.history.rankers[0].curves[1].values
    assert found.history.measures[1][0] == "valid"


def test_shares_are_even_and_do_not_depend_on_the_order_of_the_data() -> None:
    judged = in_memory(DATA, "X")
    reverse = in_memory(lmart.Dataset(X[::-1], Y[::-1], QID[::-1]), "X")
    for share, expected in ((0.1, 12), (0.5, 60), (0.001, 1), (0.999, 119)):
        held = held_out_queries(judged, share, 0)
        assert len(held) == expected and len(set(held.tolist())) == expected
        names = [{data.query_ids[q] for q in held_out_queries(data, share, 0)} for data in (judged, reverse)]
        assert names[0] == names[1]
    assert held_out_queries(judged, 0.1, 0).tolist() != held_out_queries(judged, 0.1, 1).tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"valid": DATA}, "validation_fraction holds out queries of X for validation; give no valid"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0; give a share between 0 and 1"),
        ({"validation_fraction": "0.2"}, "validation_fraction is '0.2'; give a share"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(lmart.SettingsError, match=said):
        lmart.train(DATA, **{"validation_fraction": 0.2, "trees": 1} | given)
