"""lmart compile: all machine code, before it is needed."""

from __future__ import annotations

import os

import click

from lmart.cli.help.command import HelpfulCommand
from lmart.cli.options.common import quiet_option, thread_count, threads_option
from lmart.cli.terminal.console import Console
from lmart.errors import LmartError

EPILOG = """\b
Examples:
  lmart compile
  lmart compile --generic --quiet
"""

HELP = """Compile everything that any command could need, and print the folder that keeps it.

Without this, each command compiles what it needs when it is first used, for some seconds. The folder is that of
NUMBA_CACHE_DIR, or the first of those in lmart(1) that can be written to. Whoever may read the folder, and trusts its
owner, root or themselves, starts without compiling; nothing is written to it then, so it may be read-only. Run by root
without NUMBA_CACHE_DIR, it also puts the code into the folder of the program, where it serves all users.

Machine code serves one version of lmart, Python and Numba, and one kind of processor. --generic makes it for all
processors of this architecture (as x86-64): lmart takes it where there is none for the very processor. Results are the
same, and speed is less, by a tenth to a third."""


@click.command("compile", cls=HelpfulCommand, help=HELP, short_help="Compile everything ahead.", epilog=EPILOG)
@click.option("--generic", is_flag=True, help="For any processor of this architecture, as in an image.")
@threads_option
@quiet_option
def command(generic: bool, threads: int | None, quiet: int) -> None:
    """Compile all kernels; the help text is HELP.

    generic : for any processor of this architecture
    threads : processes that compile; None: one for each processor
    quiet   : how often --quiet is given
    """
    if generic:  # read when numba is loaded
        os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}

    # Only now, as these load numba.
    from lmart.kernels.numba_support.code_cache import cache_folder, config
    from lmart.kernels.numba_support.compile_ahead import compile_all

    console = Console(quiet)
    if config.DISABLE_JIT:
        raise LmartError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")
    folder = cache_folder()
    if folder is None:
        raise LmartError("no folder can keep machine code; set NUMBA_CACHE_DIR to one that can be written to")
    with console.progress(0, "kernels", plain=False) as progress:

        def tell(done: int, total: int, share: float) -> None:
            progress.total = total
            progress.update(done, part=share * total - done)  # they take very different times

        failures = compile_all(thread_count(threads, console.notice), tell)
    if failures:
        raise LmartError(f"{len(failures)} kernels cannot be compiled, such as {failures[0]}")
    click.echo(folder)
