"""TREC files: judgments (qrels, `qid iter docno label`) and rankings (runs, `qid Q0 docno rank score tag`).

Fields stand between blanks or tabs, any number of them. Queries may be in any order, and the rows of a query anywhere.
Empty lines, and those that begin with '#', do not count. A million lines take a second or two: fields are split, and
numbers parsed, for many lines at once; only where that fails is each line looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.feature_names import has_control
from lmart.data.named_documents import JudgedDocuments, Run
from lmart.decimals import ODD, decimal
from lmart.errors import DataError, OutputError, quote
from lmart.formats.detection import is_json
from lmart.formats.documents.diagnostics import encoding_fault
from lmart.formats.line_reader import Lines, read_lines
from lmart.formats.results.predictions import WAYS_TO_QUERIES, RankedRows, RankedWriter, called_query

if TYPE_CHECKING:
    from lmart.formats.documents.blocks import FeatureColumns, RowBlock
    from lmart.streams import AtomicOutput
    from lmart.threads import WorkerPool

LARGEST_LABEL = 2**31 - 1
LOOKED_AT = 200  # lines of a batch whose column `looked_at`, for messages only, is kept
_COMMENT = re.compile(rb"\A#.*")
_BLANK = re.compile(r"\s")  # also of those that are not ASCII
_CONTROL = bytes([*range(9), *range(14, 32), 127])  # of ASCII, but for blanks
_CONTROL_IN_UTF8 = re.compile(rb"\xc2[\x80-\x9f]")
_END = b"\0"  # stands as a field of its own where a line ends; in no line, as it is one of _CONTROL
FLOAT32_SAFE = 1e38  # below it, a float32 is neither infinite nor about to become so


class _Kind(NamedTuple):
    """A kind of file.

    fields    : of a line, of which `number` is the number
    looked_at : which of them counts in messages only
    is_open   : whether more fields may follow
    """

    what: str
    fields: tuple[str, ...]
    number: int
    looked_at: int
    is_open: bool


_QRELS = _Kind("qrels", ("qid", "iter", "docno", "label"), 3, 1, False)
_RUN = _Kind("a run", ("qid", "Q0", "docno", "rank", "score", "tag"), 4, 3, True)


def id_misfit(text: str, what: str) -> str | None:
    """Return why an id ('query id' or 'document id') cannot be written into qrels or a run, None if it can.

    Tools differ on what separates fields.
    """
    if not text:
        return "is empty"
    if _BLANK.search(text):
        return "holds a blank"
    if has_control(text):
        return "holds a control character"
    if what == "query id" and text[0] in "#\ufeff":
        return "begins with '#', as a comment does" if text[0] == "#" else "begins with a byte order mark"
    return None


def read_qrels(path: str) -> JudgedDocuments:
    """Read TREC judgments; labels are whole numbers, however they are written.

    DataError names the line and the token at fault, and both lines of a document that a query names twice.
    """
    rows = _read(path, _QRELS)
    own = rows.query_ids, rows.query_offsets, rows.document_ids
    return JudgedDocuments(*own, rows.numbers, path, rows.lines - 1)


def read_run(path: str) -> Run:
    """Read a TREC run; ranks change no order, and what follows the tag is not looked at.

    DataError names the line and the token at fault, and both lines of a document that a query names twice.
    """
    rows = _read(path, _RUN)
    return Run(rows.query_ids, rows.query_offsets, rows.document_ids, rows.numbers, path, rows.rises)


class _Rows(NamedTuple):
    """The rows of a file, query by query.

    query_ids     : n_queries texts
    query_offsets : int64[n_queries + 1]
    lines         : int64[n], of the file, from 1
    rises         : whether the numbers rise with the column that is looked at
    """

    query_ids: list[str]
    query_offsets: Int64Array
    document_ids: list[bytes]
    numbers: Float64Array
    lines: Int64Array
    rises: bool


class _Part(NamedTuple):
    """Some lines of a file: their query ids, document ids and numbers, where they stood, and what is looked at."""

    query_ids: list[bytes]
    document_ids: list[bytes]
    numbers: Float64Array
    lines: Sequence[int]
    looked_at: list[bytes]


def _read(path: str, kind: _Kind) -> _Rows:
    codes: dict[bytes, int] = {}
    document_ids: list[bytes] = []
    parts: list[tuple[Int64Array, Float64Array, Sequence[int]]] = []
    looked_at: set[bytes] = set()
    rises = False
    for part in _parts(path, kind):
        if kind is _QRELS:
            looked_at |= set(part.looked_at)
        elif not parts:
            rises = _rises(part)
        for query_id in dict.fromkeys(part.query_ids):
            codes.setdefault(query_id, len(codes))
        queries = np.fromiter(map(codes.__getitem__, part.query_ids), np.int64, len(part.query_ids))
        document_ids += part.document_ids
        parts.append((queries, part.numbers, part.lines))
    if not document_ids:
        raise DataError(f"holds no line of {kind.what}; give '{' '.join(kind.fields)}' on each line", path)
    queries = np.concatenate([part[0] for part in parts])
    numbers = np.concatenate([part[1] for part in parts])
    lines = np.concatenate([np.asarray(part[2], np.int64) for part in parts])
    if (np.diff(queries) < 0).any():
        order = np.argsort(queries, kind="stable")
        queries, numbers, lines = queries[order], numbers[order], lines[order]
        document_ids = [document_ids[i] for i in order.tolist()]
    offsets = np.searchsorted(queries, np.arange(len(codes) + 1)).astype(np.int64)
    query_ids = [raw.decode("utf-8") for raw in codes]
    of_subtopics = kind is _QRELS and len(looked_at) > 1
    _refuse_repeated(path, query_ids, offsets, document_ids, lines, of_subtopics)
    return _Rows(query_ids, offsets, document_ids, numbers, lines, rises)


def _rises(part: _Part) -> bool:
    """Return whether the numbers rise with what is looked at, in nearly all adjacent lines of a query."""
    rows = list(zip(part.query_ids, part.looked_at, part.numbers.tolist(), strict=False))
    signs = [
        (int(later) - int(rank)) * (after - score)
        for (query, rank, score), (same, later, after) in pairwise(rows)
        if query == same and rank.isdigit() and later.isdigit()
    ]
    return bool(sum(sign > 0 for sign in signs) > 9 * sum(sign < 0 for sign in signs))


def _parts(path: str, kind: _Kind) -> Iterator[_Part]:
    """Yield the lines of a file in parts; DataError for the first line at fault."""
    for found in read_lines(path, _COMMENT):
        yield _at_once(found, kind) or _one_by_one(found, kind, path)


def _at_once(found: Lines, kind: _Kind) -> _Part | None:
    """Return the rows of lines, None when some of them may be at fault, or have more fields than others."""
    n_lines, width = len(found.texts), len(kind.fields) + 1
    joined = (b" " + _END + b"\n").join([*found.texts, b""])
    if len(joined.translate(None, _CONTROL)) != len(joined) - n_lines or not _is_printable(joined):
        return None
    words = joined.split()
    if len(words) != width * n_lines or words[width - 1 :: width].count(_END) != n_lines:
        return None
    numbers = _numbers_of(words[kind.number :: width], kind)
    if numbers is None:
        return None
    looked_at = words[kind.looked_at : width * LOOKED_AT : width]
    return _Part(words[::width], words[2::width], numbers, found.numbers, looked_at)


def _is_printable(text: bytes) -> bool:
    """Return whether what is not ASCII is UTF-8 without control characters."""
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return _CONTROL_IN_UTF8.search(text) is None


def _numbers_of(tokens: list[bytes], kind: _Kind) -> Float64Array | None:
    """Return the numbers, None when one of them is not as it should be."""
    joined = b"".join(tokens)
    if ODD.search(joined):
        return None
    is_whole = kind is _QRELS and b"." not in joined
    try:
        numbers = np.fromiter(map(int if is_whole else float, tokens), np.float64, len(tokens))
    except (ValueError, OverflowError):
        return None
    if kind is _RUN:
        return numbers if np.isfinite(numbers).all() else None
    return numbers if np.abs(numbers).max() <= LARGEST_LABEL and (is_whole or (numbers % 1 == 0).all()) else None


def _one_by_one(found: Lines, kind: _Kind, path: str) -> _Part:
    """Return the rows of lines of which one may be at fault; DataError for the first one that is."""
    query_ids, document_ids, numbers, looked_at = [], [], [], []
    for text, line in zip(*found, strict=True):
        words = text.split()
        if fault := _fault_of(words, kind):
            raise DataError(fault, path, line)
        query_ids.append(words[0])
        document_ids.append(words[2])
        numbers.append(float(words[kind.number]))
        looked_at.append(words[kind.looked_at])
    return _Part(query_ids, document_ids, np.array(numbers, np.float64), found.numbers, looked_at)


def _fault_of(words: list[bytes], kind: _Kind) -> str | None:
    """Return what is wrong with the fields of a line, None if nothing is."""
    form = f"'{' '.join(kind.fields)}'"
    has_fields = len(words) == len(kind.fields) or (len(words) > len(kind.fields) and kind.is_open)
    number = decimal(words[kind.number]) if has_fields else None
    if number is None and (other := _other_layout(words, kind)):
        return other
    if not has_fields:
        n = f"{len(words)} field" + ("" if len(words) == 1 else "s")
        return f"{quote(b' '.join(words))} has {n}; a line of {kind.what} is {form}"
    for place, what in ((0, "query id"), (2, "document id")):
        try:
            text = words[place].decode("utf-8")
        except UnicodeDecodeError:
            return encoding_fault(words[place], what)
        if has_control(text):
            return f"{what} {quote(text)} holds a control character; ids are printable text"
    token = words[kind.number]
    if kind is _RUN:
        return None if number is not None else f"score {quote(token)} is not a finite number; a line of a run is {form}"
    if number is None or abs(number) > LARGEST_LABEL:
        return f"label {quote(token)} is not a whole number up to {LARGEST_LABEL}; a line of qrels is {form}"
    if not number.is_integer():
        what = f"label {quote(token)} is not a whole number, as labels of qrels are"
        return f"{what}; give a table with the columns label, qid and docid to --data, which takes fractions"
    return None


def _other_layout(words: list[bytes], kind: _Kind) -> str | None:
    """Return what a line is that is known to be of another kind of file, and what to do; None: it is not known."""
    form, n = f"'{' '.join(kind.fields)}'", len(words)
    numbers = [place for place, word in enumerate(words) if decimal(word) is not None]
    if is_json(b" ".join(words)):
        return f"the file is JSON, as ranx and pytrec_eval have it; write lines of the form {form}"
    if any(word.startswith(b"qid:") for word in words[:2]):
        return "the line is LETOR text; give the file to --data"
    if n == 1 and (signs := [sign for sign in ",;|" if words[0].count(sign.encode()) >= 2]):
        what = f"the fields are separated by {quote(signs[0])}"
        return f"{what}; write a blank or a tab between them: a line of {kind.what} is {form}"
    if kind is _QRELS and n >= len(_RUN.fields) and {3, 4} <= {*numbers}:
        return "the line is of a TREC run; give the run to --run, and the qrels to --qrels"
    if kind is _RUN and n == len(_QRELS.fields) and 3 in numbers:
        if 2 in numbers:
            return "the line is of 'lmart predict --format tsv'; write the run with --format trec"
        return "the line is of TREC qrels; give the qrels to --qrels, and the run to --run"
    if n == 3 and 2 in numbers:
        if kind is _QRELS:
            return "the line lacks the second field, 'iter', as in MS MARCO; add it: awk '{print $1, 0, $2, $3}'"
        return "the line is 'qid docno rank', as in MS MARCO; give scores: awk '{print $1,\"Q0\",$2,$3,1/$3,\"run\"}'"
    if kind is _RUN and n == len(numbers) == 1:
        return "the line is a number alone; give scores of the rows of --data to --scores"
    if words[min(kind.number, n - 1)].lower() in (b"label", b"rel", b"relevance", b"score", b"tag"):
        return f"the line is a header; take it out: a line of {kind.what} is {form}"
    return None


def _refuse_repeated(
    path: str,
    query_ids: list[str],
    offsets: Int64Array,
    document_ids: list[bytes],
    lines: Int64Array,
    of_subtopics: bool,
) -> None:
    """Raise DataError for the first line whose document stands in an earlier line of its query."""
    bounds = offsets.tolist()
    found: list[tuple[int, int, int]] = []  # line, line before, query
    for query, (start, stop) in enumerate(pairwise(bounds)):
        own = document_ids[start:stop]
        if len(set(own)) == stop - start:
            continue
        first: dict[bytes, int] = {}
        for row, document in enumerate(own, start):
            first_row = first.setdefault(document, row)
            if first_row != row:
                found.append((int(lines[row]), int(lines[first_row]), query))
                break
    if found:
        line, first_line, query = min(found)
        document = next(own for own, at in zip(document_ids, lines.tolist(), strict=True) if at == line)
        what = (
            f"query {quote(query_ids[query])} names document {quote(document)} a second time, after line {first_line}"
        )
        if of_subtopics:
            how = "join them to one label a document, or measure each subtopic with qrels of its own"
            raise DataError(f"{what}: it is judged for several subtopics, the second field; {how}", path, line)
        raise DataError(f"{what}; leave one of them", path, line)


class TrecWriter(RankedWriter):
    """`qid Q0 document rank score tag`, best first in each query; ranks from 1.

    trec_eval sorts by score, and tied documents by name; old versions keep scores in float32. So a score that would not
    be below the one before it, as float32, is written as the next float32 below that one; all others are exact.
    """

    def without_queries(self) -> None:
        """Refuse rows without query ids."""
        raise DataError(f"a TREC run needs query ids, and no row has one; {WAYS_TO_QUERIES}", self.layout.source)

    def lines(self, ranked: RankedRows, kept: Int64Array) -> list[str]:
        """Return the lines of the run, best first in each query; DataError for ids missing, repeated or with blanks."""
        self._refuse_misfits([query_id for query_id in ranked.query_ids if query_id is not None], "query id")
        self._refuse_misfits([text for text in ranked.document_ids or () if text], "document id")
        if self.repeated is not None:
            query_id, document = self.repeated
            what = f"{called_query(query_id)} names document {quote(document)} twice, which a TREC run cannot hold"
            raise DataError(f"{what}; keep one of its rows, or use another --format", self.layout.source)
        order = kept[np.lexsort((ranked.ranks[kept], ranked.queries[kept]))]
        queries, ranks = ranked.queries[order].tolist(), ranked.ranks[order].tolist()
        shown = falling(ranked.scores[order].tolist(), ranks)
        return [
            f"{ranked.query_ids[query]} Q0 {ranked.document_id(i)} {rank + 1} {score!r} {self.layout.tag}\n"
            for i, query, rank, score in zip(order.tolist(), queries, ranks, shown, strict=True)
        ]

    def _refuse_misfits(self, ids: list[str], what: str) -> None:
        """Raise DataError when an id cannot stand in a run."""
        if what == "document id" and id_misfit("-".join(ids) or "-", what) is None:
            return
        for text in ids:
            if fault := id_misfit(text, what):
                message = f"the {what} {quote(text)} {fault}, which a TREC run cannot hold; use --format jsonl"
                raise DataError(message, self.layout.source)


def falling(scores: list[float], ranks: list[int]) -> list[float]:
    """Return scores that fall strictly from rank to rank, in float32 too if in range; exact where they do."""
    shown: list[float] = []
    for score, rank in zip(scores, ranks, strict=True):
        if rank == 0:
            shown.append(score)
            continue
        above = shown[-1]
        kind = np.float32 if max(abs(above), abs(score)) < FLOAT32_SAFE else np.float64
        if kind(score) < kind(above):
            shown.append(score)
        else:
            shown.append(float(np.nextafter(kind(above), kind(-np.inf))))
    return shown


class QrelsWriter:
    """Writes the labels of blocks of rows; features have no place.

    A document is its id, else its number in the query, from 1: as in the runs that predict writes.
    """

    def __init__(self, output: AtomicOutput, absent: float, pool: WorkerPool) -> None:
        """Write to `output`; `absent` and `pool` are for formats that write features."""
        self._output = output
        self._query = ""
        self._documents: dict[str, int] = {}  # of the query that may go on in the next block, and their rows
        self._n_rows = 0

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows. OutputError for a label, or an id, that qrels cannot hold, and a document named twice."""
        if block.query_ids is None or block.labels is None:
            raise OutputError("qrels need a label and a query id in each row; give data that has them")
        bounds = block.query_offsets.tolist()
        labels = block.labels.tolist()
        lines = []
        for run, query_id in enumerate(block.query_ids):
            if run > 0 or not block.continues:
                self._check(query_id, "query id", bounds[run])
                self._query, self._documents = query_id, {}
            for row in range(bounds[run], bounds[run + 1]):
                own_id = "" if block.document_ids is None else block.document_ids[row]
                document = own_id or str(len(self._documents) + 1)
                if own_id:
                    self._check(own_id, "document id", row)
                self._enter(document, row)
                lines.append(f"{query_id} 0 {document} {self._label(labels[row], row)}\n")
        self._n_rows += len(block)
        self._output.write("".join(lines))

    def finish(self) -> None:
        """Nothing is left to write."""

    def _enter(self, document: str, row: int) -> None:
        number = self._n_rows + row + 1
        first = self._documents.setdefault(document, number)
        if first != number:
            what = f"query {quote(self._query)} names document {quote(document)} twice, in rows {first} and {number}"
            raise OutputError(f"{what}, which qrels cannot hold; keep one of them", self._output.path)

    def _label(self, label: float, row: int) -> int:
        if not label.is_integer():
            what = f"label {label!r} of row {self._n_rows + row + 1} is not a whole number"
            raise OutputError(f"{what}, and qrels hold no other; round it", self._output.path)
        if label > LARGEST_LABEL:
            what = f"label {label:.15g} of row {self._n_rows + row + 1} is above {LARGEST_LABEL}"
            raise OutputError(f"{what}, the largest that qrels can hold; give smaller labels", self._output.path)
        return int(label)

    def _check(self, text: str, what: str, row: int) -> None:
        if fault := id_misfit(text, what):
            where = f"{what} {quote(text)} of row {self._n_rows + row + 1}"
            raise OutputError(f"{where} cannot stand in qrels: it {fault}; rename it", self._output.path)
