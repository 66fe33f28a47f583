"""The report of a run: its record, what `train --report` writes, and RunReport, which reads and checks that."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmart.errors import DataError, LmartError, counted, load_package, quote, visible
from lmart.measures.results import numbered
from lmart.reports.model_summary import FeatureImportance, changed_settings
from lmart.scoring.importance import importance_by_name, split_importance
from lmart.streams import read_all
from lmart.strict_json import NotStrict, check_numbers, strict_json

if TYPE_CHECKING:
    from lmart.data.dataset import DataSize
    from lmart.data.metadata import Positions
    from lmart.settings.resolved import ResolvedSettings
    from lmart.training.cross_validation import CrossValidation, FurtherMeasure
    from lmart.training.measured import Measures
    from lmart.training.rankers import RoundReport
    from lmart.training.search_space import Dimension
    from lmart.training.train_result import TrainResult
    from lmart.training.tuning import Trial

KEYS = ("settings", "rounds", "rankers", "metric")
"""Keys that together only reports have."""
SURROGATE = re.compile("[\ud800-\udfff]")
ROUNDING = 1e-9  # by which a share may be above 1


# ---- writing


@dataclass
class RunRecord:
    """What is collected during a run for its report.

    seconds  : by stage
    rounds   : each round of the run
    training : the measures of the training set after each round; empty when there is no report
    """

    seconds: dict[str, float] = field(default_factory=dict)
    rounds: list[RoundReport] = field(default_factory=list)
    training: list[Measures] = field(default_factory=list)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Record the seconds of a stage that succeeds."""
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start

    def add(self, report: RoundReport, in_detail: bool) -> None:
        """Add a round."""
        self.rounds.append(report)
        if in_detail:
            self.training.append(report.measure_all())


def run_entries(
    result: TrainResult,
    settings: ResolvedSettings,
    dataset: DataSize,
    record: RunRecord,
    files: Mapping[str, object],
    continued_from: Mapping[str, object] | None,
    warnings: Sequence[str],
    positions: Positions | None,
) -> dict[str, Any]:
    """Return the entries of a report but those of cross-validation and a search.

    result, settings, dataset, record : of the run
    files          : by what they are for; names in Python
    continued_from : the model that the run went on from; None: a new model
    warnings       : of the run
    positions      : of the documents of the training set
    """
    content = _first_entries(result, settings, dataset, record) | {"files": dict(files)}
    if continued_from is not None:
        content["continued_from"] = dict(continued_from)
    content["seconds"] = record.seconds | result.seconds
    content |= _optional_entries(result, settings)
    content["warnings"] = list(warnings)
    if positions is not None:
        content["position_bias"] = dict(zip(positions.names, result.position_bias.tolist(), strict=True))
    return content


def _first_entries(
    result: TrainResult, settings: ResolvedSettings, dataset: DataSize, record: RunRecord
) -> dict[str, Any]:
    """Return settings, data, rounds, rankers, measures and features."""
    return {
        "settings": settings.recorded.to_json(),
        "data": {
            "documents": dataset.n_documents,
            "queries": dataset.n_queries,
            "features": dataset.n_features,
            "idle_queries": result.n_idle_queries,
            "split_features": result.n_features_split,
        },
        "metric": str(settings.measure),
        "sample": result.sampling_rate,
        "rounds": [
            {"ranker": line.ranker, "round": line.round} | _measured(line.validation_measures, of_training)
            for line, of_training in zip(record.rounds, record.training, strict=True)
        ],
        "stopped": result.stopped,
        "best_round": result.n_trees,
        "rankers": _rankers_of(result),
        **_measured(result.validation_measures, result.training_measures),
        "importance": importance_by_name(result.ensemble, split_importance(result.ensemble)),
    }


def _measured(validation: Sequence[Measures], training: Measures | None = None) -> dict[str, Any]:
    """Return the entries of measures of data sets: the first measure, and further ones by name if there are any."""
    sets = [*([] if training is None else [training]), *validation]
    if not sets:
        return {"validation": []}

    def entries(name: str) -> dict[str, Any]:
        """Return the entries of one measure."""
        of_training = {} if training is None else {"training": training[name]}
        return of_training | {"validation": [of_set[name] for of_set in validation]}

    first, *further = sets[0]
    return entries(first) | _further({name: entries(name) for name in further})


