"""What every key of --report means: the manual page lmart-report(5) is made from this, and a test compares both ways.

A path is written as the keys from the top, with [] for the entries of a list and NAME for keys that the data or the
command line gives. Light: the manual pages need no numpy.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """One key of the report.

    path    : of the key
    holds   : what kind of value it has
    meaning : one sentence or more
    when    : in which reports it is; '' in all
    """

    path: str
    holds: str
    meaning: str
    when: str = ""


_VALIDATION = "list of numbers or nulls"
_FOLDS = "with --folds"
_TUNE = "with --tune or --tune-trials"
_TRUTH = "null when no query counts"

KEYS = (
    Key("settings", "object", "The settings that the model was trained with, as in the model file."),
    Key(
        "settings.NAME",
        "number, text, true or false",
        "The value of an option of lmart-train(1), called without the dashes before it and with underscores inside, "
        "such as learning_rate; 'auto' where each ranker has its own or where the data decides. What was chosen for "
        "all rankers is filled in. The whole object can be given back with --settings.",
    ),
    Key(
        "settings.largest_label",
        "whole number",
        "The largest label of the measure and the objective err, in all data of the run.",
        "when err is used and the data has labels above 4, or a larger one was given",
    ),
    Key("data", "object", "The size of the training set."),
    Key("data.documents", "whole number", "Its documents, which are rows."),
    Key("data.queries", "whole number", "Its queries."),
    Key("data.features", "whole number", "Its features."),
    Key(
        "data.idle_queries",
        "whole number",
        "Queries from which nothing can be learned, as no two of their documents differ in relevance.",
    ),
    Key(
        "data.split_features",
        "whole number",
        "Features that trees can split on: those with more than one value, or bin.",
    ),
    Key("metric", "text", "The measure that is meant wherever a measure is given, such as ndcg@10."),
    Key("sample", "number", "Share of the documents that each tree is grown from."),
    Key(
        "rounds", "list of objects", "Every round of boosting, in order; those of several rankers one after the other."
    ),
    Key("rounds[].ranker", "whole number", "Number of the ranker, from 1."),
    Key("rounds[].round", "whole number", "Number of the round in its ranker, from 1."),
    Key("rounds[].training", "number", f"The measure on the training set after it, by the ranker alone; {_TRUTH}."),
    Key(
        "rounds[].validation",
        _VALIDATION,
        "The same on each --valid file, in their order; empty without any.",
    ),
    Key(
        "stopped",
        "text",
        "Why the run ended: 'trees' (a ranker grew all of its trees), else 'early' (--early-stop ended one), else "
        "'split' (no split was left that gains).",
    ),
    Key("best_round", "whole number", "Trees of the model that this run grew, those of all rankers together."),
    Key("rankers", "list of objects", "Each ranker, in the order of training; the model is their mean."),
    Key("rankers[].objective", "text", "Its objective."),
    Key("rankers[].tree", "text", "The form of its trees: leafwise, depthwise or oblivious."),
    Key("rankers[].leaves", "whole number", "Most leaves of a tree."),
    Key("rankers[].features", "number", "Share of the features that each of its trees could split on."),
    Key("rankers[].seed", "whole number", "Seed of what is drawn by chance in it."),
    Key(
        "rankers[].first_tree", "whole number", "Number of its first tree in the model, from 1; null when it has none."
    ),
    Key("rankers[].trees", "whole number", "How many trees of it the model has, from its first one on."),
    Key("rankers[].rounds", "whole number", "How many trees were grown."),
    Key("rankers[].stopped", "text", "Why it ended, as in stopped."),
    Key("rankers[].validation", _VALIDATION, "The measure on each --valid file by the trees that it has in the model."),
    Key("importance", "object", "How much each feature matters that is split on, the most important first."),
    Key("importance.NAME", "object", "That of the feature of this name, or index."),
    Key(
        "importance.NAME.gain_share",
        "number",
        "Its share of the split gain, as a mean over the rankers; all shares together are 1.",
    ),
    Key("importance.NAME.splits", "whole number", "How many nodes split on it."),
    Key(
        "training", "number", f"The measure of the whole model on the training set, initial scores included; {_TRUTH}."
    ),
    Key("validation", _VALIDATION, "The same on each --valid file, in their order."),
    Key("files", "object", "The files that were read, as they were given."),
    Key("files.data", "list of texts", "Those of --data."),
    Key("files.validation", "list of texts", "Those of --valid."),
    Key("files.weights", "text", "That of --weights.", "with --weights"),
    Key("files.validation_weights", "list of texts", "Those of --valid-weights.", "with --valid-weights"),
    Key("files.validation_query_sizes", "list of texts", "Those of --valid-query-sizes.", "with --valid-query-sizes"),
    Key("files.init_scores", "text", "That of --init-scores.", "with --init-scores"),
    Key("files.validation_init_scores", "list of texts", "Those of --valid-init-scores.", "with --valid-init-scores"),
    Key("files.positions", "text", "That of --positions.", "with --positions"),
    Key("continued_from", "object", "The model that the run went on from.", "with --continue-from"),
    Key("continued_from.model", "text", "Its file.", "with --continue-from"),
    Key(
        "continued_from.trees",
        "whole number",
        "Its trees, which are the first ones of the new model.",
        "with --continue-from",
    ),
    Key(
        "continued_from.differences",
        "list of texts",
        "Why one run of all rounds would not have given the same model; empty when it would.",
        "with --continue-from",
    ),
    Key("seconds", "object", "Wall time by stage; nothing else in the report depends on the machine."),
    Key("seconds.reading", "number", "Reading all files."),
    Key(
        "seconds.choosing",
        "number",
        "Cross-validation and the search for settings.",
        "with --folds, --tune or --tune-trials",
    ),
    Key(
        "seconds.binning",
        "number",
        "What is prepared before the first round; the values are in bins by then but with --folds or --tune.",
    ),
    Key("seconds.growing", "number", "All rounds, with the measures after each."),
    Key("start", "object", "The measures of what boosting starts from alone.", "with --init-scores or --continue-from"),
    Key("start.training", "number", "On the training set.", "with --init-scores or --continue-from"),
    Key("start.validation", _VALIDATION, "On each --valid file.", "with --init-scores or --continue-from"),
    Key(
        "err",
        "text",
        "The probability with which a reader stops at a document, as an equation.",
        "when err is the measure or an objective",
    ),
    Key("warnings", "list of texts", "The warnings of the run, those that -qq silenced too."),
    Key("position_bias", "object", "What the place alone earns, learned by the first ranker.", "with --positions"),
    Key("position_bias.NAME", "number", "The bias of one position, in units of scores.", "with --positions"),
    Key("tuning", "object", "The search for settings.", _TUNE),
    Key("tuning.searched", "list of texts", "The settings that were searched.", _TUNE),
    Key("tuning.trials", "list of objects", "Every trial, in order.", _TUNE),
    Key("tuning.trials[].values", "object", "Its values of the searched settings.", _TUNE),
    Key("tuning.trials[].values.NAME", "number, text, true or false", "One of them; null: automatic.", _TUNE),
    Key("tuning.trials[].measure", "number", "Its measure, on queries not trained on; null when it failed.", _TUNE),
    Key("tuning.trials[].trees", "whole number", "The number of trees that has it.", _TUNE),
    Key("tuning.trials[].seconds", "number", "Wall time of the trial.", _TUNE),
    Key("tuning.best", "whole number", "Number of the best trial, from 1.", _TUNE),
    Key("cross_validation", "object", "The folds, for the settings of the model.", _FOLDS),
    Key(
        "cross_validation.trees",
        "whole number",
        "Number of trees with the best mean, those of all rankers together.",
        _FOLDS,
    ),
    Key("cross_validation.rankers", "whole number", "Rankers of each model.", _FOLDS),
    Key("cross_validation.mean", "number", "Mean of the measures of the folds with so many trees.", _FOLDS),
    Key("cross_validation.start", "number", "The same of the initial scores alone.", f"{_FOLDS} and --init-scores"),
    Key(
        "cross_validation.interval",
        "list of two numbers",
        "Confidence interval of the mean; null when fewer than two folds have a measure.",
        _FOLDS,
    ),
    Key("cross_validation.interval_is", "text", "How the interval is worked out.", _FOLDS),
    Key(
        "cross_validation.standard_error_over_queries",
        "number",
        "Standard error of the mean over queries, all folds together.",
        _FOLDS,
    ),
    Key("cross_validation.folds", "list of objects", "Each fold.", _FOLDS),
    Key("cross_validation.folds[].fold", "whole number", "Its number, from 1.", _FOLDS),
    Key("cross_validation.folds[].queries", "whole number", "Its queries, which its model did not see.", _FOLDS),
    Key("cross_validation.folds[].documents", "whole number", "Their documents.", _FOLDS),
    Key(
        "cross_validation.folds[].measure",
        "number",
        f"Their measure with the common number of trees; {_TRUTH}.",
        _FOLDS,
    ),
    Key(
        "cross_validation.folds[].best_round",
        "whole number",
        "Trees of each ranker that were best for this fold alone.",
        _FOLDS,
    ),
    Key("cross_validation.folds[].best", "number", f"The measure with them; {_TRUTH}.", _FOLDS),
    Key("cross_validation.folds[].rounds", "whole number", "Trees that each ranker grew.", _FOLDS),
    Key("cross_validation.curve", "list of numbers", "Mean over the folds after each round of every ranker.", _FOLDS),
    Key("cross_validation.fold_of_query", "list of whole numbers", "The fold of each query of --data, from 1.", _FOLDS),
    Key("cross_validation.warnings", "list of texts", "Warnings about the data of folds.", _FOLDS),
)
