"""lmart.train: the bytes of the command line from any form of data, and what it refuses or warns of."""

from __future__ import annotations

import _thread
import hashlib
import importlib
import json
import pickle
import re
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE
from helpers.waiting import wait_until

import lmart
from lmart.binning import edge_sample
from lmart.data.python_dataset import in_memory, unbinned
from lmart.errors import ArrayError, DataError, SettingsError, with_arguments
from lmart.interface import verbose
from lmart.interrupts import LOADING, safe_interrupts
from lmart.settings import TrainSettings
from lmart.settings import options as options_of_settings
from lmart.threads import WorkerPool
from lmart.training.boosting import train

TRAIN, VALI = SAMPLE / "train.svm", SAMPLE / "vali.svm"
DATA, VALID = lmart.read(TRAIN), lmart.read(VALI)
X, Y, QID = DATA.to_numpy(), DATA.labels, DATA.qid
XV, YV, QV = VALID.to_numpy(), VALID.labels, VALID.qid
SMALL = ([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]], [0, 1, 1, 0], [7, 7, 8, 8])


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def saved(model: lmart.Model, folder: Path) -> str:
    model.save(folder / "python.json")
    return digest((folder / "python.json").read_bytes())


def commanded(folder: Path, *arguments: str | Path, data: str | Path = TRAIN) -> str:
    run("train", "--data", data, *arguments, "-o", folder / "command.json", "-qq")
    return digest((folder / "command.json").read_bytes())


def lines(folder: Path, name: str, values: object) -> Path:
    (folder / name).write_text("".join(f"{one!r}\n" for one in np.asarray(values).tolist()))
    return folder / name


RUNS: list[tuple[dict[str, Any], list[str]]] = [
    ({"trees": 12}, ["--trees", "12"]),
    (
        {"trees": 30, "rankers": 3, "learning_rate": 0.2, "seed": 5, "features": 0.7},
        ["--trees", "30", "--rankers", "3", "--learning-rate", "0.2", "--seed", "5", "--features", "0.7"],
    ),
    (
        {"trees": 6, "objective": "xendcg+lambdamart", "tree": "oblivious", "leaves": 8, "sample": 0.5},
        ["--trees", "6", "--objective", "xendcg+lambdamart", "--tree", "oblivious", "--leaves", "8", "--sample", "0.5"],
    ),
    (
        {"trees": 6, "monotone": {3: 1, 5: -1, 7: 0}, "gain": [0, 1, 3, 7, 15], "metric": "MAP", "normalize": False},
        ["--trees", "6", "--monotone", "3:+1,5:-1", "--gain", "0,1,3,7,15", "--metric", "map", "--no-normalize"],
    ),
    ({"trees": 5, "max_bins": 16, "absent": "missing"}, ["--trees", "5", "--max-bins", "16", "--absent", "missing"]),
    ({"trees": 4, "objective": "err", "metric": "err@5"}, ["--trees", "4", "--objective", "err", "--metric", "err@5"]),
]


@pytest.mark.parametrize(("settings", "options"), RUNS)
def test_the_bytes_of_the_command_line(settings: dict[str, Any], options: list[str], tmp_path: Path) -> None:
    expected = commanded(tmp_path, *options)
    assert saved(lmart.train(DATA, **settings), tmp_path) == expected
    assert saved(lmart.train(X, Y, QID, threads=1, **settings), tmp_path) == expected


EACH: dict[str, Any] = {
    "trees": 4,
    "rankers": 2,
    "linear": 0.3,
    "tree": "depthwise",
    "leaves": 5,
    "learning_rate": 0.3,
    "max_depth": 2,
    "min_docs": 60,
    "min_hessian": 2.5,
    "l2": 4.0,
    "max_bins": 9,
    "objective": ["map", "lambdamart"],
    "truncation": 4,
    "sigma": 2.0,
    "normalize": False,
    "gain": [0, 1, 3, 7, 15],
    "metric": ["map", "err@5"],
    "early_stop": 1,
    "absent": "missing",
    "sample": 0.4,
    "features": 0.5,
    "monotone": {11: -1},
    "categorical": [7],
    "position_bias_reg": 2.0,
    "seed": 9,
}


