"""Options of `lmart train` that have no effect with the others, and the warnings about them."""

from __future__ import annotations

from collections.abc import Sequence

from lmart.measures import parse_measure
from lmart.settings import TrainSettings

IGNORED_BY = {
    "truncation": ("xendcg",),
    "normalize": ("xendcg",),
    "gain": ("ranknet", "map", "mrr", "err", "yetirank"),
}
"""Objectives that a setting means nothing to."""


def without_meaning(settings: TrainSettings) -> list[str]:
    """Return the settings that mean nothing to the objective."""
    return [name for name, ignoring in IGNORED_BY.items() if set(settings.objectives) <= set(ignoring)]


def idle_options(settings: TrainSettings, given: Sequence[str]) -> list[str]:
    """Return a line for each of the settings `given` on the command line that changes nothing in this run."""
    warnings = []
    for name in without_meaning(settings):
        if name not in given:
            continue
        if name == "gain":
            if parse_measure(settings.metric).name in ("ndcg", "dcg"):
                continue
            if settings.gain.kind == "table" and "ranknet" in settings.objectives:
                continue  # it goes by the order of gains, which may be another than that of labels
            warnings.append(
                f"--gain has no effect on --objective {settings.objective} and --metric {settings.metric}; "
                "it is kept in the model for lmart eval"
            )
        else:
            warnings.append(f"--{name} has no effect on --objective {settings.objective}")
    return warnings
