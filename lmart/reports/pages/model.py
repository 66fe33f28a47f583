"""The page of a model: what it is, which features matter, what they do to scores, some trees, and its training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lmart.array_types import Float64Array
from lmart.errors import counted, either, input_name
from lmart.measures.results import distinct_names
from lmart.reports.html_parts import facts, folded, note, number, table, text, verdict_paragraph
from lmart.reports.model_summary import ModelSummary, RankerFacts, ranker_of_tree, tree_to_json
from lmart.reports.pages.charts import effect_chart
from lmart.reports.pages.frame import Figures, render, side_by_side
from lmart.reports.pages.run import importance_table, training
from lmart.reports.pages.tree_drawing import draw_tree
from lmart.reports.run_report import RunReport
from lmart.reports.words import Explained, model_facts, span
from lmart.scoring.effects import FeatureEffect
from lmart.scoring.ensemble import rankers_in_words

MOST_EFFECTS = 10  # features whose effect is drawn
MOST_TREES = 8  # rankers whose first tree is drawn
NAMED = 3  # features in a sentence
EFFECTS_NOTE = (
    "Line: the mean score of the documents when the feature has this value in all of them (partial dependence), as its "
    "difference from their mean score. Dot: what the feature contributes to the score of one document (SHAP). Where "
    "dots are far from the line, the effect depends on other features. Marks at the bottom: deciles of the feature. "
    "Categories have a mark each in place of the line."
)


@dataclass(frozen=True, eq=False)
class Effects:
    """What features do to the scores of some data.

    rows       : documents drawn at random from all of the data
    mean_score : of these
    features   : the most important first
    note       : why there are no contributions; None: there are
    """

    rows: int
    mean_score: float
    features: Sequence[FeatureEffect]
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return them as plain JSON values."""
        return {
            "rows": self.rows,
            "mean_score": self.mean_score,
            "features": [
                {
                    "feature": effect.feature,
                    "categories": list(effect.categories),
                    "values": effect.values.tolist(),
                    "scores": effect.scores.tolist(),
                    "missing": effect.missing,
                    "deciles": effect.deciles.tolist(),
                    "row_values": effect.row_values.tolist(),
                    "contributions": effect.contributions.tolist(),
                }
                for effect in self.features
            ],
        }


@dataclass(frozen=True, eq=False)
class ModelPage:
    """What the page of a model shows.

    listed    : features that are shown at once; None: all
    trees     : numbers of the trees that are drawn
    explained : the data of contributions and effects; None: there is none, or no contribution
    """

    path: str
    summary: ModelSummary
    listed: int | None
    trees: Sequence[int]
    explained: Explained | None = None
    effects: Effects | None = None
    run: RunReport | None = None
    run_path: str = ""
    title: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the content as plain JSON values."""
        model = self.summary.to_json()
        model["importance"] = [feature for feature in model["importance"] if feature["splits"]]
        if self.explained is not None:
            model["contributions"] = {"data": self.explained.path, "rows": self.explained.rows}
        content: dict[str, Any] = {"model": {"file": self.path, **model}}
        content["tree_drawings"] = [tree_to_json(self.summary.ensemble, tree) for tree in self.trees]
        if self.title is not None:
            content["title"] = self.title
        if self.effects is not None:
            content["effects"] = self.effects.to_json()
        if self.run is not None:
            content["train_report"] = {"file": self.run_path, **self.run.to_json()}
        return content


def first_trees(summary: ModelSummary) -> list[int]:
    """Return the number of the first tree of each ranker, of some."""
    return [ranker.first_tree for ranker in summary.rankers if ranker.first_tree is not None][:MOST_TREES]


def render_model_page(content: ModelPage) -> str:
    """Return the page as HTML; the same content gives the same bytes."""
    name = distinct_names([input_name(content.path)])[0]
    data = content.explained
    shown = None if data is None else Explained(distinct_names([input_name(data.path)])[0], data.rows)
    head = verdict_paragraph(_verdict(content)) + facts(model_facts(content.summary, name, shown))
    title = content.title or f"Model {name}"
    return render(title, head, _sections(content, Figures()), content.to_json())


def _verdict(content: ModelPage) -> Iterator[str]:
    """Yield sentences that say what the model goes by."""
    summary = content.summary
    used = [feature for feature in summary.importance if feature.splits]
    rankers = rankers_in_words([ranker.tree for ranker in summary.rankers])
    several = f"It is the mean of {rankers}. " if len(summary.rankers) > 1 else ""
    trees = counted(len(summary.ensemble.trees), "tree")
    yield f"{several}Its {trees} split on {len(used):,} of {counted(summary.ensemble.n_features, 'feature')}."
    if not used:
        return
    names = either([feature.feature for feature in used[:NAMED]], "and")
    verb = "matters" if len(used) == 1 else "matter"
    if content.explained is not None:
        yield f"For the scores of {distinct_names([content.explained.path])[0]}, {names} {verb} most."
    elif used[0].gain_share is not None:
        share = sum(feature.gain_share or 0.0 for feature in used[:NAMED])
        yield f"{names} {verb} most, with {share:.0%} of the split gain."


def _sections(content: ModelPage, figures: Figures) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the title and the content of each section."""
    summary = content.summary
    rankers = len(summary.rankers)
    yield "importance", "Importance of features", importance_table(summary.importance, rankers, content.listed)
    if content.effects is not None and (content.effects.features or content.effects.note):
        yield "effects", "Effects of features", _effects(content.effects, figures)
    if rankers > 1:
        yield "rankers", "Rankers", _rankers(summary.rankers)
    if content.trees:
        yield "trees", "Trees", _trees(content)
    if content.run is not None:
        yield "training", "Training", training(content.run, content.run_path, figures)
    if summary.ensemble.settings:
        entries = [(name.replace("_", "-"), str(value)) for name, value in summary.ensemble.settings.items()]
        yield "settings", "Settings", folded("All settings", facts(entries))