@pytest.mark.parametrize("name", EACH)
def test_each_setting_gives_the_bytes_and_numbers_of_the_command_line(name: str, tmp_path: Path) -> None:
    value, usual = EACH[name], {"trees": 3, "sample": 0.9}
    words = {"objective": "map+lambdamart", "monotone": "11:-1"}
    text = words.get(name) or (",".join(map(str, value)) if isinstance(value, list) else str(value))
    options = [f"--{name.replace('_', '-')}", text] if name != "normalize" else ["--no-normalize"]
    options += [word for other, number in usual.items() if other != name for word in (f"--{other}", str(number))]
    given: dict[str, Any] = usual | {name: value}
    places = np.arange(len(DATA)) % 4
    if name == "position_bias_reg":
        given["positions"] = places
        options += ["--positions", str(lines(tmp_path, "p", places))]
    expected = commanded(tmp_path, *options, "--valid", VALI, "--report", tmp_path / "r")
    model = lmart.train(DATA, valid=VALID, **given)
    assert saved(model, tmp_path) == expected and model.history is not None
    report = json.loads((tmp_path / "r").read_text())
    for entry in ("rounds", "rankers", "training", "validation", "importance", "metric"):
        assert model.history.content[entry] == report[entry]
    assert list(EACH) == [option.name for option in options_of_settings()]


def test_a_table_of_gains_may_be_an_array(tmp_path: Path) -> None:
    gains = [0.0, 1.0, 3.0, 7.0, 15.0]
    of_list = lmart.train(DATA, trees=3, rankers=1, gain=gains)
    assert saved(lmart.train(DATA, trees=3, rankers=1, gain=np.array(gains)), tmp_path) == saved(of_list, tmp_path)


def test_the_bytes_with_validation_sets_and_early_stopping(tmp_path: Path) -> None:
    options = ("--valid", VALI, SAMPLE / "test.svm", "--early-stop", "4", "--trees", "60")
    expected = commanded(tmp_path, *options)
    settings: Any = {"early_stop": 4, "trees": 60}
    test = lmart.read(SAMPLE / "test.svm")
    assert saved(lmart.train(DATA, valid=[VALID, test], **settings), tmp_path) == expected
    arrays = (test.to_numpy(), test.labels, test.qid)
    assert saved(lmart.train(X, Y, QID, valid=[(XV, YV, QV), arrays], **settings), tmp_path) == expected
    assert expected != saved(lmart.train(X, Y, QID, valid=[arrays, (XV, YV, QV)], **settings), tmp_path)


