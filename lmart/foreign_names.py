"""What other tools call our options, arguments, commands, values and measures, and the hint that a wrong name gets."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar

from lmart.errors import quote

T = TypeVar("T", bound=type)

OPTIONS = {
    "--valid": "valid-data valid-file validation validate vali eval-set eval-data test-set test-file test-data test "
    "dev valid-set valid-sets test-path validation-data vali-file watchlist valid-filenames evals eval-x "
    "test-data-file valid-data-file",
    "--data": "train train-file train-data-file data-filename train-data train-set training-data learn-set input "
    "input-file input-path fit trainset train-path data-file data-path dataset test test-file test-data test-set "
    "test-path eval-set rank d i f",
    "--model": "model-file model-path input-model model-input load model-in saved-model init-model",
    "--scores": "score predictions prediction-file score-file predicted",
    "--out": "output output-model output-result model-out model-output save result-path output-file output-path "
    "out-file model model-file save-model name-pred predict-result prediction-result pred-name predict-name "
    "prediction-name",
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
    "--objective": "loss-function loss application ranker objective-type app algorithm algo obj",
    "--truncation": "lambdarank-truncation-level lambdarank-num-pair-per-sample truncation-level max-position",
    "--normalize": "lambdarank-norm lambdarank-normalization normalise",
    "--sigma": "sigmoid",
    "--gain": "label-gain ndcg-exp-gain gains",
    "--metric": "eval-metric metrics ndcg-eval-at eval-at metric2t metric2t-k measure measures metric-types "
    "eval-metrics custom-metric ndcg-at map-at map-eval-at eval",
    "--relevant": "relevance-level rel-level level-for-rel relevance-threshold min-rel l",
    "--unjudged": "judged-docs-only judged-only condensed",
    "--early-stop": "early-stopping-rounds early-stopping-round early-stopping od-wait estop n-iter-no-change patience "
    "early-stop-rounds",
    "--absent": "missing",
    "--sample": "bagging-fraction subsample sub-row bagging srate sample-rate subsample-rate",
    "--features": "colsample-bytree feature-fraction rsm sub-feature frate feature-sampling colsample max-features "
    "max-features-rate",
    "--categorical": "categorical-feature categorical-features cat-feature cat-features cat-column categorical-columns "
    "categorical-column enable-categorical",
    "--monotone": "monotone-constraints monotonic-constraints monotonic-cst mc monotone-constraint",
    "--folds": "cv kcv nfold n-folds n-splits num-folds cross-validation k-fold kfold nfolds",
    "--fold-by": "fold-column group-k-fold groupkfold fold-groups cv-groups",
    "--seed": "random-seed random-state rand-seed data-random-seed data-seed bagging-seed bagging-fraction-seed "
    "feature-fraction-seed objective-seed drop-seed extra-seed boost-seed",
    "--threads": "jobs n-jobs num-threads nthread nthreads num-thread thread-count thread j workers num-workers "
    "n-threads",
    "--query-sizes": "group group-file query query-file groups group-sizes query-size group-size",
    "--valid-query-sizes": "valid-group eval-group",
    "--label-column": "label target-column label-index target label-name label-col",
    "--query-column": "group-column group-id query-id qid-column qid query-col group-col query-id-column",
    "--document-column": "doc-id docid docno doc-column document-id doc-id-column",
    "--ignore-columns": "ignore-column ignore-features ignore-feature ignored-features drop-columns blacklist",
    "--weights": "weight weight-file sample-weight group-weights query-weights group-weight",
    "--valid-weights": "valid-weight eval-sample-weight sample-weight-eval-set",
    "--continue-from": "init-model input-model model-input input-model-file xgb-model model-in load resume warm-start",
    "--init-scores": "init-score base-margin baseline initial-scores initscore init-score-file initscore-filename",
    "--valid-init-scores": "valid-init-score valid-initscore valid-data-initscores eval-init-score "
    "base-margin-eval-set",
    "--positions": "position position-file",
    "--position-bias-reg": "lambdarank-position-bias-regularization",
    "--quiet": "silent verbose verbosity verbose-eval logging-level",
    "--from": "input-format from-format source-format",
    "--to": "output-format to-format target-format",
    "--format": "output-format",
    "--feature-map": "fmap feature-names",
    "--explain": "shap shap-values pred-contrib pred-contribs contrib contributions predict-contrib",
    "--strict": "validate-features predict-disable-shape-check",
    "--top": "top-k k limit",
    "--tag": "run-id run-name runid run-tag",
    "--run": "results runs run-file",
    "--qrels": "qrel qrels-file judgments judgements",
    "--per-query": "per-topic q idv print-per-query",
    "--settings": "config config-file params-file conf params",
    "--dask": "machines machine-list machine-list-file machine-list-filename num-machines tree-learner nodes "
    "num-machine mlist tree-learner-type pre-partition local-listen-port local-port",
    "--completion": "show-completion install-completion",
}
ARGUMENTS = {  # of Python alone; they come before OPTIONS
    "X": "data dtrain train-set features dataset train x-train",
    "features": "x x-test dtest",
    "y": "label labels target targets relevance y-true y-train",
    "qid": "groups group-id query-id query-ids qids query queries",
    "group": "groups query-sizes group-sizes query-size group-size",
    "eval_set": "valid validation evals valid-sets eval-group eval-qid eval-x eval-y eval-data",
    "valid": "eval-set evals valid-sets eval-group eval-qid eval-x eval-y",
    "sample_weight": "weight weights group-weight",
    "feature_names": "feature-name columns",
    "verbose": "verbosity verbose-eval silent",
    "callback": "callbacks evals-result",
    "metric": "metrics eval-metric eval-at measure measures",
    "kind": "importance-type type",
    "path": "filename fname file data file-name",
    "format": "to type",
}
WITHOUT = {
    "lmart trains plain gradient boosted trees (gbdt); leave it out": "boosting booster boosting-type boost dart "
    "drop-rate rate-drop skip-drop max-drop one-drop uniform-drop xgboost-dart-mode sample-type "
    "normalize-type num-parallel-tree boost-from-average langevin diffusion-temperature posterior-sampling "
    "model-shrink-rate model-shrink-mode",
    "there is no L1 regularisation; see {l2}": "lambda-l1 reg-alpha alpha l1-regularization l1 reg-l1",
    "{sample} draws documents for each tree, by their gradients": "bagging-freq subsample-freq top-rate other-rate "
    "data-sample-strategy sampling-method bootstrap-type bagging-temperature mvs-reg bagging-by-query "
    "sampling-frequency pos-bagging-fraction neg-bagging-fraction pos-bagging neg-bagging pos-sub-row neg-sub-row "
    "pos-subsample neg-subsample",
    "{features} draws features for each tree, not for each level or node": "colsample-bylevel colsample-bynode "
    "feature-fraction-bynode sub-feature-bynode",
    "splits are not drawn by chance; see {features} and {sample}": "extra-trees extra-tree random-strength "
    "random-score-type",
    "there is no least gain of a split; see {min-docs} and {min-hessian}": "gamma min-split-loss min-split-gain "
    "min-gain-to-split min-impurity-decrease path-smooth cegb-tradeoff cegb-penalty-split",
    "leaf values have no limit; see {learning-rate} and {l2}": "max-delta-step max-tree-output max-leaf-output",
    "a leaf holds a single number, from a Newton step; leave it out": "linear-tree linear-trees linear-lambda "
    "leaf-estimation-method leaf-estimation-iterations leaf-estimation-backtracking",
    "every tree may split on any features; leave it out": "interaction-constraints forced-splits forcedsplits-filename "
    "forced-splits-filename feature-contri feature-penalty feature-weights penalties-coefficient forced-splits-file "
    "fs fc fp feature-contrib first-feature-use-penalties per-object-feature-penalties",
    "every split obeys {monotone}; leave it out": "monotone-constraints-method monotone-penalty mc-method mc-penalty "
    "ms-penalty monotone-constraining-method monotone-splits-penalty",
    "lmart puts the values of {categorical} in an order, and has no other way; leave it out": "feature-types "
    "max-cat-threshold max-cat-to-onehot one-hot-max-size cat-smooth cat-l2 min-data-per-group "
    "max-ctr-complexity simple-ctr combinations-ctr text-features embedding-features ctr-leaf-count-limit "
    "per-feature-ctr counter-calc-method store-all-simple-ctr tokenizers dictionaries text-processing",
    "{absent missing} makes what a row does not name missing; zeros that are written stay 0": "zero-as-missing "
    "missing-zero",
    "nan is always missing; leave it out": "use-missing nan-mode",
    "give the ranks at which documents were shown: {positions}": "lambdarank-unbiased lambdarank-bias-norm",
    "{truncation} says which pairs count": "lambdarank-pair-method max-pairs",
    "see {normalize}, which is about lambdas; features of trees need no normalisation": "norm "
    "lambdarank-score-normalization",
    "{early-stop} takes any better value of the measure as better, and keeps the trees of the best round": "min-delta "
    "early-stopping-min-delta early-stopping-threshold od-pval od-type tol use-best-model best-model-min-trees "
    "save-best first-metric-only",
    "lmart runs on processors, with the same result on any; leave it out": "device device-type task-type gpu-id "
    "gpu-platform-id gpu-device-id gpu-device-id-list gpu-use-dp num-gpu gpu-ram-part devices n-gpus deterministic "
    "force-row-wise force-col-wise histogram-pool-size use-quantized-grad num-grad-quant-bins used-ram-limit "
    "enable-bundle is-enable-sparse two-round hist-pool-size enable-sparse is-sparse sparse is-enable-bundle bundle "
    "two-round-loading use-two-round-loading stochastic-rounding quant-train-renew-leaf feature-pre-filter",
    "trees always go by histograms; see {max-bins}": "tree-method updater predictor process-type sketch-eps "
    "bin-construct-sample-cnt subsample-for-bin min-data-in-bin feature-border-type forcedbins-filename",
    "there are no classes in ranking; see {weights}": "scale-pos-weight is-unbalance unbalance unbalanced-sets "
    "class-weight class-weights auto-class-weights num-class num-classes classes-count",
    "scores are always plain sums of leaf values; leave it out": "raw-score predict-raw-score output-margin "
    "prediction-type base-score pred-early-stop predict-rawscore is-predict-raw-score pred-early-stop-freq "
    "pred-early-stop-margin",
    "a model scores with all its trees; train it with fewer": "num-iteration ntree-limit iteration-range "
    "start-iteration num-iteration-predict tree-limit ntree-start ntree-end start-iteration-predict",
    "each of train, predict and convert is a command": "task",
    "a table has a header, and its separator is found; see {label-column} and {query-column}": "header has-header "
    "column-description cd cd-file delimiter sep separator weight-column",
    "progress is told now and then; {report} has every tree": "metric-freq metric-period output-freq print-every-n "
    "eval-freq log-period training-metric is-provide-training-metric train-metric is-training-metric",
    "there are no snapshots; {continue-from} goes on from a model": "snapshot-freq snapshot-file snapshot-interval "
    "save-snapshot save-period",
    "any label from 0 up counts; see {gain}": "gmax",
    "split the data before, with 'lmart convert --split': 'lmart train' has {valid} and {folds}": "tvs tts "
    "valid-fraction validation-fraction eval-fraction train-size test-size",
    "{missing zero} counts the queries that a run lacks": "c complete-rel-info-wanted",
    "give each measure of {metric} a cutoff, as in map@1000": "m max-num-docs-per-topic",
    "settings are keywords: lmart.train(X, y, qid, trees=100)": "params dtrain-params",
}
"""By a sentence, what lmart has no counterpart of.

