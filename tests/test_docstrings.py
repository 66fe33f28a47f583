"""Docstrings list parameters that there are, say no sentence twice, and name nothing else in backticks."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from helpers.paths import ROOT

PACKAGE = ROOT / "lmart"
KERNELS = PACKAGE / "kernels"  # in which every parameter is named anyway: see test_architecture.py
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if KERNELS not in path.parents]
LISTED = re.compile(r"^(\w+(?:, \w+)*) +: ", re.MULTILINE)
QUOTED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`(?!`)")
WORDS = {"python", "lmart", "nan", "na", "null", "true", "false", "qid", "docid", "TAB", "inf", "timeout"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def listed(node: Function | ast.ClassDef) -> list[str]:
    """Return the names that the docstring lists, in order."""
    return [name for names in LISTED.findall(ast.get_docstring(node) or "") for name in names.split(", ")]


def parameters(node: Function) -> list[str]:
    given = node.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [one.arg for one in named if one.arg not in ("self", "cls")]


def attributes(node: ast.ClassDef) -> set[str]:
    """Return the fields, methods and attributes of a class, and the parameters of its `__init__`."""
    found: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, Function):
            found |= {one.name, *parameters(one)} if one.name in ("__init__", "__new__") else {one.name}
        elif isinstance(one, ast.AnnAssign | ast.Assign):
            targets = [one.target] if isinstance(one, ast.AnnAssign) else one.targets
            found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            found.add(one.attr)
    return found


@cache
def identifiers(path: Path) -> set[str]:
    """Return every name in the code of a module, in its texts too (options, columns), but not in its docstrings."""
    found: set[str] = set()
    docstrings = {id(text) for text in _docstrings(tree_of(path))}
    for node in ast.walk(tree_of(path)):
        for field in ("id", "attr", "arg", "name", "module"):
            if isinstance(name := getattr(node, field, None), str):
                found |= set(name.split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found |= set(re.findall(r"\w+", node.value))
    return found


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


@cache
def defined() -> set[str]:
    """Return the modules, functions, classes and attributes of the package."""
    found = set(dir(builtins))
    for path in PACKAGE.rglob("*.py"):
        found |= {path.stem, path.parent.name, *_constants(tree_of(path))}
        for node in ast.walk(tree_of(path)):
            if isinstance(node, Function | ast.ClassDef):
                found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= attributes(node)
    return found


def _constants(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from (one.id for one in targets if isinstance(one, ast.Name))


def documented(path: Path) -> Iterator[Function | ast.ClassDef]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, Function | ast.ClassDef))


def test_listed_parameters_are_those_of_the_signature() -> None:
    wrong = []
    for path, node in [(module, node) for module in MODULES for node in documented(module)]:
        place = path.relative_to(ROOT)
        names = listed(node)
        known = attributes(node) if isinstance(node, ast.ClassDef) else set(parameters(node))
        wrong += [f"{place}:{node.lineno} {node.name} has no '{name}'" for name in names if name not in known]
    assert not wrong


def test_names_in_backticks_exist() -> None:
    wrong = []
    for path in MODULES:
        known = identifiers(path) | defined() | WORDS
        for text in _docstrings(tree_of(path)):
            for quoted in QUOTED.findall(text.value if isinstance(text.value, str) else ""):
                unknown = set(quoted.split(".")) - known
                wrong += [f"{path.relative_to(ROOT)}:{text.lineno} `{quoted}`"] if unknown else []
    assert not wrong
