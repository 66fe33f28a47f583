"""Small bars: how many queries have which value of a measure, in the width of a word."""

from __future__ import annotations

import sys

from lmart.array_types import Float64Array
from lmart.cli.terminal import eval_report
from lmart.measures.summary import counted_values, histogram, value_range

BINS = 10
BLOCKS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


def are_shown() -> bool:
    """Return whether standard output is a terminal that can show them."""
    return eval_report.is_terminal() and "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()


def bars(values: Float64Array, weights: Float64Array | None = None) -> str:
    """Return a bar for each tenth of the range of a measure, between the ends of the range.

    values  : float64[n_queries]; nan is left out
    weights : float64[n_queries], >= 0; queries of weight 0 are left out; None: all 1

    The highest bar stands for most queries; none for no query, and the lowest for a few.
    """
    known = counted_values(values, weights)
    low, high = value_range(known)
    counts = histogram(known, low, high, BINS).tolist()
    heights = [-(-count * (len(BLOCKS) - 1) // max(1, *counts)) for count in counts]
    return f"{low:g} {''.join(BLOCKS[height] for height in heights)} {high:.4g}"
