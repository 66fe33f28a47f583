"""Reading bytes in tests as if they came from a file or a pipe, in pieces of chosen sizes."""

from __future__ import annotations

import math
import os
import random
import struct
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from lmart.data.dataset import RankingDataset
from lmart.errors import DataError
from lmart.formats.documents.blocks import RowBlock, RowSource, SeenQueries
from lmart.formats.documents.dataset_builder import DatasetBuilder
from lmart.formats.documents.delimited import DelimitedReader, TsvReader
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.letor import LetorReader
from lmart.formats.documents.text_reader import TextReader
from lmart.formats.read_options import ReadOptions
from lmart.threads import WorkerPool

READERS: dict[str, type[TextReader]] = {"letor": LetorReader, "csv": DelimitedReader, "tsv": TsvReader}
SERIAL = WorkerPool(1)


class Pieces:
    """An input stream that hands out given pieces, one a read."""

    path = "data"
    progress = 0.0
    taken = 0
    can_read_ahead = True

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    def read_block(self, view: memoryview) -> int:
        if not self._pieces:
            return 0
        piece = self._pieces.pop(0)
        count = min(len(piece), len(view))
        view[:count] = piece[:count]
        if count < len(piece):
            self._pieces.insert(0, piece[count:])
        return count

    def refuse_changed(self) -> None:
        """Pieces do not change."""

    def is_file(self, status: os.stat_result) -> bool:
        return False

    def close(self) -> None:
        self._pieces = []


def rows_of(data: bytes | Sequence[bytes], format: str = "letor", head: bytes = b"", **options: Any) -> TextReader:
    """Return a reader of the bytes."""
    pieces = [data] if isinstance(data, bytes) else data
    read = ReadOptions(**options)
    seen = SeenQueries(read.group_by_qid)
    return READERS[format](RowSource(Pieces(pieces), head, read, SERIAL, FeatureTable(), seen))


def read(data: bytes | Sequence[bytes], format: str = "letor", **options: Any) -> RankingDataset:
    """Read the bytes as one data set; without rows it is empty."""
    reader = rows_of(data, format, **options)
    builder = DatasetBuilder(SERIAL)
    for block in chain.from_iterable(reader.volatile_batches()):
        builder.add(block, "data")
    return builder.finish(reader.table, "data", bool(options.get("group_by_qid")))


def faults_of(data: bytes | Sequence[bytes], format: str = "letor", **options: Any) -> list[DataError]:
    """Return the faults for which the bytes are refused, none if they are not."""
    try:
        read(data, format, **options)
    except DataError as fault:
        return [fault, *fault.more]
    return []


def listed(blocks: Iterable[RowBlock], reader: TextReader) -> list[tuple[object, ...]]:
    """Return the rows of blocks as plain values: label, query id, cells by feature id, document id."""
    rows: list[tuple[object, ...]] = []
    query = ""
    for block in blocks:
        ids = reader.feature_ids
        runs = block.query_ids or []
        assert all(a != b for a, b in pairwise(runs)), "equal runs are one run"
        starts = dict(zip(block.query_offsets.tolist(), block.query_ids or [], strict=False))
        assert block.continues == (bool(rows) and (block.query_ids is None or block.query_ids[0] == query))
        for i in range(len(block)):
            query = starts.get(i, query)
            cells = slice(block.features.offsets[i], block.features.offsets[i + 1])
            columns, values = block.features.columns[cells], block.features.values[cells]
            document = "" if block.document_ids is None else block.document_ids[i]
            label = None if block.labels is None else float(block.labels[i])
            rows.append((label, query, list(zip(ids[columns].tolist(), values.tolist(), strict=True)), document))
    return rows


def hard_decimals(n: int, seed: int) -> list[bytes]:
    """Decimals that are close to half way between two doubles, or have many digits, or end the range."""
    draw = random.Random(seed)
    out = []
    for _ in range(n):
        kind = draw.randrange(5)
        number = struct.unpack("<d", draw.getrandbits(63).to_bytes(8, "little"))[0]
        if not math.isfinite(number):
            continue
        if kind == 0:
            out.append(repr(number))
        elif kind == 1:
            half = (int(number) * 2 + 1) if 2**53 <= number < 2**62 else 2 ** draw.randrange(54, 62) + draw.randrange(4)
            out.append(str(half))
        elif kind == 2:
            out.append(f"{number:.{draw.randrange(1, 40)}e}")
        elif kind == 3:
            digits = draw.randrange(1, 25)
            out.append(f"{draw.randrange(10**digits)}e{draw.randrange(-345, 310)}")
        else:
            whole, fraction = draw.randrange(10 ** draw.randrange(1, 12)), draw.randrange(10 ** draw.randrange(1, 15))
            out.append(f"{whole}.{fraction}")
    return [text.encode() for text in out]


def plain_decimals(n: int, seed: int) -> list[bytes]:
    """Decimals of up to 18 characters, as data has them: digits, mostly with a point, some with a minus."""
    draw = random.Random(seed)
    out = []
    for _ in range(n):
        digits = str(draw.randrange(10 ** draw.randint(1, 17)))
        if draw.random() < 0.1:  # the largest that fit a double
            digits = str(2**53 + draw.randint(-3, 3))
        digits = "0" * draw.choice((0, 0, 0, 1, 3)) + digits
        at = draw.randint(0, len(digits))
        sign = "-" if draw.random() < 0.2 else ""
        out.append(sign + (digits if draw.random() < 0.2 else digits[:at] + "." + digits[at:]))
    return [token.encode() for token in out]


def wrong_decimals(tokens: Sequence[bytes], in_a_row: int = 50) -> list[bytes]:
    """Return those of the decimals that a LETOR reader does not read with the bits of float()."""
    rows = []
    for start in range(0, len(tokens), in_a_row):
        cells = b" ".join(b"%d:%b" % pair for pair in enumerate(tokens[start : start + in_a_row]))
        rows.append(b"1 qid:1 %b\n" % cells)
    data = read(b"".join(rows), allow_inf=True)
    expected = np.array([float(token) or 0.0 for token in tokens])
    differ = data.features.values.view(np.int64) != expected.view(np.int64)
    return [tokens[i] for i in np.flatnonzero(differ).tolist()]
