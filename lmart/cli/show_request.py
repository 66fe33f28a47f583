"""What the command line of `lmart show` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import click

from lmart.cli.options.declare import given_on_command_line
from lmart.cli.options.shared import check_inputs, check_page, strict_field
from lmart.formats.read_options import ReadOptions
from lmart.settings.declared import declared

if TYPE_CHECKING:
    from lmart.scoring.ensemble import Ensemble


class ShownModel(NamedTuple):
    """A model that was read, and the name of the format of its file."""

    ensemble: Ensemble
    format: str


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
    html: str | None = declared(
        None,
        "Also write a page for a browser.",
        "Of a model: its facts, the importance of features, a drawing of the first tree of each ranker or of --tree, "
        "and with --data what the values of the most important features do to scores (partial dependence and SHAP), "
        "on at most 2,000 documents drawn at random, always the same ones. Of a report: its learning curves. Of data: "
        "queries, labels, each feature with a histogram, and with OTHER what drifts. The page holds all numbers as "
        "JSON, and needs no other file and no network. Curves and effects need matplotlib (pip install matplotlib). "
        "With - it goes to standard output in place of the text.",
        metavar="FILE",
    )
    train_report: str | None = declared(
        None,
        "Show the training of the model on its page.",
        "FILE is a report of lmart train --report; the page shows its learning curves.",
        metavar="FILE",
    )
    title: str | None = declared(
        None, "Title of the page.", "It may say what is shown, for whom, and when.", metavar="TEXT"
    )
    strict: bool = strict_field()

    def check_usage(self, file: str, other: str | None, read_options: ReadOptions) -> None:
        """Raise a usage error when options do not go together."""
        if self.as_tsv and self.as_json:
            raise click.UsageError("give one of --tsv and --json, not both")
        if self.tree is not None:
            for option, is_given in {"--tsv": self.as_tsv, "--data": self.data is not None and not self.html}.items():
                if is_given:
                    raise click.UsageError(f"--tree shows one tree; drop {option}")
        if given_on_command_line("top") and not self.html and (self.as_tsv or self.as_json or self.tree is not None):
            what = "--tree" if self.tree is not None else "--tsv" if self.as_tsv else "--json"
            prints = "prints none" if self.tree is not None else "prints all of it"
            raise click.UsageError(f"--top shortens the table of features, and {what} {prints}; drop one of them")
        if self.strict and self.data is None:
            raise click.UsageError("--strict needs --data: it is about the features of the data")
        if self.html == "-" and (self.as_json or self.as_tsv):
            what = "--json" if self.as_json else "--tsv"
            raise click.UsageError(f"--html - and {what} both write to standard output; give --html a file")
        check_page(self.html, self.train_report, self.title)
        check_inputs([file, other, self.data, self.train_report], read_options)

    def refuse_for_data(self) -> None:
        """Raise a usage error for an option that is about models only."""
        for option, value in self.of_models.items():
            if value is not None:
                raise click.UsageError(f"{option} needs a model, and this is data; drop {option}")

    @property
    def of_models(self) -> dict[str, object]:
        """The values of options that only a model can use, by their names."""
        return {"--tree": self.tree, "--data": self.data, "--train-report": self.train_report}

    def refuse_without_data(self, other: str | None, read_options: ReadOptions) -> None:
        """Raise a usage error for what only data can use, for a model or a report."""
        if other is not None:
            raise click.UsageError("a second file is compared with data, and the first file is not data; give one file")
        if self.data is None and read_options != ReadOptions():
            raise click.UsageError("options of reading data have no effect without --data; leave them out, or give it")
