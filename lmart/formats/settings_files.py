"""Files that settings are taken from: a model, a report, the trials of a tuning, or plain JSON. Light: loads no numpy.

`read_settings` returns them as they stand there; what each may be is checked by whoever takes them.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from lmart.errors import DataError, quote
from lmart.formats.format_records import CHECKPOINT_START
from lmart.formats.trial_log import FORMAT as TRIALS
from lmart.streams.inputs import read_all
from lmart.strict_json import NotStrict, strict_json

MODEL = "lmart"  # "format" of a model file
LARGEST = 1 << 30  # bytes; models hold their trees besides
COMMAND = ["lmart", "train"]
GIVE = "give a model, a --report, a --tune-file, a command line 'lmart train ...', or JSON such as {\"trees\": 300}"


@dataclass(frozen=True)
class SettingsFile:
    """What a file says of settings.

    values   : setting -> value, by names with underscores
    complete : they are all settings of a run; else those that somebody chose to give
    command  : the words behind `lmart train` instead, of a command line as --tune prints it last; None: of none
    """

    values: dict[str, Any]
    complete: bool
    command: list[str] | None = None


def read_settings(path: str) -> SettingsFile:
    """Return the settings that a file holds; DataError when it holds none."""
    try:
        text = read_all(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"is no text; {GIVE}", path) from None
    if text.startswith(CHECKPOINT_START.decode()):
        raise DataError(f"is a checkpoint, which goes on with its own settings; {GIVE}", path)
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    if lines and lines[-1].split(maxsplit=2)[:2] == COMMAND:
        return SettingsFile({}, False, _words(lines[-1], path)[2:])
    if lines and lines[0].startswith("{") and f'"{TRIALS}"' in lines[0]:
        head, *trials = (_object(line, path, number) for number, line in enumerate(lines, 1))
        return SettingsFile(_of_trials(head, trials, path), True)
    found = _object(text, path)
    if found.get("format") == MODEL or isinstance(found.get("settings"), dict):
        settings = found.get("settings")
        if not isinstance(settings, dict) or not settings or "source" in settings:
            made = settings.get("source") if isinstance(settings, dict) else None
            what = f"the model is one of {quote(str(made))}" if made else "the model is one of another tool"
            raise DataError(f"{what}, which holds no settings of lmart; give one that lmart trained", path)
        return SettingsFile(_named(settings), True)
    if not found:
        raise DataError(f"holds no settings; {GIVE}", path)
    return SettingsFile(_named(found), False)


def _words(line: str, path: str) -> list[str]:
    """Return the words of a command line, as a shell divides it."""
    try:
        return shlex.split(line)
    except ValueError as fault:
        what = f"{quote(line)} cannot be read: {str(fault).lower()}"
        raise DataError(f"the command line {what}; close the quote, or drop the backslash", path) from None


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("-", "_"): value for name, value in settings.items()}


def _object(text: str, path: str, line: int | None = None) -> dict[str, Any]:
    """Return the JSON object that a text is."""
    try:
        found = strict_json(text)
    except json.JSONDecodeError as fault:
        raise DataError(f"is no JSON ({fault.msg.lower()}); {GIVE}", path, line or fault.lineno) from None
    except NotStrict as fault:
        raise DataError(f"is JSON that cannot be read: {fault}; {GIVE}", path, line) from None
    if not isinstance(found, dict):
        raise DataError(f"is JSON, but no object; {GIVE}", path, line)
    return found


def _of_trials(head: dict[str, Any], trials: list[dict[str, Any]], path: str) -> dict[str, Any]:
    """Return the settings of the best trial, the first on ties, as the model of the search was trained with."""
    best: dict[str, Any] | None = None
    for trial in trials:
        measure = trial.get("measure")
        if type(measure) in (int, float) and (best is None or measure > best["measure"]):
            best = trial
    settings, values = head.get("settings"), best and best.get("values")
    if best is None or not isinstance(settings, dict) or not isinstance(values, dict):
        raise DataError("holds no trial that has a measure; let the search go on, or give other settings", path)
    found = settings | {name: "auto" if value is None else value for name, value in values.items()}
    several = isinstance(found.get("rankers"), int) and found["rankers"] > 1
    if head.get("folds") is None and several:
        return found  # each ranker was stopped by itself
    return found | {"trees": best.get("trees"), "early_stop": 0}
