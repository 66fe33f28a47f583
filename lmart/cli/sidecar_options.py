"""Options of `lmart train` for files beside the data; they arrive in the command as one `beside: SidecarFiles`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lmart.settings import WITH_POSITIONS, TrainSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lmart.boosting import Trainable
    from lmart.coding import CodedDataset
    from lmart.dataset import RankingDataset
    from lmart.sidecars import Sidecars

    Floats = npt.NDArray[np.float64]

_OPTIONS = (
    click.option(
        "--weights", metavar="FILE", help="One weight a query, or one a row, on a line each, told apart by their count."
    ),
    click.option(
        "--init-scores",
        metavar="FILE",
        help="Start from these scores instead of 0, one number a row of --data, a line each. They are not in the "
        "model: what lmart predict gives is to be added to the same scores of new documents.",
    ),
    click.option(
        "--valid-init-scores",
        metavar="FILE...",
        multiple=True,
        help="The same for the --valid files, one FILE for each, in their order.",
    ),
    click.option(
        "--positions",
        metavar="FILE",
        help="Where each row of --data was shown when it was clicked or not: any word, one a row, a line each. What "
        "positions add to clicks is then learned beside the model and kept out of it; --report tells it. With "
        f"--objective {' or '.join(WITH_POSITIONS)} only.",
    ),
)


@dataclass(frozen=True)
class SidecarFiles:
    """The files, by option."""

    weights: str | None
    init_scores: str | None
    valid_init_scores: Sequence[str]
    positions: str | None

    @property
    def paths(self) -> list[str]:
        """All files that are given."""
        single = (self.weights, self.init_scores, self.positions)
        return [*filter(None, single), *self.valid_init_scores]

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
        if self.positions is not None:
            settings.check_positions()
        elif gives_regularization:
            raise click.UsageError("--position-bias-reg needs --positions")

    def report(self) -> dict[str, Any]:
        """Return the files that are given as --report lists them."""
        given = {
            "weights": self.weights,
            "init_scores": self.init_scores,
            "validation_init_scores": list(self.valid_init_scores),
            "positions": self.positions,
        }
        return {name: paths for name, paths in given.items() if paths}

    def read(self, train_set: Trainable) -> Sidecars:
        """Read what stands beside the training set; DataError names file and line."""
        from lmart.formats import sidecars as files
        from lmart.sidecars import Sidecars

        own = train_set.n_documents, train_set.source, train_set.input_rows
        weights = None
        if self.weights is not None:
            read = files.read_weights(self.weights, train_set.query_offsets, train_set.input_rows)
            weights = read.per_query if read.given_per == "query" else read.per_document
        return Sidecars(
            weights,
            None if self.init_scores is None else files.read_init_scores(self.init_scores, *own),
            None if self.positions is None else files.read_positions(self.positions, *own),
        )

    def read_for_validation(self, validation_sets: Sequence[RankingDataset | CodedDataset]) -> list[Floats] | None:
        """Read what the scores of the validation sets start from; None: all from 0."""
        from lmart.formats.sidecars import read_init_scores

        if self.init_scores is None:
            return None
        return [
            read_init_scores(path, len(one.labels), one.source, one.input_rows)
            for path, one in zip(self.valid_init_scores, validation_sets, strict=True)
        ]


def sidecar_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them packed as the keyword `beside: SidecarFiles`."""

    @functools.wraps(function)
    def packed(
        *args: Any,
        weights: str | None,
        init_scores: str | None,
        valid_init_scores: Sequence[str],
        positions: str | None,
        **others: Any,
    ) -> Any:
        files = SidecarFiles(weights, init_scores, valid_init_scores, positions)
        return function(*args, beside=files, **others)

    wrapped: Callable[..., Any] = packed
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
