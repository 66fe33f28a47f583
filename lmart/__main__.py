"""python -m lmart."""

from __future__ import annotations

import os
import signal


def run() -> None:
    """Run the command line; the entry point of the `lmart` script. Always raises SystemExit or ends the process."""
    # Imported in here, and little above: until `prepare`, Python answers an interrupt with a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    # lmart needs no BLAS. OpenBLAS, which NumPy loads, would start a thread for each processor, and where none can be
    # started it writes to standard error and sends us an interrupt. (OMP_NUM_THREADS would also slow down pyarrow.)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from lmart.cli import process

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
