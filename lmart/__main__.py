"""python -m lmart."""

from __future__ import annotations

import os

_signals = __import__("_signal")  # what `signal` gives names of its own, for which it imports much more


def run() -> None:
    """Run the command line; the entry point of the `lmart` script. Ends the process."""
    # Imported in here, and little above: until `prepare`, Python answers an interrupt with a traceback.
    if _signals.getsignal(_signals.SIGINT) is _signals.default_int_handler:
        _signals.signal(_signals.SIGINT, lambda number, frame: os._exit(128 + number))
    # lmart needs no BLAS. OpenBLAS, which NumPy loads, would start a thread for each processor, and where none can be
    # started it writes to standard error and sends us an interrupt. (OMP_NUM_THREADS would also slow down pyarrow.)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from lmart.cli import signals

    begun = False
    try:
        try:
            signals.prepare()
            from lmart.cli.main import main

            begun = True
            main.main()
        except SystemExit as ending:
            status = signals.finish(ending.code if isinstance(ending.code, int) else 1)
    except BaseException as fault:
        status = signals.failed(fault, begun)
    signals.leave(status)


if __name__ == "__main__":
    run()
