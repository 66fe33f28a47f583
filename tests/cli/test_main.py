"""The command line as a whole: outcomes and their exit statuses, streams in every condition, odd surroundings."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import click
import pytest
from helpers.commands import PROGRAM, run, shell, start
from helpers.paths import SAMPLE
from helpers.reading_runs import model_of_good

from lmart import __version__
from lmart.cli import main as main_module
from lmart.cli.main import COMMANDS, main
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.progress import LONGEST_PAUSE, PlainProgress
from lmart.errors import DataError, ExitStatus, ModelError, OutputError, SettingsError

TRAIN = SAMPLE / "train.svm"


def pending(descriptor: int) -> int:
    """Return how many bytes can be read from a pipe."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.json"
    run("train", "--data", TRAIN, "--trees", "3", "--out", path, "--quiet")
    return path


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Return what stands on standard error when a command raises something, having asserted the exit status."""

    def of(fault: BaseException, status: int) -> str:
        @click.command()
        def command() -> None:
            raise fault

        monkeypatch.setattr(main, "get_command", lambda context, name: command)
        result = run("train", status=status)
        assert result.stdout == ""
        return result.stderr

    yield of


class TestOutcomes:
    """One test an exit status, and one a kind of fault."""

    def test_done(self) -> None:
        assert run("--version", status=ExitStatus.DONE).stdout == f"lmart {__version__}\n"

    @pytest.mark.parametrize("kind", [DataError, ModelError, OutputError])
    def test_failed(self, outcome: Callable[..., str], kind: type[DataError]) -> None:
        said = outcome(kind("label 'x' is not a number; write one", "d.svm", 3), ExitStatus.FAILED)
        assert said == "lmart: error: d.svm:3: label 'x' is not a number; write one\n"

    def test_every_fault_has_a_line(self, outcome: Callable[..., str]) -> None:
        more = (DataError("two", "d.svm", 2), DataError("three", "d.svm", 3))
        said = outcome(DataError("one", "d.svm", 1, more), ExitStatus.FAILED)
        assert said == "".join(f"lmart: error: d.svm:{n}: {w}\n" for n, w in enumerate(("one", "two", "three"), 1))

    def test_usage(self, outcome: Callable[..., str]) -> None:
        said = outcome(SettingsError("leaves is 1, which is outside its range: from 2 up"), ExitStatus.USAGE)
        assert said == "lmart: error: leaves is 1, which is outside its range: from 2 up; see 'lmart train --help'\n"

    def test_interrupted(self, outcome: Callable[..., str]) -> None:
        said = outcome(KeyboardInterrupt(), ExitStatus.INTERRUPTED)
        assert said == "lmart: interrupted during train; nothing was written\n"

    def test_pipe_closed(self, outcome: Callable[..., str]) -> None:
        assert outcome(BrokenPipeError(32, "Broken pipe"), ExitStatus.PIPE_CLOSED) == ""

    # TERMINATED needs a signal: see test_signals.py.

    def test_not_enough_memory(self, outcome: Callable[..., str]) -> None:
        said = outcome(MemoryError("Unable to allocate 8 EiB"), ExitStatus.FAILED)
        assert said.startswith("lmart: error: not enough memory (Unable to allocate 8 EiB); ") and said.count("\n") == 1

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (FileNotFoundError(2, "", "a\nb"), "a\\nb: No such file or directory"),
            (PermissionError(13, "", b"caf\xc3\xa9"), "café: Permission denied"),
            (OSError(28, "full"), "standard output: cannot be written: full; free space or choose another place"),
            (OSError(27, "long"), "standard output: cannot be written: long; free space or choose another place"),
            (OSError(5, ""), "Input/output error"),
        ],
    )
    def test_faults_of_the_system(self, outcome: Callable[..., str], fault: OSError, said: str) -> None:
        assert outcome(fault, ExitStatus.FAILED) == f"lmart: error: {said}\n"

    def test_a_mistake_of_ours_keeps_its_traceback(self, outcome: Callable[..., str]) -> None:
        with pytest.raises(ZeroDivisionError):
            outcome(ZeroDivisionError(), ExitStatus.FAILED)

    def test_hostile_text_is_escaped(self, outcome: Callable[..., str]) -> None:
        said = outcome(DataError("token '\x1b[2J\r\n\udcff' is bad", "\x07.svm", 1), ExitStatus.FAILED)
        assert said == "lmart: error: \\x07.svm:1: token '\\x1b[2J\\r\\n\\udcff' is bad\n"


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["nothing"], "no such command 'nothing'"),
            (["--nothing"], "no such option '--nothing'"),
            (["train", "--learning-rat", "1"], "no such option '--learning-rat'; perhaps '--learning-rate'"),
            (["train", "--leave", "5", "--data", "x"], "no such option '--leave'"),  # no prefixes
            (["train"], "missing option '--data'"),
            (["train", "--data", "x", "--leaves", "1"], "'1' is not 'auto' or a whole number from 2 to "),
            (["train", "--data", "x", "--trees", "-5"], "'-5' is not a whole number from 1 to 2147483647"),
            (["train", "--data", "x", "--trees", "1.5"], "'1.5' is not a whole number from 1 to 2147483647"),
            (["train", "--data", "x", "--trees", "1_0"], "'1_0' is not a whole number"),
            (["train", "--data", "x", "--learning-rate", "0"], "'0' is not a number above 0"),
            (["train", "--data", "x", "--learning-rate", "nan"], "'nan' is not a number above 0"),
            (["train", "--data", "x", "--learning-rate", "1e999"], "'1e999' is not a number above 0"),
            (["train", "--data", "x", "--learning-rate", "1_0"], "'1_0' is not a number above 0"),
            (
                ["train", "--data", "x", "--seed", "9" * 5000],
                "999...' is not a whole number from 0 to 9223372036854775807",
            ),
            (["train", "--data", "x", "--sample", "2"], "'2' is not 'auto' or a number above 0, up to 1"),
            (["train", "--data", "x", "--gain", "exp"], "gain 'exp' is not 'exp2', 'linear' or numbers"),
            (["train", "--data", "x", "--threads", "0"], "'0' is not a whole number from 1 to 2147483647"),
            (["train", "--data", "x", "--metric"], "option '--metric' requires an argument"),
            (["train", "--data", "x", "--absent", "none"], "'none' is not one of"),
            (["eval", "--data", "x", "--ties", "best", "--scores", "y"], "'best' is not one of"),
        ],
    )
    def test_one_line_and_status_2_before_any_data_is_read(self, arguments: list[str], said: str) -> None:
        result = run(*arguments, status=ExitStatus.USAGE)
        command = f"lmart {arguments[0]}" if arguments[0] in COMMANDS else "lmart"
        assert result.stdout == "" and result.stderr.count("\n") == 1
        assert result.stderr.startswith("lmart: error: ") and said in result.stderr
        assert result.stderr.endswith(f"; see '{command} --help'\n")

    def test_lmart_alone_shows_the_help(self) -> None:
        assert run().stdout == run("--help").stdout == run("-h").stdout == run("help").stdout
        assert all(name in run().stdout for name in COMMANDS)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_help(self, name: str) -> None:
        assert run(name, "-h").stdout.startswith(f"Usage: lmart {name} [OPTIONS]")


FULL = (
    b"lmart: error: standard output: cannot be written: No space left on device; free space or choose another place\n"
)
CLOSED = b"lmart: error: standard output: cannot be written: Bad file descriptor; choose another place\n"


@pytest.mark.slow
class TestStreams:
    """Closed, full and slow streams, as processes of their own."""

    def test_closed_output(self, tmp_path: Path) -> None:
        done = shell("lmart --help >&-", tmp_path)
        assert (done.returncode, done.stderr) == (1, CLOSED)

    def test_closed_error_stream(self, tmp_path: Path) -> None:
        done = shell("lmart nothing 2>&-", tmp_path)
        assert (done.returncode, done.stdout) == (2, b"")

    def test_messages_never_get_into_a_file_that_took_the_place_of_a_closed_stream(
        self, tmp_path: Path, model: Path
    ) -> None:
        done = shell(f"lmart train --data {TRAIN} --trees 2 --out m.json <&- 1<&- 2>&-", tmp_path)
        assert done.returncode == 0
        assert (tmp_path / "m.json").read_bytes().startswith(b"{")
        assert b"lmart:" not in (tmp_path / "m.json").read_bytes()

    def test_full_output(self, tmp_path: Path) -> None:
        done = shell("lmart --help > /dev/full", tmp_path)
        assert (done.returncode, done.stderr) == (1, FULL)

    def test_what_is_printed_late_is_not_lost(self) -> None:
        program = (
            "import click\n"
            "from lmart.__main__ import run\n"
            "from lmart.cli.main import main\n"
            "main.get_command = lambda context, name: click.Command('train', callback=lambda: print('x'))\n"
            "run()"
        )
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-c", program, "train"]
            buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
            done = subprocess.run(command, env=buffered, stdout=full, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr) == (1, FULL)

    RESULTS: ClassVar = {
        "json": "eval -m {model} --data {data} --json",
        "table": "eval -m {model} --data {data}",
        "queries": "eval -m {model} --data {data} --per-query -",
        "why": "predict -m {model} --data {data} --why 2 1 2",
        "scores": "predict -m {model} --data {data}",
        "folds": "train -qq --data {data} --folds 2 --trees 1",
        "help": "--help",
        "help of a command": "train --help",
        "version": "--version",
        "data": "convert {data} -",
    }

    @pytest.mark.parametrize(
        ("name", "unbuffered"), [*((name, "") for name in RESULTS), ("json", "1"), ("scores", "1"), ("help", "1")]
    )
    def test_a_result_that_does_not_fit_is_an_error(
        self, name: str, unbuffered: str, model: Path, in_folder: Path
    ) -> None:
        """The last write that the limit lets through is a short one."""
        line = self.RESULTS[name].format(model=model, data=TRAIN)
        run(*shlex.split(line))  # compiles
        (in_folder / "model.json").unlink(missing_ok=True)
        (in_folder / "full").write_bytes(bytes(1020))
        environment = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": unbuffered}
        done = shell(f"ulimit -f 1; lmart {line} >> full", in_folder, environment)
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
        assert done.stderr.startswith(b"lmart: error: standard output: ") and b"File too large" in done.stderr
        assert os.listdir(in_folder) == ["full"]

    def test_completion_that_does_not_fit_is_an_error(self, tmp_path: Path) -> None:
        environment = {"_LMART_COMPLETE": "zsh", "PYTHONUNBUFFERED": "1"}
        done = shell("lmart train -- > /dev/full", tmp_path, environment)
        assert (done.returncode, done.stderr) == (1, FULL)

    @pytest.mark.parametrize(
        ("arguments", "unbuffered"),
        [(("train", "--help"), "1"), (("train", "--help"), ""), (("convert", TRAIN, "-"), "")],
    )
    def test_output_that_does_not_block_is_waited_for(self, arguments: tuple[str, ...], unbuffered: str) -> None:
        whole = run(*arguments).stdout_bytes
        read_end, write_end = os.pipe()
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(write_end, False)
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        with subprocess.Popen(
            [*PROGRAM, *arguments], env=environment, stdout=write_end, stderr=subprocess.PIPE
        ) as process:
            os.close(write_end)
            while len(select.select([read_end], [], [], 60)[0]) and pending(read_end) < 4096:
                pass  # until the pipe is full
            with open(read_end, "rb") as reader:
                assert reader.read() == whole
            assert process.stderr is not None and process.stderr.read() == b""
        assert process.returncode == 0

    def test_an_older_file_stays_when_the_rest_of_the_result_is_lost(self, tmp_path: Path, model: Path) -> None:
        for line, names in (
            (f"eval -m {model} --data {TRAIN} --per-query old", ["old"]),
            (f"train -qq --data {TRAIN} --folds 2 --trees 1 --out old --oof scores --report r", ["old", "r", "scores"]),
        ):
            for name in names:
                (tmp_path / name).write_text(name)
            done = shell(f"lmart {line} > /dev/full", tmp_path)
            assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
            assert sorted(os.listdir(tmp_path)) == names
            assert [(tmp_path / name).read_text() for name in names] == names

    @pytest.mark.parametrize(
        "line",
        [
            "train --data none -o {}",
            "train --data none --report {}",
            "train --data none --folds 2 --oof {}",
            "predict -m none --data none -o {}",
            "eval -m none --data none --per-query {}",
            "convert none {}",
        ],
    )
    def test_an_output_that_cannot_be_is_found_before_data_is_read(
        self, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The data is not there, and what is said is about the output."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file").touch()
        for name in ("/proc/m.json", "/sys/x", ".", "file/x", "no/x", "x" * 256, "/dev/fd/77"):
            said = run(*line.format(name).split(), status=1).stderr
            assert said.startswith(f"lmart: error: {name}: ") and said.count("\n") == 1, said
        assert os.listdir(tmp_path) == ["file"]

    @pytest.mark.parametrize(
        "line",
        [
            "eval -m none --data none",
            "predict -m none --data none --why 1 1 2",
            "train --data none --folds 2",
            "convert none -",
        ],
    )
    def test_standard_output_that_is_closed_is_found_before_data_is_read(self, line: str, tmp_path: Path) -> None:
        done = shell(f"lmart {line} >&-", tmp_path)
        assert done.returncode == 1
        assert done.stderr == b"lmart: error: standard output: is not open for writing; choose another place\n"

    def test_full_error_stream_does_not_matter(self, tmp_path: Path) -> None:
        assert shell("lmart nothing 2> /dev/full", tmp_path).returncode == 2

    def test_file_size_limit(self, tmp_path: Path, model: Path) -> None:
        (tmp_path / "scores").write_text("old")
        line = f"ulimit -f 1; lmart predict -q -m {model} --data {TRAIN} --out scores"
        done = shell(line, tmp_path, {"PYTHONDONTWRITEBYTECODE": "1"})
        assert done.returncode == 1
        assert done.stderr.startswith(b"lmart: error: scores: ") and done.stderr.count(b"\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["scores"]
        assert (tmp_path / "scores").read_text() == "old"

    def test_reader_that_goes_away(self, tmp_path: Path, model: Path) -> None:
        line = (
            f"for i in {'x ' * 9}; do cat {TRAIN}; done | lmart predict -qm {model} --data - --group-by-qid | head -1"
        )
        done = shell(line + "; echo ${PIPESTATUS[1]}", tmp_path)
        assert done.stdout.splitlines()[-1] in (b"141", b"0")  # 0 when the pipe took everything first
        assert done.stderr == b""

    def test_help_into_a_pipe_that_is_closed_at_once(self) -> None:
        with start("--help") as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.close()
            assert (process.stderr.read(), process.wait()) == (b"", 141)

    def test_reader_of_the_log_that_goes_away_does_not_stop_the_work(self, tmp_path: Path) -> None:
        usual = {"PYTHONUNBUFFERED": ""}  # which would hide what stays in the buffer
        command = ("train", "--data", TRAIN, "--trees", "2", "--out", tmp_path / "m.json")
        with start(*command, environment=usual) as process:
            assert process.stderr is not None
            process.stderr.close()
            assert process.wait() == 0
        assert (tmp_path / "m.json").exists()


@pytest.mark.slow
class TestSurroundings:
    ODD: ClassVar = {
        "bare": {"LC_ALL": "C"},
        "ascii": {"PYTHONIOENCODING": "ascii"},
        "no utf-8": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        "decimal comma": {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"},
        "narrow": {"COLUMNS": "20", "LINES": "5"},
        "no home": {"HOME": "/proc/nonexistent"},
        "latin-1": {"PYTHONIOENCODING": "latin-1:strict"},
        "optimised": {"PYTHONOPTIMIZE": "2"},
    }

    @pytest.mark.parametrize("name", ODD)
    def test_odd_file_names_and_encodings(self, name: str, tmp_path: Path, model: Path) -> None:
        data = os.path.join(os.fsencode(tmp_path), "donn\u00e9es \u2713 ".encode() + b"\xff.svm")
        shutil.copy(os.fsencode(TRAIN), data)
        environment = {key: os.environ[key] for key in ("PATH", "NUMBA_CACHE_DIR") if key in os.environ}
        environment |= self.ODD[name]
        command: list[str | bytes] = [
            *PROGRAM,
            "train",
            "--data",
            data,
            "--trees",
            "3",
            "--threads",
            str(1 + [*self.ODD].index(name)),
            "--out",
            os.fsencode(tmp_path) + b"/m\xc3\xa9.json",
        ]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (0, b""), done.stderr
        assert b"Error" not in done.stderr
        assert (tmp_path / "m\u00e9.json").read_bytes() == model.read_bytes()
        command = [*PROGRAM, "eval", "--data", data + b"x", "--model", data]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
        assert done.stderr.startswith(b"lmart: error: ") and b".svm" in done.stderr

    def test_what_cannot_be_shown_is_escaped(self) -> None:
        program = "from lmart.cli import signals as process; process.prepare(); print('donn\\xe9es \\u2713 \\udcff')"
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        assert done.stdout == b"donn\\xe9es \\u2713 \\udcff\n"

    def test_the_folder_we_stand_in_is_gone(self, tmp_path: Path) -> None:
        done = shell("mkdir gone; cd gone; rmdir ../gone; lmart --version", tmp_path)
        if b"getcwd" not in done.stderr:  # python -m itself may refuse
            assert done.stdout == f"lmart {__version__}\n".encode()


class TestProgress:
    @pytest.mark.slow
    def test_no_control_characters_off_a_terminal(self, tmp_path: Path) -> None:
        done = shell(f"lmart train --data {TRAIN} --valid {SAMPLE / 'vali.svm'} --trees 20 </dev/null", tmp_path)
        assert done.returncode == 0 and done.stdout == b""
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f-\xff]", done.stderr)
        lines = done.stderr.decode().splitlines()
        assert all(line.startswith("lmart: ") for line in lines)
        assert any(line.startswith("lmart: 20/20 trees, ") for line in lines)

    @pytest.mark.slow
    @pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}])
    def test_plain_on_a_terminal_when_asked(self, tmp_path: Path, plain: dict[str, str]) -> None:
        assert "\x1b" not in self.on_terminal(tmp_path, {"TERM": "xterm", **plain})

    @pytest.mark.slow
    def test_a_bar_on_a_terminal(self, tmp_path: Path) -> None:
        shown = self.on_terminal(tmp_path, {"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "100"})
        assert "\x1b" in shown and "20/20 trees" in shown and "ndcg@10" in shown
        assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor comes back

    def on_terminal(self, folder: Path, environment: dict[str, str]) -> str:
        """Return what training writes to a terminal."""
        ours, theirs = pty.openpty()
        command = [*PROGRAM, "train", "--data", str(TRAIN), "--trees", "20", "--out", str(folder / "m.json")]
        with subprocess.Popen(command, env={**os.environ, **environment}, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                shown += part
        os.close(ours)
        assert process.returncode == 0
        return shown.decode()

    @pytest.mark.parametrize(
        ("option", "lines"), [("-q", 1), ("--quiet", 1), ("-qq", 0), ("-q --quiet", 0), ("-qqq", 0)]
    )
    def test_quiet_keeps_warnings_and_twice_quiet_keeps_none(self, option: str, lines: int, in_folder: Path) -> None:
        done = run(
            "train", *option.split(), "--data", TRAIN, "--trees", "3", "--objective", "xendcg", "--truncation", "5"
        )
        assert (done.stdout, done.stderr.count("\n")) == ("", lines)
        assert done.stderr.count("lmart: warning: ") == lines

    def test_twice_quiet_keeps_errors(self) -> None:
        assert run("train", "-qq", "--data", "none", status=1).stderr.startswith("lmart: error: none: ")

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_says_what_quiet_means(self, name: str) -> None:
        said = " ".join(run(name, "--help").stdout.split())
        assert "Hide notices and progress; -qq hides warnings too." in said

    def test_plain_lines_grow_rare(self) -> None:
        lines: list[str] = []
        now = 0.0
        with PlainProgress(10_000, "trees", lines.append, lambda: now) as progress:
            for done in range(1, 10_001):
                now += 0.36  # an hour in all
                progress.update(done, f"ndcg@10 0.{done}")
        assert lines[0] == "1/10000 trees, ndcg@10 0.1" and lines[-1] == "10000/10000 trees, ndcg@10 0.10000"
        assert 100 < len(lines) < 200
        gaps = [int(b.split("/")[0]) - int(a.split("/")[0]) for a, b in pairwise(lines)]
        assert max(gaps) * 0.36 < LONGEST_PAUSE + 1

    def test_text_is_made_only_when_shown(self) -> None:
        made: list[int] = []

        def text(done: int) -> Callable[[], str]:
            return lambda: made.append(done) or "x"  # type: ignore[func-returns-value]

        lines: list[str] = []
        with PlainProgress(100, "trees", lines.append, lambda: 0.0) as progress:
            for done in range(1, 51):
                progress.update(done, text(done))
        assert made == [1, 50] and lines == ["1/100 trees, x", "50/100 trees, x"]  # stopped early: the last is told

    def test_nothing_more_is_said_after_a_failure(self) -> None:
        lines: list[str] = []
        with pytest.raises(ZeroDivisionError), PlainProgress(9, "trees", lines.append, lambda: 0.0) as progress:
            progress.update(1)
            progress.update(2)
            raise ZeroDivisionError
        assert lines == ["1/9 trees"]


class TestConsole:
    def test_lines(self, capsys: pytest.CaptureFixture[str]) -> None:
        Console().notice("one")
        Console().warning("two\x1b\n")
        Console(quiet=1).notice("three")
        Console(quiet=1).warning("four")
        Console(quiet=2).warning("five")
        assert capsys.readouterr() == ("", "lmart: one\nlmart: warning: two\\x1b\\n\nlmart: warning: four\n")

    @pytest.mark.parametrize("quiet", [0, 1])
    def test_how_far_the_work_is(self, quiet: int) -> None:
        console = Console(quiet)
        assert console.how_far() == ""
        with console.progress(3000) as progress:
            assert console.how_far() == ""
            progress.update(971)
        assert console.how_far() == "971 of 3,000 trees"
        console.progress(5, "folds")
        assert console.how_far() == ""

    def test_warnings_stand_above_the_bar(self) -> None:
        program = (
            "from lmart.cli.terminal.console import Console\n"
            "console = Console()\n"
            "with console.progress(3) as progress:\n"
            "    progress.update(1); console.warning('[red]look[/red]'); progress.update(3)\n"
            "console.notice('after')"
        )
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "", "COLUMNS": "100"}
        with subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=theirs) as process:
            os.close(theirs)
            process.wait()
            shown = os.read(ours, 65536).decode()
        os.close(ours)
        assert "lmart: warning: [red]look[/red]\r\n" in shown
        assert "lmart: after\r\n" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_found_by_habit(command: str) -> None:
    assert run("help", command).stdout == run(command, "--help").stdout


def test_version_is_found_by_habit() -> None:
    assert run("version").stdout == run("-V").stdout == run("--version").stdout
    assert "perhaps 'lmart train'" in run("help", "trian", status=2).stderr


def test_completion_is_offered() -> None:
    environment = {**os.environ, "_LMART_COMPLETE": "bash"}
    done = subprocess.run([*PROGRAM, "lmart tr"], env=environment, capture_output=True, check=True)
    assert b"train" in done.stdout


def test_the_program_is_always_called_lmart() -> None:
    assert main_module.PROGRAM in run("--help").stdout.splitlines()[0]


@pytest.mark.parametrize("start", [["train"], ["predict", "-m", "x"], ["eval", "--scores", "x"]])
def test_sizes_and_ids_do_not_both_say_what_a_query_is(start: list[str]) -> None:
    result = run(*start, "--data", "y", "--group-by-qid", "--query-sizes", "z", status=2)
    assert "--group-by-qid collects queries by their ids" in result.stderr


@pytest.mark.parametrize("command", ["train", "eval", "predict"])
def test_every_command_refuses_an_input_without_rows(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "comments").write_text("# a\n\n  # b\r\n")
    (tmp_path / "s").write_text("1\n")
    (tmp_path / "closed").touch(0o000)
    more = {
        "train": ("--out", tmp_path / "m"),
        "eval": ("--scores", tmp_path / "s"),
        "predict": ("-m", model_of_good(tmp_path), "--out", tmp_path / "o"),
    }[command]
    for name, what in (
        ("empty", "no rows"),
        ("comments", "no rows"),
        ("missing", "there is no such file"),
        (".", "is a folder"),
        *([("closed", "Permission denied")] if os.geteuid() else []),
    ):
        result = run(command, "--data", tmp_path / name, *more, status=1)
        assert what in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert not (tmp_path / "m").exists() and not (tmp_path / "o").exists()
