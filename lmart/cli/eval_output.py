"""What `lmart eval` writes: the report, the measures of each query, and the page with what is measured for it alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import click

from lmart.cli.eval_request import EvalOutput
from lmart.cli.signals import flush_output
from lmart.cli.terminal.eval import print_comparisons, print_result
from lmart.formats.results.query_measures import per_query_lines
from lmart.measures.comparing import SystemStatistics, statistics_of
from lmart.measures.measure import Measure
from lmart.measures.results import EvaluationResult
from lmart.reports.pages.charts import require_matplotlib
from lmart.reports.pages.evaluation import render_page
from lmart.reports.pages.evaluation_content import cutoff_names, narrowed, page_content, with_cutoffs
from lmart.reports.run_report import RunReport, load_report
from lmart.streams import AtomicOutputs
from lmart.threads import WorkerPool


@dataclass(frozen=True, eq=False)
class PageRequest:
    """What the page needs.

    run   : the run that trained the model; None: none was given
    title : of the page; None: it names the systems
    """

    measures: tuple[Measure, ...]
    run: RunReport | None
    run_path: str
    title: str | None

    @classmethod
    def of(cls, path: str, output: EvalOutput, measures: Sequence[Measure]) -> PageRequest:
        """Read what the page needs; OutputError when no page can be drawn, DataError when the report cannot be read."""
        require_matplotlib(path)
        run_path = output.train_report
        run = None if run_path is None else load_report(run_path)
        return cls(tuple(measures), run, run_path or "", output.title)

    @property
    def computed(self) -> tuple[Measure, ...]:
        """The measures of the report, and NDCG at each cutoff of the chart."""
        return with_cutoffs(self.measures)

    def without_cutoffs(self, measured: EvaluationResult) -> EvaluationResult:
        """Return the evaluation with the measures of the report only."""
        return narrowed(measured, list(map(str, self.measures)))

    def render(
        self, measured: EvaluationResult, result: EvaluationResult, statistics: SystemStatistics, pool: WorkerPool
    ) -> str:
        """Return the page."""
        curve = narrowed(measured, cutoff_names())
        drawn = statistics_of(curve, statistics.resampling, pool, compared=False)
        content = page_content(result, statistics, curve, drawn, self.run, self.run_path, self.title)
        return render_page(content)


def write(
    result: EvaluationResult, statistics: SystemStatistics | None, output: EvalOutput, html: str | None = None
) -> None:
    """Write the measures of each query and the page to their files, and the report to standard output."""
    with AtomicOutputs() as files:
        if output.per_query is not None:
            out = files.open(output.per_query)
            for line in per_query_lines(result, output.per_query):
                out.write(line)
        if output.html is not None and html is not None:
            files.open(output.html).write(html)
        if output.as_json:
            content = result.to_json()
            if statistics is not None:
                statistics.add_to(content, result)
            click.echo(json.dumps(content, allow_nan=False))
        elif "-" not in (output.per_query, output.html):
            print_result(result, statistics)
            if statistics is not None and statistics.comparisons:
                print_comparisons(result, statistics)
        flush_output()  # an older file of measures stays when the report is lost
