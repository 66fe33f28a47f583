"""python -m lmart."""

from __future__ import annotations

from lmart.cli import process


def run() -> None:
    """Run the command line; the entry point of the `lmart` script. Always raises SystemExit or ends the process."""
    try:
        process.prepare()
        from lmart.cli.main import main

        main.main()
    except SystemExit as ending:
        status = ending.code
    except KeyboardInterrupt as interrupt:
        status = process.status_of(interrupt)
    process.leave(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    run()