def _further(entries: Mapping[str, object]) -> dict[str, Any]:
    """Return the entry of further measures; none without any."""
    return {"further": entries} if entries else {}


def _rankers_of(result: TrainResult) -> list[dict[str, Any]]:
    """Return which trees belong to which ranker: first_tree from 1, null when it has none."""
    rankers: list[dict[str, Any]] = []
    first = 1 + (result.continued_from or 0)
    for ranker in result.rankers:
        rankers.append(
            {
                "objective": ranker.objective,
                "tree": ranker.tree,
                "leaves": ranker.leaves,
                "features": ranker.features,
                "seed": ranker.seed,
                "first_tree": first if ranker.trees else None,
                "trees": ranker.trees,
                "rounds": ranker.rounds,
                "stopped": ranker.stopped,
                **_measured(ranker.validation_measures),
            }
        )
        first += ranker.trees
    return rankers


def stopping_probability(settings: ResolvedSettings) -> str:
    """Return the equation of the probability with which a reader stops, in expected reciprocal rank."""
    return f"(2^label - 1) / 2^{settings.largest_label}"


def _optional_entries(result: TrainResult, settings: ResolvedSettings) -> dict[str, Any]:
    """Return the entries of --report that only some runs have: linear ranker, initial scores, label scale of err."""
    entries: dict[str, Any] = {}
    if result.linear is not None:
        linear = result.linear
        entries["linear"] = {"weight": linear.weight, "trees": linear.trees, **_measured(linear.validation_measures)}
    if result.start is not None:
        entries["start"] = _measured(result.start.validation_measures, result.start.training_measures)
    if settings.uses_label_scale:
        entries["err"] = stopping_probability(settings)
    return entries


def refit_entries(refitted: TrainResult) -> dict[str, object]:
    """Return the entries that are of the model of all data, after a last training on it."""
    ensemble = refitted.ensemble
    return {
        "importance": importance_by_name(ensemble, split_importance(ensemble)),
        "refit": {"trees": len(ensemble.trees), "training": refitted.training},
    }


def tuning_entry(space: Sequence[Dimension], trials: Sequence[Trial], best: int | None) -> dict[str, Any]:
    """Return the entry of a search for settings."""
    return {
        "searched": [setting.name for setting in space],
        "trials": [trial.to_json() for trial in trials],
        "best": None if best is None else best + 1,
    }


def folds_entry(crossed: CrossValidation, level: float) -> dict[str, Any]:
    """Return the entry of cross-validation."""
    return {
        "trees": crossed.trees,
        "rankers": crossed.n_rankers,
        "mean": crossed.mean,
        **({} if crossed.start is None else {"start": crossed.start}),
        "interval": None if crossed.interval is None else list(crossed.interval),
        "interval_is": f"of the mean, {level:.0%}, by Student's t over the folds, cut to what the measure can be",
        "standard_error_over_queries": crossed.standard_error,
        "folds": [
            {
                "fold": number,
                **({"name": crossed.names[number - 1]} if crossed.names else {}),
                "queries": fold.n_queries,
                "documents": fold.n_documents,
                "measure": _or_none(fold.measure),
                "best_round": fold.best_round,
                "best": _or_none(fold.best),
                "rounds": fold.rounds,
            }
            for number, fold in enumerate(crossed.folds, 1)
        ],
        "curve": crossed.curve.tolist(),
        **_further({name: _further_entry(found) for name, found in crossed.further.items()}),
        "fold_of_query": (crossed.fold_of_query + 1).tolist(),
        "warnings": list(crossed.warnings),
    }


def _further_entry(found: FurtherMeasure) -> dict[str, Any]:
    """Return the entry of a further measure over folds."""
    return {
        "mean": _or_none(found.mean),
        "interval": None if found.interval is None else list(found.interval),
        "standard_error_over_queries": found.standard_error,
        "folds": [_or_none(value) for value in found.measures],
        "curve": [_or_none(value) for value in found.curve.tolist()],
    }


