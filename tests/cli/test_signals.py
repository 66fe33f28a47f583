"""Signals: a run ends within a tree, with the right status and one line, and leaves nothing half-written behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.commands import run, shell, start
from helpers.paths import SAMPLE
from helpers.waiting import LIMIT

from lmart.cli import signals as own_process
from lmart.errors import ExitStatus

TRAIN = SAMPLE / "train.svm"
SAID = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminated by SIGHUP",
}
STATUS = {signal.SIGINT: ExitStatus.INTERRUPTED, signal.SIGTERM: ExitStatus.TERMINATED, signal.SIGHUP: 129}


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile once, in this process, what the runs below need."""
    run("train", "--data", TRAIN, "--trees", "2", "--out", tmp_path_factory.mktemp("once") / "m.json")


@contextmanager
def long_training(folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run that would take minutes, once its first tree is grown."""
    arguments = ("train", "--data", TRAIN, "--trees", "1000000", "--out", "m.json", "--threads", "2")
    with start(*arguments, *more, folder=folder) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"/1000000 trees" in line:
                break
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", STATUS)
def test_training_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "m.json").write_text("old")
    with long_training(tmp_path) as process:
        process.send_signal(number)
        process.send_signal(number)  # `timeout` and terminals may send it twice
        stdout, stderr = process.communicate(timeout=LIMIT)
    assert (process.returncode, stdout) == (STATUS[number], b"")
    *progress, last = stderr.decode().splitlines()
    assert all(line.startswith("lmart: ") and " trees" in line for line in progress)
    assert re.fullmatch(f"lmart: {SAID[number]} after [0-9,]+ of 1,000,000 trees; nothing was written", last)
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
    assert (tmp_path / "m.json").read_text() == "old"


def test_an_interrupt_before_the_first_command_line_is_looked_at(tmp_path: Path) -> None:
    """While the modules of the command line itself are imported; what interrupts them here is the import of one."""
    (tmp_path / "click.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ndef __getattr__(name): time.sleep(10)\n"
    )
    early = tmp_path / "early"
    early.mkdir()
    body = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (early / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'lmart.cli': exec({body!r})\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    for folder in (tmp_path, early):
        with start("--help", environment={"PYTHONPATH": str(folder)}, folder=tmp_path) as process:
            stdout, stderr = process.communicate()
        assert (process.returncode, stdout) == (130, b"")
        said = b"lmart: interrupted before the work began; nothing was written\n"
        assert stderr == (said if folder is tmp_path else b"")  # in the other one nothing can be said yet


def test_code_that_is_being_loaded_is_not_left_half_done() -> None:
    script = """
import os, signal, time
from lmart.cli import signals as process
from lmart.interrupts import LOADING
process.prepare()
scope = {"__name__": LOADING, "os": os, "signal": signal}
exec("def load():\\n os.kill(os.getpid(), signal.SIGTERM)\\n print('whole')", scope)
try:
    scope["load"]()
    time.sleep(10)
except process.Stopped as stopped:
    print(process.status_of(stopped))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=LIMIT)
    assert done.stdout.split() == [b"whole", b"143"]
    from llvmlite.binding import executionengine

    assert executionengine.__name__ == "llvmlite.binding.executionengine"


