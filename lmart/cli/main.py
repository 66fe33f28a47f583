"""The lmart command: finds the subcommand, and turns every outcome into its exit status."""

from __future__ import annotations

import importlib
from typing import Any

import click

from lmart import __version__

COMMANDS = ("train", "predict", "eval", "convert")


class LazyGroup(click.Group):
    """Imports a command's file when it is called or listed, so that `lmart --version` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: Any = importlib.import_module(f"lmart.cli.{cmd_name}").command
        return command if isinstance(command, click.Command) else None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="lmart %(version)s")
def main() -> None:
    """Train, score, evaluate and convert LambdaMART ranking models."""
