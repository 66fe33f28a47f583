"""Options that say where a command runs; it gets them packed as one `cluster: ClusterOptions`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import click

from lmart.cli.options.packed import packed
from lmart.decimals import whole
from lmart.distributed import Address
from lmart.errors import quote

MOST_PROCESSES = 1024
_SCHEDULER = re.compile(r"(tcp|tls|ws|wss)://[^/\s]+:\d+/?")


class AddressType(click.ParamType):  # type: ignore[type-arg]
    """Where a cluster is; ClusterOptions judges it, together with the options beside it."""

    name = "address"
    begins = (
        ("local:2", "two processes of this machine"),
        ("tcp://", "the scheduler of a cluster"),
        ("tls://", "one with TLS"),
    )


@dataclass(frozen=True)
class ClusterOptions:
    """What the options ask for.

    dask          : address of a scheduler, or local:N; None: this process alone
    dask_security : file of certificates
    """

    dask: str | None
    dask_security: str | None

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
        given = self.dask or ""
        if _SCHEDULER.fullmatch(given):
            return Address(given)
        name, _, number = given.partition(":")
        processes = whole(number) if name == "local" else None
        if processes is not None and 1 <= processes <= MOST_PROCESSES:
            return Address("", processes)
        allowed = f"tcp://HOST:PORT, tls://HOST:PORT or local:N, N from 1 to {MOST_PROCESSES}"
        raise click.UsageError(f"--dask {quote(given)} is no address; give {allowed}")


def cluster_options(does: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return a decorator that adds the options; the command gets them packed as the keyword `cluster: ClusterOptions`.

    does : help of --dask: one sentence, and what --help adds about the files
    """
    options = (
        click.option(
            "--dask",
            type=AddressType(),
            metavar="ADDRESS",
            help=f"{does} ADDRESS is tcp://HOST:PORT or tls://HOST:PORT of the scheduler, or local:N for N processes "
            "on this machine. See lmart-cluster(7).",
        ),
        click.option(
            "--dask-security",
            metavar="FILE",
            help="Certificates for a scheduler with TLS.\f JSON with tls_ca_file, tls_client_cert and tls_client_key.",
        ),
    )
    return packed("cluster", ClusterOptions, [one.name for one in fields(ClusterOptions)], options)
