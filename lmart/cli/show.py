"""lmart show: what is in a model or in data, or how a run went."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from lmart.cli.command import HelpfulCommand
from lmart.cli.options.declare import group
from lmart.cli.options.shared import Running, data_options, running_options
from lmart.cli.show_request import ShownModel, ShowOptions
from lmart.cli.terminal.console import Console
from lmart.errors import DataError, counted, listed, quote, visible
from lmart.formats.read_options import ReadOptions

if TYPE_CHECKING:
    from lmart.reports.run_report import RunReport
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

With --html you also get a page for a browser: one file that needs no other.

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
  lmart show model.json --data train.svm --html model.html
  lmart show model.json --train-report run.json --html model.html
  lmart show run.json --html run.html
  lmart show train.svm test.svm --html data.html
"""


@click.command(
    "show", cls=HelpfulCommand, short_help="Show a model, a report or checkpoint, or data.", help=HELP, epilog=EPILOG
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

    inputs = [path for path in (file, other, options.data, options.train_report) if path is not None]
    for path in ("-", *([] if options.html is None else [options.html])):
        check_output(path, inputs)
    console = Console(running.quiet)
    shown = _read(file)
    if shown is None:
        options.refuse_for_data()
        from lmart.cli.show_data import show_data

        show_data(file, other, options, read_options, running.thread_count(console), console)
        return
    options.refuse_without_data(other, read_options)
    if isinstance(shown, ShownModel):
        from lmart.cli.show_model import show_model

        show_model(shown, file, options, read_options, running.thread_count(console), console)
    elif isinstance(shown, tuple):
        _show_checkpoint(shown, file, options)
    else:
        _show_report(shown, file, options)


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
    return f"JSON with {f'the keys {listed(list(document), KEYS_NAMED)}' if document else 'no key'}"


def _show_report(report: RunReport, file: str, options: ShowOptions) -> None:
    """Print how a run went, and write its page."""
    from lmart.cli.show_output import print_json, print_lines, write
    from lmart.cli.terminal.layout import standard_output
    from lmart.cli.terminal.model import curve_table, run_lines
    from lmart.reports.pages.charts import require_matplotlib
    from lmart.reports.pages.run import render_run_page

    for option, value in options.of_models.items():
        if value is not None:
            raise DataError(f"is a report of a run, and {option} needs a model; give the model", file)
    if options.html is not None:
        require_matplotlib(options.html)

    def output() -> None:
        """Print the report."""
        if options.as_json:
            print_json({"kind": "report", "file": file, **report.to_json()})
        elif options.as_tsv:
            print_lines(curve_table(report), end="")
        else:
            print_lines(run_lines(report, file, options.top, standard_output()))

    write(options, lambda: render_run_page(report, file, options.top, options.title), output)


def _show_checkpoint(content: CheckpointContent, file: str, options: ShowOptions) -> None:
    """Print how far an interrupted run is."""
    from lmart.cli.show_output import print_json, print_lines, write
    from lmart.cli.terminal.layout import facts, standard_output
    from lmart.settings import TrainSettings
    from lmart.training.checkpoint import MODEL

    for option, value in {**options.of_models, "--tsv": options.as_tsv or None, "--html": options.html}.items():
        if value is not None:
            raise DataError(f"is a checkpoint, which {option} says nothing of; give the model or the report", file)
    grown = {part: sum(done.grown is not None for done in rounds) for part, rounds in content.rounds.items()}
    of_model = grown.pop(MODEL, 0)
    settings, defaults = content.run["settings"], TrainSettings().to_json()
    counts = {"trials": len(content.trials), "trees_before": sum(grown.values()), "trees": of_model}
    about = {"kind": "checkpoint", "file": file, "program": content.program}
    done = [counted(len(content.trials), "trial")] if content.trials else []
    done += [f"{counted(sum(grown.values()), 'tree')} of folds or trials"] if grown else []
    done.append(f"{of_model:,} of at most {counted(settings['trees'], 'tree')}")
    own = {name: value for name, value in settings.items() if value != defaults.get(name)}
    differ = [visible(f"{name.replace('_', '-')} {value}") for name, value in own.items()]
    entries = [
        ("checkpoint", f"{visible(file)} (of lmart train, version {visible(content.program)})"),
        ("done", ", ".join(done)),
        ("settings", ", ".join(differ) or "all by default"),
    ]

    def output() -> None:
        """Print the checkpoint."""
        if options.as_json:
            print_json({**about, **counts, "settings": settings})
        else:
            print_lines(facts(entries, standard_output()))

    write(options, None, output)
