"""Training with metadata: weights, initial scores, and the positions at which documents were shown."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference.gradients
from helpers.commands import run
from helpers.datasets import dataset, random_dataset
from helpers.evaluation import strict
from helpers.reading_runs import FEW as TO_READ
from helpers.reading_runs import GOOD, trained
from helpers.score_data import score_dataset
from helpers.settings import prepare
from helpers.training_runs import SMALL, evaluated, fit, learnable, refused, scores

from lmart.array_types import Float64Array
from lmart.data.dataset import RankingDataset
from lmart.data.metadata import Metadata, Positions
from lmart.errors import LmartError, SettingsError
from lmart.formats.models.lmart_json import model_to_json
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train
from lmart.training.objectives.base import Gradients, improved_bias

POOL = WorkerPool(1)
FEW = TrainSettings(trees=5, leaves=8, min_docs=5)
DATA = learnable(3)
OTHER = learnable(4, n_queries=12)


pytestmark = pytest.mark.usefixtures("in_folder")


def write(path: str, values: object) -> None:
    Path(path).write_text("".join(f"{value}\n" for value in values))  # type: ignore[attr-defined]


def shuffled(text: str, values: list[float], seed: int) -> tuple[str, list[float]]:
    """Return the rows in another order, queries mixed but each query's rows in their order, and their values."""
    queue: dict[str, list[tuple[str, float]]] = {}
    for line, value in zip(text.splitlines(keepends=True), values, strict=True):
        queue.setdefault(line.split()[1], []).append((line, value))
    order = [query for query, rows in queue.items() for _ in rows]
    random.Random(seed).shuffle(order)
    order = [*queue, *order]  # each query first stands where it stood before
    mixed = [queue[query].pop(0) for query in order if queue[query]]
    return "".join(line for line, _ in mixed), [value for _, value in mixed]


# What belongs to queries


@pytest.mark.parametrize("by_query", [True, False])
def test_rows_go_with_their_queries(by_query: bool) -> None:
    data = random_dataset(1)
    n = data.n_documents
    marks = np.arange(float(n))
    positions = Positions(("a", "b", "c"), (np.arange(n) % 3).astype(np.int32))
    weights = np.arange(float(data.n_queries)) if by_query else marks
    taken = np.array([7, 2, 19])
    some = Metadata(weights, marks, positions).of_queries(data.query_offsets, taken)
    rows = [r for q in taken for r in range(data.query_offsets[q], data.query_offsets[q + 1])]
    assert some.init_scores is not None and some.positions is not None and some.weights is not None
    assert some.init_scores.tolist() == rows
    assert some.positions.codes.tolist() == [row % 3 for row in rows] and some.positions.names == ("a", "b", "c")
    assert some.weights.tolist() == (taken.tolist() if by_query else rows)
    assert Metadata().of_queries(data.query_offsets, taken) == Metadata()


# Initial scores


def test_training_goes_on_where_other_trees_ended() -> None:
    data, judge = random_dataset(2, n_queries=60), random_dataset(3)
    first = train(data, [judge], FEW, POOL)
    more = replace(FEW, trees=12, early_stop=3)
    starts = Metadata(init_scores=score_dataset(first.ensemble, judge, POOL))
    on = train(data, [judge], more, POOL, lambda one: None, Metadata(init_scores=first.scores), [starts])
    whole = train(data, [judge], replace(FEW, trees=5 + on.rounds), POOL)
    assert on.n_trees < on.rounds
    for tree, other in zip(on.ensemble.trees, whole.ensemble.trees[5:], strict=False):
        assert tree.leaf_values.tolist() == other.leaf_values.tolist()
    best = train(data, [judge], replace(FEW, trees=5 + on.n_trees), POOL)
    assert (on.training, on.validation) == (best.training, best.validation)
    assert on.scores.tolist() == best.scores.tolist()
    assert (first.scores == train(data, [], FEW, POOL).scores).all()  # what was given is left as it was


def test_zeros_change_nothing() -> None:
    plain = fit(DATA, *SMALL).data
    write("i", ["0", "-0.0", "0e5", " 0.00\r"] * 50)
    done = fit(DATA, *SMALL, "--init-scores", "i")
    assert done.data == plain
    assert done.report["files"] == {"data": ["d.svm"], "validation": [], "init_scores": "i"}


