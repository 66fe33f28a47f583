"""python -m lmart."""

from __future__ import annotations


def run() -> None:
    """Run the command line; the entry point of the `lmart` script."""
    from lmart.cli.main import main

    main()


if __name__ == "__main__":
    run()
