"""What `lmart predict --dask` does in place of reading, scoring and writing in this process.

At its end all outputs get their names, whatever happens to workers meanwhile.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import cast

from lmart.cli.predict_request import PredictInputs, PredictOutput
from lmart.cli.signals import STOPPING
from lmart.cli.terminal.console import Console
from lmart.descriptors import remember
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
    let_go_outputs,
    remove_outputs,
    score_part,
)
from lmart.errors import LmartError, OutputError, counted, quote, visible
from lmart.formats.documents.reading import for_models, refuse_or_tell_empty, source_name
from lmart.formats.models.model_files import read_model
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import DATA_FORMATS, RESULT_FORMATS
from lmart.scoring.explain import Explainer
from lmart.streams.common import cannot_be_replaced, without_compression
from lmart.streams.outputs import StagedFile, are_seen, check_staged, put_in_place
from lmart.threads import chunks

PUT_AT_ONCE = 1000  # outputs that one task puts in place
# The same once a worker is lost: so few that the task is done before the cluster is looked at again, and refused.
PUT_AFTER_LOSS = 20
TRIES = 3  # of such a task, which may meet the lost worker
TOLD = 0.2  # seconds in which workers hear that the run is over when one of them may be stopped, and never hears it
# Of data by content, which have no format of their own.
OTHER_SUFFIXES = (".txt", ".dat")


def predict_parts(
    inputs: PredictInputs, output: PredictOutput, read_options: ReadOptions, cluster: Cluster, console: Console
) -> None:
    """Score each file of the data on a worker, which writes a file for it; all of them appear together."""
    (found,) = find_parts(cluster, [inputs.data])
    parts = [part.path for part in found]
    names = output_names(inputs.data, parts, seen_by_workers(cluster, output.out))
    read = [*parts, seen_by_workers(cluster, inputs.model)]
    (folders,) = cluster.run_tasks(check_staged, [(names, read)])
    job = _read_job(inputs, output, read_options, cluster.run, console)
    with _temporaries(cluster, folders) as waiting:
        with console.progress(len(parts), "parts", plain=False) as progress:
            scored = _score(cluster, job, parts, names, progress.update, folders)
        refuse_or_tell_empty(scored.empty, len(parts), read_options.telling(console.notice, console.warning))
        cluster.check()
        fault: OutputError | None = None
        try:
            with interrupts_later():
                cluster.tell(forget_outputs, cluster.run)
                waiting.are_removed = False
                fault = put_all_in_place(cluster, scored.staged, output.out)
                cluster.tell(let_go_outputs, cluster.run, folders)
                let_go_outputs(cluster.run, folders)
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
    """Score parts until two of them may have rows of one query; return whether all were scored."""
    # Closing it lets the cluster forget the parts that are not scored yet.
    with closing(cast("Generator[PartScored]", cluster.run_tasks(score_part, calls))) as found:
        for done, part in enumerate(found, 1):
            is_doubtful = scored.add(part)
            update(done)
            if is_doubtful and done < len(calls):
                return False
    return True


def _places(cluster: Cluster, shared: object, part: str, codes: Sequence[int]) -> dict[str, Place]:
    """Ask a worker where queries stand in a part."""
    (answer,) = cluster.run_tasks(find_places, [(shared, part, codes)])
    return answer


def _read_job(
    inputs: PredictInputs, output: PredictOutput, read_options: ReadOptions, run: str, console: Console
) -> ScoringJob:
    """Read the model and return what all parts have in common; ModelError when it cannot be explained."""
    model = read_model(inputs.model, tell=console.notice)
    if output.explain:
        Explainer(model, inputs.model)  # refused here rather than by every worker
    options = for_models(read_options, [model])
    return ScoringJob(
        run, model, inputs.model, options, output.form, output.top, output.tag, output.explain, inputs.strict
    )


def output_names(data: str, parts: Sequence[str], out: str) -> list[str]:
    """Return the name of the output of each part; OutputError when two parts would have one.

    A * in the last component of `out` stands for the name of the part, without what its format and compression add.
    """
    folder, name = os.path.split(out)
    if "*" not in name:
        if len(parts) > 1:
            what = f"is 1 file, but --data {quote(data)} is {counted(len(parts), 'file')}"
            raise OutputError(f"{what}; give one file a part, as in --out 'scores/*.txt'", out)
        return [out]
    part_of: dict[str, str] = {}
    for part in parts:
        own = os.path.join(folder, name.replace("*", stem(part)))
        if (other := part_of.setdefault(own, part)) != part:
            what = f"would be the output of {visible(other)} and of {visible(part)}"
            raise OutputError(f"{what}; rename one of them, or score them one after the other", own)
    return list(part_of)


def stem(path: str) -> str:
    """Return the name of a file of data without folder, and without what its compression and its format add."""
    name = os.path.basename(path)
    name = without_compression(name)[0] or name
    data = (*OTHER_SUFFIXES, *(suffix for form in DATA_FORMATS.values() for suffix in form.suffixes))
    ending = next((suffix for suffix in data if name.lower().endswith(suffix) and len(name) > len(suffix)), "")
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
            ended = begin(cluster.tell, end_run, cluster.run, folders)
            with suppress(TimeoutError):  # then it goes on while the cluster is left, which tells workers once more
                ended.result(TOLD if type(fault) is LmartError else None)
            remove_outputs(cluster.run, folders)  # no worker may be left, and this process may see the same files
        raise


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Let signals that ask the process to end wait until the work in this context is done.

    Outside the main thread, which answers signals, nothing is changed.
    """
    met: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        met.append(number)

    answers = {}
    if threading.current_thread() is threading.main_thread():
        numbers = (getattr(signal, name, None) for name in (*STOPPING, "SIGALRM"))
        answers = {
            number: signal.getsignal(number)
            for number in numbers
            if number is not None and callable(signal.getsignal(number))
        }
    try:
        for number in answers:
            signal.signal(number, note)
        yield
    finally:
        for number, answer in answers.items():
            signal.signal(number, answer)
        for number in met[:1]:
            signal.raise_signal(number)


