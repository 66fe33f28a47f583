"""All formats, one record each: names, suffixes, how content is recognised, and which function reads or writes it.

A new model format is a new file in `models/` and one record in MODEL_FORMATS: commands, help and messages follow.
Light, as the command line imports it: a reader or writer is imported when it is first needed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from lmart.formats.format_records import DataFormat, Lazy, ModelFormat, ResultFormat


def _functions(module: str, is_read: bool = True) -> dict[str, Any]:
    """Return the fields of a record that are the functions of a module in `models/`."""
    names = {"reader": "read", "writer": "write", "looks_like": "looks_like"} if is_read else {"writer": "write"}
    return {field: Lazy(f"models.{module}", name) for field, name in names.items()}


_DATA = (
    DataFormat(
        name="letor",
        suffixes=(".svm", ".letor", ".libsvm", ".svmlight"),
        reader=Lazy("documents.letor", "LetorReader"),
        writer=Lazy("documents.text_writer", "LetorWriter"),
    ),
    DataFormat(
        name="csv",
        suffixes=(".csv",),
        reader=Lazy("documents.delimited", "DelimitedReader"),
        writer=Lazy("documents.text_writer", "CsvWriter"),
        is_named=True,
    ),
    DataFormat(
        name="tsv",
        suffixes=(".tsv", ".tab"),
        reader=Lazy("documents.delimited", "TsvReader"),
        writer=Lazy("documents.text_writer", "TsvWriter"),
        is_named=True,
    ),
    DataFormat(
        name="parquet",
        suffixes=(".parquet", ".pq"),
        reader=Lazy("documents.parquet", "ParquetReader"),
        writer=Lazy("documents.parquet", "ParquetWriter"),
        starts=(b"PAR1",),
        is_named=True,
        package="pyarrow",
        title="Parquet",
    ),
    DataFormat(
        name="qrels",
        suffixes=(".qrels",),
        writer=Lazy("results.trec", "QrelsWriter"),
        instead="lmart eval reads it as --qrels",
    ),
)

# A model file has the first of these formats that recognises it, else the first one, whose reader says what is wrong.
_MODELS = (
    ModelFormat(name="lmart", suffixes=(".json",), **_functions("lmart_json"), starts=(b"{",), has_sets=True),
    ModelFormat(
        name="lightgbm",
        **_functions("lightgbm.text"),
        starts=(b"tree", b"num_class", b"version"),
        title="LightGBM",
        has_sets=True,
    ),
    ModelFormat(
        name="lightgbm-json", **_functions("lightgbm.json"), starts=(b"{",), title="LightGBM JSON", has_sets=True
    ),
    ModelFormat(
        name="xgboost",
        **_functions("xgboost.json"),
        starts=(b"{", b"binf", b"bs64"),
        title="XGBoost",
        is_float32=True,
        has_sets=True,
    ),
    ModelFormat(
        name="xgboost-ubj",
        suffixes=(".ubj",),
        **_functions("xgboost.ubjson"),
        starts=(b"{",),
        title="XGBoost UBJSON",
        is_float32=True,
        has_sets=True,
    ),
    ModelFormat(
        name="xgboost-dump",
        **_functions("xgboost.dump"),
        starts=(b"[", b"{", b"booster["),
        title="an XGBoost dump",
        takes=("name",),
        is_float32=True,
    ),
    ModelFormat(name="ranklib", **_functions("ranklib"), starts=(b"#", b"<"), title="RankLib", is_float32=True),
    ModelFormat(name="quickrank", **_functions("quickrank"), starts=(b"<",), title="QuickRank", is_float32=True),
    ModelFormat(
        name="solr", **_functions("solr"), starts=(b"{", b"["), title="Solr", takes=("name", "store"), is_float32=True
    ),
    ModelFormat(
        name="onnx",
        suffixes=(".onnx",),
        **_functions("onnx", is_read=False),
        package="onnx",
        title="ONNX",
        has_sets=True,
        is_float32=True,
        is_ordered=False,
    ),
    ModelFormat(name="c", suffixes=(".c",), **_functions("c_source", is_read=False), title="C source", has_sets=True),
)

_RESULTS = (
    ResultFormat(name="scores", writer=Lazy("results.predictions", "ScoresWriter"), summary="one number per row."),
    ResultFormat(
        name="tsv",
        writer=Lazy("results.predictions", "TsvWriter"),
        summary="qid, document, score and rank, tab-separated.",
        takes=("top",),
        is_named=True,
    ),
    ResultFormat(
        name="trec",
        writer=Lazy("results.trec", "TrecWriter"),
        summary="a run for trec_eval, best first.",
        takes=("top", "tag"),
        is_named=True,
    ),
    ResultFormat(
        name="jsonl",
        writer=Lazy("results.predictions", "JsonLinesWriter"),
        summary="one JSON object per row.",
        takes=("top", "explain"),
        is_named=True,
    ),
)

DATA_FORMATS = {record.name: record for record in _DATA}
MODEL_FORMATS = {record.name: record for record in _MODELS}
RESULT_FORMATS = {record.name: record for record in _RESULTS}
AnyFormat: TypeAlias = DataFormat | ModelFormat
FORMATS: dict[str, AnyFormat] = {**DATA_FORMATS, **MODEL_FORMATS}  # what convert knows
OWN = _MODELS[0].name


def format_of_name(path: str) -> AnyFormat | None:
    """Return the format of data or models that the end of a name says, None if it says nothing."""
    from lmart.streams.common import name_ending  # --help does without

    suffix = name_ending(path)
    return next((record for record in FORMATS.values() if suffix and suffix in record.suffixes), None)


def model_format_of(head: bytes) -> str | None:
    """Return the name of the model format of a file that begins with `head`, None when it is recognised as none."""
    return next((record.name for record in MODEL_FORMATS.values() if record.begins(head)), None)
