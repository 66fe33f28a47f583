"""Writing to file descriptors, which one call of the system may do by halves, and which outputs got something."""

from __future__ import annotations

import os

REMEMBERED = 16

_written: dict[str, bool] = {}  # the newest outputs by name, True: complete


def remember(output: str, complete: bool) -> None:
    """Note that an output got something, or all of it."""
    _written.pop(output, None)
    _written[output] = complete
    while len(_written) > REMEMBERED:
        del _written[next(iter(_written))]


def what_was_written() -> dict[str, bool]:
    """Return the newest outputs that got something, by name, True: complete."""
    return dict(_written)


def forget(output: str) -> None:
    """Take an output from the list."""
    _written.pop(output, None)


def forget_what_was_written() -> None:
    """Begin with an empty list."""
    _written.clear()


def write_some(descriptor: int, data: bytes | memoryview) -> int:
    """Write at least one byte of `data` and return how many were written; wait if a non-blocking descriptor is full."""
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:  # standard output may be a pipe or a terminal that somebody made non-blocking
            _wait_for_room(descriptor)


def _wait_for_room(descriptor: int) -> None:
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    poll.poll()
