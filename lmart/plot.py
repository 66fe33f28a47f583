"""Pictures for notebooks and papers: each function draws on axes of matplotlib and returns them; and pages of models.

>>> import lmart, lmart.plot
>>> model = lmart.train(lmart.read("data/sample/train.svm"), trees=20)
>>> axes = lmart.plot.importance(model, top=5)
>>> [text.get_text() for text in axes.get_yticklabels()][-1]
'11'

They need the package matplotlib, of the extra `report`. Without `ax` each draws on a new figure.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lmart.data.dataset import join_rows, pieces, take_rows
from lmart.decimals import shortest
from lmart.errors import LmartError, needs_package
from lmart.evaluation import evaluate
from lmart.formats.registry import OWN
from lmart.interrupts import safe_interrupts
from lmart.model import Model
from lmart.reports.model_effects import EffectRows
from lmart.reports.model_summary import left_values, node_bounds, steps, summarize
from lmart.reports.pages.charts import require_matplotlib
from lmart.reports.pages.model import ModelPage, first_trees, render_model_page
from lmart.reports.run_report import RunReport, load_report
from lmart.reports.words import Explained
from lmart.scoring.effects import MatchedRows, sampled_contributions, tried_categories, tried_values
from lmart.scoring.effects import partial_dependence as mean_scores
from lmart.scoring.ensemble import Tree
from lmart.scoring.explain import Explainer
from lmart.scoring.given_columns import match_columns
from lmart.scoring.importance import ContributionMeans
from lmart.scoring.scorer import Scorer
from lmart.streams import AtomicOutputs
from lmart.threads import WorkerPool, threads_to_use

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIGITS = 4  # of numbers in a tree
DASHES = ("-", "--", ":", "-.")  # of rankers
MOST_BANDS = 2  # systems whose intervals are drawn


def importance(
    model: Model, *, kind: str = "gain", features: object = None, top: int | None = 20, ax: Axes | None = None
) -> Axes:
    """Draw how much each feature matters, as bars, the most important at the top.

    model          : whose features they are
    kind, features : as `Model.importance` takes them
    top            : number of features; None: all
    ax             : to draw on; None: on a new figure
    """
    values = list(model.importance(kind, features).items())[:top][::-1]
    axes = _axes(ax, height=1.2 + 0.25 * len(values))
    axes.barh([name for name, _ in values], [value for _, value in values])
    labels = {"gain": "share of the split gain", "splits": "splits", "contributions": "mean absolute contribution"}
    axes.set_xlabel(labels[kind])
    axes.set_ylabel("feature")
    return axes


def partial_dependence(
    model: Model, features: object, feature: str | int, *, rows: int = 1000, seed: int = 0, ax: Axes | None = None
) -> Axes:
    """Draw the mean score of rows as one of their features takes other values (Friedman 2001, section 8.2).

    model    : gives the scores
    features : rows, as `Model.predict` takes them
    feature  : name or index of the feature that varies
    rows     : number of rows drawn at random, where there are more
    seed     : of the draw
    ax       : to draw on; None: on a new figure

    Means of scores compare only within one picture. Short marks at the bottom are deciles of the feature.
    ValueError when the model has no such feature.
    """
    column, matched = _sampled(model, features, feature, rows, seed)
    every = matched.values_of(column, model.ensemble.absent_value)
    present = np.sort(every[~np.isnan(every)])
    if not len(present):
        raise ValueError(f"all values of the feature {str(feature)!r} are missing")
    is_category = any(category.column == column for category in model.ensemble.categories)
    values = tried_categories(present) if is_category else tried_values(present)
    with safe_interrupts():
        means = mean_scores(Scorer(model.ensemble), matched, column, values.tolist())
    axes = _axes(ax)
    if is_category:
        axes.plot(values, means, "o")
    else:
        axes.step(values, means, where="post")
    deciles = present[np.linspace(0, len(present) - 1, 11).round().astype(int)]
    axes.plot(deciles, np.zeros(11), "|", transform=axes.get_xaxis_transform(), color="0.5", clip_on=False)
    axes.set_xlabel(str(feature))
    axes.set_ylabel("mean score")
    return axes


def contributions(
    model: Model, features: object, feature: str | int, *, rows: int = 1000, seed: int = 0, ax: Axes | None = None
) -> Axes:
    """Draw what a feature contributes to the score of each of some rows (SHAP), by its value: a dot for a row.

    model, features, rows, seed, ax : as in `partial_dependence`
    feature : name or index of the feature

    Rows in which the feature is missing have no dot. Dots of one value that are apart say that the effect depends on
    other features. ValueError when the model has no such feature, ModelError when it cannot explain scores.
    """
    column, matched = _sampled(model, features, feature, rows, seed)
    values = matched.values_of(column, model.ensemble.absent_value)
    with safe_interrupts(), WorkerPool(1) as pool:
        explained = sampled_contributions(Explainer(model.ensemble), matched, np.array([column]), pool)[:, 0]
    axes = _axes(ax)
    axes.axhline(0, color="0.5", linewidth=1)
    axes.plot(values, explained, "o", markersize=3, alpha=0.5)
    axes.set_xlabel(str(feature))
    axes.set_ylabel("contribution to the score")
    return axes


def ndcg(
    y: object, scores: object, qid: object = None, *, cutoffs: int = 20, ax: Axes | None = None, **options: Any
) -> Axes:
    """Draw NDCG@k of one system or several for each k up to a largest one.

    y, scores, qid : as `lmart.evaluate` takes them
    cutoffs        : the largest k
    ax             : to draw on; None: on a new figure
    options        : further keywords of `lmart.evaluate`, such as like, gain and weights

    One or two systems have their bootstrap intervals as bands. The errors are those of `lmart.evaluate`; ValueError
    when `cutoffs` is below 1.
    """
    if cutoffs < 1:
        raise ValueError(f"cutoffs is {cutoffs}; give a whole number from 1 up")
    places = list(range(1, cutoffs + 1))
    names = [f"ndcg@{k}" for k in places]
    found = evaluate(y, scores, qid, names, **options)
    axes = _axes(ax)
    for place, system in enumerate(found.systems):
        values = found.result.systems[place].report.values
        means = [math.nan if (mean := values[name]) is None else mean for name in names]
        (line,) = axes.plot(places, means, marker=".", label=system)
        if len(found.systems) <= MOST_BANDS:
            ends = [found.statistics[place][name].interval or (math.nan, math.nan) for name in names]
            low, high = zip(*ends, strict=True)
            axes.fill_between(places, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_xlabel("k")
    axes.set_ylabel("NDCG@k")
    if len(found.systems) > 1:
        axes.legend()
    return axes


def history(
    report: Model | RunReport | str | os.PathLike[str], *, metric: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the measure of each data set after each round, with a mark at the best round of validation sets.

    report : a model that was just trained, its `Model.history`, or the file of `lmart train --report`
    metric : which of several measures; None: the first
    ax     : to draw on; None: on a new figure

    Each ranker of a model with several has a line for each set. DataError when the file is no report of a run,
    ValueError when a model has no history, or the run did not measure `metric`.
    """
    run = report.history if isinstance(report, Model) else report
    if run is None:
        raise ValueError("the model has no history, as it is from a file; give the file of train --report")
    if not isinstance(run, RunReport):
        run = load_report(os.fsdecode(run))
    metric = metric or run.metric
    if metric not in run.metrics:
        raise ValueError(f"the run did not measure {metric!r}, but {', '.join(run.metrics)}")
    axes = _axes(ax)
    for number, ranker in enumerate(run.rankers, 1):
        for place, curve in enumerate(ranker.curves_of(metric)):
            values = [np.nan if value is None else value for value in curve.values]
            label = curve.name if len(run.rankers) == 1 else f"{curve.name}, ranker {number}"
            style = DASHES[(number - 1) % len(DASHES)]
            (line,) = axes.plot(ranker.rounds, values, style, color=f"C{place % 10}", label=label)
            if place and curve.best is not None:
                axes.plot(ranker.rounds[curve.best], values[curve.best], "o", color=line.get_color())
    axes.set_xlabel("round")
    axes.set_ylabel(metric)
    axes.legend()
    return axes


