"""Splitting data into parts of whole queries, in constant memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np

from lmart.data.dataset import rows_of, take_rows
from lmart.errors import DataError, counted
from lmart.formats.documents.blocks import FeatureColumns, RowBlock, RowWriter
from lmart.streams.common import without_compression


def names_of_parts(path: str, n_parts: int) -> list[str]:
    """Return the file of each part: the name with -1, -2, ... before its suffix, as in all-1.svm.gz."""
    stem, suffix = os.path.splitext(without_compression(path)[0])
    return [f"{stem}-{part}{suffix}{path[len(stem) + len(suffix) :]}" for part in range(1, n_parts + 1)]


class QueryDraw:
    """Draws a part for each query, such that each part has about its share at any time.

    shares : of each part, above 0; they add up to 1
    seed   : of the draws, which depend on the ids of queries and on their order
    """

    def __init__(self, shares: Sequence[float], seed: int) -> None:
        self._shares = shares
        self._key = seed.to_bytes(8, "little")
        self.n_queries = [0] * len(shares)

    def draw(self, query_id: str) -> int:
        """Return the part of the next query, with a probability in proportion to what a part lacks.

        A part that lacks a whole query gets it.
        """
        total = sum(self.n_queries) + 1
        lacking = [share * total - n for share, n in zip(self._shares, self.n_queries, strict=True)]
        part = lacking.index(max(lacking))
        if lacking[part] < 1.0:
            mark = hashlib.blake2b(query_id.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key).digest()
            place = int.from_bytes(mark, "little") / 2**64 * sum(max(0.0, lack) for lack in lacking)
            for candidate, lack in enumerate(lacking):
                if lack > 0.0:
                    part, place = candidate, place - lack
                    if place < 0.0:
                        break
        self.n_queries[part] += 1
        return part


class SplitWriter:
    """Gives each query to one of several writers, one of each part; a `RowWriter`."""

    def __init__(self, writers: Sequence[RowWriter], draw: QueryDraw, source: str) -> None:
        self._writers, self._draw, self._source = writers, draw, source
        self._part = 0  # of the last query
        self.n_rows = [0] * len(writers)

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Write the rows of each part; OutputError when a format cannot hold them."""
        parts = np.empty(len(block.query_ids or ()), np.int64)
        for run, query_id in enumerate(block.query_ids or ()):
            if run or not block.continues:
                self._part = self._draw.draw(query_id)
            parts[run] = self._part
        for part, writer in enumerate(self._writers):
            runs = np.flatnonzero(parts == part)
            if len(runs):
                own = _runs_of(block, runs.tolist())
                self.n_rows[part] += len(own)
                writer.write(own, features)

    def finish(self) -> None:
        """End all parts; DataError when one has no query."""
        if not all(self.n_rows):
            queries = counted(sum(self._draw.n_queries), "query")
            what = f"has {queries}, of which part {self.n_rows.index(0) + 1} of --split got none"
            raise DataError(f"{what}; give more data, or larger shares", self._source)
        for writer in self._writers:
            writer.finish()


def _runs_of(block: RowBlock, runs: list[int]) -> RowBlock:
    """Return the rows of some of the runs of a block, ascending."""
    rows = rows_of(block.query_offsets, np.array(runs, np.int64))
    ids, documents = block.query_ids or [], block.document_ids
    return RowBlock(
        take_rows(block.features, rows),
        None if block.labels is None else block.labels[rows],
        [ids[run] for run in runs],
        np.concatenate([[0], np.cumsum(np.diff(block.query_offsets)[runs])]).astype(np.int64),
        block.continues and runs[0] == 0,
        None if documents is None else [documents[row] for row in rows.tolist()],
        block.first_line + int(rows[0]),
    )
