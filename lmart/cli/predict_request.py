"""What the command line of `lmart predict` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

import os
from dataclasses import dataclass

import click

from lmart.cli.options.declare import given_on_command_line
from lmart.cli.options.shared import strict_field
from lmart.errors import counted, either, quote
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import RESULT_FORMATS
from lmart.settings.declared import declared


def _those_with(option: str) -> str:
    """Return the names of the output formats that have a place for what the option adds."""
    return either([result_format.name for result_format in RESULT_FORMATS.values() if option in result_format.takes])


def _tag(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.split() != [value] or not value.isprintable():
        raise click.BadParameter("a run's tag is one word without blanks or control characters")
    return value


@dataclass(frozen=True)
class PredictInputs:
    """What is scored, and by which model."""

    model: str = declared(
        "",
        "Model file; '-': standard input.",
        flags=("-m", "--model"),
        metavar="MODEL",
        required=True,
        instead="give one model, and run the command for each",
    )
    data: str = declared(
        "",
        "Rows to score; '-': standard input.",
        "With --dask also a pattern, such as 'parts/*.svm.gz'.",
        metavar="FILE",
        required=True,
        instead="join the files first, or run the command for each",
    )
    strict: bool = strict_field()

    def paths(self, read_options: ReadOptions) -> list[str]:
        """Return all files that are read."""
        sizes = read_options.query_sizes
        return [self.model, self.data, *([] if sizes is None else [sizes])]


@dataclass(frozen=True)
class PredictOutput:
    """What is written, and where."""

    out: str = declared(
        "-",
        "File for the result; '-': standard output.",
        "With --dask one file for each file of --data, such as 'scores/*.txt', in an existing folder.",
        flags=("-o", "--out"),
        metavar="FILE",
        instead="give it once",
    )
    form: str = declared(
        "scores",
        "Format of the scores.",
        " ".join(f"{form.name}: {form.summary}" for form in RESULT_FORMATS.values())
        + " Documents have their ids from the data, or else their number in the query, from 1. A document that occurs "
        "twice in a query is an error in trec, and a warning in tsv and jsonl.",
        flags=("--format",),
        choices=tuple(RESULT_FORMATS),
    )
    top: int | None = declared(
        None, "Write only the top K rows of each query.", "Not with --format scores.", low=1, metavar="K", shown="all"
    )
    tag: str = declared("lmart", "Name of the run in --format trec.", metavar="NAME", callback=_tag)
    explain: bool = declared(
        False,
        "Add feature contributions; with --format jsonl.",
        "Each row gets a base, the same for all rows, and the contributions of features that are not 0; their sum is "
        "the score.",
    )
    why: tuple[str, str, str] | None = declared(
        None,
        "Print why A ranks above or below B in query QID.",
        "Instead of scores, lmart prints a table of the features that decide it. A and B are ids of documents from the "
        "data, or their numbers in the query, from 1.",
        nargs=3,
        metavar="QID A B",
    )

    def check_usage(self) -> None:
        """Raise a usage error when options do not go together."""
        takes = RESULT_FORMATS[self.form].takes
        if self.explain and "explain" not in takes:
            formats = _those_with("explain")
            raise click.UsageError(f"--explain needs --format {formats}: other formats have no place for contributions")
        if self.why is not None:
            others = {"--out": self.out != "-", "--format": self.form != "scores", "--top": self.top is not None}
            for option in (option for option, is_given in others.items() if is_given):
                raise click.UsageError(f"--why prints a table to standard output; drop {option}")
        if given_on_command_line("tag") and "tag" not in takes:
            formats = _those_with("tag")
            raise click.UsageError(f"--tag needs --format {formats}: other formats have no place for the name of a run")
        if self.top is not None and "top" not in takes:
            raise click.UsageError(f"--top needs --format {_those_with('top')}: plain scores are one line a row")

    def check_parts(self) -> None:
        """Raise a usage error when workers cannot write one file for each file of the data."""
        parts = "give one file a part, as in --out 'scores/*.txt'"
        if self.out == "-":
            raise click.UsageError(f"standard output does not go with --dask: workers write files; {parts}")
        folder, name = os.path.split(self.out)
        if "*" in folder or name.count("*") > 1:
            what = f"--out {quote(self.out)} has more than one *, or one in the name of a folder"
            raise click.UsageError(f"{what}; {parts}")
        if not name:
            raise click.UsageError(f"--out {quote(self.out)} names a folder; {parts}")

    def of_one_process(self, options: ReadOptions) -> list[tuple[str, object, str]]:
        """Return what does not go with --dask: the option, its value, and what to do instead."""
        sizes = "put queries into the data first, with 'lmart convert'"
        return [
            ("--why", self.why, "leave out --dask, and give the file that has the query"),
            ("--query-sizes", options.query_sizes, sizes),
        ]

    def written(self, n_rows: int) -> str:
        """Return what was written."""
        best = "" if self.top is None else f", the best {self.top} of each query"
        return f"wrote {counted(n_rows, 'score')}{best}"

    @property
    def path(self) -> str:
        """Where the result goes."""
        return "-" if self.why is not None else self.out

    def reading(self, options: ReadOptions, strict: bool) -> ReadOptions:
        """Return how rows to score are read: labels are not looked at, document ids only when they are written."""
        return options.for_scoring(strict, RESULT_FORMATS[self.form].is_named or self.why is not None)
