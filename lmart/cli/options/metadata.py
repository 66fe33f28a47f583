"""Options of `lmart train` for files of metadata: weights, query sizes, initial scores, positions.

The command gets them packed as one `metadata_files: MetadataFiles`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

from lmart.cli.options.packed import packed
from lmart.errors import DataError
from lmart.formats.read_options import ReadOptions
from lmart.settings import WITH_POSITIONS, TrainSettings

if TYPE_CHECKING:
    from lmart.binning.validation_set import CodedDataset
    from lmart.data.dataset import RankingDataset
    from lmart.data.metadata import Metadata
    from lmart.training.resolving import Trainable

_OPTIONS = (
    click.option(
        "--weights",
        metavar="FILE",
        help="Weights of queries, or of rows.\f One per line, for each query or for each row; their count "
        "decides between the two. They apply to training and to every printed measure of --data: of "
        "training, of --folds and of --tune.",
    ),
    click.option(
        "--valid-weights",
        metavar="FILE...",
        multiple=True,
        help="Weights for the measures of --valid, one FILE each.\f In the order of the --valid files. "
        "Without it, all their queries count the same.",
    ),
    click.option(
        "--valid-query-sizes",
        metavar="FILE...",
        multiple=True,
        help="Like --query-sizes, for --valid, one FILE each.\f In the order of the --valid files.",
    ),
    click.option(
        "--init-scores",
        metavar="FILE",
        help="Start from these scores instead of 0.\f One number per line, for each row of --data. They "
        "are not in the model: add the predictions to the initial scores of new documents yourself. "
        "With --early-stop and --folds the model has no tree if no round is better than these scores "
        "alone. To continue from a model, use --continue-from; if you start from its scores here, "
        "give another --seed, because the random numbers start anew.",
    ),
    click.option(
        "--valid-init-scores",
        metavar="FILE...",
        multiple=True,
        help="Like --init-scores, for --valid, one FILE each.\f In the order of the --valid files.",
    ),
    click.option(
        "--positions",
        metavar="FILE",
        help="Position of each row when users saw it.\f Any word, one per line, for each row of --data. lmart then "
        "learns the effect of positions on clicks together with the model, but keeps it out of the model; --report "
        "lists it (for several rankers, that of the first). Only with "
        f"--objective {' or '.join(WITH_POSITIONS)}, which auto then chooses.",
    ),
)


@dataclass(frozen=True)
class MetadataFiles:
    """The files that are given, one field an option; those of validation sets are in the order of --valid.

    weights, init_scores, positions : of the training set
    valid_weights, valid_query_sizes, valid_init_scores : of the validation sets
    """

    weights: str | None
    init_scores: str | None
    positions: str | None
    valid_weights: Sequence[str] = ()
    valid_query_sizes: Sequence[str] = ()
    valid_init_scores: Sequence[str] = ()

    @property
    def paths(self) -> list[str]:
        """All files that are given."""
        single = (self.weights, self.init_scores, self.positions)
        return [*filter(None, single), *self.valid_weights, *self.valid_query_sizes, *self.valid_init_scores]

    def check_usage(self, settings: TrainSettings, n_validation_sets: int, gives_regularization: bool) -> None:
        """Raise a usage error when options do not go together, SettingsError when one does not fit the objective."""
        if self.init_scores is None and self.valid_init_scores:
            raise click.UsageError("--valid-init-scores needs --init-scores: both start from scores, or neither")
        n_files = len(self.valid_init_scores)
        if self.init_scores is not None and n_files != n_validation_sets:
            raise click.UsageError(
                "--init-scores needs a file of --valid-init-scores for each of --valid, in the same order: there are "
                f"{n_files} for {n_validation_sets}"
            )
        for option, files in (
            ("--valid-weights", self.valid_weights),
            ("--valid-query-sizes", self.valid_query_sizes),
        ):
            if files and len(files) != n_validation_sets:
                raise click.UsageError(
                    f"{option} needs a file for each of --valid, in the same order: there are {len(files)} for "
                    f"{n_validation_sets}"
                )
        if self.positions is not None:
            settings.check_positions()
        elif gives_regularization:
            raise click.UsageError("--position-bias-reg needs --positions")

    def report(self) -> dict[str, Any]:
        """Return the files that are given as --report lists them."""
        given = {
            "weights": self.weights,
            "validation_weights": list(self.valid_weights),
            "validation_query_sizes": list(self.valid_query_sizes),
            "init_scores": self.init_scores,
            "validation_init_scores": list(self.valid_init_scores),
            "positions": self.positions,
        }
        return {name: paths for name, paths in given.items() if paths}

    def read(self, train_set: Trainable) -> Metadata:
        """Read the metadata of the training set; DataError names file and line."""
        from lmart.data.metadata import Metadata
        from lmart.formats import metadata_files as files

        expected = train_set.n_documents, train_set.source, train_set.input_rows
        weights = None
        if self.weights is not None:
            read = files.read_weights(self.weights, train_set.query_offsets, train_set.input_rows)
            weights = read.per_query if read.given_per == "query" else read.per_document
        return Metadata(
            weights,
            None if self.init_scores is None else files.read_init_scores(self.init_scores, *expected),
            None if self.positions is None else files.read_positions(self.positions, *expected),
        )

    def validation_read_options(self, read_options: ReadOptions, n_validation_sets: int) -> list[ReadOptions]:
        """Return how each validation set is read: as the training set, but with the query sizes of its own."""
        sizes: Sequence[str | None] = self.valid_query_sizes or [None] * n_validation_sets
        return [replace(read_options, query_sizes=path) for path in sizes]

    def read_for_validation(self, validation_sets: Sequence[RankingDataset | CodedDataset]) -> list[Metadata]:
        """Read the metadata of each validation set: its weights, and its initial scores."""
        from lmart.data.metadata import Metadata
        from lmart.formats import metadata_files as files

        nothing = [None] * len(validation_sets)
        metadata = []
        for dataset, weights, init_scores in zip(
            validation_sets, self.valid_weights or nothing, self.valid_init_scores or nothing, strict=True
        ):
            rows = dataset.input_rows
            by_query = None if weights is None else files.read_weights(weights, dataset.query_offsets, rows).per_query
            scores = None
            if init_scores is not None:
                scores = files.read_init_scores(init_scores, len(dataset.labels), dataset.source, rows)
            metadata.append(Metadata(by_query, scores))
        return metadata


@contextmanager
def reading_validation() -> Iterator[None]:
    """Name, in a refusal of a validation set, the option that holds for it: --valid-query-sizes."""
    try:
        yield
    except DataError as fault:
        # but not in the `lmart convert` that a refusal advises, which has one file and one option
        message = re.sub(r"(?<!OUT )--query-sizes", "--valid-query-sizes", fault.message)
        raise DataError(message, fault.path, fault.line, fault.more) from None


metadata_options = packed("metadata_files", MetadataFiles, [one.name for one in fields(MetadataFiles)], _OPTIONS)
"""Add the options; the command gets them packed as the keyword `metadata_files: MetadataFiles`."""
