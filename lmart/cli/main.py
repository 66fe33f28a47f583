"""The lmart command: finds the subcommand, and turns every outcome into its exit status."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from lmart import __version__
from lmart.cli import signals
from lmart.cli.command import ParsingCommand, usage_message
from lmart.cli.completion import ASKED, SHELLS, script_of, split_line
from lmart.cli.help import program_page
from lmart.cli.options.types import Choice
from lmart.cli.terminal.console import Console, error, write_line
from lmart.descriptors import forget_what_was_written, what_was_written
from lmart.errors import DataError, ExitStatus, LmartError, either, quote
from lmart.foreign_names import meant

COMMANDS = ("train", "predict", "eval", "show", "convert", "compile")
PROGRAM = "lmart"


class LmartGroup(ParsingCommand, click.Group):
    """Imports a command's file when it is called or listed, and is the one place where errors become lines."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help of the program."""
        return program_page(ctx, {int(status): status.brief for status in ExitStatus})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, whose file is imported now; None when there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: Any = importlib.import_module(f"lmart.cli.{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name."""
        word = args[0]
        if word not in COMMANDS and not word.startswith("-") and not ctx.resilient_parsing:
            words = [*COMMANDS, "help", "version", "--completion", "--version"]
            likely = [quote(f"lmart {name}") for name in meant("command", word, words)]
            hint = f"; perhaps {' or '.join(likely)}" if likely else ""
            raise click.UsageError(f"no such command {quote(word)}{hint}", ctx)
        return super().resolve_command(ctx, args)

    # Click's own main adds a blank line when interrupted, and prints usage over several lines.
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and raise SystemExit with the status."""
        arguments = list(sys.argv[1:] if args is None else args)
        asking = os.environ.get(ASKED)
        if not asking:
            arguments = _without_words(arguments)
        Console.newest, Console.shows_time = None, False
        forget_what_was_written()
        try:
            status = _complete(self, asking, arguments) if asking else self._run(arguments, extra)
            signals.flush_output()
        except (Exception, KeyboardInterrupt) as fault:
            if Console.newest is not None:
                Console.newest.close()
            interrupt = signals.interrupt_behind(fault)
            if interrupt is None and isinstance(fault, Exception):
                status = _report(fault, arguments)
            elif interrupt is not None:
                status = _report_interrupt(interrupt, arguments)
        sys.exit(status)

    def _run(self, arguments: list[str], extra: dict[str, Any]) -> int:
        try:
            with self.make_context(PROGRAM, arguments, **extra) as context:
                self.invoke(context)
        except click.exceptions.Exit as ending:  # --help and --version
            return ending.exit_code
        return ExitStatus.DONE


def _complete(program: click.Group, shell: str, arguments: list[str]) -> int:
    """Print what may stand at the cursor, for the script of a shell, and return the exit status.

    bash gives the line as one argument, as it cuts words at @ and = and :; the others give the words.
    """
    from lmart.cli.completion.candidates import candidates

    words = split_line(arguments[0] if arguments else "") if shell == "bash" else arguments
    *earlier, current = words or [""]
    click.echo(candidates(program, earlier, current).lines(), nl=False)
    return ExitStatus.DONE


def _without_words(arguments: list[str]) -> list[str]:
    """Return the arguments with `help`, `help COMMAND` and `version` written as the options that they stand for."""
    word, *rest = arguments or [""]
    if word == "help":
        return [*[name for name in rest[:1] if not name.startswith("-")], "--help"]
    return ["--version", *rest] if word == "version" else arguments


def _report_interrupt(interrupt: KeyboardInterrupt, arguments: list[str]) -> int:
    """Say how far the work was and what stands where, unless that is silenced, and return the exit status."""
    console = Console.newest
    quiet = console.quiet if console is not None else 2 * bool(signals.VERY_QUIET.intersection(arguments))
    if quiet < 2:
        command = next((name for name in arguments[:1] if name in COMMANDS), None)
        where = f" during {command}" if command else ""
        if console is not None and (done := console.how_far()):
            where = f" after {done}"
        kept = f"; {console.kept}" if console is not None and console.kept else ""
        write_line(f"lmart: {signals.called(interrupt)}{where}; {_what_stands_where()}{kept}")
    return signals.status_of(interrupt)


def _what_stands_where() -> str:
    complete_files = [name for name, complete in what_was_written().items() if complete]
    parts = [name for name, complete in what_was_written().items() if not complete]
    state = [f"wrote {' and '.join(complete_files)}"] if complete_files else []
    state += [f"what was written to {' and '.join(parts)} is not complete"] if parts else []
    return "; ".join(state) or "nothing was written"


def _report(fault: Exception, arguments: list[str]) -> int:
    """Say what went wrong, one line a fault, and return the exit status; or raise it again: our mistake."""
    if isinstance(fault, BrokenPipeError):
        return ExitStatus.PIPE_CLOSED
    if isinstance(fault, click.ClickException):
        error(usage_message(fault) + _see_help(arguments))
        return fault.exit_code
    if isinstance(fault, LmartError):
        _report_refusal(fault, arguments)
        return fault.status
    if isinstance(fault, MemoryError):
        error(f"not enough memory{f' ({fault})' if str(fault) else ''}; use less data or a machine with more of it")
        return ExitStatus.FAILED
    if isinstance(fault, OSError) and fault.errno is not None:
        error(_fault_of_the_system(fault))
        return ExitStatus.FAILED
    if package := _failed_import(fault):
        error(
            f"the package {package} cannot be loaded ({_first_cause(fault)}): there is not enough memory (see "
            "'ulimit -v'), or the installation is damaged; allow more memory, or install lmart anew"
        )
        return ExitStatus.FAILED
    raise fault


def _failed_import(fault: Exception) -> str:
    """Return the package other than lmart whose import failed with this exception; empty if it is another failure.

    A library that does not fit into memory is an ImportError, from llvmlite an OSError without a number, and further
    modules of a package that is loaded in part fail in many ways. In lmart's own modules it is a mistake of ours.
    """
    package = ""
    trace = fault.__traceback__
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if trace.tb_frame.f_code.co_name == "<module>" and name not in ("lmart", "__main__"):
            package = name
        trace = trace.tb_next
    if not package and isinstance(fault, ImportError):
        package = (fault.name or "").partition(".")[0]
    return "" if package == "lmart" else package


def _first_cause(fault: BaseException) -> str:
    """Return the first line of the exception that started a chain of them."""
    while (cause := fault.__cause__ or fault.__context__) is not None:
        fault = cause
    return next((line.strip()[:200] for line in str(fault).splitlines() if line.strip()), type(fault).__name__)


def _report_refusal(fault: LmartError, arguments: list[str]) -> None:
    error(str(fault) + (_see_help(arguments) if fault.status == ExitStatus.USAGE else ""))
    for further in fault.more if isinstance(fault, DataError) else ():
        error(str(further))


def _see_help(arguments: list[str]) -> str:
    command = [PROGRAM, *(name for name in arguments[:1] if name in COMMANDS)]
    return f"; see '{' '.join(command)} --help'"


def _fault_of_the_system(fault: OSError) -> str:
    from lmart.streams.common import cannot_write

    # Named files are opened by lmart.streams, which names them; what is left is printing.
    of_printing = fault.filename is None and fault.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EBADF)
    if of_printing or fault.filename == signals.STANDARD_OUTPUT:
        return str(cannot_write(fault, "-"))
    name = os.fsdecode(fault.filename) if isinstance(fault.filename, bytes) else fault.filename
    return ("" if name is None else f"{name}: ") + os.strerror(fault.errno or 0)


@click.group(PROGRAM, cls=LmartGroup, invoke_without_command=True, add_help_option=False)
@click.option(
    "--completion",
    "shell",
    type=Choice(SHELLS),
    metavar="SHELL",
    help=f"Print the script that completes commands in {either(SHELLS)}.",
)
@click.version_option(__version__, "-V", "--version", message=f"{PROGRAM} %(version)s", help="Show the version.")
@click.help_option("-h", "--help", help="Show this help.")
@click.pass_context
def main(context: click.Context, shell: str | None) -> None:
    """Train, score, evaluate, show and convert LambdaMART ranking models."""
    if shell is not None:
        if context.invoked_subcommand is not None:
            raise click.UsageError("--completion prints a script and takes no command")
        click.echo(script_of(shell), nl=False)
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())