def test_the_bytes_with_weights_initial_scores_and_positions(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    per_query, per_row = rng.integers(0, 4, DATA.n_queries) / 2, rng.integers(0, 4, len(DATA)) / 2
    start, valid_start = rng.normal(size=len(DATA)), rng.normal(size=len(VALID))
    places = rng.integers(0, 5, len(DATA))
    few = ("--trees", "8", "--rankers", "1")
    for weights in (per_query, per_row):
        expected = commanded(tmp_path, *few, "--weights", lines(tmp_path, "w", weights))
        assert saved(lmart.train(DATA, trees=8, rankers=1, weights=weights), tmp_path) == expected
        assert saved(lmart.train(X, Y, QID, trees=8, rankers=1, weights=weights.tolist()), tmp_path) == expected
    files = ("--init-scores", lines(tmp_path, "s", start), "--valid-init-scores", lines(tmp_path, "v", valid_start))
    weighed = ("--valid-weights", lines(tmp_path, "vw", per_query[: VALID.n_queries]))
    expected = commanded(tmp_path, *few, "--valid", VALI, "--early-stop", "2", *files, *weighed)
    valid = lmart.Dataset(XV, YV, QV, init_scores=valid_start, weights=per_query[: VALID.n_queries])
    settings: Any = {"trees": 8, "rankers": 1, "early_stop": 2}
    assert saved(lmart.train(X, Y, QID, valid, init_scores=start, **settings), tmp_path) == expected
    with pytest.raises(ArrayError, match="init_scores are given for some of X and valid"):
        lmart.train(X, Y, QID, VALID, init_scores=start)
    expected = commanded(tmp_path, *few, "--positions", lines(tmp_path, "p", places), "--position-bias-reg", "0.5")
    settings = {"trees": 8, "rankers": 1, "position_bias_reg": 0.5}
    assert saved(lmart.train(X, Y, QID, positions=places, **settings), tmp_path) == expected


def test_the_bytes_of_tables(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    names = [f"f{i}" for i in range(X.shape[1])]
    with_gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    header = ",".join(["label", "qid", *names])
    cells = [",".join("" if np.isnan(one) else repr(one) for one in row) for row in with_gaps.tolist()]
    rows = [f"{label:g},{qid},{row}" for label, qid, row in zip(Y.tolist(), QID.tolist(), cells, strict=True)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join([header, *rows, ""]))
    expected = commanded(tmp_path, "--trees", "8", data=table)
    assert saved(lmart.train(lmart.read(table), trees=8), tmp_path) == expected
    frame = pa.table({name: with_gaps[:, i] for i, name in enumerate(names)})
    assert saved(lmart.train(frame, Y, QID, trees=8), tmp_path) == expected
    assert saved(lmart.train(with_gaps, Y, QID, trees=8, feature_names=names), tmp_path) == expected
    # names that are numbers are the indices of LETOR text, as in CSV
    numbers = pa.table({str(2 * i + 3): with_gaps[:, i] for i in range(X.shape[1])})
    assert lmart.train(numbers, Y, QID, trees=1).feature_ids == [2 * i + 3 for i in range(X.shape[1])]


FORMS: dict[str, Callable[[npt.NDArray[np.float64]], object]] = {
    "columns first": np.asfortranarray,
    "lists": lambda x: x.tolist(),
    "every second": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2],
    "objects": lambda x: x.astype(object),
    "swapped bytes": lambda x: x.astype(">f8"),
    "masked": np.ma.MaskedArray,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_bytes_from_any_form_of_array(form: str, tmp_path: Path) -> None:
    expected = saved(lmart.train(X, Y, QID, trees=3), tmp_path)
    assert saved(lmart.train(FORMS[form](X), Y.tolist(), QID.tolist(), trees=3), tmp_path) == expected


def test_other_types_of_numbers_and_of_ids(tmp_path: Path) -> None:
    whole = (X * 100).round() % 100
    expected = saved(lmart.train(whole, Y, QID, trees=3), tmp_path)
    for kind in (np.float32, np.int16, np.int64, np.uint8):
        assert saved(lmart.train(whole.astype(kind), Y.astype(np.int8), QID, trees=3), tmp_path) == expected
    read_only = whole.copy()
    read_only.setflags(write=False)
    assert saved(lmart.train(read_only, Y, QID, trees=3), tmp_path) == expected
    number = np.unique(QID, return_inverse=True)[1]
    for qid in (number, number.astype(float), [(int(one), "x") for one in number], [b"%d" % one for one in number]):
        assert saved(lmart.train(whole, Y, qid, trees=3), tmp_path) == expected
    assert saved(lmart.train(whole, Y, group=DATA.query_sizes, trees=3), tmp_path) == expected


@pytest.mark.parametrize("limit", [300, 1000, 1760])
def test_bin_edges_come_from_the_same_sample_of_rows(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with 200,000 rows and more: which rows are taken depends on their numbers alone."""
    monkeypatch.setattr(edge_sample, "SAMPLE_LIMIT", limit)
    expected = commanded(tmp_path, "--trees", "3", "--max-bins", "50")
    assert saved(lmart.train(X, Y, QID, trees=3, max_bins=50), tmp_path) == expected
    assert saved(lmart.train(DATA, trees=3, max_bins=50), tmp_path) == expected
    monkeypatch.setattr(edge_sample, "SAMPLE_LIMIT", 200_000)
    whole = saved(lmart.train(X, Y, QID, trees=3, max_bins=50), tmp_path)
    assert (whole == expected) == (limit == 1760)


def test_pieces_of_rows_meet_without_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = saved(lmart.train(X, Y, QID, valid=(XV, YV, QV), early_stop=3, trees=9), tmp_path)
    for module in ("edges", "binned_features", "validation_set"):
        monkeypatch.setattr(f"lmart.binning.{module}.CHUNK", 100)
    assert saved(lmart.train(X, Y, QID, valid=(XV, YV, QV), early_stop=3, trees=9), tmp_path) == expected


def test_several_files_and_collected_queries(tmp_path: Path) -> None:
    expected = commanded(tmp_path, VALI, "--trees", "4")
    assert saved(lmart.train(lmart.read([TRAIN, VALI]), trees=4), tmp_path) == expected
    rows = TRAIN.read_text().splitlines()
    mixed = tmp_path / "mixed.svm"
    mixed.write_text("\n".join(rows[::2] + rows[1::2]))
    weights = np.arange(len(rows)) % 5 + 1.0
    files = ("--weights", lines(tmp_path, "w", weights))
    expected = commanded(tmp_path, "--group-by-qid", "--trees", "4", *files, data=mixed)
    collected = lmart.read(mixed, group_by_qid=True)
    assert saved(lmart.train(collected, trees=4, weights=weights), tmp_path) == expected


def test_settings_of_a_model_make_it_again(tmp_path: Path) -> None:
    model = lmart.train(DATA, trees=6, learning_rate=0.3, metric="err(max=6)", gain="linear")
    assert model.settings["largest_label"] == 6
    again: Any = model.settings
    assert saved(lmart.train(DATA, **again), tmp_path) == saved(model, tmp_path)
    again["trees"] = 3
    assert model.settings["trees"] == 6


def test_a_dataset_that_was_used_can_be_used_again(tmp_path: Path) -> None:
    data = lmart.Dataset(X, Y, QID)
    first = saved(lmart.train(data, trees=3, weights=[1.0] * (data.n_queries - 1) + [0.0]), tmp_path)
    assert repr(data) == "<lmart.Dataset: 1,760 documents of 120 queries, 20 features>"
    assert saved(lmart.train(data, trees=3), tmp_path) != first


def test_nothing_is_printed_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    lmart.train(DATA, trees=3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "settings",
    [{"trees": 4, "rankers": 2}, {"trees": 60, "early_stop": 3}, {"trees": 6, "folds": 2, "metric": "err(max=9),map"}],
)
def test_verbose_tells_what_the_command_line_tells(
    settings: dict[str, Any], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lmart.train(DATA, valid=VALID, verbose=True, **settings)
    out, err = capfd.readouterr()
    told = [line for line in err.splitlines() if " compiling" not in line]
    assert out == "" and err.count("trained ") == 1
    options = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    said = run("train", "--data", TRAIN, "--valid", VALI, *options, "-o", tmp_path / "m").stderr
    commanded = with_arguments(said.replace(str(VALI), "valid")).splitlines()
    assert told[-1].startswith("lmart: trained ") and told[-1].partition("; ")[2] == commanded[-1].partition("; ")[2]
    progress = re.compile(r"lmart: \d+/\d+ (trees|folds)")
    kept = [[line for line in lines[:-1] if not progress.match(line)] for lines in (told, commanded)]
    assert kept[0] == kept[1]
    last = [[line for line in lines if " trees, " in line and progress.match(line)][-1] for lines in (told, commanded)]
    assert last[0] == last[1]


def test_a_notebook_has_a_bar_in_one_place(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    drawn: list[str] = []

    class ZMQInteractiveShell:
        """The shell of notebooks."""

    class Handle:
        def update(self, html: str) -> None:
            drawn.append(html)

    def display(html: str, display_id: bool) -> Handle:
        assert display_id and not drawn
        drawn.append(html)
        return Handle()

    shown = types.ModuleType("IPython.display")
    shown.HTML, shown.display = str, display  # type: ignore[attr-defined]
    module = types.ModuleType("IPython")
    module.get_ipython, module.display = ZMQInteractiveShell, shown  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(verbose, "BAR_PAUSE", 0.0)
    lmart.train(DATA, trees=5, rankers=1, metric="map", verbose=True)
    assert [line.partition(" trees, training map ")[0] for line in drawn] == [
        f'<progress value="{done}" max="5"></progress> {done}/5' for done in range(1, 6)
    ]
    assert " trees, training" not in capfd.readouterr().err


def test_the_callback_hears_of_every_round() -> None:
    heard: list[lmart.RoundReport] = []
    model = lmart.train(DATA, valid=[VALID, VALID], trees=5, rankers=2, callback=heard.append)
    assert [(one.ranker, one.round) for one in heard] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert all(len(one.validation) == 2 for one in heard) and model.n_trees == 5
    value = heard[-1].measure_training()
    assert value is not None and 0.5 < value < 1


def test_an_exception_in_the_callback_ends_the_run_cleanly() -> None:
    def stop(one: lmart.RoundReport) -> None:
        if one.round == 2:
            raise KeyboardInterrupt

    before, threads = signal.getsignal(signal.SIGINT), _thread._count()
    with pytest.raises(KeyboardInterrupt):
        lmart.train(DATA, trees=50, threads=2, callback=stop)
    assert signal.getsignal(signal.SIGINT) is before
    wait_until(lambda: _thread._count() <= threads)
    assert lmart.train(DATA, trees=2).n_trees == 2


def test_an_interrupt_arrives_during_a_run() -> None:
    rounds: list[int] = []

    def interrupt(one: lmart.RoundReport) -> None:
        rounds.append(one.round)
        if one.round == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        lmart.train(DATA, trees=10_000, rankers=1, callback=interrupt)
    assert rounds == [1, 2, 3]


def test_an_interrupt_waits_while_machine_code_is_loaded() -> None:
    """An exception there would leave half of it."""
    reached: list[str] = []
    program = "signal.raise_signal(signal.SIGINT); reached.append('end')"
    names = {"__name__": LOADING, "signal": signal, "reached": reached}
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        exec(program, names)
        reached.append("after")
        time.sleep(10)
    assert reached == ["end", "after"]


def test_an_interrupt_waits_while_another_package_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its C code may not expect an exception; but a training that some module begins while it is imported is ours."""
    body = "import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n"
    (tmp_path / "elsewhere.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    ours: dict[str, object] = {"__name__": "lmart.elsewhere"}
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        exec("import elsewhere, time\ntime.sleep(10)", ours)
    assert sys.modules["elsewhere"].whole
    (tmp_path / "experiment.py").write_text(
        f"exec({body!r}, {{'__name__': 'lmart.elsewhere'}})\nraise AssertionError\n"
    )
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        importlib.import_module("experiment")


def test_an_interrupt_at_the_very_beginning_leaves_the_handler_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    before, install = signal.getsignal(signal.SIGINT), signal.signal

    def interrupted(number: int, handler: Any) -> Any:
        install(number, handler)
        if handler is not before:
            raise KeyboardInterrupt

    monkeypatch.setattr(signal, "signal", interrupted)
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    trees: list[int] = []
    thread = threading.Thread(target=lambda: trees.append(lmart.train(DATA, trees=2).n_trees))
    thread.start()
    thread.join()
    assert trees == [2]


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"n_estimators": 3}, TypeError, "there is no setting 'n_estimators'; perhaps 'trees'"),
        ({"treees": 3}, TypeError, "there is no setting 'treees'; perhaps 'trees' or 'tree'$"),
        ({"sample_weight": [1]}, TypeError, "there is no setting 'sample_weight'; perhaps 'weights'"),
        ({"n_jobs": 1}, TypeError, "there is no setting 'n_jobs'; perhaps 'threads'"),
        ({"trees": 0}, SettingsError, "trees is 0"),
        ({"trees": 2.5}, SettingsError, "trees is 2.5, which is not a whole number"),
        ({"learning_rate": "fast"}, SettingsError, "learning-rate is 'fast', which is not a number"),
        ({"metric": "ndcg@5,judged@3"}, SettingsError, "nothing can be trained for 'judged@3'"),
        ({"objective": "lambdarank"}, SettingsError, "objective is 'lambdarank'; use "),
        ({"monotone": "up"}, SettingsError, "monotone is 'up'"),
        ({"monotone": {1: 2}}, SettingsError, "monotone of 1 is 2; use 1 where"),
        ({"monotone": {99: 1}}, DataError, "there is no feature '99'"),
        ({"early_stop": 5}, SettingsError, "early_stop needs a validation set"),
        ({"position_bias_reg": 1.0}, SettingsError, "position_bias_reg needs positions"),
        (
            {"rankers": 2, "trees": 4, "objective": "lambdamart", "tree": "leafwise", "features": 1},
            SettingsError,
            "only 1 differs",
        ),
        ({"objective": "map", "positions": [0] * 4}, SettingsError, "objective map knows no positions"),
        ({"threads": 0}, ValueError, "threads is 0"),
        ({"threads": "2"}, ValueError, "threads is '2'; give a number from 1 up"),
        ({"weights": [1.0]}, ArrayError, "there are 1 weights, but X has 2 queries and 4 rows"),
        ({"weights": [1.0, -2.0]}, ArrayError, r"weight 1 \(from 0\) is -2.0"),
        ({"weights": [0.0, 0.0]}, ArrayError, "all weights are zero"),
        ({"init_scores": [1, 2, 3, np.nan]}, ArrayError, r"init_scores of row 3 \(from 0\) is nan"),
        ({"init_scores": [1, 2]}, ArrayError, "init_scores has 2 entries, but X has 4 rows"),
        ({"positions": [1]}, ArrayError, "positions has 1 entry, but X has 4 rows"),
        ({"group": [2, 2]}, ArrayError, "qid and group both"),
        ({"feature_names": ["a"]}, ArrayError, "1 column is named, but X has 2 columns"),
        ({"valid": (1, 2)}, ArrayError, "valid is a tuple of 2; give"),
        ({"valid": "v.svm"}, ArrayError, "valid is a str; give"),
        ({"valid": ([[1.0]], [1], [1])}, ArrayError, "valid has 1 column, where 2 are due"),
        ({"valid": [([[np.inf, 1]], [1], [1])]}, ArrayError, r"valid: row 0 \(from 0\), column 1 is inf"),
        ({"gain": "0,1", "objective": "lambdamart"}, None, ""),
        ({"gain": [0.0], "objective": "lambdamart"}, SettingsError, "gain table"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, Any], kind: type[Exception] | None, message: str) -> None:
    settings: Any = {"trees": 1, "min_docs": 1} | given
    if kind is None:
        lmart.train(*SMALL, **settings)
    else:
        with pytest.raises(kind, match=message):
            lmart.train(*SMALL, **settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]],), "there are no labels; give y"),
        (([[1.0]], [1]), "which rows are a query is not given"),
        (([[1.0]], [1, 2], [1]), "y has 2 entries, but X has 1 row"),
        (([[1.0]], [-1], [1]), r"the label of row 0 \(from 0\) is -1.0"),
        (([[1.0]], [np.nan], [1]), r"the label of row 0 \(from 0\) is nan"),
        (([[1.0]], ["good"], [1]), "y holds no numbers"),
        (([[1.0]], [[1, 2]], [1]), "y has 2 dimensions"),
        (([1.0], [1], [1]), "X has 1 dimension"),
        ((np.zeros((0, 2)), [], []), "X has no rows"),
        (([["a"]], [1], [1]), "X holds no numbers"),
        (([[1j]], [1], [1]), "complex numbers"),
        (([[1.0], [np.inf]], [1, 0], [1, 1]), r"X: row 1 \(from 0\), column 1 is inf; mend it, or give allow_inf=True"),
        ((TRAIN,), r"give lmart.read\('.*train.svm'\)"),
        ((DATA, [1.0]), "a Dataset has its own y; leave that out"),
        ((DATA, None, [1]), "a Dataset has its own qid"),
    ],
)
def test_data_that_cannot_be_used(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArrayError, match=message) as told:
        lmart.train(*arguments, trees=1)
    assert isinstance(told.value, ValueError) and isinstance(told.value, DataError)


