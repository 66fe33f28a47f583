"""What a record of a format says: its name, suffixes, first bytes, and which function reads or writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, cast

from lmart.errors import DataError, ModelError, OutputError, load_package

if TYPE_CHECKING:
    from lmart.formats.documents.blocks import RowReader, RowSource, RowWriter
    from lmart.formats.results.predictions import PredictionLayout, PredictionWriter
    from lmart.scoring.ensemble import Ensemble
    from lmart.streams import AtomicOutput
    from lmart.threads import WorkerPool

T = TypeVar("T")
Reader = TypeVar("Reader")
Writer = TypeVar("Writer")
FileError: TypeAlias = type[DataError] | type[ModelError] | type[OutputError]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CHECKPOINT_START = b'{"format": "lmart-checkpoint", '  # of what lmart train --checkpoint writes
BLANKS = b" \t\r\n"
GIVE_MODEL = "give a model of lmart, or of a tool that 'lmart convert --help' lists"


class WrittenModel(NamedTuple):
    """A model in the format of another tool.

    content : the bytes of the file
    notes   : one line for each thing that the format does not hold or that could differ, with counts
    needs   : one line for each thing that the tool needs besides the file to score as the model does
    """

    content: bytes
    notes: tuple[str, ...]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lazy(Generic[T]):
    """A function or class of a module in lmart/formats/, imported when it is first needed."""

    module: str
    name: str

    def load(self) -> T:
        """Import the module and return the function or class."""
        return cast(T, getattr(import_module(f"lmart.formats.{self.module}"), self.name))


def beginning(head: bytes) -> bytes:
    """Return the first bytes of a file without a byte order mark and blanks."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip(BLANKS)


@dataclass(frozen=True, kw_only=True)
class Format(Generic[Reader, Writer]):
    """What all formats have.

    name     : what --from, --to and --format call it
    suffixes : ends of file names that say this format
    reader   : see DataReader and ModelReader; None: the format is not read
    writer   : see DataWriter, ModelWriter and ResultWriter; None: the format is not written
    takes    : options of predict or convert that this format has a place for and others have not
    package  : optional package that reader and writer need; '': none
    title    : what messages call the format
    instead  : where a format without a reader is read; '': nowhere
    """

    name: str
    suffixes: tuple[str, ...] = ()
    reader: Lazy[Reader] | None = None
    writer: Lazy[Writer] | None = None
    takes: tuple[str, ...] = ()
    package: str = ""
    title: str = ""
    instead: str = ""

    def load_reader(self, path: str, error: FileError) -> Reader:
        """Return the reader; `error` at `path` when the format is not read, or needs a package that is not there."""
        if self.reader is None:
            raise error(f"the format '{self.name}' is not read; {self.instead or 'give another one'}", path)
        self._require_package(path, error)
        return self.reader.load()

    def load_writer(self, path: str, error: FileError) -> Writer:
        """Return the writer; `error` at `path` when the format is not written, or needs a package that is not there."""
        if self.writer is None:
            raise error(f"the format '{self.name}' is not written; give another one", path)
        self._require_package(path, error)
        return self.writer.load()

    def _require_package(self, path: str, error: FileError) -> None:
        if self.package:
            load_package(self.package, self.title or self.name, error, path)


DataReader: TypeAlias = "Callable[[RowSource], RowReader]"
"""Makes the reader of one input."""
DataWriter: TypeAlias = "Callable[[AtomicOutput, float, WorkerPool], RowWriter]"
"""Makes the writer to one output, which may use the workers; the number (0 or nan) is written where a row has no cell,
if the format needs one."""
ModelReader: TypeAlias = "Callable[[bytes, str], Ensemble]"
"""Turns the content of a file, decompressed, into the model. The text is its path, for messages. ModelError."""
ModelWriter: TypeAlias = "Callable[[Ensemble], WrittenModel]"
"""Turns a model into the content of a file, with notes of what the format does not hold. ModelError when it cannot hold
the model at all."""
ResultWriter: TypeAlias = "Callable[[AtomicOutput, PredictionLayout], PredictionWriter]"
"""Makes the writer of scores to one output."""


@dataclass(frozen=True, kw_only=True)
class DataFormat(Format[DataReader, DataWriter]):
    """A format of judged documents.

    starts   : bytes, one of which files begin with; (): not known by content
    is_named : features have names, in a header that needs all of them
    """

    kind: ClassVar[str] = "data"
    starts: tuple[bytes, ...] = ()
    is_named: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelFormat(Format[ModelReader, ModelWriter]):
    """A format of models.

    starts     : bytes, one of which files begin with, after a byte order mark and blanks; (): not known by content
    looks_like : says from the first bytes of a file whether it is of this format, or an old form of it
    is_float32 : thresholds and values are compared in float32
    is_ordered : the tool adds the trees of a model in their order
    has_sets   : splits can be on sets of values, as categories need
    """

    kind: ClassVar[str] = "model"
    starts: tuple[bytes, ...] = ()
    looks_like: Lazy[Callable[[bytes], bool]] | None = None
    is_float32: bool = False
    is_ordered: bool = True
    has_sets: bool = False

    def begins(self, head: bytes) -> bool:
        """Return whether a file whose first bytes are `head` is recognised as this format."""
        return beginning(head).startswith(self.starts) and self.resembles(head)

    def resembles(self, head: bytes) -> bool:
        """Return whether a file with the first bytes `head` is of this format, or an old form of it."""
        return self.looks_like is not None and self.looks_like.load()(head)


@dataclass(frozen=True, kw_only=True)
class ResultFormat(Format[None, ResultWriter]):
    """A format of what predict writes.

    summary  : what --help says of it
    is_named : queries and documents are named
    """

    kind: ClassVar[str] = "result"
    summary: str
    is_named: bool = False
