"""The state of a run of `lmart train` that --checkpoint keeps, and what says that a checkpoint is of this run."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import numpy as np

from lmart.binning.binned_features import BinnedDataset
from lmart.binning.validation_set import CodedDataset
from lmart.cli.model_selection import trial_patience
from lmart.cli.terminal.console import Console
from lmart.cli.train_inputs import TrainingInputs
from lmart.cli.train_request import TrainJob, TrainRequest, searched
from lmart.data.dataset import RankingDataset
from lmart.errors import counted
from lmart.training.checkpoint import Checkpoint, RunState, content_hash
from lmart.training.folds import Folds

if TYPE_CHECKING:
    from lmart.distributed.sharded_sets import ShardedSets


def run_state(path: str | None, console: Console) -> AbstractContextManager[RunState | Checkpoint]:
    """Return the state of the run as a context, in the file of --checkpoint where it is given; errors are its own."""
    if path is None:
        return nullcontext(RunState())

    def on_saved() -> None:
        console.kept = f"{path} keeps {_done(state)}; the same command goes on from it"

    state = Checkpoint(path, console.warning, on_saved)
    return state


def _done(state: RunState) -> str:
    """Return how far a run is, as a phrase; '' at its beginning."""
    done = [counted(len(state.trials), "trial")] if state.trials else []
    done += [counted(state.n_rounds, "tree")] if state.n_rounds else []
    return " and ".join(done)


def begin(job: TrainJob, inputs: TrainingInputs) -> None:
    """Begin the run, or go on with an interrupted one and report from where."""
    checkpoint, state = job.request.files.checkpoint, job.state
    if checkpoint is None and not job.request.files.retries:
        return
    state.begin(_identity(job.request, inputs))
    if done := _done(state):
        job.console.notice(f"going on after {done}{'' if checkpoint is None else f' in {checkpoint}'}")


def _identity(request: TrainRequest, inputs: TrainingInputs) -> dict[str, dict[str, object]]:
    """Return what the bytes of the model and the course of the run depend on, in groups."""
    selection, metadata, of_sets = request.selection, inputs.metadata, inputs.validation_metadata
    selected: dict[str, object] = {name: getattr(selection, name) for name in ("tune", "tune_trials")}
    folds = inputs.folds
    selected["folds"] = content_hash(folds.of_query) if isinstance(folds, Folds) else folds
    selected["refit"] = request.files.refit
    if selection.tunes:
        space = searched(selection, request.settings, metadata.positions is not None)
        selected["what is searched"] = content_hash(
            [(tried.name, tried.low, tried.high, tried.choices) for tried in space]
        )
        selected["patience of trials"] = trial_patience(selection, request.settings)
    if inputs.sharded is not None:
        selected["--dask"] = "given"
        return {"settings": request.settings.to_json(), "selection": selected, "data": _hashes_of(inputs.sharded)}
    positions = metadata.positions
    data = {
        "--data": _hash_of(inputs.local_train_set),
        "--valid": [_hash_of(dataset) for dataset in inputs.validation_sets],
        "--weights": content_hash(metadata.weights),
        "--init-scores": content_hash(metadata.init_scores),
        "--positions": content_hash(None if positions is None else (list(positions.names), positions.codes)),
        "--valid-weights": content_hash([of_set.weights for of_set in of_sets if of_set.weights is not None]),
        "--valid-init-scores": content_hash(
            [of_set.init_scores for of_set in of_sets if of_set.init_scores is not None]
        ),
        "--continue-from": content_hash(request.model),
    }
    return {"settings": request.settings.to_json(), "selection": selected, "data": data}


def _hashes_of(sets: ShardedSets) -> dict[str, object]:
    """Return hashes of the data that workers hold, by option."""
    from lmart.distributed.sharded_sets import hash_sets

    train, *valid = hash_sets(sets)
    return {
        "--data": train.rows,
        "--valid": [of_set.rows for of_set in valid],
        "--weights": train.weights,
        "--init-scores": train.init_scores,
        "--valid-weights": [of_set.weights for of_set in valid],
        "--valid-init-scores": [of_set.init_scores for of_set in valid],
    }


def _hash_of(dataset: RankingDataset | BinnedDataset | CodedDataset) -> str:
    """Return a hash of a data set, whatever it was read from."""
    judged = dataset.labels, dataset.query_offsets, dataset.input_rows
    if isinstance(dataset, CodedDataset):
        bins = np.concatenate([piece.T for piece in dataset.bins]) if dataset.bins else None
        return content_hash(judged, bins, dataset.rows, dataset.infinite, dataset.infinite_docs, dataset.columns)
    features = dataset.feature_ids, dataset.feature_names
    if isinstance(dataset, BinnedDataset):
        binned = dataset.features
        return content_hash(judged, features, binned.edges, binned.bins, binned.row_offsets, binned.other_bins)
    return content_hash(judged, features, dataset.features, list(dataset.query_ids))
