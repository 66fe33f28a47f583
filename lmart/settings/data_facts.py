"""What settings depend on of the data."""

from __future__ import annotations

from typing import NamedTuple

from lmart.gains import SMALLEST_GRADE_SCALE


class DataFacts(NamedTuple):
    """What settings depend on of the data.

    n_queries   : queries to learn from
    n_documents : documents to learn from
    grade_scale : the largest label of all sets of the run, rounded up, but at least 4
    with_positions  : a bias of positions is learned
    with_validation : there is a validation set, which early stopping goes by
    """

    n_queries: int
    n_documents: int
    grade_scale: int = SMALLEST_GRADE_SCALE
    with_positions: bool = False
    with_validation: bool = False
