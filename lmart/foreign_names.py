"""Names that options have in LightGBM, XGBoost, CatBoost, RankLib and scikit-learn, and what they are called here."""

from __future__ import annotations

OURS = {
    "--data": "train train-file train-data train-set training-data learn-set input fit",
    "--valid": "valid-data validation validate eval-set test-set test-file test dev",
    "--model": "model-file model-path input-model load",
    "--out": "output output-model output-result model-out save result-path",
    "--trees": "n-estimators num-iterations num-iteration iterations num-trees num-tree num-boost-round num-round tree",
    "--leaves": "num-leaves max-leaves leaf max-leaf-nodes",
    "--learning-rate": "eta lr shrinkage shrinkage-rate",
    "--max-depth": "depth",
    "--min-docs": "min-data-in-leaf min-child-samples min-samples-leaf mls min-data",
    "--min-hessian": "min-child-weight min-sum-hessian-in-leaf min-sum-hessian",
    "--l2": "lambda-l2 reg-lambda l2-leaf-reg l2-regularization lambda",
    "--max-bins": "max-bin border-count tc",
    "--objective": "loss-function loss application ranker",
    "--truncation": "lambdarank-truncation-level lambdarank-num-pair-per-sample",
    "--normalize": "lambdarank-norm lambdarank-normalization norm",
    "--sigma": "sigmoid",
    "--gain": "label-gain",
    "--metric": "eval-metric metrics ndcg-eval-at eval-at metric2t metric2t-k",
    "--early-stop": "early-stopping-rounds early-stopping-round early-stopping od-wait estop n-iter-no-change",
    "--sample": "bagging-fraction subsample sub-row",
    "--features": "colsample-bytree feature-fraction rsm sub-feature",
    "--monotone": "monotone-constraints",
    "--folds": "cv kcv nfold n-folds",
    "--seed": "random-seed random-state",
    "--threads": "jobs n-jobs num-threads nthread num-thread thread-count thread",
    "--query-sizes": "group group-file query query-file",
    "--label-column": "label target-column label-index",
    "--query-column": "group-column group-id query-id",
    "--ignore-columns": "ignore-column ignore-features",
    "--weights": "weight weight-file sample-weight",
    "--continue-from": "init-model input-model-file xgb-model model-in",
    "--init-scores": "init-score base-margin baseline",
    "--quiet": "silent verbose verbosity verbose-eval logging-level",
}
"""By the name of an option here, the names of others, without dashes."""

_BY_FOREIGN_NAME = {name: option for option, names in OURS.items() for name in names.split()}


def option_for(foreign: str) -> str | None:
    """Return the option that stands for a name of another tool, such as `--n_estimators`; None for unknown names.

    foreign : as it was written
    """
    return _BY_FOREIGN_NAME.get(foreign.lstrip("-").replace("_", "-").lower())
