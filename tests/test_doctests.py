"""Every public name of the interface for Python has an example, and the examples show what happens."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import pydoc

import pytest
from helpers.paths import ROOT

import lmart

MODULES = (
    "lmart.model",
    "lmart.interface.training",
    "lmart.interface.reading",
    "lmart.data.python_dataset",
    "lmart.reports.run_report",
)
METHODS = ("save", "predict", "explain", "evaluate", "predict_letor")


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated methods too."""

    def _from_module(self, module: object, object: object) -> bool:
        return bool(super()._from_module(module, inspect.unwrap(object)))  # type: ignore[misc, arg-type]


def check(module: str) -> None:
    finder, runner = Finder(), doctest.DocTestRunner()
    with contextlib.chdir(ROOT):
        for test in finder.find(importlib.import_module(module)):
            runner.run(test)
    failed, tried = runner.summarize()
    assert tried and not failed


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    check(module)


@pytest.mark.peers
@pytest.mark.filterwarnings("default")
def test_examples_of_the_estimator() -> None:
    pytest.importorskip("sklearn")
    check("lmart.sklearn")


def test_every_public_name_has_an_example() -> None:
    shown = [lmart.train, lmart.read, lmart.load, lmart.Dataset, lmart.Model]
    shown += [getattr(lmart.Model, name) for name in METHODS]
    shown += [lmart.Dataset.with_metadata, lmart.Dataset.to_numpy]
    for one in shown:
        assert ">>> " in (inspect.getdoc(one) or ""), one
    for kind, methods in ((lmart.Model, set(METHODS)), (lmart.Dataset, {"with_metadata", "to_numpy"})):
        public = {name for name, one in vars(kind).items() if inspect.isfunction(one) and name[0] != "_"}
        assert public >= methods
        for name in public:
            assert ">>> " in (inspect.getdoc(getattr(kind, name)) or ""), name


def test_help_shows_the_public_names_alone() -> None:
    text = pydoc.plain(pydoc.render_doc(lmart))

    for name in set(lmart.__all__) - {"__version__"}:
        assert name in text, name
    assert "_LATER" not in text and "TYPE_CHECKING" not in text
