"""lmart convert: data to data, model to model."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import NamedTuple

import click

from lmart.cli.compiling import compile_ahead
from lmart.cli.help.command import HelpfulCommand
from lmart.cli.options.choice import Choice
from lmart.cli.options.common import quiet_option, thread_count, threads_option
from lmart.cli.options.data import data_options, refuse_two_standard_inputs
from lmart.cli.options.packed import given_on_command_line, packed
from lmart.cli.terminal.console import Console
from lmart.errors import counted, quote
from lmart.formats.format_records import DataReader, DataWriter, Format
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS, FORMATS, MODEL_FORMATS, OWN, AnyFormat, format_of_name

HELP = """Convert SRC to DST: data to data, or a model to a model; '-' is standard input or output."""

EPILOG = """\b
Examples:
  lmart convert test.svm test.csv
  lmart convert test.csv again.svm
  lmart convert test.svm - --to tsv
  lmart convert test.svm test.qrels
  lmart convert model.json model.txt --to lightgbm --verify test.svm
  lmart convert model.json model.xml --to ranklib
  lmart convert model.json solr.json --to solr --nonnegative
  lmart convert model.xml again.json
"""


class ModelOptions(NamedTuple):
    """The options that are for models only; `ModelRequest` says what each means."""

    verify: str | None
    strict: bool
    feature_map: str | None
    nonnegative: bool
    name: str | None
    store: str | None

    def files(self) -> list[str]:
        """Return the files that these options name."""
        return [path for path in (self.verify, self.feature_map) if path is not None]


MODEL_OPTIONS = (
    click.option(
        "--verify",
        metavar="DATA",
        help="Score DATA with both models, and compare.\f lmart scores the rows of DATA, and rows that it "
        "makes on and around each threshold (without missing values), and prints the largest "
        "difference and the number of rows that reach another leaf.",
    ),
    click.option("--strict", is_flag=True, help="Refuse a model that DST cannot hold exactly."),
    click.option(
        "--feature-map",
        metavar="FILE",
        help="New names of features, 'feature name' on each line.\f A third word is the type in an fmap "
        "file of XGBoost. Put tabs around names with blanks.",
    ),
    click.option(
        "--nonnegative",
        is_flag=True,
        help="Add a tree that makes the lowest possible score 0.\f Search engines on Lucene 8 or later "
        "refuse scores below 0. The tree subtracts the sum of the smallest leaf values of all trees, "
        "so the order stays; scores that round to the same number tie. lmart adds no tree if no "
        "score can be below 0.",
    ),
    click.option(
        "--name",
        metavar="NAME",
        show_default="solr: lmart, or its name in SRC",
        help="Name of the model, for solr or xgboost-dump.\f With it, a dump of XGBoost is written as the request that "
        "the LTR plugins of Elasticsearch and OpenSearch take.",
    ),
    click.option("--store", metavar="NAME", show_default="that of SRC", help="Feature store of a model of Solr."),
)


def _listed(way: str) -> str:
    """Return the names of the formats that have a reader or a writer, as `way` says: data; or models."""
    return "; or ".join(
        ", ".join(one.name for one in formats.values() if getattr(one, way) is not None)
        for formats in (DATA_FORMATS, MODEL_FORMATS)
    )


class ChosenFormats(NamedTuple):
    """The formats that --from and --to name; None: by name or content."""

    source_format: str | None
    target_format: str | None


FORMAT_OPTIONS = (
    click.option(
        "--from",
        "source_format",
        type=Choice(list(FORMATS)),
        metavar="FORMAT",
        default=None,
        show_default="by name, else by content",
        help=f"Format of SRC: {_listed('reader')}.",
    ),
    click.option(
        "--to",
        "target_format",
        type=Choice(list(FORMATS)),
        metavar="FORMAT",
        default=None,
        show_default="by name; standard output: letor, or lmart",
        help=f"Format of DST: {_listed('writer')}.",
    ),
)


@click.command("convert", cls=HelpfulCommand, short_help="Convert data or models.", help=HELP, epilog=EPILOG)
@click.argument("src")
@click.argument("dst")
@packed("chosen", ChosenFormats, ChosenFormats._fields, FORMAT_OPTIONS)
@click.option(
    "--absent",
    type=Choice(["zero", "missing"]),
    default="zero",
    show_default=True,
    help="Meaning of an index that a LETOR row does not name.\f CSV, TSV and Parquet get 0, or an empty field.",
)
@packed("model_options", ModelOptions, ModelOptions._fields, MODEL_OPTIONS)
@data_options
@threads_option
@quiet_option
def command(
    src: str,
    dst: str,
    chosen: ChosenFormats,
    absent: str,
    model_options: ModelOptions,
    read_options: ReadOptions,
    threads: int | None,
    quiet: int,
) -> None:
    """Convert a file; the help text is HELP.

    src           : the file that is read
    dst           : the file that is written
    chosen        : the formats as given
    absent        : what an index that is not in a LETOR row means
    model_options : those for models only
    read_options  : how files are read
    threads       : to use; None: all of this process
    quiet         : how often --quiet is given
    """
    inputs = [src, *model_options.files(), *([read_options.query_sizes] if read_options.query_sizes else [])]
    refuse_two_standard_inputs(inputs)
    source, target = _resolve_formats(src, dst, chosen, inputs)
    console = Console(quiet)
    if target.kind == "model":
        _check_model_options(target, model_options)
        from lmart.cli.convert_model import ModelRequest, convert_model

        # A name such as m.json says that it is a model, but not of which format.
        if given_on_command_line("absent"):
            console.warning("--absent has no effect on a model, which says itself what an absent index means")
        request = ModelRequest(src, dst, chosen.source_format, target.name, **model_options._asdict())
        convert_model(request, read_options, thread_count(threads, console.notice), console)
        return
    for name, value in model_options._asdict().items():
        if value not in (None, False):
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} is for models, and {target.name} holds data; leave it out")
    target = DATA_FORMATS[target.name]
    _convert_data(src, dst, source, target, absent, read_options, thread_count(threads, console.notice), console)


def _resolve_formats(
    src: str, dst: str, chosen: ChosenFormats, inputs: list[str]
) -> tuple[AnyFormat | None, AnyFormat]:
    """Return the formats of SRC (None: only its content can tell, while it is read) and DST.

    A usage error when one is not supported, they do not go together, or the name of DST says no format; OutputError
    when DST cannot be written.
    """
    source = _source_format(src, chosen.source_format)
    target = _target_format(dst, chosen.target_format, source)
    _check_supported(source, target)

    from lmart.streams import check_output

    check_output(dst, inputs)
    if source is None and src != "-" and os.path.isfile(src):
        from lmart.formats.detection import detect_format

        is_target_free = chosen.target_format is None and format_of_name(dst) is None
        source = FORMATS[detect_format(src, None if is_target_free else target.kind)]
        if is_target_free:
            target = FORMATS[OWN] if source.kind == "model" else target
        _check_supported(source, target)
    if source is not None and source.kind != target.kind:
        what = f"{source.name} holds {_what(source)} and {target.name} {_what(target)}"
        raise click.UsageError(f"{what}; convert data to data, model to model")
    if chosen.target_format is None and format_of_name(dst) is None and _names_nothing(dst, target):
        what, example = ("model format", OWN) if target.kind == "model" else ("format", "letor")
        raise click.UsageError(
            f"the name {quote(dst)} does not say which {what} is meant; give --to, as in --to {example}"
        )
    return source, target


def _check_model_options(target: AnyFormat, options: ModelOptions) -> None:
    """Raise a usage error for an option that the format of DST has no use for."""
    if options.verify is not None and target.reader is None:
        raise click.UsageError(f"--verify needs a format that lmart reads, and {target.name} is only written")
    if options.nonnegative and not target.is_ordered:
        raise click.UsageError(f"--nonnegative needs a tool that adds trees in order, unlike {target.title}")
    for option, value in (("name", options.name), ("store", options.store)):
        if value is not None and option not in target.takes:
            those = " or ".join(one.name for one in MODEL_FORMATS.values() if option in one.takes)
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


def _what(one: AnyFormat) -> str:
    return "a model" if one.kind == "model" else "data"


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
    source: AnyFormat | None,
    target: Format[DataReader, DataWriter],
    absent: str,
    options: ReadOptions,
    threads: int,
    console: Console,
) -> None:
    from lmart.formats.documents.conversion import convert_data
    from lmart.threads import WorkerPool

    options = dataclasses.replace(
        options,
        format=None if source is None else source.name,
        require_labels=target.name == "qrels",
        require_queries=target.name == "qrels",
        keep_document_ids=True,
        ids_for_letor=target.name == "letor",
    ).telling(console.notice, console.warning, console.reading("converting", prints=dst == "-"))
    compile_ahead("convert", threads)
    with WorkerPool(threads) as pool:
        names = convert_data(src, dst, target, 0.0 if absent == "zero" else math.nan, options, pool)
    console.done(f"wrote {counted(console.rows_read, 'row')}", dst)
    if target.name == "qrels" and given_on_command_line("absent"):
        console.notice("--absent changes nothing: qrels have no place for features")
    if target.name == "letor" and given_on_command_line("absent"):
        console.notice("--absent changes nothing: LETOR text goes without the cells that a row does not have")
    if target.name == "letor" and names:
        first = ", ".join(f"{i} is {quote(name)}" for i, name in enumerate(names[:3], 1))
        console.notice(f"LETOR text has no feature names; columns are numbered: {first}{', ...' if names[3:] else ''}")
