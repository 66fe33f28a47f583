"""Options that several commands have: threads and messages, how data is read, and the cluster they run on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from lmart.cli.options.declare import F, group
from lmart.cli.terminal.console import Console
from lmart.decimals import whole
from lmart.distributed import Address
from lmart.errors import DataError, counted, quote
from lmart.formats.read_options import ReadOptions
from lmart.settings.declared import declared

MOST_PROCESSES = 1024
_SCHEDULER = re.compile(r"(tcp|tls|ws|wss)://[^/\s]+:\d+/?")
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",][^,]*)|)\s*(?:,|$)')


def _log_time(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Have lines of the log begin with the time, from now on."""
    Console.shows_time = value and not context.resilient_parsing
    return value


@dataclass(frozen=True)
class Running:
    """How a command runs."""

    threads: int | None = declared(
        None,
        "Number of threads.",
        "By default lmart uses all processors that it may use. The result never depends on it.",
        low=1,
        shown="all available",
    )
    quiet: int = declared(0, "Hide notices and progress; -qq hides warnings too.", flags=("-q", "--quiet"), count=True)
    log_time: bool = declared(
        False,
        "Begin each line of the log with the time.",
        "It stands before notices, progress, warnings and errors on standard error, in UTC, as "
        "YYYY-MM-DDThh:mm:ssZ. Errors in the command line itself may lack it.",
        is_eager=True,
        callback=_log_time,
    )

    def thread_count(self, console: Console) -> int:
        """Return how many threads to use: all this process may have, or fewer if asked; more are capped."""
        from lmart.threads import available_processors

        available = available_processors()
        if self.threads is not None and self.threads > available:
            console.notice(f"--threads {self.threads} is more than this process may use; using {available}")
        return available if self.threads is None else min(self.threads, available)


running_options = group("running", Running)


def strict_field() -> Any:
    """Return --strict of a command that scores data with a model."""
    return declared(
        False,
        "Refuse data whose features differ from the model's.",
        "It refuses data with features that the model does not have, and tables that lack a column of the model.",
    )


def _columns(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of comma-separated lists, each name plain or in quotes."""
    names = []
    for value in values:
        position = 0
        while position < len(value):
            item = _ITEM.match(value, position)
            if item is None:
                raise click.BadParameter(f"the quotes in {quote(value)} do not match; write '\"a,b\",c'")
            if item[1] is not None:
                names.append(item[1].replace('""', '"'))
            elif item[2] is not None:
                names.append(item[2].rstrip())
            position = item.end()
    return tuple(names)


data_options = group("read_options", ReadOptions, ignore_columns={"callback": _columns})
"""Add the options that say how data is read."""


def check_inputs(paths: Sequence[str | None], options: ReadOptions) -> None:
    """Raise a usage error when more than one of the inputs is '-', or options of reading contradict each other."""
    if options.group_by_qid and options.query_sizes is not None:
        raise click.UsageError("--group-by-qid collects queries by their ids, and with --query-sizes there are none")
    if sum(path == "-" for path in paths) > 1:
        raise click.UsageError("only one input can be '-' (standard input); give the others as files")


def check_page(html: str | None, train_report: str | None, title: str | None) -> None:
    """Raise a usage error for options of a page that is not written."""
    if train_report is not None and html is None:
        raise click.UsageError("--train-report is shown on the page; give --html too")
    if title is not None and html is None:
        raise click.UsageError("--title is that of the page; give --html too")


class AddressType(click.ParamType):  # type: ignore[type-arg]
    """Where a cluster is; ClusterOptions judges it, together with the options beside it."""

    name = "address"
    begins = (
        ("local:2", "two processes of this machine"),
        ("tcp://", "the scheduler of a cluster"),
        ("tls://", "a scheduler with TLS"),
    )


@dataclass(frozen=True)
class ClusterOptions:
    """Where a command runs: in this process alone, or on the workers of a cluster."""

    dask: str | None = declared(None, "", type=AddressType(), metavar="ADDRESS")
    dask_security: str | None = declared(
        None,
        "Certificates for a scheduler with TLS.",
        "JSON with tls_ca_file, tls_client_cert and tls_client_key.",
        metavar="FILE",
    )

    def check_usage(self, refused: Sequence[tuple[str, object, str]], inputs: Sequence[str]) -> None:
        """Raise a usage error when the options are wrong, or something is asked for that only one process does."""
        if self.dask is None:
            if self.dask_security is not None:
                raise click.UsageError("--dask-security needs --dask ADDRESS")
            return
        address = self.address
        if self.dask_security is not None and not address.scheduler.startswith(("tls://", "wss://")):
            raise click.UsageError(f"--dask-security needs a scheduler at tls://HOST:PORT, not {quote(self.dask)}")
        for option, value, instead in refused:
            if value:
                raise click.UsageError(f"{option} does not go with --dask; {instead}")
        if "-" in inputs:
            raise click.UsageError("standard input does not go with --dask: workers read files; give their names")

    @property
    def on_this_machine(self) -> bool:
        """Whether all processes of the run are on this machine."""
        return self.dask is None or self.address.processes > 0

    @property
    def address(self) -> Address:
        """The address; a usage error when it is none."""
        text = self.dask or ""
        if _SCHEDULER.fullmatch(text):
            return Address(text)
        name, _, number = text.partition(":")
        processes = whole(number) if name == "local" else None
        if processes is not None and 1 <= processes <= MOST_PROCESSES:
            return Address("", processes)
        allowed = f"tcp://HOST:PORT, tls://HOST:PORT or local:N, N from 1 to {MOST_PROCESSES}"
        raise click.UsageError(f"--dask {quote(text)} is no address; give {allowed}")


def cluster_options(help: str, more: str) -> Callable[[F], F]:
    """Return a decorator that adds the options of a cluster, with what the manual page says `more` of --dask."""
    address = (
        "ADDRESS is tcp://HOST:PORT or tls://HOST:PORT of the scheduler, or local:N for N processes on this machine. "
        "See lmart-cluster(7)."
    )
    return group("cluster", ClusterOptions, dask={"help": help, "more": f"{more} {address}"})


def one_for_each(option: str, pattern: str, files: Sequence[str], of: str, parts: Sequence[str]) -> Sequence[str]:
    """Return the files that go with each part, one for each; DataError when there are not as many."""
    if len(files) != len(parts):
        held, wanted = counted(len(files), "file"), counted(len(parts), "file")
        raise DataError(f"{option} is {held}, but {of} {wanted}; give one for each, in the same order", pattern)
    return files