def tree(model: Model, number: int = 1, *, ax: Axes | None = None) -> Axes:
    """Draw one tree: conditions at its nodes, values at its leaves; where a condition holds, the branch goes left.

    model  : has the tree
    number : of the tree, from 1
    ax     : to draw on; None: on a new figure
    ValueError when there is no such tree.
    """
    trees = model.ensemble.trees
    if not 1 <= number <= len(trees):
        raise ValueError(f"number is {number}, but the trees of the model are 1 to {len(trees)}")
    drawn = trees[number - 1]
    places = _places(drawn)
    depth = 1 + max(depth for _, depth in places.values())
    axes = _axes(ax, width=max(4.0, 0.9 * drawn.n_leaves), height=max(2.0, 0.8 * depth))
    axes.set_axis_off()
    for (kind, node), (x, level) in places.items():
        if kind == "leaf":
            text = f"{drawn.leaf_values[node]:.{DIGITS}g}"
        else:
            text = _condition(model, drawn, node)
            for child in (int(drawn.left[node]), int(drawn.right[node])):
                below = places[("node", child) if child >= 0 else ("leaf", ~child)]
                axes.plot([x, below[0]], [-level, -below[1]], color="0.6", linewidth=1, zorder=1)
        style = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.3" if kind == "node" else "none"}
        axes.text(x, -level, text, ha="center", va="center", fontsize=8, bbox=style, zorder=2)
    axes.set_xlim(-0.7, drawn.n_leaves - 0.3)
    axes.set_ylim(-depth + 0.5, 0.5)
    axes.set_title(f"tree {number} of {len(trees)}")
    return axes


