"""Model files of any format, read and written: the registry says which function turns their content into a model."""

from __future__ import annotations

from collections.abc import Callable

from lmart.errors import DataError, ModelError, either, input_name, quote
from lmart.formats.detection import refuse_known
from lmart.formats.format_records import BYTE_ORDER_MARK, GIVE_MODEL, WrittenModel, beginning
from lmart.formats.registry import MODEL_FORMATS, OWN, model_format_of
from lmart.scoring.ensemble import Ensemble
from lmart.streams import LARGEST_WHOLE, AtomicOutput, read_pieces

LONGEST_START = 1 << 16  # bytes by which a model must have begun


def read_model(path: str, format: str | None = None, tell: Callable[[str], None] = lambda text: None) -> Ensemble:
    """Read and check a model file, plain or compressed.

    format : None: recognised by its content
    tell   : called with each remark on how another tool may use the file
    ModelError when it cannot be read, is no sound model, or its format is not read.
    """
    model = parse_model(model_content(path, to_end=format is not None), path, format)
    for remark in model.remarks:
        tell(f"{input_name(path)}: {remark}")
    return model


def parse_model(content: bytes, path: str, format: str | None = None) -> Ensemble:
    """Return the model that a file's content, decompressed, holds.

    ModelError when it is no sound model, or its format is not read.
    """
    if not is_model(content):
        refuse_known(content[:LONGEST_START], path, ModelError, GIVE_MODEL)
    return MODEL_FORMATS[format or format_of(content)].load_reader(path, ModelError)(content, path)


def format_of(content: bytes) -> str:
    """Return the name of the format that the content of a model file has; that of lmart where none is recognised."""
    head = content[:LONGEST_START]
    return model_format_of(head) or next(
        (record.name for record in MODEL_FORMATS.values() if record.resembles(head)), OWN
    )


def is_model(content: bytes) -> bool:
    """Return whether the content of a file is recognised as that of a model."""
    head = content[:LONGEST_START]
    return model_format_of(head) is not None or any(record.resembles(head) for record in MODEL_FORMATS.values())


def write_model(
    ensemble: Ensemble, path: str, format: str = OWN, warn: Callable[[str], None] = lambda text: None
) -> None:
    """Write a model file, whole or not at all.

    ModelError when the format cannot hold the model; OutputError when the file cannot be written.
    """
    made = content_of(ensemble, path, format)
    for text in (*made.notes, *made.needs):
        warn(text)
    write_bytes(made.content, path)


def content_of(ensemble: Ensemble, path: str, format: str) -> WrittenModel:
    """Return the content of a model file; the parameters and the ModelError are those of `write_model`."""
    record = MODEL_FORMATS[format]
    if ensemble.categories and not record.has_sets:
        name = quote(ensemble.feature_name(ensemble.categories[0].column))
        others = either([other.name for other in MODEL_FORMATS.values() if other.has_sets])
        what = f"feature {name} is a category, and {record.title} has no splits on sets of values"
        raise ModelError(f"{what}; write {others}", path)
    try:
        return record.load_writer(path, ModelError)(ensemble)
    except ModelError as fault:
        raise ModelError(fault.message, fault.path or path) from None
    except UnicodeEncodeError as fault:  # JSON can spell half of a surrogate pair, UTF-8 cannot
        wrong = fault.object[fault.start : fault.end]
        raise ModelError(
            f"a name holds {wrong!a}, which is no character; give the feature another name with --feature-map", path
        ) from None


def write_bytes(content: bytes, path: str) -> None:
    """Write a file, whole or not at all. OutputError when it cannot be written."""
    with AtomicOutput(path) as output:
        output.write(content)


def model_content(path: str, to_end: bool = False) -> bytes:
    """Return the content of a file, decompressed.

    to_end : not only the beginning when that shows already that it is no model
    ModelError when it cannot be read.
    """
    try:
        return _content(path, to_end)
    except DataError as fault:
        raise ModelError(fault.message, fault.path) from None


def _content(path: str, to_end: bool) -> bytes:
    starts = tuple(start for record in MODEL_FORMATS.values() for start in record.starts)
    parts: list[bytes] = []
    begun = to_end
    for piece in read_pieces(path, LARGEST_WHOLE):
        parts.append(piece)
        if not begun:
            head = b"".join(parts)[:LONGEST_START]
            text = beginning(head)
            begun = text.startswith(starts)
            waits = any(start.startswith(text) for start in starts) or BYTE_ORDER_MARK.startswith(head)
            if not begun and not (waits and len(head) < LONGEST_START):
                return head[: head.rfind(b"\n") + 1] or head
    return b"".join(parts)
