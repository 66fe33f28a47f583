"""Scoring on workers: one task a part, which reads it, scores it and writes its file, in constant memory."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array, UInt64Array
from lmart.distributed.actors import check_run, give_up
from lmart.distributed.query_places import Place, codes_of, places_of, refuse_repeated, spanning_parts
from lmart.errors import LmartError, OutputError, counted
from lmart.formats.documents.blocks import RowBlock, SeenQueries
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import open_rows
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import RESULT_FORMATS
from lmart.formats.results.predictions import PredictionLayout, Repetition, RowExplanations, write_scored
from lmart.memory import keep_memory_constant
from lmart.model import score_stream
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.explain import Explainer
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.scorer import Scorer
from lmart.streams.outputs import StagedFile, StagedOutput
from lmart.streams.temporaries import let_go, let_go_all, remove, remove_marked
from lmart.threads import WorkerPool

ENDING = ("stopping", "stopped", "closing", "closed", "failed")  # states of a worker of `distributed`

_waiting: dict[str, list[str]] = {}  # by run: outputs of this worker that wait for their names


@dataclass(frozen=True, eq=False)
class ScoringJob:
    """What all parts have in common; the workers get it once.

    top     : rows to write of each query, the best ones; None: all
    attempt : number of this attempt to score the parts
    """

    run: str
    model: Ensemble
    name: str
    options: ReadOptions
    form: str = "scores"
    top: int | None = None
    tag: str = "lmart"
    explain: bool = False
    strict: bool = False
    attempt: int = 0

    def __reduce__(self) -> tuple[type[ScoringJob], tuple[object, ...]]:
        return ScoringJob, tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def scorer(self) -> Scorer:
        """The model, prepared for scoring once a worker."""
        return Scorer(self.model)

    @cached_property
    def explainer(self) -> Explainer | None:
        """The model, prepared for explaining once a worker; None: nothing is explained."""
        return Explainer(self.model, self.name) if self.explain else None

    @property
    def needs_whole_queries(self) -> bool:
        """Whether to refuse a query with rows in two parts, as one process refuses rows that are not adjacent."""
        return RESULT_FORMATS[self.form].is_named or not self.options.group_by_qid

    def check(self) -> None:
        """Raise LmartError when the run was given up, or this worker is ending."""
        check_run(self.run)
        if _is_ending():
            raise LmartError("a worker was closed; run this command again")

    def check_scoring(self) -> None:
        """Raise LmartError when the run was given up, or this attempt to score, or this worker is ending."""
        self.check()
        check_run(_scoring(self.run, self.attempt))


class PartScored(NamedTuple):
    """What a worker found in a part that it has scored.

    is_table    : whether it has a header, which names all of its features
    query_codes : uint64[n_queries], a hash of each query id; none where queries may span parts
    messages    : of its reader, without the name of the part, and whether it is a warning
    staged      : the output, which waits for its name
    """

    path: str
    n_rows: int
    ids: Int64Array
    names: tuple[str, ...] | None
    is_table: bool
    ignored: dict[int, bool]
    query_codes: UInt64Array
    messages: list[tuple[str, bool]]
    repetition: Repetition | None
    staged: StagedFile


def score_part(job: ScoringJob, path: str, out: str) -> PartScored:
    """Score a part, and write its output under a temporary name; return what was found.

    DataError and OutputError as one process raises them for this part alone.
    """
    job.check_scoring()
    keep_memory_constant()
    messages: list[tuple[str, bool]] = []
    options = replace(job.options, tell=partial(_note, messages, f"{path}: "), may_be_empty=True)
    queries = SeenQueries(options.group_by_qid, remembers=job.needs_whole_queries)
    pool, matcher = WorkerPool(1), FeatureMatcher(job.model)
    with open_rows(path, options, pool, queries, alone=False) as reader:
        explanations = None if job.explainer is None else RowExplanations(job.explainer, matcher, pool)
        layout = PredictionLayout(path, job.top, options.group_by_qid, job.tag, explanations, options.warning)
        blocks = score_stream(job.scorer, matcher, reader, pool, job.strict)
        with StagedOutput(out, job.run, job.check_scoring) as result:
            writer = RESULT_FORMATS[job.form].load_writer(out, OutputError)(result, layout)
            n_rows = write_scored(_checked(job, blocks), writer, result)
        assert result.staged is not None
        _waiting.setdefault(job.run, []).append(result.staged.temporary)
        return PartScored(
            path,
            n_rows,
            reader.feature_ids.copy(),
            None if reader.feature_names is None else tuple(reader.feature_names),
            bool(reader.table.of_tables),
            dict(reader.table.ignored),
            codes_of(queries.places) if job.needs_whole_queries else np.zeros(0, np.uint64),
            messages,
            writer.repetition,
            result.staged,
        )


def _note(messages: list[tuple[str, bool]], called: str, text: str, is_warning: bool) -> None:
    messages.append((text.removeprefix(called), is_warning))


def _checked(
    job: ScoringJob, blocks: Iterator[tuple[RowBlock, Float64Array]]
) -> Iterator[tuple[RowBlock, Float64Array]]:
    for block, scores in blocks:
        job.check_scoring()
        yield block, scores
        del block, scores  # before the next ones are made


def find_places(job: ScoringJob, path: str, codes: Sequence[int]) -> dict[str, Place]:
    """Return part and line of the first row of each query of a part with one of these hashes, by id."""
    options = replace(job.options, keep_document_ids=False, known_features=frozenset(), refuse_unknown=False)
    queries = SeenQueries(options.group_by_qid, remembers=True)
    with open_rows(path, options, None, queries) as reader:
        for _ in reader.volatile_batches():
            job.check()
    return places_of(queries.places, codes)


def _scoring(run: str, attempt: int) -> str:
    """Return what an attempt to score is called where it is given up."""
    return f"{run} {attempt}"


def give_up_scoring(run: str, attempt: int) -> None:
    """Let an attempt to score parts end, while its run goes on. Runs on workers."""
    give_up(_scoring(run, attempt))


def end_run(run: str, folders: Sequence[str]) -> None:
    """Let all that works for a run end, and delete what it has written that has no name yet. Runs on workers.

    A worker that hears of it later deletes what it has finished meanwhile.
    """
    give_up(run)
    remove_outputs(run, folders)


def remove_outputs(run: str, folders: Sequence[str]) -> None:
    """Delete what a run has written that has no name yet, whichever worker wrote it."""
    for folder in folders:
        remove_marked(folder, run)
    _waiting.pop(run, None)


def forget_outputs(run: str) -> None:
    """Let the outputs of a run stay, whatever happens to this worker: they are about to get their names."""
    _waiting.pop(run, None)


def _is_ending() -> bool:
    """Return whether this worker is about to end, as it does when its scheduler is lost."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        return str(distributed.get_worker().status.name) in ENDING
    except ValueError:  # no worker
        return False


