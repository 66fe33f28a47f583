"""What `lmart predict --dask` does in place of reading, scoring and writing in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from lmart.cli.predict_output import PredictOutput
from lmart.cli.terminal.console import Console
from lmart.descriptors import remember
from lmart.distributed.cluster import Cluster
from lmart.distributed.parts import find_parts, seen_by_workers
from lmart.distributed.runs import give_up
from lmart.distributed.scored_parts import ScoredParts
from lmart.distributed.scoring import ScoringJob, find_places, forget_outputs, remove_outputs, score_part
from lmart.errors import LmartError, OutputError, counted, quote, visible
from lmart.formats.documents.reading import for_models, source_name
from lmart.formats.models.model_files import read_model
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS, RESULT_FORMATS
from lmart.scoring.explain import Explainer
from lmart.streams.common import COMPRESSED_SUFFIXES
from lmart.streams.staged import StagedFile, check_staged, put_in_place
from lmart.threads import chunks

PUT_AT_ONCE = 1000  # outputs that one task puts in place
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
    """Score each file of the data on a worker, which writes a file for it; all of them appear together.

    request : what the command line asks for
    cluster : of the run
    console : where messages go
    """
    output = request.output
    (found,) = find_parts(cluster, [request.data])
    parts = [one.path for one in found]
    names = output_names(request.data, parts, seen_by_workers(cluster, output.out))
    inputs = [*parts, seen_by_workers(cluster, request.model)]
    (folders,) = cluster.run_tasks(check_staged, [(names, inputs)])
    job = _read_job(request, cluster.run)
    shared = cluster.share(job)

    def places(part: str, codes: Sequence[int]) -> dict[str, tuple[str, int]]:
        """Ask a worker where queries stand in a part."""
        (answer,) = cluster.run_tasks(find_places, [(shared, part, codes)])
        return answer

    can_group = not RESULT_FORMATS[output.form].is_named
    scored = ScoredParts(job.model, source_name(parts), places, can_group)
    with _temporaries(cluster, folders):
        with console.progress(len(parts), "parts", plain=False) as progress:
            calls = [(shared, part, name) for part, name in zip(parts, names, strict=True)]
            for done, one in enumerate(cluster.run_tasks(score_part, calls), 1):
                scored.add(one)
                progress.update(done)
        scored.refuse_spanning()
        cluster.check()
        fault = _put_in_place(cluster, scored.staged, output.out)
    if fault is not None:
        raise fault
    console.done(output.written(scored.n_rows), names[0] if len(names) == 1 else counted(len(names), "file"))
    for text, is_warning in scored.messages():
        (console.warning if is_warning else console.notice)(text)


def _read_job(request: PartsRequest, run: str) -> ScoringJob:
    """Read the model and return what all parts have in common.

    request : what the command line asks for
    run     : name of the run
    ModelError when it is no sound model, or cannot be explained.
    """
    model, output = read_model(request.model), request.output
    if output.explain:
        Explainer(model, request.model)  # refused here rather than by every worker
    options = for_models(request.read_options, [model])
    return ScoringJob(
        run, model, request.model, options, output.form, output.top, output.tag, output.explain, request.strict
    )


def output_names(data: str, parts: Sequence[str], out: str) -> list[str]:
    """Return the name of the output of each part; OutputError when two parts would give one.

    data  : the value of --data
    parts : its files
    out   : the value of --out; a * in the last component stands for the name of the part, without what its format and
            compression add
    """
    folder, name = os.path.split(out)
    if "*" not in name:
        if len(parts) > 1:
            what = f"--data {quote(data)} is {counted(len(parts), 'file')}, and --out {quote(out)} one"
            raise click.UsageError(f"{what}; give one file a part, as in --out 'scores/*.txt'")
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
    data = (*OTHER_SUFFIXES, *(suffix for one in DATA_FORMATS.values() for suffix in one.suffixes))
    for suffixes in (COMPRESSED_SUFFIXES, data):
        ending = next((one for one in suffixes if name.lower().endswith(one) and len(name) > len(one)), "")
        name = name[: len(name) - len(ending)]
    return name


@contextmanager
def _temporaries(cluster: Cluster, folders: Sequence[str]) -> Iterator[None]:
    """Delete what has no name yet when the work ends early.

    cluster : of the run
    folders : of the outputs, as workers see them
    """
    try:
        yield
    except BaseException:
        cluster.tell(give_up, cluster.run)  # all of them, before anything is deleted
        cluster.tell(remove_outputs, cluster.run, folders)
        remove_outputs(cluster.run, folders)  # no worker may be left, and this process may see the same files
        raise
    cluster.tell(forget_outputs, cluster.run)


def _put_in_place(cluster: Cluster, staged: Sequence[StagedFile], out: str) -> OutputError | None:
    """Give all outputs their names; return why one cannot get it: it and those that follow are kept.

    cluster : of the run
    staged  : the outputs, all finished
    out     : the value of --out
    """
    calls = [(staged[first:last],) for first, last in chunks(len(staged), PUT_AT_ONCE)]
    remember(out, complete=False)
    for again in (False, True):
        try:
            list(cluster.run_tasks(put_in_place, calls))
            break
        except OutputError as fault:
            return fault
        except LmartError:  # a worker was lost just now: another one finishes it
            if again:
                raise
    remember(out, complete=True)
    return None
