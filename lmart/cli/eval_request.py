"""What the command line of `lmart eval` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

from dataclasses import dataclass

import click

from lmart.cli.options.data import refuse_two_standard_inputs
from lmart.cli.options.packed import given_on_command_line
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.measures import KINDS, Conventions, Measure, parse_measures

WITH_GAIN = " and ".join(kind.name for kind in KINDS.values() if kind.uses_gain)
"""The names of measures that depend on the gain, for help and messages."""
WITHOUT_EMPTY = " and ".join(kind.name for kind in KINDS.values() if not kind.counts_empty)
"""The names of measures to which queries without a relevant document are as others."""


@dataclass(frozen=True)
class EvalInputs:
    """What is measured, one field an option: `data` ranked by a model, or by a file of scores.

    weights : file of weights
    strict  : refuse data whose features are not those of the model
    """

    data: tuple[str, ...]
    model: str | None
    scores: str | None
    weights: str | None
    strict: bool


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
    """

    per_query: str | None
    as_json: bool


def check_usage(inputs: EvalInputs, output: EvalOutput, read_options: ReadOptions) -> list[str]:
    """Return all files that are read; a usage error when options do not go together.

    inputs       : what is measured
    output       : what is written
    read_options : how files are read
    """
    model, scores = inputs.model, inputs.scores
    if (model is None) == (scores is None):
        raise click.UsageError("give one of --model and --scores" + ("" if model is None else ", not both"))
    if inputs.strict and model is None:
        raise click.UsageError("--strict needs --model: scores are measured without looking at features")
    if output.as_json and output.per_query == "-":
        raise click.UsageError("--json and --per-query - both write to standard output; give --per-query a file")
    paths = [
        path for path in (*inputs.data, model, scores, inputs.weights, read_options.query_sizes) if path is not None
    ]
    refuse_two_standard_inputs(paths)
    return paths


def _refuse_idle(measures: tuple[Measure, ...]) -> None:
    """Refuse conventions that are given on the command line but that no measure depends on."""
    if given_on_command_line("gain") and not any(measure.kind.uses_gain for measure in measures):
        raise click.UsageError(f"--gain counts in {WITH_GAIN} only, and --metric has no such measure; leave it out")
    if given_on_command_line("empty") and not any(measure.kind.counts_empty for measure in measures):
        what = f"--empty counts in all measures but {WITHOUT_EMPTY}"
        raise click.UsageError(f"{what}, and --metric has no other; leave it out")
