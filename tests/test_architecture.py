"""The rows of the house, as the import contracts in pyproject.toml state them, and what starting up may load."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import ROOT

HEAVY = {"numpy", "numba", "llvmlite", "rich", "scipy", "pyarrow", "zstandard"}


def test_import_contracts(tmp_path: Path) -> None:
    lint = Path(sys.executable).parent / "lint-imports"
    if not lint.exists():
        pytest.skip("import-linter is not here")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_circle_of_imports_between_modules() -> None:
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("lmart", exclude_type_checking_imports=True, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := [module for module, names in imported.items() if not names & imported.keys()]:
        for module in free:
            del imported[module]
    assert imported == {}  # else modules of a circle, and those that import them


# Command lines that end before any work, and their exit status.
WITHOUT_WORK = [
    (["--help"], 0),
    (["--version"], 0),
    ([], 0),
    (["train", "--help"], 0),
    (["eval", "--help"], 0),
    (["predict", "--help"], 0),
    (["convert", "--help"], 0),
    (["show", "--help"], 0),
    (["train", "--learning-rat", "1"], 2),
    (["train", "--data", "x", "--leaves", "1"], 2),
    (["train"], 2),
    (["train", "--data", "x", "--settings", "no such file"], 1),
    (["predict", "--data", "x"], 2),
    (["eval", "--data", "x", "--ties", "best"], 2),
    (["convert", "x"], 2),
    (["show", "x", "--json", "--tsv"], 2),
    (["nothing"], 2),
]


def test_tests_stand_where_the_package_has_a_folder() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert [str(folder) for folder in sorted(folders) if not (ROOT / "lmart" / folder).is_dir()] == []


def test_help_and_wrong_usage_load_nothing_heavy() -> None:
    """One after the other in one process: what one of them loads, all of them would."""
    program = f"""
import sys, contextlib, io
from lmart.cli.main import main
for arguments, expected in {WITHOUT_WORK!r}:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try: main.main(arguments)
        except SystemExit as ending: status = ending.code
    heavy = {HEAVY!r} & {{name.split(".")[0] for name in sys.modules}}
    if status != expected or heavy: print(arguments, status, heavy)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_kernels_name_every_parameter_in_their_docstring() -> None:
    unnamed = []
    for path in sorted((ROOT / "lmart" / "kernels").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            if not {"kernel", "shared_kernel", "inner_kernel"} & {
                one.id for one in node.decorator_list if isinstance(one, ast.Name)
            }:
                continue
            words = set(re.findall(r"\w+", ast.get_docstring(node) or ""))
            unnamed += [f"{path.name}: {node.name}: {one.arg}" for one in node.args.args if one.arg not in words]
    assert not unnamed


def test_kernels_that_python_calls_return_no_named_tuple() -> None:
    """Numba makes one by running Python code; a signal that raises in there crashes the process."""
    plain = re.compile(r"None|(np\.)?(u?int|float|bool)\d*|SplitFields|tuple\[.*\]")
    for path in sorted((ROOT / "lmart" / "kernels").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(one, ast.Name) and one.id in ("kernel", "shared_kernel") for one in node.decorator_list
            ):
                returned = ast.unparse(node.returns) if node.returns is not None else ""
                named = re.findall(r"[A-Z]\w+", returned.replace("SplitFields", "").replace("None", ""))
                assert node.name == "best_split" or (plain.fullmatch(returned) and not named), (path.name, node.name)


def test_names_of_measures_objectives_and_trees_are_in_their_records() -> None:
    """So a new one needs a record, and no comparison elsewhere; these few are keys of JSON, a label, and RankLib's."""
    from lmart.measures import KINDS
    from lmart.settings import OBJECTIVES, TREE_FORMS

    keys = {("measures/results.py", "err"), ("reports/run_report.py", "err")}
    label = ("cli/terminal/eval.py", "err")
    of_ranklib = {("formats/models/ranklib.py", name) for name in ("lambdamart", "ranknet")}  # its names of its rankers
    records = {"settings/kinds.py", "measures/kinds.py"}
    records |= {"settings/recipe.py", "training/search_space.py"}  # tables of combinations
    records |= {"training/objectives/pairs.py"}  # how each weights pairs
    records |= {"foreign_names.py"}  # what others call them
    names = {*KINDS, *OBJECTIVES, *TREE_FORMS}
    found = set()
    for path in (ROOT / "lmart").rglob("*.py"):
        place = path.relative_to(ROOT / "lmart").as_posix()
        if place in records:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in names:
                found.add((place, node.value))
    assert found == {*keys, label, *of_ranklib}
