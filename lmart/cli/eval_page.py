"""The page that `lmart eval --html` writes: what is measured for it besides the report, and its making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmart import __version__
from lmart.measures.comparing import SystemStatistics, statistics_of
from lmart.measures.measure import Measure
from lmart.measures.results import EvaluationResult
from lmart.reports.charts import require_matplotlib
from lmart.reports.page import render_page
from lmart.reports.page_content import cutoff_names, narrowed, page_content, with_cutoffs
from lmart.reports.run_report import RunReport, load_report
from lmart.threads import WorkerPool


@dataclass(frozen=True, eq=False)
class PageRequest:
    """What the page needs.

    measures : of the report
    run      : the run that trained the model; None: none was given
    run_path : file of its report
    """

    measures: tuple[Measure, ...]
    run: RunReport | None
    run_path: str

    @classmethod
    def of(cls, path: str, run_path: str | None, measures: Sequence[Measure]) -> PageRequest:
        """Read what the page needs; OutputError when no page can be drawn, DataError when the report cannot be read.

        path     : of the page
        run_path : the report of a run; None: none was given
        measures : of the report
        """
        require_matplotlib(path)
        return cls(tuple(measures), None if run_path is None else load_report(run_path), run_path or "")

    @property
    def computed(self) -> tuple[Measure, ...]:
        """The measures of the report, and NDCG at each cutoff of the chart."""
        return with_cutoffs(self.measures)

    def without_cutoffs(self, whole: EvaluationResult) -> EvaluationResult:
        """Return the evaluation with the measures of the report only."""
        return narrowed(whole, list(map(str, self.measures)))

    def render(
        self, whole: EvaluationResult, result: EvaluationResult, statistics: SystemStatistics, pool: WorkerPool
    ) -> str:
        """Return the page."""
        curve = narrowed(whole, cutoff_names())
        drawn = statistics_of(curve, statistics.resampling, pool, compared=False)
        return render_page(page_content(result, statistics, curve, drawn, __version__, self.run, self.run_path))
