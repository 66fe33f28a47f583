"""lmart: LambdaMART on the command line and from Python.

From Python, `lmart.load(path)` gives a Model that scores arrays and files; the commands do everything else.
"""

from __future__ import annotations

from lmart.errors import DataError, LmartError, ModelError, OutputError, SettingsError

TYPE_CHECKING = False  # not from typing: an interrupt that comes before `run` is met with a traceback
if TYPE_CHECKING:
    from lmart.model import Model, load

__version__ = "0.1.0"

__all__ = ["DataError", "LmartError", "Model", "ModelError", "OutputError", "SettingsError", "__version__", "load"]


def __getattr__(name: str) -> object:
    # Scoring needs Numba, which takes a third of a second to import; `lmart --help` does not.
    if name in ("Model", "load"):
        from lmart import model

        found: object = getattr(model, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
