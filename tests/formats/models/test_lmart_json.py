"""The model file: exact there and back, strict JSON, and every damage refused in one line that says where."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import training_runs
from helpers.commands import run
from helpers.paths import ROOT
from helpers.trees import ensembles, grow, plain_scores
from hypothesis import example, given
from hypothesis import strategies as st

from lmart.data.categories import Categories
from lmart.errors import ModelError, OutputError
from lmart.formats.models import lmart_json, model_files
from lmart.formats.models.lmart_json import HEAD_KEYS, TREE_KEYS, model_to_json
from lmart.formats.models.model_files import read_model, write_model
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.settings import TrainSettings

STUMP = Tree(
    np.array([1], np.int32),
    np.array([0.123456785]),
    np.array([True]),
    np.array([-1], np.int32),
    np.array([-2], np.int32),
    np.array([-0.2, 0.1 + 0.2]),
    np.array([3.0]),
    np.array([12, 30]),
)
SMALL = Ensemble((STUMP,), np.array([1, 3, 7]), None, 0.0, "zero", "exp2", {"trees": 1, "sample": "auto", "l2": 0.0})

TEXT = """\
{
"format": "lmart",
"version": 1,
"settings": {"trees": 1, "sample": "auto", "l2": 0.0},
"gain": "exp2",
"absent": "zero",
"base_score": 0.0,
"feature_ids": [1, 3, 7],
"trees": [
{"split_features": [3], "thresholds": [0.123456785], "missing_left": [true], "left": [-1], "right": [-2], \
"leaf_values": [-0.2, 0.30000000000000004], "split_gains": [3.0], "leaf_documents": [12, 30]}
]
}
"""


def test_the_file_as_it_is_written() -> None:
    assert model_to_json(SMALL) == TEXT
    assert model_to_json(replace(SMALL, trees=(STUMP, STUMP))).count("\n") == TEXT.count("\n") + 1  # a tree a line


def assert_same(a: Ensemble, b: Ensemble) -> None:
    assert len(a.trees) == len(b.trees)
    assert a.feature_ids.tolist() == b.feature_ids.tolist()
    for name in ("feature_names", "absent", "gain", "settings"):
        assert getattr(a, name) == getattr(b, name)
    assert a.base_score.hex() == b.base_score.hex()
    for one, other in zip(a.trees, b.trees, strict=True):
        for name in one.__dataclass_fields__:
            left, right = getattr(one, name), getattr(other, name)
            assert (left is None) == (right is None)
            if left is not None:
                assert left.dtype == right.dtype
                assert left.tobytes() == right.tobytes()


@given(st.lists(st.text(min_size=1, max_size=4), min_size=3, max_size=3, unique=True))
@example(["1", "01", "1.0"])
@example([" ", "\u2028", '","'])
@example(["\x00", "\ufeff", "label"])
def test_names_of_any_characters_are_read_back_equal(names: list[str]) -> None:
    ensemble = Ensemble((), np.array([2, 5, 9]), tuple(names))
    assert lmart_json.read(model_to_json(ensemble).encode(), "m").feature_names == tuple(names)


@given(
    ensembles(),
    st.sampled_from([None, "a", 'b"\\\n', "\ud800é\x00"]),
    st.sampled_from(["exp2", "linear", "0,1,3.5", None]),
    st.booleans(),
)
def test_there_and_back_is_exact(ensemble: Ensemble, name: str | None, gain: str | None, counted: bool) -> None:
    if name is not None:
        names = tuple(f"{name}{i}" for i in range(ensemble.n_features))
        ensemble = replace(ensemble, feature_names=names)
    if counted:
        trees = tuple(
            replace(
                tree,
                split_gains=tree.thresholds / 3,
                leaf_documents=np.arange(tree.n_leaves, dtype=np.int64),
                leaf_weights=np.arange(1, tree.n_leaves + 1) / 3,
            )
            for tree in ensemble.trees
        )
        ensemble = replace(ensemble, trees=trees)
    ensemble = replace(ensemble, gain=gain, settings=TrainSettings().to_json())
    text = model_to_json(ensemble)
    back = lmart_json.read(text.encode(), "m")
    assert_same(back, ensemble)
    assert model_to_json(back) == text
    json.loads(text, parse_constant=pytest.fail)


def test_numbers_are_the_shortest_that_read_back_equal() -> None:
    values = np.array([0.1, 1e22, 5e-324, 1.7976931348623157e308, -0.0, 100.0, 1 / 3])
    none = np.zeros(0, np.int32)
    tree = Tree(none, np.zeros(0), np.zeros(0, np.bool_), none, none, values[:1])
    trees = tuple(replace(tree, leaf_values=values[i : i + 1]) for i in range(len(values)))
    text = model_to_json(replace(SMALL, trees=trees))
    for value in values.tolist():
        assert f'"leaf_values": [{value!r}]' in text


def test_a_number_that_json_cannot_hold_is_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        model_to_json(replace(SMALL, base_score=float("nan")))


def change(**keys: Any) -> bytes:
    return json.dumps({**json.loads(TEXT), **keys}).encode()


def without(key: str) -> bytes:
    return json.dumps({name: value for name, value in json.loads(TEXT).items() if name != key}).encode()


def tree(**keys: Any) -> bytes:
    """Two trees, the second one with changes; a key of None is left out."""
    good = json.loads(TEXT)["trees"][0]
    bad = {name: value for name, value in {**good, **keys}.items() if value is not None}
    return change(trees=[good, bad])


DAMAGED = {
    "empty": (b"", "the file is empty"),
    "blank": (b" \n\r\n", "the file is empty"),
    "data": (b"1 qid:1 1:0.5\n0 qid:1 1:0.1\n", "m: this is no lmart model: it starts with '1 qid:1 1:0.5'"),
    "CSV": (b"label,qid\n1,1\n", "this is no lmart model: it starts with 'label,qid'"),
    "LightGBM": (b"tree\nversion=v4\n", "this is no lmart model: it starts with 'tree'"),
    "binary": (b"\x00\xff\xfe\n", "m:1: this is no model: it is not UTF-8 text"),
    "not UTF-8": (TEXT.encode().replace(b"exp2", b"exp\xff"), "m:5: this is no model: it is not UTF-8"),
    "UTF-16": (TEXT.encode("utf-16"), "not UTF-8"),
    "list": (b"[]", "this is no lmart model: it starts with '[]'"),
    "other JSON": (b'{"learner": {}}', 'this is JSON but no lmart model: it does not say "format": "lmart"'),
    "cut in a number": (TEXT[:250].encode(), "m:10: the model ends in the middle; the file was cut"),
    "cut in a text": (TEXT[:6].encode(), "m:2: the model ends in the middle; the file was cut"),
    "cut before the end": (TEXT.rstrip()[:-1].encode(), "the model ends in the middle"),
    "twice": (TEXT.encode() * 2, "m:13: there is more after the end of the model, at column 1: '{'"),
    "rubbish after": (TEXT.encode() + b"x\n", "m:13: there is more after the end of the model, at column 1: 'x'"),
    "NUL": (
        TEXT.encode().replace(b"[1, 3", b"[1,\x00 3"),
        r"m:8: this is not valid JSON, at column 19: '\\x00 3, 7],'",
    ),
    "comma": (TEXT.encode().replace(b"[1, 3", b"[1,, 3"), "m:8: this is not valid JSON, at column 19: ', 3, 7],'"),
    "NaN": (TEXT.encode().replace(b"[-0.2", b"[NaN"), "'NaN' is no JSON number"),
    "Infinity": (TEXT.encode().replace(b"[-0.2", b"[-Infinity"), "'-Infinity' is no JSON number"),
    "1e999": (TEXT.encode().replace(b"[-0.2", b"[1e999"), "tree 1: a leaf value is not finite"),
    "1e999 threshold": (TEXT.encode().replace(b"[0.123456785", b"[1e999"), "tree 1: a threshold is not finite"),
    "1e999 gain": (TEXT.encode().replace(b"[3.0]", b"[1e999]"), "tree 1: a split gain is not finite"),
    "1e999 setting": (
        TEXT.encode().replace(b'"l2": 0.0', b'"l2": [{"x": 1e999}]'),
        "in 'settings' a number is too large",
    ),
    "key twice": (TEXT.encode().replace(b'"gain"', b'"version"'), "the key 'version' is given twice"),
    "tree key twice": (TEXT.encode().replace(b'"right"', b'"left"'), "the key 'left' is given twice"),
    "nested": (b'{"format": ' + b"[" * 200_000, "brackets are nested too deep"),
    "digits": (TEXT.encode().replace(b"[-1]", b"[" + b"1" * 5000 + b"]"), "a number is too long"),
    "format": (change(format="lightgbm"), 'does not say "format": "lmart"'),
    "version text": (change(version="1"), "the version of the format is '\"1\"'"),
    "version true": (change(version=True), "the version of the format is 'true'"),
    "version 0": (change(version=0), "the version of the format is '0'"),
    "version 4": (change(version=4), "format version '4', this lmart knows up to 3; install a newer lmart"),
    "no version": (without("version"), "the version of the format is 'null'"),
    "no trees": (without("trees"), "the model has no 'trees'"),
    "no settings": (without("settings"), "the model has no 'settings'"),
    "no absent": (without("absent"), "the model has no 'absent'"),
    "unknown key": (change(tress=[]), "the model has a key 'tress' that format version 3 does not know"),
    "settings": (change(settings=[]), "'settings' is not an object"),
    "gain": (change(gain="exp3"), "'gain' is '\"exp3\"'"),
    "gain number": (change(gain=2), "'gain' is '2'"),
    "absent": (change(absent="nan"), "'absent' is '\"nan\"'"),
    "absent list": (change(absent=[]), "'absent' is '[]'"),
    "base score": (change(base_score="0"), "'base_score' is '\"0\"'"),
    "base score true": (change(base_score=True), "'base_score' is 'true'"),
    "base score huge": (change(base_score=10**400), "'base_score' is '1000"),
    "ids object": (change(feature_ids={}), "'feature_ids' is not a list of whole numbers"),
    "ids texts": (change(feature_ids=["1"]), "'feature_ids' is not a list of whole numbers"),
    "ids true": (change(feature_ids=[True]), "'feature_ids' is not a list of whole numbers"),
    "ids fractions": (change(feature_ids=[1.0]), "'feature_ids' is not a list of whole numbers"),
    "ids negative": (change(feature_ids=[-1, 3]), "'feature_ids' holds '-1'"),
    "ids huge": (change(feature_ids=[3, 2**63]), "'feature_ids' holds '9223372036854775808'"),
    "ids order": (change(feature_ids=[7, 3]), "'feature_ids' is not ascending: 3 comes after 7"),
    "ids twice": (change(feature_ids=[3, 3]), "'feature_ids' is not ascending: 3 comes after 3"),
    "names number": (change(feature_names=[1, 2, 3]), "'feature_names' is not a list of texts"),
    "names text": (change(feature_names="abc"), "'feature_names' is not a list of texts"),
    "names short": (change(feature_names=["a"]), "there are 1 feature names for 3 feature ids"),
    "names twice": (change(feature_names=["a", "b", "a"]), "two features have the name 'a'"),
    "trees object": (change(trees={}), "'trees' is not a list"),
    "tree number": (change(trees=[3]), "tree 1: this is not an object"),
    "tree without left": (tree(left=None), "tree 2: there is no 'left'"),
    "tree without leaves": (tree(leaf_values=None), "tree 2: there is no 'leaf_values'"),
    "tree key": (tree(weight=1), "tree 2: there is a key 'weight' that format version 3 does not know"),
    "tree text": (tree(left="-"), "tree 2: 'left' is not a list"),
    "sizes": (tree(thresholds=[0.5, 0.5]), "tree 2: 'thresholds' has 2 entries, where 'left' has 1 and so 1 are due"),
    "leaf sizes": (tree(leaf_values=[0.5]), "tree 2: 'leaf_values' has 1 entries, where 'left' has 1 and so 2 are due"),
    "counts": (tree(leaf_documents=[3]), "tree 2: 'leaf_documents' has 1 entries"),
    "count fraction": (tree(leaf_documents=[3, 4.5]), "tree 2: 'leaf_documents' holds '4.5', which is not a whole"),
    "weight negative": (tree(leaf_weights=[3, -4.5]), "tree 2: 'leaf_weights' are not finite numbers from 0 up"),
    "weights 0": (tree(leaf_weights=[0, 0]), "tree 2: 'leaf_weights' are not finite numbers from 0 up, some above"),
    "weights": (tree(leaf_weights=[3]), "tree 2: 'leaf_weights' has 1 entries"),
    "count negative": (tree(leaf_documents=[3, -4]), "tree 2: 'leaf_documents' holds '-4'"),
    "threshold text": (tree(thresholds=["0.5"]), "tree 2: 'thresholds' holds '\"0.5\"', which is not a number"),
    "threshold null": (tree(thresholds=[None]), "tree 2: 'thresholds' holds 'null', which is not a number"),
    "threshold true": (tree(thresholds=[True]), "tree 2: 'thresholds' holds 'true', which is not a number"),
    "threshold huge": (tree(thresholds=[10**400]), "tree 2: 'thresholds' holds '1000"),
    "value list": (tree(leaf_values=[[], 1]), "tree 2: 'leaf_values' holds '[]'"),
    "child fraction": (tree(left=[-1.0]), "tree 2: 'left' holds '-1.0', which is not a whole number"),
    "child huge": (tree(left=[2**40]), "tree 2: 'left' holds '1099511627776'"),
    "side": (tree(missing_left=[1]), "tree 2: 'missing_left' holds '1', which is not true or false"),
    "unlisted feature": (
        tree(split_features=[2]),
        "tree 2: a split is on feature 2, which 'feature_ids' does not list",
    ),
    "feature beyond": (tree(split_features=[8]), "tree 2: a split is on feature 8, which 'feature_ids' does not list"),
    "feature negative": (tree(split_features=[-1]), "tree 2: 'split_features' holds '-1'"),
    "child out of range": (tree(left=[1]), "tree 2: a left child is neither a node nor a leaf"),
    "leaf out of range": (tree(right=[-3]), "tree 2: a right child is neither a node nor a leaf"),
    "root as child": (tree(right=[0]), "tree 2: a right child is node 0, which is the root"),
    "leaf twice": (tree(right=[-1]), "tree 2: a leaf is the child of two nodes"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_model_is_refused_in_one_line(name: str) -> None:
    content, words = DAMAGED[name]
    with pytest.raises(ModelError) as refusal:
        lmart_json.read(content, "m")
    line = str(refusal.value)
    assert words.replace(r"\\", "\\") in line
    assert line.startswith("m:")
    assert line.isprintable()
    assert len(line) < 300


def test_every_cut_is_refused() -> None:
    for end in range(len(TEXT) - 1):
        with pytest.raises(ModelError):
            lmart_json.read(TEXT[:end].encode(), "m")


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode().replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.replace("\n", "").encode(),
        b"\n " + TEXT.encode(),
    ],
    ids=["CRLF", "BOM", "one line", "blanks"],
)
def test_what_json_allows_is_taken(content: bytes) -> None:
    assert_same(lmart_json.read(content, "m"), SMALL)


def test_integers_may_stand_for_numbers_and_names_may_be_null() -> None:
    found = lmart_json.read(change(base_score=2, feature_names=None), "m")
    assert found.base_score == 2.0
    assert found.feature_names is None


# ---- the page that describes it -------------------------------------------------------------------------------------

PAGE = (ROOT / "man" / "lmart-model.5").read_text()


def test_the_page_names_every_key() -> None:
    for key in TREE_KEYS + HEAD_KEYS:
        assert re.search(rf"^\.(TP\n\.)?BR? .*\b{key}\b", PAGE, re.MULTILINE), key


def test_the_example_of_the_page_scores_as_it_says() -> None:
    example = PAGE.split(".nf\n")[1].split(".fi")[0].replace("\\(rs\n", "").replace("\\-", "-")
    ensemble = lmart_json.read(example.encode(), "page")
    rows = [{1: 0.5}, {1: 2.0, 2: 20.0}, {1: 2.0, 2: math.nan}]
    told = [float(number) for number in re.findall(r"= (-?[0-9.]+)[,.]", PAGE.replace("\\-", "-"))]
    assert plain_scores(ensemble, rows) == [*told, told[-1]] == [-0.1875, 0.5625, 0.5625]


# ---- files ----------------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    plain, packed = tmp_path / "m.json", tmp_path / "m.json.gz"
    for path in (plain, packed):
        write_model(SMALL, str(path))
        assert_same(read_model(str(path)), SMALL)
    assert plain.read_text() == TEXT
    assert gzip.decompress(packed.read_bytes()).decode() == TEXT
    assert sorted(tmp_path.iterdir()) == [plain, packed]


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such file"):
        read_model(str(tmp_path / "no.json"))
    with pytest.raises(ModelError, match="is a folder"):
        read_model(str(tmp_path))
    with pytest.raises(OutputError):
        write_model(SMALL, str(tmp_path / "no" / "m.json"))


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (bytes(1 << 20), r"it starts with '\\x00\\x00"),
        (b" " * (1 << 20), "the file is empty"),
        (b"1 qid:1 1:1\n" * 10, "it starts with '1 qid:1 1:1'"),
        (b"\xff" * 100, "it is not UTF-8 text"),
    ],
)
def test_what_does_not_begin_like_a_model_is_not_read_on(
    piece: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def endless(path: str, limit: int) -> Iterator[bytes]:
        for i in range(1000):
            taken.append(i)
            yield piece

    monkeypatch.setattr(model_files, "read_pieces", endless)
    with pytest.raises(ModelError, match=said):
        read_model("m")
    assert taken == [0]


def test_a_model_may_come_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\xef\xbb\xbf \n" + TEXT.encode()
    pieces = [content[i : i + 1] for i in range(len(content))]
    monkeypatch.setattr(model_files, "read_pieces", lambda path, limit: iter(pieces))
    assert model_to_json(read_model("m")) == TEXT


def test_many_names_are_compared_once_each() -> None:
    n = 200_000
    names = [*map(str, range(n - 1)), "7"]
    with pytest.raises(ModelError, match="two features have the name '7'"):
        lmart_json.read(change(feature_ids=list(range(n)), feature_names=names, trees=[]), "m")


def test_a_form_feed_after_the_model_is_no_cut() -> None:
    with pytest.raises(ModelError, match=r"there is more after the end of the model, at column 1: '\\x0c'"):
        lmart_json.read(TEXT.encode() + b"\x0c", "m")


@pytest.mark.slow
def test_deep_and_many_trees_need_no_recursion() -> None:
    rng = random.Random(1)
    deep = grow(rng, 4096, range(3), [0.5, 1.5], "chain")
    many = tuple(grow(rng, 4, range(3), [0.5]) for _ in range(50)) * 200
    limit = sys.getrecursionlimit()
    ensemble = replace(SMALL, trees=(deep, *many))
    assert_same(lmart_json.read(model_to_json(ensemble).encode(), "m"), ensemble)
    assert sys.getrecursionlimit() == limit


def test_what_version_1_does_not_know_makes_version_2() -> None:
    document = json.loads(TEXT)
    ranged = document["trees"][0]
    n = len(ranged["left"])
    further = [max(ranged["thresholds"]) + 1.0, max(ranged["thresholds"]) + 2.0]
    ranged["bound_offsets"], ranged["bounds"] = [0] + [2] * n, further
    rankers = [{"trees": 1, "objective": "lambdamart", "tree": "leafwise", "leaves": 8, "features": 1.0, "seed": 0}]
    document.update(version=2, sums="float32", average=True, rankers=rankers)
    ensemble = lmart_json.read(json.dumps(document).encode(), "m.json")
    assert (ensemble.sums, ensemble.average) == ("float32", True)
    assert [one._asdict() for one in ensemble.rankers] == rankers
    tree = ensemble.trees[0]
    assert tree.bounds is not None and tree.bounds.tolist() == further
    text = model_to_json(ensemble)
    assert json.loads(text)["version"] == 2
    assert model_to_json(lmart_json.read(text.encode(), "m.json")) == text


def test_categories_round_trip_in_version_3() -> None:
    given = replace(SMALL, categories=(Categories(0, (3, -1, 0), 2), Categories(1, ("b", "a"), 0)))
    text = model_to_json(given)
    assert json.loads(text)["version"] == 3
    again = lmart_json.read(text.encode(), "m")
    assert model_to_json(again) == text
    assert [(each.column, each.values, each.unseen) for each in again.categories] == [
        (0, (3, -1, 0), 2),
        (1, ("b", "a"), 0),
    ]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ([], "this is not an object with feature, values, unseen"),
        ({"feature": 99, "values": [], "unseen": 0}, "'feature' is '99', which 'feature_ids' lacks"),
        ({"values": [1, "a"]}, "'values' is not a list of whole numbers, or of texts"),
        ({"values": [1.5]}, "'values' is not a list of whole numbers, or of texts"),
        ({"values": [4, 4]}, "the value '4' stands twice"),
        ({"values": [2**60]}, "a value is beyond 2^53"),
        ({"unseen": 2}, "'unseen' is '2', no place among the values"),
        ({"unseen": True}, "'unseen' is 'true', no place among the values"),
    ],
)
def test_damaged_categories_are_refused(entry: object, what: str) -> None:
    document = json.loads(TEXT)
    sound = {"feature": document["feature_ids"][0], "values": [5], "unseen": 0}
    document["categories"] = [sound | entry if isinstance(entry, dict) else entry]
    with pytest.raises(ModelError, match=re.escape(f"m: category 1: {what}")):
        lmart_json.read(json.dumps(document).encode(), "m")


@pytest.mark.parametrize(
    ("change_of_tree", "what"),
    [
        ({"bounds": [9.0]}, "only one of 'bounds' and 'bound_offsets'"),
        ({"bounds": [9.0], "bound_offsets": [0]}, "'bound_offsets' has 1 entries"),
        ({"bounds": [9.0], "bound_offsets": None}, "'bound_offsets' is not a list"),
    ],
)
def test_damaged_bounds_are_refused(change_of_tree: dict[str, object], what: str) -> None:
    document = json.loads(TEXT)
    document["trees"][0].update(change_of_tree)
    with pytest.raises(ModelError, match=what):
        lmart_json.read(json.dumps(document).encode(), "m.json")


@pytest.mark.parametrize(
    ("rankers", "what"),
    [
        ({}, "'rankers' is not a list"),
        ([{"trees": 1}], "ranker 1: this is not an object with trees, objective"),
        ([1], "ranker 1: this is not an object"),
        ([{"trees": 2}], "the rankers have 2 trees, the model 1"),
        ([{"features": 10**400}], "ranker 1: 'features' is '1000"),
        ([{"trees": -1}], "ranker 1: 'trees' is '-1'"),
        ([{"seed": "x"}], "ranker 1: 'seed' is"),
    ],
)
def test_damaged_rankers_are_refused(rankers: Any, what: str) -> None:
    whole = {"trees": 1, "objective": "lambdamart", "tree": "leafwise", "leaves": 8, "features": 1.0, "seed": 0}
    document = json.loads(TEXT)
    if rankers and isinstance(rankers[0], dict) and what.startswith(("the", "ranker 1: '")):
        rankers = [whole | rankers[0]]
    document.update(version=2, rankers=rankers)
    with pytest.raises(ModelError, match=what):
        lmart_json.read(json.dumps(document).encode(), "m.json")


@pytest.mark.usefixtures("in_folder")
def test_a_damaged_file_is_one_line_and_windows_line_ends_are_none() -> None:
    text = training_runs.learnable()
    whole = training_runs.fit(text, *training_runs.SMALL).data
    good = training_runs.scores()
    for damaged in (whole[:500], b"", text.encode()):
        Path("m.json").write_bytes(damaged)
        result = run("predict", "-m", "m.json", "--data", "d.svm", status=1)
        assert (
            result.stdout == "" and result.stderr.startswith("lmart: error: m.json") and result.stderr.count("\n") == 1
        )
    Path("m.json").write_bytes(whole.replace(b"\n", b"\r\n"))
    assert training_runs.scores() == good


def test_a_share_of_features_beyond_all_numbers_is_refused() -> None:
    ranker = '{"trees": 1, "objective": "a", "tree": "b", "leaves": 8, "features": 1e999, "seed": 0}'
    text = TEXT.replace('"trees": [', f'"rankers": [{ranker}], "trees": [', 1).replace('"version": 1', '"version": 2')
    with pytest.raises(ModelError, match="ranker 1: 'features' is "):
        lmart_json.read(text.encode(), "m.json")
