"""Options of `lmart train` that have no effect with the others, and the warnings about them."""

from __future__ import annotations

from collections.abc import Sequence

from lmart.settings import ObjectiveKind, TrainSettings, options


def without_meaning(settings: TrainSettings) -> list[str]:
    """Return the settings that mean nothing to any of the objectives."""
    return [one.name for one in options() if all(_ignores(kind, one.name, settings) for kind in settings.objectives)]


def _ignores(kind: ObjectiveKind, name: str, settings: TrainSettings) -> bool:
    """Return whether a setting means nothing to an objective.

    All gains but those of a table are in the order of labels, so an objective that goes by their order needs none.
    """
    by_labels = kind.relevance == "order of gains" and settings.gain.kind != "table"
    return name in kind.ignored or (name == "gain" and by_labels)


def idle_options(settings: TrainSettings, given: Sequence[str]) -> list[str]:
    """Return a line for each of the settings that changes nothing in this run.

    settings : all settings
    given    : the names of those given on the command line
    """
    warnings = []
    for name in without_meaning(settings):
        if name not in given:
            continue
        if name != "gain":
            warnings.append(f"--{name} has no effect on --objective {settings.objective}")
        elif not settings.measure.kind.uses_gain:
            warnings.append(
                f"--gain has no effect on --objective {settings.objective} and --metric {settings.metric}; "
                "it is kept in the model for lmart eval"
            )
    return warnings
