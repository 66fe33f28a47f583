"""Tables with named columns (CSV, TSV, Parquet): which is the label, the query id, the document id, a feature."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmart.array_types import Int64Array
from lmart.data.categories import CategoryTexts
from lmart.data.feature_names import DOCUMENT_NAMES, LABEL_NAMES, QUERY_NAMES, are_indices, is_index
from lmart.decimals import is_decimal
from lmart.errors import DataError, input_name, listed, quote
from lmart.formats.documents.column_names import check_names, data_fault, name_documents, no_such_column
from lmart.formats.documents.feature_table import FeatureTable, ascending
from lmart.formats.read_options import ReadOptions
from lmart.kernels.text.delimited import DOCUMENT, FEATURE, IGNORED, LABEL, QUERY

CATEGORY = 5  # of ColumnPlan.kinds: a feature whose texts are categories; kernels pass it over

# What pandas calls an index without a name in Parquet, and in CSV that was read and written again; and Dask's.
_INDEX = re.compile(r"__index_level_[0-9]+__|__null_dask_index__|Unnamed: 0(\.[0-9]+)*")


@dataclass(frozen=True)
class ColumnPlan:
    """The role of each column of one table, and the order of its features.

    names   : the columns, in the order of the table
    kinds   : uint8[n_fields], LABEL, QUERY, DOCUMENT, FEATURE or IGNORED of kernels.text.delimited, or CATEGORY
    places  : int32[n_fields], index of a feature among the cells of a row, which are ordered by ascending feature id
    columns : int32[n_features], the column in the FeatureTable of each cell of a row
    """

    names: tuple[str, ...]
    kinds: npt.NDArray[np.uint8]
    places: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]

    @property
    def parsed_kinds(self) -> npt.NDArray[np.uint8]:
        """The kinds that the kernel knows: it passes over categories."""
        return np.where(self.kinds == CATEGORY, IGNORED, self.kinds).astype(np.uint8)

    @property
    def categories(self) -> list[int]:
        """The columns of the table whose texts are categories."""
        return np.flatnonzero(self.kinds == CATEGORY).tolist()

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.columns)

    def column(self, kind: int) -> int | None:
        """Return the first column of this kind, from 0, None if there is none."""
        found = np.flatnonzero(self.kinds == kind)
        return int(found[0]) if len(found) else None

    def cells(self, n_rows: int) -> tuple[Int64Array, npt.NDArray[np.int32]]:
        """Return offsets and columns of n_rows rows that have every cell."""
        return np.arange(n_rows + 1) * self.n_features, np.tile(self.columns, n_rows)


def plan_columns(
    names: Sequence[str],
    options: ReadOptions,
    table: FeatureTable,
    path: str,
    line: int | None = None,
    texts: Collection[str] = (),
) -> ColumnPlan:
    """Return the role of each column; DataError when that is ambiguous. Registers the features in `table`.

    Without a line of the header, as of Parquet, names are certainly no data; `texts` are columns that hold text.
    """

    def refusal(message: str) -> DataError:
        return DataError(message, path, line)

    ignored = frozenset(options.ignore_columns)
    if missing := sorted(ignored - set(names)):
        raise refusal(no_such_column(missing[0], "to ignore", names))
    if line is not None and (fault := data_fault(names, options)):
        what = f"the first line looks like data, not a header: {fault}"
        raise refusal(f"{what}; put a header line with the names of the columns before it")
    superseded = check_names(names, options, ignored, refusal)
    special = dict.fromkeys(ignored, IGNORED) | _special_columns(names, options, ignored, refusal)
    special |= dict.fromkeys(_columns_to_leave_out(names, options, special, path, texts), IGNORED)
    kinds = np.array([special.get(name, FEATURE) for name in names], np.uint8)
    kinds[list(superseded)] = IGNORED
    features = [name for name, kind in zip(names, kinds.tolist(), strict=True) if kind == FEATURE]
    features, columns = _register(features, options, table, refusal, path)
    read = frozenset(features)
    kinds[[kind == FEATURE and name not in read for name, kind in zip(names, kinds.tolist(), strict=True)]] = IGNORED
    order, rank = ascending(table.ids[columns])
    places = np.zeros(len(names), np.int32)
    places[kinds == FEATURE] = rank
    columns = columns[order]
    automatic = texts if options.auto_categories else ()
    for f in np.flatnonzero(kinds == FEATURE).tolist():
        name, column = names[f], int(columns[places[f]])
        if name in options.categories or name in automatic or column in table.categories:
            if column not in table.categories and table.is_before(column, path):
                raise refusal(texts_after_numbers(name))
            kinds[f] = CATEGORY
            table.categories.setdefault(column, CategoryTexts(options.categories.get(name)))
    return ColumnPlan(tuple(names), kinds, places, columns)


def texts_after_numbers(name: str) -> str:
    """Return why a table is refused with texts in a column that had numbers in a table before."""
    return f"column {quote(name)} holds texts, but numbers in a table before; name it with --categorical"


def _special_columns(
    names: Sequence[str], options: ReadOptions, ignored: frozenset[str], refusal: Callable[[str], DataError]
) -> dict[str, int]:
    """Return which columns hold the label, the query ids and the document ids, by name."""
    there = [name for name in names if name not in ignored]
    features = options.known_features or frozenset()

    def find(what: str, chosen: str | None, usual: Sequence[str], others: Collection[str] = ()) -> list[str]:
        """Return the columns that may be `what`: the one chosen, else those with a usual name that are no others."""
        if chosen is None:
            return [name for name in there if name.lower() in usual and name not in features and name not in others]
        if chosen in ignored:
            raise refusal(f"column {quote(chosen)} is both {what} and to be ignored; leave out one of the options")
        if chosen not in there:
            raise refusal(no_such_column(chosen, f"for {what}", names, usual))
        return [chosen]

    def refuse_several(found: list[str], what: str, option: str) -> None:
        if len(found) > 1:
            raise refusal(f"several columns could be {what}, {listed(found)}; choose one with {option}")

    def require(found: list[str], what: str, usual: Sequence[str], option: str) -> None:
        if not found:
            remedy = f"choose one with {option}"
            if any(is_decimal(name) for name in names):
                remedy = f"put a header line before it if the first line is data, else {remedy}"
            raise refusal(f"no column for {what}: none of {', '.join(usual)} among {listed(names)}; {remedy}")

    labels = find("the label", options.label_column, LABEL_NAMES)
    if options.use_labels:
        refuse_several(labels, "the label", "--label-column")
    if options.require_labels:
        require(labels, "the label", LABEL_NAMES, "--label-column")
    queries = find("the query", options.query_column, QUERY_NAMES)
    if options.query_sizes is not None:
        if options.query_column is not None:
            raise refusal("the queries come from --query-sizes; leave out --query-column, or --query-sizes")
        if queries:
            what = f"the rows have query ids already, in column {quote(queries[0])}"
            raise refusal(f"{what}; leave out --query-sizes, or the column with --ignore-columns")
    refuse_several(queries, "the query", "--query-column")
    if options.require_queries and options.query_sizes is None:
        require(queries, "the query", QUERY_NAMES, "--query-column")
    if both := set(labels) & set(queries):
        raise refusal(f"column {quote(min(both))} cannot be both label and query id; choose two")
    documents = find("the document id", options.document_column, DOCUMENT_NAMES, {*labels, *queries})
    if both := set(documents) & {*labels, *queries}:
        raise refusal(f"column {quote(min(both))} cannot be both document id and label or query id; choose two")
    refuse_several(documents, "the document id", "--document-column")
    folds = [name for name in names if name == options.fold_column]
    for what, others in (("to be ignored", ignored), ("the label", labels), ("the query", queries)):
        if both := set(folds) & {*others}:
            raise refusal(f"column {quote(min(both))} is both {what} and that of --fold-by; choose another")
    kinds = dict.fromkeys(documents, DOCUMENT if options.keep_document_ids and not folds else IGNORED)
    kinds |= dict.fromkeys(folds, DOCUMENT)
    return kinds | dict.fromkeys(labels, LABEL if options.use_labels else IGNORED) | dict.fromkeys(queries, QUERY)


def _columns_to_leave_out(
    names: Sequence[str], options: ReadOptions, special: dict[str, int], path: str, texts: Collection[str]
) -> list[str]:
    """Return the columns that are surely no features, and report each as a notice; those that the model has are some.

    They only number the rows, as indices that pandas or Dask wrote, are further document ids, or hold text, which is
    left out only where a model says what features are.
    """
    features = options.known_features or frozenset()
    leaves_texts = not (features.isdisjoint(names) or options.refuse_unknown)
    found = []
    for name in names:
        if name in special or name in features:
            continue
        if _INDEX.fullmatch(name):
            why = "it is an index that pandas or Dask added to the data; rename it to use it"
        elif options.document_column is not None and name.lower() in DOCUMENT_NAMES:
            why = f"the document ids are in {quote(options.document_column)}"
        elif name in texts and leaves_texts:
            hint = "" if name_documents(names, options) else "; give --document-column if it names documents"
            why = f"it holds text, and the model does not know it{hint}"
        else:
            continue
        found.append(name)
        options.notice(f"{input_name(path)}: column {quote(name)} is left out: {why}")
    return found


def _register(
    features: list[str], options: ReadOptions, table: FeatureTable, refusal: Callable[[str], DataError], path: str
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Register the features in the table; return those to read, and the column of each.

    Columns that the model does not know are registered, so that they can be reported, but not read. Where only the
    model or only the table has names, features are matched by number, and all are read.
    """
    model = options.known_features
    table.of_tables[path] = np.zeros(0, np.int64)
    if not features or (model is not None and not model):
        return [], np.zeros(0, np.int32)
    numbered = are_indices(features)
    read, noted = features, features
    if model is not None:
        model_numbered = are_indices(model)
        hits = [name for name in features if name in model]
        if hits:
            numbered = model_numbered
            noted = [name for name in features if not numbered or is_index(name)]
            if len(noted) < len(features):
                what = _unknown([name for name in features if not is_index(name)], features)
                if options.refuse_unknown:
                    raise refusal(f"{what}; drop them from the data, or do without --strict")
                options.warning(f"{input_name(path)}: {what}; scored without")
        if hits or numbered == model_numbered:
            read = hits
    if numbered:
        if table.names is not None:
            raise refusal("the columns are numbered but other inputs have names; give them the same columns")
        columns = table.register(np.array([int(name) for name in noted], np.int64))
    else:
        if table.names is None and len(table):
            raise refusal("the columns have names but other inputs have numbers; give them the same columns")
        columns = table.register_names(noted)
    table.of_tables[path] = table.ids[columns]
    if read is noted:
        return read, columns
    place = dict(zip(noted, columns.tolist(), strict=True))
    return read, np.array([place[name] for name in read], np.int32)


def _unknown(unknown: list[str], features: Sequence[str]) -> str:
    """Return which named columns a model of numbered features does not know."""
    are = "is" if len(unknown) == 1 else "are"
    return f"{len(unknown)} of {len(features)} features {are} not in the model: {listed(unknown, 3)}"