def json_text(content: Mapping[str, object]) -> str:
    """Return the report as strict JSON; bytes of names that are not UTF-8 are escaped, as in messages."""
    text = json.dumps(content, indent=1, allow_nan=False)
    if "\\ud" in text:  # perhaps a lone surrogate, which is what Python makes of such bytes
        text = json.dumps(_without_surrogates(content), indent=1, allow_nan=False)
    return text + "\n"


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return SURROGATE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(entry) for entry in value]
    return value


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


# ---- reading


@dataclass(frozen=True)
class Curve:
    """The measure of one data set after each round of a ranker."""

    name: str
    values: tuple[float | None, ...]

    @property
    def best(self) -> int | None:
        """The place of the largest value, the first of equals, from 0; None when there is no value."""
        measured = [(value, -place) for place, value in enumerate(self.values) if value is not None]
        return -max(measured)[1] if measured else None


@dataclass(frozen=True)
class RankerRun:
    """How the training of one ranker went.

    first_tree : number of the first of them in the model, from 1; None when there is none
    stopped    : 'trees', 'early' or 'split'
    curves     : of the first measure, a curve for each data set
    further    : the same of further measures, by name
    """

    objective: str
    tree: str
    leaves: int
    features: float
    trees: int
    first_tree: int | None
    stopped: str
    rounds: tuple[int, ...]
    curves: tuple[Curve, ...]
    further: Mapping[str, tuple[Curve, ...]] = field(default_factory=dict)

    def curves_of(self, metric: str) -> tuple[Curve, ...]:
        """Return the curves of a further measure, or of the first."""
        return self.further.get(metric, self.curves)


