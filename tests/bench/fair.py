"""The settings that lmart's defaults mean in the other tools, and whole runs of LightGBM as programs."""

from __future__ import annotations

from typing import Any

LIGHTGBM: dict[str, Any] = {
    "objective": "lambdarank",
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 1e-3,
    "lambda_l2": 0.0,
    "max_bin": 255,
    "lambdarank_truncation_level": 30,
    "feature_pre_filter": False,  # so that settings with fewer documents a leaf may use the same bins
    "verbose": -1,
}
QUANTIZED = {"use_quantized_grad": True, "num_grad_quant_bins": 4, "quant_train_renew_leaf": True}
# A sampled leaf stands for more documents than it holds.
GOSS: dict[str, dict[str, Any]] = {
    f"lightgbm goss {top}+{other}": {
        "data_sample_strategy": "goss",
        "top_rate": top,
        "other_rate": other,
        "min_data_in_leaf": round(20 * (top + other)),
    }
    for top, other in ((0.1, 0.1), (0.2, 0.1))
}
XGBOOST: dict[str, Any] = {
    "objective": "rank:ndcg",
    "lambdarank_pair_method": "topk",
    "lambdarank_num_pair_per_sample": 30,
    "grow_policy": "lossguide",
    "tree_method": "hist",
    "max_depth": 0,
    "eta": 0.1,
    "reg_lambda": 0.0,
    "min_child_weight": 1e-3,
    "max_bin": 256,
}

# LightGBM's whole runs, text to model and text to scores; written here so that their processes import nothing else.
LIGHTGBM_RUN = """
import json, sys
import lightgbm
text, model, trees, params = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
lightgbm.train(params, lightgbm.Dataset(text, params=params), trees).save_model(model)
"""
LIGHTGBM_SCORES = """
import sys
import lightgbm
model, text, scores, threads = sys.argv[1:]
found = lightgbm.Booster(model_file=model).predict(text, num_threads=int(threads)).tolist()
with open(scores, "w") as out:
    out.write("".join([f"{score!r}\\n" for score in found]))
"""
