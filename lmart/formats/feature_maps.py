"""Files of feature names, as `--feature-map` takes them: `feature name` on each line, as XGBoost's fmap files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lmart.errors import DataError, ModelError, first_repeated, quote
from lmart.formats.line_reader import WORD_COMMENT, read_lines
from lmart.scoring.ensemble import Ensemble

TYPES = ("i", "q", "int", "float", "c")  # that XGBoost knows in an fmap file


def read_feature_map(path: str) -> dict[str, str]:
    """Return the new name of each feature, by its name or index in the model.

    path : text, a line for each feature: what the model calls it, then the new name, separated by a tab or blanks; what
           follows is one of TYPES, and left out
    DataError with the line when a line has no name, or a feature or a name stands twice.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for line, number in _lines(path):
        parts = [part.strip() for part in (line.split("\t") if "\t" in line else line.split(None, 2))]
        if len(parts) < 2 or not parts[1]:
            raise DataError(f"{quote(line)} has no new name; write 'feature name' on each line", path, number)
        kind = " ".join(parts[2:])
        if kind and kind not in TYPES:
            what = f"{quote(line)} has {quote(kind)} after the new name, which is no type of an fmap file"
            raise DataError(f"{what} ({', '.join(TYPES)}); put tabs around a name with blanks", path, number)
        if parts[0] in found:
            raise DataError(f"the feature {quote(parts[0])} is named twice", path, number)
        if parts[1] in taken:
            raise DataError(f"two features get the name {quote(parts[1])}", path, number)
        found[parts[0]] = parts[1]
        taken.add(parts[1])
    if not found:
        raise DataError("there is no line; write 'feature name' on each line", path)
    return found


def _lines(path: str) -> Iterator[tuple[str, int]]:
    """Yield each line that holds something, and its number, from 1."""
    for lines in read_lines(path, WORD_COMMENT):
        for text, number in zip(*lines, strict=True):
            try:
                yield text.decode(), number
            except UnicodeDecodeError:
                raise DataError(f"{quote(text)} is not UTF-8", path, number) from None


def rename_features(ensemble: Ensemble, names: dict[str, str], path: str) -> Ensemble:
    """Return the model with new names; features that are not renamed keep theirs, or are called by their index.

    names    : as `read_feature_map` returns them
    ModelError when a feature is not in the model, or two would have the same name.
    """
    called = [ensemble.feature_name(column) for column in range(ensemble.n_features)]
    unknown = names.keys() - set(called)
    if unknown:
        first = next(name for name in names if name in unknown)
        raise ModelError(f"the model has no feature {quote(first)}, which the feature map names", path)
    renamed = tuple(names.get(name, name) for name in called)
    if (twice := first_repeated(renamed)) is not None:
        raise ModelError(f"two features would have the name {quote(twice)}", path)
    return replace(ensemble, feature_names=renamed)
