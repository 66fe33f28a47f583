"""Text read through `lmart train`, to see what was read or how it was refused; everything in a given folder."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from helpers.commands import run

FEW = ("--trees", "3", "--leaves", "4", "--min-docs", "1", "--min-hessian", "0", "-q")
GOOD = "".join(f"{(i * 7) % 3} qid:{i // 4} 1:{i % 5}.5 2:{(i * 3) % 7} 3:{i}e-1\n" for i in range(40))


def trained(folder: Path, data: str | bytes, *options: str, name: str = "d.svm") -> bytes:
    """Train on the text as a file of this name, in a new folder inside; return the bytes of the model."""
    own = Path(tempfile.mkdtemp(dir=folder))
    (own / name).write_bytes(data.encode() if isinstance(data, str) else data)
    run("train", "--data", own / name, "--out", own / "m.json", *FEW, *options)
    return (own / "m.json").read_bytes()


def refusals(folder: Path, data: str | bytes, *options: str) -> str:
    """Train on the text as d.svm; assert one line for each fault and no model; return standard error."""
    source, model = folder / "d.svm", folder / "m.json"
    source.write_bytes(data.encode() if isinstance(data, str) else data)
    model.write_text("an older model")
    result = run("train", "--data", source, "--out", model, *FEW, *options, status=1)
    assert result.stdout == ""
    assert all(line.startswith(f"lmart: error: {source}:") for line in result.stderr.splitlines())
    assert model.read_text() == "an older model"
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["d.svm", "m.json"]
    return result.stderr.replace(str(source), "d.svm")


def model_of_good(folder: Path) -> Path:
    """Return the path of a model of GOOD, trained when it is not there yet."""
    path = folder / "model.json"
    if not path.exists():
        path.write_bytes(trained(folder, GOOD))
    return path


def features(model: bytes) -> list[object]:
    """Return the ids or names of a model's features."""
    document = json.loads(model)
    found: list[object] = document.get("feature_names") or document["feature_ids"]
    return found
