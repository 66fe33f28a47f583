"""Reading and writing model files of any format: the registry says which function turns their content into a model."""

from __future__ import annotations

from collections.abc import Callable

from lmart.errors import DataError, ModelError
from lmart.formats.format_records import BYTE_ORDER_MARK, beginning
from lmart.formats.registry import MODEL_FORMATS, OWN, model_format_of
from lmart.scoring.ensemble import Ensemble
from lmart.streams import LARGEST_WHOLE, AtomicOutput, read_pieces

LONGEST_START = 1 << 16  # bytes by which a model must have begun


def read_model(path: str, format: str | None = None) -> Ensemble:
    """Read and check a model file, plain or compressed.

    path   : the file; '-' is standard input
    format : name of its format; None: recognised by its content
    ModelError when it cannot be read, is no sound model, or its format is not read.
    """
    try:
        content = _content(path, whole=format is not None)
    except DataError as fault:
        raise ModelError(fault.message, fault.path) from None
    return parse_model(content, path, format)


def parse_model(content: bytes, path: str, format: str | None = None) -> Ensemble:
    """Return the model that a file's content, decompressed, holds.

    content : of the file
    path    : what to call the file in messages
    format  : name of its format; None: recognised by its content
    ModelError when it is no sound model, or its format is not read.
    """
    head = content[:LONGEST_START]
    found = (
        format
        or model_format_of(head)
        or next((one.name for one in MODEL_FORMATS.values() if one.resembles(head)), OWN)
    )
    return MODEL_FORMATS[found].load_reader(path, ModelError)(content, path)


def write_model(
    ensemble: Ensemble, path: str, format: str = OWN, warn: Callable[[str], None] = lambda text: None
) -> None:
    """Write a model file, whole or not at all.

    ensemble : the model
    path     : the file; '-' is standard output
    format   : name of its format
    warn     : called with each warning, such as that the format cannot say everything
    ModelError when the format cannot hold the model; OutputError when the file cannot be written.
    """
    write_bytes(model_bytes(ensemble, path, format, warn), path)


def model_bytes(ensemble: Ensemble, path: str, format: str, warn: Callable[[str], None]) -> bytes:
    """Return the content of a model file; the parameters and the ModelError are those of `write_model`."""
    try:
        written = MODEL_FORMATS[format].load_writer(path, ModelError)(ensemble)
    except ModelError as fault:
        raise ModelError(fault.message, fault.path or path) from None
    except UnicodeEncodeError as fault:  # JSON can spell half of a surrogate pair, UTF-8 cannot
        wrong = fault.object[fault.start : fault.end]
        raise ModelError(
            f"a name holds {wrong!a}, which is no character; give the feature another name with --feature-map",
            path,
        ) from None
    for note in written.notes:
        warn(note)
    return written.content


def write_bytes(content: bytes, path: str) -> None:
    """Write a file, whole or not at all. OutputError when it cannot be written."""
    with AtomicOutput(path) as output:
        output.write(content)


def _content(path: str, whole: bool) -> bytes:
    """Return the content of a file; unless `whole`, only the beginning when that shows already that it is no model."""
    starts = tuple(start for one in MODEL_FORMATS.values() for start in one.starts)
    parts: list[bytes] = []
    begun = whole
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
