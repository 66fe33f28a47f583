"""lmart train --settings: settings of a model, a report, a search or plain JSON, which the command line goes before."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

from lmart.errors import DataError
from lmart.formats.settings_files import read_settings

TRAIN = ("train", "--data", SAMPLE / "train.svm")
VALID = ("--valid", str(SAMPLE / "vali.svm"), "--early-stop", "3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that was trained with unusual settings, and its report."""
    made = tmp_path_factory.mktemp("settings")
    unusual = ("--trees", "12", "--leaves", "5", "--l2", "0.1", "--no-normalize", "--seed", "7", "--monotone", "3:+1")
    more = ("--rankers", "2", "--gain", "0,1,3,6,9", "--sample", "0.8", "--metric", "NDCG@5")
    run(*TRAIN, *VALID, *unusual, *more, "-o", made / "m.json", "--report", made / "r.json", "-q")
    return made


@pytest.mark.parametrize("source", ["m.json", "r.json"])
def test_a_model_and_a_report_give_the_same_bytes(folder: Path, tmp_path: Path, source: str) -> None:
    done = run(*TRAIN, *VALID[:2], "--settings", folder / source, "-o", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (folder / "m.json").read_bytes()
    (told,) = re.findall(r"^lmart: settings from .*$", done.stderr, re.MULTILINE)
    assert told.endswith(
        "trees 12, rankers 2, leaves 5, l2 0.1, normalize no, gain 0,1,3,6,9, metric ndcg@5, early-stop 3, sample 0.8, "
        "monotone 3:+1, seed 7"
    )


def settings_of(*arguments: str | Path, folder: Path) -> dict[str, object]:
    run(*TRAIN, *arguments, "-o", folder / "out.json", "-q")
    found = json.loads((folder / "out.json").read_text())["settings"]
    assert isinstance(found, dict)
    return found


def test_the_command_line_goes_before(folder: Path, tmp_path: Path) -> None:
    given = ("--settings", folder / "m.json", "--trees", "3", "--normalize", "--early-stop", "0")
    found = settings_of(*given, folder=tmp_path)
    assert (found["trees"], found["normalize"], found["leaves"]) == (3, True, 5)
    told = run(*TRAIN, *given, "-o", tmp_path / "m.json").stderr
    assert "; of the command line instead: --trees, --normalize, --early-stop\n" in told


def test_plain_settings(tmp_path: Path) -> None:
    plain = tmp_path / "p.json"
    plain.write_text('{"trees": 2, "learning-rate": 0.5, "leaves": "auto", "tree": "depthwise", "l2": 1}')
    found = settings_of("--settings", plain, folder=tmp_path)
    assert (found["trees"], found["learning_rate"], found["tree"], found["l2"]) == (2, 0.5, "depthwise", 1.0)
    assert (
        "from standard input: trees 4\n"
        in run(*TRAIN, "--settings", "-", "-o", tmp_path / "m", stdin='\ufeff{"trees": 4}').stderr
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"n_estimators": 3}', "there is no setting 'n_estimators'; perhaps 'trees'; see"),
        ('{"tres": 3}', "there is no setting 'tres'; perhaps 'trees' or 'tree'; see"),
        ('{"zzz": 3}', "there is no setting 'zzz'; see"),
        ('{"data": "x.svm"}', "there is no setting 'data'; see"),
        ('{"largest_label": 3}', "there is no setting 'largest_label'; see"),
        ('{"trees": -3}', "trees: '-3' is not a whole number from 1 to 2147483647; see"),
        ('{"trees": true}', "trees is true; give what --trees takes; see"),
        ('{"l2": 1e153}', "l2: '1e+153' is not a number from 0 to 1e+100; see"),
        ('{"trees": 1' + "0" * 400 + "}", "trees: '1000"),
        ('{"normalize": 2}', "normalize is 2; give true or false; see"),
        ('{"normalize": "yes"}', "normalize is 'yes'; give true or false; see"),
        (
            '{"metric": "map,judged@3"}',
            "metric: nothing can be trained for 'judged@3'; use another measure, such as ndcg@10; see",
        ),
        ('{"monotone": "1:+1,1:-1"}', "monotone names feature '1' twice; see"),
        ('{"gain": "0,1_5"}', "gain '0,1_5' is not 'exp2', 'linear' or numbers such as '0,1,3,7,15'; see"),
        ('{"settings": {"continued_from": "x"}}', "continued_from is 'x', which is not a whole number; see"),
        ('{"settings": {"largest_label": true}}', "largest_label is true, which is not a whole number; see"),
        (
            "lmart train --learnin-rate 0.05 --leaves 4",
            "no such option '--learnin-rate'; perhaps '--learning-rate'; see",
        ),
        ("lmart train --trees 5 -leafs 4", "no such option '-leafs'"),
        ("lmart train --leaves 4 --trees", "option '--trees' requires an argument; see"),
        ("lmart train --leaves 4 | wc", "the command line has '|' where an option should be; drop it; see"),
        ("lmart train --leaves x", "leaves: 'x' is not 'auto' or a whole number from 2 to 1048576; see"),
        ('{"trees": null}', "trees is null; give what --trees takes; see"),
        ('{"gain": [0, 1]}', "gain is a list; give what --gain takes; see"),
        (
            '{"metric": "gini"}',
            "metric: 'gini' is no measure; use ndcg[@k], dcg[@k], map[@k], gmap[@k], mrr[@k], success@k, ",
        ),
        ('{"tree": "oak"}', "tree: 'oak' is not one of 'leafwise', 'depthwise', 'oblivious', 'auto'; see"),
        ('{"format": "lmart", "settings": {"trees": 0}}', "trees: '0' is not a whole number from 1 to 2147483647; see"),
    ],
)
def test_wrong_settings_are_one_line_with_file_and_key(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "s.json").write_text(content)
    said = run(*TRAIN, "--settings", tmp_path / "s.json", status=2).stderr
    assert said.startswith(f"lmart: error: {tmp_path / 's.json'}: {message}")
    assert said.endswith("; see 'lmart train --help'\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"trees": 3, "trees": 4}', ": is JSON that cannot be read: the key 'trees' is given twice; give a model"),
        (b'{"learning_rate": NaN}', ": is JSON that cannot be read: 'NaN' is no JSON number; give a model"),
        (b'{"seed": ' + b"9" * 5000 + b"}", ": is JSON that cannot be read: a number is too long; give a model"),
        (b"--trees 5\n", ":1: is no JSON (expecting value); give a model, a --report, a --tune-file, a command line"),
        (
            b"lmart train --trees '5",
            ": the command line 'lmart train --trees '5' cannot be read: no closing",
        ),
        (b"lmart train --trees 5 \\", ": the command line 'lmart train --trees 5 \\' cannot be read: no escaped"),
        (b"lmart train", ": the command line holds no settings; add some, as in 'lmart train --trees 300'"),
        (b"lmart train --data x --help", ": the command line holds no settings; add some"),
        (b'{"format": "lmart-trials"}\n{"measure": true}\n', ": holds no trial that has a measure"),
        (b"{}", ": holds no settings; give a model, a --report"),
        (b"[1]", ": is JSON, but no object; give a model"),
        (b"1 qid:1 1:2\n2 qid:1 1:1\n", ":1: is no JSON (extra data); give a model"),
        (b'{\n"trees": }', ":2: is no JSON (expecting value); give a model"),
        (b"\xff\xfe", ": is no text; give a model"),
        (
            b'{"format": "lmart", "settings": {}}',
            ": the model is one of another tool, which holds no settings of lmart",
        ),
        (b'{"format": "lmart", "settings": {"source": "LightGBM v4"}}', ": the model is one of 'LightGBM v4', which"),
        (b'{"format": "lmart-trials"}\n{"measure": null}\n', ": holds no trial that has a measure"),
    ],
)
def test_files_without_settings_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "s.json").write_bytes(content)
    said = run(*TRAIN, "--settings", tmp_path / "s.json", status=1).stderr
    assert said.startswith(f"lmart: error: {tmp_path / 's.json'}{message}") and said.count("\n") == 1


