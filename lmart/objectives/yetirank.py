"""yetirank: neighbours in orders drawn by chance (Gulin, Kuralenok and Pavlov 2011); see kernels.listwise."""

from __future__ import annotations

import numpy as np

from lmart.kernels import listwise, ordering, ranking
from lmart.objectives.base import Floats, Gradients, Objective, Task
from lmart.objectives.chance import round_key

ORDERS = 10  # drawn a query and round
FADING = 0.85  # what a pair counts less with each place down an order
MOST_PLACES = 200  # 0.85^200 is less than half a unit in which pairs are added


class YetiRank(Objective):
    """Pairs that are neighbours where sigma x score has got noise: a document meets those that it competes with.

    Each round draws ORDERS orders of every query by sigma s + ln(r / (1 - r)), r uniform in (0, 1). The pair at places
    k and k + 1, from 0, of one of them weighs FADING^k |y_i - y_j| / ORDERS, y being the labels divided by the highest
    of the query, and costs weight x log(1 + exp(-sigma (s_i - s_j))), i the better document, s the scores without
    noise. Truncation T leaves out pairs with k >= T; normalising multiplies the derivatives of a query by
    log2(1 + S) / S, S = 2 sum |lambda|, without the division by distances that other objectives have. The gradients of
    a query sum to exactly 0 unless rows have weights of their own.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        offsets = task.query_offsets
        sizes = np.diff(offsets)
        filled = np.flatnonzero(sizes)
        highest = np.zeros(len(sizes))
        highest[filled] = np.maximum.reduceat(task.labels, offsets[:-1][filled]) if len(filled) else 0.0
        self.worths = task.labels / np.repeat(np.where(highest > 0, highest, 1.0), sizes)
        n_places = min(task.settings.truncation or MOST_PLACES, MOST_PLACES, task.longest)
        self._places = np.multiply.accumulate(np.concatenate([[1.0 / ORDERS], np.full(max(0, n_places - 1), FADING)]))
        self._rows = np.arange(len(task.labels), dtype=np.int32)
        self._order = self._rows.copy()
        self._drawn = self._rows.copy()
        self._heights = np.empty(len(task.labels))

    def _write(self, scores: Floats, round_number: int, out: Gradients) -> None:
        key = round_key(self.task.settings.seed, round_number)
        self.task.pool.run(self._write_range, [(scores, key, queries, out) for queries in self.task.ranges])

    def _write_range(self, scores: Floats, key: np.uint64, queries: tuple[int, int], out: Gradients) -> None:
        task, settings, heights = self.task, self.task.settings, self._heights
        offsets, weights = task.query_offsets, task.query_weights
        n = int(offsets[queries[1]] - offsets[queries[0]])
        sums = (np.zeros(n), np.zeros(n), np.zeros(queries[1] - queries[0]))
        listwise.write_heights(scores, offsets, settings.sigma, *queries, heights)
        ordering.order_documents(scores, offsets, *queries, self._order)
        fixed = (scores, heights, self.worths, self._places, weights, offsets)
        for turn in range(ORDERS):
            drawing = (len(self._places) + 1, key, turn)
            listwise.draw_orders(heights, offsets, self._order, *drawing, *queries, self._drawn)
            listwise.add_neighbours(*fixed, self._drawn, settings.sigma, *queries, *sums)
        chosen = (settings.sigma, settings.normalize)
        ranking.write_weighted(*sums, weights, offsets, self._rows, *chosen, *queries, *out)


OBJECTIVE = YetiRank
