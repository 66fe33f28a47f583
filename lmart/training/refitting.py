"""Training once more on the training and validation data together, with the trees that early stopping found."""

from __future__ import annotations

from dataclasses import replace

from lmart.settings.resolved import ResolvedSettings
from lmart.training.train_result import TrainResult


def settings_of_refit(settings: ResolvedSettings, result: TrainResult) -> ResolvedSettings | None:
    """Return the settings that give each ranker the trees that it has; None where there are none.

    settings : of the first training      result : what it gave
    """
    trained = zip(settings.rankers[: len(result.rankers)], result.rankers, strict=True)
    rankers = tuple(replace(ranker, trees=found.trees) for ranker, found in trained if found.trees)
    if not rankers:
        return None
    return replace(
        settings,
        rankers=rankers,
        trees=result.n_trees,
        linear=0.0 if result.linear is None else result.linear.weight,
        patience=None,
        shares_trees=False,
    )