def test_infinite_values_may_be_data(tmp_path: Path) -> None:
    data = tmp_path / "d.svm"
    data.write_text("1 qid:1 1:inf 2:1\n0 qid:1 1:2 2:1\n0 qid:2 1:-inf 2:3\n1 qid:2 1:5 2:2\n")
    rows = [[np.inf, 1.0], [2.0, 1.0], [-np.inf, 3.0], [5.0, 2.0]]
    expected = commanded(tmp_path, "--allow-inf", "--trees", "3", "--min-docs", "1", data=data)
    model = lmart.train(rows, [1, 0, 0, 1], [1, 1, 2, 2], trees=3, min_docs=1, allow_inf=True)
    assert saved(model, tmp_path) == expected


def test_warnings_name_the_line_that_called() -> None:
    with pytest.warns(UserWarning) as told:
        lmart.train([[1.0], [2.0]], [1, 1], [1, 1], trees=1)
    assert [str(one.message) for one in told] == [
        "nothing to learn: the only query has no pair of documents with different labels; check the labels; every "
        "score will be 0"
    ]
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="^truncation has no effect on objective xendcg"):
        lmart.train(*SMALL, trees=1, min_docs=1, objective="xendcg", truncation=5)


@pytest.mark.parametrize(("name", "what"), [("rel", "labels"), ("QID", "query ids"), ("docno", "document ids")])
def test_features_with_the_names_of_labels_and_ids_are_told_once(name: str, what: str) -> None:
    names = ["a", name]
    train_set, valid = (lmart.Dataset(X[:, :2], Y, QID, feature_names=names) for _ in range(2))
    with pytest.warns(UserWarning) as told:
        lmart.train(train_set, valid=valid, trees=1, rankers=1)
    what = f"the feature '{name}' is named as {what} usually are; leave it out if it holds them"
    assert [str(one.message) for one in told] == [what]


