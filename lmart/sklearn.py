"""LambdaMARTRanker: training and scoring as an estimator of scikit-learn, which is the extra `sklearn`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Self, cast

import numpy as np

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import validation
except ImportError as fault:
    raise ImportError("lmart.sklearn needs scikit-learn 1.5 or newer: pip install -U scikit-learn") from fault

from lmart.array_types import Float64Array
from lmart.data.feature_names import QUERY_NAMES
from lmart.data.from_python import as_floats, category_names, column_labels, is_masked, refuse_dask, refuse_masked
from lmart.data.python_dataset import Dataset, text_features
from lmart.data.queries import offsets_of_ids
from lmart.errors import ArrayError, SettingsError, quote, warn
from lmart.foreign_names import with_hints
from lmart.formats.documents.column_names import no_such_column
from lmart.functions import Metric
from lmart.gains import Gain
from lmart.interface.arguments import AbsentName, Auto, Objective
from lmart.interface.signatures import with_settings
from lmart.interface.training import train
from lmart.scoring.given_columns import names_of_categories
from lmart.scoring.importance import split_importance
from lmart.settings import options
from lmart.settings.kinds import TreeName

__all__ = ["LambdaMARTRanker"]

ONE_QUERY = "fit and score take all rows as one query, as no qid is given; give qid, or the estimator a query_column"


@with_hints
class LambdaMARTRanker(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A LambdaMART model that ranks the documents of queries, as an estimator of scikit-learn.

    All parameters but the last five are the settings of `lmart.train`, which are listed below.

    validation_fraction : share of the queries of X that `fit` holds out for `early_stop`, so that no `eval_set` is
                   needed, as in GridSearchCV; nothing is held out when `early_stop` is 0. None: `fit` is given
                   `eval_set`
    refit        : whether the model is trained once more at the end on X and the `eval_set` of `fit` together
    threads      : to use; None: all that this process may use. The result never depends on it
    verbose      : whether progress goes to standard error
    query_column : name of the column of a DataFrame X that holds the query ids, which then is no feature; so nothing
                   needs to be handed to `fit` and `score` besides X and y, also in cross-validation. None: `fit` and
                   `score` are given `qid`

    Without query ids all rows are one query, which a UserWarning says. After `fit` there are `model_`, the lmart.Model;
    `n_features_in_`, and feature_names_in_ when X had names; `feature_importances_`, float64[n_features_in_];
    `n_iter_`, the number of rounds, and `best_iteration_`, of those whose trees the model holds; and `evals_result_`,
    the measures of "training" and of "valid" (of several "valid[0]", ...) by name after each round, ranker by ranker.

    For GroupKFold and GridSearchCV either `query_column` is given, or you tell scikit-learn to pass on `qid`:

    >>> import lmart, sklearn
    >>> from lmart.sklearn import LambdaMARTRanker
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> data = lmart.read("data/sample/train.svm")
    >>> X, y, qid = data.to_numpy(), data.labels, data.qid
    >>> ranker = LambdaMARTRanker(trees=20, rankers=1).fit(X, y, qid=qid)
    >>> ranker.predict(X[:3]).shape
    (3,)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     routed = ranker.set_fit_request(qid=True).set_score_request(qid=True)
    ...     scores = cross_val_score(routed, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
    >>> len(scores)
    3
    """

    # More parameters than functions have elsewhere: scikit-learn wants each of them here by name.
    def __init__(
        self,
        *,
        trees: int = 300,
        rankers: int | Auto = None,
        linear: float | Auto = None,
        tree: TreeName | Auto = None,
        leaves: int | Auto = None,
        learning_rate: float = 0.1,
        max_depth: int = 0,
        min_docs: int = 20,
        min_hessian: float = 0.001,
        l2: float = 0.0,
        max_bins: int = 255,
        objective: Objective = None,
        truncation: int = 30,
        sigma: float = 1.0,
        normalize: bool = True,
        gain: str | Sequence[float] | Float64Array | Gain = "exp2",
        metric: Metric = "ndcg@10",
        early_stop: int = 0,
        absent: AbsentName = "zero",
        sample: float | Auto = None,
        features: float | Auto = None,
        monotone: str | Mapping[str, int] | Mapping[int, int] = "",
        categorical: str | int | Sequence[str | int] = "",
        position_bias_reg: float = 0.0,
        seed: int = 0,
        validation_fraction: float | None = None,
        refit: bool = False,
        threads: int | None = None,
        verbose: bool = False,
        query_column: str | None = None,
    ) -> None:
        parameters = {name: value for name, value in locals().items() if name != "self"}
        self.__dict__.update(parameters)  # as they are, under their names: scikit-learn asks for no more

    def fit(
        self,
        X: object,
        y: object,
        qid: object = None,
        group: object = None,
        sample_weight: object = None,
        eval_set: object = None,
    ) -> Self:
        """Learn from judged documents.

        X             : float[n, m] or a DataFrame or a sparse matrix, the features; nan is missing
        y             : n labels, finite numbers from 0 up
        qid           : n ids of queries; rows of a query are adjacent. None: `query_column`, else all are one query
        group         : instead, the number of rows of each query
        sample_weight : one number from 0 up per row or per query; None: all count the same
        eval_set      : (X, y, qid), or (X, y) with `query_column`, or a list of these, measured after each tree; the
                        first decides on `early_stop`

        Returns self. ValueError when the data does not fit.
        """
        if y is None:  # in the words that scikit-learn's checks want
            raise ArrayError("LambdaMARTRanker requires y to be passed, but the target y is None")
        X, qid = self._split_queries(X, qid, group)
        self._had_queries = not (qid is None and group is None)
        X, labels, y = self._validated(X, y)
        if not self._had_queries:
            warn(ONE_QUERY)
            qid = np.zeros(validation._num_samples(X), np.int64)
        named = {"feature_names": labels, "categorical": self.categorical}
        train_set = Dataset(X, y, qid, group, sample_weight, **cast(Any, named))
        sets = [self._validation_set(data, train_set) for data in _listed(eval_set)]
        settings = {option.name: getattr(self, option.name) for option in options()}
        share = self.validation_fraction if self.early_stop and not sets else None
        if self.early_stop and not sets and share is None:
            what = "early_stop needs a validation set to measure"
            raise SettingsError(f"{what}; give fit eval_set=(X, y, qid), or the estimator a validation_fraction")
        run = {"validation_fraction": share, "refit": self.refit, "threads": self.threads, "verbose": self.verbose}
        self.model_ = train(train_set, valid=sets or None, **cast(Any, settings | run))
        history = self.model_.history
        assert history is not None  # that of training
        self.n_iter_, self.best_iteration_ = history.rounds, history.best_round
        self.evals_result_: dict[str, dict[str, list[float | None]]] = {
            name: {metric: [] for metric in history.metrics} for name, _ in history.measures
        }
        for ranker, metric in product(history.rankers, history.metrics):
            for curve in ranker.curves_of(metric):
                self.evals_result_[curve.name][metric] += curve.values
        return self

    def predict(self, X: object) -> Float64Array:
        """Return the score of each row, float64[n]; higher ranks first, comparable only within a query.

        X : as in `fit`; it may lack the column of queries
        """
        validation.check_is_fitted(self)
        X, _ = self._split_queries(X, needed=False)
        X, labels, _ = self._validated(X)
        return self.model_.predict(X, feature_names=labels, threads=self.threads)

    def score(self, X: object, y: object, qid: object = None, sample_weight: object = None) -> float:
        """Return the mean NDCG@10 over the queries; nan when none of them counts.

        X             : as in `fit`
        y             : labels, one per row
        qid           : ids of queries, one per row; None: `query_column`, else all rows are one query, if they were in
                        `fit`
        sample_weight : one number per query or per row, for the mean; None: all count the same
        """
        validation.check_is_fitted(self)
        X, qid = self._split_queries(X, qid)
        X, labels, _ = self._validated(X)
        if qid is None:
            if self._had_queries:
                routed = "set_score_request(qid=True), or give the estimator a query_column"
                raise ArrayError(f"score needs qid, as fit had it; in cross-validation: {routed}")
            warn(ONE_QUERY)
            qid = np.zeros(validation._num_samples(X), np.int64)
        categorical = names_of_categories(self.model_.ensemble)
        data = Dataset(X, y, qid, weights=sample_weight, feature_names=labels, categorical=categorical)
        value = self.model_.evaluate(data, metric="ndcg@10", threads=self.threads)["ndcg@10"]
        return float("nan") if value is None else value

    @property
    def feature_importances_(self) -> Float64Array:
        """float64[n_features_in_], by column of X, the share of the gain of all splits that those on it have.

        The mean of the shares in each ranker, as their gains have different units.
        """
        validation.check_is_fitted(self)
        shares = split_importance(self.model_.ensemble).gain_shares
        assert shares is not None  # what lmart trains says what its splits gained
        if self._labels is None:
            return shares
        place = {self.model_.ensemble.feature_name(column): column for column in range(len(shares))}
        return shares[[place[label] for label in self._labels]]

    def _split_queries(
        self, X: object, qid: object = None, group: object = None, needed: bool = True
    ) -> tuple[Any, object]:
        """Return X without the column of queries, and the queries that it or the caller gives."""
        column = self.query_column
        if column is None:
            return X, qid
        columns = column_labels(X, "X")
        if columns is None or column not in columns:
            if not needed or qid is not None or group is not None:
                return X, qid
            if columns is None:
                how = "call set_output(transform='pandas') of the step before, or give qid instead"
                raise ArrayError(f"query_column is {quote(column)}, but X is not a DataFrame; {how}")
            raise ArrayError(no_such_column(column, "for the query", [*map(str, columns)], QUERY_NAMES), "X")
        if qid is not None or group is not None:
            raise ArrayError("query_column already gives the queries; leave out qid and group")
        if columns.count(column) > 1:
            raise ArrayError(f"two columns of X are named {quote(column)}, as that of the queries is; rename one")
        frame, kept = cast(Any, X), [name for name in columns if name != column]
        scoring = "leave the column out of X and give scoring=lambda ranker, X, y: ranker.score(X, y, qid=qid)"
        try:
            offsets_of_ids(frame[column], len(frame), f"sort X and y by it; for permutation_importance {scoring}")
        except ArrayError as fault:
            what, *advice = fault.message.split("; ", 1)
            raise ArrayError("; ".join([f"{what}, in column {quote(column)} of X", *advice])) from None
        return frame.select(kept) if hasattr(frame, "select") else frame[kept], frame[column]

    def _validated(self, X: Any, y: object = None) -> tuple[Any, Sequence[str] | None, Any]:
        """Return X, labels of its columns if it says others, and, in `fit`, y, as scikit-learn checks them.

        The number and names of features are kept, or held. A DataFrame stays what it is, so that its columns are read
        as `lmart.train` and `Model.predict` read them; columns without labels are those of `fit` in their order.
        """
        for values, what in ((X, "X"), (y, "y")):
            refuse_dask(values, what)  # which scikit-learn computes
        reset = y is not None
        found = column_labels(X, "X")
        if reset:
            self._labels = None if found is None else [str(label) for label in found]
            refuse_masked(y, "y")
        labels = self._labels
        if found is not None:
            labels = None if reset or labels is not None else [str(i) for i in range(1, self.n_features_in_ + 1)]
        how: dict[str, object] = {"accept_sparse": "csr", "dtype": "numeric"}
        if hasattr(validation, "validate_data"):
            how |= {"ensure_all_finite": "allow-nan", "skip_check_array": found is not None}
            check = validation.validate_data
        else:  # before 1.6
            how |= {"force_all_finite": "allow-nan", "cast_to_ndarray": found is None}
            check = type(self)._validate_data
        X = as_floats(X, "X") if is_masked(X) else X  # which the check would take for plain
        if reset:
            X, y = check(self, X, y, **how)
            return X, None, y
        return check(self, X, reset=False, **how), labels, None

    def _validation_set(self, data: object, train_set: Dataset) -> Dataset:
        """Return a validation set of `eval_set`, whose columns are those of X."""
        if not isinstance(data, tuple) or len(data) not in (2, 3):
            raise ArrayError(f"eval_set holds a {type(data).__name__}; give (X, y, qid), or a list of these")
        X, qid = self._split_queries(data[0], data[2] if len(data) == 3 else None)
        X, labels, _ = self._validated(X)
        if qid is None:
            if self._had_queries:
                raise ArrayError("eval_set has no queries, but X has; give (X, y, qid)")
            qid = np.zeros(validation._num_samples(X), np.int64)
        categorical = [*text_features(train_set), *(category_names(self.categorical) or ())]
        return Dataset(X, data[1], qid, feature_names=labels, categorical=categorical)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.target_tags.required = tags.target_tags.positive_only = True
        return tags

    def _more_tags(self) -> dict[str, bool]:  # before 1.6
        return {"allow_nan": True, "requires_y": True, "requires_positive_y": True}


LambdaMARTRanker.__doc__ = with_settings(LambdaMARTRanker.__doc__)


def _listed(eval_set: object) -> list[object]:
    if eval_set is None:
        return []
    return eval_set if isinstance(eval_set, list) else [eval_set]
