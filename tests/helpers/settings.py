"""Settings as training takes them, from those that are given."""

from __future__ import annotations

from lmart.array_types import Float64Array
from lmart.data.dataset import RankingDataset
from lmart.data.metadata import Positions
from lmart.settings import TrainSettings
from lmart.settings.data_facts import DataFacts
from lmart.settings.resolved import TreeSettings, resolve
from lmart.threads import WorkerPool
from lmart.training import objectives
from lmart.training.resolving import resolve_for


def tree_settings(settings: TrainSettings) -> TreeSettings:
    """Return how trees are grown."""
    return resolve(settings, DataFacts(0, 0)).rankers[0].tree


def prepare(
    data: RankingDataset,
    settings: TrainSettings,
    pool: WorkerPool,
    weights: Float64Array | None = None,
    positions: Positions | None = None,
) -> objectives.Objective:
    """Return the objective that the settings name."""
    return objectives.prepare(data, resolve_for(settings, data).rankers[0], pool, weights, positions)
