"""A last tree of one leaf that raises all scores: search engines on Lucene 8 or later refuse negative ones."""

from __future__ import annotations

from dataclasses import replace

from lmart.formats.models.model_files import content_of, parse_model
from lmart.formats.models.plain_sum import as_plain_sum, least_score, one_leaf
from lmart.formats.registry import MODEL_FORMATS
from lmart.scoring.ensemble import Ensemble


def raise_scores(ensemble: Ensemble, path: str, format: str) -> tuple[Ensemble, float]:
    """Return the model with a last tree that makes its least possible score 0 in a format, and what that tree adds.

    ensemble : the model
    path     : the file to write, for messages
    format   : name of its format, of a tool that adds trees in their order

    As a rounded sum never falls when a term rises, the least score is the tool's own sum of the smallest leaf of each
    tree, and the sum of that and its opposite is 0 exactly. For the same reason no two documents change order, but
    scores that round to the same sum tie. A model without a score below 0 is returned as it is, with 0.
    """
    whole = as_plain_sum(ensemble) if ensemble.average else ensemble
    as_read = whole
    if MODEL_FORMATS[format].reader is not None:
        as_read = parse_model(content_of(whole, path, format).content, path, format)
    least = least_score(as_read)
    if least >= 0:
        return ensemble, 0.0
    return replace(whole, trees=(*whole.trees, one_leaf(-least)), rankers=()), -least