In braces stand options, perhaps with a value; a command without these says nothing.
"""

_FORMATS = {
    "letor": "svm svmlight libsvm svmrank svm-light ltr letor4 svm-rank",
    "parquet": "pq",
    "lmart": "json",
    "lightgbm": "lgb lgbm lightgbm-text light-gbm",
    "xgboost": "xgb xgboost-json",
    "xgboost-ubj": "ubj ubjson xgboost-ubjson",
    "xgboost-dump": "elasticsearch opensearch dump xgboost-text",
    "lightgbm-json": "vespa lgb-json",
    "ranklib": "xml ranklib-xml",
    "c": "cpp c++ code source h c-source",
}
NAMES: dict[str, dict[str, str]] = {
    "option": OPTIONS,
    "argument": ARGUMENTS | OPTIONS,
    "command": {
        "train": "fit learn boost refit training",
        "predict": "score rank infer inference apply rerank pred",
        "predict --explain": "explain shap contrib why",
        "eval": "evaluate test measure metrics ndcg evaluation treceval trec-eval analyze analyse compare significance",
        "convert": "export import dump save transform save-model dump-model",
        "show": "info describe inspect importance plot print summary trees model",
        "compile": "warmup warm-up precompile jit",
        "train --folds K": "cv cross-validate crossvalidate cross-validation xval",
        "train --tune MINUTES": "tune optimize search select hyperopt",
        "train --continue-from MODEL": "continue resume",
        "--completion SHELL": "completion completions complete",
        "--version": "ver",
    },
    "objective": {
        "lambdamart": "lambdarank rank:ndcg ndcg lambda-mart lambdarank-ndcg rank-ndcg 6 5 lambdamart:metric=ndcg",
        "ranknet": "rank:pairwise pairwise pairlogit pairlogitpairwise rank-net rank-pairwise 1",
        "lambdaloss": "ndcgloss2++ ndcg-loss2++ lambda-loss ndcg-loss2pp",
        "map": "rank:map average-precision ap lambdamart-map",
        "mrr": "rr reciprocal-rank lambdamart:metric=mrr",
        "err": "lambdamart:metric=err expected-reciprocal-rank",
        "xendcg": "rank-xendcg xe-ndcg xendcg-mart xe-ndcg-mart xentropy-ndcg",
        "yetirank": "yetirankpairwise yeti-rank yeti",
    },
    "tree": {
        "leafwise": "lossguide leaf-wise bestfirst best-first lossguided leaf",
        "depthwise": "levelwise level-wise depth-wise level depth",
        "oblivious": "symmetrictree symmetric symmetric-tree",
    },
    "gain": {"exp2": "exp exponential 2^label-1 exp2-1 2^l-1 base2 pow2", "linear": "lin identity base label"},
    "like": {
        "lightgbm": "lgb lgbm",
        "xgboost": "xgb",
        "trec_eval": "trec treceval pytrec-eval pytrec ir-measures",
        "sklearn": "scikit-learn scikit",
    },
    "format": _FORMATS,
    "source_format": _FORMATS,
    "target_format": _FORMATS,
    "form": {
        "scores": "plain text txt score",
        "tsv": "tab table csv",
        "trec": "run trec-run treceval trec-eval",
        "jsonl": "json ndjson json-lines",
    },
    "empty": {"zero": "0 0.0 false", "one": "1 1.0 true perfect", "skip": "drop ignore exclude omit nan none remove"},
    "ties": {"input": "first order stable file data", "average": "mean avg expected"},
    "absent": {"zero": "0 0.0 zeros", "missing": "nan na none null missing-value"},
    "duplicates": {"error": "refuse raise fail", "last": "keep-last overwrite"},
    "kind": {"gain": "total-gain", "splits": "split weight frequency count", "contributions": "shap shap-values"},
    "measure": {
        "ndcg": "ndcg-cut normalized-discounted-cumulative-gain ndcg-score lambdarank",
        "dcg": "dcg-score cg",
        "map": "ap map-cut mean-average-precision average-precision meanaverageprecision",
        "mrr": "rr recip-rank reciprocal-rank mean-reciprocal-rank meanreciprocalrank",
        "p": "pre prec precision precisionat p-at precision-at",
        "recall": "r recallat recall-at",
        "err": "expected-reciprocal-rank",
        "rbp": "rank-biased-precision",
        "bpref": "binary-preference",
        "kendall": "tau kendall-tau kendalltau kendall-tau-b",
        "judged": "judged-at",
        "success": "s hit-rate hit-ratio success-at hit-rate-at",
        "rprec": "r-prec r-precision",
        "f1": "f-score f-measure set-f f1-score",
        "gmap": "gm-map geometric-map",
        "iprec": "iprec-at-recall interpolated-precision",
        "recall_cap": "r-cap capped-recall recall-capped",
        "auc": "roc-auc auroc area-under-curve roc-auc-score",
    },
}
"""By kind and our name, the names of others, in small letters and without dashes before them.