def page(
    model: Model,
    path: str | os.PathLike[str],
    features: object = None,
    *,
    top: int | None = 20,
    title: str | None = None,
    threads: int | None = None,
) -> None:
    """Write a page on a model for a browser, as `lmart show --html` does: one file that needs no other.

    model    : with its history, if it was just trained
    path     : of the page; compressed when it ends in .gz or .zst
    features : rows whose scores the page explains, as `Model.predict` takes them; None: it explains none
    top      : number of features that are shown at once; None: all
    title    : of the page
    threads  : threads to use, None: all that this process may use

    ModelError and DataError as `Model.predict` raises them, OutputError when the file cannot be written.
    """
    name, ensemble = os.fsdecode(path), model.ensemble
    if model.history is not None or features is not None:
        require_matplotlib(name)
    means = effects = explained = None
    with safe_interrupts(), WorkerPool(threads_to_use(threads)) as pool:
        if features is not None:
            rows, column_map = match_columns(ensemble, features)
            sample = EffectRows(ensemble, pool)
            if sample.explainer is not None:
                means = ContributionMeans(sample.explainer, pool)
            for _, _, piece in pieces(rows, len(column_map)):
                sample.add(piece, column_map)
                if means is not None:
                    means.add(piece, column_map)
        summary = summarize(ensemble, OWN, None if means is None else means.means)
        if features is not None:
            explained = None if means is None else Explained("the data", means.n_rows)
            effects = sample.effects(summary.importance, top, pool)
    trees, run = first_trees(summary), model.history
    content = ModelPage("the model", summary, top, trees, explained, effects, run, "history", title or "The model")
    with AtomicOutputs() as files:
        files.open(name).write(render_model_page(content))


def _places(drawn: Tree) -> dict[tuple[str, int], tuple[float, int]]:
    """Return where each node and leaf stands: leaves side by side, a node above the middle of its children."""
    places: dict[tuple[str, int], tuple[float, int]] = {}
    nodes = []
    for step in steps(drawn):
        if step.kind == "leaf":
            n_leaves = sum(kind == "leaf" for kind, _ in places)
            places["leaf", step.number] = (float(n_leaves), step.depth)
        elif step.kind == "if":
            nodes.append(step)
    for step in reversed(nodes):
        children = (int(drawn.left[step.number]), int(drawn.right[step.number]))
        below = [places[("node", child) if child >= 0 else ("leaf", ~child)][0] for child in children]
        places["node", step.number] = (sum(below) / 2, step.depth)
    return places


def _condition(model: Model, drawn: Tree, node: int) -> str:
    column = int(drawn.split_columns[node])
    name = model.ensemble.feature_name(column)
    if (left := left_values(model.ensemble, column, node_bounds(drawn, node))) is not None:
        return left.text(name)
    bounds = [shortest(float(f"{bound:.{DIGITS}g}")) for bound in node_bounds(drawn, node)]
    return f"{name} <= {bounds[0]}" + (" ..." if len(bounds) > 1 else "")


def _sampled(model: Model, features: object, feature: str | int, rows: int, seed: int) -> tuple[int, MatchedRows]:
    """Return the position of a feature in the model, and some of the rows. ValueError when there is no such feature."""
    names = [model.ensemble.feature_name(column) for column in range(model.ensemble.n_features)]
    if str(feature) not in names:
        raise ValueError(f"the model has no feature {str(feature)!r}")
    every, column_map = match_columns(model.ensemble, features)
    chosen = np.arange(len(every))
    if len(every) > rows:
        chosen = np.sort(np.random.default_rng(seed).choice(len(every), rows, replace=False))
    parts = [
        take_rows(piece, chosen[(chosen >= start) & (chosen < stop)] - start)
        for start, stop, piece in pieces(every, len(column_map))
    ]
    return names.index(str(feature)), MatchedRows(join_rows(parts), column_map)


def _axes(ax: Axes | None, width: float = 6.0, height: float = 4.0) -> Axes:
    """Return the axes to draw on. LmartError when matplotlib is not installed."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise LmartError(needs_package("a picture", "matplotlib")) from None
    drawn: Axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    return drawn
