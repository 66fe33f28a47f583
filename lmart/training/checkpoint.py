"""Checkpoints: the state of a run in a file, from which the run resumes however it ended, to the same bytes.

The state is the trees that were grown and the trials that were finished. All else follows from them and from the data:
a resumed run starts again from round 1, but takes the trees from the checkpoint instead of growing them.

The file is text: a line of JSON that says what run it is of, a line for each trial and each round, and at the end the
hash of all lines before. It is replaced as a whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

import lmart
from lmart.descriptors import forget
from lmart.errors import DataError, OutputError, quote, shown
from lmart.formats.format_records import CHECKPOINT_START
from lmart.scoring.ensemble import Tree, flatten, structure_fault
from lmart.streams import AtomicOutput
from lmart.streams.inputs import LARGEST_WHOLE, read_all
from lmart.streams.locks import NameLock
from lmart.streams.targets import resolve, sync_folder
from lmart.strict_json import strict_json
from lmart.training.grower import GrownTree
from lmart.training.tree_log import LoggedRound, TreeLog

T = TypeVar("T")

FORMAT = "lmart-checkpoint"
VERSION = 1
FIRST_SECONDS = 3.0  # of training before the checkpoint is written for the first time; shorter runs need none
PAUSE = 100  # times as long as writing it took, before it is written again: 1 % of the time
DIGEST_SIZE = 16
LAST_LINE = 64  # bytes that the line of the hash takes at most
MOST_COLUMNS = 1 << 31
MOST_SHOWN = 10  # differences between two runs
MODEL, REFIT, FOLDS, TRIAL = "model", "refit", "folds", "trial "  # parts of a run; a trial is followed by its settings
FOR_ANEW = "delete it to start anew, or choose another name"

Run = dict[str, dict[str, Any]]  # what a run is, in groups: values by name, as JSON has them

_DTYPES = {
    "split_columns": np.int32,
    "thresholds": np.float64,
    "missing_left": np.bool_,
    "left": np.int32,
    "right": np.int32,
    "leaf_values": np.float64,
    "split_gains": np.float64,
    "leaf_documents": np.int64,
    "bound_offsets": np.int64,
    "bounds": np.float64,
    "leaf_weights": np.float64,
}  # of the arrays of a Tree


class RunState:
    """What is worth keeping of a run: its finished trials, and the trees of its parts.

    searched : whether the search for settings is over
    closed   : set it to let runs end with the rounds that are logged
    """

    def __init__(self) -> None:
        self.trials: list[dict[str, Any]] = []
        self.searched = False
        self.closed = False
        self._path: str | None = None  # of the file that it is read from
        self._run: Run = {}
        self._logs: dict[str, TreeLog] = {}

    @property
    def n_rounds(self) -> int:
        """The number of rounds that are logged, of all parts."""
        return sum(len(log.rounds) for log in self._logs.values())

    def has(self, part: str) -> bool:
        """Return whether there is a round of a part."""
        return part in self._logs and bool(self._logs[part].rounds)

    def log(self, part: str) -> TreeLog:
        """Return the log of a part, with the rounds that an interrupted run did of it."""
        earlier = self._logs.get(part)
        rounds = () if earlier is None else earlier.rounds
        self._logs[part] = log = TreeLog(rounds, self._on_round, self.closed, self._path)
        return log

    def begin(self, run: Mapping[str, Mapping[str, object]]) -> None:
        """Begin a run, or begin it once more, after a worker was lost; DataError when its data changed meanwhile.

        run : what the run is, in groups: values by name, as JSON has them
        """
        earlier, self._run = self._run, json.loads(json.dumps(run))
        if earlier and (differ := _differences(earlier, self._run)):
            raise DataError(f"the data changed while the run went on: {'; '.join(differ)}; run this command again")

    def remove(self) -> None:
        """Delete what is kept in a file: the run is complete."""

    def end_trial(self, trial: dict[str, Any]) -> None:
        """Add a trial, whose trees are no longer needed."""
        self.trials.append(trial)
        self._forget_trials()

    def end_search(self, trials: Sequence[dict[str, Any]]) -> None:
        """Note that the search is over, and its trials."""
        self.trials, self.searched = list(trials), True
        self._forget_trials()

    def _forget_trials(self) -> None:
        self._logs = {part: log for part, log in self._logs.items() if not part.startswith(TRIAL)}

    def _on_round(self) -> None:
        """Take note of a further round."""


class Checkpoint(RunState):
    """The state of a run in a file: `with Checkpoint(path, warn, on_saved) as checkpoint: checkpoint.begin(run)`.

    It is written now and then, and when the block ends by an exception; nobody else can use it meanwhile.

    path     : the file; when it is there, the run goes on from it
    warn     : called once when it cannot be written, which does not end the run
    on_saved : called when the file holds the state of the run
    DataError when the file is no checkpoint, damaged, or of another version; OutputError when it is in use.
    """

    def __init__(self, path: str, warn: Callable[[str], None], on_saved: Callable[[], None]) -> None:
        super().__init__()
        self._path: str = path
        self._warn, self._on_saved = warn, on_saved
        self._found: CheckpointContent | None = None
        self._lock = NameLock(path)
        self._lines: dict[str, list[bytes]] = {}  # of the rounds that were saved before, by part
        self._due = 0.0
        self._failed = False

    def __enter__(self) -> Self:
        self._lock.__enter__()
        try:
            if os.path.lexists(self._path):
                self._found = self._read()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            if kind is not None and (self.n_rounds or self.trials):
                self._try_to_save()
        finally:
            self._lock.__exit__(kind, fault, where)

    def begin(self, run: Mapping[str, Mapping[str, object]]) -> None:
        """Begin a run, or go on with it when the file holds its state; DataError when that is of another run.

        run : what the run is, in groups: values by name, as JSON has them
        """
        super().begin(run)
        if (found := self._found) is not None:
            self._found = None
            if differ := _differences(found.run, self._run):
                what = f"is the checkpoint of another run: {'; '.join(differ[:MOST_SHOWN])}"
                raise DataError(f"{what}; give the command that made it, {FOR_ANEW}", self._path)
            self.trials, self.searched = found.trials, found.searched
            self._logs = {part: TreeLog(rounds) for part, rounds in found.rounds.items()}
            self._on_saved()
        self._due = time.monotonic() + FIRST_SECONDS

    def end_trial(self, trial: dict[str, Any]) -> None:
        """Add a trial, whose trees are no longer needed, and write the checkpoint."""
        super().end_trial(trial)
        self._try_to_save()

    def remove(self) -> None:
        """Delete the file: the run is complete."""
        target = resolve(self._path)
        try:
            os.unlink(target)
        except FileNotFoundError:
            return
        except OSError as error:
            self._warn(f"{self._path}: cannot be deleted, though the run is complete: {os.strerror(error.errno or 0)}")
        sync_folder(os.path.dirname(target))

    def save(self) -> None:
        """Write the file; OutputError when that fails."""
        head = {"format": FORMAT, "version": VERSION, "program": lmart.__version__, "searched": self.searched}
        lines = [_line({**head, "run": self._run}), *(_line({"trial": trial}) for trial in self.trials)]
        self._lines = {part: self._lines.get(part, []) for part in self._logs}
        for part, log in self._logs.items():
            of_part = self._lines[part]
            of_part += [_round_line(part, done) for done in log.rounds[len(of_part) :]]
            lines += of_part
        if sum(map(len, lines)) + LAST_LINE > LARGEST_WHOLE:
            what = f"would be larger than {LARGEST_WHOLE >> 20} MiB, which is not read again"
            raise OutputError(f"{what}; train fewer trees and go on from their model (--continue-from)", self._path)
        content = b"".join(lines)
        with AtomicOutput(self._path, is_result=False) as out:
            out.write(content)
            out.write(_line({"hash": _hash(content)}))
        forget(self._path)  # it is no result
        self._on_saved()

    def _on_round(self) -> None:
        if time.monotonic() >= self._due:
            self._try_to_save()

    def _try_to_save(self) -> None:
        """Write the file; the work goes on when that fails."""
        start = time.monotonic()
        try:
            self.save()
        except OutputError as fault:
            if not self._failed:
                self._warn(f"the checkpoint {fault}; the run goes on without it")
            self._failed = True
        ended = time.monotonic()
        self._due = ended + PAUSE * (ended - start)

    def _read(self) -> CheckpointContent:
        """Return the state of the interrupted run; DataError when another version wrote it."""
        found = parse_checkpoint(read_all(self._path), self._path)
        if found.program != lmart.__version__:
            what = f"is a checkpoint of lmart {found.program}, and this is {lmart.__version__}"
            raise DataError(f"{what}; go on with that version, {FOR_ANEW}", self._path)
        return found


class CheckpointContent(NamedTuple):
    """What a checkpoint holds.

    run      : what run it is of, in groups: values by name
    searched : whether the search for settings is over
    rounds   : by part of the run
    """

    program: str
    run: Run
    trials: list[dict[str, Any]]
    searched: bool
    rounds: dict[str, list[LoggedRound]]


def parse_checkpoint(content: bytes, path: str) -> CheckpointContent:
    """Return what a checkpoint holds; DataError when it is none, damaged, or in the format of another version.

    content : of the file
    path    : of the file, for messages
    """
    if not content.startswith(CHECKPOINT_START[: max(1, len(content))]):
        raise DataError("is no checkpoint; choose another name", path)
    damaged = DataError(f"this checkpoint is damaged: the file was cut or changed; {FOR_ANEW}", path)
    first, *rest = content.splitlines(keepends=True)
    try:
        head = strict_json(first)
        if head["version"] != VERSION:
            written_by = quote(_typed(head["program"], str))[1:-1]
            raise DataError(f"is a checkpoint of lmart {written_by}; go on with that version, {FOR_ANEW}", path)
        *rest, last = rest
        if last != _line({"hash": _hash(b"".join([first, *rest]))}):
            raise damaged
        found = _content_of(head, [strict_json(line) for line in rest])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise damaged from None
    trees = [done.grown.tree for rounds in found.rounds.values() for done in rounds if done.grown is not None]
    if structure_fault(flatten(trees), MOST_COLUMNS) is not None:
        raise damaged
    return found


def _content_of(head: Mapping[str, Any], records: Iterable[Any]) -> CheckpointContent:
    """Return what the first line and the others hold; ValueError, KeyError or TypeError where they are not as written.

    Whoever changes a file can also write the hash that goes with it.
    """
    trials: list[dict[str, Any]] = []
    rounds: dict[str, list[LoggedRound]] = {}
    for record in records:
        if "trial" in _typed(record, dict):
            trials.append(_typed(record["trial"], dict))
        else:
            rounds.setdefault(_typed(record["part"], str), []).append(_round_of(record))
    run = {name: _typed(group, dict) for name, group in _typed(head["run"], dict).items()}
    _typed(run["settings"]["trees"], int)
    return CheckpointContent(_typed(head["program"], str), run, trials, _typed(head["searched"], bool), rounds)


def _typed(value: Any, kind: type[T]) -> T:
    """Return a value of this very type; TypeError for any other."""
    if type(value) is not kind:
        raise TypeError
    return value


def content_hash(*values: object) -> str:
    """Return a hash of arrays, texts, numbers, and records and sequences of them."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    waiting = [*reversed(values)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype} {value.shape} ".encode())
            digest.update(np.ascontiguousarray(value).data)
        elif is_dataclass(value):
            waiting += [getattr(value, field.name) for field in reversed(fields(value))]
        elif isinstance(value, tuple | list):
            digest.update(f"{len(value)} ".encode())
            waiting += reversed(value)
        else:
            digest.update(f"{value!r} ".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _differences(old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what differs between two runs; data only where settings are the same, as they decide on its bins."""
    found = []
    same_settings = all(old.get(group) == new[group] for group in new if group != "data")
    for group in {**new, **old}:
        there, here = old.get(group, {}), new.get(group, {})
        differing = [name for name in {**here, **there} if there.get(name) != here.get(name)]
        if group != "data":
            found += [
                f"{quote(name)[1:-1]} is {_shown(here.get(name))}, there {_shown(there.get(name))}"
                for name in differing
            ]
        elif same_settings:
            found += [f"{quote(name)[1:-1]} differs" for name in differing]
    return found


def _shown(value: object) -> str:
    return "not set" if value is None or value == "" else shown(value)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=DIGEST_SIZE).hexdigest()


def _line(record: Mapping[str, object]) -> bytes:
    return (json.dumps(record) + "\n").encode("ascii")


def _round_line(part: str, done: LoggedRound) -> bytes:
    """Return a round as a line; numbers are written so that they are read back equal."""
    record: dict[str, object] = {"part": part, "bias": done.position_bias.tolist()}
    if (grown := done.grown) is not None:
        arrays = {name: getattr(grown.tree, name) for name in _DTYPES}
        record["tree"] = {name: array.tolist() for name, array in arrays.items() if array is not None}
        record["features"], record["bins"] = grown.split_features.tolist(), grown.split_bins.tolist()
        record["leaves"] = grown.leaves
    return _line(record)


def _round_of(record: Mapping[str, Any]) -> LoggedRound:
    """Return the round that `_round_line` wrote; an error of Python's own where it did not."""
    grown = None
    if "tree" in record:
        found = _typed(record["tree"], dict)
        tree = Tree(**{name: _array(values, _DTYPES[name]) for name, values in found.items()})
        features, bins, leaves = (_array(record[name], np.int32) for name in ("features", "bins", "leaves"))
        of_nodes = [tree.split_columns, tree.missing_left, tree.left, tree.right, tree.split_gains, features, bins]
        of_leaves = [tree.leaf_values, tree.leaf_documents, tree.leaf_weights, leaves]
        n = len(tree.thresholds)
        if any(len(array) != n for array in of_nodes if array is not None) or not n:
            raise ValueError
        if any(len(array) != n + 1 for array in of_leaves if array is not None):
            raise ValueError
        _check_bounds(tree)
        grown = GrownTree(tree, features, bins, record["leaves"])
    return LoggedRound(grown, _array(record["bias"], np.float64))


def _check_bounds(tree: Tree) -> None:
    """Raise ValueError when the offsets of the further bounds of nodes are none."""
    if (tree.bounds is None) != (tree.bound_offsets is None):
        raise ValueError
    if tree.bounds is not None and tree.bound_offsets is not None:
        ends = [0, *tree.bound_offsets.tolist(), len(tree.bounds)]
        if len(ends) != len(tree.thresholds) + 3 or ends[1] or ends[-2] != ends[-1] or sorted(ends) != ends:
            raise ValueError


def _array(values: list[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return a list of numbers as an array; an error where numbers have another type, or are not finite."""
    allowed: set[type] = {bool} if dtype is np.bool_ else {float, int} if dtype is np.float64 else {int}
    if type(values) is not list or not allowed.issuperset(map(type, values)):
        raise TypeError
    made = np.array(values, dtype)
    if not np.isfinite(made).all():
        raise ValueError
    return made
