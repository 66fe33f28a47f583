"""Calls of `lmart eval` for the tests, and the small data they measure, in the current folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner, Result

from lmart.cli.main import main


def call(*arguments: str, status: int = 0, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(main, ["eval", *arguments], input=stdin, catch_exceptions=False)
    assert result.exit_code == status, result.stdout + result.stderr
    return result


def refused(*arguments: str, status: int = 1, stdin: str | None = None) -> str:
    """The one line of a refusal."""
    result = call(*arguments, status=status, stdin=stdin)
    assert result.stdout == ""
    (line,) = (one for one in result.stderr.splitlines() if not one.startswith("lmart: compiling"))
    assert line.startswith("lmart: error: ")
    assert line.isprintable()
    return line


def no_literals(literal: str) -> NoReturn:
    raise AssertionError(f"{literal} is not strict JSON")


def strict(text: str) -> dict[str, Any]:
    content = json.loads(text, parse_constant=no_literals)
    assert isinstance(content, dict)
    return content


def measured(*arguments: str) -> dict[str, Any]:
    metrics = strict(call(*arguments, "--json").stdout)["metrics"]
    assert isinstance(metrics, dict)
    return metrics


def write(labels: str, scores: list[float] | None = None, name: str = "d") -> list[str]:
    """Write queries given as labels in ranked order, `0 1 / 1 0`; return the arguments that measure them."""
    queries = [query.split() for query in labels.split("/")]
    rows = [f"{label} qid:{q} 1:{label}\n" for q, query in enumerate(queries, 1) for label in query]
    Path(f"{name}.svm").write_text("".join(rows))
    numbers = scores if scores is not None else [float(-i) for i in range(len(rows))]
    Path(f"{name}.txt").write_text("".join(f"{number!r}\n" for number in numbers))
    return ["--data", f"{name}.svm", "--scores", f"{name}.txt"]


def close(value: float) -> Any:
    return pytest.approx(value, abs=5e-7)
