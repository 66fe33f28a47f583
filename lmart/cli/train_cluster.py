"""What `lmart train --dask` does in place of reading and preparing in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lmart.cli.options.shared import one_for_each
from lmart.cli.terminal.console import Console
from lmart.cli.train_inputs import TrainingInputs, check_columns
from lmart.cli.train_request import TrainRequest
from lmart.data.metadata import NO_METADATA
from lmart.distributed.cluster import Cluster
from lmart.distributed.reading import find_parts
from lmart.distributed.shard import Shard
from lmart.distributed.sharded_sets import DataParts, ValidationParts, read_sets
from lmart.errors import counted
from lmart.formats.documents.reading import source_name
from lmart.streams import check_output


def read_inputs(request: TrainRequest, cluster: Cluster, console: Console) -> TrainingInputs:
    """Read all inputs of a run into shards on the workers; DataError names file and line."""
    parts = find_data_parts(request, cluster)
    for path in request.outputs.values():
        check_output(path, parts.files)  # which patterns did not name
    n_parts, n_workers = len(parts.train.parts), len(cluster.addresses)
    shards = cluster.start_actors(Shard, n_parts)
    on = f"{counted(n_parts, 'file')} on {counted(len(shards), 'worker')}"
    idle = "" if len(shards) == n_workers else f" of {n_workers}, as each has at least one"
    console.notice(f"reading {on}{idle}")
    read_options = replace(request.read_options, gain=request.settings.gain)
    files = request.files
    sets = read_sets(
        shards,
        parts,
        read_options,
        request.settings,
        files.strict,
        lambda train_set: check_columns(train_set, request, console),
    )
    for text in sets.warnings:
        console.warning(text)
    return TrainingInputs(sets.train_set, [], None, NO_METADATA, [], sets.warnings, sharded=sets)


def find_data_parts(request: TrainRequest, cluster: Cluster) -> DataParts:
    """Return the files of all sets, as the workers see them; DataError when one is missing."""
    files, metadata = request.files, request.metadata_files
    asked: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}

    one_each = [*filter(None, (metadata.weights, metadata.init_scores))]
    patterns = [*files.data, *files.valid, *one_each, *metadata.valid_weights, *metadata.valid_init_scores]
    for pattern, matched in zip(patterns, find_parts(cluster, patterns), strict=True):
        asked[pattern] = [path for path, _ in matched]
        sizes |= matched
    train = [path for pattern in files.data for path in asked[pattern]]
    nothing: list[str | None] = [None] * len(files.valid)

    def for_parts(option: str, pattern: str | None, of: str, parts: Sequence[str]) -> Sequence[str] | None:
        """Return the files that go with each part, one for each; None without a pattern.

        option  : that names them
        pattern : its value; None: it was not given
        of      : the option that names the parts
        parts   : of the set
        """
        if pattern is None:
            return None
        return one_for_each(option, pattern, asked[pattern], of, parts)

    validation = [
        ValidationParts(
            name,
            asked[name],
            for_parts("--valid-weights", weights, "its --valid", asked[name]),
            for_parts("--valid-init-scores", scores, "its --valid", asked[name]),
        )
        for name, weights, scores in zip(
            files.valid, metadata.valid_weights or nothing, metadata.valid_init_scores or nothing, strict=True
        )
    ]
    own = (
        for_parts("--weights", metadata.weights, "--data", train),
        for_parts("--init-scores", metadata.init_scores, "--data", train),
    )
    return DataParts(ValidationParts(source_name(train), train, *own), validation, sizes)
