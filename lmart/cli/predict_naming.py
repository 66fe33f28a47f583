"""The end of `lmart predict --dask`: all outputs get their names, whatever happens to workers meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from lmart.cli.signals import STOPPING
from lmart.descriptors import remember
from lmart.distributed.cluster import Cluster
from lmart.errors import LmartError, OutputError, counted, visible
from lmart.streams.common import cannot_be_replaced
from lmart.streams.outputs import StagedFile, are_seen, put_in_place
from lmart.threads import chunks

PUT_AT_ONCE = 1000  # outputs that one task puts in place
# The same once a worker is lost: so few that the task is done before the cluster is looked at again, and refused.
PUT_AFTER_LOSS = 20
TRIES = 3  # of such a task, which may meet the lost worker


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Let signals that ask the process to end wait until the work in this context is done.

    Outside the main thread, which answers signals, nothing is changed.
    """
    met: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        met.append(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        known = (getattr(signal, name, None) for name in (*STOPPING, "SIGALRM"))
        before = {one: signal.getsignal(one) for one in known if one is not None and callable(signal.getsignal(one))}
    try:
        for number in before:
            signal.signal(number, note)
        yield
    finally:
        for number, answer in before.items():
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
