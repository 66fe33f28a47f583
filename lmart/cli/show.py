"""lmart show: what is in a model or in data, or how a run went."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from lmart.cli.command import HelpfulCommand
from lmart.cli.options.declare import given_on_command_line, group
from lmart.cli.options.shared import Running, check_inputs, data_options, running_options, strict_field
from lmart.cli.signals import flush_output
from lmart.cli.terminal.console import Console
from lmart.errors import DataError, ModelError, counted, quote, visible
from lmart.formats.read_options import ReadOptions
from lmart.memory import keep_memory_constant
from lmart.settings.declared import declared

if TYPE_CHECKING:
    from lmart.reports.run_report import RunReport
    from lmart.scoring.ensemble import Ensemble
    from lmart.scoring.importance import ContributionMeans
    from lmart.training.checkpoint import CheckpointContent

GIVE = "give a model, data, or what lmart train --report wrote"
KEYS_NAMED = 3
SHOWN = 40  # characters of a line in messages

HELP = """Show what is in FILE: a model or data of any format that lmart reads, or the report or checkpoint of a
training run.

For a model it prints rankers, trees, leaves and depth, the features that trees split on, the settings that differ
from the defaults, and the importance of features: splits is the number of nodes that split on a feature; gain is
its share of the split gain, as a mean over the rankers (gains of objectives have different scales). A model that
does not record its split gains, such as those of RankLib, has only splits. With --data you also see the mean
absolute contribution of each feature to the scores of those rows, as in lmart predict --explain; you can compare
all features by it.

For a report of lmart train it prints the data, the measures, the settings, seconds and warnings, the learning curve
of each ranker on each data set, and the importance of features.

For a checkpoint of lmart train it prints how far the run is, and the settings that differ from the defaults.

For data it prints documents, queries and their sizes, labels, and for each feature its range, the share of zeros and
missing values, the number of distinct values, and NDCG@10 of ranking by this feature alone: by descending values, and
by ascending ones (rising). It names features that are constant, equal to another, or constant within every query.
With OTHER it also compares two files, such as training data and today's log: which features, labels and query sizes
are distributed differently (Kolmogorov-Smirnov), which features only one file has, and how many query ids are in both.
lmart reads data once in constant memory; medians, distinct values and the distance of distributions are those of at
most 20,000 documents drawn at random, always the same ones.

On a terminal the text is as wide as the terminal: names are shortened, never numbers. Through a pipe it is always
the same, and nothing is shortened."""

EPILOG = """\b
Examples:
  lmart show model.json
  lmart show model.json --data data/sample/test.svm --top 5
  lmart show model.json --tree 1
  lmart show model.json --tsv > importance.tsv
  lmart show run.json
  lmart show run.json --tsv > curves.tsv
  lmart show train.svm
  lmart show train.svm test.svm --json
