"""Compiling ahead of a command's work."""

from __future__ import annotations

from lmart.cli.signals import is_process_ours


def compile_ahead(command: str, threads: int) -> None:
    """Begin to compile what a command needs, while it works, as far as that is not kept from earlier runs.

    command : train, predict, eval or convert
    threads : that it uses
    Before the first thread is started.
    """
    if is_process_ours():
        from lmart.kernels.numba_support.compile_ahead import start

        start(command, threads)
