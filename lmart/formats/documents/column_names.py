"""Names of columns: the usual ones of labels and ids, and what a header may not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lmart.data.feature_names import DOCUMENT_NAMES, USUAL, has_control, is_index
from lmart.decimals import is_decimal
from lmart.errors import DataError, OutputError, first_repeated, listed, quote
from lmart.foreign_names import perhaps
from lmart.formats.read_options import ReadOptions

_NOTHING = ("", "nan", "na", "null", "inf", "-inf")  # fields of data that are not numbers


def data_fault(names: Sequence[str], options: ReadOptions) -> str | None:
    """Return why a first line of text must be data, None if it may be a header.

    A header may hold whole numbers without leading zeros, each once: these are feature indices. Other numbers are
    accepted as names only when another name cannot be data, such as 'label'.
    """
    features = options.known_features or frozenset()
    numbers = [name for name in names if is_decimal(name)]
    words = (name for name in names if not is_decimal(name))
    if not numbers or says_columns(words, options):
        return None
    only = all(is_decimal(name) or name.lower() in _NOTHING for name in names)
    reason = None
    if no_names := [x for x in numbers if not (is_index(x) or x in features) and (only or not x.isdigit())]:
        reason = f"{quote(no_names[0])} is a number, not a name"
    elif repeated := first_repeated(numbers):
        reason = f"the number {quote(repeated)} occurs twice"
    elif only and (any(name.lower() in _NOTHING for name in names[1:]) or (names[0] and _lacks_label(options))):
        reason = "every field is a number"
    return reason


def says_columns(names: Iterable[str], options: ReadOptions) -> bool:
    """Return whether any name is known to be that of a column: a usual one, one from an option, or one of the model."""
    chosen = {options.label_column, options.query_column, options.document_column, *options.ignore_columns}
    features = options.known_features or frozenset()
    return any(name in chosen or name in features or name.lower() in USUAL for name in names)


def _lacks_label(options: ReadOptions) -> bool:
    return options.require_labels and options.label_column is None


def name_documents(names: Iterable[str], options: ReadOptions) -> bool:
    """Return whether a column is known to hold the document ids."""
    return options.document_column is not None or any(name.lower() in DOCUMENT_NAMES for name in names)


def no_such_column(name: str, purpose: str, names: Sequence[str], usual: Sequence[str] = ()) -> str:
    """Return the refusal of a column that is not there, with those that are and the one that may be meant."""
    likely = next((column for column in names if column.lower() in usual), name)
    hint = perhaps("column", name, names) or perhaps("column", likely, names)
    return f"there is no column {quote(name)} {purpose}; the columns are {listed(names)}{hint}"


def refuse_usual(features: Sequence[str], path: str) -> None:
    """Raise OutputError for features of a written table that would be read back as the label or ids, by their names."""
    found = [name for name in features if name.lower() in USUAL]
    if found:
        what = f"a feature is named {quote(found[0])}, by which readers find the label or ids"
        raise OutputError(f"{what}; rename it, or leave it out with --ignore-columns", path)


def list_of_columns(names: Iterable[str]) -> str:
    """Return names as --ignore-columns takes them."""
    return ",".join('"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name for name in names)


def check_names(
    names: Sequence[str], options: ReadOptions, ignored: frozenset[str], refusal: Callable[[str], DataError]
) -> set[int]:
    """Refuse invalid names; return the columns that a later one of the same name replaces (--duplicates last)."""
    last: dict[str, int] = {}
    superseded: set[int] = set()
    for i, name in enumerate(names):
        if name in ignored:
            continue
        if not name:
            how = "pandas: to_csv(..., index=False), R: row.names = FALSE"
            what = f"column {i + 1} of the header has no name"
            raise refusal(f"{what}; give it one, or write the table without row names ({how})")
        if has_control(name):
            raise refusal(f"the name of column {i + 1}, {quote(name)}, holds a control character; rename it")
        if name in last:
            if options.duplicates != "last" or name.lower() in USUAL:
                raise refusal(f"two columns are named {quote(name)}; rename one")
            superseded.add(last[name])
        last[name] = i
    return superseded
