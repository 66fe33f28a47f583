"""The measures of each query as tab-separated text or JSON lines, every digit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from lmart.measures.results import EvaluationResult
from lmart.streams.common import name_ending

NOT_DEFINED = "n/a"
JSON_SUFFIXES = (".jsonl", ".ndjson")
_IN_A_CELL = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def per_query_lines(result: EvaluationResult, path: str) -> Iterator[str]:
    """Yield the lines of a file of measures: JSON lines when its name says so, else tab-separated after a header.

    Of several systems there are the lines of each, with its name.
    """
    return _json_lines(result) if name_ending(path) in JSON_SUFFIXES else _tab_separated(result)


def _tab_separated(result: EvaluationResult) -> Iterator[str]:
    several = len(result.systems) > 1
    yield "\t".join((*(["system"] if several else []), "qid", *result.measures)) + "\n"
    query_ids = [query_id.translate(_IN_A_CELL) for query_id in result.query_ids]
    for system in result.systems:
        start = system.name.translate(_IN_A_CELL) + "\t" if several else ""
        columns = [values.tolist() for values in system.report.per_query.values()]
        for query_id, *values in zip(query_ids, *columns, strict=True):
            cells = (NOT_DEFINED if math.isnan(value) else repr(value) for value in values)
            yield start + "\t".join((query_id, *cells)) + "\n"


def _json_lines(result: EvaluationResult) -> Iterator[str]:
    for system in result.systems:
        own = {"system": system.name} if len(result.systems) > 1 else {}
        columns = [values.tolist() for values in system.report.per_query.values()]
        for query_id, *values in zip(result.query_ids, *columns, strict=True):
            defined = (None if math.isnan(value) else value for value in values)
            line = own | {"qid": query_id} | dict(zip(result.measures, defined, strict=True))
            yield json.dumps(line, allow_nan=False) + "\n"