"""


@dataclass(frozen=True)
class ShowOptions:
    """What is shown, and how."""

    top: int | None = declared(
        20,
        "List the N most important features.",
        "Of data, those that rank best by themselves. all: every feature, of a model those that a tree splits on.",
        low=1,
        other="all",
    )
    tree: int | None = declared(
        None,
        "Show tree N of the model as nested conditions.",
        "Numbers start from 1, as in --report and in messages.",
        low=1,
    )
    data: str | None = declared(
        None,
        "List mean contributions (SHAP) for the rows of FILE.",
        "These are means of absolute values. lmart reads rows block by block.",
        metavar="FILE",
    )
    as_tsv: bool = declared(
        False,
        "Print a tab-separated table with every digit.",
        "For a model, the importance of all features; for a report, the measures of each round; for data, all "
        "features.",
        flags=("--tsv",),
    )
    as_json: bool = declared(False, "Print one JSON object with every digit.", flags=("--json",))
    strict: bool = strict_field()

    def check_usage(self, file: str, other: str | None, read_options: ReadOptions) -> None:
        """Raise a usage error when options do not go together."""
        if self.as_tsv and self.as_json:
            raise click.UsageError("give one of --tsv and --json, not both")
        if self.tree is not None:
            for option, is_given in {"--tsv": self.as_tsv, "--data": self.data is not None}.items():
                if is_given:
                    raise click.UsageError(f"--tree shows one tree; drop {option}")
        if given_on_command_line("top") and (self.as_tsv or self.as_json or self.tree is not None):
            other = "--tree" if self.tree is not None else "--tsv" if self.as_tsv else "--json"
            prints = "prints none" if self.tree is not None else "prints all of it"
            raise click.UsageError(f"--top shortens the table of features, and {other} {prints}; drop one of them")
        if self.strict and self.data is None:
            raise click.UsageError("--strict needs --data: it is about the features of the data")
        check_inputs([file, other, self.data], read_options)

    def refuse_for_data(self) -> None:
        """Raise a usage error for an option that is about models only."""
        for option, is_given in {"--tree": self.tree is not None, "--data": self.data is not None}.items():
            if is_given:
                raise click.UsageError(f"{option} needs a model, and this is data; drop {option}")

    def refuse_without_data(self, other: str | None, read_options: ReadOptions) -> None:
        """Raise a usage error for what only data can use, for a model or a report."""
        if other is not None:
            raise click.UsageError("a second file is compared with data, and the first is none; give one file")
        if self.data is None and read_options != ReadOptions():
            raise click.UsageError("options of reading data have no effect without --data; leave them out, or give it")


@click.command(
    "show",
    cls=HelpfulCommand,
    short_help="Show a model, a report or checkpoint, or data.",
    help=HELP,
    epilog=EPILOG,
)
@click.argument("file", metavar="FILE")
@click.argument("other", metavar="[OTHER]", required=False)
@group("options", ShowOptions)
@data_options
@running_options
def command(file: str, other: str | None, options: ShowOptions, read_options: ReadOptions, running: Running) -> None:
    """Show a file; the help text is HELP."""
    options.check_usage(file, other, read_options)

    # Only now, as these load numpy and numba.
    from lmart.streams import check_output

    check_output("-", [path for path in (file, other, options.data) if path is not None])
    console = Console(running.quiet)
    shown = _read(file)
    if shown is None:
        options.refuse_for_data()
        _show_data(file, other, options, read_options, running.thread_count(console), console)
        return
    options.refuse_without_data(other, read_options)
    if isinstance(shown, ShownModel):
        _show_model(shown, file, options, read_options, running.thread_count(console), console)
    elif isinstance(shown, tuple):
        _show_checkpoint(shown, file, options)
    else:
        _show_report(shown, file, options)


class ShownModel(NamedTuple):
    """A model that was read, and the name of the format of its file."""

    ensemble: Ensemble
    format: str


def _read(file: str) -> ShownModel | CheckpointContent | RunReport | None:
    """Return what the file holds, None for data; ModelError or DataError when it is none of these."""
    from lmart.formats.detection import refuse_known
    from lmart.formats.format_records import CHECKPOINT_START
    from lmart.formats.models.model_files import LONGEST_START, format_of, is_model, model_content, parse_model
    from lmart.reports.run_report import parse_report, read_report

    content = model_content(file)
    if content.startswith(CHECKPOINT_START):
        from lmart.training.checkpoint import parse_checkpoint

        return parse_checkpoint(content, file)
    if not is_model(content):
        document = parse_report(content, file)
        if document is not None:
            return read_report(document, file)
        start = content[:LONGEST_START]
        refuse_known(start, file, DataError, GIVE)
        if _is_data(start, file):
            return None
        if (found := _other_json(content)) is not None:
            raise DataError(f"this is neither a model nor a report of a run, but {found}; {GIVE}", file)
        _refuse_other(start, file)
    return ShownModel(parse_model(content, file), format_of(content))


def _is_data(start: bytes, path: str) -> bool:
    """Return whether a file is data by its name or its first lines. DataError when it is, but can be read only once."""
    from lmart.formats.detection import data_format
    from lmart.formats.format_records import beginning
    from lmart.formats.registry import format_of_name
    from lmart.streams import can_be_reread

    named = format_of_name(path)
    is_data = named is not None and named.kind == "data"
    text = beginning(start)
    if not is_data and text and not text.startswith(b"{"):
        form = data_format("-", text, ReadOptions())
        is_data = form != "letor" or re.search(rb"(^|[ \t])(qid|\d+):", text.split(b"\n", 1)[0]) is not None
    if is_data and not can_be_reread(path):
        raise DataError("this is data from a pipe, which lmart show would have to read twice; give a file", path)
    return is_data


def _refuse_other(start: bytes, path: str) -> None:
    """Raise DataError when a file begins as no JSON, or is a report that was cut; say what it looks like."""
    from lmart.formats.format_records import beginning

    start = beginning(start)
    if re.match(rb'\{\s*"settings"', start):
        raise DataError("this report of a run is no whole JSON; the file was cut or changed, copy it again", path)
    if not start or start.startswith(b"{"):
        return
    line = start.split(b"\n", 1)[0].strip()
    found = "it is no text" if b"\0" in start else f"it starts with {quote(line, SHOWN)}"
    raise DataError(f"this is neither a model nor data nor a report of a run: {found}; {GIVE}", path)


def _other_json(content: bytes) -> str | None:
    """Return what JSON is that is neither a model nor a report, in words; None when it is no JSON object or list."""
    from lmart.strict_json import strict_json

    try:
        document = strict_json(content)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return "a JSON list" if isinstance(document, list) else None
    if "format" in document:
        return None  # which the reader of models tells more of
    keys = ", ".join(quote(key) for key in list(document)[:KEYS_NAMED])
    more = ", ..." if len(document) > KEYS_NAMED else ""
    return f"JSON with {f'the keys {keys}{more}' if document else 'no key'}"


def _show_model(
    shown: ShownModel, file: str, options: ShowOptions, read_options: ReadOptions, threads: int, console: Console
) -> None:
    """Print what is in a model, or one of its trees."""
    from lmart.cli.terminal.layout import standard_output
    from lmart.cli.terminal.model import Explained, importance_table, model_lines, tree_lines
    from lmart.reports.model_summary import summarize, tree_to_json

    ensemble, number = shown.ensemble, options.tree
    for remark in ensemble.remarks:
        console.notice(remark)
    if number is not None:
        if number > len(ensemble.trees):
            there = counted(len(ensemble.trees), "tree")
            raise ModelError(f"has {there}, so there is no tree {number:,}; trees are numbered from 1", file)
        if options.as_json:
            _print_json({"kind": "tree", "file": file, **tree_to_json(ensemble, number)})
        else:
            _print(tree_lines(ensemble, number, standard_output()))
        return
    means = None if options.data is None else _explain(ensemble, file, options, read_options, threads, console)
    summary = summarize(ensemble, shown.format, None if means is None else means.means)
    explained = None if means is None or options.data is None else Explained(options.data, means.n_rows)
    if options.as_json:
        content = {"kind": "model", "file": file, **summary.to_json()}
        if explained is not None:
            content["contributions"] = {"data": explained.path, "rows": explained.rows}
        _print_json(content)
    elif options.as_tsv:
        _print(importance_table(summary.importance), end="")
    else:
        _print(model_lines(summary, file, options.top, standard_output(), explained))


def _explain(
    ensemble: Ensemble, file: str, options: ShowOptions, read_options: ReadOptions, threads: int, console: Console
) -> ContributionMeans:
    """Return the mean absolute contributions to the scores of the rows of --data, read block by block."""
    from lmart.formats.documents.reading import for_models, open_rows
    from lmart.scoring.explain import Explainer
    from lmart.scoring.feature_matching import FeatureMatcher
    from lmart.scoring.importance import ContributionMeans
    from lmart.threads import WorkerPool

    path = options.data or ""
    keep_memory_constant()
    explainer, matcher = Explainer(ensemble, file), FeatureMatcher(ensemble)
    read_options = replace(
        for_models(read_options, [ensemble]).telling(
            console.notice, console.warning, console.reading("explaining", prints=True)
        ),
        require_labels=False,
        require_queries=False,
        use_labels=False,
        refuse_unknown=options.strict,
        keep_document_ids=False,
    )
    with WorkerPool(threads) as pool, open_rows(path, read_options, pool) as reader:
        means = ContributionMeans(explainer, pool)
        for block in reader:
            means.add(block.features, matcher.column_map(reader.feature_ids, reader.feature_names))
        matcher.tables = reader.table.of_tables
        matcher.refuse(path, options.strict)
    for text in matcher.warnings(path):
        console.warning(text)
    return means


def _show_data(
    file: str, other: str | None, options: ShowOptions, read_options: ReadOptions, threads: int, console: Console
) -> None:
    """Print what is in a file of data, and how another one differs from it."""
    from lmart.cli.terminal.data import data_lines, data_table, drift_lines
    from lmart.cli.terminal.layout import standard_output
    from lmart.gains import Gain
    from lmart.reports.data_drift import compare_data
    from lmart.reports.data_summary import summarize_data
    from lmart.threads import WorkerPool

    if not read_options.group_by_qid:
        keep_memory_constant()
    read_options = replace(
        read_options.telling(console.notice, console.warning, console.reading("reading", prints=True)),
        require_labels=False,
        require_queries=False,
    )
    with WorkerPool(threads) as pool:
        summaries = [summarize_data(path, read_options, Gain(), pool) for path in (file, other) if path is not None]
    first = summaries[0]
    drift = None if other is None else compare_data(first, summaries[1])
    if options.as_json:
        content = {"kind": "data", "file": file, **first.to_json()}
        if drift is not None:
            content |= {"other": {"file": other, **summaries[1].to_json()}, "drift": drift.to_json()}
        _print_json(content)
    elif options.as_tsv:
        _print(data_table(first, drift), end="")
    else:
        sheet = standard_output()
        _print(data_lines(first, options.top, sheet))
        if drift is not None and other is not None:
            _print(drift_lines(drift, other, options.top, sheet))


def _show_report(report: RunReport, file: str, options: ShowOptions) -> None:
    """Print how a run went."""
    from lmart.cli.terminal.layout import standard_output
    from lmart.cli.terminal.model import curve_table, run_lines

    for option, is_given in {"--tree": options.tree is not None, "--data": options.data is not None}.items():
        if is_given:
            raise DataError(f"is a report of a run, and {option} needs a model; give the model", file)
    if options.as_json:
        _print_json({"kind": "report", "file": file, **report.to_json()})
    elif options.as_tsv:
        _print(curve_table(report), end="")
    else:
        _print(run_lines(report, file, options.top, standard_output()))


def _show_checkpoint(content: CheckpointContent, file: str, options: ShowOptions) -> None:
    """Print how far an interrupted run is."""
    from lmart.cli.terminal.layout import facts, standard_output
    from lmart.settings import TrainSettings
    from lmart.training.checkpoint import MODEL

    not_of_it = {"--tree": options.tree is not None, "--data": options.data is not None, "--tsv": options.as_tsv}
    for option, is_given in not_of_it.items():
        if is_given:
            raise DataError(f"is a checkpoint, which {option} says nothing of; give the model or the report", file)
    grown = {part: sum(done.grown is not None for done in rounds) for part, rounds in content.rounds.items()}
    of_model = grown.pop(MODEL, 0)
    settings, defaults = content.run["settings"], TrainSettings().to_json()
    if options.as_json:
        counts = {"trials": len(content.trials), "trees_before": sum(grown.values()), "trees": of_model}
        about = {"kind": "checkpoint", "file": file, "program": content.program}
        _print_json({**about, **counts, "settings": settings})
        return
    done = [counted(len(content.trials), "trial")] if content.trials else []
    done += [f"{counted(sum(grown.values()), 'tree')} of folds or trials"] if grown else []
    done.append(f"{of_model:,} of at most {counted(settings['trees'], 'tree')}")
    differ = [visible(f"{name} {value}") for name, value in settings.items() if value != defaults.get(name)]
    entries = [
        ("checkpoint", f"{visible(file)} (of lmart train, version {visible(content.program)})"),
        ("done", ", ".join(done)),
        ("settings", ", ".join(differ) or "all by default"),
    ]
    _print(facts(entries, standard_output()))


def _print_json(content: Mapping[str, Any]) -> None:
    _print([json.dumps(content, allow_nan=False)])


def _print(lines: Iterable[str], end: str = "\n") -> None:
    for line in lines:
        click.echo(line + end, nl=False)
    flush_output()
