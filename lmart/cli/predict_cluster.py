"""What `lmart predict --dask` does in place of reading, scoring and writing in this process."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from lmart.cli.predict_naming import interrupts_later, put_all_in_place
from lmart.cli.predict_output import PredictOutput
from lmart.cli.terminal.console import Console
from lmart.distributed.cluster import Cluster
from lmart.distributed.connecting import begin
from lmart.distributed.query_places import Place
from lmart.distributed.reading import find_parts, seen_by_workers
from lmart.distributed.scoring import (
    PartScored,
    ScoredParts,
    ScoringJob,
    end_run,
    find_places,
    forget_outputs,
    give_up_scoring,
    remove_outputs,
    score_part,
)
from lmart.errors import LmartError, OutputError, counted, quote, visible
from lmart.formats.documents.reading import for_models, refuse_or_tell_empty, source_name
from lmart.formats.models.model_files import read_model
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS, RESULT_FORMATS
from lmart.scoring.explain import Explainer
from lmart.streams.common import without_compression
from lmart.streams.outputs import check_staged

TOLD = 0.2  # seconds in which workers hear that the run is over when one of them may be stopped, and never hears it
# Of data by content, which have no format of their own.
OTHER_SUFFIXES = (".txt", ".dat")


@dataclass(frozen=True)
class PartsRequest:
    """What the command line asks for.

    model        : the model file
    data         : the files of rows, or a pattern
    output       : what is written, and where
    strict       : refuse data whose features are not those of the model
    read_options : how the rows are read
    """

    model: str
    data: str
    output: PredictOutput
    strict: bool
    read_options: ReadOptions


def predict_parts(request: PartsRequest, cluster: Cluster, console: Console) -> None:
    """Score each file of the data on a worker, which writes a file for it; all of them appear together."""
    output = request.output
    (found,) = find_parts(cluster, [request.data])
    parts = [one.path for one in found]
    names = output_names(request.data, parts, seen_by_workers(cluster, output.out))
    inputs = [*parts, seen_by_workers(cluster, request.model)]
    (folders,) = cluster.run_tasks(check_staged, [(names, inputs)])
    job = _read_job(request, cluster.run, console)
    with _temporaries(cluster, folders) as waiting:
        with console.progress(len(parts), "parts", plain=False) as progress:
            scored = _score(cluster, job, parts, names, progress.update, folders)
        refuse_or_tell_empty(scored.empty, len(parts), request.read_options.telling(console.notice, console.warning))
        cluster.check()
        fault: OutputError | None = None
        try:
            with interrupts_later():
                cluster.tell(forget_outputs, cluster.run)
                waiting.are_removed = False
                fault = put_all_in_place(cluster, scored.staged, output.out)
        except KeyboardInterrupt:
            if fault is not None:
                console.warning(str(fault))  # where the outputs are
            raise
    if fault is not None:
        raise fault
    console.done(output.written(scored.n_rows), names[0] if len(names) == 1 else counted(len(names), "file"))
    for text, is_warning in scored.messages():
        (console.warning if is_warning else console.notice)(text)


def _score(
    cluster: Cluster,
    job: ScoringJob,
    parts: Sequence[str],
    names: Sequence[str],
    update: Callable[[int], None],
    folders: Sequence[str],
) -> ScoredParts:
    """Score all parts, and return what was found; DataError when two of them have rows of one query.

    Workers are asked where queries stand once they no longer score, so that this does not wait for all of it. When the
    queries are different ones of one hash, which is rare, all parts are scored again.
    """
    can_group = not RESULT_FORMATS[job.form].is_named
    different: set[tuple[int, int, int]] = set()
    for attempt in itertools.count():
        shared = cluster.share(replace(job, attempt=attempt))
        scored = ScoredParts(job.model, source_name(parts), partial(_places, cluster, shared), can_group, different)
        calls = [(shared, part, name) for part, name in zip(parts, names, strict=True)]
        is_done = _score_until_doubt(cluster, calls, scored, update)
        if not is_done:
            cluster.tell(give_up_scoring, job.run, attempt)
        scored.refuse_spanning()
        if is_done:
            break
        cluster.tell(remove_outputs, job.run, folders)
        remove_outputs(job.run, folders)
    return scored


def _score_until_doubt(
    cluster: Cluster, calls: Sequence[tuple[object, str, str]], scored: ScoredParts, update: Callable[[int], None]
) -> bool:
    """Score parts until two of them may have rows of one query; return whether all were scored.

    cluster : of the run
    calls   : the arguments of `score_part` for each part
    scored  : takes what is found
    update  : gets the number of parts that are done
    """
    # Closing it lets the cluster forget the parts that are not scored yet.
    with closing(cast("Generator[PartScored]", cluster.run_tasks(score_part, calls))) as found:
        for done, one in enumerate(found, 1):
            is_doubtful = scored.add(one)
            update(done)
            if is_doubtful and done < len(calls):
                return False
    return True


def _places(cluster: Cluster, shared: object, part: str, codes: Sequence[int]) -> dict[str, Place]:
    """Ask a worker where queries stand in a part."""
    (answer,) = cluster.run_tasks(find_places, [(shared, part, codes)])
    return answer


def _read_job(request: PartsRequest, run: str, console: Console) -> ScoringJob:
    """Read the model and return what all parts have in common.

    ModelError when it is no sound model, or cannot be explained.
    """
    model, output = read_model(request.model, tell=console.notice), request.output
    if output.explain:
        Explainer(model, request.model)  # refused here rather than by every worker
    options = for_models(request.read_options, [model])
    return ScoringJob(
        run, model, request.model, options, output.form, output.top, output.tag, output.explain, request.strict
    )


def output_names(data: str, parts: Sequence[str], out: str) -> list[str]:
    """Return the name of the output of each part; OutputError when two parts would have one.

    data  : the value of --data
    parts : its files
    out   : the value of --out; a * in the last component stands for the name of the part, without what its format and
            compression add
    """
    folder, name = os.path.split(out)
    if "*" not in name:
        if len(parts) > 1:
            what = f"is 1 file, but --data {quote(data)} is {counted(len(parts), 'file')}"
            raise OutputError(f"{what}; give one file a part, as in --out 'scores/*.txt'", out)
        return [out]
    before: dict[str, str] = {}
    for part in parts:
        own = os.path.join(folder, name.replace("*", stem(part)))
        if (other := before.setdefault(own, part)) != part:
            what = f"would be the output of {visible(other)} and of {visible(part)}"
            raise OutputError(f"{what}; rename one of them, or score them one after the other", own)
    return list(before)


def stem(path: str) -> str:
    """Return the name of a file of data without folder, and without what its compression and its format add."""
    name = os.path.basename(path)
    name = without_compression(name)[0] or name
    data = (*OTHER_SUFFIXES, *(suffix for one in DATA_FORMATS.values() for suffix in one.suffixes))
    ending = next((one for one in data if name.lower().endswith(one) and len(name) > len(one)), "")
    return name[: len(name) - len(ending)]


class _Waiting:
    """Whether outputs that wait for their names are removed when the work ends early."""

    are_removed = True


@contextmanager
def _temporaries(cluster: Cluster, folders: Sequence[str]) -> Iterator[_Waiting]:
    """Delete what has no name yet when the work ends early, unless it is to be kept."""
    waiting = _Waiting()
    try:
        yield waiting
    except BaseException as fault:
        if waiting.are_removed:
            told = begin(cluster.tell, end_run, cluster.run, folders)
            with suppress(TimeoutError):  # then it goes on while the cluster is left, which tells workers once more
                told.result(TOLD if type(fault) is LmartError else None)
            remove_outputs(cluster.run, folders)  # no worker may be left, and this process may see the same files
        raise
