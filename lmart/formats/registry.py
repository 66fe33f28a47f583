"""All formats, one record each: names, suffixes, how content is recognised, and which function reads or writes it.

A new model format is a new file in `models/` (or several, named by their tool) and one record in MODEL_FORMATS:
commands, help and messages follow.
Light, as the command line imports it: a reader or writer is imported when it is first needed.
"""

from __future__ import annotations

from typing import TypeAlias

from lmart.formats.format_records import (
    DataReader,
    DataWriter,
    Format,
    Lazy,
    ModelReader,
    ModelWriter,
    ResultWriter,
)

_DATA: tuple[Format[DataReader, DataWriter], ...] = (
    Format(
        "letor",
        "data",
        (".svm", ".letor", ".libsvm", ".svmlight"),
        Lazy("documents.letor", "LetorReader"),
        Lazy("documents.text_writer", "LetorWriter"),
    ),
    Format(
        "csv",
        "data",
        (".csv",),
        Lazy("documents.delimited", "DelimitedReader"),
        Lazy("documents.text_writer", "CsvWriter"),
        is_named=True,
    ),
    Format(
        "tsv",
        "data",
        (".tsv", ".tab"),
        Lazy("documents.delimited", "TsvReader"),
        Lazy("documents.text_writer", "TsvWriter"),
        is_named=True,
    ),
    Format(
        "parquet",
        "data",
        (".parquet", ".pq"),
        Lazy("documents.parquet", "ParquetReader"),
        Lazy("documents.parquet", "ParquetWriter"),
        starts=(b"PAR1",),
        is_named=True,
        package="pyarrow",
        title="Parquet",
    ),
    Format(
        "qrels",
        "data",
        (".qrels",),
        writer=Lazy("results.trec", "QrelsWriter"),
        instead="lmart eval reads it as --qrels",
    ),
)

# A model file has the first of these formats that recognises it, else the first one, whose reader says what is wrong.
_MODELS: tuple[Format[ModelReader, ModelWriter], ...] = (
    Format(
        "lmart",
        "model",
        (".json",),
        Lazy("models.lmart_json", "model_from_json"),
        Lazy("models.lmart_json", "write"),
        starts=(b"{",),
        pattern=r'\{\s*"format"\s*:\s*"lmart"',
    ),
    Format(
        "lightgbm",
        "model",
        reader=Lazy("models.lightgbm.text", "read"),
        writer=Lazy("models.lightgbm.text", "write"),
        starts=(b"tree", b"num_class", b"version"),
        looks_like=Lazy("models.lightgbm.text", "looks_like"),
        title="LightGBM",
    ),
    Format(
        "lightgbm-json",
        "model",
        reader=Lazy("models.lightgbm.json", "read"),
        writer=Lazy("models.lightgbm.json", "write"),
        starts=(b"{",),
        looks_like=Lazy("models.lightgbm.json", "looks_like"),
        title="LightGBM JSON",
    ),
    Format(
        "xgboost",
        "model",
        reader=Lazy("models.xgboost.json", "read"),
        writer=Lazy("models.xgboost.json", "write"),
        starts=(b"{", b"binf", b"bs64"),
        looks_like=Lazy("models.xgboost.json", "looks_like"),
        title="XGBoost",
        is_float32=True,
    ),
    Format(
        "xgboost-ubj",
        "model",
        (".ubj",),
        reader=Lazy("models.xgboost.ubjson", "read"),
        writer=Lazy("models.xgboost.ubjson", "write"),
        starts=(b"{",),
        looks_like=Lazy("models.xgboost.ubjson", "looks_like"),
        title="XGBoost UBJSON",
        is_float32=True,
    ),
    Format(
        "xgboost-dump",
        "model",
        reader=Lazy("models.xgboost.dump", "read"),
        writer=Lazy("models.xgboost.dump", "write"),
        starts=(b"[", b"{", b"booster["),
        looks_like=Lazy("models.xgboost.dump", "looks_like"),
        title="an XGBoost dump",
        takes=("name",),
        is_float32=True,
    ),
    Format(
        "ranklib",
        "model",
        reader=Lazy("models.ranklib", "read"),
        writer=Lazy("models.ranklib", "write"),
        starts=(b"#", b"<"),
        looks_like=Lazy("models.ranklib", "looks_like"),
        title="RankLib",
        is_float32=True,
    ),
    Format(
        "quickrank",
        "model",
        reader=Lazy("models.quickrank", "read"),
        writer=Lazy("models.quickrank", "write"),
        starts=(b"<",),
        looks_like=Lazy("models.quickrank", "looks_like"),
        title="QuickRank",
        is_float32=True,
    ),
    Format(
        "solr",
        "model",
        reader=Lazy("models.solr", "read"),
        writer=Lazy("models.solr", "write"),
        starts=(b"{", b"["),
        looks_like=Lazy("models.solr", "looks_like"),
        title="Solr",
        takes=("name", "store"),
        is_float32=True,
    ),
    Format(
        "onnx",
        "model",
        (".onnx",),
        writer=Lazy("models.onnx", "write"),
        package="onnx",
        title="ONNX",
        is_float32=True,
        is_ordered=False,
    ),
    Format(
        "c",
        "model",
        (".c",),
        writer=Lazy("models.c_source", "write"),
        title="C source",
    ),
)

_RESULTS: tuple[Format[None, ResultWriter], ...] = (
    Format("scores", "result", writer=Lazy("results.predictions", "ScoresWriter"), summary="one number per row."),
    Format(
        "tsv",
        "result",
        writer=Lazy("results.predictions", "TsvWriter"),
        summary="qid, document, score and rank, tab-separated.",
        takes=("top",),
        is_named=True,
    ),
    Format(
        "trec",
        "result",
        writer=Lazy("results.trec", "TrecWriter"),
        summary="a run for trec_eval, best first.",
        takes=("top", "tag"),
        is_named=True,
    ),
    Format(
        "jsonl",
        "result",
        writer=Lazy("results.predictions", "JsonLinesWriter"),
        summary="one JSON object per row.",
        takes=("top", "explain"),
        is_named=True,
    ),
)

DATA_FORMATS = {one.name: one for one in _DATA}
MODEL_FORMATS = {one.name: one for one in _MODELS}
RESULT_FORMATS = {one.name: one for one in _RESULTS}
AnyFormat: TypeAlias = Format[DataReader, DataWriter] | Format[ModelReader, ModelWriter]
FORMATS: dict[str, AnyFormat] = {**DATA_FORMATS, **MODEL_FORMATS}  # what convert knows
OWN = _MODELS[0].name


def format_of_name(path: str) -> AnyFormat | None:
    """Return the format of data or models that the end of a name says, None if it says nothing."""
    from lmart.streams.common import name_ending  # --help does without

    suffix = name_ending(path)
    return next((one for one in FORMATS.values() if suffix and suffix in one.suffixes), None)


def model_format_of(head: bytes) -> str | None:
    """Return the name of the model format of a file that begins with `head`, None when it is recognised as none."""
    return next((one.name for one in MODEL_FORMATS.values() if one.begins(head)), None)