def test_columns_of_validation_sets_go_by_name() -> None:
    pa = pytest.importorskip("pyarrow")
    columns = {f"f{i}": X[:, i] for i in range(4)}
    valid = {f"f{i}": XV[:, i] for i in (3, 1, 2, 0)}
    settings: Any = {"trees": 8, "early_stop": 2, "rankers": 1}
    plain = lmart.train(X[:, :4], Y, QID, (XV[:, :4], YV, QV), **settings)
    named = lmart.train(pa.table(columns), Y, QID, (pa.table(valid), YV, QV), **settings)
    assert plain.n_trees == named.n_trees
    assert plain.predict(X[:, :4]).tolist() == named.predict(pa.table(columns)).tolist()
    del valid["f2"]
    with pytest.warns(UserWarning, match="valid: 1 of 4 features of the model has no column: 'f2'"):
        lmart.train(pa.table(columns), Y, QID, (pa.table(valid), YV, QV), **settings)
    with pytest.raises(DataError, match="'f2'"):
        lmart.train(pa.table(columns), Y, QID, (pa.table(valid), YV, QV), strict=True, **settings)


def test_tables_that_lack_columns_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,qid,a,b\n1,1,2,3\n0,1,1,1\n")
    (tmp_path / "b.csv").write_text("label,qid,a\n1,2,2\n0,2,1\n")
    data = lmart.read([tmp_path / "a.csv", tmp_path / "b.csv"])
    with pytest.warns(UserWarning, match="b.csv: .*'b'.*; counted as 0"):
        lmart.train(data, trees=1, min_docs=1)
    with pytest.raises(DataError, match=r", or do without strict$"):
        lmart.train(data, trees=1, min_docs=1, strict=True)


