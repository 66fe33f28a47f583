"""lmart compile: all machine code, before it is needed; and compiling while another command begins its work."""

from __future__ import annotations

import os
from dataclasses import dataclass

import click

from lmart.cli.command import HelpfulCommand
from lmart.cli.options.declare import group
from lmart.cli.options.shared import Running, running_options
from lmart.cli.signals import is_process_ours
from lmart.cli.terminal.console import Console
from lmart.errors import LmartError
from lmart.settings.declared import declared

EPILOG = """\b
Examples:
  lmart compile
  lmart compile --generic --quiet
"""

HELP = """Compile everything that any command could need, and print the folder that keeps it.

Without it, each command compiles what it needs on first use, which takes some seconds. The folder is that of
NUMBA_CACHE_DIR, or the first of those in lmart(1) that can be written to. Users who can read
the folder start without compiling if it belongs to root or to them; nothing is written to it then, so it may be
read-only. If root runs this without NUMBA_CACHE_DIR, the code also goes to the folder of the program, where it serves
all users.

Machine code serves one version of lmart, Python and Numba, and one kind of processor. --generic makes code for all
processors of this architecture (such as x86-64), which lmart uses where it finds none for the processor at hand. It
gives the same results, and runs 10 to 33 % slower."""


@dataclass(frozen=True)
class CompileOptions:
    """What is compiled."""

    generic: bool = declared(False, "Compile for any processor of this architecture.")


@click.command("compile", cls=HelpfulCommand, help=HELP, short_help="Compile everything ahead of time.", epilog=EPILOG)
@group("options", CompileOptions)
@running_options
def command(options: CompileOptions, running: Running) -> None:
    """Compile all kernels; the help text is HELP."""
    if options.generic:  # read when numba is loaded
        os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}

    # Only now, as these load numba.
    from lmart.kernels.numba_support.code_cache import cache_folder, config
    from lmart.kernels.numba_support.compile_ahead import compile_all

    console = Console(running.quiet)
    if config.DISABLE_JIT:
        raise LmartError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")
    folder = cache_folder()
    if folder is None:
        raise LmartError("no folder can keep machine code; set NUMBA_CACHE_DIR to one that can be written to")
    with console.progress(0, "kernels", plain=False) as progress:

        def tell(done: int, total: int, share: float) -> None:
            progress.total = total
            progress.update(done, part=share * total - done)  # they take very different times

        failures = compile_all(running.thread_count(console), tell)
    if failures:
        raise LmartError(f"{len(failures)} kernels cannot be compiled, such as {failures[0]}")
    click.echo(folder)


def compile_ahead(name: str, threads: int) -> None:
    """Begin to compile what a command needs and earlier runs did not keep, before its first thread starts."""
    if is_process_ours():
        from lmart.kernels.numba_support.compile_ahead import start

        start(name, threads)
