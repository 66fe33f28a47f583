"""Names that options have in LightGBM, XGBoost, CatBoost, RankLib and scikit-learn, and what they are called here."""

from __future__ import annotations

from collections.abc import Collection, Iterator

OURS = {
    "--valid": "valid-data valid-file validation validate vali eval-set eval-data test-set test-file test-data test "
    "dev valid-set valid-sets test-path validation-data vali-file watchlist",
    "--data": "train train-file train-data-file data-filename train-data train-set training-data learn-set input "
    "input-file input-path fit trainset train-path data-file data-path dataset test test-file test-data test-set "
    "test-path eval-set rank",
    "--model": "model-file model-path input-model model-input load model-in saved-model init-model",
    "--scores": "score predictions prediction-file score-file predicted",
    "--out": "output output-model output-result model-out model-output save result-path output-file output-path "
    "out-file model model-file save-model name-pred",
    "--trees": "n-estimators num-iterations num-iteration iterations num-trees num-tree tree num-boost-round num-round "
    "num-rounds nrounds rounds n-rounds n-iter max-iter boosting-rounds epochs num-boosting-rounds n-trees "
    "max-trees",
    "--leaves": "num-leaves num-leaf max-leaves max-leaf leaf max-leaf-nodes n-leaves leafs",
    "--learning-rate": "eta lr shrinkage shrinkage-rate rate step-size",
    "--max-depth": "depth tree-depth",
    "--min-docs": "min-data-in-leaf min-child-samples min-samples-leaf mls min-data min-data-per-leaf min-leaf-support "
    "min-leaf min-docs-in-leaf",
    "--min-hessian": "min-child-weight min-sum-hessian-in-leaf min-sum-hessian min-sum-hessian-per-leaf min-hess",
    "--l2": "lambda-l2 reg-lambda l2-leaf-reg l2-regularization lambda l2-reg reg-l2 l2-regularisation",
    "--max-bins": "max-bin border-count tc thresholds n-bins num-bins nbins max-bin-by-feature",
    "--tree": "grow-policy tree-type growing-policy growth",
    "--objective": "loss-function loss application ranker objective-type app algorithm algo",
    "--truncation": "lambdarank-truncation-level lambdarank-num-pair-per-sample truncation-level max-position",
    "--normalize": "lambdarank-norm lambdarank-normalization norm normalise",
    "--sigma": "sigmoid",
    "--gain": "label-gain ndcg-exp-gain gains",
    "--metric": "eval-metric metrics ndcg-eval-at eval-at metric2t metric2t-k measure measures metric-types "
    "eval-metrics custom-metric ndcg-at eval",
    "--early-stop": "early-stopping-rounds early-stopping-round early-stopping od-wait estop n-iter-no-change patience "
    "early-stop-rounds",
    "--absent": "missing",
    "--sample": "bagging-fraction subsample sub-row bagging srate sample-rate subsample-rate",
    "--features": "colsample-bytree feature-fraction rsm sub-feature frate feature-sampling colsample max-features "
    "max-features-rate",
    "--monotone": "monotone-constraints monotonic-constraints monotonic-cst mc monotone-constraint",
    "--folds": "cv kcv nfold n-folds n-splits num-folds cross-validation k-fold kfold nfolds",
    "--seed": "random-seed random-state rand-seed data-random-seed",
    "--threads": "jobs n-jobs num-threads nthread nthreads num-thread thread-count thread j workers num-workers "
    "n-threads",
    "--query-sizes": "group group-file query query-file groups group-sizes query-size group-size",
    "--valid-query-sizes": "valid-group eval-group",
    "--label-column": "label target-column label-index target label-name label-col",
    "--query-column": "group-column group-id query-id qid-column qid query-col group-col query-id-column",
    "--document-column": "doc-id docid docno doc-column document-id doc-id-column",
    "--ignore-columns": "ignore-column ignore-features ignore-feature drop-columns",
    "--weights": "weight weight-file sample-weight group-weights query-weights",
    "--valid-weights": "valid-weight eval-sample-weight",
    "--continue-from": "init-model input-model model-input input-model-file xgb-model model-in load resume warm-start",
    "--init-scores": "init-score base-margin baseline initial-scores initscore init-score-file initscore-filename",
    "--valid-init-scores": "valid-init-score valid-initscore valid-data-initscores eval-init-score",
    "--positions": "position position-file",
    "--position-bias-reg": "lambdarank-position-bias-regularization",
    "--quiet": "silent verbose verbosity verbose-eval logging-level",
    "--from": "input-format from-format source-format",
    "--to": "output-format to-format target-format",
    "--format": "output-format",
    "--feature-map": "fmap feature-names",
    "--explain": "shap shap-values pred-contrib pred-contribs contrib contributions predict-contrib",
    "--top": "top-k k limit",
    "--tag": "run-id run-name runid run-tag",
    "--per-query": "per-topic q idv print-per-query",
    "--settings": "config config-file params-file conf",
    "--completion": "show-completion install-completion",
}
"""By the name of an option here, the names of others, without dashes.

A name that stands in several rows means the first of them that the command has.
"""


def options_for(foreign: str) -> Iterator[str]:
    """Yield the options that a name of another tool, such as `--n_estimators` or `-shrinkage`, may stand for.

    foreign : as it was written
    """
    name = foreign.lstrip("-").replace("_", "-").lower()
    for option, names in OURS.items():
        if name in names.split():
            yield option


def option_for(foreign: str, known: Collection[str]) -> str | None:
    """Return the option that stands for a name of another tool; None when there is none.

    foreign : as it was written
    known   : the options of the command
    """
    return next((option for option in options_for(foreign) if option in known), None)
