"""Names of other tools lead to our options; nothing leads astray."""

from __future__ import annotations

import click
import pytest
from helpers.commands import run

from lmart.cli.help.command import option_names
from lmart.cli.main import COMMANDS, main
from lmart.foreign_names import OURS, option_for

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
otu --out; early-stops --early-stop; ignore-colums --ignore-columns
"""
WITHOUT_COUNTERPART = """
gamma min_split_gain min_gain_to_split alpha reg_alpha lambda_l1 max_delta_step device device_type task_type gpu_id
boosting booster boosting_type dart categorical_feature cat_features cat-features one_hot_max_size scale_pos_weight
max_cat_threshold linear_tree tree_method leaf_estimation_method task path_smooth extra_trees drop_rate is_unbalance
num_class column_description plot bootstrap_type gmax qrel tvs tts xyz foo
"""
TRAIN = [pair.split() for table in (LIGHTGBM, XGBOOST, CATBOOST, RANKLIB, OTHERS) for pair in table.split(";")]


@pytest.mark.parametrize(("foreign", "ours"), [pair for pair in TRAIN if pair])
def test_a_name_of_another_tool_leads_to_ours(foreign: str, ours: str) -> None:
    for name in {foreign, foreign.replace("_", "-")}:
        option = name if name.startswith("-") else f"--{name}"
        if option in option_names(command("train")):
            continue  # it is ours too
        said = run("train", option, "x", status=2).stderr
        assert said == f"lmart: error: no such option '{option}'; perhaps '{ours}'; see 'lmart train --help'\n"


@pytest.mark.parametrize("foreign", WITHOUT_COUNTERPART.split())
@pytest.mark.parametrize("name", COMMANDS)
def test_a_name_without_a_counterpart_leads_nowhere(name: str, foreign: str) -> None:
    if (name, foreign) in (("eval", "qrel"), ("show", "tvs")):
        return  # spelled like an option that the command has
    assert "perhaps" not in run(name, f"--{foreign}", "x", status=2).stderr
    assert "Did you mean" not in run(name, f"--{foreign.replace('_', '-')}=1", status=2).stderr


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
    known = {name for one in COMMANDS for name in option_names(command(one))} | {"--completion"}
    assert set(OURS) <= known
    for names in OURS.values():
        listed = names.split()
        assert len(set(listed)) == len(listed), names
    assert option_for("--LEARNING_RATE", known) is None
    assert option_for("--ETA", known) == "--learning-rate"
