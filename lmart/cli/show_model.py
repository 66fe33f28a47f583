"""The model of `lmart show`: its facts, one of its trees, contributions to the scores of data, and its page."""

from __future__ import annotations

from dataclasses import dataclass

from lmart.cli.show_output import print_json, print_lines, write
from lmart.cli.show_request import ShownModel, ShowOptions
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.layout import standard_output
from lmart.cli.terminal.model import importance_table, model_lines, tree_lines
from lmart.errors import ModelError, counted
from lmart.formats.documents.reading import for_models, open_rows
from lmart.formats.read_options import ReadOptions
from lmart.memory import keep_memory_constant
from lmart.reports.model_effects import EffectRows
from lmart.reports.model_summary import ModelSummary, summarize, tree_to_json
from lmart.reports.pages.charts import require_matplotlib
from lmart.reports.pages.model import ModelPage, first_trees, render_model_page
from lmart.reports.run_report import RunReport, load_report
from lmart.reports.words import Explained
from lmart.scoring.explain import Explainer
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.importance import ContributionMeans
from lmart.threads import WorkerPool


@dataclass(frozen=True, eq=False)
class ScoredData:
    """What was found by scoring data: contributions, and rows for the effects of features.

    means : of contributions; None: the model does not say enough of its trees, and no more than a page needs them
    rows  : for a page; None: none is asked for
    """

    path: str
    means: ContributionMeans | None
    rows: EffectRows | None

    @property
    def explained(self) -> Explained | None:
        """The data whose scores were explained."""
        return None if self.means is None else Explained(self.path, self.means.n_rows)


def show_model(
    shown: ShownModel, file: str, options: ShowOptions, read_options: ReadOptions, threads: int, console: Console
) -> None:
    """Print what is in a model, or one of its trees, and write its page."""
    ensemble, number = shown.ensemble, options.tree
    for remark in ensemble.remarks:
        console.notice(remark)
    if number is not None and number > len(ensemble.trees):
        there = counted(len(ensemble.trees), "tree")
        raise ModelError(f"has {there}, so there is no tree {number:,}; trees are numbered from 1", file)
    if options.html is not None and (options.data is not None or options.train_report is not None):
        require_matplotlib(options.html)
    run = None if options.train_report is None else load_report(options.train_report)
    with WorkerPool(threads) as pool:
        data = None if options.data is None else _score(shown, file, options, read_options, pool, console)
        means = None if data is None or data.means is None else data.means.means
        summary = summarize(ensemble, shown.format, means)
        explained = None if data is None else data.explained

        def page() -> str:
            """Return the page."""
            return _page(summary, file, options, data, run, pool)

        write(options, page, lambda: _print(summary, file, options, explained))


def _print(summary: ModelSummary, file: str, options: ShowOptions, explained: Explained | None) -> None:
    """Print the model or the tree."""
    if options.tree is not None:
        if options.as_json:
            print_json({"kind": "tree", "file": file, **tree_to_json(summary.ensemble, options.tree)})
        else:
            print_lines(tree_lines(summary.ensemble, options.tree, standard_output()))
    elif options.as_json:
        content = {"kind": "model", "file": file, **summary.to_json()}
        if explained is not None:
            content["contributions"] = {"data": explained.path, "rows": explained.rows}
        print_json(content)
    elif options.as_tsv:
        print_lines(importance_table(summary.importance), end="")
    else:
        print_lines(model_lines(summary, file, options.top, standard_output(), explained))


def _page(
    summary: ModelSummary,
    file: str,
    options: ShowOptions,
    data: ScoredData | None,
    run: RunReport | None,
    pool: WorkerPool,
) -> str:
    effects = None if data is None or data.rows is None else data.rows.effects(summary.importance, options.top, pool)
    return render_model_page(
        ModelPage(
            file,
            summary,
            options.top,
            first_trees(summary) if options.tree is None else [options.tree],
            None if data is None else data.explained,
            effects,
            run,
            options.train_report or "",
            options.title,
        )
    )


def _score(
    shown: ShownModel, file: str, options: ShowOptions, read_options: ReadOptions, pool: WorkerPool, console: Console
) -> ScoredData:
    """Return the mean absolute contributions to the scores of the rows of --data, and rows for the page."""
    path, ensemble = options.data or "", shown.ensemble
    keep_memory_constant()
    matcher = FeatureMatcher(ensemble)
    rows = None if options.html is None else EffectRows(ensemble, pool)
    explainer = Explainer(ensemble, file) if rows is None else rows.explainer
    read_options = for_models(read_options.for_scoring(options.strict), [ensemble]).telling(
        console.notice, console.warning, console.reading("explaining", prints=True)
    )
    means = None if explainer is None else ContributionMeans(explainer, pool)
    with open_rows(path, read_options, pool) as reader:
        for block in reader:
            column_map = reader.match(matcher)
            if means is not None:
                means.add(block.features, column_map)
            if rows is not None:
                rows.add(block.features, column_map)
        matcher.tables = reader.table.of_tables  # without rows too
        matcher.refuse(path, options.strict)
    for text in matcher.warnings(path):
        console.warning(text)
    return ScoredData(path, means, rows)