def test_no_copy_of_a_large_array_is_made() -> None:
    """The array is read piece by piece: of float32 in Fortran's order there is never a second one."""
    import tracemalloc

    rows = np.asfortranarray(np.random.default_rng(1).random((60_000, 40), np.float32))
    labels, sizes = np.arange(60_000) % 3, np.full(6000, 10)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = unbinned(lmart.Dataset(rows, labels, group=sizes), "X")
        before = tracemalloc.get_traced_memory()[0]
        for start in range(0, 60_000, 16_384):
            data.features.between(start, min(60_000, start + 16_384))
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - before < 2 * 16_384 * 40 * 12  # one piece with its columns, the next one beside it


def test_going_on_from_a_model_gives_the_bytes_of_the_command_line(tmp_path: Path) -> None:
    first = lmart.train(DATA, trees=5, rankers=1, learning_rate=0.2)
    first.save(tmp_path / "first.json")
    options = ("--continue-from", tmp_path / "first.json", "--trees", "6", "--valid", VALI, "--early-stop", "3")
    settings: Any = {"trees": 6, "early_stop": 3}
    expected = commanded(tmp_path, *options)
    assert (
        saved(lmart.train(DATA, valid=VALID, continue_from=tmp_path / "first.json", **settings), tmp_path) == expected
    )
    arrays = (XV, YV, QV)
    assert saved(lmart.train(X, Y, QID, arrays, continue_from=first, **settings), tmp_path) == expected
    one_run = lmart.train(DATA, trees=9, rankers=1, learning_rate=0.2)
    rest = lmart.train(DATA, trees=4, learning_rate=0.2, continue_from=first)
    assert saved(rest, tmp_path) == saved(one_run, tmp_path)


