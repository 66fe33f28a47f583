"""The Python interface: `lmart.load(path).predict(array)`; and scoring of inputs in constant memory."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import pieces
from lmart.data.python_dataset import Dataset
from lmart.errors import ArrayError, ModelError, counted, either, naming_arguments, quote, warn
from lmart.foreign_names import perhaps, with_hints
from lmart.formats.documents.blocks import RowBlock, RowReader
from lmart.formats.documents.reading import for_models, open_rows
from lmart.formats.models.lmart_json import model_to_json
from lmart.formats.models.model_files import read_model, write_model
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import MODEL_FORMATS, OWN, format_of_name
from lmart.functions import Metric
from lmart.gains import Gain
from lmart.interrupts import safe_interrupts
from lmart.measures.resampling import DEFAULT_LEVEL, Resampling
from lmart.scoring.ensemble import Ensemble, rankers_in_words
from lmart.scoring.explain import CHUNK as EXPLAINED
from lmart.scoring.explain import Explainer, Explanation
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.given_columns import match_columns
from lmart.scoring.importance import ContributionMeans, split_importance
from lmart.scoring.scorer import CHUNK as SCORED
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool, threads_to_use

if TYPE_CHECKING:  # scoring starts sooner without what measures
    from lmart.evaluation import Evaluation
    from lmart.reports.run_report import RunReport

PATIENCE = 10_000  # rows held back until a feature of the model occurs; if none does, the data is refused


def score_stream(
    scorer: Scorer, matcher: FeatureMatcher, reader: RowReader, pool: WorkerPool | None = None, strict: bool = False
) -> Iterator[tuple[RowBlock, Float64Array]]:
    """Yield each block of the input with the scores of its rows, float64[n].

    scorer  : of the model
    matcher : finds the columns of its features, and collects those that only the data or only the model has
    reader  : the input
    pool    : the workers; None: the calling thread
    strict  : whether to refuse features that only the data or only the model has
    DataError when the data is damaged or `FeatureMatcher.refuse` refuses it; when that is known within the first
    PATIENCE rows, no scores are yielded.
    """
    waiting: list[tuple[RowBlock, Float64Array]] = []
    for block in reader:
        column_map = reader.match(matcher)
        if strict and not matcher.foreign:
            matcher.refuse(reader.path, strict)
        waiting.append((block, scorer.score(block.features, column_map, pool, matcher.unseen)))
        del block  # before the next one is made
        if matcher.foreign or matcher.off_by_one:
            if sum(len(block) for block, _ in waiting) < PATIENCE:
                continue
            matcher.refuse_foreign(reader.path)
        while waiting:
            yield waiting.pop(0)
    matcher.refuse(reader.path, strict)


@with_hints
class Model:
    """A model ready to score, as `lmart.train` and `lmart.load` give it; several threads may use it at once.

    >>> import lmart
    >>> model = lmart.train(lmart.read("data/sample/train.svm"), trees=30)
    >>> model
    <lmart.Model: 30 trees of 1 ranker, 20 features>
    >>> scores = model.predict(lmart.read("data/sample/test.svm"))
    >>> scores.shape
    (600,)
    """

    def __init__(self, ensemble: Ensemble, history: RunReport | None = None) -> None:
        self.ensemble = ensemble
        self._history = history
        self._scorer = Scorer(ensemble)
        self._explainer: Explainer | None = None
        self._has_scored = False  # so that machine code is loaded, and no interrupt can hit that

    def __reduce__(self) -> tuple[type[Model], tuple[Ensemble, RunReport | None]]:
        return Model, (self.ensemble, self._history)

    def __eq__(self, other: object) -> bool:
        """Return whether both are models that files of lmart hold the same of."""
        if not isinstance(other, Model):
            return NotImplemented
        return self is other or model_to_json(self.ensemble) == model_to_json(other.ensemble)

    def __hash__(self) -> int:
        return hash((self.n_trees, *self.feature_ids))

    def __repr__(self) -> str:
        rankers = rankers_in_words([part.tree for part in self.ensemble.rankers])
        features = counted(self.ensemble.n_features, "feature")
        return f"<lmart.Model: {counted(self.n_trees, 'tree')} of {rankers}, {features}>"

    @property
    def n_trees(self) -> int:
        """The number of trees, those of all rankers together."""
        return len(self.ensemble.trees)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the model was trained with, by their names; `lmart.train(X, y, qid, **model.settings)`.

        What was chosen by the data is filled in where it holds for all rankers. Empty for models of other tools.
        """
        return copy.deepcopy(self.ensemble.settings)

    @property
    def history(self) -> RunReport | None:
        """How the training went: the measure of each set after each round, warnings and seconds.

        None for a model from a file, which holds no history; `lmart train --report` writes it to a file of its own.
        """
        return self._history

    @property
    def feature_ids(self) -> list[int]:
        """The indices of the features, as written in the training data, ascending."""
        return [int(index) for index in self.ensemble.feature_ids]

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, when the training data had names."""
        return None if self.ensemble.feature_names is None else list(self.ensemble.feature_names)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the model file, whole or not at all, as `lmart train` and `lmart convert` do.

        path   : the file; compressed when its name ends in .gz or .zst
        format : of the file, such as 'lmart', 'lightgbm', 'xgboost' or 'onnx', as `lmart convert --to` takes them;
                 None: that which the name says (.ubj, .onnx, .c), else lmart's own

        A UserWarning says what a format of another tool cannot represent; ModelError when it cannot hold the model,
        OutputError when the file cannot be written, ValueError when there is no such format.

        >>> import lmart, os, tempfile
        >>> model = lmart.train(lmart.read("data/sample/train.svm"), trees=5)
        >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
        >>> model.save(path)
        >>> lmart.load(path)
        <lmart.Model: 5 trees of 1 ranker, 20 features>
        """
        name = os.fsdecode(path)
        named = format_of_name(name)
        if format is None and named is not None and named.name not in MODEL_FORMATS:
            raise ValueError(f"{name}: the name is that of data ({named.name}); use another, or give a format")
        chosen = format or (OWN if named is None else named.name)
        writable = [model_format.name for model_format in MODEL_FORMATS.values() if model_format.writer is not None]
        if chosen not in writable:
            hint = perhaps("format", chosen, writable)
            raise ValueError(
                f"there is no format {quote(chosen)} of models; use {either([*map(quote, writable)])}{hint}"
            )
        notes: list[str] = []
        write_model(self.ensemble, name, chosen, notes.append)
        for text in notes:
            warn(f"{name}: {text}")

    def predict(
        self,
        features: object,
        feature_ids: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        threads: int | None = None,
        strict: bool | None = None,
    ) -> Float64Array:
        """Return the score of each row, float64[n]; higher ranks first, comparable only within a query.

        features      : n rows and m columns: an array, in which nan is missing; a DataFrame of pandas or polars or a
                        Table of pyarrow, in which nulls are missing too; or a sparse matrix of SciPy, in which cells
                        that are not stored are absent, as indices that a row of LETOR text does not name; or a
                        `lmart.Dataset`, whose columns go by name or index.
                        Columns of a DataFrame go by their labels, in any order: by the model's names, or by its
                        indices when it has no names, as columns of a CSV file do. Those of an array are the model's
                        features in the order of `Model.feature_ids`. Features of the model without a column are
                        absent; columns that the model does not know are left out. Where the model has categories of
                        texts, columns hold texts, or categories of pandas, polars or pyarrow; a UserWarning counts
                        those that training did not see. Numbers are refused there, so in arrays too.
        feature_ids   : says instead which feature each column is, by its index
        feature_names : says instead which feature each column is, by its name or index
        threads       : threads to use, None: all that this process may use; the result never depends on it
        strict        : None: refuse a DataFrame that lacks a column of the model; a UserWarning lists other features
                        that only the data or only the model has. True: refuse that too. False: only warn
        ValueError when the features have another shape or are no numbers, or `threads` is below 1. DataError when no
        column is a feature of the model, or columns are refused.

        >>> import lmart
        >>> X = [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]]
        >>> model = lmart.train(X, [0, 1, 1, 0], qid=[7, 7, 8, 8], trees=1, rankers=1, min_docs=1)
        >>> model.predict([[2.0, 2.0], [0.0, 2.0]]).round(6).tolist()
        [0.2, -0.2]
        """
        rows, column_map = match_columns(self.ensemble, features, feature_ids, feature_names, strict)
        guard = nullcontext() if self._has_scored else safe_interrupts()  # which takes longer than to score a few rows
        with guard, _pool(threads, len(rows), SCORED) as pool:
            matcher = FeatureMatcher(self.ensemble) if self.ensemble.categories else None
            scores = self._scorer.score_pieces(rows, column_map, pool, None if matcher is None else matcher.unseen)
        for text in [] if matcher is None else matcher.unseen_values():
            warn(f"features: {text}")
        self._has_scored = True
        return scores

    def explain(
        self,
        features: object,
        feature_ids: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        threads: int | None = None,
        strict: bool | None = None,
    ) -> Explanation:
        """Return what each feature contributes to the score of each row: exact path-dependent TreeSHAP.

        The arguments are those of `predict`, and so are the errors; ModelError also when the model does not say how
        many documents each leaf had (models that lmart trains do). Contributions stand by the model's features, as
        `Model.feature_ids` and `Model.feature_names` list them, whatever the order of the columns.

        >>> import lmart
        >>> X = [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]]
        >>> model = lmart.train(X, [0, 1, 1, 0], qid=[7, 7, 8, 8], trees=1, rankers=1, min_docs=1)
        >>> base, contributions = model.explain([[2.0, 2.0]])
        >>> round(base, 6), contributions.round(6).tolist()
        (0.0, [[0.2, 0.0]])
        """
        explainer = self._explainer or Explainer(self.ensemble)
        self._explainer = explainer
        rows, column_map = match_columns(self.ensemble, features, feature_ids, feature_names, strict)
        with safe_interrupts(), _pool(threads, len(rows), EXPLAINED) as pool:
            contributions = np.empty((len(rows), self.ensemble.n_features))
            for start, stop, piece in pieces(rows, len(column_map)):
                contributions[start:stop] = explainer.explain(piece, column_map, pool)
            return Explanation(explainer.base, contributions)

    def importance(self, kind: str = "gain", features: object = None) -> dict[str, float]:
        """Return how much each feature matters in the model, by its name, or its index as text, the largest first.

        kind     : "gain": share of the split gain, as a mean over the rankers, together 1; "splits": nodes that split
                   on it; "contributions": mean absolute contribution to the scores of `features`, as `explain` says
        features : rows, as in `predict`; of kind "contributions" only
        ValueError when there is no such kind, or `features` are due or idle; ModelError when the model does not say
        what is asked for, as models of other tools may not.

        >>> import lmart
        >>> model = lmart.train(lmart.read("data/sample/train.svm"), trees=30)
        >>> shares = model.importance()
        >>> len(shares), round(sum(shares.values()), 6)
        (20, 1.0)
        """
        kinds = ("gain", "splits", "contributions")
        if kind not in kinds:
            raise ValueError(f"kind is {kind!r}; give {either([*map(quote, kinds)])}{perhaps('kind', kind, kinds)}")
        if (features is not None) != (kind == "contributions"):
            raise ValueError("give features with kind='contributions', and with no other")
        values: Float64Array | Int64Array | None
        if kind == "contributions":
            contributions = self.explain(features).contributions
            means = ContributionMeans(self._explainer or Explainer(self.ensemble))
            means.add_contributions(contributions)
            values = means.means
        else:
            found = split_importance(self.ensemble)
            values = found.splits if kind == "splits" else found.gain_shares
        if values is None:
            raise ModelError("the model does not say what its splits gained; give kind='splits'")
        order = np.argsort(-values, kind="stable").tolist()
        return {self.ensemble.feature_name(column): values[column].item() for column in order}

    def evaluate(
        self,
        X: object,
        y: object = None,
        qid: object = None,
        metric: Metric = "ndcg@10",
        empty: str | None = None,
        ties: str | None = None,
        threads: int | None = None,
        *,
        like: str | None = None,
        gain: str | Sequence[float] | Gain | None = None,
        discount: str | None = None,
        relevant: float | None = None,
        short: str | None = None,
        p_divisor: str | None = None,
        map_divisor: str | None = None,
        precision: str | None = None,
        level: float = DEFAULT_LEVEL,
        resamples: int | None = None,
        seed: int = 0,
    ) -> Evaluation:
        """Return measures of the ranking of judged documents, as `lmart eval` and `lmart.evaluate` do.

        X       : features, or a `lmart.Dataset`, whose weights count in the means
        y, qid  : label and query id of each row; left out if X is a Dataset
        metric  : one measure, or several in a list or with commas, as `lmart eval --metric` takes them
        empty   : what a query without a relevant document counts: 'zero', 'one' or 'skip' (it is left out)
        ties    : order of equal scores: 'input', its 'reverse', by 'docid', or the 'average' over all orders
        gain    : 'exp2', 'linear' or a table such as [0, 1, 3, 7]; None: that of `like`, else of the model, else exp2
        like, discount, relevant, short, p_divisor, map_divisor, precision : conventions, as in `lmart eval`
        level, resamples, seed, threads : as in `lmart eval`

        The errors are those of Dataset and `predict`; SettingsError when there is no such measure or convention.

        >>> import lmart
        >>> model = lmart.train(lmart.read("data/sample/train.svm"), trees=30)
        >>> found = model.evaluate(lmart.read("data/sample/test.svm"), metric="ndcg@10,map")
        >>> dict(found).keys(), len(found.per_query["map"])
        (dict_keys(['ndcg@10', 'map']), 40)
        """
        from lmart.evaluation import choose_measures, judged_dataset, measure_systems

        words = {"empty": empty, "ties": ties, "discount": discount, "relevant": relevant, "short": short}
        words |= {"p_divisor": p_divisor, "map_divisor": map_divisor, "precision": precision}
        choice = choose_measures(metric, like, gain, **words)
        if isinstance(X, Dataset) and not (y is None and qid is None):
            raise ArrayError("a Dataset has its own y and qid; leave them out")
        rows, column_map = match_columns(self.ensemble, X)
        judged = judged_dataset(X if isinstance(X, Dataset) else Dataset(np.zeros((len(rows), 0)), y, qid))
        name = "the model"
        return measure_systems(
            choice,
            judged,
            [name],
            lambda _, pool: self._scorer.score_pieces(rows, column_map, pool),
            Resampling(seed, level, resamples),
            threads=threads,
            models={name: self.ensemble},
        )

    def predict_letor(
        self, path: str | os.PathLike[str], threads: int | None = None, strict: bool = False
    ) -> Float64Array:
        """Return the score of each row of a data file, float64[n], in the order of its rows.

        path    : LETOR text, or any other data that `lmart predict` reads, plain or compressed; labels and query ids
                  may be missing
        threads : as in `predict`
        strict  : refuse features that the model does not have, and tables that lack a column of the model, instead of
                  telling by a UserWarning
        DataError, with path and line, when it cannot be read, or is refused.

        >>> import lmart
        >>> model = lmart.train(lmart.read("data/sample/train.svm"), trees=5)
        >>> len(model.predict_letor("data/sample/test.svm"))
        600
        """
        options = for_models(ReadOptions().for_scoring(), [self.ensemble])
        parts = [np.zeros(0)]
        name = os.fsdecode(path)
        with (
            naming_arguments(),
            safe_interrupts(),
            WorkerPool(threads_to_use(threads)) as pool,
            open_rows(name, options, pool) as reader,
        ):
            matcher = FeatureMatcher(self.ensemble)
            parts += [scores for _, scores in score_stream(self._scorer, matcher, reader, pool, strict)]
        for text in matcher.warnings(name):
            warn(text)
        return np.concatenate(parts)


@contextmanager
def _pool(threads: int | None, n_rows: int, at_once: int) -> Iterator[WorkerPool | None]:
    """Give a pool of threads, None where the rows are one piece of work for one thread."""
    if threads is not None:
        threads = threads_to_use(threads)
    pieces = -(-n_rows // at_once)
    if pieces <= 1 or threads == 1 or (count := min(pieces, threads_to_use(threads))) == 1:
        yield None
    else:
        with WorkerPool(count) as pool:
            yield pool


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file of lmart, or of another tool that `lmart convert` reads, plain or compressed.

    path : the file

    ModelError, with the path, when it is no sound model.

    >>> import lmart, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.txt")
    >>> lmart.train(lmart.read("data/sample/train.svm"), trees=5).save(path, format="lightgbm")
    >>> lmart.load(path)
    <lmart.Model: 5 trees of 1 ranker, 20 features>
    """
    return Model(read_model(os.fsdecode(path), tell=warn))