def test_measures_are_of_both_together_but_the_model_of_trees_alone() -> None:
    Path("v.svm").write_text(OTHER)
    rng = random.Random(5)
    own, others = [[rng.gauss(0, 0.3) for _ in range(n)] for n in (200, 120)]
    write("i", own)
    write("j", others)
    valid = ("--valid", "v.svm", "--init-scores", "i", "--valid-init-scores", "j")
    done = fit(DATA, *SMALL, "--metric", "ndcg@5", *valid)
    for data, start, measure in (("d.svm", own, "training"), ("v.svm", others, "validation")):
        write("s", np.add(start, scores(Path(data).read_text())).tolist())
        told = strict(run("eval", "--data", data, "--scores", "s", "--metric", "ndcg@5", "--json").stdout)
        found = done.report[measure] if measure == "training" else done.report[measure][0]
        assert found == pytest.approx(told["metrics"]["ndcg@5"], abs=1e-12)
    assert done.report["files"]["validation_init_scores"] == ["j"]
    assert done.said[-1].endswith("together; the model holds the trees alone")
    model = strict(Path("m.json").read_text())
    assert "init_scores" not in model["settings"] and model["base_score"] == 0


@pytest.mark.parametrize("more", [(), ("--folds", "3"), ("--weights", "w")])
def test_rows_that_are_collected_take_their_scores_along(more: tuple[str, ...]) -> None:
    rng = random.Random(6)
    own, others = [[rng.gauss(0, 1) for _ in range(n)] for n in (200, 120)]
    names = ("--valid", "v.svm", "--init-scores", "i", "--valid-init-scores", "j", "--positions", "p", *more)

    def trained(data: str, rows: list[float], judge: str, judged: list[float], *options: str) -> tuple[bytes, object]:
        Path("v.svm").write_text(judge)
        write("i", rows)
        write("w", [1 + round(10 * abs(x)) for x in rows])
        write("p", [round(x) for x in rows])
        write("j", judged)
        done = fit(data, *SMALL, *names, *options)
        return done.data, (done.report["validation"], dict(sorted(done.report["position_bias"].items())))

    expected = trained(DATA, own, OTHER, others)
    mixed = (*shuffled(DATA, own, 1), *shuffled(OTHER, others, 2))
    assert mixed[1] != own and mixed[3] != others
    found = trained(*mixed, "--group-by-qid")
    assert found == expected