def test_a_last_training_on_all_data_gives_the_bytes_of_the_command_line(tmp_path: Path) -> None:
    settings: Any = {"trees": 24, "early_stop": 4, "learning_rate": 0.3, "refit": True}
    options = ("--trees", "24", "--early-stop", "4", "--learning-rate", "0.3")
    expected = commanded(tmp_path, *options, "--valid", VALI, "--refit")
    assert saved(model := lmart.train(DATA, valid=VALID, **settings), tmp_path) == expected
    assert saved(lmart.train(X, Y, QID, (XV, YV, QV), **settings), tmp_path) == expected
    before = lmart.train(DATA, valid=VALID, **settings | {"refit": False})
    assert model.history is not None and before.history is not None
    assert model.history.measures == before.history.measures and saved(before, tmp_path) != expected


def test_a_last_training_on_all_data_goes_by_the_names_of_features(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = [f"f{k}" for k in range(X.shape[1])]
    frame, other = pandas.DataFrame(X, columns=names), pandas.DataFrame(XV, columns=names)
    settings: Any = {"trees": 6, "rankers": 1, "refit": True}
    first = saved(lmart.train(frame, Y, QID, (other, YV, QV), **settings), tmp_path)
    assert saved(lmart.train(frame, Y, QID, (other[names[::-1]], YV, QV), **settings), tmp_path) == first


def test_what_a_last_training_on_all_data_refuses() -> None:
    for given, message in (
        ({}, "refit needs a validation set"),
        ({"valid": VALID, "weights": [1.0] * DATA.n_queries}, "without weights, init_scores and positions"),
        ({"valid": VALID.with_metadata(weights=[1.0] * VALID.n_queries)}, "without weights, init_scores and pos"),
        ({"valid": VALID, "continue_from": lmart.train(DATA, trees=1, rankers=1)}, "refit does not go with"),
    ):
        settings: Any = given
        with pytest.raises(SettingsError, match=message):
            lmart.train(DATA, trees=2, refit=True, **settings)


def test_what_a_model_to_go_on_from_refuses() -> None:
    first = lmart.train(DATA, trees=2, rankers=1)
    for given, message in (
        ({"rankers": 2}, "continue_from adds the trees of one ranker"),
        ({"objective": "lambdamart+xendcg"}, "continue_from adds the trees of one ranker"),
        ({"positions": [0] * len(Y)}, "positions do not go with continue_from"),
        ({"absent": "missing"}, "absent missing does not go with a model that says 'zero'"),
    ):
        settings: Any = given
        with pytest.raises(SettingsError, match=message.replace("+", r"\+")):
            lmart.train(DATA, trees=2, continue_from=first, **settings)
    with pytest.raises(ArrayError, match="continue_from is a int"):
        lmart.train(DATA, trees=2, continue_from=3)
    with pytest.warns(UserWarning, match="^monotone holds for the new trees only"):
        lmart.train(DATA, trees=2, continue_from=first, monotone={1: 1})


def test_refusals_and_warnings_name_arguments_not_options(tmp_path: Path) -> None:
    named, others = (lmart.Dataset(*SMALL, feature_names=names) for names in (["a", "b"], ["a", "c"]))
    with pytest.raises(DataError, match=r"do without strict$") as caught:
        lmart.train(named, valid=others, strict=True)
    assert caught.value.args == (str(caught.value),)
    with pytest.warns(UserWarning, match=r"document \(min_docs\) and a hessian of 0.001 \(min_hessian\)"):
        model = lmart.train([[1.0], [2.0]], [1, 0], [1, 1], trees=2000, rankers=1, min_docs=1)
    (tmp_path / "d.svm").write_text("1 qid:1 1:inf 5:1\n1 qid:2 1:inf\n0 qid:1 1:-inf\n")
    with pytest.raises(DataError, match=r"1:inf'; use allow_inf to take it$"):
        lmart.read(tmp_path / "d.svm")
    (tmp_path / "t.svm").write_text("1:1 2:3\n")
    with pytest.raises(DataError, match=r"do without strict$"):
        model.predict_letor(tmp_path / "t.svm", strict=True)


def test_the_history_is_the_report_of_the_command_line(tmp_path: Path) -> None:
    options = ["--trees", "40", "--early-stop", "3", "--valid", str(VALI), "--report", str(tmp_path / "r")]
    commanded(tmp_path, *options)
    model = lmart.train(DATA, valid=VALID, trees=40, early_stop=3)
    assert model.history is not None
    reports = [json.loads((tmp_path / "r").read_text()), dict(model.history.content)]
    seconds = [one.pop("seconds") for one in reports]
    del reports[0]["run"]  # whose command line and files Python has none of
    assert reports[0] == reports[1] and seconds[0].keys() - {"choosing"} == seconds[1].keys()
    assert repr(pickle.loads(pickle.dumps(model)).history) == repr(model.history)
    model.save(tmp_path / "m")
    assert lmart.load(tmp_path / "m").history is None


def test_a_report_of_a_round_says_what_was_true_in_it() -> None:
    rounds: list[lmart.RoundReport] = []
    history = lmart.train(DATA, trees=6, rankers=2, callback=rounds.append).history
    assert history is not None
    values = [value for ranker in history.rankers for value in ranker.curves[0].values]
    assert [one.measure_training() for one in rounds] == values and len(set(values)) > 1


def test_what_was_not_measured_in_a_round_is_refused_after_it() -> None:
    reports: list[lmart.RoundReport] = []
    with WorkerPool(1) as pool:
        train(in_memory(DATA, "X"), [], TrainSettings(trees=2, rankers=1), pool, reports.append)
    with pytest.raises(lmart.LmartError, match="was not measured after this round"):
        reports[0].measure_training()
