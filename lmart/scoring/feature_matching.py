"""Matching the columns of the data to the features of the model, and reporting those that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lmart.array_types import Int32Array, Int64Array
from lmart.data.dataset import TableColumns
from lmart.data.feature_names import is_index
from lmart.errors import DataError, counted, input_name, listed, quote
from lmart.scoring.ensemble import Ensemble

NAMED = 3  # unknown features named in a message
UNKNOWN = -1  # number of a name that is no index


class FeatureMatcher:
    """Finds the model's feature for each column of the data: by name when both have names, else by index.

    Names count from 1; but where only the data has names and some are indices of the model, they go by these.
    The header of a table lists its features, so features without a column are reported. LETOR text is sparse: a feature
    that never occurs in it may simply be zero everywhere.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._by_id = {int(index): place for place, index in enumerate(ensemble.feature_ids)}
        names = ensemble.feature_names
        self._by_name = None if names is None else {name: place for place, name in enumerate(names)}
        self._map = np.zeros(0, np.int32)
        self._ids: Int64Array = np.zeros(0, np.int64)  # of the data's columns
        self._numbers: Int64Array = self._ids  # those of its features, as far as they are indices
        # By input that is a table: the ids of the features it has a column for.
        self.tables: Mapping[str, Int64Array] = {}
        self.unknown: list[str] = []
        self.half_named: str | None = None  # which side has names when the other has none: numbers then decide
        self.how_to_leave_out = " (--ignore-columns)"
        self.unseen: Counter[int] = Counter()  # rows with a value of a category that training did not see, by feature

    def column_map(
        self, feature_ids: Sequence[int] | Int64Array, feature_names: Sequence[str] | None = None
    ) -> Int32Array:
        """Return int32[n_columns], the model's feature of each column, -1 where it has none.

        May be called again with more columns; names of features that the model lacks are added to `unknown`.
        """
        n_mapped = len(self._map)
        if len(feature_ids) > n_mapped:
            numbers = [int(index) for index in feature_ids[n_mapped:]]
            texts = list(map(str, numbers)) if feature_names is None else list(feature_names[n_mapped:])
            if not n_mapped and (feature_names is None) != (self._by_name is None):
                self.half_named = "model" if feature_names is None else "data"
                if feature_names is not None and any(is_index(text) and int(text) in self._by_id for text in texts):
                    self.half_named = None
            if feature_names is None or self.half_named is not None:
                places = [self._by_id.get(number, -1) for number in numbers]
            elif self._by_name is not None:
                places = [self._by_name.get(text, -1) for text in texts]
            else:
                numbers = [int(text) if is_index(text) else UNKNOWN for text in texts]
                places = [self._by_id.get(number, -1) for number in numbers]
            self.unknown += [text for text, place in zip(texts, places, strict=True) if place < 0]
            self._map = np.concatenate([self._map, np.array(places, np.int32)])
            self._ids = np.asarray(feature_ids, np.int64)
            indices = [number for number in numbers if number != UNKNOWN]
            self._numbers = np.concatenate([self._numbers, np.array(indices, np.int64)])
        return self._map

    @property
    def known_columns(self) -> Int32Array:
        """The map of the columns seen so far, as `column_map` returned it last."""
        return self._map

    def describe_unknown(self) -> str:
        """Describe how many columns the model has no feature for, and name a few."""
        n = len(self.unknown)
        features = ("feature" if len(self._map) == 1 else "features") + (" is" if n == 1 else " are")
        return f"{n} of {len(self._map)} {features} not in the model: {listed(self.unknown, NAMED)}"

    def missing(self) -> dict[str, list[str]]:
        """Return, for each table that lacks columns for features of the model, the names of those features.

        Features that trees split on come first.
        """
        found = {}
        for path, ids in self.tables.items():
            there = np.zeros(self._ensemble.n_features + 1, np.bool_)  # the last one stands for -1
            there[self._map[np.isin(self._ids, ids)]] = True
            if lacking := np.flatnonzero(~there[:-1]).tolist():
                used = self._split_on()
                lacking.sort(key=lambda place: place not in used)
                found[path] = [self._ensemble.feature_name(place) for place in lacking]
        return found

    def _split_on(self) -> set[int]:
        return {column for tree in self._ensemble.trees for column in tree.split_columns.tolist()}

    @property
    def matched_by_number(self) -> str | None:
        """The warning that features with names are matched by number, None when they are not."""
        if self.half_named is None or len(self.unknown) == len(self._map):
            return None
        return f"features are matched by number, not by name: only the {self.half_named} has names"

    def warnings(self, source: str, of_unknown: str = "scored without") -> list[str]:
        """Return warnings of features matched by number instead of name, and of those that only one side has."""
        called = input_name(source)
        found = [half] if (half := self.matched_by_number) else []
        if self.unknown:
            found.append(f"{called}: {self.describe_unknown()}; {of_unknown}{self._hint()}")
        used = {self._ensemble.feature_name(place) for place in self._split_on()}
        for path, names in self.missing().items():
            what = describe_missing(names, self._ensemble.n_features, "the model", self._ensemble.absent)
            idle = f"; no tree splits on {'it' if len(names) == 1 else 'them'}"
            found.append(f"{input_name(path)}: {what}{idle if used and names[0] not in used else ''}")
        return found + [f"{called}: {text}" for text in self.unseen_values()]

    def unseen_values(self) -> list[str]:
        """Return a line for each category with values that training did not see, in words."""
        return [
            f"{counted(rows, 'row')} with a value of category {quote(self._ensemble.feature_name(column))} "
            "that training did not see; the model has one place for all such values"
            for column, rows in sorted(self.unseen.items())
            if rows
        ]

    def refuse(self, source: str, strict: bool = False) -> None:
        """Raise DataError when the data does not belong to the model; `strict`, also when features differ at all."""
        self.refuse_misfit(source)
        if not strict:
            return
        if self.unknown:
            raise DataError(f"{self.describe_unknown()}; drop them from the data, or do without --strict", source)
        for path, names in self.missing().items():
            what = describe_missing(names, self._ensemble.n_features, "the model")
            raise DataError(f"{what}; add {'it' if len(names) == 1 else 'them'}, or do without --strict", path)

    def refuse_numbers(self, source: str) -> None:
        """Raise DataError when a file that is no table has a feature that is a category of texts in the model."""
        for of_feature in () if self.tables else self._ensemble.categories:
            if of_feature.of_texts and of_feature.column in self._map:
                what = f"feature {quote(self._ensemble.feature_name(of_feature.column))} is a category of texts"
                raise DataError(f"{what}, but LETOR text has numbers; give a table: CSV, TSV or Parquet", source)

    def refuse_misfit(self, source: str) -> None:
        """Raise DataError when no feature matches, or the feature numbers are off by one."""
        self.refuse_foreign(source)
        if off := self.off_by_one:
            raise DataError(off, source)

    def refuse_foreign(self, source: str) -> None:
        """Raise DataError when the data has features, or columns, but none of the model's."""
        if self.foreign:
            model = self._by_name if self._by_name is not None else self._by_id
            theirs, ours = quote(self.unknown[0]) if self.unknown else "none", quote(str(next(iter(model))))
            raise DataError(
                f"no feature of the data is in the model: the data has {theirs}, the model has {ours}; "
                "give data with the features that the model was trained on",
                source,
            )

    @property
    def foreign(self) -> bool:
        """Whether the data has features so far, or is a table, but has none of the model's."""
        has_some = bool(self.unknown) or bool(self.tables)
        return has_some and len(self.unknown) == len(self._map) and bool(self._by_id)

    @property
    def off_by_one(self) -> str | None:
        """The error message when the data numbers its features from 0 and the model from 1, or vice versa; else None.

        If only one of them has names, names are numbered from 1, so a feature 0 in the other is enough. Else the
        features of the data must be those of the model shifted by one, as far as both go, and one must be new: sparse
        data looks like that by chance only if the first feature is zero in every row and there is a new one after the
        last.
        """
        if not len(self._map) or not self._by_id or (self._by_name is not None and self.half_named is None):
            return None
        data_has, model_has = bool((self._numbers == 0).any()), 0 in self._by_id
        if data_has == model_has:
            return None
        data, model = np.sort(self._numbers), self._ensemble.feature_ids
        new_ones = data[~np.isin(data, model)].tolist()
        if self.half_named is None:
            if not new_ones or not (_moved(data, model) if data_has else _moved(model, data)):
                return None
        elif self.half_named != ("data" if model_has else "model"):
            return None
        last = (int(data[-1]), int(model[-1]))
        first = (0, 1) if data_has else (1, 0)
        names = "" if self.half_named is None else f" (the {self.half_named} by the order of its names)"
        new = ""
        if len(new_ones) == 1:
            new = f", or leave out '{new_ones[0]}' if it is new{self.how_to_leave_out}"
        return (
            f"the data numbers its features {first[0]} to {last[0]} and the model {first[1]} to {last[1]}{names}, so "
            f"that each would be taken for its neighbour; number them alike{new if not names else ''}"
        )

    def _hint(self) -> str:
        """Return a question to add to a warning when the feature numbers seem off by one, else an empty text."""
        if len(self.unknown) > 1 or (self._by_name is not None and self.half_named is None):
            return ""
        data_has, model_has = bool((self._numbers == 0).any()), 0 in self._by_id
        if data_has == model_has or self.unknown[0] not in ("0", str(max(self._by_id) + 1)):
            return ""
        if not model_has and 1 not in self._by_id:
            return ""
        return f"; does the data number its features from {1 - data_has}, the model from {1 - model_has}?"


