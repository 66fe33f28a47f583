"""Which options the one screen of -h shows, and under which headings all of them stand in --help.

An option of no heading stands under "More". A name that no command has is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

# Groups at the end of the help of every command, each with those of its options that the command has.
SHARED = {
    "Reading the data": "absent group_by_qid duplicates max_errors allow_inf query_sizes valid_query_sizes "
    "label_column query_column document_column ignore_columns",
    "Running": "seed threads quiet h help",
}


class HelpLayout(NamedTuple):
    """The layout of the help of a command; options are named as its parameters, with blanks between.

    usual  : options of the one screen, in their order, as far as it holds them; none: all
    groups : options by heading, in their order
    """

    usual: str = ""
    groups: Mapping[str, str] = MappingProxyType({})


LAYOUTS = {
    "train": HelpLayout(
        "data valid out trees leaves learning_rate min_docs objective metric early_stop folds tune",
        {
            "Files": "data valid out report continue_from strict",
            "Trees": "trees rankers tree leaves learning_rate max_depth min_docs min_hessian l2 max_bins sample "
            "features monotone",
            "Objective": "objective truncation sigma normalize gain weights",
            "Validation and stopping": "metric early_stop valid_weights",
            "Choosing settings": "folds oof tune tune_trials tune_file settings_file",
            "Starting scores and clicks": "init_scores valid_init_scores positions position_bias_reg",
            "On a cluster": "dask dask_security",
        },
    ),
    "predict": HelpLayout(
        "model data out form top explain why strict group_by_qid query_sizes threads quiet",
        {
            "Files": "model data out",
            "Result": "form top tag strict",
            "Explaining": "explain why",
            "On a cluster": "dask dask_security",
        },
    ),
    "eval": HelpLayout(
        "data model scores qrels run metric like gain empty ties per_query as_json html threads",
        {
            "Files": "data model scores qrels run weights strict",
            "Measures": "metric like gain discount relevant empty ties missing short p_divisor map_divisor precision",
            "Comparing": "compare all_pairs level resamples flips seed",
            "Result": "groups per_query as_json html train_report",
            "On a cluster": "dask dask_security",
        },
    ),
    "convert": HelpLayout(
        "source_format target_format absent verify strict feature_map group_by_qid threads quiet",
        {
            "Formats": "source_format target_format",
            "Models": "verify strict feature_map nonnegative name store",
        },
    ),
    "show": HelpLayout(
        "top tree data as_tsv as_json strict threads quiet",
        {"Result": "top tree as_tsv as_json", "Contributions": "data strict"},
    ),
    "compile": HelpLayout("", {"Compiling": "generic"}),
}
"""By the name of the command; others show what they have."""
