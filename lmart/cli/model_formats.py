"""What each format of models holds: the table of lmart-convert(1)."""

from __future__ import annotations

from typing import NamedTuple

from lmart.formats.registry import MODEL_FORMATS

INTRODUCTION = """What cannot be held exactly is told as a warning, with a count, while a model is converted, and
refused with --strict. Formats that compare in float32 get each threshold rounded so that no row of float32 numbers
comes to another leaf; rows of finer numbers may. A base score becomes a first tree of one leaf, and a mean is divided
in the leaf values, where a format has no place for them; splits on categories and other ranges become chains of plain
splits where it knows no others. The settings of the training are kept by lmart only. What is no sum or mean of trees
with numbers in their leaves (several outputs, linear models, links of an objective) is refused by name."""


class ModelFormat(NamedTuple):
    """What a format of models holds, in words for the manual.

    title    : the tool and its file
    features : how it calls the features of lmart, which are known by the index in LETOR text or by name
    read     : what reading changes; '': it is not read
    written  : what writing changes; '': it is not written
    """

    title: str
    features: str
    read: str
    written: str


NOTES = {
    "lmart": ModelFormat(
        "lmart's own JSON, see lmart-model(5)",
        "by the same indices and names.",
        "exact, back to the same bytes.",
        "exact.",
    ),
    "lightgbm": ModelFormat(
        "LightGBM's text, save_model, versions 2.1 to 4",
        "column j, counted from 0, is feature j; names are kept, but names that are all Column_j count as none. A "
        "model with names is written with its features as columns, in order; one without has column j for feature j.",
        "exact, with categorical splits, the three kinds of missing values, and random forests.",
        "exact. An index that a row does not name is 0 there: splits of a model to which it is missing are counted in "
        "a warning. Float32 sums become float64. Names get '_' in place of blanks and of the marks of JSON; those that "
        "need no change stay. The gain is kept; linear is a table of 32 labels.",
    ),
    "lightgbm-json": ModelFormat(
        "LightGBM's dump_model, as Vespa takes it",
        "as lightgbm.",
        "exact; the file does not say the gain.",
        "as lightgbm, with tests x < T and T the next number, as Vespa compares. Vespa has no categorical splits of "
        "numbers that are not whole, and gives a sum where the model is a mean.",
    ),
    "xgboost": ModelFormat(
        "XGBoost's JSON, gbtree and dart, read from versions 1.0 to 3 and written for 1.6 to 3; older binary files are "
        "refused",
        "as lightgbm, but the name that counts as none is fj, in files of versions before 2.",
        "leaves exact for rows of float32 numbers, as XGBoost has no others; scores are the same float32 sums. An "
        "index that a row does not name is missing. --explain weighs leaves by their hessian sums, as XGBoost does. "
        "When training stopped early, all rounds count, with a notice.",
        "thresholds rounded up to float32 for x < T; sides of missing values kept; leaf values and sums float32. "
        "Splits of a model to which an absent index is 0 are counted in a warning where missing goes elsewhere. Names "
        "get '_' in place of '[', ']', '<' and control characters. The gains exp2 and linear are kept, a table is not.",
    ),
    "xgboost-ubj": ModelFormat(
        "XGBoost's binary file in UBJSON, versions 1.6 to 3",
        "as xgboost.",
        "as xgboost.",
        "as xgboost.",
    ),
    "xgboost-dump": ModelFormat(
        "XGBoost's dump_model in JSON, which Elasticsearch and OpenSearch take",
        "fj or j is feature j; other names are numbered from 1 as they come.",
        "as xgboost, but a dump does not say the base score, which is lost: scores start at 0. Trees may be texts, as "
        "get_dump returns them; in an object with 'splits', missing_as_zero is obeyed; or the definition in a request "
        "that creates a model. Other keys of trees and objects are refused.",
        "as xgboost, but the base score is a first tree of one leaf. Names are written as they are.",
    ),
    "ranklib": ModelFormat(
        "RankLib's XML: LambdaMART, MART, Random Forests",
        "feature k is feature k, from 1; names are lost.",
        "exact for rows of float32 numbers; missing and absent values are 0. RankLib 2.1 also rounds the product of "
        "leaf value and weight, so that its scores differ in the last digit of a float32. More trees, or other bags, "
        "than the head says are refused.",
        "thresholds rounded down to float32; missing and absent values are 0; leaf values and sums float32. Models "
        "that came from RankLib, whose trees have one weight, are exact. A mean is written as Random Forests.",
    ),
    "quickrank": ModelFormat(
        "QuickRank's XML",
        "feature k is feature k, from 1; names are lost.",
        "exact for rows of float32 numbers; missing values go right, absent ones are 0.",
        "thresholds rounded down to float32; missing values go right, absent ones are 0; leaf values and sums exact.",
    ),
    "solr": ModelFormat(
        "Solr's MultipleAdditiveTreesModel in JSON",
        "by name; features without names are called fk.",
        "exact for rows of float32 numbers, with the 1e-6 that Solr adds to each threshold. Missing and absent values "
        "are 0, or with isNullSameAsZero false go to the side that 'missing' of a node names. Features with a "
        "normalizer, and keys that Solr does not know, are refused. When all names are fk, k is the index; else they "
        "are numbered from 1.",
        "thresholds in float32, less the 1e-6 that Solr adds; where no number plus 1e-6 is the threshold, the largest "
        "number below it, counted in a warning. Sides of missing values are written, for Solr 9.2 or later, unless all "
        "are those of 0. Leaf values and sums are float32.",
    ),
    "onnx": ModelFormat(
        "ONNX, a TreeEnsembleRegressor",
        "column k of the input is the k-th of feature_ids in the metadata, where names are too.",
        "",
        "thresholds rounded down to float32; sides of missing values kept; leaf values and sums float32, in an order "
        "that the runtime chooses.",
    ),
    "c": ModelFormat(
        "C source, one file without dependencies",
        "features[k] is the k-th of lmart_feature_ids; names are in a table.",
        "",
        "exact, sums too.",
    ),
}


def supported() -> dict[str, ModelFormat]:
    """Return the formats of models that are read or written, by name, with empty words for what is not done."""
    return {
        name: NOTES[name]._replace(
            read=NOTES[name].read if one.reader is not None else "",
            written=NOTES[name].written if one.writer is not None else "",
        )
        for name, one in MODEL_FORMATS.items()
    }
