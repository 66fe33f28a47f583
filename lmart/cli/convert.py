"""lmart convert: data to data, model to model."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from lmart.cli.command import HelpfulCommand
from lmart.cli.compile import compile_ahead
from lmart.cli.options.declare import given_on_command_line, group
from lmart.cli.options.shared import Running, check_inputs, data_options, running_options
from lmart.cli.options.types import Shares
from lmart.cli.terminal.console import Console
from lmart.errors import ModelError, counted, quote
from lmart.formats.format_records import DataFormat, ModelFormat
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS, FORMATS, MODEL_FORMATS, OWN, AnyFormat, format_of_name
from lmart.settings.declared import declared

if TYPE_CHECKING:
    from lmart.array_types import Int32Array
    from lmart.data.dataset import SparseRows
    from lmart.scoring.ensemble import Ensemble
    from lmart.scoring.model_comparison import ModelComparison

HELP = """Convert SRC to DST: data to data, or a model to a model; '-' is standard input or output."""

EPILOG = """\b
Examples:
  lmart convert test.svm test.csv
  lmart convert test.csv again.svm
  lmart convert test.svm - --to tsv
  lmart convert test.svm test.qrels
  lmart convert train.svm part.svm --split 0.8,0.1,0.1
  lmart convert model.json model.txt --to lightgbm --verify test.svm
  lmart convert model.json model.xml --to ranklib
  lmart convert model.json solr.json --to solr --nonnegative
  lmart convert model.xml again.json
