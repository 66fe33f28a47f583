"""Models of all formats, mutated: refused in one line, or scored and written as they are read."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from campaign.harness import Tally, answered, in_batches, mutated, refusal_wrong

NUMBERS = (
    *("0", "-0", "1", "-1", "1e400", "-1e400", "NaN", "nan", "Infinity", "-inf", "1e308", "5e-324", "2147483647"),
    *("2147483648", "-2147483649", "4294967296", "9223372036854775808", "1" + "0" * 400, "1" + "0" * 5000, "0x10"),
    *("1_0", "1e", "--1", "", "1.5", "999999999", "true", "null", '"1"', "[1]", "{}", "1e999999999", "3.4028236e38"),
    *('"NaN"', '"\\ud800"', '"0||99999999999"', "[null]", "[[[]]]", '"<x>"'),
)
PIECES = [number.encode() for number in NUMBERS] + [
    *(b"\0", b"\n", b" ", b"<", b">", b'"', b"&lt;", b"<!-- x -->", b"<![CDATA[1]]>", b"\xff", b"\xe2\x80\xa8", b"="),
    *(b"\r", b"$", b"#", b"[", b"{", b"i", b"L"),
]
MOST_FEATURES = 5000
MODELS = 80_000  # that are tried
WRITTEN = 0.2  # share of the models that are accepted which are also written in a format


def bases() -> dict[str, list[bytes]]:
    """Return sound models by format, made of the model of the current folder."""
    from lmart.formats.registry import MODEL_FORMATS

    found: dict[str, list[bytes]] = {}
    for name, record in MODEL_FORMATS.items():
        if record.writer is None or record.reader is None:
            continue
        for number, source in enumerate(("in.json", "several.json")):
            path = f"base-{number}.{name}"
            if answered(["convert", "-qq", source, path, "--to", name])[0] == 0:
                found.setdefault(name, []).append(Path(path).read_bytes())
                Path(path).unlink()
    return found


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Mutate models until the time is over."""
    words = ("--data", "d.svm", "--valid", "v.svm", "--trees", "6", "--rankers", "2", "--linear", "0.3", "-q")
    assert answered(["train", *words, "--out", "several.json"])[0] == 0
    sound = bases()
    tally = Tally("mutated models", MODELS)
    in_batches(partial(_case, sound), tally, chance.randrange(1 << 30), until, MODELS)
    tally.notes.append(f"of {', '.join(sound)}")
    return [tally]


def _case(sound: dict[str, list[bytes]], chance: random.Random) -> str:
    """Read a mutated model; score it and write it when it is accepted."""
    from lmart.errors import LmartError
    from lmart.formats.models.model_files import content_of, parse_model
    from lmart.scoring.scorer import Scorer

    name = chance.choice(list(sound))
    content = chance.choice(sound[name])
    content = mutated_document(content, chance) if chance.random() < 0.7 else mutated(content, chance, PIECES)
    try:
        model = parse_model(content, "x", chance.choice((None, name)))
    except LmartError as refusal:
        return refusal_wrong(str(refusal))
    if model.n_features > MOST_FEATURES:
        return ""
    values = np.array([0.0, 1.0, -1.0, 0.5, np.nan, 1e300, -1e300, 1e-40, 3.0, 7.0])
    rows = np.random.default_rng(chance.randrange(1 << 30)).choice(values, (8, model.n_features))
    try:
        scores = _scored(Scorer(model), rows)
        if chance.random() < WRITTEN:
            again = parse_model(content_of(model, "y", "lmart").content, "y", "lmart")
            if _scored(Scorer(again), rows).tobytes() != scores.tobytes():
                return "a model that is written scores otherwise"
    except LmartError as refusal:
        return refusal_wrong(str(refusal))
    return ""


def _scored(scorer: Any, rows: Any) -> Any:
    from lmart.data.from_python import features_of

    m = rows.shape[1]
    return scorer.score_pieces(features_of(rows).read(np.arange(m)), np.arange(m, dtype=np.int32))


def mutated_document(content: bytes, chance: random.Random) -> bytes:
    """Return a JSON document with a few of its values changed, moved, doubled or taken out; other content as bytes."""
    try:
        document = json.loads(content)
    except ValueError:
        return mutated(content, chance, PIECES)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(document))
        if not places:
            break
        holder, key = chance.choice(places)
        kind = chance.random()
        if kind < 0.15:
            del holder[key]
        elif kind < 0.3 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind < 0.45:
            other, there = chance.choice(places)
            holder[key] = copy.deepcopy(other[there]) if there in other or isinstance(other, list) else None
        elif kind < 0.6 and type(holder[key]) in (int, float):
            with suppress(OverflowError):  # of a number of hundreds of digits
                holder[key] += chance.choice((1, -1, 0.5, 1e-9, 10**9, -(10**9)))
        elif isinstance(holder, dict) and kind < 0.65:
            holder[chance.choice(("", "\ud800", "x" * 1000, "left", "trees", 'a"b<c>&'))] = holder.pop(key)
        else:
            try:
                holder[key] = json.loads(chance.choice(NUMBERS))
            except ValueError:
                holder[key] = chance.choice(NUMBERS)
    try:
        return json.dumps(document).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):  # a value that holds itself, or a number that Python does not write
        return content


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all places of a document: what holds a value, and its key there."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            yield value, key
            waiting.append(value[key])
