"""Commands as other programs call them, and as they are misspelled."""

from __future__ import annotations

from collections.abc import Collection

from lmart.cli.options.foreign_values import close_words

OURS = {
    "train": "fit learn boost refit training",
    "predict": "score rank infer inference apply rerank pred",
    "predict --explain": "explain shap contrib why",
    "eval": "evaluate test measure metrics ndcg evaluation treceval trec_eval analyze analyse compare significance",
    "convert": "export import dump save transform save-model dump-model",
    "show": "info describe inspect importance plot print summary trees model",
    "compile": "warmup warm-up precompile jit",
    "train --folds K": "cv cross-validate crossvalidate cross-validation xval",
    "train --tune MINUTES": "tune optimize search select hyperopt",
    "train --continue-from MODEL": "continue resume",
    "--completion SHELL": "completion completions complete",
    "--version": "ver",
}
"""By what to type after `lmart`, what others call it."""


def commands_for(word: str, known: Collection[str]) -> list[str]:
    """Return what a word that is no command may stand for: at most two of ours, without `lmart`, best first.

    word  : as it was written
    known : the commands there are
    """
    name = word.lower().lstrip("-")
    for ours, names in OURS.items():
        if name in names.replace("_", "-").split() or name in names.split():
            command = ours.split()[0]
            return [ours] if command in known or command.startswith("--") else []
    return close_words(name, [*known, "help", "version"], cutoff=0.65)
