"""What the command line of `lmart eval` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

from dataclasses import dataclass

import click

from lmart.cli.options.data import refuse_two_standard_inputs
from lmart.cli.options.packed import given_on_command_line
from lmart.cli.options.systems import GivenSystem
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.measures import KINDS, Conventions, Measure, parse_measures

WITH_GAIN = " and ".join(kind.name for kind in KINDS.values() if kind.uses_gain)
"""The names of measures that depend on the gain, for help and messages."""
WITHOUT_EMPTY = " and ".join(kind.name for kind in KINDS.values() if not kind.counts_empty)
"""The names of measures to which queries without a relevant document are as others."""


@dataclass(frozen=True)
class EvalInputs:
    """What is measured, one field an option: systems that rank the documents of `data`, or of TREC qrels.

    data    : files of judged documents, one data set
    qrels   : TREC judgments, in place of `data`
    systems : models, files of scores or runs, in the order of the command line
    missing : what a query of the data counts that a run lacks; None: as the conventions have it
    weights : file of weights
    groups  : file of the group of each query
    strict  : refuse data whose features are not those of the model
    """

    data: tuple[str, ...]
    qrels: str | None
    systems: tuple[GivenSystem, ...]
    missing: str | None
    weights: str | None
    groups: str | None
    strict: bool

    @property
    def kinds(self) -> set[str]:
        """The kinds of the systems."""
        return {system.kind for system in self.systems}

    @property
    def files(self) -> list[str]:
        """All files that are read, but for those of `ReadOptions`."""
        others = (self.qrels, *(system.path for system in self.systems), self.weights, self.groups)
        return [*self.data, *(path for path in others if path is not None)]

    def check_usage(self) -> None:
        """Raise a usage error when the inputs do not go together."""
        kinds = self.kinds
        if not self.data and self.qrels is None:
            raise click.UsageError("give --data with judged documents, or --qrels with TREC judgments")
        if self.data and self.qrels is not None:
            raise click.UsageError("--data and --qrels both say what is relevant; give one of them")
        if not kinds:
            ways = "--run" if self.qrels is not None else "--model, --scores and --run"
            raise click.UsageError(f"give what is to be measured: {'' if self.qrels else 'one of '}{ways}")
        if self.qrels is not None and kinds != {"run"}:
            raise click.UsageError("--qrels goes with --run; to measure models or scores give --data")
        if "run" in kinds and len(kinds) > 1:
            raise click.UsageError("a --run is not measured beside --model or --scores; write runs of all of them")
        if self.strict and "model" not in kinds:
            raise click.UsageError("--strict needs --model: scores are measured without looking at features")
        if self.missing is not None and "run" not in kinds:
            raise click.UsageError("--missing needs --run: models and scores rank every query of the data")
        if self.weights is not None and self.qrels is not None:
            raise click.UsageError("--weights needs --data: qrels have no order that weights could go by")


@dataclass(frozen=True)
class MeasureOptions:
    """How it is measured, one field an option; gain None: that of the model, else exp2.

    metric      : lists of measures
    empty, ties : as in Conventions
    """

    metric: tuple[str, ...]
    gain: Gain | None
    empty: str
    ties: str

    def measures(self) -> tuple[Measure, ...]:
        """Return the measures; SettingsError when there is no such measure, a usage error when an option is idle."""
        measures = parse_measures(",".join(self.metric), Conventions(self.gain or Gain(), self.empty, self.ties))
        _refuse_idle(measures)
        return measures


@dataclass(frozen=True)
class EvalOutput:
    """What is written, one field an option.

    per_query : file of the measures of each query
    as_json   : one JSON object in place of the table
    html      : file of the page
    train_report : file of the report of the run that trained the model, for the page
    """

    per_query: str | None
    as_json: bool
    html: str | None
    train_report: str | None

    @property
    def is_reported(self) -> bool:
        """Whether there is a report or a page, which intervals and comparisons are part of."""
        return self.per_query != "-" or self.html is not None

    @property
    def paths(self) -> list[str]:
        """All that is written, standard output too."""
        return list(dict.fromkeys((self.per_query or "-", self.html or "-", "-")))

    def check_usage(self) -> None:
        """Raise a usage error when the outputs do not go together."""
        if self.as_json and self.per_query == "-":
            raise click.UsageError("--json and --per-query - both write to standard output; give --per-query a file")
        if self.html == "-" and (self.as_json or self.per_query == "-"):
            other = "--json" if self.as_json else "--per-query -"
            raise click.UsageError(f"--html - and {other} both write to standard output; give --html a file")
        if self.html is not None and self.html == self.per_query:
            raise click.UsageError(f"--html and --per-query both write to {self.html}; give each a file of its own")
        if self.train_report is not None and self.html is None:
            raise click.UsageError("--train-report is shown on the page; give --html too")


def check_usage(inputs: EvalInputs, output: EvalOutput, read_options: ReadOptions) -> list[str]:
    """Return all files that are read; a usage error when options do not go together.

    inputs       : what is measured
    output       : what is written
    read_options : how files are read
    """
    inputs.check_usage()
    output.check_usage()
    others = (read_options.query_sizes, output.train_report)
    paths = [*inputs.files, *(path for path in others if path is not None)]
    refuse_two_standard_inputs(paths)
    return paths


def _refuse_idle(measures: tuple[Measure, ...]) -> None:
    """Refuse conventions that are given on the command line but that no measure depends on."""
    if given_on_command_line("gain") and not any(measure.kind.uses_gain for measure in measures):
        raise click.UsageError(f"--gain counts in {WITH_GAIN} only, and --metric has no such measure; leave it out")
    if given_on_command_line("empty") and not any(measure.kind.counts_empty for measure in measures):
        what = f"--empty counts in all measures but {WITHOUT_EMPTY}"
        raise click.UsageError(f"{what}, and --metric has no other; leave it out")
