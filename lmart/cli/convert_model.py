"""lmart convert, from model to model: read, rename features, write, and verify what was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lmart.array_types import Int32Array
from lmart.cli.terminal.console import Console
from lmart.data.dataset import SparseRows
from lmart.errors import ModelError, counted
from lmart.formats.documents.reading import for_models, open_rows
from lmart.formats.feature_maps import read_feature_map, rename_features
from lmart.formats.models.model_files import content_of, parse_model, read_model, write_bytes
from lmart.formats.models.targets import raise_scores
from lmart.formats.models.xgboost.dump import as_request
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import MODEL_FORMATS
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.model_comparison import ModelComparison, align_features, compare_models
from lmart.threads import WorkerPool


@dataclass(frozen=True)
class ModelRequest:
    """What the command line asks for.

    source, target : the model file and the file to write, '-' for standard streams
    source_format  : name of the format of the source; None: known by its content
    target_format  : name of the format to write
    feature_map    : file of new names of features; None: they keep theirs
    verify         : data whose rows are scored with both models; None: not verified
    strict         : whether to refuse what the format cannot hold exactly
    nonnegative    : whether the least possible score becomes 0
    name, store    : names of the model and of its feature store in the file; None: those it has
    """

    source: str
    target: str
    source_format: str | None
    target_format: str
    feature_map: str | None
    verify: str | None
    strict: bool
    nonnegative: bool
    name: str | None
    store: str | None


def convert_model(request: ModelRequest, options: ReadOptions, threads: int, console: Console) -> None:
    """Write the model in its new format, verified first when that is asked for.

    ModelError when a model is unsound, the format cannot hold it, or, under --strict, not exactly.
    """
    own = read_model(request.source, request.source_format, console.notice)
    renamed: dict[str, str] = {}
    model = own
    if request.feature_map is not None:
        renamed = read_feature_map(request.feature_map)
        model = rename_features(own, renamed, request.feature_map)
    said = {"name": request.name, "store": request.store}
    model = replace(model, settings=model.settings | {key: text for key, text in said.items() if text is not None})
    target = "standard output" if request.target == "-" else request.target
    if request.nonnegative:
        model, offset = raise_scores(model, target, request.target_format)
        own = replace(model, feature_names=own.feature_names)
        what = f"a last tree adds {offset!r}" if offset else "no score can be below 0, so nothing is added"
        console.notice(f"{target}: {what}")
    content, notes, needs = content_of(model, target, request.target_format)
    if request.name is not None and request.target_format == "xgboost-dump":
        content = as_request(content, request.name)
    if request.strict and notes:
        more = f"; and {counted(len(notes) - 1, 'more note')}" if notes[1:] else ""
        raise ModelError(f"{notes[0]}{more}; convert without --strict to accept it", target)
    for text in (*notes, *needs):
        console.warning(f"{target}: {text}")
    verified = ""
    if request.verify is not None:
        # Read back what is going to be written.
        written = align_features(own, parse_model(content, target, request.target_format), renamed)
        found = _verify(own, written, request, options, threads, console)
        verified = "; " + describe_comparison(found)
        if found.rows_changed or found.planted_changed:
            what = f"{target}: {_changed(found)}"
            if request.strict:
                raise ModelError(f"{what.removeprefix(target + ': ')}; convert without --strict to accept it", target)
            console.warning(what)
    write_bytes(content, request.target)
    size = f"{counted(len(model.trees), 'tree')}, {counted(model.n_features, 'feature')}"
    console.notice(f"{target}: {request.target_format}, {size}{verified}")


def _verify(
    own: Ensemble, written: Ensemble, request: ModelRequest, options: ReadOptions, threads: int, console: Console
) -> ModelComparison:
    """Score the data of --verify, and planted rows, with both models."""
    assert request.verify is not None
    options = replace(options, require_labels=False, require_queries=False, use_labels=False)
    options = for_models(options, [own]).telling(console.notice, console.warning)
    matcher = FeatureMatcher(own)
    with WorkerPool(threads) as pool, open_rows(request.verify, options, pool) as reader:

        def blocks() -> Iterator[tuple[SparseRows, Int32Array]]:
            for block in reader:
                column_map = matcher.column_map(reader.feature_ids, reader.feature_names)
                matcher.tables = reader.table.of_tables
                yield block.features, column_map

        float32 = MODEL_FORMATS[request.target_format].is_float32
        found = compare_models(own, written, blocks(), float32, pool)
    matcher.refuse(request.verify)
    for text in matcher.warnings(request.verify):
        console.warning(text)
    return found


def describe_comparison(found: ModelComparison) -> str:
    """Describe a comparison in a few words."""
    rows = f"{counted(found.n_rows, 'row')} and {counted(found.n_planted, 'planted row')}"
    changed = found.rows_changed + found.planted_changed
    difference = f"largest difference {found.largest_difference:.3g}"
    return f"verified with {rows}: {difference}, {counted(changed, 'row')} changed leaf"


def _changed(found: ModelComparison) -> str:
    """Return the warning that rows come to other leaves."""
    return (
        f"{counted(found.rows_changed, 'row')} of {found.n_rows:,} and {counted(found.planted_changed, 'planted row')} "
        f"of {found.n_planted:,} come to another leaf than before"
    )