def _effects(effects: Effects, figures: Figures) -> str:
    """Return a chart for each feature, all with the same axis of scores."""
    limits = _limits(effects)
    made = [
        figures.figure(
            effect_chart(effect, effects.mean_score, limits, figures.next()),
            folded("The numbers of this chart", _effect_table(effect, place)),
        )
        for place, effect in enumerate(effects.features, 1)
    ]
    drawn = f"Of {counted(effects.rows, 'document')} drawn at random. {EFFECTS_NOTE}"
    why = note(text(effects.note)) if effects.note else ""
    return f"{note(text(drawn))}{why}{side_by_side(made, in_pairs=True)}"


def _limits(effects: Effects) -> tuple[float, float]:
    """Return the ends of an axis that shows all changes of scores."""
    ends = [0.0]
    for effect in effects.features:
        for changes in (effect.scores - effects.mean_score, effect.contributions):
            ends += _ends(changes)
    margin = 0.05 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


def _ends(changes: Float64Array) -> list[float]:
    return [float(changes.min()), float(changes.max())] if len(changes) else []


def _effect_table(effect: FeatureEffect, place: int) -> str:
    values = list(map(text, effect.categories)) or [number(value, ".6g") for value in effect.values.tolist()]
    rows = [[value, number(score)] for value, score in zip(values, effect.scores.tolist(), strict=True)]
    rows += [] if effect.missing is None else [["missing", number(effect.missing)]]
    caption = f"Mean score by the value of {effect.feature}"
    return table(caption, ["value", "mean score"], rows, f"effect-{place}")


def _rankers(rankers: Sequence[RankerFacts]) -> str:
    header = ["ranker", "objective", "form", "trees", "first tree", "leaves of a tree", "depth", "features"]
    rows = []
    for place, ranker in enumerate(rankers, 1):
        words = (text(ranker.objective or "n/a"), text(ranker.tree or "n/a"))
        counts = (number(ranker.trees, ",d"), number(ranker.first_tree, ",d"), text(span(ranker.fewest, ranker.most)))
        rows.append([str(place), *words, *counts, number(ranker.depth, ",d"), number(ranker.split_features, ",d")])
    return table("Rankers, whose mean the model is", header, rows, "ranker-table")


def _trees(content: ModelPage) -> str:
    """Return the drawings of trees, the first at once, others on demand."""
    ensemble = content.summary.ensemble
    made = note(
        "Where a condition holds, a document goes on at yes, else at no. A leaf adds its value to the score of a "
        "document that ends there."
    )
    for place, tree in enumerate(content.trees):
        title = f"Tree {tree:,} of {len(ensemble.trees):,}"
        if ensemble.rankers:
            title += f", of ranker {ranker_of_tree(ensemble, tree)}"
        drawn = draw_tree(ensemble, ensemble.trees[tree - 1])
        made += folded(title, drawn) if place else f"<h3>{title}</h3>\n{drawn}"
    return made
