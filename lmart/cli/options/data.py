"""Options of the commands that read data; they arrive in the command as one `read_options: ReadOptions`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from lmart.cli.options.choice import Choice
from lmart.cli.options.packed import packed
from lmart.cli.options.types import Whole
from lmart.errors import quote
from lmart.formats.read_options import ReadOptions

MOST_ERRORS = 1_000_000
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",][^,]*)|)\s*(?:,|$)')


def _columns(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of comma-separated lists, each name plain or in quotes."""
    names = []
    for value in values:
        position = 0
        while position < len(value):
            item = _ITEM.match(value, position)
            if item is None:
                raise click.BadParameter(f"the quotes in {quote(value)} do not match; write '\"a,b\",c'")
            if item[1] is not None:
                names.append(item[1].replace('""', '"'))
            elif item[2] is not None:
                names.append(item[2].rstrip())
            position = item.end()
    return tuple(names)


_OPTIONS = (
    click.option(
        "--group-by-qid",
        is_flag=True,
        help="Group the rows of a query even if not adjacent.\f Without this option, such data is an error.",
    ),
    click.option(
        "--duplicates",
        type=Choice(["error", "last"]),
        default="error",
        show_default=True,
        help="If a row names an index twice: error, or last value.",
    ),
    click.option(
        "--max-errors",
        type=Whole(min=1, max=MOST_ERRORS),
        metavar="N",
        default=10,
        show_default=True,
        help="Maximum number of faults of the data to list.",
    ),
    click.option(
        "--allow-inf", is_flag=True, help="Accept infinite values.\f Without this option, such data is an error."
    ),
    click.option(
        "--query-sizes",
        metavar="FILE",
        default=None,
        help="Rows of each query, for data without query ids.\f One number per line, in the order of the rows.",
    ),
    click.option(
        "--label-column",
        metavar="NAME",
        default=None,
        show_default="label, relevance, rel, target or y",
        help="Column of the labels.\f In CSV, TSV and Parquet.",
    ),
    click.option(
        "--query-column",
        metavar="NAME",
        default=None,
        show_default="qid, query_id, query, group or srch_id",
        help="Column of the query ids.\f In CSV, TSV and Parquet.",
    ),
    click.option(
        "--document-column",
        metavar="NAME",
        default=None,
        show_default="docid, doc_id, document_id or docno",
        help="Column of the document ids.\f In CSV, TSV and Parquet.",
    ),
    click.option(
        "--ignore-columns",
        metavar="NAMES",
        multiple=True,
        callback=_columns,
        help="Columns to leave out; in LETOR text, indices.\f A name may be in double quotes, as in CSV: "
        "'\"a,b\",c'; '\"\"' is the column without a name.",
    ),
)


def _read_options(group_by_qid: bool, query_sizes: str | None, allow_inf: bool, **others: Any) -> ReadOptions:
    if group_by_qid and query_sizes is not None:
        raise click.UsageError("--group-by-qid collects queries by their ids, and with --query-sizes there are none")
    return ReadOptions(group_by_qid=group_by_qid, query_sizes=query_sizes, allow_infinite=allow_inf, **others)


OPTION_NAMES = (
    "group_by_qid",
    "duplicates",
    "max_errors",
    "allow_inf",
    "query_sizes",
    "label_column",
    "query_column",
    "document_column",
    "ignore_columns",
)
"""The names of the options that say how data is read."""
data_options = packed("read_options", _read_options, OPTION_NAMES, _OPTIONS)
"""Add the options that say how data is read; the command gets them packed as the keyword `read_options`."""


def refuse_two_standard_inputs(paths: Sequence[str | None]) -> None:
    """Raise a usage error when more than one of the inputs is '-'."""
    if sum(path == "-" for path in paths) > 1:
        raise click.UsageError("only one input can be '-' (standard input); give the others as files")
