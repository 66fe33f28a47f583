"""What `lmart train` says and writes of several rankers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.evaluation import measured
from helpers.paths import SAMPLE
from helpers.training_runs import evaluated, fit, learnable, refused, scores

TEXT = learnable(3)
THREE = ("--rankers", "3", "--trees", "14", "--min-docs", "2")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.svm").write_text(learnable(4))
    Path("w.svm").write_text(learnable(5))


def test_the_report_says_what_each_ranker_is_and_how_it_went() -> None:
    done = fit(TEXT, *THREE, "--valid", "v.svm", "w.svm")
    rankers = done.report["rankers"]
    assert [list(one) for one in rankers] == 3 * [
        ["objective", "tree", "leaves", "features", "seed", "first_tree", "trees", "rounds", "stopped", "validation"]
    ]
    assert [(one["first_tree"], one["trees"], one["rounds"]) for one in rankers] == [(1, 5, 5), (6, 5, 5), (11, 4, 4)]
    assert [(one["objective"], one["tree"], one["leaves"], one["features"]) for one in rankers] == [
        ("yetirank", "leafwise", 8, 1.0),
        ("lambdamart", "leafwise", 8, 1.0),
        ("lambdamart", "oblivious", 64, 1.0),
    ]
    names = ("trees", "objective", "tree", "leaves", "features", "seed")
    assert done.model["rankers"] == [{name: one[name] for name in names} for one in rankers]
    rounds = done.report["rounds"]
    assert [(one["ranker"], one["round"]) for one in rounds] == [
        (ranker, number) for ranker, trees in ((1, 5), (2, 5), (3, 4)) for number in range(1, trees + 1)
    ]
    for one in rankers:
        assert one["validation"] == rounds[one["first_tree"] + one["trees"] - 2]["validation"]
    settings = done.report["settings"]
    assert settings == done.model["settings"]
    assert (settings["rankers"], settings["objective"], settings["tree"]) == (3, "auto", "auto")


def test_the_measures_reported_are_those_that_eval_gives() -> None:
    done = fit(TEXT, *THREE, "--valid", "v.svm", "w.svm", "--early-stop", "2", "--trees", "90")
    assert done.report["training"] == evaluated("d.svm", "--metric", "ndcg@10")
    assert done.report["validation"] == [evaluated(name, "--metric", "ndcg@10") for name in ("v.svm", "w.svm")]
    said = re.sub(r" in \d+\.\d s;", ";", done.said[-1])
    assert said != done.said[-1]  # how long it took
    assert said == (
        f"lmart: wrote {len(done.model['trees'])} trees of 3 rankers (of {len(done.report['rounds'])} grown) to "
        f"m.json; ndcg@10 {done.report['training']:.6f} on training, {done.report['validation'][0]:.6f} on v.svm, "
        f"{done.report['validation'][1]:.6f} on w.svm"
    )


def test_measures_with_weights_are_those_that_eval_gives_with_them() -> None:
    Path("q").write_text("".join(f"{1 + q % 3}\n" for q in range(20)))
    done = fit(TEXT, *THREE, "--weights", "q", "--valid", "v.svm", "--valid-weights", "q")
    assert done.report["training"] == evaluated("d.svm", "--metric", "ndcg@10", "--weights", "q")
    assert done.report["validation"] == [evaluated("v.svm", "--metric", "ndcg@10", "--weights", "q")]


def test_measures_with_initial_scores_are_those_of_their_sum_with_what_the_model_gives() -> None:
    for name in ("s", "vs"):
        Path(name).write_text("".join(f"{row % 7 / 4}\n" for row in range(200)))
    done = fit(TEXT, *THREE, "--init-scores", "s", "--valid", "v.svm", "--valid-init-scores", "vs")
    for data, told in (("d.svm", done.report["training"]), ("v.svm", done.report["validation"][0])):
        sums = [row % 7 / 4 + one for row, one in enumerate(scores(Path(data).read_text()))]
        Path("sums").write_text("".join(f"{one!r}\n" for one in sums))
        found = measured("--data", data, "--scores", "sums", "--metric", "ndcg@10")["ndcg@10"]
        assert told == pytest.approx(found, rel=1e-12)


def test_progress_names_the_ranker_and_counts_all_trees() -> None:
    done = fit(TEXT, *THREE)
    assert any(re.search(r"14/14 trees, ranker 3 of 3, training ndcg@10 0\.\d{6}", line) for line in done.said)
    single = fit(TEXT, *THREE, "--rankers", "1")
    assert not any("ranker" in line.replace("--rankers", "") for line in single.said)


def test_what_was_chosen_is_said_at_the_start() -> None:
    described = "yetirank with 8 leaves; lambdamart with 8 leaves; lambdamart with oblivious trees of 64 leaves"
    assert f"lmart: the mean of 3 rankers (auto: 20 queries, 14 trees): {described}" in fit(TEXT, *THREE).said
    four = fit(TEXT, "--trees", "80", "--min-docs", "2", "--leaves", "8")
    assert any(line.startswith("lmart: the mean of 4 rankers (auto: 20 queries, 80 trees): ") for line in four.said)
    assert any(line.startswith("lmart: by default trains 4 rankers and averages them, ") for line in four.said)
    assert not any("by default" in line for line in fit(TEXT, *THREE).said)
    one = fit(TEXT, "--trees", "10")
    assert "lmart: lambdamart with 8 leaves (auto: 20 queries, 10 trees)" in one.said
    given = fit(TEXT, *THREE, "--objective", "map+err", "--rankers", "2", "--leaves", "9")
    assert "lmart: the mean of 2 rankers: map with 9 leaves; err with 9 leaves" in given.said
    depthwise = fit(TEXT, "--trees", "10", "--tree", "depthwise").said
    assert "lmart: lambdamart with depthwise trees of 8 leaves (auto: 20 queries, 10 trees)" in depthwise


def test_a_ranker_that_makes_initial_scores_no_better_is_told() -> None:
    labels = [line.split()[0] for line in TEXT.splitlines()]
    Path("s").write_text("".join(f"{label}\n" for label in labels))
    Path("vs").write_text("".join(f"{line.split()[0]}\n" for line in learnable(4).splitlines()))
    starts = ("--init-scores", "s", "--valid-init-scores", "vs", "--valid", "v.svm", "--early-stop", "2")
    done = fit(TEXT, *THREE, *starts)
    assert done.model["trees"] == [] and [one["first_tree"] for one in done.report["rankers"]] == [None] * 3
    told = "ranker 2 of 3, lambdamart, has no tree: no round of it is better than the initial scores by ndcg@10"
    assert f"lmart: {told}" in done.said
    assert "lmart: warning: no round is better than the initial scores alone, so the model holds no tree" in done.said


def test_a_ranker_without_a_split_is_told() -> None:
    done = fit(learnable(3, labels=(1, 2, 3)), "--objective", "lambdamart+map", "--trees", "6", "--min-docs", "2")
    assert done.warnings == ["lmart: warning: ranker 2 of 2, map, has no tree: no split was left"]
    assert [one["trees"] for one in done.model["rankers"]] == [3, 0]


def test_a_ranker_that_used_up_its_trees_is_told_in_one_line_for_all() -> None:
    done = fit(TEXT, *THREE, "--valid", "v.svm", "--early-stop", "20", "--learning-rate", "0.01", "--trees", "12")
    (line,) = (one for one in done.said if "try more --trees" in one or "did not end the run" in one)
    assert re.match(r"lmart: (--early-stop 20 did not end the run: )?--trees ended [1-3] of 3 rankers; ", line)


def test_folds_share_the_trees_evenly_and_the_model_has_what_they_chose() -> None:
    done = fit(TEXT, *THREE, "--trees", "20", "--folds", "3")
    crossed = done.report["cross_validation"]
    assert crossed["rankers"] == 3 and len(crossed["curve"]) == 6
    assert crossed["trees"] == 3 * (crossed["curve"].index(max(crossed["curve"])) + 1) == len(done.model["trees"])
    assert [one["trees"] for one in done.report["rankers"]] == [crossed["trees"] // 3] * 3
    assert done.report["settings"]["trees"] == crossed["trees"]
    again = fit(TEXT, *THREE, "--trees", str(crossed["trees"]))
    assert again.data == done.data


def test_folds_that_used_up_their_trees_say_of_each_ranker() -> None:
    said: list[str] = []
    for trees in (6, 9, 12, 15):
        said += fit(learnable(6, n_queries=30), *THREE, "--trees", str(trees), "--folds", "2").said
    lines = [line for line in said if "try more --trees" in line]
    pattern = r"lmart: mean ndcg@10 over folds was still getting better after [2-5] trees of each ranker: try more"
    assert lines and all(re.match(pattern, line) for line in lines)


def test_usage_that_is_refused() -> None:
    Path("d.svm").write_text(TEXT)
    assert "'0' is not 'auto' or a whole number from 1 to 64" in refused("--rankers", "0", status=2)
    plain = ("--objective", "lambdamart", "--tree", "leafwise", "--features", "1")
    line = refused(*plain, "--rankers", "2", status=2)
    assert "rankers is 2, but with the other settings only 1 differs; use fewer, or --features below 1" in line
    assert "only 4 differ" in refused("--objective", "lambdamart", "--rankers", "5", status=2)
    for text, told in (("err+ndcg", "'ndcg' is not one of"), ("err+err", "'err+err' names one twice")):
        assert told in refused("--objective", text, status=2)
    assert "'lambda' is not one of" in refused("--tree", "lambda", status=2)


@pytest.mark.slow
def test_the_sample_gives_the_same_bytes_for_any_number_of_threads() -> None:
    fixed = ("train", "--data", SAMPLE / "train.svm", "--valid", SAMPLE / "vali.svm", "--early-stop", "5")
    made = []
    for threads in ("1", "2", "3"):
        run(*fixed, "--trees", "400", "--threads", threads, "--out", "m")
        made.append(Path("m").read_bytes())
    assert made[0] == made[1] == made[2]
    assert len(json.loads(made[0])["rankers"]) > 1


def test_rankers_of_an_automatic_number_share_the_trees_with_early_stopping() -> None:
    fixed = ("--data", SAMPLE / "train.svm", "--valid", SAMPLE / "vali.svm", "--learning-rate", "0.3")
    said = run("train", *fixed, "--early-stop", "5", "--trees", "200", "--report", "r", "--out", "m").stderr
    assert "lmart: the mean of up to 4 rankers (auto: " in said
    why = (
        "which ranks better on public data than a single ranker with as many trees; --rankers 1 trains lambdamart alone"
    )
    assert said.splitlines()[1] == f"lmart: by default trains up to 4 rankers and averages them, {why}"
    assert " trees, ranker 1 of up to 4, ndcg@10 " in said
    report, model = json.loads(Path("r").read_text()), json.loads(Path("m").read_text())
    assert report["settings"]["rankers"] == model["settings"]["rankers"] == "auto"
    assert [one["tree"] == "linear" for one in model["rankers"]].index(True) == len(model["rankers"]) - 1
    assert 1 < len(report["rankers"]) <= 4 and len(report["rounds"]) <= 200
    assert report["linear"]["weight"] == 0.4 and report["linear"]["trees"] == model["rankers"][-1]["trees"]
    said_last = f" and {report['linear']['trees']} of a linear ranker to m in "
    assert "; a linear ranker of weight 0.4\n" in said and said_last in said.splitlines()[-1]
    assert report["settings"]["objective"] == "auto"


def test_one_ranker_that_takes_most_trees_is_recorded_as_the_only_one() -> None:
    fixed = ("train", "--data", SAMPLE / "train.svm", "--valid", SAMPLE / "vali.svm", "--early-stop", "30")
    run(*fixed, "--trees", "45", "--linear", "0", "--report", "r", "--out", "m")
    model, report = json.loads(Path("m").read_text()), json.loads(Path("r").read_text())
    settings = model["settings"]
    assert (settings["rankers"], settings["objective"], settings["tree"]) == (1, "yetirank", "leafwise")
    assert report["settings"] == settings and len(report["rankers"]) == 1 and "rankers" not in model
    run(*fixed, "--trees", "45", "--rankers", "1", "--objective", "yetirank", "--out", "again")
    assert Path("again").read_bytes() == Path("m").read_bytes()
