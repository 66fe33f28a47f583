"""All formats, one record each: names, suffixes, how content is recognised, and which function reads or writes it.

A new model format is one new file in `models/` and one record in MODEL_FORMATS: commands, help and messages follow.
Light, as the command line imports it: a reader or writer is imported when it is first needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar, cast

from lmart.errors import DataError, ModelError, OutputError
from lmart.streams.common import COMPRESSED_SUFFIXES

if TYPE_CHECKING:
    from lmart.formats.documents.row_blocks import RowReader, RowSource, RowWriter
    from lmart.formats.models.written_model import WrittenModel
    from lmart.formats.results.predictions import PredictionLayout, PredictionWriter
    from lmart.scoring.ensemble import Ensemble
    from lmart.streams import AtomicOutput

T = TypeVar("T")
Reader = TypeVar("Reader")
Writer = TypeVar("Writer")
FileError: TypeAlias = type[DataError] | type[ModelError] | type[OutputError]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r\n"


@dataclass(frozen=True)
class Lazy(Generic[T]):
    """A function or class of a module in lmart/formats/, imported when it is first needed."""

    module: str
    name: str

    def load(self) -> T:
        """Import the module and return the function or class."""
        return cast(T, getattr(import_module(f"lmart.formats.{self.module}"), self.name))


@dataclass(frozen=True)
class Format(Generic[Reader, Writer]):
    """A file format.

    name     : what --from, --to and --format call it
    kind     : what a file holds: judged documents ('data'), a model, or what predict writes ('result')
    suffixes : ends of file names that say this format
    reader   : see DataReader and ModelReader; None: the format is not read
    writer   : see DataWriter, ModelWriter and ResultWriter; None: the format is not written
    starts   : bytes, one of which files begin with, after a byte order mark and blanks; (): not known by content
    pattern  : regular expression that the content matches from there on; '': `starts` say enough
    looks_like : models: says from the first bytes of a file that begins so whether it is of this format; None: `starts`
               and `pattern` say enough
    summary  : what --help says of it
    takes    : options of predict that this format has a place for and others have not
    is_named : data: features have names, in a header that needs all of them; results: queries and documents are named
    package  : optional package that reader and writer need; '': none
    extra    : extra of lmart that installs the package
    title    : what messages call the format
    is_float32 : models: thresholds and values are compared in float32
    """

    name: str
    kind: Literal["data", "model", "result"]
    suffixes: tuple[str, ...] = ()
    reader: Lazy[Reader] | None = None
    writer: Lazy[Writer] | None = None
    starts: tuple[bytes, ...] = ()
    pattern: str = ""
    looks_like: Lazy[Callable[[bytes], bool]] | None = None
    summary: str = ""
    takes: tuple[str, ...] = ()
    is_named: bool = False
    package: str = ""
    extra: str = ""
    title: str = ""
    is_float32: bool = False

    @property
    def is_supported(self) -> bool:
        """Whether the format is read or written at all."""
        return self.reader is not None or self.writer is not None

    def begins(self, head: bytes) -> bool:
        """Return whether a file whose first bytes are `head` is recognised as this format."""
        text = beginning(head)
        begins = text.startswith(self.starts) and re.match(self.pattern.encode(), text) is not None
        return begins and (self.looks_like is None or self.looks_like.load()(head))

    def resembles(self, head: bytes) -> bool:
        """Return whether a file with the first bytes `head` is of this format, or an old form of it."""
        return self.looks_like is not None and self.looks_like.load()(head)

    def load_reader(self, path: str, error: FileError) -> Reader:
        """Return the reader; `error` at `path` when the format is not read, or needs a package that is not there."""
        if self.reader is None:
            raise error(f"the format '{self.name}' is not read; give another one", path)
        self._require_package(path, error)
        return self.reader.load()

    def load_writer(self, path: str, error: FileError) -> Writer:
        """Return the writer; `error` at `path` when the format is not written, or needs a package that is not there."""
        if self.writer is None:
            raise error(f"the format '{self.name}' is not written; give another one", path)
        self._require_package(path, error)
        return self.writer.load()

    def _require_package(self, path: str, error: FileError) -> None:
        if not self.package:
            return
        try:
            import_module(self.package)
        except ModuleNotFoundError:
            what = f"{self.title or self.name} needs the package {self.package}"
            raise error(f"{what}: pip install 'lmart[{self.extra}]'", path) from None


DataReader: TypeAlias = "Callable[[RowSource], RowReader]"
"""Makes the reader of one input."""
DataWriter: TypeAlias = "Callable[[AtomicOutput, float], RowWriter]"
"""Makes the writer to one output; the number (0 or nan) is written where a row has no cell, if the format needs one."""
ModelReader: TypeAlias = "Callable[[bytes, str], Ensemble]"
"""Turns the content of a file, decompressed, into the model. The text is its path, for messages. ModelError."""
ModelWriter: TypeAlias = "Callable[[Ensemble], WrittenModel]"
"""Turns a model into the content of a file, with notes of what the format does not hold. ModelError when it cannot hold
the model at all."""
ResultWriter: TypeAlias = "Callable[[AtomicOutput, PredictionLayout], PredictionWriter]"
"""Makes the writer of scores to one output."""

_DATA: tuple[Format[DataReader, DataWriter], ...] = (
    Format(
        "letor",
        "data",
        (".svm", ".letor", ".libsvm", ".svmlight"),
        Lazy("documents.letor", "LetorReader"),
        Lazy("documents.letor_writer", "LetorWriter"),
    ),
    Format(
        "csv",
        "data",
        (".csv",),
        Lazy("documents.delimited", "DelimitedReader"),
        Lazy("documents.delimited_writer", "CsvWriter"),
        is_named=True,
    ),
    Format(
        "tsv",
        "data",
        (".tsv", ".tab"),
        Lazy("documents.delimited", "TsvReader"),
        Lazy("documents.delimited_writer", "TsvWriter"),
        is_named=True,
    ),
    Format(
        "parquet",
        "data",
        (".parquet", ".pq"),
        Lazy("documents.parquet", "ParquetReader"),
        Lazy("documents.parquet_writer", "ParquetWriter"),
        starts=(b"PAR1",),
        is_named=True,
        package="pyarrow",
        extra="parquet",
        title="Parquet",
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
        reader=Lazy("models.lightgbm_text", "read"),
        writer=Lazy("models.lightgbm_text_writer", "write"),
        starts=(b"tree", b"num_class", b"version"),
        looks_like=Lazy("models.lightgbm_text", "looks_like"),
        title="LightGBM",
    ),
    Format(
        "lightgbm-json",
        "model",
        reader=Lazy("models.lightgbm_json", "read"),
        writer=Lazy("models.lightgbm_json", "write"),
        starts=(b"{",),
        looks_like=Lazy("models.lightgbm_json", "looks_like"),
        title="LightGBM JSON",
    ),
    Format(
        "xgboost",
        "model",
        reader=Lazy("models.xgboost_json", "read"),
        writer=Lazy("models.xgboost_json", "write"),
        starts=(b"{", b"binf", b"bs64"),
        looks_like=Lazy("models.xgboost_json", "looks_like"),
        title="XGBoost",
        is_float32=True,
    ),
    Format(
        "xgboost-ubj",
        "model",
        (".ubj",),
        reader=Lazy("models.xgboost_ubj", "read"),
        writer=Lazy("models.xgboost_ubj", "write"),
        starts=(b"{",),
        looks_like=Lazy("models.xgboost_ubj", "looks_like"),
        title="XGBoost UBJSON",
        is_float32=True,
    ),
    Format(
        "xgboost-dump",
        "model",
        reader=Lazy("models.xgboost_dump", "read"),
        writer=Lazy("models.xgboost_dump", "write"),
        starts=(b"[",),
        looks_like=Lazy("models.xgboost_dump", "looks_like"),
        title="an XGBoost dump",
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
        is_float32=True,
    ),
    Format(
        "onnx",
        "model",
        (".onnx",),
        writer=Lazy("models.onnx_model", "write"),
        package="onnx",
        extra="onnx",
        title="ONNX",
        is_float32=True,
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
    Format("scores", "result", writer=Lazy("results.predictions", "ScoresWriter"), summary="one number a row."),
    Format(
        "tsv",
        "result",
        writer=Lazy("results.tsv", "TsvWriter"),
        summary="qid, document, score and rank, tab-separated.",
        takes=("top",),
        is_named=True,
    ),
    Format(
        "trec",
        "result",
        writer=Lazy("results.trec_run", "TrecWriter"),
        summary="a run for trec_eval, best first.",
        takes=("top", "tag"),
        is_named=True,
    ),
    Format(
        "jsonl",
        "result",
        writer=Lazy("results.json_lines", "JsonLinesWriter"),
        summary="one JSON object a row.",
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
    stem = path.lower()
    for suffix in COMPRESSED_SUFFIXES:
        stem = stem.removesuffix(suffix)
    suffix = os.path.splitext(stem)[1]
    return next((one for one in FORMATS.values() if suffix and suffix in one.suffixes), None)


def model_format_of(head: bytes) -> str | None:
    """Return the name of the model format of a file that begins with `head`, None when it is recognised as none."""
    return next((one.name for one in MODEL_FORMATS.values() if one.begins(head)), None)


def beginning(head: bytes) -> bytes:
    """Return the first bytes of a file without a byte order mark and blanks."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip(BLANKS)
