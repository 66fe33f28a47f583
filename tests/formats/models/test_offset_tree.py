"""The last tree that makes the least possible score 0, in each format whose tool adds trees in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.float32_rows import models, planted, scores
from hypothesis import given, settings
from hypothesis import strategies as st

from lmart.formats.models.model_files import content_of, parse_model
from lmart.formats.models.targets import least_score, one_leaf, raise_scores
from lmart.formats.registry import MODEL_FORMATS
from lmart.scoring.ensemble import Ensemble

READ_BACK = [one.name for one in MODEL_FORMATS.values() if one.reader and one.writer and one.is_ordered]


@settings(deadline=None, max_examples=30)
@given(models(), st.sampled_from(READ_BACK), st.floats(-9, 9), st.booleans(), st.integers(0, 2**32))
def test_the_least_possible_score_is_zero_and_the_order_stays(
    ensemble: Ensemble, form: str, base: float, average: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    trees = tuple(replace(tree, leaf_values=rng.normal(-1, 1, tree.n_leaves)) for tree in ensemble.trees)
    ensemble = replace(ensemble, trees=trees, base_score=base, average=average)
    raised, offset = raise_scores(ensemble, "m", form)
    before, after = (parse_model(content_of(one, "m", form).content, "m", form) for one in (ensemble, raised))
    values = planted(ensemble)
    ids = ensemble.feature_ids.tolist()
    was, now = (np.array(scores(one, values, ids)) for one in (before, after))
    if not offset:
        assert raised is ensemble
        assert was.min() >= 0 or average
    else:
        assert least_score(after) == 0
        assert now.min() >= 0
    if not average:  # the mean is divided in the leaves, and so rounds otherwise
        order = np.argsort(was, kind="stable")
        assert (np.diff(now[order]) >= 0).all()


@pytest.mark.parametrize("form", READ_BACK)
def test_a_model_without_a_score_below_zero_stays_as_it_is(form: str) -> None:
    ensemble = Ensemble((one_leaf(0.5),), np.array([1]))
    assert raise_scores(ensemble, "m", form) == (ensemble, 0.0)
