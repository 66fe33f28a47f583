"""What the writers of predictions share, and the one of plain scores: one line a row.

All other formats name the rank in the query: see `ranked`.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmart.array_types import Float64Array
from lmart.formats.documents.row_blocks import RowBlock
from lmart.formats.results.scores import write_scores
from lmart.streams import AtomicOutput

if TYPE_CHECKING:
    from lmart.formats.results.explanations import RowExplanations


@dataclass(frozen=True)
class PredictionLayout:
    """What is to be written of the rows that are scored.

    source       : the input, for messages
    top          : rows to write of each query, the best ones; None: all
    scattered    : rows of a query need not be adjacent; everything is held until the end
    tag          : name of the run in the TREC format
    explanations : gives the contributions of features, for formats that have a place for them; None: without
    """

    source: str
    top: int | None = None
    scattered: bool = False
    tag: str = "lmart"
    explanations: RowExplanations | None = None


class PredictionWriter(abc.ABC):
    """Takes blocks of rows with their scores, in input order; `finish` after the last one."""

    @property
    def warnings(self) -> list[str]:
        """What the user should know of what was written."""
        return []

    @abc.abstractmethod
    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Write what can be written now."""

    def finish(self) -> None:
        """Write what was held back for the last query."""
        return


class ScoresWriter(PredictionWriter):
    """One score a line, the shortest form that reads back equal."""

    def __init__(self, out: AtomicOutput, layout: PredictionLayout) -> None:
        """Write to `out`; there is nothing in `layout` that plain scores have a place for."""
        self._out = out

    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Write the scores, one a line."""
        write_scores(scores, self._out)
