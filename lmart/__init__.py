"""lmart: LambdaMART on the command line and from Python.

`lmart.read(path)` gives a Dataset, `lmart.train` learns a Model from it or from arrays and DataFrames, `Model.save` and
`lmart.load` write and read it; `lmart.evaluate` measures scores from anywhere, `lmart.compare` compares systems. The
commands do the same on files; `lmart.sklearn` has an estimator for scikit-learn.

All that is public stands below by name; what PACKAGE CONTENTS lists besides `lmart.sklearn` is internal.
"""

from __future__ import annotations

TYPE_CHECKING = False  # nothing is imported here: an interrupt that comes before `run` is met with a traceback
if TYPE_CHECKING:
    from lmart.data.python_dataset import Dataset
    from lmart.errors import ArrayError, DataError, LmartError, ModelError, OutputError, SettingsError
    from lmart.evaluation import Comparisons, Evaluation, compare, evaluate
    from lmart.interface.arguments import Settings
    from lmart.interface.reading import read
    from lmart.interface.selection import Tuning, cross_validate, tune
    from lmart.interface.training import train
    from lmart.model import Model, load
    from lmart.reports.run_report import RunReport
    from lmart.scoring.explain import Explanation
    from lmart.training.cross_validation import CrossValidation
    from lmart.training.rankers import RoundReport

__version__ = "0.1.0"

__all__ = [
    "ArrayError",
    "Comparisons",
    "CrossValidation",
    "DataError",
    "Dataset",
    "Evaluation",
    "Explanation",
    "LmartError",
    "Model",
    "ModelError",
    "OutputError",
    "RoundReport",
    "RunReport",
    "Settings",
    "SettingsError",
    "Tuning",
    "__version__",
    "compare",
    "cross_validate",
    "evaluate",
    "load",
    "read",
    "train",
    "tune",
]

# NumPy and Numba take a third of a second to import; `lmart --help` does without.
_LATER = {
    name: module
    for module, names in {
        "data.python_dataset": "Dataset",
        "errors": "ArrayError DataError LmartError ModelError OutputError SettingsError",
        "evaluation": "Comparisons Evaluation compare evaluate",
        "interface.arguments": "Settings",
        "interface.reading": "read",
        "interface.selection": "Tuning cross_validate tune",
        "interface.training": "train",
        "model": "Model load",
        "reports.run_report": "RunReport",
        "scoring.explain": "Explanation",
        "training.cross_validation": "CrossValidation",
        "training.rankers": "RoundReport",
    }.items()
    for name in names.split()
}


if not TYPE_CHECKING:  # to which a misspelled name is an error

    def __getattr__(name: str) -> object:
        if name in _LATER:
            from importlib import import_module

            found: object = getattr(import_module(f"lmart.{_LATER[name]}"), name)
            return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
