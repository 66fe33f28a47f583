"""What `lmart eval` needs of models: their gain and largest label, on which several must agree, and their scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lmart.array_types import Float64Array
from lmart.cli.options.packed import given_on_command_line
from lmart.cli.terminal.console import Console
from lmart.data.dataset import RankingDataset, TableColumns
from lmart.errors import ModelError, SettingsError, input_name
from lmart.gains import Gain
from lmart.measures import Measure
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher, match_dataset
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool


def with_gain_of(
    models: dict[str, Ensemble], measures: tuple[Measure, ...], given: bool, console: Console
) -> tuple[Measure, ...]:
    """Return the measures with the gain of the models, or as they are, with a notice, when another gain was given.

    A notice says which models do not know their gain.

    models   : by file
    measures : to be computed
    given    : --gain or --like is given
    console  : where the notice goes
    ModelError when models of different gains leave open which one counts.
    """
    gains: dict[str, Gain] = {}
    for path, ensemble in models.items():
        try:
            if ensemble.gain is not None:
                gains[path] = Gain.parse(ensemble.gain)
        except SettingsError as fault:
            raise ModelError(f"{fault.message}; give --gain", path) from None
    used, like = measures[0].conventions.gain, measures[0].conventions.like
    if given:
        option = "--gain" if given_on_command_line("gain") else f"--like {like}"
        for path, gain in gains.items():
            if used.simplest() != gain.simplest():
                which = "the model" if len(models) == 1 else path
                console.notice(f"measuring with the gain {used}, as {option} says; {which} was trained with {gain}")
        return measures
    uses_gain = any(one.kind.uses_gain for one in measures)
    first, gain = next(iter(gains.items()), ("", used))
    for path in models:
        if path not in gains and uses_gain:
            what = f"{input_name(path)} does not say with which gain it was trained"
            console.notice(f"{what}; measuring with {gain} (--gain says another)")
    for path, other in gains.items():
        if other.simplest() != gain.simplest() and uses_gain:
            what = f"was trained with the gain {other}, and {input_name(first)} with {gain}"
            raise ModelError(f"{what}; say with --gain which one to measure with", path)
    return tuple(replace(one, conventions=replace(one.conventions, gain=gain)) for one in measures)


def label_scale(
    models: dict[str, Ensemble], measures: tuple[Measure, ...], labels: Float64Array, console: Console
) -> int | None:
    """Return the largest label of err that the models were trained with.

    None when they name none, or the data goes beyond it, which is warned of.

    models   : by file
    measures : to be computed
    labels   : float64, of what is measured
    console  : where the warning goes
    ModelError when the models name different ones.
    """
    scale = named_label_scale(models, measures)
    if scale is not None and labels.max(initial=0.0) > scale:
        console.warning(
            f"the data has labels above {scale}, the largest of err in training; err goes by those of the data"
        )
        return None
    return scale


def named_label_scale(models: dict[str, Ensemble], measures: tuple[Measure, ...]) -> int | None:
    """Return the largest label of err that the models were trained with; None when they name none.

    models   : by file
    measures : to be computed
    ModelError when the models name different ones.
    """
    naming_none = [one for one in measures if one.kind.uses_label_scale and one.largest_label is None]
    named = {path: model.settings.get("largest_label") for path, model in models.items()}
    scales = {path: scale for path, scale in named.items() if type(scale) is int and scale >= 1}
    if not scales or not naming_none:
        return None
    first, scale = next(iter(scales.items()))
    for path, other in scales.items():
        if other != scale:
            what = f"was trained with labels up to {other}, and {input_name(first)} with labels up to {scale}"
            raise ModelError(f"{what}; say which in the measure, as in err@10(max={max(scale, other)})", path)
    return scale


def score(
    ensemble: Ensemble, dataset: RankingDataset, pool: WorkerPool, tell: Callable[[str], None], strict: bool
) -> Float64Array:
    """Return the scores of the model, with warnings of features that only one of data and model has.

    ensemble : the model
    dataset  : what is scored
    pool     : the workers
    tell     : called with each warning
    strict   : refuse data whose features are not those of the model
    """
    matcher = matched(ensemble, dataset, dataset.source, tell, strict)
    return Scorer(ensemble).score(dataset.features, matcher.known_columns, pool)


def matched(
    ensemble: Ensemble, data: TableColumns, source: str, tell: Callable[[str], None], strict: bool
) -> FeatureMatcher:
    """Return the matcher of data to a model, with warnings of features that only one of both has.

    ensemble : the model
    data     : what is scored
    source   : what to call it
    tell     : called with each warning
    strict   : refuse data whose features are not those of the model
    DataError when the data does not belong to the model.
    """
    matcher = match_dataset(ensemble, data)
    matcher.refuse(source, strict)
    for text in matcher.warnings(source):
        tell(text)
    return matcher
