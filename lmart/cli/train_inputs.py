"""What `lmart train` reads: the training set, validation sets and their metadata; in memory, in bins, or on workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from lmart.array_types import Float64Array
from lmart.binning.binned_features import BinnedDataset
from lmart.binning.categories import describe_automatic
from lmart.binning.two_passes import read_training_set, read_validation_set
from lmart.binning.validation_set import CodedDataset
from lmart.cli.options.shared import one_for_each
from lmart.cli.terminal.console import Console
from lmart.cli.train_request import SelectionOptions, TrainRequest, reading_validation
from lmart.data.dataset import RankingDataset, TableColumns, join_datasets
from lmart.data.metadata import NO_METADATA, Metadata
from lmart.errors import DataError, counted, input_name, quote
from lmart.formats.documents.column_names import no_such_column
from lmart.formats.documents.reading import for_models, read_dataset, source_name
from lmart.formats.query_groups import read_query_groups
from lmart.formats.read_options import ReadOptions
from lmart.scoring.feature_matching import check_columns, match_dataset
from lmart.scoring.scorer import ModelScores
from lmart.settings import AUTO, TrainSettings
from lmart.streams import check_output
from lmart.threads import WorkerPool
from lmart.training.boosting import without_trees
from lmart.training.continuation import Continuation
from lmart.training.folds import Folds, common_values, dealt_groups, named_folds, values_of_queries
from lmart.training.resolving import Trainable

if TYPE_CHECKING:  # a run of one process starts sooner without what clusters need
    from lmart.distributed.cluster import Cluster
    from lmart.distributed.reading import JoinedSet
    from lmart.distributed.sharded_sets import DataParts, ShardedSets


@dataclass(frozen=True, eq=False)
class SetsInMemory:
    """The sets with their values, as cross-validation and the search for settings need them."""

    train_set: RankingDataset
    validation_sets: Sequence[RankingDataset]


@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """All that a run learns from and is measured on.

    train_set    : in memory when settings are selected first, else in bins
    in_memory    : the same sets when they are in memory; None: they are in bins
    warnings     : of how the sets match each other and the model to go on from, reported already
    continuation : the model to go on from with its scores; None: none
    sharded      : the sets, where workers of a cluster hold their rows
    folds        : those of --folds, or their number
    """

    train_set: Trainable | JoinedSet
    validation_sets: Sequence[RankingDataset | CodedDataset]
    in_memory: SetsInMemory | None
    metadata: Metadata
    validation_metadata: Sequence[Metadata]
    warnings: Sequence[str]
    continuation: Continuation | None = None
    sharded: ShardedSets | None = None
    folds: int | Folds | None = None

    @property
    def local_train_set(self) -> Trainable:
        """The training set of a run whose rows are in this process."""
        assert self.sharded is None
        return cast(Trainable, self.train_set)


def read_inputs(request: TrainRequest, pool: WorkerPool, console: Console) -> TrainingInputs:
    """Read all inputs of a run; DataError names file and line."""
    if not request.selection.tunes:  # which may choose another gain
        request = replace(request, read_options=replace(request.read_options, gain=request.settings.gain))
    request = replace(request, read_options=with_categories(request.read_options, request.settings))
    train_set: Trainable
    validation_sets: Sequence[RankingDataset | CodedDataset]
    in_memory = continuation = folds = None
    if request.selection.selects:  # the data is binned anew for each model
        in_memory = _read_into_memory(request, pool)
        train_set, validation_sets = in_memory.train_set, in_memory.validation_sets
        _check_columns(train_set, request, console)
        warnings = _match(in_memory, request)
        folds = read_folds(request.selection, in_memory.train_set, request.settings.seed, console)
    else:
        train_set, validation_sets, warnings, continuation = _read_into_bins(request, pool, console)
    for text in warnings:  # before time is spent on training
        console.warning(text)
    metadata = request.metadata_files.read(train_set)
    validation_metadata = request.metadata_files.read_for_validation(validation_sets)
    read = train_set, validation_sets, in_memory, metadata, validation_metadata, warnings
    return TrainingInputs(*read, continuation, folds=folds)


def read_together(request: TrainRequest, inputs: TrainingInputs, pool: WorkerPool) -> Trainable:
    """Return --data and --valid as one training set, whose queries differ even where their ids are the same."""
    files = request.files
    options = replace(with_categories(request.read_options, request.settings), gain=request.settings.gain)
    sets = inputs.in_memory
    if sets is None and not options.group_by_qid:
        as_one = replace(options, others_from=len(files.data), beside_others=True)
        return read_training_set([*files.data, *files.valid], as_one, request.settings, pool)
    if sets is None:
        sets = _read_into_memory(replace(request, read_options=options), pool)
    return join_datasets([sets.train_set, *sets.validation_sets])


def read_folds(
    selection: SelectionOptions, train_set: RankingDataset, seed: int, console: Console
) -> int | Folds | None:
    """Return the folds of --folds, or their number where the queries are assigned to them one by one; None without.

    DataError when a query has no fold or no value, or there are too few of either.
    """
    if isinstance(selection.folds, str):
        of_query = read_query_groups(selection.folds, "fold")
        _tell_others(of_query, train_set, selection.folds, console)
        names = values_of_queries(train_set, of_query, "fold", selection.folds)
        return named_folds(names, selection.folds)
    by = selection.fold_by
    if by is None or selection.folds is None:
        return selection.folds
    if train_set.document_ids is not None:
        what = f"value in column {quote(by)}"
        values, source = common_values(train_set, train_set.document_ids, what), f"column {quote(by)}"
        return dealt_groups(values, selection.folds, seed, source)
    if by not in selection.files:
        columns = train_set.feature_names
        without = f"the columns have no names, and --fold-by {quote(by)} is no file; give a file of 'qid TAB value'"
        raise DataError(no_such_column(by, "for --fold-by", columns) if columns else without, train_set.source)
    of_query = read_query_groups(by, "value")
    _tell_others(of_query, train_set, by, console)
    return dealt_groups(values_of_queries(train_set, of_query, "value", by), selection.folds, seed, by)


def _tell_others(of_query: Mapping[str, str], train_set: RankingDataset, path: str, console: Console) -> None:
    """Say how many queries of a file of folds are not in the data."""
    if others := len(of_query.keys() - set(train_set.query_ids)):
        queries = counted(others, "query")
        console.notice(f"{input_name(path)}: {queries} not in {input_name(train_set.source)}")


def with_categories(options: ReadOptions, settings: TrainSettings) -> ReadOptions:
    """Return how a training set is read: which columns of tables are categories."""
    return replace(options, categories=dict.fromkeys(settings.categories), auto_categories=settings.categorical == AUTO)


def _read_into_bins(
    request: TrainRequest, pool: WorkerPool, console: Console
) -> tuple[BinnedDataset, list[CodedDataset], list[str], Continuation | None]:
    """Return the training set, the validation sets, warnings, and the scores of the model to go on from."""
    files, options, settings, model = request.files, request.read_options, request.settings, request.model
    warnings: list[str] = []
    scores: list[Float64Array] = []
    training = scorer = None if model is None else ModelScores(model, pool)
    train_set = read_training_set(files.data, options, settings, pool, scorer)
    _check_columns(train_set, request, console)
    if scorer is not None:
        scores.append(scorer.finish(train_set.source, train_set.table_features, files.strict))
        warnings += scorer.matcher.warnings(train_set.source, "only new trees can split on them")
    features, edges = without_trees(train_set, settings, train_set.categories), train_set.features.edges
    coded = []
    with reading_validation():
        for path, options in _validation_files(request):
            scorer = None if model is None else ModelScores(model, pool)
            coded.append(read_validation_set(path, options, features, edges, pool, files.strict, scorer))
            if scorer is not None:
                scores.append(scorer.finish(path, {}))
    warnings += [text for dataset in coded for text in dataset.warnings]
    continuation = None
    if model is not None and files.continue_from is not None and training is not None:
        of_training = training.of_model, training.kept
        continuation = Continuation(model, files.continue_from, scores[0], tuple(scores[1:]), *of_training)
        continuation.check_scores()
    return train_set, coded, warnings, continuation


def _validation_files(request: TrainRequest) -> list[tuple[str, ReadOptions]]:
    """Return each file of --valid with how it is read."""
    valid = request.files.valid
    options = replace(request.read_options, beside_others=True)
    return list(zip(valid, request.metadata_files.validation_read_options(options, len(valid)), strict=True))


def _read_into_memory(request: TrainRequest, pool: WorkerPool) -> SetsInMemory:
    train_set = read_dataset(request.files.data, request.read_options, pool)
    for text in describe_automatic(train_set, train_set.n_documents) if request.read_options.auto_categories else ():
        request.read_options.notice(text)
    models = [without_trees(train_set, request.settings)]
    with reading_validation():
        validation_sets = [
            read_dataset([path], for_models(options, models), pool) for path, options in _validation_files(request)
        ]
    return SetsInMemory(train_set, validation_sets)


def _match(sets: SetsInMemory, request: TrainRequest) -> list[str]:
    """Return warnings of features that validation sets lack or have in addition; DataError when that is refused."""
    warnings: list[str] = []
    for validation_set in sets.validation_sets:
        matcher = match_dataset(without_trees(sets.train_set, request.settings), validation_set)
        matcher.refuse(validation_set.source, request.files.strict)
        warnings += matcher.warnings(validation_set.source)
    return warnings


def _check_columns(dataset: TableColumns, request: TrainRequest, console: Console) -> None:
    for text in check_columns(dataset, request.settings.absent, request.files.strict):
        console.warning(text)


def read_on_workers(request: TrainRequest, cluster: Cluster, console: Console) -> TrainingInputs:
    """Read all inputs of a run into shards on the workers; DataError names file and line."""
    from lmart.distributed.shard import Shard
    from lmart.distributed.sharded_sets import read_sets

    parts = find_data_parts(request, cluster)
    for path in request.outputs.values():
        check_output(path, parts.files)  # which patterns did not name
    n_parts, n_workers = len(parts.train.parts), len(cluster.addresses)
    shards = cluster.start_actors(Shard, n_parts)
    on = f"{counted(n_parts, 'file')} on {counted(len(shards), 'worker')}"
    idle = "" if len(shards) == n_workers else f" of {n_workers}, as each has at least one"
    console.notice(f"reading {on}{idle}")
    read_options = replace(with_categories(request.read_options, request.settings), gain=request.settings.gain)
    files = request.files
    sets = read_sets(
        shards,
        parts,
        read_options,
        request.settings,
        files.strict,
        lambda train_set: _check_columns(train_set, request, console),
    )
    for text in sets.warnings:
        console.warning(text)
    return TrainingInputs(sets.train_set, [], None, NO_METADATA, [], sets.warnings, sharded=sets)


def find_data_parts(request: TrainRequest, cluster: Cluster) -> DataParts:
    """Return the files of all sets, as the workers see them; DataError when one is missing."""
    from lmart.distributed.reading import find_parts
    from lmart.distributed.sharded_sets import DataParts, SetFiles

    files, metadata = request.files, request.metadata_files
    matched_by: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}

    one_each = [*filter(None, (metadata.weights, metadata.init_scores))]
    patterns = [*files.data, *files.valid, *one_each, *metadata.valid_weights, *metadata.valid_init_scores]
    for pattern, matched in zip(patterns, find_parts(cluster, patterns), strict=True):
        matched_by[pattern] = [path for path, _ in matched]
        sizes |= matched
    train = [path for pattern in files.data for path in matched_by[pattern]]
    nothing: list[str | None] = [None] * len(files.valid)

    def for_parts(option: str, pattern: str | None, of: str, parts: Sequence[str]) -> Sequence[str] | None:
        """Return the files that go with each part, one for each; None without a pattern."""
        if pattern is None:
            return None
        return one_for_each(option, pattern, matched_by[pattern], of, parts)

    validation = [
        SetFiles(
            name,
            matched_by[name],
            for_parts("--valid-weights", weights, "its --valid", matched_by[name]),
            for_parts("--valid-init-scores", scores, "its --valid", matched_by[name]),
        )
        for name, weights, scores in zip(
            files.valid, metadata.valid_weights or nothing, metadata.valid_init_scores or nothing, strict=True
        )
    ]
    own = (
        for_parts("--weights", metadata.weights, "--data", train),
        for_parts("--init-scores", metadata.init_scores, "--data", train),
    )
    return DataParts(SetFiles(source_name(train), train, *own), validation, sizes)
