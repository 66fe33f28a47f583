"""What the command line of `lmart eval` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import click

from lmart.cli.options.cluster import ClusterOptions
from lmart.cli.options.conventions import WITH_GAIN, WITHOUT_EMPTY
from lmart.cli.options.data import OPTION_NAMES, refuse_two_standard_inputs
from lmart.cli.options.packed import given_on_command_line
from lmart.cli.options.systems import GivenSystem
from lmart.errors import quote
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.measures import KINDS, Measure, parse_measure, parse_measures
from lmart.measures.presets import conventions_like
from lmart.measures.values import measures_for


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

    @property
    def of_workers(self) -> list[str]:
        """The files that workers of a cluster read."""
        scores = [system.path for system in self.systems if system.kind == "scores"]
        return [*self.data, *scores, *([] if self.weights is None else [self.weights])]

    def with_run_conventions(self, measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
        """Return the measures, for runs with equal scores by document id unless --ties or --like says otherwise."""
        conventions = measures[0].conventions
        if "run" in self.kinds and not given_on_command_line("ties") and conventions.like is None:
            conventions = replace(conventions, ties="docid")
        if self.missing is not None:
            conventions = replace(conventions, missing=self.missing)
        return tuple(replace(one, conventions=conventions) for one in measures)

    def check_usage(self) -> None:
        """Raise a usage error when the inputs do not go together."""
        kinds = self.kinds
        for path in (system.path for system in self.systems if system.kind == "model"):
            if (measures := measures_for(path)) is not None and not os.path.exists(path):
                raise click.UsageError(f"-m {quote(path)}: -m is the model; perhaps --metric {measures}")
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
            raise click.UsageError("a --run is not measured next to --model or --scores; write runs of all of them")
        if self.strict and "model" not in kinds:
            raise click.UsageError("--strict needs --model: scores are measured without looking at features")
        if self.missing is not None and "run" not in kinds:
            raise click.UsageError("--missing needs --run: models and scores rank every query of the data")
        if self.weights is not None and self.qrels is not None:
            raise click.UsageError("--weights needs --data: qrels have no order that weights could go by")
        given = [name for name in OPTION_NAMES if self.qrels is not None and given_on_command_line(name)]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')} is for --data, and --qrels has one form; leave it out"
            )


@dataclass(frozen=True)
class MeasureOptions:
    """How it is measured, one field an option; what is None is as `like` says, and gain without it as the model says.

    metric      : lists of measures
    like        : name of a preset
    gain, discount, relevant, empty, ties, short, p_divisor, map_divisor, precision : as in Conventions
    """

    metric: tuple[str, ...]
    like: str | None
    gain: Gain | None
    discount: str | None
    relevant: float | None
    empty: str | None
    ties: str | None
    short: str | None
    p_divisor: str | None
    map_divisor: str | None
    precision: str | None

    @property
    def gain_given_by(self) -> str | None:
        """The option that gives the gain; None: the gain is that of the model."""
        if self.gain is not None:
            return "--gain"
        return None if self.like is None else f"--like {self.like}"

    def measures(self, with_page: bool) -> tuple[Measure, ...]:
        """Return the measures; SettingsError when there is no such measure, a usage error when an option is idle."""
        single = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("metric", "like")}
        measures = parse_measures(",".join(self.metric), conventions_like(self.like, **single))
        _refuse_idle((*measures, parse_measure("ndcg@10")) if with_page else measures)
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
        return list(dict.fromkeys("-" if one is None else one for one in (self.per_query, self.html, "-")))

    def check_usage(self) -> None:
        """Raise a usage error when the outputs do not go together."""
        if self.as_json and self.per_query == "-":
            raise click.UsageError("--json and --per-query - both write to standard output; give --per-query a file")
        if self.html == "-" and (self.as_json or self.per_query == "-"):
            other = "--json" if self.as_json else "--per-query -"
            raise click.UsageError(f"--html - and {other} both write to standard output; give --html a file")
        if self.html and self.per_query and os.path.realpath(self.html) == os.path.realpath(self.per_query):
            raise click.UsageError(f"--html and --per-query both write to {self.html}; give each a file of its own")
        if self.train_report is not None and self.html is None:
            raise click.UsageError("--train-report is shown on the page; give --html too")


def check_usage(
    inputs: EvalInputs, output: EvalOutput, read_options: ReadOptions, cluster: ClusterOptions
) -> list[str]:
    """Return all files that are read; a usage error when options do not go together."""
    inputs.check_usage()
    output.check_usage()
    cluster.check_usage(
        [
            ("--qrels", inputs.qrels, "measure runs in one process"),
            ("--run", "run" in inputs.kinds, "measure runs in one process"),
            ("--group-by-qid", read_options.group_by_qid, "put the rows of each query together, in one file"),
            ("--query-sizes", read_options.query_sizes, "put queries into the data first, with 'lmart convert'"),
        ],
        inputs.of_workers,
    )
    others = (read_options.query_sizes, output.train_report)
    paths = [*inputs.files, *(path for path in others if path is not None)]
    refuse_two_standard_inputs(paths)
    return paths


def _refuse_idle(measures: tuple[Measure, ...]) -> None:
    """Refuse conventions that are given on the command line but that no measure depends on."""
    names = ", ".join(kind.name for kind in KINDS.values() if kind.is_binary)
    binary = f"binary measures ({names}) without rel="
    needs: dict[str, tuple[str, Callable[[Measure], bool]]] = {
        "gain": (f"{WITH_GAIN} only", lambda one: one.kind.uses_gain),
        "discount": (f"{WITH_GAIN} only", lambda one: one.kind.uses_gain),
        "empty": (f"all measures but {WITHOUT_EMPTY}", lambda one: one.kind.counts_empty),
        "relevant": (f"{binary} only", lambda one: one.kind.is_binary and one.level is None),
        "short": (f"{_short_forms('ideal DCG')} only", _with_divisor("ideal DCG")),
        "p_divisor": (f"{_short_forms('cutoff')} only", _with_divisor("cutoff")),
        "map_divisor": (
            f"{_short_forms('relevant documents to the cutoff')} only",
            _with_divisor("relevant documents to the cutoff"),
        ),
    }
    for name, (where, counts) in needs.items():
        if given_on_command_line(name) and not any(map(counts, measures)):
            other = "other" if name == "empty" else "such measure"
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} counts in {where}, and --metric has no {other}; leave it out")


def _short_forms(divisor: str) -> str:
    return " and ".join(f"{kind.name}@k" for kind in KINDS.values() if kind.divisor == divisor)


def _with_divisor(divisor: str) -> Callable[[Measure], bool]:
    return lambda one: one.kind.divisor == divisor and one.cutoff is not None
