"""Data of `lmart show`: what is in one file, how another differs from it, and the page of both."""

from __future__ import annotations

from dataclasses import replace

from lmart.cli.show_output import print_json, print_lines, write
from lmart.cli.show_request import ShowOptions
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.data import data_lines, data_table, drift_lines
from lmart.cli.terminal.layout import standard_output
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.memory import keep_memory_constant
from lmart.reports.data_drift import DataDrift, compare_data
from lmart.reports.data_summary import DataSummary, summarize_data
from lmart.reports.pages.data import DataPage, render_data_page
from lmart.threads import WorkerPool


def show_data(
    file: str, other: str | None, options: ShowOptions, read_options: ReadOptions, threads: int, console: Console
) -> None:
    """Print what is in a file of data, and how another one differs from it, and write a page."""
    if not read_options.group_by_qid:
        keep_memory_constant()
    read_options = replace(
        read_options.telling(console.notice, console.warning, console.reading("reading", prints=True)),
        require_labels=False,
        require_queries=False,
    )
    with WorkerPool(threads) as pool:
        summaries = [summarize_data(path, read_options, Gain(), pool) for path in (file, other) if path is not None]
    drift = None if other is None else compare_data(*summaries)
    page = DataPage(summaries, drift, options.top, options.title)
    write(options, lambda: render_data_page(page), lambda: _print(summaries, drift, options))


def _print(summaries: list[DataSummary], drift: DataDrift | None, options: ShowOptions) -> None:
    """Print what is in the data."""
    first, *others = summaries
    if options.as_json:
        content = {"kind": "data", "file": first.path, **first.to_json()}
        if drift is not None:
            content |= {"other": {"file": others[0].path, **others[0].to_json()}, "drift": drift.to_json()}
        print_json(content)
    elif options.as_tsv:
        print_lines(data_table(first, drift), end="")
    else:
        sheet = standard_output()
        print_lines(data_lines(first, options.top, sheet))
        if drift is not None:
            print_lines(drift_lines(drift, others[0].path, options.top, sheet))