@pytest.mark.slow
@pytest.mark.parametrize("number", STATUS)
def test_a_package_that_is_being_imported_is_not_left_half_done(number: signal.Signals, tmp_path: Path) -> None:
    """Even if it would swallow the exception, as those that are written in C do."""
    (tmp_path / "onnx.py").write_text(
        f"import os, time\ntry: os.kill(os.getpid(), {int(number)})\n"
        "except BaseException: raise ImportError('no memory')\n"
        "open('whole', 'w').close()\n"
        "def __getattr__(name):\n    if name[:1] != '_': time.sleep(10)\n"
        "    raise AttributeError(name)\n"
    )
    run("train", "-q", "--data", TRAIN, "--trees", "1", "--rankers", "1", "--out", tmp_path / "m.json")
    with start("convert", "m.json", "m.onnx", environment={"PYTHONPATH": str(tmp_path)}, folder=tmp_path) as process:
        stdout, stderr = process.communicate(timeout=LIMIT)
    assert (process.returncode, stdout) == (STATUS[number], b"")
    assert stderr.decode() == f"lmart: {SAID[number]} during convert; nothing was written\n"
    assert (tmp_path / "whole").exists() and not (tmp_path / "m.onnx").exists()


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    program = "import os, signal; from lmart.cli import signals; signals.prepare(); os.kill(os.getpid(), signal.SIGHUP)"
    line = f"trap '' HUP; {sys.executable} -c '{program}; print(1)'"
    done = shell(line, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")


@pytest.mark.slow
def test_prediction_is_stopped_while_it_waits_for_input(tmp_path: Path) -> None:
    run("train", "--data", TRAIN, "--trees", "2", "--out", tmp_path / "m.json")
    os.mkfifo(tmp_path / "rows")
    with (
        start("predict", "-m", "m.json", "--data", "rows", "--out", "scores", folder=tmp_path) as process,
        (tmp_path / "rows").open("wb"),  # waits until the command has opened it as well
    ):
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT)
        assert process.communicate()[1] == b"lmart: interrupted during predict; nothing was written\n"
    assert process.returncode == 130
    assert not (tmp_path / "scores").exists()


