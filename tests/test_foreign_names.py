"""Names of other tools lead to our options; nothing leads astray."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import click
import pytest
from helpers.commands import run
from helpers.paths import ROOT

import lmart
from lmart.cli.command import option_names
from lmart.cli.main import COMMANDS, main
from lmart.errors import SettingsError
from lmart.foreign_names import ARGUMENTS, NAMES, OPTIONS, WITHOUT, meant, measure_for, perhaps
from lmart.formats.registry import FORMATS, RESULT_FORMATS
from lmart.measures import KINDS, parse_measure
from lmart.measures.conventions import CHOICES
from lmart.measures.measure import measures_for
from lmart.measures.presets import PRESETS
from lmart.settings import OBJECTIVES, TREE_FORMS

LIGHTGBM = """
num_iterations --trees; num_iteration --trees; n_iter --trees; num_trees --trees; num_tree --trees; num_round --trees;
num_rounds --trees; nrounds --trees; num_boost_round --trees; n_estimators --trees; max_iter --trees;
learning_rate --learning-rate; shrinkage_rate --learning-rate; eta --learning-rate; num_leaves --leaves;
num_leaf --leaves; max_leaves --leaves; max_leaf --leaves; max_leaf_nodes --leaves; max_depth --max-depth;
min_data_in_leaf --min-docs; min_data_per_leaf --min-docs; min_data --min-docs; min_child_samples --min-docs;
min_samples_leaf --min-docs; min_sum_hessian_in_leaf --min-hessian; min_sum_hessian --min-hessian;
min_child_weight --min-hessian; lambda_l2 --l2; reg_lambda --l2; lambda --l2; l2_regularization --l2;
max_bin --max-bins;
bagging_fraction --sample; subsample --sample; sub_row --sample; feature_fraction --features; sub_feature --features;
colsample_bytree --features; application --objective; loss --objective; app --objective; label_gain --gain;
lambdarank_truncation_level --truncation; lambdarank_norm --normalize; sigmoid --sigma; metrics --metric;
metric_types --metric; eval_at --metric; ndcg_eval_at --metric; ndcg_at --metric; early_stopping_round --early-stop;
early_stopping_rounds --early-stop; early_stopping --early-stop; n_iter_no_change --early-stop;
monotone_constraints --monotone; mc --monotone; num_threads --threads; num_thread --threads; nthread --threads;
n_jobs --threads; random_seed --seed; random_state --seed; train --data; train_data --data; train_data_file --data;
data_filename --data; test --valid; valid_data --valid; test_data --valid; output_model --out; model_output --out;
model_out --out; input_model --continue-from; model_input --continue-from; model_in --continue-from;
init_score --init-scores; group_column --query-column; group --query-sizes; query --query-sizes; label --label-column;
weight --weights; ignore_column --ignore-columns; ignore_feature --ignore-columns; verbosity --quiet; verbose --quiet;
lambdarank_position_bias_regularization --position-bias-reg; max_position --truncation;
"""
XGBOOST = """
n_estimators --trees; num_boost_round --trees; num_round --trees; eta --learning-rate; learning_rate --learning-rate;
max_leaves --leaves; min_child_weight --min-hessian; lambda --l2; max_bin --max-bins; subsample --sample;
colsample_bytree --features; grow_policy --tree; eval_metric --metric; early_stopping_rounds --early-stop;
lambdarank_num_pair_per_sample --truncation; lambdarank_normalization --normalize; ndcg_exp_gain --gain;
monotone_constraints --monotone; nthread --threads; seed --seed; base_margin --init-scores; xgb_model --continue-from;
missing --absent; nfold --folds; qid --query-column;
"""
CATBOOST = """
iterations --trees; learn-set --data; test-set --valid; loss-function --objective; eval-metric --metric;
depth --max-depth; l2-leaf-reg --l2; rsm --features; border-count --max-bins; od-wait --early-stop; cv --folds;
random-seed --seed; thread-count --threads; model-file --out; min-data-in-leaf --min-docs; grow-policy --tree;
max-leaves --leaves; baseline --init-scores; logging-level --quiet; init-model --continue-from; custom-metric --metric;
"""
RANKLIB = """
-train --data; -validate --valid; -test --valid; -ranker --objective; -metric2t --metric; -metric2T --metric;
-save --out; -load --continue-from; -tree --trees; -leaf --leaves; -shrinkage --learning-rate; -tc --max-bins;
-mls --min-docs; -estop --early-stop; -kcv --folds; -silent --quiet; -thread --threads;
-srate --sample; -frate --features
"""
OTHERS = """
lr --learning-rate; jobs --threads; model --out; n_splits --folds; patience --early-stop; epochs --trees; output --out;
sample_weight --weights; leafs --leaves; tres --trees;
learning-rat --learning-rate; truncaton --truncation;
categorical_feature --categorical; cat-features --categorical; enable_categorical --categorical;
otu --out; early-stops --early-stop; ignore-colums --ignore-columns
"""
HAS_A_WORD = """
gamma min_split_gain min_gain_to_split alpha reg_alpha lambda_l1 max_delta_step device device_type task_type gpu_id
boosting booster boosting_type dart one_hot_max_size scale_pos_weight
max_cat_threshold linear_tree tree_method leaf_estimation_method task path_smooth drop_rate is_unbalance
num_class column_description bootstrap_type gmax tvs tts zero_as_missing lambdarank_unbiased
min_delta interaction_constraints norm colsample_bylevel bagging_freq use_missing base_score header snapshot_freq
extra_trees langevin forced_splits_file monotone_splits_penalty hist_pool_size
"""
LEADS_NOWHERE = "plot qrel xyz foo"
TRAIN = [pair.split() for table in (LIGHTGBM, XGBOOST, CATBOOST, RANKLIB, OTHERS) for pair in table.split(";")]


def test_a_name_of_another_tool_leads_to_ours() -> None:
    for foreign, ours in filter(None, TRAIN):
        for name in {foreign, foreign.replace("_", "-")}:
            option = name if name.startswith("-") else f"--{name}"
            if option in option_names(command("train")):
                continue  # it is ours too
            said = run("train", option, "x", status=2).stderr
            assert said == f"lmart: error: no such option '{option}'; perhaps '{ours}'; see 'lmart train --help'\n"


def test_what_lmart_lacks_gets_a_word() -> None:
    for foreign in HAS_A_WORD.split():
        for option in {f"--{foreign}", f"--{foreign.replace('_', '-')}"}:
            said = run("train", option, "x", status=2).stderr
            assert said.startswith(f"lmart: error: no such option '{option}'; ") and said.count(";") >= 2, said
            assert "perhaps" not in said and "{" not in said


@pytest.mark.parametrize("name", COMMANDS)
def test_a_name_without_a_counterpart_leads_to_no_option(name: str) -> None:
    alike = {("eval", "qrel"), ("show", "tvs")}  # spelled like an option that the command has
    for foreign in [*LEADS_NOWHERE.split(), *HAS_A_WORD.split()]:
        if (name, foreign) not in alike:
            assert "perhaps" not in perhaps("option", f"--{foreign}", option_names(command(name))), foreign
    assert "Did you mean" not in run(name, "--gamma=1", status=2).stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train --zero-as-missing", "--absent missing makes what a row does not name missing"),
        ("train -norm zscore", "see --normalize, which is about lambdas"),
        ("train -tvs 0.8", "'lmart train' has --valid and --folds"),
        ("predict --num-iteration 5", "a model scores with all its trees"),
        ("eval -c", "--missing zero counts the queries that a run lacks"),
        ("eval -M 1000", "give each measure of --metric a cutoff, as in map@1000"),
        ("eval -l 2", "perhaps '--relevant'"),
        ("eval --relevance-level 2", "perhaps '--relevant'"),
        ("eval --qrels q --run r -m map", "-m 'map': -m is the model; perhaps --metric map;"),
        ("eval --data q -m ndcg_cut.5,10", "-m is the model; perhaps --metric ndcg@5,ndcg@10;"),
    ],
)
def test_words_of_other_tools(line: str, said: str) -> None:
    assert said in run(*line.split(), status=2).stderr


def test_sentences_about_options_that_a_command_lacks_are_left_out() -> None:
    assert perhaps("option", "--zero-as-missing", ["--absent"]) != ""
    assert perhaps("option", "--zero-as-missing", ["--data"]) == ""
    assert perhaps("argument", "zero_as_missing", ["absent"]).startswith("; absent='missing' makes")


@pytest.mark.parametrize(
    ("name", "foreign", "ours"),
    [
        ("train", "--num-leaves=31", "--leaves"),
        ("eval", "--train", "--data"),
        ("eval", "--test", "--data"),
        ("eval", "--eval-metric", "--metric"),
        ("eval", "--label_gain", "--gain"),
        ("predict", "--nthread", "--threads"),
        ("predict", "--test", "--data"),
        ("predict", "--input-model", "--model"),
        ("predict", "-load", "--model"),
        ("predict", "-output", "--out"),
        ("predict", "-model", "--model"),
        ("predict", "-rank", "--data"),
        ("predict", "--pred_contribs", "--explain"),
        ("predict", "--output-format", "--format"),
        ("convert", "--output-format", "--to"),
        ("convert", "--fmap", "--feature-map"),
    ],
)
def test_what_a_name_means_depends_on_the_command(name: str, foreign: str, ours: str) -> None:
    said = run(name, foreign, "x", status=2).stderr
    assert f"no such option '{foreign.partition('=')[0]}'; perhaps '{ours}'; see" in said


def command(name: str) -> click.Command:
    found = main.get_command(None, name)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_only_options_that_the_command_has_are_named() -> None:
    assert "perhaps" not in run("eval", "--eta", "1", status=2).stderr
    assert "perhaps" not in run("convert", "--n_estimators", "1", status=2).stderr


def test_letters_of_short_options_may_be_joined_and_take_values() -> None:
    """Only a long name behind one dash is refused."""
    assert "perhaps" not in run("predict", "-mx.json", "--data", "none", "-qq", status=1).stderr


def test_ours_exist() -> None:
    known = {name for one in COMMANDS for name in option_names(command(one))}
    assert set(OPTIONS) <= known | {"--completion"}
    braces = {one for sentence in WITHOUT for one in re.findall(r"\{([a-z0-9-]+)", sentence)}
    assert {f"--{one}" for one in braces} <= known
    words: dict[str, Collection[str]] = {
        "objective": OBJECTIVES,
        "tree": TREE_FORMS,
        "gain": ("exp2", "linear"),
        "like": PRESETS,
        "source_format": FORMATS,
        "target_format": FORMATS,
        "format": FORMATS,
        "form": RESULT_FORMATS,
        "empty": CHOICES["empty"],
        "ties": CHOICES["ties"],
        "absent": ("zero", "missing"),
        "duplicates": ("error", "last"),
        "kind": ("gain", "splits", "contributions"),
        "measure": KINDS,
    }
    assert set(NAMES) == {*words, "option", "argument", "command"}
    for kind, table in words.items():
        assert set(NAMES[kind]) <= set(table), kind


def test_no_name_stands_twice() -> None:
    for kind, table in NAMES.items():
        for ours, names in table.items():
            assert len(set(names.split())) == len(names.split()), ours
        if kind not in ("option", "argument"):
            every = " ".join(table.values()).split()
            assert len(set(every)) == len(every), kind
    every = " ".join(WITHOUT.values()).split()
    assert len(set(every)) == len(every)
    assert not set(ARGUMENTS) & set(OPTIONS)


@pytest.mark.parametrize(
    ("unknown", "found"),
    [
        ("n_estimators", ["trees"]),
        ("ETA", ["learning_rate"]),
        ("learning-rat", ["learning_rate"]),
        ("treees", ["trees", "tree"]),
        ("num_leaves", []),  # which would be leaves, but is not among the known
        ("zzz", []),
    ],
)
def test_arguments_of_python(unknown: str, found: list[str]) -> None:
    assert meant("argument", unknown, ["trees", "tree", "learning_rate", "min_docs", "trees"]) == found
    assert perhaps("argument", unknown, ["tree"]) in ("", "; perhaps 'tree'")


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("trian", "lmart train"),
        ("Train", "lmart train"),
        ("fit", "lmart train"),
        ("evaluate", "lmart eval"),
        ("test", "lmart eval"),
        ("trec_eval", "lmart eval"),
        ("evla", "lmart eval"),
        ("score", "lmart predict"),
        ("predit", "lmart predict"),
        ("cv", "lmart train --folds K"),
        ("tune", "lmart train --tune MINUTES"),
        ("explain", "lmart predict --explain"),
        ("export", "lmart convert"),
        ("completion", "lmart --completion SHELL"),
        ("verison", "lmart version"),
    ],
)
def test_a_command_by_habit_leads_to_ours(word: str, ours: str) -> None:
    said = run(word, "x", status=2).stderr
    assert said == f"lmart: error: no such command '{word}'; perhaps '{ours}'; see 'lmart --help'\n"


def test_commands_that_are_not_there_are_not_named() -> None:
    assert meant("command", "info", ["train", "show"]) == ["show"]
    assert meant("command", "info", ["train"]) == []
    assert not set(" ".join(NAMES["command"].values()).split()) & set(COMMANDS)
    for word in ("foo", "data.svm", "x", "nothing"):
        assert "perhaps" not in run(word, status=2).stderr


OF_TRAIN = ("train", "--data", "x")
OF_EVAL = ("eval", "--data", "x", "--scores", "y")


@pytest.mark.parametrize(
    ("arguments", "foreign", "ours"),
    [
        *(
            (OF_TRAIN, ("--objective", foreign), "lambdamart")
            for foreign in ("lambdarank", "rank:ndcg", "LambdaMart", "6")
        ),
        *(
            (OF_TRAIN, ("--objective", foreign), "ranknet")
            for foreign in ("rank:pairwise", "PairLogit", "1", "RankNet")
        ),
        (OF_TRAIN, ("--objective", "rank_xendcg"), "xendcg"),
        (OF_TRAIN, ("--objective", "xe_ndcg_mart"), "xendcg"),
        (OF_TRAIN, ("--objective", "rank:map"), "map"),
        (OF_TRAIN, ("--objective", "YetiRank"), "yetirank"),
        (OF_TRAIN, ("--objective", "lambdamart+YetiRank"), "yetirank"),
        (OF_TRAIN, ("--objective", "lambdmart"), "lambdamart"),
        (OF_TRAIN, ("--tree", "lossguide"), "leafwise"),
        (OF_TRAIN, ("--tree", "Lossguide"), "leafwise"),
        (OF_TRAIN, ("--tree", "SymmetricTree"), "oblivious"),
        (OF_TRAIN, ("--tree", "Depthwise"), "depthwise"),
        (OF_TRAIN, ("--gain", "exp"), "exp2"),
        (OF_TRAIN, ("--gain", "identity"), "linear"),
        (OF_TRAIN, ("--absent", "nan"), "missing"),
        (OF_TRAIN, ("--metric", "ndcg_cut_10"), "ndcg@10"),
        (OF_TRAIN, ("--metric", "NDCG:top=10"), "ndcg@10"),
        (OF_EVAL, ("--metric", "PrecisionAt:top=5,map"), "p@5,map"),
        (OF_EVAL, ("--metric", "R@5"), "recall@5"),
        (OF_EVAL, ("--empty", "0"), "zero"),
        (OF_EVAL, ("--empty", "drop"), "skip"),
        (OF_EVAL, ("--ties", "mean"), "average"),
        (OF_EVAL, ("--duplicates", "raise"), "error"),
        (("predict", "-m", "x", "--data", "y"), ("--format", "json"), "jsonl"),
        (("predict", "-m", "x", "--data", "y"), ("--format", "run"), "trec"),
        (("convert", "x", "y"), ("--to", "svmlight"), "letor"),
        (("convert", "x", "y"), ("--from", "xgb"), "xgboost"),
        (("convert", "x", "y"), ("--to", "vespa"), "lightgbm-json"),
        (("convert", "x", "y"), ("--to", "lightgmb"), "lightgbm"),
        ((), ("--completion", "bsh"), "bash"),
    ],
)
def test_a_value_of_another_tool_leads_to_ours(arguments: tuple[str, ...], foreign: tuple[str, str], ours: str) -> None:
    said = run(*arguments, *foreign, status=2).stderr
    assert said.count("\n") == 1 and said.startswith(f"lmart: error: invalid value for '{foreign[0]}': ")
    assert f"; perhaps '{ours}'; see" in said


@pytest.mark.parametrize(
    ("arguments", "foreign"),
    [
        (OF_TRAIN, ("--objective", "regression")),
        (OF_TRAIN, ("--objective", "queryrmse")),
        (OF_TRAIN, ("--tree", "gpu_hist")),
        (OF_TRAIN, ("--gain", "sqrt")),
        (OF_TRAIN, ("--metric", "gini")),
        (("convert", "x", "y"), ("--to", "pmml")),
    ],
)
def test_a_value_without_a_counterpart_leads_nowhere(arguments: tuple[str, ...], foreign: tuple[str, str]) -> None:
    assert "perhaps" not in run(*arguments, *foreign, status=2).stderr


@pytest.mark.parametrize("name", ["NDCG@10", "MAP", "P@5", "ERR@10", "RR@10"])
def test_capitals_are_no_mistake_in_measures(name: str) -> None:
    assert "is no measure" not in run(*OF_EVAL, "--metric", name, status=1).stderr


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        ("ndcg_cut_10", "ndcg@10"),
        ("ndcg_cut.10", "ndcg@10"),
        ("P.5", "p@5"),
        ("recall.100", "recall@100"),
        ("P_10", "p@10"),
        ("recall_100", "recall@100"),
        ("recip_rank", "mrr"),
        ("map_cut_5", "map@5"),
        ("NDCG:top=10;type=Exp", "ndcg@10"),
        ("PrecisionAt:top=3", "p@3"),
        ("nDCG@20", "ndcg@20"),
        ("AP", "map"),
        ("RBP(p=0.9)", "rbp(0.9)"),
        ("RBP(p=0.9)@10", "rbp(0.9)@10"),
        ("ndcg@10-", "ndcg@10"),
        ("mean_average_precision", "map"),
        ("gini", None),
        ("iprec_at_recall_0.10", "iprec@0.1"),
        ("R_cap@10", "recall_cap@10"),
        ("hit_rate@5", "success@5"),
        ("set_F", "f1"),
        ("", None),
    ],
)
def test_measures_of_other_tools(foreign: str, ours: str | None) -> None:
    assert measure_for(foreign) == ours
    if ours is not None:
        assert str(parse_measure(ours)) == ours


def test_lists_of_measures() -> None:
    assert measures_for("P_5,ndcg_cut_10") == "p@5,ndcg@10"
    assert measures_for("ndcg_cut.5,10,map,p@5(rel=2)") == "ndcg@5,ndcg@10,map,p@5(rel=2)"
    assert measures_for("map,5") is None
    assert measures_for("P_5,gini") is None


def test_at_most_two_are_named() -> None:
    assert len(meant("target_format", "lightgbm-jsn", list(FORMATS))) <= 2
    assert meant("target_format", "xgbost-dmp", FORMATS) == ["xgboost-dump"]


X, Y, QID = [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]], [0, 1, 1, 0], [7, 7, 8, 8]
API: Any = lmart  # to a type checker, the calls below are wrong
SAMPLE = str(ROOT / "data/sample/test.svm")


@cache
def small_model() -> Any:
    return API.train(X, Y, QID, trees=1, rankers=1, min_docs=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: API.train(X, Y, QID, n_estimators=5), "there is no setting 'n_estimators'; perhaps 'trees'"),
        (lambda: API.train(X, Y, QID, eval_set=[]), "there is no setting 'eval_set'; perhaps 'valid'"),
        (lambda: API.train(X, Y, QID, linear_tree=True), "there is no setting 'linear_tree'; a leaf holds"),
        (lambda: API.read(SAMPLE, qid_column="q"), "read() has no option 'qid_column'; perhaps 'query_column'"),
        (lambda: API.Dataset(X, label=Y), "Dataset() has no argument 'label'; perhaps 'y'"),
        (lambda: API.Dataset(X, Y, QID).with_metadata(weight=1), "'weight'; perhaps 'weights'"),
        (lambda: API.Dataset(X, Y, QID).with_metadata(qid=QID), "'qid'; perhaps Dataset(qid=...)"),
        (lambda: small_model().predict(X=X), "predict() has no argument 'X'; perhaps 'features'"),
        (lambda: small_model().predict(X, num_iteration=1), "'num_iteration'; a model scores with all its trees"),
        (lambda: small_model().evaluate(X, Y, QID, eval_metric="map"), "'eval_metric'; perhaps 'metric'"),
        (lambda: small_model().importance(importance_type="gain"), "'importance_type'; perhaps 'kind'"),
    ],
)
def test_unknown_keywords_of_python(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: API.train(X, Y, QID, objective="lambdarank"), "perhaps 'lambdamart'"),
        (lambda: API.train(X, Y, QID, tree="lossguide"), "perhaps 'leafwise'"),
        (lambda: API.train(X, Y, QID, gain="exp"), "perhaps 'exp2'"),
        (lambda: API.train(X, Y, QID, metric="ndcg_cut.10"), "perhaps 'ndcg@10'"),
        (lambda: small_model().evaluate(X, Y, QID, metric=["map", "P.5"]), "perhaps 'map,p@5'"),
        (lambda: small_model().evaluate(X, Y, QID, empty="drop"), "perhaps 'skip'"),
        (lambda: small_model().importance("weight"), "perhaps 'splits'"),
        (lambda: small_model().save("model", format="lgb"), "perhaps 'lightgbm'"),
        (lambda: API.read(SAMPLE, duplicates="keep_last"), "perhaps 'last'"),
    ],
)
def test_values_of_other_tools_in_python(call: Callable[[], object], said: str) -> None:
    with pytest.raises((SettingsError, ValueError), match=said):
        call()


@pytest.mark.peers
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda ranker: ranker(n_estimators=5), "LambdaMARTRanker() has no argument 'n_estimators'; perhaps 'trees'"),
        (lambda ranker: ranker(random_state=1), "perhaps 'seed'"),
        (lambda ranker: ranker().fit(X, Y, groups=QID), "fit() has no argument 'groups'; perhaps 'qid' or 'group'"),
        (lambda ranker: ranker().fit(X, Y, qid=QID, eval_qid=QID), "perhaps 'eval_set'"),
        (lambda ranker: ranker().fit(X, Y, early_stopping_rounds=5), "perhaps LambdaMARTRanker(early_stop=...)"),
    ],
)
def test_unknown_keywords_of_the_estimator(call: Callable[[Any], object], said: str) -> None:
    pytest.importorskip("sklearn")
    from lmart.sklearn import LambdaMARTRanker

    with pytest.raises(TypeError, match=re.escape(said)):
        call(LambdaMARTRanker)
