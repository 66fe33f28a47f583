"""Names of the formats, and how a format is told from a file's name. Light: the command line imports it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lmart.streams.common import COMPRESSED_SUFFIXES


@dataclass(frozen=True)
class Format:
    """A format: `kind` is 'data' or 'model'; `suffixes` of names that say it; whether it exists yet."""

    name: str
    kind: str
    suffixes: tuple[str, ...] = ()
    supported: bool = True


FORMATS = {
    one.name: one
    for one in (
        Format("letor", "data", (".svm", ".letor", ".libsvm", ".svmlight")),
        Format("csv", "data", (".csv",)),
        Format("tsv", "data", (".tsv", ".tab")),
        Format("parquet", "data", (".parquet", ".pq")),
        Format("lmart", "model", (".json",)),
        Format("lightgbm", "model", supported=False),
        Format("lightgbm-json", "model", supported=False),
        Format("xgboost", "model", supported=False),
        Format("xgboost-ubj", "model", (".ubj",), supported=False),
        Format("xgboost-dump", "model", supported=False),
        Format("ranklib", "model", supported=False),
        Format("quickrank", "model", supported=False),
        Format("solr", "model", supported=False),
        Format("onnx", "model", (".onnx",), supported=False),
        Format("c", "model", (".c",), supported=False),
    )
}


def format_of_name(path: str) -> Format | None:
    """Return the format that the end of a name says, None if it says nothing."""
    stem = path.lower()
    for suffix in COMPRESSED_SUFFIXES:
        stem = stem.removesuffix(suffix)
    suffix = os.path.splitext(stem)[1]
    return next((one for one in FORMATS.values() if suffix and suffix in one.suffixes), None)