@dataclass(frozen=True, eq=False, repr=False)
class RunReport:
    """How the training of a model went: `Model.history`, and the file of `lmart train --report`.

    content    : the report as JSON values, as lmart-report(5) describes them
    metric     : the measure of `measures` and of the curves of rankers: the first, which decides
    rankers    : in the order of training
    measures   : measure of the whole model by set: training, then each validation file
    importance : features that are split on, the most important first; None in reports without it
    changed    : settings that differ from the defaults
    further    : `measures` of the further measures, by name

    >>> import lmart
    >>> data, valid = lmart.read("data/sample/train.svm"), lmart.read("data/sample/vali.svm")
    >>> run = lmart.train(data, valid=valid, rankers=1, trees=100, early_stop=10).history
    >>> run
    <lmart.RunReport: ndcg@10 on 2 sets after 43 rounds, best 33>
    >>> training, validation = run.rankers[0].curves
    >>> len(validation.values), validation.best
    (43, 32)
    """

    content: Mapping[str, Any]
    metric: str
    rankers: tuple[RankerRun, ...]
    measures: tuple[tuple[str, float | None], ...]
    importance: tuple[FeatureImportance, ...] | None
    changed: dict[str, Any]
    further: Mapping[str, tuple[tuple[str, float | None], ...]] = field(default_factory=dict)

    @property
    def metrics(self) -> list[str]:
        """All measures, the first first."""
        return [self.metric, *self.further]

    @property
    def best_round(self) -> int:
        """The number of rounds whose trees the model holds, those of all rankers together."""
        return sum(ranker.trees for ranker in self.rankers)

    @property
    def rounds(self) -> int:
        """The number of rounds that ran."""
        return sum(len(ranker.rounds) for ranker in self.rankers)

    @property
    def seconds(self) -> dict[str, float]:
        """The wall time of each stage."""
        return dict(self.content["seconds"])

    @property
    def warnings(self) -> list[str]:
        """What may be wrong with the data or the settings."""
        return list(self.content["warnings"])

    def __repr__(self) -> str:
        sets = counted(len(self.measures), "set")
        rounds = counted(self.rounds, "round")
        return f"<lmart.RunReport: {self.metric} on {sets} after {rounds}, best {self.best_round:,}>"

    def to_dataframe(self) -> Any:
        """Return a DataFrame of pandas, a row for each round: see `table`."""
        header, rows = self.table()
        return load_package("pandas", "a DataFrame", LmartError).DataFrame(rows, columns=header)

    def to_json(self) -> dict[str, Any]:
        """Return the report of `lmart show` as plain JSON values."""
        return {
            "metric": self.metric,
            "data": self.content.get("data"),
            "files": self.content.get("files"),
            "run": self.content.get("run"),
            "measures": _set_values(self.measures),
            **_further({name: _set_values(values) for name, values in self.further.items()}),
            "stopped": self.content.get("stopped"),
            "settings": self.content["settings"],
            "changed_settings": self.changed,
            "rankers": [_ranker_to_json(ranker) for ranker in self.rankers],
            "importance": None if self.importance is None else [*map(_importance_to_json, self.importance)],
            "seconds": self.content.get("seconds"),
            "warnings": self.content.get("warnings"),
            **{name: self.content[name] for name in ("cross_validation", "tuning") if name in self.content},
        }

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return the curves as the header and the rows of a table: a row a round, with 1 where the model has its tree.

        None stands where no query counts. Columns of further measures have their names behind those of the sets.
        """
        names = [name for name, _ in self.measures] if self.rankers else []
        names += [f"{name} {metric}" for metric in self.further for name in names]
        rows: list[list[object]] = []
        for number, ranker in enumerate(self.rankers, 1):
            for place, round_number in enumerate(ranker.rounds):
                kept = int(place < ranker.trees)
                curves = (curve for metric in self.metrics for curve in ranker.curves_of(metric))
                rows.append([number, round_number, kept, *(curve.values[place] for curve in curves)])
        return numbered(["ranker", "round", "kept", *names]), rows


def is_report(document: object) -> bool:
    """Return whether a JSON document is what `train --report` writes."""
    return isinstance(document, dict) and all(key in document for key in KEYS)


def parse_report(content: bytes, path: str) -> dict[str, Any] | None:
    """Return the JSON object of a report, None for something else; DataError when it is JSON that says two things."""
    try:
        document = strict_json(content)
    except NotStrict as fault:
        raise DataError(f"this JSON cannot be read: {fault}; write the report again", path) from None
    except ValueError:
        return None
    return document if is_report(document) else None


def load_report(path: str) -> RunReport:
    """Read the report of a run; DataError when it cannot be read, is no report, or damaged."""
    document = parse_report(read_all(path), path)
    if document is None:
        raise DataError("this is not a training report; give a file that lmart train --report wrote", path)
    return read_report(document, path)


def read_report(document: Mapping[str, Any], path: str) -> RunReport:
    """Return the report, checked; DataError when it is damaged."""
    try:
        return _read(document)
    except _Damage as fault:
        raise DataError(f"this training report is damaged: {fault}; write it again with train --report", path) from None


class _Damage(Exception):
    """What is wrong with a report."""


def _read(document: Mapping[str, Any]) -> RunReport:
    try:
        check_numbers(document)
    except NotStrict as fault:
        raise _Damage(str(fault)) from None
    settings = _checked(document, "settings", dict)
    validation = _checked(_checked(document, "files", dict), "validation", list)
    names = ["training", *map(str, validation)]
    rounds = _checked(document, "rounds", list)
    further = [*_checked(document, "further", dict)] if "further" in document else []
    rankers = []
    for number, found in enumerate(_checked(document, "rankers", list), 1):
        own = [line for line in rounds if isinstance(line, dict) and line.get("ranker") == number]
        rankers.append(_ranker(found, number, own, names, further))
    if sum(len(ranker.rounds) for ranker in rankers) != len(rounds):
        raise _Damage("'rounds' holds one of no ranker")

    def of_sets(name: str | None = None) -> tuple[tuple[str, float | None], ...]:
        """Return the first measure of each set, or a further one."""
        return tuple(zip(names, _values(document, len(names), name), strict=True))

    return RunReport(
        document,
        visible(str(document["metric"])),
        tuple(rankers),
        of_sets(),
        _importance(document.get("importance")),
        changed_settings(settings),
        {visible(name): of_sets(name) for name in further},
    )


def _ranker(
    content: object, number: int, rounds: Sequence[Mapping[str, Any]], names: Sequence[str], further: Sequence[str]
) -> RankerRun:
    """Return how a ranker went; `names` of sets, `further` measures."""
    if not isinstance(content, dict):
        raise _Damage(f"ranker {number} is not an object")

    def curves(name: str | None = None) -> tuple[Curve, ...]:
        """Return the curves of the first measure, or of a further one."""
        values = [_values(entry, len(names), name) for entry in rounds]
        return tuple(Curve(of_set, tuple(row[place] for row in values)) for place, of_set in enumerate(names))

    numbers = [_checked(entry, "round", int) for entry in rounds]
    trees = _checked(content, "trees", int)
    if not 0 <= trees <= len(numbers):
        raise _Damage(f"ranker {number} has {trees} trees of {len(numbers)} rounds")
    first = content.get("first_tree")
    return RankerRun(
        _checked(content, "objective", str),
        _checked(content, "tree", str),
        _checked(content, "leaves", int),
        float(_checked(content, "features", (int, float))),
        trees,
        first if isinstance(first, int) else None,
        _checked(content, "stopped", str),
        tuple(numbers),
        curves(),
        {visible(name): curves(name) for name in further},
    )


def _checked(entries: Mapping[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    """Return an entry of the type that it must have."""
    value = entries.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _Damage(f"{quote(key)} is {'missing' if key not in entries else 'not what it must be'}")
    return value


def _values(entries: Mapping[str, Any], n: int, name: str | None) -> list[float | None]:
    """Return the first measure of n data sets, or a further one."""
    if name is not None:
        entries = _checked(_checked(entries, "further", dict), name, dict)
    return [_measure(entries, "training"), *_measures(entries, n - 1)]


def _measures(entries: Mapping[str, Any], n: int) -> list[float | None]:
    values = _checked(entries, "validation", list)
    if len(values) != n:
        raise _Damage(f"'validation' has {len(values)} measures for {n} files")
    return [_measure({"validation": value}, "validation") for value in values]


def _measure(entries: Mapping[str, Any], key: str) -> float | None:
    value = entries.get(key)
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _Damage(f"{quote(key)} is not a measure")
    return float(value)


def _importance(entries: object) -> tuple[FeatureImportance, ...] | None:
    if entries is None:
        return None
    if not isinstance(entries, dict):
        raise _Damage("'importance' is not an object")
    found = []
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise _Damage(f"the importance of {quote(name)} is not an object")
        share = _measure(entry, "gain_share")
        if share is not None and not 0 <= share <= 1 + ROUNDING:
            raise _Damage(f"the gain share of {quote(name)} is not from 0 to 1")
        found.append(FeatureImportance(name, share, _checked(entry, "splits", int)))
    if len({importance.gain_share is None for importance in found}) > 1:
        raise _Damage("'importance' has the gain share of some features only")
    return tuple(found)


def _importance_to_json(importance: FeatureImportance) -> dict[str, Any]:
    return {"feature": importance.feature, "gain_share": importance.gain_share, "splits": importance.splits}


def _set_values(values: Sequence[tuple[str, float | None]]) -> list[dict[str, Any]]:
    return [{"set": name, "value": value} for name, value in values]


def _curves_to_json(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    return [{"set": curve.name, "values": list(curve.values)} for curve in curves]


def _ranker_to_json(ranker: RankerRun) -> dict[str, Any]:
    return {
        "objective": ranker.objective,
        "tree": ranker.tree,
        "leaves": ranker.leaves,
        "features": ranker.features,
        "first_tree": ranker.first_tree,
        "trees": ranker.trees,
        "stopped": ranker.stopped,
        "rounds": list(ranker.rounds),
        "curves": _curves_to_json(ranker.curves),
        **_further({name: _curves_to_json(curves) for name, curves in ranker.further.items()}),
    }
