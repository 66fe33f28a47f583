"""The settings of a run, worked out from its data: see `settings.resolved`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from lmart.array_types import Float64Array, Int64Array
from lmart.binning.binned_features import BinnedDataset
from lmart.data.dataset import Judged, RankingDataset
from lmart.errors import DataError
from lmart.gains import grade_scale, refuse_labels_above
from lmart.settings import TrainSettings
from lmart.settings.data_facts import DataFacts
from lmart.settings.resolved import ResolvedSettings, resolve

Trainable = RankingDataset | BinnedDataset


@contextmanager
def source_named(source: str) -> Iterator[None]:
    """Add the source of the data to a DataError that names no file."""
    try:
        yield
    except DataError as fault:
        if fault.path is None:
            raise DataError(fault.message, source, fault.line, fault.more) from None
        raise


def resolve_for(
    settings: TrainSettings, train_set: Trainable, others: Sequence[Judged] = (), with_positions: bool = False
) -> ResolvedSettings:
    """Return the settings of a run, worked out from what its data is like.

    others     : the validation sets; all sets have one largest label in expected reciprocal rank

    DataError when a label is above the largest one that is given, as in err@10(max=5).
    """
    every = (train_set, *others)
    scale = max(grade_scale(dataset.labels) for dataset in every)
    facts = DataFacts(train_set.n_queries, train_set.n_documents, scale, with_positions, with_validation=bool(others))
    resolved = resolve(settings, facts)
    refuse_above_largest(resolved, [(dataset.source, dataset.labels, dataset.input_rows) for dataset in every])
    return resolved


def refuse_above_largest(
    settings: ResolvedSettings, sets: Iterable[tuple[str, Float64Array, Int64Array | None]]
) -> None:
    """Raise DataError when a label is above the largest one that is given, as in err@10(max=5).

    sets : the source of each, labels, float64[n], and their rows in the input, int64[n]; None: as they stand
    """
    if settings.uses_label_scale:
        for source, labels, rows in sets:
            with source_named(source):
                refuse_labels_above(labels, settings.largest_label, rows)
