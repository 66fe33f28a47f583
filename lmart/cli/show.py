"""lmart show: what is in a model, or how a run went."""

from __future__ import annotations

from dataclasses import dataclass, fields

import click

from lmart.cli.help.command import HelpfulCommand
from lmart.cli.options.common import quiet_option, strict_option, thread_count, threads_option
from lmart.cli.options.data import data_options, refuse_two_standard_inputs
from lmart.cli.options.packed import given_on_command_line, packed
from lmart.cli.options.types import Whole
from lmart.cli.terminal.console import Console
from lmart.formats.read_options import ReadOptions

EPILOG = """\b
Examples:
  lmart show model.json
  lmart show model.json --data data/sample/test.svm --top 5
  lmart show model.json --tree 1
  lmart show model.json --tsv > importance.tsv
  lmart show run.json
  lmart show run.json --tsv > curves.tsv
"""


@dataclass(frozen=True)
class ShowRequest:
    """What is shown, one field an option.

    file    : a model, or a report of a run
    top     : features to list; None: all
    tree    : number of the tree to show, from 1; None: the whole
    data    : file whose scores are explained; None: none
    as_tsv  : a table for other programs in place of the text
    as_json : one JSON object in place of the text
    strict  : refuse data whose features are not those of the model
    """

    file: str
    top: int | None
    tree: int | None
    data: str | None
    as_tsv: bool
    as_json: bool
    strict: bool

    def check_usage(self, read_options: ReadOptions) -> None:
        """Raise a usage error when options do not go together."""
        if self.data is None and read_options != ReadOptions():
            raise click.UsageError("options of reading data have no effect without --data; leave them out, or give it")
        if self.as_tsv and self.as_json:
            raise click.UsageError("give one of --tsv and --json, not both")
        if self.tree is not None:
            for option, given in {"--tsv": self.as_tsv, "--data": self.data is not None}.items():
                if given:
                    raise click.UsageError(f"--tree shows one tree; drop {option}")
        if given_on_command_line("top") and (self.as_tsv or self.as_json or self.tree is not None):
            other = "--tree" if self.tree is not None else "--tsv" if self.as_tsv else "--json"
            prints = "prints none" if self.tree is not None else "prints all of it"
            raise click.UsageError(f"--top shortens the table of features, and {other} {prints}; drop one of them")
        if self.strict and self.data is None:
            raise click.UsageError("--strict needs --data: it is about the features of the data")
        refuse_two_standard_inputs([self.file, self.data])


@click.command("show", cls=HelpfulCommand, short_help="Show what is in a model, or how a run went.", epilog=EPILOG)
@click.argument("file", metavar="MODEL|REPORT")
@click.option(
    "--top",
    type=Whole(min=1, other="all"),
    metavar="N|all",
    default="20",
    show_default=True,
    help="List the N most important features.\f all: every feature that a tree splits on.",
)
@click.option(
    "--tree",
    type=Whole(min=1),
    metavar="N",
    default=None,
    help="Show tree N of the model as nested conditions.\f Numbers start from 1, as in --report and in messages.",
)
@click.option(
    "--data",
    metavar="FILE",
    default=None,
    help="List mean contributions (SHAP) for the rows of FILE.\f These are means of absolute values. "
    "lmart reads rows block by block.",
)
@click.option(
    "--tsv",
    "as_tsv",
    is_flag=True,
    help="Print a tab-separated table with every digit.\f For a model, the importance of all features; "
    "for a report, the measures of each round.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every digit.")
@strict_option
@data_options
@threads_option
@quiet_option
@packed("request", ShowRequest, [one.name for one in fields(ShowRequest)])
def command(request: ShowRequest, read_options: ReadOptions, threads: int | None, quiet: int) -> None:
    """Show what is in a model of any format that lmart reads, or how a training run with --report went.

    For a model it prints rankers, trees, leaves and depth, the features that trees split on, the settings that differ
    from the defaults, and the importance of features: splits is the number of nodes that split on a feature; gain is
    its share of the split gain, as a mean over the rankers (gains of objectives have different scales). A model that
    does not record its split gains, such as those of RankLib, has only splits. With --data you also see the mean
    absolute contribution of each feature to the scores of those rows, as in lmart predict --explain; you can compare
    all features by it.

    For a report of lmart train it prints the data, the measures, the settings, seconds and warnings, the learning curve
    of each ranker on each data set, and the importance of features.

    On a terminal the text is as wide as the terminal: names are shortened, never numbers. Through a pipe it is always
    the same, and nothing is shortened.
    """
    request.check_usage(read_options)

    # Only now, as these load numpy and numba.
    from lmart.cli import show_run
    from lmart.streams import check_output

    check_output("-", [one for one in (request.file, request.data) if one is not None])
    console = Console(quiet)
    shown = show_run.read(request)
    if isinstance(shown, show_run.ShownModel):
        show_run.show_model(shown, request, read_options, thread_count(threads, console.notice), console)
    else:
        show_run.show_report(shown, request)