A name in several rows means the first of them that is known where it was written. The kinds of values are named as
the parameters that take them.
"""

# From which likeness on a name may be a misspelled one, as difflib has it.
_LIKENESS = {"option": 0.84, "argument": 0.7, "command": 0.65}
_OF_OTHERS = 0.75
_MEASURE = re.compile(r"([a-z_]+?)(?:[@_:.](?:top=)?([0-9]+))?-?(?:;.*)?")
_PERSISTENCE = re.compile(r"rbp\((?:p=)?([0-9.]+)\)(?:@([0-9]+))?")
_RECALL = re.compile(r"iprec_at_recall[@_:.]([01](?:\.[0-9]+)?)")
_BRACES = re.compile(r"\{([a-z0-9-]+)(?: (\w+))?\}")


def _folded(name: str) -> str:
    return name.strip().lower().lstrip("-").replace("_", "-")


def rows_of(kind: str, word: str) -> list[str]:
    """Return our names that a name of another tool stands for, whether they are known where it was written or not."""
    name = _folded(word)
    return [ours for ours, names in NAMES.get(kind, {}).items() if name == _folded(ours) or name in names.split()]


def meant(kind: str, word: str, names: Collection[str], by_spelling: bool = True) -> list[str]:
    """Return what an unknown name may stand for: at most two of the known ones, best first.

    by_spelling : names that are spelled much like it count, unless another tool has it
    """
    by_name = {_folded(name): name for name in names}
    rows = [ours.partition(" ") for ours in rows_of(kind, word)]
    if rows:
        found = [by_name[_folded(first)] + space + rest for first, space, rest in rows if _folded(first) in by_name]
        return list(dict.fromkeys(found))[: 2 if kind == "argument" else 1]
    return _close(word, names, _LIKENESS.get(kind, _OF_OTHERS)) if by_spelling else []


def perhaps(kind: str, word: str, names: Collection[str], by_spelling: bool = True) -> str:
    """Return "; perhaps 'x'" or another hint for a name that nobody knows; empty when there is nothing to say."""
    found = meant(kind, word, names, by_spelling=False)
    if not found and kind in ("option", "argument") and (hint := _without(kind, word, names)):
        return hint
    found = found or meant(kind, word, names, by_spelling)
    return f"; perhaps {' or '.join(map(quote, found))}" if found else ""


def _without(kind: str, word: str, names: Collection[str]) -> str:
    """Return what to say of an option that has no counterpart; empty where the sentence names unknown ones."""
    sentence = next((text for text, words in WITHOUT.items() if _folded(word) in words.split()), "")
    by_name = {_folded(name): name for name in names}
    if not sentence or not {found[1] for found in _BRACES.finditer(sentence)} <= by_name.keys():
        return ""
    value = "={!r}" if kind == "argument" else " {}"
    return "; " + _BRACES.sub(lambda found: by_name[found[1]] + (value.format(found[2]) if found[2] else ""), sentence)


def _close(word: str, names: Collection[str], likeness: float) -> list[str]:
    """Return the known names that are spelled most like a word; letters that changed places are like nothing else."""
    low = word.strip().lower().replace("_", "-")
    by_name = {name.lower().replace("_", "-"): name for name in names}
    # scikit-learn's ColumnTransformer puts the step and two underscores before names of columns.
    likely = (low, low.rpartition("--")[2])
    found = [name for name in by_name if name.rpartition("--")[2] in likely or _are_swapped(name, low)]
    found = found or get_close_matches(low, by_name, 2, likeness)
    return [by_name[name] for name in found[:2]]


def _are_swapped(word: str, other: str) -> bool:
    """Return whether two words differ by two neighbouring letters that changed places."""
    places = [place for place, letters in enumerate(zip(word, other, strict=False)) if letters[0] != letters[1]]
    if len(word) != len(other) or len(places) != 2 or places[1] != places[0] + 1:
        return False
    first, second = places
    return word[first] == other[second] and word[second] == other[first]


def measure_for(foreign: str, previous: str | None = None) -> str | None:
    """Return the measure that other tools write as NDCG@10, ndcg_cut.10 or PrecisionAt:top=5; None for others.

    foreign  : a measure as the user wrote it, or a further cutoff alone
    previous : the measure before it in a list, whose further cutoffs may follow, as in ndcg_cut.5,10
    """
    text = foreign.strip().lower()
    if text.isdecimal() and previous is not None and "@" in previous:
        text = f"{previous.partition('@')[0]}@{text}"
    if found := _PERSISTENCE.fullmatch(text):
        return f"rbp({found[1]})" + (f"@{found[2]}" if found[2] else "")
    if found := _RECALL.fullmatch(text):
        return f"iprec@{float(found[1]):g}"
    if (found := _MEASURE.fullmatch(text)) is None:
        return None
    ours = rows_of("measure", found[1].rstrip("_"))
    return ours[0] + (f"@{int(found[2])}" if found[2] else "") if ours else None


def with_hints(kind: T) -> T:
    """Let the public methods of a class refuse unknown keywords with a hint; for use as a decorator."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _with_hints(kind, member))
    return kind


def _with_hints(kind: type, function: FunctionType) -> object:
    code = function.__code__
    accepted = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        """Refuse unknown keywords, then call the method."""
        if unknown := next((name for name in named if name not in accepted and name != "self"), None):
            of_class = function.__name__ == "__init__"
            called = kind.__name__ if of_class else function.__name__
            hint = perhaps("argument", unknown, accepted)
            if not hint and not of_class and (found := meant("argument", unknown, signature(kind).parameters)):
                hint = f"; perhaps {kind.__name__}({found[0]}=...)"
            raise TypeError(f"{called}() has no argument {quote(unknown)}{hint}")
        return function(*args, **named)

    return checked
