"""The stages of `lmart show`: read what the file is, explain the scores of data, print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from lmart.cli.signals import flush_output
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.layout import standard_output
from lmart.cli.terminal.model import Explained, curve_table, importance_table, model_lines, run_lines, tree_lines
from lmart.errors import DataError, ModelError, counted, quote
from lmart.formats.detection import data_format, refuse_known
from lmart.formats.documents.reading import for_models, open_rows
from lmart.formats.format_records import beginning
from lmart.formats.models.model_files import LONGEST_START, format_of, is_model, model_content, parse_model
from lmart.formats.read_options import ReadOptions
from lmart.memory import keep_memory_constant
from lmart.reports.model_summary import summarize, tree_to_json
from lmart.reports.run_report import RunReport, parse_report, read_report
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.explain import Explainer
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.importance import ContributionMeans
from lmart.strict_json import strict_json
from lmart.threads import WorkerPool

if TYPE_CHECKING:
    from lmart.cli.show import ShowRequest

GIVE = "give a model, or what lmart train --report wrote"
KEYS_NAMED = 3
SHOWN = 40  # characters of a line in messages


@dataclass(frozen=True)
class ShownModel:
    """A model that was read, and the name of the format of its file."""

    ensemble: Ensemble
    format: str


def read(request: ShowRequest) -> ShownModel | RunReport:
    """Return the model, or the report, that the file is.

    ModelError or DataError when it is neither, or damaged.
    """
    content = model_content(request.file)
    if not is_model(content):
        document = parse_report(content, request.file)
        if document is not None:
            return read_report(document, request.file)
        refuse_known(content[:LONGEST_START], request.file, DataError, GIVE)
        if (found := _other_json(content)) is not None:
            raise DataError(f"this is neither a model nor a report of a run, but {found}; {GIVE}", request.file)
        _refuse_other(content, request.file)
    return ShownModel(parse_model(content, request.file), format_of(content))


def _refuse_other(content: bytes, path: str) -> None:
    """Raise DataError when the content of a file is no JSON, or a report that was cut; say what it looks like.

    content : of the file, or its beginning
    path    : what to call the file in messages
    """
    start = beginning(content[:LONGEST_START])
    if re.match(rb'\{\s*"settings"', start):
        raise DataError("this report of a run is no whole JSON; the file was cut or changed, copy it again", path)
    if not start or start.startswith(b"{"):
        return
    line = start.split(b"\n", 1)[0].strip()
    form = data_format("-", start, ReadOptions())
    if form != "letor" or re.search(rb"(^|\s)qid:", line):
        found = f"it looks like data ({form})"
    elif b"\0" in start:
        found = "it is no text"
    else:
        found = f"it starts with {quote(line, SHOWN)}"
    raise DataError(f"this is neither a model nor a report of a run: {found}; {GIVE}", path)


def _other_json(content: bytes) -> str | None:
    """Return what JSON is that is neither a model nor a report, in words; None when it is no JSON object or list."""
    try:
        document = strict_json(content)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return "a JSON list" if isinstance(document, list) else None
    if "format" in document:
        return None  # which the reader of models tells more of
    keys = ", ".join(quote(key) for key in list(document)[:KEYS_NAMED])
    more = ", ..." if len(document) > KEYS_NAMED else ""
    return f"JSON with {f'the keys {keys}{more}' if document else 'no key'}"


def show_model(shown: ShownModel, request: ShowRequest, options: ReadOptions, threads: int, console: Console) -> None:
    """Print what is in a model, or one of its trees."""
    ensemble, number = shown.ensemble, request.tree
    for remark in ensemble.remarks:
        console.notice(remark)
    if number is not None:
        if number > len(ensemble.trees):
            there = counted(len(ensemble.trees), "tree")
            raise ModelError(f"has {there}, so there is no tree {number:,}; trees are numbered from 1", request.file)
        if request.as_json:
            _print_json({"kind": "tree", "file": request.file, **tree_to_json(ensemble, number)})
        else:
            _print_lines(tree_lines(ensemble, number, standard_output()))
        return
    means = None if request.data is None else explain(ensemble, request, options, threads, console)
    summary = summarize(ensemble, shown.format, None if means is None else means.means)
    explained = None if means is None or request.data is None else Explained(request.data, means.n_rows)
    if request.as_json:
        content = {"kind": "model", "file": request.file, **summary.to_json()}
        if explained is not None:
            content["contributions"] = {"data": explained.path, "rows": explained.rows}
        _print_json(content)
    elif request.as_tsv:
        _print_table(importance_table(summary.importance))
    else:
        _print_lines(model_lines(summary, request.file, request.top, standard_output(), explained))


def explain(
    ensemble: Ensemble, request: ShowRequest, options: ReadOptions, threads: int, console: Console
) -> ContributionMeans:
    """Return the mean absolute contributions to the scores of the rows of --data, read block by block."""
    path = request.data or ""
    keep_memory_constant()
    explainer, matcher = Explainer(ensemble, request.file), FeatureMatcher(ensemble)
    options = replace(
        for_models(options, [ensemble]).telling(
            console.notice, console.warning, console.reading("explaining", prints=True)
        ),
        require_labels=False,
        require_queries=False,
        use_labels=False,
        refuse_unknown=request.strict,
        keep_document_ids=False,
    )
    with WorkerPool(threads) as pool, open_rows(path, options, pool) as reader:
        means = ContributionMeans(explainer, pool)
        for block in reader:
            means.add(block.features, matcher.column_map(reader.feature_ids, reader.feature_names))
        matcher.tables = reader.table.of_tables
        matcher.refuse(path, request.strict)
    for text in matcher.warnings(path):
        console.warning(text)
    return means


def show_report(report: RunReport, request: ShowRequest) -> None:
    """Print how a run went."""
    for option, given in {"--tree": request.tree is not None, "--data": request.data is not None}.items():
        if given:
            raise DataError(f"is a report of a run, and {option} needs a model; give the model", request.file)
    if request.as_json:
        _print_json({"kind": "report", "file": request.file, **report.to_json()})
    elif request.as_tsv:
        _print_table(curve_table(report))
    else:
        _print_lines(run_lines(report, request.file, request.top, standard_output()))


def _print_json(content: Mapping[str, Any]) -> None:
    click.echo(json.dumps(content, allow_nan=False))
    flush_output()


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
    flush_output()


def _print_table(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line, nl=False)
    flush_output()
