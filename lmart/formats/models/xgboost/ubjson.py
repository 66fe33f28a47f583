"""Universal Binary JSON as XGBoost writes it: values after a mark of their type, numbers with the highest byte first.

Read strictly, without recursion, every count checked against the bytes that are left before anything is allocated.
Source: the specification of UBJSON, draft 12.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from lmart.errors import ModelError, quote
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.xgboost.json import refuse_other
from lmart.formats.models.xgboost.reading import read_document
from lmart.formats.models.xgboost.writing import document, prepare
from lmart.scoring.ensemble import Ensemble

MOST_LEVELS = 64  # of brackets
MOST_VALUES = 5_000_000  # that are not in an array of numbers of one type, where XGBoost has all its long ones
NUMBERS = {  # mark: dtype of NumPy
    ord("i"): ">i1",
    ord("U"): ">u1",
    ord("I"): ">i2",
    ord("l"): ">i4",
    ord("L"): ">i8",
    ord("d"): ">f4",
    ord("D"): ">f8",
}
SIZES = {mark: int(dtype[2]) for mark, dtype in NUMBERS.items()}
WHOLE = tuple(map(ord, "iUIlL"))
FORMATS = {
    ord(mark): struct.Struct(f) for mark, f in zip("iUIlLdD", (">b", ">B", ">h", ">i", ">q", ">f", ">d"), strict=True)
}
Numbers: TypeAlias = npt.NDArray[np.generic]
WORDS = {ord("T"): True, ord("F"): False, ord("Z"): None}


class _Level:
    """An object or array that is being read: its value, and what is known of its length and the type of its items."""

    __slots__ = ("item_mark", "left", "value")

    def __init__(self, value: dict[str, object] | list[object], left: int | None, item_mark: int) -> None:
        self.value = value
        self.left = left  # items to come, None when a mark ends them
        self.item_mark = item_mark  # of every item, 0 when each has its own


class _Reader:
    """The bytes and the place in them."""

    def __init__(self, content: bytes, path: str) -> None:
        self.content = content
        self.path = path
        self.place = 0

    def refuse(self, words: str) -> NoReturn:
        """Raise ModelError with these words and the place."""
        raise ModelError(f"byte {self.place + 1}: {words}; the model is damaged", self.path)

    def byte(self) -> int:
        """Return the next byte and step over it."""
        if self.place >= len(self.content):
            raise ModelError("the model ends in the middle; the file was cut, copy it again", self.path)
        self.place += 1
        return self.content[self.place - 1]

    def take(self, size: int) -> bytes:
        """Return the next bytes and step over them."""
        if size > len(self.content) - self.place:
            raise ModelError("the model ends in the middle; the file was cut, copy it again", self.path)
        self.place += size
        return self.content[self.place - size : self.place]

    def number(self, mark: int) -> int | float:
        """Return a number of the type of a mark."""
        number: int | float = FORMATS[mark].unpack(self.take(SIZES[mark]))[0]
        return number

    def count(self) -> int:
        """Return a length: a whole number after its mark, not negative."""
        mark = self.byte()
        if mark not in WHOLE:
            self.refuse(f"a length is due, and this is {quote(chr(mark))}")
        length = int(self.number(mark))
        if not 0 <= length <= len(self.content) - self.place:
            raise ModelError(
                f"byte {self.place + 1}: a length is {length}, and {len(self.content) - self.place} bytes are left; the"
                " file was cut or is damaged, copy it again",
                self.path,
            )
        return length

    def text(self) -> str:
        """Return a text after its length."""
        raw = self.take(self.count())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.refuse("a text is not UTF-8")

    def open(self, mark: int) -> _Level | Numbers:
        """Return an object or array whose mark was read, as far as its beginning says; a typed array whole."""
        item_mark, left = 0, None
        if self.content[self.place : self.place + 1] == b"$":
            self.place += 1
            item_mark = self.byte()
            if item_mark not in NUMBERS and item_mark != ord("S"):
                self.refuse(f"an array of items of type {quote(chr(item_mark))}")
            if self.content[self.place : self.place + 1] != b"#":
                self.refuse("an array with a type has no length")
        if self.content[self.place : self.place + 1] == b"#":
            self.place += 1
            left = self.count()
        if mark == ord("[") and item_mark in NUMBERS:
            raw = self.take((left or 0) * SIZES[item_mark])
            return np.frombuffer(raw, NUMBERS[item_mark]).astype(NUMBERS[item_mark][1:])
        return _Level([] if mark == ord("[") else {}, left, item_mark)

    def scalar(self, mark: int) -> object:
        """Return a value that is no object or array."""
        if mark in FORMATS:
            return self.number(mark)
        if mark == ord("S"):
            return self.text()
        if mark in WORDS:
            return WORDS[mark]
        if mark == ord("C"):
            return chr(self.byte())
        self.place -= 1
        self.refuse(f"{quote(chr(mark))} is no type of a value")


def decode(content: bytes, path: str) -> object:
    """Return what the bytes say: objects as dict, typed arrays as numpy arrays, other arrays as list; or ModelError."""
    reader = _Reader(content, path)
    if content[:1] != b"{":
        reader.refuse("an object is due")
    reader.place = 1
    outermost = reader.open(ord("{"))
    assert isinstance(outermost, _Level)
    levels = [outermost]
    n_values = 0
    keys: list[str] = []  # of the objects and arrays inside objects, as far as they are open
    while levels:
        here = levels[-1]
        ended = here.left == 0
        if here.left is None and content[reader.place : reader.place + 1] == (
            b"}" if isinstance(here.value, dict) else b"]"
        ):
            reader.place += 1
            ended = True
        if ended:
            levels.pop()
            if levels:
                _add(levels[-1], keys.pop(), here.value)
            continue
        key = reader.text() if isinstance(here.value, dict) else ""
        mark = here.item_mark or reader.byte()
        if here.left is not None:
            here.left -= 1
        n_values += 1
        if n_values > MOST_VALUES:
            reader.refuse(f"there are more than {MOST_VALUES:,} values outside typed arrays")
        if mark not in (ord("["), ord("{")):
            _add(here, key, reader.scalar(mark))
            continue
        inner = reader.open(mark)
        if not isinstance(inner, _Level):
            _add(here, key, inner)
            continue
        levels.append(inner)
        keys.append(key)
        if len(levels) > MOST_LEVELS:
            reader.refuse(f"objects are nested more than {MOST_LEVELS} deep")
    if reader.place != len(content):
        reader.refuse("there is more after the end of the model")
    return outermost.value


def _add(level: _Level, key: str, value: object) -> None:
    if isinstance(level.value, dict):
        level.value[key] = value
    else:
        level.value.append(value)


def _text(text: str) -> bytes:
    raw = text.encode()
    return b"L" + struct.pack(">q", len(raw)) + raw


def _typed(array: Numbers) -> bytes:
    """Return an array of numbers with its type and length before them."""
    dtype = array.dtype.newbyteorder(">")
    mark = next(mark for mark, name in NUMBERS.items() if np.dtype(name) == dtype)
    return b"[$%c#L" % mark + struct.pack(">q", len(array)) + array.astype(dtype).tobytes()


def encode(document: Mapping[str, object]) -> bytes:
    """Return the bytes of a document as XGBoost writes them: counts of 8 bytes, numpy arrays as typed arrays.

    document : objects as dict, arrays as list or numpy array of int8 to int64, uint8 or floats, texts and whole numbers
    """
    parts: list[bytes] = []
    waiting: list[object] = [document]
    while waiting:
        parts.append(_begin(waiting.pop(), waiting))
    return b"".join(parts)


def _begin(item: object, waiting: list[object]) -> bytes:
    """Return the first bytes of an item, bytes as they are; what follows goes on `waiting`, last first."""
    if isinstance(item, bytes):
        return item
    if isinstance(item, dict):
        waiting.append(b"}")
        for key, value in reversed(item.items()):
            waiting += [value, _text(key)]
        return b"{"
    if isinstance(item, np.ndarray):
        return _typed(item)
    if isinstance(item, list):
        waiting += reversed(item)
        return b"[#L" + struct.pack(">q", len(item))
    if isinstance(item, str):
        return b"S" + _text(item)
    assert isinstance(item, (int, np.integer))
    return b"L" + struct.pack(">q", int(item))


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a binary model of XGBoost."""
    return start[:1] == b"{" and start[1:2] in (b"L", b"l", b"I", b"i", b"U", b"#") and b"learner" in start[:65536]


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; ModelError when it is no sound one."""
    if content[:1] != b"{":
        refuse_other(content, path)
    return read_document(decode(content, path), path)


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as the binary document that XGBoost 1.6 to 3 load; ModelError when it cannot hold it."""
    model = prepare(ensemble)
    return WrittenModel(encode(document(model)), tuple(model.notes))
