"""Tables with named columns (CSV, TSV, Parquet): which is the label, the query id, the document id, a feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmart.errors import DataError, quote
from lmart.formats.options import ReadOptions
from lmart.formats.rows import FeatureTable, Longs
from lmart.kernels.decimals import DOCUMENT, FEATURE, IGNORED, LABEL, QUERY

LABEL_NAMES = ("label", "relevance", "rel", "target", "y")
QUERY_NAMES = ("qid", "query_id", "query", "group", "srch_id")
DOCUMENT_NAMES = ("docid", "doc_id", "document_id", "docno")
LARGEST_INDEX = 2**63 - 1


@dataclass(frozen=True)
class ColumnPlan:
    """What the columns of one table are, and where its features go.

    names    : the columns, in the order of the table      kinds  : uint8[n_fields], codes of kernels.decimals
    places   : int32[n_fields], place of a feature among the cells of a row, which stand by ascending feature id
    columns  : int32[n_features], the place in the feature table of each cell of a row
    """

    names: tuple[str, ...]
    kinds: npt.NDArray[np.uint8]
    places: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]

    @property
    def n_features(self) -> int:
        return len(self.columns)

    def has(self, kind: int) -> bool:
        """Say whether there is a column of this kind."""
        return bool((self.kinds == kind).any())

    @property
    def place_of_label(self) -> int:
        """Which column holds the label, from 0."""
        return int(np.argmax(self.kinds == LABEL))

    def cells(self, n_rows: int) -> tuple[Longs, npt.NDArray[np.int32]]:
        """Return offsets and columns of n_rows rows that have every cell."""
        return np.arange(n_rows + 1) * self.n_features, np.tile(self.columns, n_rows)


def plan_columns(names: Sequence[str], options: ReadOptions, table: FeatureTable, path: str) -> ColumnPlan:
    """Find out what each column is; DataError (line 1) when that is not clear. Registers the features in `table`."""

    def refusal(message: str) -> DataError:
        return DataError(message, path, 1)

    ignored = set(options.ignore_columns)
    if missing := sorted(ignored - set(names)):
        raise refusal(f"there is no column {quote(missing[0])} to ignore; the columns are {_listed(names)}")
    for i, name in enumerate(names):
        if not name:
            raise refusal(f"column {i + 1} of the header has no name; give it one (pandas: to_csv(..., index=False))")
        if name in names[:i]:
            raise refusal(f"two columns are named {quote(name)}; rename one")
    known = [name for name in names if name not in ignored]
    label = _find(known, "label", options.label_column, LABEL_NAMES, "--label-column", options.require_labels, refusal)
    query = None
    if options.query_sizes is None:
        required = options.require_queries
        query = _find(known, "query", options.query_column, QUERY_NAMES, "--query-column", required, refusal)
    elif options.query_column is not None:
        raise refusal("the queries come from --query-sizes; leave out --query-column, or --query-sizes")
    documents = [name for name in names if name.lower() in DOCUMENT_NAMES and name not in (*ignored, label, query)]
    if label is not None and label == query:
        raise refusal(f"column {quote(label)} cannot be both label and query id; choose two")
    special = {**dict.fromkeys(documents, DOCUMENT), **dict.fromkeys(ignored, IGNORED)}
    special |= {name: kind for name, kind in ((label, LABEL), (query, QUERY)) if name is not None}
    if len(documents) > 1:
        raise refusal(f"two columns could be the document id, {_listed(documents)}; ignore one with --ignore-columns")
    kinds = np.array([special.get(name, FEATURE) for name in names], np.uint8)
    features = [name for name, kind in zip(names, kinds.tolist(), strict=True) if kind == FEATURE]
    places = np.zeros(len(names), np.int32)
    table.of_tables[path] = np.zeros(0, np.int64)
    if not features:
        return ColumnPlan(tuple(names), kinds, places, np.zeros(0, np.int32))
    if all(_is_index(name) for name in features):
        if table.names is not None:
            raise refusal("the columns are numbered but other inputs have names; give them the same columns")
        columns = table.register(np.array([int(name) for name in features], np.int64))
    else:
        if table.names is None and len(table):
            raise refusal("the columns have names but other inputs have numbers; give them the same columns")
        columns = table.register_names(features)
    table.of_tables[path] = table.ids[columns]
    order = np.argsort(table.ids[columns], kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    places[kinds == FEATURE] = rank
    return ColumnPlan(tuple(names), kinds, places, columns[order])


def _is_index(name: str) -> bool:
    plain = name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")
    return plain and len(name) < 20 and int(name) <= LARGEST_INDEX


def _find(
    names: Sequence[str],
    what: str,
    chosen: str | None,
    usual: Sequence[str],
    option: str,
    required: bool,
    refusal: Callable[[str], DataError],
) -> str | None:
    if chosen is not None:
        if chosen not in names:
            raise refusal(f"there is no column {quote(chosen)} for the {what}; the columns are {_listed(names)}")
        return chosen
    found = [name for name in names if name.lower() in usual]
    if len(found) > 1:
        raise refusal(f"two columns could be the {what}, {_listed(found)}; choose one with {option}")
    if not found and required:
        what = f"no column for the {what}: none of {', '.join(usual)} among {_listed(names)}"
        raise refusal(f"{what}; choose one with {option}")
    return found[0] if found else None


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(quote(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