def planted(
    body: str, *arguments: str | Path, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command with a signal at a planted place.

    body : defines `here(frame, event) -> bool`, asked at each call and return in any thread until it is True; the place
    """
    # Loaded before the profile, numba costs a run a quarter less of the processor; not where its import is the place.
    load = "" if "numba/core/config.py" in body else "import numba"
    program = f"""
import _thread, os, signal, sys, threading, time
{load}
{body}
start = _thread.start_new_thread
_thread.start_new_thread = lambda work, given: start(lambda *given: (sys.setprofile(look), work(*given)), given)
met = []
def look(frame, event, argument):
    if not met and here(frame, event):
        met.append(1)
        os.kill(os.getpid(), NUMBER)
from lmart.__main__ import run
threading.setprofile(look)
sys.setprofile(look)
run()
"""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    surroundings = {**os.environ, **(environment or {})}
    return subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, check=False, timeout=LIMIT)


def at_call(number: int, name: str, file: str, event: str = "call", *, nth: int = 1, worker: bool = False) -> str:
    """Return a body for `planted`: a function of a file is called, or returned from, after the handlers are in.

    nth    : which of these calls or returns it is
    worker : whether those in worker threads are counted, else those in the main one
    """
    return f"""
NUMBER = {int(number)}
left = {nth}
def here(frame, event):
    global left
    if (event != {event!r} or frame.f_code.co_name != {name!r} or not frame.f_code.co_filename.endswith({file!r})
            or signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            or (threading.current_thread() is not threading.main_thread()) is not {worker}):
        return False
    left -= 1
    return left == 0
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.json"
    run("train", "--data", TRAIN, "--trees", "2", "--out", path)
    return path


@pytest.mark.slow
class TestPlanted:
    """A signal at one certain place of a run."""

    @pytest.mark.parametrize(
        "place",
        [
            at_call(signal.SIGTERM, "<module>", "numba/core/config.py"),
            at_call(signal.SIGTERM, "load_overload", "code_cache.py"),
            at_call(signal.SIGTERM, "load_overload", "code_cache.py", "return", nth=3),
            at_call(signal.SIGTERM, "_first_pass", "binning/two_passes.py"),
            at_call(signal.SIGTERM, "_first_pass", "binning/two_passes.py", "return"),
            at_call(signal.SIGTERM, "read_training_set", "binning/two_passes.py", "return"),
            at_call(signal.SIGTERM, "work", "lmart/threads.py", "return", worker=True),
            at_call(signal.SIGTERM, "grow_round", "tree_round.py"),
            at_call(signal.SIGTERM, "grow_round", "tree_round.py", "return", nth=3),
            at_call(signal.SIGTERM, "update", "terminal/progress.py", nth=2),
            at_call(signal.SIGTERM, "finish", "training/boosting.py"),
            at_call(signal.SIGTERM, "_start", "streams/outputs.py", "return"),
            at_call(signal.SIGTERM, "_put", "streams/outputs.py", "return"),
            at_call(signal.SIGTERM, "_drain", "streams/outputs.py", "return", nth=2),
            at_call(signal.SIGTERM, "_put_in_place", "streams/outputs.py"),
        ],
        ids=[
            *("modules load", "kernels load", "some kernels are loaded", "before reading", "after a pass"),
            *("all is read", "in a worker", "first tree", "third tree", "progress", "all trees", "output is open"),
            *("output has begun", "output is whole", "before the names"),
        ],
    )
    def test_wherever_training_is_there_is_one_line_and_no_file(self, place: str, tmp_path: Path) -> None:
        arguments = ("--trees", "4", "--threads", "2", "-o", "m.json", "--report", "r.json")
        done = planted(place, "train", "-q", "--data", TRAIN, *arguments, folder=tmp_path)
        assert done.returncode == ExitStatus.TERMINATED
        said = done.stderr.decode().splitlines()
        assert re.fullmatch(r"lmart: terminated (during train|after [1-4] of 4 trees); nothing was written", said[-1])
        assert [line for line in said if not line.startswith("lmart: ")] == []
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize(("event", "nth"), [("call", 1), ("return", 1), ("call", 2), ("return", 2)])
    def test_between_the_names_of_two_outputs_it_waits(self, event: str, nth: int, tmp_path: Path) -> None:
        """Else the files would be of two runs."""
        for name in ("m.json", "r.json"):
            (tmp_path / name).write_text("old")
        place = at_call(signal.SIGTERM, "_rename", "streams/outputs.py", event, nth=nth)
        arguments = ("--trees", "2", "-o", "m.json", "--report", "r.json")
        done = planted(place, "train", "-q", "--data", TRAIN, *arguments, folder=tmp_path)
        assert sorted(os.listdir(tmp_path)) == ["m.json", "r.json"]
        assert all((tmp_path / name).read_text() != "old" for name in ("m.json", "r.json"))
        if done.returncode:  # else the work was done by then
            said = "lmart: terminated after 2 of 2 trees; wrote r.json and m.json"
            assert (done.returncode, done.stderr.decode().splitlines()[-1]) == (ExitStatus.TERMINATED, said)

    @pytest.mark.parametrize(
        "place",
        [
            at_call(signal.SIGINT, "compile_and_end", "code_cache.py"),
            at_call(signal.SIGINT, "propagate", "numba/core/typeinfer.py", nth=2),
            at_call(signal.SIGINT, "lower_inst", "numba/core/lowering.py", nth=9),
            at_call(signal.SIGINT, "_finalize_specific", "numba/core/codegen.py", nth=2),
            at_call(signal.SIGINT, "finalize_object", "llvmlite/binding/executionengine.py"),
            at_call(signal.SIGINT, "save_overload", "code_cache.py"),
            at_call(signal.SIGINT, "write_code", "code_files.py"),
            at_call(signal.SIGINT, "write_code", "code_files.py", "return", nth=2),
        ],
        ids=[
            *("first kernel", "types", "lowering", "optimizing", "loading", "before keeping", "while keeping", "kept"),
        ],
    )
    def test_while_compiling(self, place: str, tmp_path: Path) -> None:
        """The compiler calls back from places that cannot raise; the signal is not lost there."""
        folder = tmp_path / "run"
        folder.mkdir()
        environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = planted(place, "train", "--data", TRAIN, folder=folder, environment=environment)
        assert done.returncode == ExitStatus.INTERRUPTED
        said = done.stderr.decode().splitlines()
        assert said[-1] == "lmart: interrupted during train; nothing was written"
        assert [line for line in said if not line.startswith("lmart: ")] == []
        assert os.listdir(folder) == []
        assert {path.suffix for path in (tmp_path / "cache").glob("lmart/*")} <= {".kernel", ".lock"}

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_where_python_wraps_what_is_raised(self, number: signal.Signals, model: Path, tmp_path: Path) -> None:
        """The class body of a settings class: an exception there comes out as a RuntimeError."""
        done = planted(at_call(number, "__set_name__", "dataclasses.py"), "eval", "-m", model, folder=tmp_path)
        assert (done.returncode, done.stdout) == (STATUS[number], b"")
        assert done.stderr.decode() == f"lmart: {SAID[number]} during eval; nothing was written\n"

    @pytest.mark.parametrize("nameless", [True, False])
    @pytest.mark.parametrize(
        ("name", "file", "event"),
        [
            ("__exit__", "streams/outputs.py", "call"),
            ("_discard", "streams/outputs.py", "call"),
            ("remove", "streams/temporaries.py", "call"),
            ("create_named", "streams/temporaries.py", "return"),
            ("create", "streams/temporaries.py", "return"),
            ("give_name", "streams/temporaries.py", "return"),
            ("_rename", "streams/outputs.py", "call"),
        ],
    )
    def test_no_temporary_file_stays(
        self, nameless: bool, name: str, file: str, event: str, model: Path, tmp_path: Path
    ) -> None:
        body = at_call(signal.SIGTERM, name, file, event)
        if not nameless:
            body += "from lmart.streams import temporaries\ntemporaries._can_be_named_later = lambda target: False\n"
        (tmp_path / "o").write_text("old")
        done = planted(body, "predict", "-m", model, "--data", TRAIN, "-o", "o", folder=tmp_path)
        assert os.listdir(tmp_path) == ["o"]
        said = done.stderr.decode()
        if not nameless and name == "give_name":
            assert (done.returncode, said) == (0, "")  # is not called
        elif (tmp_path / "o").read_text() == "old":
            assert (done.returncode, said) == (143, "lmart: terminated during predict; nothing was written\n")
        elif name != "_rename" or done.returncode:  # where the signal waits, perhaps until the work is done
            assert (done.returncode, said) == (143, "lmart: terminated during predict; wrote o\n")

    def test_after_the_last_step_nothing_changes_the_status(self, model: Path, tmp_path: Path) -> None:
        for name in ("finish", "leave", "remove_all"):
            event = "return" if name == "finish" else "call"
            file = "temporaries.py" if name == "remove_all" else "signals.py"
            done = planted(
                at_call(signal.SIGTERM, name, file, event), "eval", "-m", model, "--data", TRAIN, folder=tmp_path
            )
            assert (done.returncode, done.stderr) == (0, b"") and done.stdout

    def test_an_alarm_set_at_the_end_does_not_go_off(self, model: Path, tmp_path: Path) -> None:
        body = """
from lmart.cli import signals as process
NUMBER = 0
leave, exit = process.leave, os._exit
def late(status): time.sleep(0.05); exit(status)
def put_off(status): process._Stopper.later(signal.SIGINT); os._exit = late; leave(status)
process.leave = put_off
def here(frame, event): return False
"""
        done = planted(body, "eval", "-m", model, "--data", TRAIN, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, b"")

    def test_an_alarm_from_somebody_else_has_its_own_status(self, model: Path, tmp_path: Path) -> None:
        body = at_call(signal.SIGALRM, "read_model", "model_files.py")
        done = planted(body, "eval", "-m", model, "--data", TRAIN, folder=tmp_path)
        said = b"lmart: terminated by SIGALRM during eval; nothing was written\n"
        assert (done.returncode, done.stderr) == (142, said)

    def test_a_result_that_stands_is_not_denied(self, model: Path, tmp_path: Path) -> None:
        body = at_call(signal.SIGINT, "summary", "narration.py")
        arguments = ("--data", TRAIN, "--trees", "2", "-o", "m", "--report", "r")
        done = planted(body, "train", "-q", *arguments, folder=tmp_path)
        said = b"lmart: interrupted after 2 of 2 trees; wrote r and m\n"
        assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (130, said)

    def test_a_result_on_standard_output_is_not_denied(self, model: Path, tmp_path: Path) -> None:
        body = at_call(signal.SIGINT, "finish", "predictions.py")
        done = planted(body, "predict", "-m", model, "--data", TRAIN, folder=tmp_path)
        assert done.returncode == 130 and done.stdout
        said = "lmart: interrupted during predict; what was written to standard output is not complete\n"
        assert done.stderr.decode() == said

    def test_trials_that_are_kept_are_not_denied(self, tmp_path: Path) -> None:
        pytest.importorskip("optuna")
        body = at_call(signal.SIGINT, "on_trial", "training_progress.py", "return")
        search = ("--folds", "2", "--tune-trials", "3", "--trees", "2", "--tune-file", "t")
        done = planted(body, "train", "-q", "--data", TRAIN, *search, folder=tmp_path)
        said = b"lmart: interrupted after 1 of 3 trials; nothing was written; what was tried is kept in t\n"
        assert (done.returncode, done.stderr) == (130, said)
        assert os.listdir(tmp_path) == ["t"]

    @pytest.mark.parametrize(("option", "lines"), [("-q", 1), ("-qq", 0)])
    def test_only_twice_quiet_silences_the_reason(self, option: str, lines: int, model: Path, tmp_path: Path) -> None:
        for place in (("read_dataset", "reading.py"), ("__set_name__", "dataclasses.py")):
            body = at_call(signal.SIGTERM, *place)
            done = planted(body, "eval", option, "-m", model, "--data", TRAIN, folder=tmp_path)
            assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (143, b"", lines)


class TestStopper:
    def program(self, body: str) -> subprocess.CompletedProcess[str]:
        head = "import os, signal, time\nfrom lmart.cli import signals as process\nprocess.prepare()\n"
        return subprocess.run([sys.executable, "-c", head + body], capture_output=True, text=True, check=False)

    def test_contexts_are_left(self) -> None:
        body = (
            "try:\n"
            "    try: os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)\n"
            "    finally: print('cleaned', flush=True)\n"
            "except KeyboardInterrupt as interrupt: process.leave(process.status_of(interrupt))"
        )
        done = self.program(body)
        assert (done.returncode, done.stdout, done.stderr) == (143, "cleaned\n", "")

    def test_a_second_signal_does_not_disturb_the_cleaning(self) -> None:
        body = (
            "try:\n"
            "    try: os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)\n"
            "    finally:\n"
            "        process.SAME_REQUEST_SECONDS = 3600\n"
            "        os.kill(os.getpid(), signal.SIGTERM); time.sleep(0.1); print('cleaned', flush=True)\n"
            "except KeyboardInterrupt as interrupt: process.leave(process.status_of(interrupt))"
        )
        assert self.program(body).stdout == "cleaned\n"

    def test_a_later_signal_counts_again(self) -> None:
        body = (
            "process.SAME_REQUEST_SECONDS = 0\n"
            "for _ in range(2):\n"
            "    try: os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\n"
            "    except KeyboardInterrupt: print('stopped', flush=True)\n"
        )
        assert self.program(body).stdout == "stopped\nstopped\n"

    def test_a_signal_where_nothing_can_be_raised_comes_again(self) -> None:
        body = (
            "class Thing:\n"
            "    def __del__(self): os.kill(os.getpid(), signal.SIGINT); [i for i in range(1000)]\n"
            "try: Thing(); time.sleep(5)\n"
            "except KeyboardInterrupt: print('stopped')\n"
        )
        done = self.program(body)
        assert (done.stdout, done.stderr) == ("stopped\n", "")

    def test_what_is_left_half_made_by_a_stop_is_not_told(self) -> None:
        body = (
            "class Thing:\n"
            "    def __init__(self): os.kill(os.getpid(), signal.SIGINT); time.sleep(5); self.owned = True\n"
            "    def __del__(self): self.owned\n"
            "try: Thing()\n"
            "except KeyboardInterrupt: print('stopped')\n"
        )
        done = self.program(body)
        assert (done.stdout, done.stderr) == ("stopped\n", "")

    def test_other_exceptions_there_are_still_told(self) -> None:
        body = "class Thing:\n    def __del__(self): 1 / 0\nThing()"
        assert "ZeroDivisionError" in self.program(body).stderr

    def test_statuses(self) -> None:
        assert own_process.status_of(KeyboardInterrupt()) == ExitStatus.INTERRUPTED
        assert own_process.status_of(own_process.Stopped(signal.SIGTERM)) == ExitStatus.TERMINATED

    def test_an_interrupt_is_found_behind_what_wraps_it(self) -> None:
        first, second, third = own_process.Stopped(signal.SIGTERM), RuntimeError(), ValueError()
        assert own_process.interrupt_behind(first) is first
        second.__cause__, third.__context__ = first, second
        assert own_process.interrupt_behind(third) is first
        assert own_process.interrupt_behind(ValueError()) is None
        second.__cause__ = third  # a ring
        assert own_process.interrupt_behind(third) is None
