"""Dataset: judged documents as Python programs give them, to train on, to validate with or to score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import Counted, Features, RankingDataset, Rows, SparseRows, Unbinned, pieces, select_queries
from lmart.data.from_python import GivenFeatures, category_names, features_of, names_beside, refuse_other_width
from lmart.data.metadata import (
    Metadata,
    Positions,
    Weights,
    init_scores_of,
    labels_of,
    positions_of,
    spread_weights,
    weights_of,
)
from lmart.data.queries import offsets_of_ids, offsets_of_sizes
from lmart.errors import ArrayError, counted
from lmart.foreign_names import with_hints


@dataclass(frozen=True)
class ArrayDataset(Counted):
    """Judged documents in arrays, whose rows are read piece by piece from `columns`; fields as in RankingDataset."""

    columns: GivenFeatures = field(compare=False)
    features: Rows
    feature_ids: Int64Array
    labels: Float64Array
    query_offsets: Int64Array
    query_ids: Sequence[str]
    feature_names: tuple[str, ...] | None = None
    document_ids: Sequence[str] | None = None
    input_rows: Int64Array | None = None
    source: str = field(default="X", compare=False)
    table_features: Mapping[str, Int64Array] = field(default_factory=dict, compare=False)
    texts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@with_hints
class Dataset:
    """Judged documents, grouped by query: what `lmart.read` returns, and `lmart.train` takes.

    X             : n rows and m columns of features: an array of NumPy of any type of numbers, a DataFrame of pandas
                    or polars, a Table of pyarrow, a sparse matrix of SciPy, or lists. nan and nulls are missing; cells
                    that a sparse matrix does not store are absent, as indices that a row of LETOR text does not name;
                    so are the zeros of a DataFrame whose columns are all sparse.
                    Columns of a DataFrame go by their labels: by name, or by number when all labels are whole numbers,
                    whatever their order. Other columns are the features 1, 2, ..., m. Rows are converted piece by
                    piece when they are read, so that numbers are not copied
    y             : n labels, finite numbers from 0 up
    qid           : n ids of queries, numbers or texts or anything that can be hashed; rows of a query are adjacent
    group         : instead of `qid`, the number of rows of each query
    weights       : one number from 0 up a query, or one a row; None: all count the same
    init_scores   : n scores to start from; None: 0
    positions     : n places at which the rows were shown when they were clicked or not; None: no bias is learned
    feature_names : m names or numbers of the columns, as labels of a DataFrame; None: as X says
    categorical   : names of columns of a DataFrame whose texts are categories, or 'auto' for all that hold texts, of
                    type category in pandas, Categorical or Enum in polars, dictionary in pyarrow included; other such
                    columns are refused. `lmart.train` is given the names too

    ArrayError, which is a DataError and a ValueError, when something does not fit; it names the row.

    >>> import lmart
    >>> data = lmart.Dataset([[1.0, 0.0], [0.5, 2.0], [0.1, 0.3]], [2, 0, 1], qid=["a", "a", "b"])
    >>> data
    <lmart.Dataset: 3 documents of 2 queries, 2 features>
    >>> data.query_sizes.tolist()
    [2, 1]
    """

    def __init__(
        self,
        X: object,
        y: object,
        qid: object = None,
        group: object = None,
        weights: object = None,
        init_scores: object = None,
        positions: object = None,
        feature_names: Sequence[str] | None = None,
        categorical: object = (),
    ) -> None:
        columns = features_of(X, "X", feature_names, category_names(categorical), may_name=True)
        rows = columns.read(np.arange(len(columns.ids)))
        n = len(rows)
        labels = labels_of(y, n)
        if qid is None and group is None:
            what = "which rows are a query is not given; give qid, one id a row, or group"
            raise ArrayError(f"{what}; one query alone is qid=[0] * len(y)")
        if qid is not None and group is not None:
            raise ArrayError("qid and group both say which rows are a query; give one of them")
        if qid is not None:
            offsets, ids = offsets_of_ids(qid, n)
        else:
            offsets = offsets_of_sizes(group, n)
            ids = [str(number) for number in range(1, len(offsets))]
        tables = {"X": columns.ids} if columns.by_label else {}
        texts = columns.texts(np.arange(len(columns.ids)))
        self._judged: RankingDataset | ArrayDataset = ArrayDataset(
            columns, rows, columns.ids, labels, offsets, ids, columns.names, table_features=tables, texts=texts
        )
        self._weights: Weights | None = None
        self._init_scores: Float64Array | None = None
        self._positions: Positions | None = None
        self._add_metadata(weights, init_scores, positions)

    def with_metadata(self, weights: object = None, init_scores: object = None, positions: object = None) -> Dataset:
        """Return the same documents with these metadata, in the order of the rows as they were given or read.

        weights     : one number from 0 up a query, or one a row; None: as before
        init_scores : scores to start from, one a row; None: as before
        positions   : where each row was shown; None: as before

        >>> import lmart
        >>> data = lmart.read("data/sample/train.svm")
        >>> data.with_metadata(weights=[1.0] * data.n_queries)
        <lmart.Dataset: 1,760 documents of 120 queries, 20 features, weights>
        """
        made = dataset_of(self._judged)
        made._weights, made._init_scores, made._positions = self._weights, self._init_scores, self._positions
        made._add_metadata(weights, init_scores, positions)
        return made

    def _add_metadata(self, weights: object, init_scores: object, positions: object) -> None:
        judged, n = self._judged, self.n_documents
        if weights is not None:
            self._weights = weights_of(weights, judged.query_offsets, judged.input_rows)
        if init_scores is not None:
            self._init_scores = init_scores_of(init_scores, n, judged.input_rows)
        if positions is not None:
            self._positions = positions_of(positions, n, judged.input_rows)

    def __repr__(self) -> str:
        queries = counted(self.n_queries, "query")
        size = f"{counted(self.n_documents, 'document')} of {queries}, {counted(self.n_features, 'feature')}"
        metadata = {"weights": self._weights, "init_scores": self._init_scores, "positions": self._positions}
        return (
            f"<lmart.Dataset: {', '.join([size, *(name for name, values in metadata.items() if values is not None)])}>"
        )

    def __len__(self) -> int:
        return self.n_documents

    @property
    def n_documents(self) -> int:
        """The number of rows."""
        return self._judged.n_documents

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self._judged.n_queries

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self._judged.n_features

    @property
    def labels(self) -> Float64Array:
        """float64[n_documents], the labels."""
        return self._judged.labels

    @property
    def query_sizes(self) -> Int64Array:
        """int64[n_queries], the number of rows of each query."""
        return np.diff(self._judged.query_offsets)

    @property
    def qid(self) -> npt.NDArray[np.str_]:
        """The id of each row's query, as text: str[n_documents]."""
        return np.repeat(np.array(list(self._judged.query_ids), np.str_), self.query_sizes)

    @property
    def feature_ids(self) -> list[int]:
        """The index of each feature, ascending."""
        return [int(index) for index in self._judged.feature_ids]

    @property
    def feature_names(self) -> list[str] | None:
        """The name of each feature; None when they have indices only."""
        return None if self._judged.feature_names is None else list(self._judged.feature_names)

    @property
    def document_ids(self) -> list[str] | None:
        """The id of each row's document, '' where it has none; None when the data has none."""
        return None if self._judged.document_ids is None else list(self._judged.document_ids)

    def to_numpy(self, absent: float = 0.0) -> Float64Array:
        """Return the features as an array of their own, float64[n_documents, n_features]; nan is missing.

        absent : what stands for cells that are not there

        >>> import lmart
        >>> lmart.Dataset([[1, 2]], [0], qid=[1]).to_numpy()
        array([[1., 2.]])
        """
        rows = self._judged.features
        out = np.empty((self.n_documents, self.n_features))
        for start, stop, piece in pieces(rows, self.n_features):
            out[start:stop] = piece.dense(self.n_features, absent)
        return out