def test_folds_start_from_the_scores_of_their_own_rows() -> None:
    rng = random.Random(7)
    own = [rng.gauss(0, 0.5) for _ in range(200)]
    write("i", own)
    done = fit(DATA, *SMALL, "--folds", "3", "--oof", "o", "--init-scores", "i")
    crossed = done.report["cross_validation"]
    found = np.array([float(line) for line in Path("o").read_text().split()])
    told = strict(run("eval", "--data", "d.svm", "--scores", "o", "--metric", "ndcg@10", "--json").stdout)
    counts = [one["queries"] for one in crossed["folds"]]
    means = [one["measure"] for one in crossed["folds"]]
    assert told["metrics"]["ndcg@10"] == pytest.approx(float(np.average(means, weights=counts)), abs=1e-12)
    lines = DATA.splitlines(keepends=True)
    for fold in (1, 2, 3):  # by hand, from files
        seen = [row for row in range(200) if crossed["fold_of_query"][row // 10] != fold]
        held = [row for row in range(200) if crossed["fold_of_query"][row // 10] == fold]
        write("i", [own[row] for row in seen])
        fit("".join(lines[row] for row in seen), *SMALL, "--trees", str(crossed["trees"]), "--init-scores", "i")
        alone = scores("".join(lines[row] for row in held))
        assert (found[held] == np.add(alone, [own[row] for row in held])).all()


def test_a_search_goes_by_both_together() -> None:
    pytest.importorskip("optuna")
    Path("v.svm").write_text(OTHER)
    write("i", [row % 7 for row in range(200)])
    write("j", [row % 5 for row in range(120)])
    start = ("--init-scores", "i", "--valid-init-scores", "j")
    options = ("--valid", "v.svm", "--trees", "6", "--tune-trials", "1", "--tune-file", "t", "--quiet")
    Path("d.svm").write_text(DATA)
    shown = run("train", "--data", "d.svm", *options, *start, "--report", "r").stdout
    tried = strict(Path("r").read_text())["tuning"]["trials"][0]
    done = fit(DATA, "--valid", "v.svm", "--trees", str(tried["trees"]), *start)
    assert tried["measure"] == done.report["validation"][0]
    assert "--init-scores i --valid-init-scores j" in shown.splitlines()[-1]
    write("j", [row % 6 for row in range(120)])
    said = run("train", "--data", "d.svm", *options, *start, status=1).stderr
    assert said.startswith("lmart: error: t:1: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--valid", "v", "--init-scores", "i"), "there are 0 for 1; see"),
        (("--init-scores", "i", "--valid-init-scores", "j"), "there are 1 for 0"),
        (("--valid", "v", "--valid-init-scores", "j"), "--valid-init-scores needs --init-scores"),
        (("--init-scores", "-", "--positions", "-"), "only one input can be '-'"),
        (("--positions", "p", "--objective", "ranknet"), "objective ranknet knows no positions; use lambdamart"),
        (("--position-bias-reg", "1"), "--position-bias-reg needs --positions"),
        (("--positions", "p", "--position-bias-reg", "-1"), "'-1' is not a number from 0"),
    ],
)
def test_usage_that_is_refused_before_data_is_read(options: tuple[str, ...], said: str) -> None:
    Path("d.svm").write_text("broken")
    assert said in refused(*options, status=2)


def test_an_input_is_not_written_over() -> None:
    Path("d.svm").write_text(DATA)
    for option in ("--init-scores", "--positions"):
        write("m.json", [0] * 200)
        assert "m.json" in refused(option, "m.json")


def test_there_may_be_several_validation_sets() -> None:
    write("i", [0] * 200)
    for name in "abc":
        Path(name).write_text(OTHER)
        write(f"{name}.i", [row % (2 + ord(name) % 3) for row in range(120)])
    fixed = ("--trees", "1", "--valid", "a", "b", "c", "--init-scores", "i")
    values = fit(DATA, *fixed, "--valid-init-scores", "a.i", "b.i", "c.i").report["validation"]
    assert len(set(values)) == 3
    turned = fit(DATA, *fixed, "--valid-init-scores", "b.i", "c.i", "--valid-init-scores", "a.i").report["validation"]
    assert turned[0] != values[0]


# Positions


def trained_beside(data: RankingDataset, settings: TrainSettings, pool: WorkerPool = POOL) -> Float64Array:
    codes = (np.arange(data.n_documents) % 5).astype(np.int32)
    return train(data, [], settings, pool, metadata=Metadata(positions=Positions(tuple("abcde"), codes))).position_bias


@pytest.mark.parametrize(
    ("trees", "bias"),
    [(1, [0.0461457, -0.0431389, -0.00788051]), (2, [0.0785837, -0.0715634, -0.0191573])],
)
def test_bias_by_hand(trees: int, bias: list[float]) -> None:
    """As LightGBM learns it, whose sigmoid is from a table."""
    data = dataset([3, 0, 2, 1, 0], ["q"] * 5, [[float(row)] for row in range(5)])
    settings = TrainSettings(
        trees=trees, leaves=2, min_docs=1, min_hessian=0, normalize=False, position_bias_reg=0.5, learning_rate=0.1
    )
    positions = Positions(("0", "1", "2"), np.array([0, 1, 0, 1, 2], np.int32))
    metadata = Metadata(init_scores=np.array([0.2, 1.0, -0.5, 0.7, 0.1]), positions=positions)
    found = train(data, [], settings, POOL, metadata=metadata)
    np.testing.assert_allclose(found.position_bias, bias, atol=2e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("regularization", [0.0, 0.7])
def test_bias_against_its_twin(regularization: float, weighted: bool) -> None:
    data = random_dataset(11)
    rng = np.random.default_rng(11)
    n = data.n_documents
    codes = rng.integers(0, 4, n).astype(np.int32)
    weights = rng.random(n) if weighted else None
    factors = np.ones(n) if weights is None else weights
    settings = replace(FEW, position_bias_reg=regularization, learning_rate=0.3, truncation=4)
    positions = Positions(("a", "b", "c", "never"), np.where(codes == 3, 0, codes).astype(np.int32))
    objective = prepare(data, settings, POOL, weights, positions)
    given, bias = rng.normal(size=n), [0.0] * 4
    for _ in range(3):
        found = objective.compute_gradients(given)
        for start, stop in zip(data.query_offsets[:-1], data.query_offsets[1:], strict=True):
            own = [given[row] + bias[positions.codes[row]] for row in range(start, stop)]
            gains = [2.0**y - 1 for y in data.labels[start:stop]]
            expected = reference.gradients.pair_lambdas(gains, own, 4, 1.0, True)
            np.testing.assert_allclose(found.gradients[start:stop], expected[0] * factors[start:stop], atol=1e-9)
            np.testing.assert_allclose(found.hessians[start:stop], expected[1] * factors[start:stop], atol=1e-9)
        sums = found.gradients.tolist(), found.hessians.tolist()
        bias = reference.gradients.position_bias_step(bias, positions.codes.tolist(), *sums, 0.3, regularization)
        objective.position_bias = objective.next_position_bias(found)
        np.testing.assert_allclose(objective.position_bias, bias, rtol=1e-9, atol=1e-12)
        given = given + rng.normal(size=n)
    assert bias[3] == 0.0 != bias[0]


def clicks(seed: int, n_queries: int) -> tuple[RankingDataset, Float64Array, list[int]]:
    """Return clicks on lists of ten, the true labels, and where each row was shown.

    The documents stood by a poor ranking; those above were looked at more often, and good ones that were looked at
    were clicked. The second feature says nothing but where the poor ranking put them.
    """
    rng = np.random.default_rng(seed)
    looks = 1 / np.arange(1, 11) ** 1.2
    features, labels, clicked, queries, places = [], [], [], [], []
    for q in range(n_queries):
        worth = rng.integers(0, 2, 10)
        seen = worth + rng.normal(0, 0.7, 10)
        old = rng.normal(size=10)
        rank = np.argsort(np.argsort(-old))
        for d in range(10):
            features.append([seen[d], old[d]])
            labels.append(float(worth[d]))
            clicked.append(float(rng.random() < looks[rank[d]] * (0.9 if worth[d] else 0.1)))
            queries.append(q)
            places.append(int(rank[d]))
    return dataset(clicked, queries, features), np.array(labels), places


def test_what_was_planted_is_found() -> None:
    data, _, places = clicks(1, 600)
    positions = Positions(tuple(str(p + 1) for p in range(10)), np.array(places, np.int32))
    settings = TrainSettings(trees=40, leaves=8, rankers=1)
    plain = train(data, [], settings, POOL)
    found = train(data, [], settings, POOL, metadata=Metadata(positions=positions))
    bias = found.position_bias
    assert bias[0] > bias[1] > bias[2] > bias[4] > bias[9]
    fresh, truth, _ = clicks(2, 300)
    judged = RankingDataset(fresh.features, fresh.feature_ids, truth, fresh.query_offsets, fresh.query_ids)
    quality = [
        train(
            judged, [], replace(settings, trees=1, learning_rate=1e-9), POOL,
            metadata=Metadata(init_scores=score_dataset(one.ensemble, judged, POOL)),
        ).training
        for one in (plain, found)
    ]  # fmt: skip
    assert quality[0] is not None and quality[1] is not None and quality[1] > quality[0] + 0.05


def test_bits_do_not_depend_on_threads() -> None:
    data = random_dataset(12, n_queries=3000)
    with WorkerPool(3) as pool:
        assert (trained_beside(data, FEW) == trained_beside(data, FEW, pool)).all()


def test_bias_is_that_of_the_round_the_model_ends_with() -> None:
    data, judge = random_dataset(13), random_dataset(14)
    codes = (np.arange(data.n_documents) % 3).astype(np.int32)
    metadata = Metadata(positions=Positions(("x", "y", "z"), codes))
    done = train(data, [judge], replace(FEW, trees=50, early_stop=4), POOL, metadata=metadata)
    assert 0 < done.n_trees < done.rounds
    again = train(data, [], replace(FEW, trees=done.n_trees), POOL, metadata=metadata)
    assert done.position_bias.tolist() == again.position_bias.tolist()
    assert model_to_json(done.ensemble).count("position") == 1  # the setting alone


def test_the_report_names_each_position_as_the_file_does() -> None:
    write("p", ["top", "2", "Seite-ä", "2"] * 50)
    done = fit(DATA, *SMALL, "--positions", "p")
    bias = done.report["position_bias"]
    assert list(bias) == ["top", "2", "Seite-ä"] and len(set(bias.values())) == 3
    assert done.report["files"]["positions"] == "p"
    Path("p").write_bytes(("\ufeff" + "top\r\n2 \r\n\tSeite-ä\r\n2\r\n" * 50 + "\n\n").encode())
    assert fit(DATA, *SMALL, "--positions", "p").data == done.data
    assert fit(DATA, *SMALL).data != done.data
    write("p", ["1"] * 200)
    alone = "lmart: warning: every row has the same position, so there is no bias to learn"
    assert fit(DATA, *SMALL, "--positions", "p").warnings == [alone]
    assert done.warnings == []
    assert "position_bias" not in fit(DATA, *SMALL).report


def test_folds_learn_a_bias_too() -> None:
    write("p", [row % 10 for row in range(200)])
    plain = fit(DATA, *SMALL, "--folds", "2").report["cross_validation"]["folds"]
    assert fit(DATA, *SMALL, "--folds", "2", "--positions", "p").report["cross_validation"]["folds"] != plain


def test_what_the_library_refuses() -> None:
    with pytest.raises(LmartError, match="smaller --learning-rate"):
        trained_beside(random_dataset(15), replace(FEW, learning_rate=1e300))
    with pytest.raises(SettingsError, match="objective ranknet knows no positions"):
        trained_beside(random_dataset(15), replace(FEW, objective="ranknet"))


def test_a_bias_beyond_all_numbers_comes_without_a_warning() -> None:
    gradients = Gradients(np.array([1e200, -1e200]), np.zeros(2))
    bias = improved_bias(np.zeros(2), Positions(("a", "b"), np.array([0, 1], np.int32)), gradients, 1e200, 0.0)
    assert bias.tolist() == [-np.inf, np.inf]


# A start that is better than every round

AGAINST = "1 qid:1 1:0\n0 qid:1 1:1\n1 qid:2 1:0\n0 qid:2 1:1\n"
FOR = "1 qid:3 1:1\n0 qid:3 1:0\n"


@pytest.mark.parametrize("objective", ["lambdamart", "lambdamart+yetirank+err"])
def test_initial_scores_that_no_round_makes_better_are_kept_without_a_tree(objective: str) -> None:
    Path("v.svm").write_text(FOR)
    Path("i").write_text("0\n" * 4)
    Path("j").write_text("0.05\n0\n")
    start = ("--valid", "v.svm", "--init-scores", "i", "--valid-init-scores", "j", "--min-docs", "1")
    done = fit(AGAINST, *start, "--early-stop", "3", "--trees", "20", "--objective", objective)
    assert done.model["trees"] == [] and scores(FOR) == [0.0, 0.0]
    n_rankers = objective.count("+") + 1
    assert done.report["best_round"] == 0 and len(done.report["rounds"]) == 3 * n_rankers
    assert done.report["start"] == {"training": 1.0, "validation": [1.0]}
    assert (done.report["training"], done.report["validation"]) == (1.0, [1.0])
    assert any(
        line == "lmart: the initial scores alone: ndcg@10 1.000000 on training, 1.000000 on v.svm" for line in done.said
    )
    assert any("no round is better than the initial scores alone" in line for line in done.warnings)
    every = fit(AGAINST, *start, "--trees", "20")  # without stopping early all rounds are wanted
    assert len(every.model["trees"]) == 20 and every.report["validation"] == [pytest.approx(0.6309, abs=1e-4)]


def test_initial_scores_are_round_0_of_folds_and_trials() -> None:
    Path("i").write_text("0.05\n0\n" * 4)
    text = AGAINST + FOR + "1 qid:4 1:0\n0 qid:4 1:1\n"
    fixed = ("--init-scores", "i", "--folds", "2", "--min-docs", "1", "--trees", "20")
    for more in ((), ("--early-stop", "3")):
        done = fit(text, *fixed, "--oof", "o", *more)
        crossed = done.report["cross_validation"]
        assert done.model["trees"] == [] and done.model["settings"]["trees"] == 0 == crossed["trees"]
        assert crossed["start"] == crossed["mean"] == 1.0 > max(crossed["curve"])
        assert Path("o").read_text() == "0.05\n0.0\n" * 4
        assert any("the initial scores alone: ndcg@10 1.000000 over 2 folds" in line for line in done.said)
    tuned = run("train", "--data", "d.svm", *fixed, "--tune-trials", "2")
    assert "no settings are better than the initial scores alone" in tuned.stdout
    assert "is not a whole number from 1 to 2147483647" in refused("--trees", "0", "--init-scores", "i", status=2)


def test_without_initial_scores_a_model_has_a_tree() -> None:
    Path("v.svm").write_text(FOR)
    for rankers in (1, 3):  # each has one
        done = fit(AGAINST, "--valid", "v.svm", "--early-stop", "3", "--min-docs", "1", "--rankers", str(rankers))
        assert len(done.model["trees"]) == rankers and "start" not in done.report


# What stands beside validation files


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("more", [(), ("--group-by-qid",), ("--folds", "2"), ("--objective", "lambdamart+err")])
def test_measures_are_those_that_eval_gives_with_the_same_weights(by_row: bool, more: tuple[str, ...]) -> None:
    rng = random.Random(5)
    for name, text in (("w", DATA), ("v.w", learnable(8)), ("u.w", learnable(9))):
        Path(f"{name}.svm").write_text(text)
        n = text.count("\n") if by_row else len({line.split()[1] for line in text.splitlines()})
        Path(name).write_text("".join(f"{rng.choice([0, 1, rng.random()])!r}\n" for _ in range(n)))
    valid = ("--valid", "v.w.svm", "u.w.svm", "--valid-weights", "v.w", "u.w")
    done = fit(DATA, *SMALL, "--weights", "w", *valid, "--metric", "map", *more)
    weighted = [evaluated(f"{name}.svm", "--metric", "map", "--weights", name) for name in ("w", "v.w", "u.w")]
    assert [done.report["training"], *done.report["validation"]] == weighted
    if len(done.report["rankers"]) == 1:
        assert done.report["rounds"][-1]["validation"] == pytest.approx(weighted[1:], abs=1e-12)
    assert done.report["files"]["validation_weights"] == ["v.w", "u.w"]
    plain = fit(DATA, *SMALL, "--weights", "w", *valid[:3], "--metric", "map", *more)
    assert plain.report["validation"] == [evaluated(f"{name}.svm", "--metric", "map") for name in ("v.w", "u.w")]


def test_weights_of_a_validation_file_decide_on_the_number_of_trees() -> None:
    """Half of the queries want the opposite; they count or do not."""
    junk = "".join(
        f"{label} qid:{q} 1:{-x if q % 2 else x}\n" for q in range(12) for label, x in ((0, 0), (1, 1), (0, 2), (2, 3))
    )
    Path("v.svm").write_text(junk)
    Path("v.w").write_text("1\n0\n" * 6)
    fixed = ("--min-docs", "1", "--valid", "v.svm", "--early-stop", "2", "--objective", "lambdamart")
    train_on = "".join(line + "\n" for line in junk.splitlines() if int(line.split()[1][4:]) % 2 == 0)
    weighted = fit(train_on, *fixed, "--valid-weights", "v.w")
    assert weighted.report["validation"] == [1.0] and fit(train_on, *fixed).report["validation"] != [1.0]
    tuned = run("train", "--data", "d.svm", *fixed, "--valid-weights", "v.w", "--tune-trials", "1")
    assert "1.000000" in tuned.stdout and "--valid-weights v.w" in tuned.stdout.splitlines()[-1]


def test_query_sizes_of_validation_files() -> None:
    def bare(text: str) -> str:
        return "".join(" ".join((line.split()[0], *line.split()[2:])) + "\n" for line in text.splitlines())

    other = learnable(8, n_queries=4)
    Path("v.svm").write_text(bare(other))
    Path("q.svm").write_text(other)
    Path("s").write_text("10\n" * (DATA.count("\n") // 10))
    Path("t").write_text("10\n" * 4)
    for more in ((), ("--folds", "2")):
        done = fit(bare(DATA), *SMALL, "--query-sizes", "s", "--valid", "v.svm", "--valid-query-sizes", "t", *more)
        with_ids = fit(DATA, *SMALL, "--valid", "q.svm")
        if not more:
            assert done.report["validation"] == with_ids.report["validation"] and done.data == with_ids.data
        own = fit(bare(DATA), *SMALL, "--query-sizes", "s", "--valid", "q.svm", *more)
        assert own.report["validation"] == done.report["validation"]  # whose rows name their queries
    Path("d.svm").write_text(bare(DATA))
    for more in ((), ("--folds", "2")):
        assert "sizes with --valid-query-sizes" in refused("--query-sizes", "s", "--valid", "v.svm", *more)
    Path("d.svm").write_text(DATA)
    assert "leave out --valid-query-sizes" in refused("--valid", "q.svm", "--valid-query-sizes", "t")
    Path("t").write_text("10\n")
    said = refused("--valid", "v.svm", "--valid-query-sizes", "t")
    assert "'lmart convert DATA OUT --query-sizes FILE'" in said  # not --valid-query-sizes, which convert lacks
    for option in ("--valid-weights", "--valid-query-sizes"):
        assert f"{option} needs a file for each of --valid" in refused(option, "t", status=2)
        assert "there are 2 for 1" in refused("--valid", "v.svm", option, "t", "t", status=2)


@pytest.mark.parametrize("by_row", [False, True])
def test_weights_that_leave_nothing_to_measure_are_told(by_row: bool) -> None:
    Path("v.svm").write_text("0 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:1\n0 qid:2 1:2\n")
    Path("vw").write_text("1\n1\n0\n0\n" if by_row else "1\n0\n")
    done = fit(learnable(), *SMALL, "--valid", "v.svm", "--valid-weights", "vw")
    (line,) = done.warnings
    assert "v.svm: no query with a weight above 0 has a relevant document, so every measure of it is 0" in line


def test_weights_that_leave_nothing_to_learn_from_are_told() -> None:
    Path("w").write_text("0\n0\n1\n")
    done = fit(AGAINST + "1 qid:3 1:1\n1 qid:3 1:2\n", "--weights", "w", "--min-docs", "1")
    (warning,) = done.warnings
    assert "nothing to learn: no query with a weight above 0 has a pair of documents with different labels" in warning


def test_files_beside_the_data_are_ignored_unless_named(tmp_path: Path) -> None:
    expected = trained(tmp_path, GOOD)
    folder = tmp_path / "side"
    folder.mkdir()
    for name, text in (("d.svm", GOOD), ("d.svm.query", "7\n0\n"), ("d.svm.weight", "-1\n")):
        (folder / name).write_text(text)
    run("train", "--data", folder / "d.svm", "--out", folder / "m", *TO_READ)
    assert (folder / "m").read_bytes() == expected
    no_queries = "".join(f"{line.split()[0]} {' '.join(line.split()[2:])}\n" for line in GOOD.splitlines())
    (folder / "d.svm").write_text(no_queries)
    for sizes, what in (
        ("7\n0\n", "query:2: query size '0'"),
        ("7\n8\n", f"sum to 15, but {folder / 'd.svm'} has more than 15 rows"),
    ):
        (folder / "d.svm.query").write_text(sizes)
        result = run("train", "--data", folder / "d.svm", "--query-sizes", folder / "d.svm.query", status=1)
        assert what in result.stderr
    (folder / "d.svm.query").write_text("4\n" * 10)
    run("train", "--data", folder / "d.svm", "--query-sizes", folder / "d.svm.query", "--out", folder / "m", *TO_READ)
    assert (folder / "m").read_bytes() == expected
    for weights, what in (
        ("1\n2\n", "there are 2 weights, but the data has 10 queries and 40 rows"),
        ("-1\n", "weight '-1'"),
    ):
        (folder / "w").write_text(weights)
        (folder / "d.svm").write_text(GOOD)
        assert what in run("train", "--data", folder / "d.svm", "--weights", folder / "w", status=1).stderr
