"""What the writers of predictions share, and the one of plain scores: one line a row.

All other formats name the rank in the query: see `ranked`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lmart.array_types import Float64Array
from lmart.errors import counted, input_name, quote
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
    warn         : called with each warning; None: nobody hears it
    """

    source: str
    top: int | None = None
    scattered: bool = False
    tag: str = "lmart"
    explanations: RowExplanations | None = None
    warn: Callable[[str], None] | None = None


class Repetition(NamedTuple):
    """Queries that name a document twice.

    query_id : of the first of them; None: the rows have no query ids
    document : that it names twice
    n_rows   : that name the document of a row before them, in all queries
    """

    query_id: str | None
    document: str
    n_rows: int

    def warning(self, source: str) -> str:
        """Return what the user is told."""
        what = f"{called_query(self.query_id)} names document {quote(self.document)} twice"
        others = self.n_rows - 1
        more = f", and {counted(others, 'more row')} a document of their query" if others else ""
        return f"{input_name(source)}: {what}{more}; is the document id right?"


def called_query(query_id: str | None) -> str:
    """Return what messages call a query; None: the rows have no query ids."""
    return "the data" if query_id is None else f"query {quote(query_id)}"


class PredictionWriter(abc.ABC):
    """Takes blocks of rows with their scores, in input order; `finish` after the last one."""

    @property
    def repetition(self) -> Repetition | None:
        """What the user should know of documents that a query names twice; None: there are none."""
        return None

    @abc.abstractmethod
    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Write what can be written now."""

    def finish(self) -> None:
        """Write what was held back for the last query."""
        return


def write_scored(
    scored_blocks: Iterable[tuple[RowBlock, Float64Array]], writer: PredictionWriter, out: AtomicOutput
) -> int:
    """Write the scores of each block as soon as it is scored; return the number of rows.

    scored_blocks : each block of rows with its scores, float64[n]
    writer        : to the output
    out           : the output
    """
    n_rows = 0
    for block, scores in scored_blocks:
        writer.write(block, scores)
        out.flush()
        n_rows += len(block)
        del block, scores  # before the next ones are made
    writer.finish()
    return n_rows


class ScoresWriter(PredictionWriter):
    """One score a line, the shortest form that reads back equal."""

    def __init__(self, out: AtomicOutput, layout: PredictionLayout) -> None:
        """Write to `out`; there is nothing in `layout` that plain scores have a place for."""
        self._out = out

    def write(self, block: RowBlock, scores: Float64Array) -> None:
        """Write the scores, one a line."""
        write_scores(scores, self._out)