def test_a_long_line_takes_memory_for_its_bytes_and_not_for_its_words(tmp_path: Path) -> None:
    content = b"1 qid:1" + b" 1:1" * 250_000
    (tmp_path / "s").write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="is no JSON"):
            read_settings(str(tmp_path / "s"))
        assert tracemalloc.get_traced_memory()[1] < 8 * len(content)
    finally:
        tracemalloc.stop()


def test_there_must_be_a_file_and_it_is_no_output(folder: Path) -> None:
    assert "there is no such file" in run(*TRAIN, "--settings", folder / "none", status=1).stderr
    done = run(*TRAIN, "--settings", folder / "m.json", "--early-stop", "0", "-o", folder / "m.json", status=1)
    assert "m.json" in done.stderr


def test_a_model_that_went_on_from_another(tmp_path: Path) -> None:
    run(*TRAIN, "--trees", "2", "--rankers", "1", "-o", tmp_path / "a", "-q")
    run(*TRAIN, "--trees", "3", "--l2", "1", "--continue-from", tmp_path / "a", "-o", tmp_path / "b", "-q")
    said = run(*TRAIN, "--settings", tmp_path / "b", "-o", tmp_path / "c").stderr
    assert (
        ", l2 1.0, objective lambdamart, features 1.0; the first 2 trees of that model are of other settings\n" in said
    )
    assert json.loads((tmp_path / "c").read_text())["settings"]["trees"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("folds", [("--folds", "2"), VALID[:2]])
def test_a_search_gives_its_best_settings(tmp_path: Path, folds: tuple[str, ...]) -> None:
    search = (*folds, "--tune-trials", "3", "--trees", "6", "--tune-file", str(tmp_path / "t.jsonl"))
    printed = run(*TRAIN, *search, "-o", tmp_path / "m", "--report", tmp_path / "r.json").stdout
    (tmp_path / "printed").write_text(printed)
    valid = folds if folds == VALID[:2] else ()
    for source in ("t.jsonl", "printed", "r.json", "m"):
        run(*TRAIN, *valid, "--settings", tmp_path / source, "-o", tmp_path / "again.json", "-q")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m").read_bytes(), source


@pytest.mark.slow
def test_a_search_leaves_settings_of_the_file_alone_and_prints_them(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"l2": 0, "early_stop": 4, "trees": 5, "min_hessian": 0.5}')
    search = ("--settings", tmp_path / "p.json", "--folds", "2", "--tune-trials", "2", "-o", tmp_path / "m")
    printed = run(*TRAIN, *search, "--report", tmp_path / "r.json").stdout
    assert "l2" not in json.loads((tmp_path / "r.json").read_text())["tuning"]["searched"]
    command = printed.splitlines()[-1]
    assert "--min-hessian 0.5" in command and "--settings" not in command and "--early-stop" not in command
    every = json.loads((tmp_path / "r.json").read_text())["settings"]
    (tmp_path / "p.json").write_text(json.dumps({key: one for key, one in every.items() if key != "largest_label"}))
    assert "every setting that --tune searches is given" in run(*TRAIN, *search, status=2).stderr


def test_early_stop_of_the_file_without_validation_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"trees": 2, "early_stop": 3}')
    train = ("train", "--data", SAMPLE / "train.svm", "--settings", tmp_path / "s.json", "-o", tmp_path / "m")
    hint = "; for the settings of the file without it, --early-stop 0; see"
    assert hint in run(*train, status=2).stderr
    assert hint not in run(*train, "--early-stop", "3", status=2).stderr


def test_a_command_line_is_parsed_as_that_of_the_terminal(tmp_path: Path) -> None:
    line = "lmart train --data a b --leaves 5 \\\n  --trees 9 --l2=2 --monotone 1:+1 --monotone 2:-1 --trees 2"
    (tmp_path / "s").write_text(line + " --no-normalize\n")
    found = settings_of("--settings", tmp_path / "s", "--rankers", "1", folder=tmp_path)
    wanted = {"trees": 2, "leaves": 5, "l2": 2.0, "monotone": "1:+1,2:-1", "normalize": False}
    assert wanted.items() <= found.items()
    told = run(*TRAIN, "--settings", tmp_path / "s", "--rankers", "1", "-o", tmp_path / "m").stderr
    assert told.splitlines()[:3] == [
        f"lmart: {tmp_path / 's'}: --trees is given twice; the last counts: '2'",
        f"lmart: {tmp_path / 's'}: only settings are taken of the command line, not --data",
        f"lmart: settings from {tmp_path / 's'}: trees 2, leaves 5, l2 2.0, normalize no, monotone 1:+1,2:-1",
    ]