# What training reads of it; not methods, as programs need none of them.


def dataset_of(judged: RankingDataset | ArrayDataset) -> Dataset:
    """Return documents as a Dataset without metadata."""
    made = Dataset.__new__(Dataset)
    made._judged = judged
    made._weights = made._init_scores = made._positions = None
    return made


def text_features(dataset: Dataset) -> list[str]:
    """Return the names, or indices as text, of the features that hold texts."""
    judged = dataset._judged
    names = judged.feature_names or tuple(map(str, judged.feature_ids.tolist()))
    return [names[column] for column in judged.texts]


def training_metadata(dataset: Dataset) -> Metadata:
    """Return the metadata of a data set as training takes them."""
    weights = None
    if dataset._weights is not None:
        by_query = dataset._weights.given_per == "query"
        weights = dataset._weights.per_query if by_query else dataset._weights.per_document
    return Metadata(weights, dataset._init_scores, dataset._positions)


def validation_metadata(dataset: Dataset) -> Metadata:
    """Return the metadata of a data set as measuring takes them."""
    return Metadata(None if dataset._weights is None else dataset._weights.per_query, dataset._init_scores)


def measured_part(dataset: Dataset) -> tuple[RankingDataset | ArrayDataset, Weights | None]:
    """Return the documents and their weights, as measuring scores takes them; no features are read."""
    return dataset._judged, dataset._weights


