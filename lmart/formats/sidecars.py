"""Files beside the data: sizes of its queries, weights of queries or rows, initial scores and positions of rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmart.errors import DataError, SettingsError, counted, quote
from lmart.formats.scores import read_scores
from lmart.monotone import parse_monotone
from lmart.sidecars import Positions
from lmart.streams import read_all

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

LARGEST_WEIGHT = 1e100  # far from where sums of weighted numbers end
LARGEST_SCORE = 1e100  # of those that training starts from; as far from where differences of scores end

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


def _numbers(path: str) -> list[tuple[int, bytes]]:
    """Return (line, text) of a file of one number a line; blank lines and what follows a '#' do not count."""
    found = []
    for line, text in enumerate(read_all(path).removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        token = text.split(b"#", 1)[0].strip()
        if token:
            found.append((line, token))
    if not found:
        raise DataError("holds no number; give a file of one number a line", path)
    return found


def read_query_sizes(path: str) -> Longs:
    """Read the number of rows of each query, one a line: int64[n_queries], all > 0. DataError for anything else."""
    sizes = []
    for line, token in _numbers(path):
        if not token.isdigit() or len(token) > 18:
            what = f"query size {quote(token)} is not a whole number"
            raise DataError(f"{what}; give the row count of each query, one a line", path, line)
        if int(token) == 0:
            what = f"query size {quote(token)}: a query has at least one row"
            raise DataError(f"{what}; leave empty queries out", path, line)
        sizes.append(int(token))
    return np.array(sizes, np.int64)


@dataclass(frozen=True)
class Weights:
    """Weights of a data set: what each row counts in training, and each query in measures.

    per_document : float64[n_documents]    per_query : float64[n_queries], the mean over the query's rows
    given_per    : 'query' or 'row', as the file had them
    """

    per_document: Floats
    per_query: Floats
    given_per: str


def read_weights(path: str, query_offsets: Longs, input_rows: Longs | None = None) -> Weights:
    """Read one weight a query or one a row, told apart by their count.

    query_offsets : int64[n_queries + 1] of the data they belong to; input_rows : as in its RankingDataset
    DataError (with all three numbers) when the count fits neither, and for a weight that is negative, above
    LARGEST_WEIGHT or no number, or when all are zero. When every query has one row, both readings mean the same.
    """
    weights = []
    for line, token in _numbers(path):
        value = float(token) if _NUMBER.match(token) else np.nan
        if not 0.0 <= value <= LARGEST_WEIGHT:
            what = f"weight {quote(token)} is not a number from 0 to {LARGEST_WEIGHT:g}"
            raise DataError(f"{what}; give one weight a line", path, line)
        weights.append(value + 0.0)
    n_queries, n_documents = len(query_offsets) - 1, int(query_offsets[-1])
    if len(weights) not in (n_queries, n_documents):
        raise DataError(
            f"there are {len(weights)} weights, but the data has {n_queries} queries and {n_documents} rows; "
            "give one weight a query or one a row",
            path,
        )
    given = np.array(weights)
    if not given.any():
        raise DataError("all weights are zero; give at least one above zero", path)
    sizes = np.diff(query_offsets)
    if len(given) == n_queries:
        return Weights(np.repeat(given, sizes), given, "query")
    if input_rows is not None:
        given = given[input_rows]
    sums = np.add.reduceat(given, query_offsets[:-1]) if n_queries else np.zeros(0)
    return Weights(given, sums / np.maximum(sizes, 1), "row")


def read_init_scores(path: str, n_documents: int, source: str, input_rows: Longs | None = None) -> Floats:
    """Read the scores that training starts from, in the form of `read_scores`: float64[n_documents].

    source : the data they belong to; input_rows : as in its RankingDataset
    DataError as `read_scores`, and for a score beyond LARGEST_SCORE.
    """
    scores = read_scores(path, n_documents, source)
    beyond = np.flatnonzero(np.abs(scores) > LARGEST_SCORE)
    if len(beyond):
        row = int(beyond[0])
        what = f"score {quote(repr(float(scores[row])))} is too large to start from"
        raise DataError(f"{what}; use scores from -{LARGEST_SCORE:g} to {LARGEST_SCORE:g}", path, row + 1)
    return scores if input_rows is None else scores[input_rows]


def read_positions(path: str, n_documents: int, source: str, input_rows: Longs | None = None) -> Positions:
    """Read the position that each row was shown at: any word, one a line; equal words are one position.

    source : the data they belong to; input_rows : as in its RankingDataset
    DataError names the line that is empty, has more than one word, or is not text, or both counts when they differ.
    """
    lines = read_all(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    places: dict[bytes, int] = {}
    words = [line.strip() for line in lines]
    codes = np.array([places.setdefault(word, len(places)) for word in words], np.int32)
    for word in places:
        fault = _fault_of_position(word)
        if fault:
            raise DataError(f"{fault}; give one position for each row of the data", path, words.index(word) + 1)
    if len(codes) != n_documents:
        held, rows = counted(len(codes), "position"), counted(n_documents, "row")
        raise DataError(f"holds {held}, but {source} has {rows}; give one for each row, in the same order", path)
    names = tuple(word.decode("utf-8") for word in places)
    return Positions(names, codes if input_rows is None else codes[input_rows])


def _fault_of_position(word: bytes) -> str:
    if not word:
        return "the line is empty"
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return f"position {quote(word)} is not UTF-8"
    return f"there is more than one word in {quote(word)}" if len(text.split()) > 1 else ""


def read_monotone(path: str) -> dict[str, int]:
    """Read monotone constraints, FEATURE:+1 or FEATURE:-1 a line; blank lines and lines that begin with '#' do not
    count.

    DataError for any other line, a feature that is named twice, and when there is none.
    """
    found: dict[str, int] = {}
    for line, raw in enumerate(read_all(path).removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        text = raw.decode("utf-8", "backslashreplace").strip()
        if not text or text.startswith("#"):
            continue
        try:
            own = parse_monotone(text)
        except SettingsError:
            own = {}
        if len(own) != 1:
            raise DataError(f"{quote(text)} is no constraint; give FEATURE:+1 or FEATURE:-1 on each line", path, line)
        if own.keys() & found.keys():
            (feature,) = own
            raise DataError(f"feature {quote(feature)} stands there twice; leave one", path, line)
        found |= own
    if not found:
        raise DataError("holds no constraint; give FEATURE:+1 or FEATURE:-1 on each line", path)
    return found
