"""Continuing a model: boosting starts at its scores, and the new model holds its trees and then the new trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.categories import Categories
from lmart.data.metadata import Metadata
from lmart.errors import ModelError, SettingsError, counted, first_repeated, input_name, quote
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.settings import AUTO, OBJECTIVES, TrainSettings
from lmart.training.rankers import LARGEST_SCORE

NOT_OF_TREES = ("early_stop", "metric")  # settings that change how many trees there are, not which


class Difference(NamedTuple):
    """Why a single run of all rounds would not give the same bytes.

    text     : in words
    of_trees : the trees differ too
    """

    text: str
    of_trees: bool = True


class Prepared(NamedTuple):
    """A model that a run may continue, with the settings of that run.

    settings : with the objective and the meaning of absent cells of the model, where you give none
    warnings : lines about what the run does not keep of the model
    """

    model: Ensemble
    settings: TrainSettings
    notices: list[str]
    warnings: list[str]


def prepare(model: Ensemble, path: str, settings: TrainSettings, gives_absent: bool) -> Prepared:
    """Return a model to continue, and the settings with the meaning of absent cells from it.

    settings : of a single ranker

    ModelError when no tree can be added; SettingsError when `linear` is above 0, or `absent` contradicts it.
    """
    notices: list[str] = []
    warnings: list[str] = []
    if settings.linear:
        raise SettingsError("linear does not go with a model to go on from: only trees are added; leave it out")
    if model.average:
        what = "the model is an average, to which no tree can be added"
        raise ModelError(f"{what}; write its scores with 'lmart predict' and give them with --init-scores", path)
    if model.absent != settings.absent:
        if gives_absent:
            what = f"--absent {settings.absent} does not go with a model that says {quote(model.absent)}"
            raise SettingsError(f"{what}; leave it out")
        notices.append(f"an index that is not in the row means {quote(model.absent)}, as in {input_name(path)}")
        settings = replace(settings, absent=model.absent)
    if settings.objective is None and not model.rankers and model.settings.get("objective") in OBJECTIVES:
        settings = replace(settings, objective=model.settings["objective"])  # as a single run of all trees has
    if model.categories and settings.categorical != AUTO:
        own = [model.feature_name(each.column) for each in model.categories]
        settings = replace(settings, categorical=",".join(dict.fromkeys((*own, *settings.categories))))
    if added := [name for name in settings.categories if _is_number(model, name)]:
        what = f"categorical names {quote(added[0])}, which is no category in {input_name(path)}"
        raise SettingsError(f"{what}; leave it out")
    if model.sums == "float32":
        what = "it adds up in float32 and the new model in float64, so the scores of its trees differ by rounding"
        warnings.append(f"{input_name(path)}: {what}")
    if settings.monotone and settings.monotone != model.settings.get("monotone"):
        what = "--monotone holds for the new trees only"
        warnings.append(f"{what}: {input_name(path)} does not record the same")
    return Prepared(replace(model, sums="float64"), settings, notices, warnings)


def _is_number(model: Ensemble, name: str) -> bool:
    """Return whether a model splits on a feature of this name as on a number."""
    columns = {column for tree in model.trees for column in tree.split_columns.tolist()}
    columns -= {each.column for each in model.categories}
    return name in {model.feature_name(column) for column in columns}


@dataclass(frozen=True, eq=False)
class Continuation:
    """A model that a run continues, and its scores.

    model      : the sum of its trees in float64
    training   : float64[n_documents], its scores of the training set
    validation : the same of each validation set
    of_model   : float64[n_documents], its scores of the training set as `predict` gives them, where rare values of
                 categories have other places in training; None: those are the same
    kept       : features of the model that are categories with other values, or another order, in the data
    """

    model: Ensemble
    path: str
    training: Float64Array
    validation: tuple[Float64Array, ...]
    of_model: Float64Array | None = None
    kept: tuple[int, ...] = ()

    @property
    def n_trees(self) -> int:
        """The number of trees of the model."""
        return len(self.model.trees)

    def check_scores(self) -> None:
        """Raise ModelError when a score of the model is beyond LARGEST_SCORE."""
        largest = max(float(np.abs(scores).max(initial=0.0)) for scores in (self.training, *self.validation))
        if largest > LARGEST_SCORE:
            what = f"a score of the model is {largest:g} or minus that, beyond {LARGEST_SCORE:g}"
            raise ModelError(f"{what}; give a model of smaller leaf values", self.path)

    def start_as_model(self, init_scores: Float64Array | None) -> Float64Array:
        """Return the scores of the training set as `predict` gives them, on top of initial scores."""
        of_model = self.training if self.of_model is None else self.of_model
        return of_model if init_scores is None else init_scores + of_model

    def add_to(self, metadata: Sequence[Metadata]) -> list[Metadata]:
        """Return the metadata with the scores of the model added to the initial scores."""
        return [
            replace(of_set, init_scores=scores if of_set.init_scores is None else of_set.init_scores + scores)
            for of_set, scores in zip(metadata, (self.training, *self.validation), strict=True)
        ]

    def differences(self, settings: TrainSettings, features: Ensemble, start: bool) -> list[Difference]:
        """Return why a single run of all rounds may give other trees or settings than this run, [] when it does not."""
        model = self.model
        if not _is_own(model):
            source = model.settings.get("source")
            own = f"lmart did not train it ({source})" if source else "it does not record the settings of its training"
            return [Difference(own)]
        found: list[Difference] = []
        if model.rankers:
            found.append(Difference(f"it has {counted(len(model.rankers), 'ranker')}, from whose sum one goes on"))
        if (n_earlier := model.settings.get("continued_from")) is not None:
            found.append(Difference(f"its first {n_earlier} trees are not of its settings"))
        now = settings.to_json()
        differ_anyway = ("trees", "continued_from", *(("rankers", "linear") if model.rankers else ()))
        for name in now | model.settings:
            old, new = model.settings.get(name), now.get(name)
            if old != new and name not in differ_anyway:
                text = f"{name} is {_shown(new)}, in the model {_shown(old)}"
                found.append(Difference(text, name not in NOT_OF_TREES))
        if features.feature_names != model.feature_names or not np.array_equal(features.feature_ids, model.feature_ids):
            found.append(Difference("the features differ"))
        found += [
            Difference(f"category {quote(model.feature_name(column))} has other values, or another order, in the data")
            for column in self.kept
        ]
        of_leaves = model.trees[-1].leaf_documents if model.trees else None
        n = len(self.training)
        if of_leaves is not None and (trained_on := int(of_leaves.sum())) != n:
            found.append(Difference(f"the data has {counted(n, 'document')}, that of the model {trained_on:,}"))
        if start:
            found.append(Difference("there are initial scores"))
        return found

    def join(self, new: Ensemble, settings: TrainSettings, differences: Sequence[Difference]) -> Ensemble:
        """Return the model with the new trees after its own; ModelError when two features would have one name."""
        model = self.model
        ids, names, of_model, of_new = _join_features(model, new, self.path)
        trees = tuple(_with_columns(tree, of_model) for tree in model.trees)
        recorded = new.settings | {"trees": self.n_trees + settings.trees}
        if any(difference.of_trees for difference in differences):
            recorded["continued_from"] = self.n_trees
        return replace(
            new,
            trees=trees + tuple(_with_columns(tree, of_new) for tree in new.trees),
            feature_ids=ids,
            feature_names=names,
            categories=_join_categories(model, new, of_model, of_new),
            base_score=model.base_score,
            settings=recorded,
        )


def _is_own(model: Ensemble) -> bool:
    """Return whether lmart trained the model and recorded its settings."""
    return TrainSettings().to_json().keys() <= model.settings.keys()


def _shown(value: object) -> str:
    return "not set" if value is None or value == "" else str(value)


def _join_categories(
    model: Ensemble, new: Ensemble, of_model: Int32Array, of_new: Int32Array
) -> tuple[Categories, ...]:
    """Return the categories of both, by their new columns; those of both are the same."""
    found = {int(of_model[each.column]): each for each in model.categories}
    found |= {int(of_new[each.column]): each for each in new.categories}
    return tuple(replace(found[column], column=column) for column in sorted(found))


def _with_columns(tree: Tree, places: Int32Array) -> Tree:
    """Return a tree whose splits are on other columns: `places`, int32[n_features], by the former ones."""
    return replace(tree, split_columns=places[tree.split_columns])


def _join_features(
    model: Ensemble, new: Ensemble, path: str
) -> tuple[Int64Array, tuple[str, ...] | None, Int32Array, Int32Array]:
    """Return ids and names of the features of both, ascending, and the place of each of the model's and of the new.

    Features of the data keep their ids; others of the model too, or get new ones above all where names decide and an id
    is taken. ModelError, at `path`, when two features would have one name.
    """
    matched = FeatureMatcher(model).column_map(new.feature_ids, new.feature_names)
    others = np.setdiff1d(np.arange(model.n_features), matched)  # that the data does not have
    other_ids = model.feature_ids[others].copy()
    taken = np.isin(other_ids, new.feature_ids)
    highest = max(int(new.feature_ids.max(initial=0)), int(model.feature_ids.max(initial=0)))
    other_ids[taken] = highest + 1 + np.arange(int(taken.sum()))
    ids = np.concatenate([new.feature_ids, other_ids]).astype(np.int64)
    order = np.argsort(ids)
    places = np.empty(len(ids), np.int32)
    places[order] = np.arange(len(ids), dtype=np.int32)
    of_new = places[: new.n_features]
    of_model = np.empty(model.n_features, np.int32)
    of_model[others] = places[new.n_features :]
    of_model[matched[matched >= 0]] = of_new[matched >= 0]
    if new.feature_names is None and model.feature_names is None:
        return ids[order], None, of_model, of_new
    listed = [
        model.feature_name(place) if new.feature_names is None and place >= 0 else new.feature_name(column)
        for column, place in enumerate(matched.tolist())
    ]
    listed += [model.feature_name(place) for place in others.tolist()]
    names = tuple(listed[k] for k in order.tolist())
    if (name := first_repeated(names)) is not None:
        what = f"two features would have the name {quote(name)}, one of the data and one of the model"
        raise ModelError(f"{what}; rename one of them", path)
    return ids[order], names, of_model, of_new
