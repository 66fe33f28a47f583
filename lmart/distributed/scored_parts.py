"""What the driver knows of parts that workers have scored: sums and messages, as if the parts were one input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from lmart.array_types import UInt64Array
from lmart.distributed.query_places import Place, refuse_repeated, spanning_parts
from lmart.distributed.scoring import PartScored
from lmart.errors import counted
from lmart.formats.documents.feature_table import FeatureTable
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.streams.staged import StagedFile

FindPlaces = Callable[[str, Sequence[int]], Mapping[str, Place]]


class ScoredParts:
    """Collects what workers found, part by part, in their order. It holds no rows: of a query only a hash.

    model       : that scores
    source      : what messages call all parts
    find_places : gets a part and hashes of query ids; returns part and line of the first row of each, by id
    can_group   : whether a query may span parts with --group-by-qid
    different   : hashes with two parts in which they are those of different queries; more are added

    n_rows : scored
    staged : the outputs, which wait for their names
    empty  : the parts without rows
    """

    def __init__(
        self,
        model: Ensemble,
        source: str,
        find_places: FindPlaces,
        can_group: bool,
        different: set[tuple[int, int, int]],
    ) -> None:
        self._different = different
        self.n_rows = 0
        self.staged: list[StagedFile] = []
        self.empty: list[str] = []
        self._model, self._source, self._find_places, self._can_group = model, source, find_places, can_group
        self._paths: list[str] = []
        self._codes: list[UInt64Array] = []
        self._n_codes = self._n_checked = 0
        self._tables: dict[bool, FeatureTable] = {}  # by whether features have names
        self._told: dict[tuple[str, bool], list[str]] = {}  # the parts of each text
        self._repeating: PartScored | None = None
        self._n_repeated = 0

    def add(self, found: PartScored) -> bool:
        """Take what was found in the next part; return whether `refuse_spanning` is to be called now."""
        self.n_rows += found.n_rows
        self.staged.append(found.staged)
        if not found.n_rows:
            self.empty.append(found.path)
        self._paths.append(found.path)
        self._join_features(found)
        for one in found.told:
            self._told.setdefault(one, []).append(found.path)
        if found.repetition is not None:
            self._repeating = self._repeating or found
            self._n_repeated += found.repetition.n_rows
        self._codes.append(found.query_codes)
        self._n_codes += len(found.query_codes)
        if self._n_codes <= 2 * self._n_checked:  # so that all checks together cost as much as two of the last
            return False
        self._n_checked = self._n_codes
        return next(self._spanning(), None) is not None

    def _spanning(self) -> Iterator[tuple[int, int, int]]:
        return (one for one in spanning_parts(self._codes) if one not in self._different)

    def _join_features(self, found: PartScored) -> None:
        table = self._tables.setdefault(found.names is not None, FeatureTable())
        if found.names is not None:
            table.register_names(list(found.names))
        else:
            table.register(found.ids)
        if found.is_table:
            table.of_tables[self._source] = np.zeros(0, np.int64)
        for index, met in found.ignored.items():
            table.ignored[index] = met or table.ignored.get(index, False)

    def refuse_spanning(self) -> None:
        """Raise DataError when two parts have rows of one query, naming both places."""
        for one in self._spanning():
            code, *pair = one
            refuse_repeated((self._find_places(self._paths[part], [code]) for part in pair), self._can_group)
            self._different.add(one)

    def messages(self) -> list[tuple[str, bool]]:
        """Return what the user is to be told, and whether it is a warning."""
        found = []
        for (text, is_warning), paths in self._told.items():
            more = f" and {counted(len(paths) - 1, 'more part')}" if paths[1:] else ""
            found.append((f"{paths[0]}{more}: {text}", is_warning))
        for table in self._tables.values():
            if unmet := table.never_met():
                found.append((f"{self._source}: {unmet}", True))
        for table in self._tables.values():
            matcher = FeatureMatcher(self._model)
            matcher.column_map(table.ids, table.names)
            matcher.tables = dict.fromkeys(table.of_tables, table.ids)  # a column that a part has is there
            found += [(text, True) for text in matcher.warnings(self._source)]
        if (first := self._repeating) is not None and first.repetition is not None:
            joined = first.repetition._replace(n_rows=self._n_repeated)
            found.append((joined.warning(first.path), True))
        return list(dict.fromkeys(found))