def unbinned(dataset: Dataset, source: str, allow_infinite: bool = False, beside: Features | None = None) -> Unbinned:
    """Return the documents as training and scoring read them.

    source         : what messages call arrays
    allow_infinite : whether infinite values of arrays are data; files say that when they are read
    beside         : the features that columns without labels stand for, in the order in which a program gives them, or
                     ascending; None: those of the data set

    ArrayError when columns without labels are more or fewer than those.
    """
    judged = dataset._judged
    ids, names, rows = judged.feature_ids, judged.feature_names, judged.features
    if judged.table_features:
        names = names_beside(ids, names, beside)
    elif isinstance(judged, ArrayDataset) and beside is not None:
        refuse_other_width(judged.n_features, beside, source)
        ids, names = beside.feature_ids, beside.feature_names
        if isinstance(beside, ArrayDataset):  # whose columns may be given in another order than that of its features
            rows = judged.columns.read(beside.columns.order)
    if isinstance(judged, RankingDataset):
        return replace(judged, feature_names=names)
    judged = replace(judged, feature_ids=ids, feature_names=names)
    tables = dict.fromkeys([source] * bool(judged.table_features), ids)
    if not allow_infinite:
        rows = FiniteRows(rows, names or tuple(map(str, ids.tolist())), source)
    return replace(judged, features=rows, source=source, table_features=tables)


def in_memory(
    dataset: Dataset, source: str, allow_infinite: bool = False, beside: Features | None = None
) -> RankingDataset:
    """Return the documents with all of their rows in memory, as folds are taken from; see `unbinned`."""
    judged = unbinned(dataset, source, allow_infinite, beside)
    if isinstance(judged, RankingDataset):
        return judged
    assert isinstance(judged, ArrayDataset)
    values = {field.name: getattr(judged, field.name) for field in fields(RankingDataset)}
    return RankingDataset(**values | {"features": judged.features.between(0, judged.n_documents)})


def split_queries(dataset: Dataset, judged: RankingDataset, held_out: Int64Array) -> tuple[Dataset, Dataset]:
    """Return the queries that are not held out, and those that are, each with their metadata.

    judged   : the documents of the data set, in memory
    held_out : int64, places of queries, ascending
    """
    metadata, parts = training_metadata(dataset), []
    kept = np.setdiff1d(np.arange(judged.n_queries), held_out)
    for queries, source in ((kept, judged.source), (held_out, "valid")):
        rows, own = select_queries(judged, queries), metadata.of_queries(judged.query_offsets, queries)
        made = dataset_of(replace(rows, source=source))
        if own.weights is not None:
            made._weights = spread_weights(own.weights, rows.query_offsets)
        made._init_scores, made._positions = own.init_scores, own.positions
        parts.append(made)
    return parts[0], parts[1]


class FiniteRows:
    """Rows whose infinite values are refused when they are read."""

    def __init__(self, rows: Rows, names: Sequence[str], source: str) -> None:
        self._rows, self._names, self._source = rows, names, source

    def __len__(self) -> int:
        return len(self._rows)

    def between(self, start: int, stop: int) -> SparseRows:
        """Return rows start:stop; ArrayError names the first infinite value."""
        part = self._rows.between(start, stop)
        infinite = np.flatnonzero(np.isinf(part.values))
        if len(infinite):
            cell = int(infinite[0])
            row = start + int(np.searchsorted(part.offsets, cell, "right")) - 1
            what = f"row {row} (from 0), column {self._names[int(part.columns[cell])]} is {part.values[cell]}"
            raise ArrayError(f"{what}; mend it, or give allow_inf=True", self._source)
        return part
