"""What the command line of `lmart eval` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import click

from lmart.cli.command import line_of
from lmart.cli.options.declare import flag_of, given_on_command_line
from lmart.cli.options.shared import ClusterOptions, check_inputs, check_page, strict_field
from lmart.cli.options.types import MeasureType
from lmart.errors import first_repeated, quote
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.measures import DEFAULT_METRICS, KINDS, Measure, parse_measure, parse_measures
from lmart.measures.conventions import CHOICES, LARGEST_LEVEL
from lmart.measures.kinds import names_by
from lmart.measures.measure import measures_for
from lmart.measures.presets import PRESETS, conventions_like
from lmart.measures.resampling import (
    DEFAULT_FLIPS,
    DEFAULT_LEVEL,
    EXACT_UP_TO,
    LARGEST_NUMBER,
    LARGEST_SEED,
    LEAST_RESAMPLES,
    MOST_RESAMPLES,
    Resampling,
)
from lmart.settings.declared import declared

WITH_GAIN = " and ".join(kind.name for kind in KINDS.values() if kind.uses_gain)
"""The names of measures that depend on the gain, for help and messages."""
WITHOUT_EMPTY = " and ".join(kind.name for kind in KINDS.values() if not kind.counts_empty)
"""The names of measures to which queries without a relevant document are as others."""
SYSTEMS = ("model", "scores", "run")
"""The kinds of systems, which are options."""


class GivenSystem(NamedTuple):
    """A system as the command line gives it: its kind, one of SYSTEMS, its file, and its name; None: as its file."""

    kind: str
    path: str
    name: str | None


def _systems_in_order() -> tuple[GivenSystem, ...]:
    """Return the systems in the order of the command line; Click hands over the values of each option by themselves."""
    line = line_of(click.get_current_context())
    left = {kind: iter(line.values.get(kind) or ()) for kind in SYSTEMS}
    named = [parameter.name or "" for parameter in line.order]
    return tuple(_given_system(kind, next(left[kind])) for kind in named if kind in left)


def _given_system(kind: str, text: str) -> GivenSystem:
    """Return the system of FILE or NAME=FILE; what is there as a file is one, and a name holds no slash."""
    name, equals, path = text.partition("=")
    if not (equals and name and path) or "/" in name or os.path.exists(text):
        return GivenSystem(kind, text, None)
    return GivenSystem(kind, path, name)


@dataclass(frozen=True)
class EvalInputs:
    """What is measured: systems that rank the documents of `data`, or of TREC qrels."""

    data: tuple[str, ...] = declared(
        (),
        "Judged documents.",
        "LETOR, CSV, TSV or Parquet; several files are one data set.",
        metavar="FILE...",
        multiple=True,
    )
    model: tuple[str, ...] = declared(
        (),
        "Model to measure, or several to compare.",
        "NAME=MODEL gives it a name for tables and pages.",
        flags=("-m", "--model"),
        metavar="[NAME=]MODEL...",
        multiple=True,
    )
    scores: tuple[str, ...] = declared(
        (),
        "Scores to measure, one per line.",
        "In the order of the rows. Several files are several systems to compare; NAME=FILE gives one a name.",
        metavar="[NAME=]FILE...",
        multiple=True,
    )
    qrels: str | None = declared(
        None,
        "Judged documents as TREC qrels, in place of --data.",
        "'qid iter docno label' on each line; documents with a label below 0 are unjudged.",
        metavar="FILE",
    )
    run: tuple[str, ...] = declared(
        (),
        "TREC run to measure.",
        "'qid Q0 docno rank score tag' on each line, with --qrels, or with --data that has document ids. The scores "
        "decide the order, not the ranks. NAME=FILE gives it a name.",
        metavar="[NAME=]FILE...",
        multiple=True,
    )
    missing: str | None = declared(
        None,
        "How to score judged queries missing from the run.",
        "zero: as if the run had found no document; skip: leave them out of the mean.",
        choices=("zero", "skip"),
        shown="zero",
    )
    weights: str | None = declared(
        None,
        "Weights for the mean.",
        "One number per query, or one per row (a query gets the mean of its rows).",
        metavar="FILE",
    )
    groups: str | None = declared(
        None,
        "Also measure groups of queries.",
        "'qid TAB group' on each line of FILE.",
        flags=("--by",),
        metavar="FILE",
    )
    strict: bool = strict_field()
    systems: tuple[GivenSystem, ...] = field(default_factory=_systems_in_order)

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
        return tuple(replace(measure, conventions=conventions) for measure in measures)

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
        names = [system.name for system in self.systems if system.name is not None]
        if (again := first_repeated(names)) is not None:
            raise click.UsageError(f"two systems are named {quote(again)}; give each a name of its own")
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
        for option in fields(ReadOptions) if self.qrels is not None else ():
            if "help" in option.metadata and given_on_command_line(option.name):
                raise click.UsageError(f"{flag_of(option)} is for --data, and --qrels has one form; leave it out")


def _convention(name: str, help: str, more: str, metavar: str = "") -> Any:
    """Return the option of a convention that is a word; None: as --like says."""
    words = tuple(CHOICES[name])
    named = {"metavar": metavar} if metavar else {}
    return declared(None, help, more, choices=words, shown=words[0], **named)  # type: ignore[arg-type]


@dataclass(frozen=True)
class MeasureOptions:
    """How it is measured; what is None is as `like` says, and gain without it as the model says."""

    metric: tuple[str, ...] = declared(
        (DEFAULT_METRICS,),
        "Measures, separated by commas.",
        "Several lists add up.",
        type=MeasureType(),
        metavar="LIST",
        multiple=True,
        shown=DEFAULT_METRICS,
    )
    like: str | None = declared(
        None,
        "Follow the conventions of another tool.",
        "The same scores then get its numbers; the options below change single conventions. The tools are "
        f"{', '.join(PRESETS)}; see lmart-measures(7).",
        choices=tuple(PRESETS),
        metavar="TOOL",
    )
    gain: Gain | None = declared(
        None,
        "Gain of a label: exp2, linear, or a table G0,G1,...",
        f"In {WITH_GAIN}: 2^label - 1, the label, or an entry of a table, which has them from label 0 up.",
        shown="the model's, else exp2",
    )
    discount: str | None = _convention(
        "discount",
        "Discount of a rank.",
        f"In {WITH_GAIN}: 1 / log2(rank + 1), or that of LETOR, 1 at ranks 1 and 2, then 1 / log2(rank).",
    )
    relevant: float | None = declared(
        None,
        "Least label of a relevant document.",
        "It applies to binary measures without a rel= of their own, as in p@5(rel=2).",
        above=0,
        high=LARGEST_LEVEL,
        metavar="LABEL",
        shown="any above 0",
    )
    empty: str | None = _convention(
        "empty",
        "Value of a query without a relevant document.",
        f"In all measures except {WITHOUT_EMPTY}; skip leaves the query out of the mean.",
    )
    ties: str | None = _convention(
        "ties",
        "Order of equal scores: input, reverse, docid or average.",
        "input: the order of the data. reverse: its reverse. docid: by document id, the last first. average: the mean "
        "over all orders, computed exactly.",
        "ORDER",
    )
    short: str | None = _convention(
        "short",
        "ndcg@k of queries with fewer than k documents.",
        "whole: the value for the whole query; zero: 0, as in LETOR.",
    )
    p_divisor: str | None = _convention(
        "p_divisor", "Divisor of p@k and f1@k in queries shorter than k.", "k, or their number of documents (length)."
    )
    map_divisor: str | None = _convention(
        "map_divisor",
        "Divisor of map@k: relevant, k or length.",
        "relevant: the number of relevant documents of the query; k: at most k; length: at most the number of ranks "
        "that count.",
        "DIVISOR",
    )
    unjudged: str | None = _convention(
        "unjudged",
        "Documents of a run that are not judged: count or remove.",
        "count: they are ranked, and not relevant; remove: they are taken out before ranks are counted.",
    )
    precision: str | None = _convention(
        "precision",
        "Precision for the comparison of scores.",
        "double: 64 bits; single: rounded to 32 bits, which makes some scores equal.",
    )

    @property
    def gain_given_by(self) -> str | None:
        """The option that gives the gain; None: the gain is that of the model."""
        if self.gain is not None:
            return "--gain"
        return None if self.like is None else f"--like {self.like}"

    def measures(self, with_page: bool) -> tuple[Measure, ...]:
        """Return the measures; SettingsError when there is no such measure, a usage error when an option is idle."""
        single = {
            option.name: getattr(self, option.name) for option in fields(self) if option.name not in ("metric", "like")
        }
        measures = parse_measures(",".join(self.metric), conventions_like(self.like, **single))
        _refuse_idle((*measures, parse_measure("ndcg@10")) if with_page else measures)
        return measures


@dataclass(frozen=True)
class StatisticsOptions:
    """How intervals and tests are drawn, and which systems are compared."""

    compare: bool = declared(True, "Compare all other systems with the first.", "Query by query, in each measure.")
    all_pairs: bool = declared(False, "Compare every pair of systems.")
    level: float = declared(DEFAULT_LEVEL, "Confidence level of the intervals.", low=0.5, high=0.9999)
    resamples: int | None = declared(
        None,
        "Number of bootstrap resamples for intervals.",
        f"auto: {MOST_RESAMPLES}, or fewer for more than 50,000 queries, but at least {LEAST_RESAMPLES}.",
        low=1,
        high=LARGEST_NUMBER,
        other="auto",
    )
    flips: int = declared(
        DEFAULT_FLIPS,
        "Random sign flips in the randomization test.",
        f"If at most {EXACT_UP_TO} queries differ, it tries all choices of signs.",
        low=1,
        high=LARGEST_NUMBER,
    )
    seed: int = declared(0, "Seed of resamples and sign flips.", low=0, high=LARGEST_SEED)

    @property
    def resampling(self) -> Resampling:
        """How intervals and tests are drawn."""
        return Resampling(self.seed, self.level, self.resamples, self.flips)

    def check_usage(self, n_systems: int, is_reported: bool) -> None:
        """Raise a usage error when an option has no effect."""
        if not is_reported:
            for option in fields(self):
                if given_on_command_line(option.name):
                    flag = "--" + option.name.replace("_", "-")
                    raise click.UsageError(f"{flag} is for the report, which --per-query - replaces; leave it out")
        for name, flag in (("flips", "--flips"), ("all_pairs", "--all-pairs"), ("compare", "--compare/--no-compare")):
            if not given_on_command_line(name):
                continue
            if n_systems < 2:
                what = f"{flag} is for comparing systems, and there is one"
                raise click.UsageError(f"{what}; give several, or leave it out")
            if not self.compare and name != "compare":
                raise click.UsageError(f"{flag} is for comparing systems, which --no-compare leaves out")


@dataclass(frozen=True)
class EvalOutput:
    """What is written."""

    per_query: str | None = declared(
        None,
        "Write the measures of each query to FILE.",
        "FILE is tab-separated: a header, then a line per query with its id and each value, n/a if the query is left "
        "out; with several systems, the name of the system comes first. If the name ends in .jsonl or .ndjson, each "
        "line is a JSON object. With - the lines go to standard output in place of the report.",
        metavar="FILE",
    )
    as_json: bool = declared(False, "Print one JSON object with every digit, not the table.", flags=("--json",))
    html: str | None = declared(
        None,
        "Also write a page for a browser.",
        "It says in a sentence what the numbers say, and shows the measures with their intervals, differences, NDCG@k "
        "by k, queries by value, groups and conventions; it holds all numbers as JSON, and needs no other file and no "
        "network. Writing it needs matplotlib (pip install matplotlib). With - it goes to standard output in place of "
        "the report.",
        metavar="FILE",
    )
    train_report: str | None = declared(
        None,
        "Show a training run on the page.",
        "FILE is a report of lmart train --report; the page shows its learning curves and importance of features.",
        metavar="FILE",
    )

    title: str | None = declared(
        None, "Title of the page.", "It may say what was compared, for whom, and when.", metavar="TEXT"
    )

    @property
    def is_reported(self) -> bool:
        """Whether there is a report or a page, which intervals and comparisons are part of."""
        return self.per_query != "-" or self.html is not None

    @property
    def paths(self) -> list[str]:
        """All that is written, standard output too."""
        return list(dict.fromkeys("-" if path is None else path for path in (self.per_query, self.html, "-")))

    def check_usage(self) -> None:
        """Raise a usage error when the outputs do not go together."""
        if self.as_json and self.per_query == "-":
            raise click.UsageError("--json and --per-query - both write to standard output; give --per-query a file")
        if self.html == "-" and (self.as_json or self.per_query == "-"):
            other = "--json" if self.as_json else "--per-query -"
            raise click.UsageError(f"--html - and {other} both write to standard output; give --html a file")
        if self.html and self.per_query and os.path.realpath(self.html) == os.path.realpath(self.per_query):
            raise click.UsageError(f"--html and --per-query both write to {self.html}; give each a file of its own")
        check_page(self.html, self.train_report, self.title)


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
    check_inputs(paths, read_options)
    return paths


def _refuse_idle(measures: tuple[Measure, ...]) -> None:
    """Refuse conventions that are given on the command line but that no measure depends on."""
    names = ", ".join(kind.name for kind in KINDS.values() if kind.is_binary)
    binary = f"binary measures ({names}) without rel="
    needs: dict[str, tuple[str, Callable[[Measure], bool]]] = {
        "gain": (f"{WITH_GAIN} only", lambda measure: measure.kind.uses_gain),
        "discount": (f"{WITH_GAIN} only", lambda measure: measure.kind.uses_gain),
        "empty": (f"all measures but {WITHOUT_EMPTY}", lambda measure: measure.kind.counts_empty),
        "relevant": (f"{binary} only", lambda measure: measure.kind.is_binary and measure.level is None),
        **{name: (f"{names_by(name)} only", _goes_by(name)) for name in ("short", "p_divisor", "map_divisor")},
    }
    for name, (where, counts) in needs.items():
        if given_on_command_line(name) and not any(map(counts, measures)):
            other = "other" if name == "empty" else "such measure"
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} counts in {where}, and --metric has no {other}; leave it out")


def _goes_by(convention: str) -> Callable[[Measure], bool]:
    return lambda measure: convention in measure.kind.conventions and measure.cutoff is not None