def put_all_in_place(cluster: Cluster, staged: Sequence[StagedFile], out: str) -> OutputError | None:
    """Give all outputs their names; return why some cannot get them: these are kept."""
    remember(out, complete=False)
    try:
        try:
            list(cluster.run_tasks(put_in_place, _calls(staged, PUT_AT_ONCE)))
        except OutputError:
            raise
        except Exception as fault:  # a worker was lost just now, or the scheduler
            _put_the_rest(cluster, staged, fault)
    except OutputError as fault:
        return fault
    remember(out, complete=True)
    return None


def _calls(staged: Sequence[StagedFile], at_once: int) -> list[tuple[Sequence[StagedFile]]]:
    return [(staged[first:last],) for first, last in chunks(len(staged), at_once)]


def _put_the_rest(cluster: Cluster, staged: Sequence[StagedFile], lost: Exception) -> None:
    """Give outputs their names that have none yet, in this process if it sees them, else on workers that are left.

    OutputError when some cannot get them.
    """
    if are_seen(staged):
        put_in_place(staged)
        return
    n_done = 0
    for call in _calls(staged, PUT_AFTER_LOSS):
        if not _is_done(cluster, call):
            why = (lost.message if isinstance(lost, LmartError) else str(lost)).partition(";")[0]
            first, more = staged[n_done], len(staged) - n_done - 1
            others = f" (and at most {counted(more, 'more file')} likewise)" if more else ""
            kept = f"{visible(first.temporary)}{others}, unless it has its name by now"
            raise cannot_be_replaced(first.path, OSError(why), kept) from None
        n_done += len(call[0])


def _is_done(cluster: Cluster, call: tuple[Sequence[StagedFile]]) -> bool:
    """Return whether a worker that is left has given outputs their names."""
    for _ in range(TRIES):
        try:
            next(cluster.run_tasks(put_in_place, [call]))  # not to its end, where the lost worker is told of
            return True
        except OutputError:
            raise
        except Exception:  # the lost worker was met again
            continue
    return False