def let_go_outputs(run: str, folders: Sequence[str]) -> None:
    """Let the outputs of a run stay as they are, in place or kept. Runs on workers."""
    for folder in folders:
        let_go(folder, run)


@atexit.register
def _remove_waiting() -> None:
    """Delete what waits for its name when the worker ends: nobody may be left who could do it later."""
    for names in _waiting.values():
        for name in names:
            remove(name)
    let_go_all()


FindPlaces = Callable[[str, Sequence[int]], Mapping[str, Place]]


class ScoredParts:
    """Collects what workers found, part by part, in their order. It holds no rows: of a query only a hash.

    find_places : gets a part and hashes of query ids; returns part and line of the first row of each, by id
    different   : hashes with two parts in which they are those of different queries; more are added
    """

    def __init__(
        self,
        model: Ensemble,
        source: str,
        find_places: FindPlaces,
        can_group: bool,
        different: set[tuple[int, int, int]],
    ) -> None:
        self._different = different
        self.n_rows = 0
        self.staged: list[StagedFile] = []
        self.empty: list[str] = []
        self._model, self._source, self._find_places, self._can_group = model, source, find_places, can_group
        self._paths: list[str] = []
        self._codes: list[UInt64Array] = []
        self._n_codes = self._n_checked = 0
        self._tables: dict[bool, FeatureTable] = {}  # by whether features have names
        self._told: dict[tuple[str, bool], list[str]] = {}  # the parts of each text
        self._repeating: PartScored | None = None
        self._n_repeated = 0

    def add(self, found: PartScored) -> bool:
        """Take what was found in the next part; return whether `refuse_spanning` is to be called now."""
        self.n_rows += found.n_rows
        self.staged.append(found.staged)
        if not found.n_rows:
            self.empty.append(found.path)
        self._paths.append(found.path)
        self._join_features(found)
        for message in found.messages:
            self._told.setdefault(message, []).append(found.path)
        if found.repetition is not None:
            self._repeating = self._repeating or found
            self._n_repeated += found.repetition.n_rows
        self._codes.append(found.query_codes)
        self._n_codes += len(found.query_codes)
        if self._n_codes <= 2 * self._n_checked:  # so that all checks together cost as much as two of the last
            return False
        self._n_checked = self._n_codes
        return next(self._spanning(), None) is not None

    def _spanning(self) -> Iterator[tuple[int, int, int]]:
        return (span for span in spanning_parts(self._codes) if span not in self._different)

    def _join_features(self, found: PartScored) -> None:
        table = self._tables.setdefault(found.names is not None, FeatureTable())
        if found.names is not None:
            table.register_names(list(found.names))
        else:
            table.register(found.ids)
        if found.is_table:
            table.of_tables[self._source] = np.zeros(0, np.int64)
        for index, met in found.ignored.items():
            table.ignored[index] = met or table.ignored.get(index, False)

    def refuse_spanning(self) -> None:
        """Raise DataError when two parts have rows of one query, naming both places."""
        for span in self._spanning():
            code, *pair = span
            refuse_repeated((self._find_places(self._paths[part], [code]) for part in pair), self._can_group)
            self._different.add(span)

    def messages(self) -> list[tuple[str, bool]]:
        """Return what the user is to be told, and whether it is a warning."""
        found = []
        for (text, is_warning), paths in self._told.items():
            more = f" and {counted(len(paths) - 1, 'more part')}" if paths[1:] else ""
            found.append((f"{paths[0]}{more}: {text}", is_warning))
        for table in self._tables.values():
            if unmet := table.never_met():
                found.append((f"{self._source}: {unmet}", True))
        for table in self._tables.values():
            matcher = FeatureMatcher(self._model)
            matcher.column_map(table.ids, table.names)
            matcher.tables = dict.fromkeys(table.of_tables, table.ids)  # a column that a part has is there
            found += [(text, True) for text in matcher.warnings(self._source)]
        if (first := self._repeating) is not None and first.repetition is not None:
            joined = first.repetition._replace(n_rows=self._n_repeated)
            found.append((joined.warning(first.path), True))
        return list(dict.fromkeys(found))
