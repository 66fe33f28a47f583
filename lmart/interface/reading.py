"""Reading judged documents from files, for Python programs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, TypedDict, Unpack

from lmart.data.python_dataset import Dataset, dataset_of
from lmart.errors import naming_arguments, warn
from lmart.foreign_names import perhaps
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.interrupts import safe_interrupts
from lmart.settings import AUTO
from lmart.threads import WorkerPool, threads_to_use


class ReadArguments(TypedDict, total=False):
    """The keywords of `lmart.read`, each an option of the commands that read data."""

    group_by_qid: bool
    duplicates: str
    max_errors: int
    allow_inf: bool
    query_sizes: str | os.PathLike[str] | None
    label_column: str | None
    query_column: str | None
    document_column: str | None
    ignore_columns: Sequence[str]
    categorical: str | Sequence[str]
    threads: int | None


def read(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Unpack[ReadArguments]) -> Dataset:
    """Read judged documents of any form that `lmart train` reads, plain or compressed, into memory.

    path    : a file, or several, which are one data set in this order: LETOR text, CSV, TSV or Parquet
    options : the options of the command line, with underscores: `group_by_qid`, `duplicates`, `max_errors`,
              `allow_inf`, `query_sizes` (a file), `label_column`, `query_column`, `document_column`, `ignore_columns`
              (a list of names) and `threads`; and `categorical`, names of columns whose texts are categories, or 'auto'
              for all that hold texts: name them in `lmart.train` too

    ValueError for an option that is not allowed; DataError names file, line and token of what cannot be read. A
    UserWarning says what may be wrong with the data.

    >>> import lmart
    >>> lmart.read("data/sample/train.svm")
    <lmart.Dataset: 1,760 documents of 120 queries, 20 features>
    """
    keywords: dict[str, Any] = dict(options)
    threads = threads_to_use(keywords.pop("threads", None))
    if unknown := next((name for name in keywords if name not in ReadArguments.__annotations__), None):
        hint = perhaps("argument", unknown, list(ReadArguments.__annotations__))
        raise TypeError(f"read() has no option {unknown!r}{hint}")
    if keywords.get("duplicates", "error") not in ("error", "last"):
        hint = perhaps("duplicates", str(keywords["duplicates"]), ("error", "last"))
        raise ValueError(f"duplicates is {keywords['duplicates']!r}; give 'error' or 'last'{hint}")
    if "max_errors" in keywords and index(keywords["max_errors"]) < 1:
        raise ValueError(f"max_errors is {keywords['max_errors']}; give a number from 1 up")
    if "ignore_columns" in keywords:
        columns = keywords["ignore_columns"]
        keywords["ignore_columns"] = (columns,) if isinstance(columns, str) else tuple(map(str, columns))
    if "categorical" in keywords:
        named = keywords.pop("categorical")
        names = [] if named == AUTO else named.split(",") if isinstance(named, str) else [*map(str, named)]
        keywords |= {"categories": dict.fromkeys(names), "auto_categories": named == AUTO}
    if keywords.get("query_sizes") is not None:
        keywords["query_sizes"] = os.fspath(keywords["query_sizes"])
    warnings: list[str] = []
    read_options = ReadOptions(keep_document_ids=True, **keywords).telling(lambda text: None, warnings.append)
    paths = [path] if isinstance(path, str | os.PathLike) or not isinstance(path, Iterable) else list(path)
    if not paths:
        raise ValueError("path is an empty list; give one file or more")
    with naming_arguments(), safe_interrupts(), WorkerPool(threads) as pool:
        judged = read_dataset([os.fspath(name) for name in paths], read_options, pool)
    for text in warnings:
        warn(text)
    return dataset_of(judged)