"""


def _listed(way: str) -> str:
    """Return the names of the formats that have a reader or a writer, as `way` says: data; or models."""
    return "; or ".join(
        ", ".join(file_format.name for file_format in formats.values() if getattr(file_format, way) is not None)
        for formats in (DATA_FORMATS, MODEL_FORMATS)
    )


@dataclass(frozen=True)
class FormatOptions:
    """The formats that are given; None: by name or content."""

    source_format: str | None = declared(
        None,
        f"Format of SRC: {_listed('reader')}.",
        flags=("--from",),
        choices=tuple(FORMATS),
        metavar="FORMAT",
        shown="by name, else by content",
    )
    target_format: str | None = declared(
        None,
        f"Format of DST: {_listed('writer')}.",
        flags=("--to",),
        choices=tuple(FORMATS),
        metavar="FORMAT",
        shown="by name; standard output: letor, or lmart",
    )
    absent: str = declared(
        "zero",
        "Meaning of an index that a LETOR row does not name.",
        "CSV, TSV and Parquet get 0, or an empty field.",
        choices=("zero", "missing"),
    )


@dataclass(frozen=True)
class SplitOptions:
    """How data is split into several files."""

    split: tuple[float, ...] | None = declared(
        None,
        "Split the queries into several files, by shares.",
        "The files are DST with -1, -2, and so on before its suffix, such as all-1.csv. All rows of a query go to one "
        "file. Queries are drawn at random, so that each file has its share of them, to within two queries.",
        type=Shares(),
        metavar="A,B[,...]",
    )
    seed: int = declared(0, "Random seed of --split.", low=0, high=2**63 - 1)

    def outputs(self, dst: str) -> list[str]:
        """Return the files that are written."""
        from lmart.formats.documents.splitting import names_of_parts

        return [dst] if self.split is None else names_of_parts(dst, len(self.split))

    def check_usage(self, dst: str) -> None:
        """Raise a usage error when DST cannot be split."""
        if self.split is not None and dst == "-":
            raise click.UsageError("--split writes several files, and standard output is one; give DST a name")
        if self.split is None and given_on_command_line("seed"):
            raise click.UsageError("--seed is for --split; leave it out")


@dataclass(frozen=True)
class ModelOptions:
    """The options that are for models only."""

    verify: str | None = declared(
        None,
        "Score DATA with both models, and compare.",
        "lmart scores the rows of DATA, and rows that it makes on and around each threshold (without missing values), "
        "and prints the largest difference and the number of rows that reach another leaf.",
        metavar="DATA",
    )
    strict: bool = declared(False, "Refuse a model that DST cannot represent exactly.")
    feature_map: str | None = declared(
        None,
        "New names of features, 'feature name' on each line.",
        "A third word is the type in an fmap file of XGBoost. Put tabs around names with blanks.",
        metavar="FILE",
    )
    nonnegative: bool = declared(
        False,
        "Add a tree that makes the lowest possible score 0.",
        "Search engines on Lucene 8 or later refuse scores below 0. The tree subtracts the sum of the smallest leaf "
        "values of all trees, so the order stays; scores that round to the same number tie. lmart adds no tree if no "
        "score can be below 0.",
    )
    name: str | None = declared(
        None,
        "Name of the model, for solr or xgboost-dump.",
        "With it, a dump of XGBoost is written as the request that the LTR plugins of Elasticsearch and OpenSearch "
        "take.",
        metavar="NAME",
        shown="solr: lmart, or its name in SRC",
    )
    store: str | None = declared(None, "Feature store of a model of Solr.", metavar="NAME", shown="that of SRC")

    @property
    def paths(self) -> list[str]:
        """The files that these options name."""
        return [path for path in (self.verify, self.feature_map) if path is not None]


@click.command("convert", cls=HelpfulCommand, short_help="Convert data or models.", help=HELP, epilog=EPILOG)
@click.argument("src")
@click.argument("dst")
@group("formats", FormatOptions)
@group("splitting", SplitOptions)
@group("model_options", ModelOptions)
@data_options
@running_options
def command(
    src: str,
    dst: str,
    formats: FormatOptions,
    splitting: SplitOptions,
    model_options: ModelOptions,
    read_options: ReadOptions,
    running: Running,
) -> None:
    """Convert a file; the help text is HELP."""
    inputs = [src, *model_options.paths, *([read_options.query_sizes] if read_options.query_sizes else [])]
    check_inputs(inputs, read_options)
    splitting.check_usage(dst)
    source, target = _resolve_formats(src, dst, formats, inputs, splitting.outputs(dst))
    console = Console(running.quiet)
    if isinstance(target, ModelFormat):
        if splitting.split is not None:
            raise click.UsageError(f"--split is for data, and {target.name} holds a model; leave it out")
        _check_model_options(target, model_options)
        # A name such as m.json says that it is a model, but not of which format.
        if given_on_command_line("absent"):
            console.warning("--absent has no effect on a model, which says itself what an absent index means")
        count = running.thread_count(console)
        _convert_model(src, formats.source_format, dst, target.name, model_options, read_options, count, console)
        return
    for name, value in asdict(model_options).items():
        if value not in (None, False):
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} is for models, and {target.name} holds data; leave it out")
    target = DATA_FORMATS[target.name]
    read_options = replace(
        read_options,
        format=None if source is None else source.name,
        require_labels=target.name == "qrels",
        require_queries=target.name == "qrels" or splitting.split is not None,
        keep_document_ids=True,
        ids_for_letor=target.name == "letor",
    ).telling(console.notice, console.warning, console.reading("converting", prints=dst == "-"))
    _convert_data(src, dst, target, formats.absent, splitting, read_options, running.thread_count(console), console)


def _resolve_formats(
    src: str, dst: str, formats: FormatOptions, inputs: list[str], outputs: list[str]
) -> tuple[AnyFormat | None, AnyFormat]:
    """Return the formats of SRC (None: only its content can tell, while it is read) and DST.

    A usage error when one is not supported, they do not go together, or the name of DST says no format; OutputError
    when an output cannot be written.
    """
    source = _source_format(src, formats.source_format)
    target = _target_format(dst, formats.target_format, source)
    _check_supported(source, target)

    from lmart.streams import check_output

    for path in outputs:
        check_output(path, inputs)
    if source is None and src != "-" and os.path.isfile(src):
        from lmart.formats.detection import detect_format

        is_target_free = formats.target_format is None and format_of_name(dst) is None
        source = FORMATS[detect_format(src, None if is_target_free else target.kind)]
        if is_target_free:
            target = FORMATS[OWN] if source.kind == "model" else target
        _check_supported(source, target)
    if source is not None and source.kind != target.kind:
        what = f"{source.name} holds {_what(source)} and {target.name} {_what(target)}"
        raise click.UsageError(f"{what}; convert data to data, model to model")
    if formats.target_format is None and format_of_name(dst) is None and _names_nothing(dst, target):
        what, example = ("model format", OWN) if target.kind == "model" else ("format", "letor")
        raise click.UsageError(
            f"the name {quote(dst)} does not say which {what} is meant; give --to, as in --to {example}"
        )
    return source, target


def _check_model_options(target: ModelFormat, options: ModelOptions) -> None:
    """Raise a usage error for an option that the format of DST has no use for."""
    if options.verify is not None and target.reader is None:
        raise click.UsageError(f"--verify needs a format that lmart reads, and {target.name} is only written")
    if options.nonnegative and not target.is_ordered:
        raise click.UsageError(f"--nonnegative needs a tool that adds trees in order, unlike {target.title}")
    for option, value in (("name", options.name), ("store", options.store)):
        if value is not None and option not in target.takes:
            those = " or ".join(
                model_format.name for model_format in MODEL_FORMATS.values() if option in model_format.takes
            )
            raise click.UsageError(f"--{option} is for --to {those}, and DST is {target.name}; leave it out")
        if value == "":
            raise click.UsageError(f"--{option} is empty; give a name")


def _check_supported(source: AnyFormat | None, target: AnyFormat) -> None:
    """Raise a usage error for a source that is not read (None: not known yet) or a target that is not written."""
    if source is not None and source.reader is None:
        raise click.UsageError(f"the format {quote(source.name)} is only written; those read are: {_listed('reader')}")
    if target.writer is None:
        raise click.UsageError(f"the format {quote(target.name)} is only read; those written are: {_listed('writer')}")


def _names_nothing(dst: str, target: AnyFormat) -> bool:
    """Say whether DST is a file whose name should say its format, but does not."""
    if dst == "-" or (os.path.exists(dst) and not os.path.isfile(dst)):  # a pipe or device has no name of its own
        return False
    return target.kind == "data" or bool(os.path.splitext(dst)[1])


def _what(file_format: AnyFormat) -> str:
    return "a model" if file_format.kind == "model" else "data"


def _source_format(src: str, chosen: str | None) -> AnyFormat | None:
    """Return the format of SRC, None when only its content can tell."""
    return FORMATS[chosen] if chosen is not None else None if src == "-" else format_of_name(src)


def _target_format(dst: str, chosen: str | None, source: AnyFormat | None) -> AnyFormat:
    if chosen is not None:
        return FORMATS[chosen]
    if (named := format_of_name(dst)) is not None:
        return named
    return FORMATS[OWN if source is not None and source.kind == "model" else "letor"]


def _convert_data(
    src: str,
    dst: str,
    target: DataFormat,
    absent: str,
    splitting: SplitOptions,
    options: ReadOptions,
    threads: int,
    console: Console,
) -> None:
    from lmart.formats.documents.conversion import convert_data
    from lmart.formats.documents.splitting import QueryDraw
    from lmart.threads import WorkerPool

    compile_ahead("convert", threads)
    draw = None if splitting.split is None else QueryDraw(splitting.split, splitting.seed)
    with WorkerPool(threads) as pool:
        names = convert_data(src, dst, target, 0.0 if absent == "zero" else math.nan, options, pool, draw)
    console.done(f"wrote {counted(console.rows_read, 'row')}", dst)
    if draw is not None:
        for path, n_queries in zip(splitting.outputs(dst), draw.n_queries, strict=True):
            console.notice(f"{path}: {counted(n_queries, 'query')}")
    if target.name == "qrels" and given_on_command_line("absent"):
        console.notice("--absent changes nothing: qrels have no place for features")
    if target.name == "letor" and given_on_command_line("absent"):
        console.notice("--absent changes nothing: LETOR text goes without the cells that a row does not have")
    if target.name == "letor" and names:
        first = ", ".join(f"{i} is {quote(name)}" for i, name in enumerate(names[:3], 1))
        console.notice(f"LETOR text has no feature names; columns are numbered: {first}{', ...' if names[3:] else ''}")


def _convert_model(
    src: str,
    source_format: str | None,
    dst: str,
    target_format: str,
    options: ModelOptions,
    read_options: ReadOptions,
    threads: int,
    console: Console,
) -> None:
    """Write the model in its new format, verified first when that is asked for.

    ModelError when a model is unsound, the format cannot hold it, or, under --strict, not exactly.
    """
    from lmart.formats.feature_maps import read_feature_map, rename_features
    from lmart.formats.models.model_files import content_of, parse_model, read_model, write_bytes
    from lmart.formats.models.targets import raise_scores
    from lmart.formats.models.xgboost.dump import as_request
    from lmart.scoring.model_comparison import align_features

    own = read_model(src, source_format, console.notice)
    renamed: dict[str, str] = {}
    model = own
    if options.feature_map is not None:
        renamed = read_feature_map(options.feature_map)
        model = rename_features(own, renamed, options.feature_map)
    said = {"name": options.name, "store": options.store}
    model = replace(model, settings=model.settings | {key: text for key, text in said.items() if text is not None})
    target = "standard output" if dst == "-" else dst
    if options.nonnegative:
        model, offset = raise_scores(model, target, target_format)
        own = replace(model, feature_names=own.feature_names)
        what = f"a last tree adds {offset!r}" if offset else "no score can be below 0, so nothing is added"
        console.notice(f"{target}: {what}")
    content, notes, needs = content_of(model, target, target_format)
    if options.name is not None and target_format == "xgboost-dump":
        content = as_request(content, options.name)
    if options.strict and notes:
        more = f"; and {counted(len(notes) - 1, 'more note')}" if notes[1:] else ""
        raise ModelError(f"{notes[0]}{more}; convert without --strict to accept it", target)
    for text in (*notes, *needs):
        console.warning(f"{target}: {text}")
    verified = ""
    if options.verify is not None:
        # Read back what is going to be written.
        written = align_features(own, parse_model(content, target, target_format), renamed)
        found = _verify(own, written, options.verify, target_format, read_options, threads, console)
        verified = "; " + _describe_comparison(found)
        if found.rows_changed or found.planted_changed:
            what = f"{target}: {_changed(found)}"
            if options.strict:
                raise ModelError(f"{what.removeprefix(target + ': ')}; convert without --strict to accept it", target)
            console.warning(what)
    write_bytes(content, dst)
    size = f"{counted(len(model.trees), 'tree')}, {counted(model.n_features, 'feature')}"
    console.notice(f"{target}: {target_format}, {size}{verified}")


def _verify(
    own: Ensemble,
    written: Ensemble,
    data: str,
    target_format: str,
    read_options: ReadOptions,
    threads: int,
    console: Console,
) -> ModelComparison:
    """Score the data of --verify, and planted rows, with both models."""
    from lmart.formats.documents.reading import for_models, open_rows
    from lmart.scoring.feature_matching import FeatureMatcher
    from lmart.scoring.model_comparison import compare_models
    from lmart.threads import WorkerPool

    read_options = for_models(read_options.for_scoring(), [own]).telling(console.notice, console.warning)
    matcher = FeatureMatcher(own)
    with WorkerPool(threads) as pool, open_rows(data, read_options, pool) as reader:

        def blocks() -> Iterator[tuple[SparseRows, Int32Array]]:
            for block in reader:
                yield block.features, reader.match(matcher)

        float32 = MODEL_FORMATS[target_format].is_float32
        found = compare_models(own, written, blocks(), float32, pool)
    matcher.refuse(data)
    for text in matcher.warnings(data):
        console.warning(text)
    return found


def _describe_comparison(found: ModelComparison) -> str:
    """Describe a comparison in a few words."""
    rows = f"{counted(found.n_rows, 'row')} and {counted(found.n_planted, 'planted row')}"
    changed = found.rows_changed + found.planted_changed
    difference = f"largest difference {found.largest_difference:.3g}"
    return f"verified with {rows}: {difference}, {counted(changed, 'row')} changed leaf"


def _changed(found: ModelComparison) -> str:
    """Return the warning that rows come to other leaves."""
    return (
        f"{counted(found.rows_changed, 'row')} of {found.n_rows:,} and {counted(found.planted_changed, 'planted row')} "
        f"of {found.n_planted:,} come to another leaf than before"
    )