def describe_missing(names: Sequence[str], total: int, whose: str, absent: str | None = None) -> str:
    """Describe how many of the features of 'the model' or 'the data' have no column, and name a few."""
    n = len(names)
    counts = "" if absent is None else f"; counted as {'0' if absent == 'zero' else 'missing'}"
    verb = "has" if n == 1 else "have"
    return f"{n} of {total} feature{'s' * (total != 1)} of {whose} {verb} no column: {listed(names, NAMED)}{counts}"


def missing_columns(dataset: TableColumns) -> dict[str, str]:
    """Return a warning for each table, of several inputs, that lacks a column for a feature of the others.

    DataError when one input numbers the same features from 0 and another from 1.
    """
    found = {}
    of_tables = {path: np.sort(ids) for path, ids in dataset.table_features.items()}
    if dataset.feature_names is None:
        from_zero = [(path, ids) for path, ids in of_tables.items() if len(ids) and ids[0] == 0]
        for path, ids in of_tables.items():
            for other, others in from_zero:
                if _moved(others, ids) and not np.isin(ids, others).all():
                    what = (
                        f"the features are numbered {ids[0]} to {ids[-1]}, but 0 to {others[-1]} in {input_name(other)}"
                    )
                    raise DataError(f"{what}; number them alike", path)
    names = dataset.feature_names or tuple(map(str, dataset.feature_ids.tolist()))
    for path, ids in of_tables.items():
        if lacking := np.flatnonzero(~np.isin(dataset.feature_ids, ids)).tolist():
            found[path] = describe_missing([names[i] for i in lacking], len(names), "the data")
    return found


def check_columns(dataset: TableColumns, absent: str, strict: bool) -> Iterator[str]:
    """Yield a warning for each table, of several inputs, that lacks a column of the others.

    absent : what such a cell is, 'zero' or 'missing'
    strict : DataError instead
    """
    for path, fault in missing_columns(dataset).items():
        if strict:
            raise DataError(f"{fault}; give the files the same columns, or do without --strict", path)
        yield f"{input_name(path)}: {fault}; counted as {'0' if absent == 'zero' else 'missing'}"


def _moved(from_zero: Int64Array, from_one: Int64Array) -> bool:
    """Return whether ascending indices are the same but that one side starts at 0, as far as both go."""
    both = min(len(from_zero), len(from_one))
    return np.array_equal(from_zero[:both] + 1, from_one[:both])


def match_dataset(ensemble: Ensemble, dataset: TableColumns) -> FeatureMatcher:
    """Return the matcher of the columns of a data set to the features of a model."""
    matcher = FeatureMatcher(ensemble)
    matcher.column_map(dataset.feature_ids, dataset.feature_names)
    matcher.tables = dataset.table_features
    return matcher
