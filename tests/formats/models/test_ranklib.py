"""RankLib's models: read as RankLib scores them, written so that rows of float32 numbers come to the same leaves."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.float32_rows import leaf_values, models, planted, scores
from helpers.trees import grow
from hypothesis import given

from lmart.errors import ModelError
from lmart.formats.models import ranklib
from lmart.scoring.ensemble import Ensemble

HEAD = "## LambdaMART\n## No. of trees = 2\n\n"
TREES = """\
<ensemble>
	<tree id="1" weight="0.1">
		<split>
			<feature>3 </feature>
			<threshold> 0.1 </threshold>
			<split pos="left">
				<output>-1.3620659112930298 </output>
			</split>
			<split pos="right">
				<feature>1 </feature>
				<threshold> -2.5E-3 </threshold>
				<split pos="left">
					<output>0.25 </output>
				</split>
				<split pos="right">
					<output>7 </output>
				</split>
			</split>
		</split>
	</tree>
	<tree id="2" weight="0.7">
		<split>
			<output>0.3 </output>
		</split>
	</tree>
</ensemble>
"""
TEXT = HEAD + TREES
ROWS = np.array([[0.0, 0.1], [-0.0025, 0.2], [-0.0026, 0.2], [math.nan, 0.2], [9.0, math.nan]])  # features 1 and 3


def float32(number: float) -> float:
    return float(np.float32(number))


def twin(text: str, rows: list[dict[int, float]]) -> list[float]:
    """The scores as RankLib makes them, by another XML reader."""
    found = []
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    trees = list(ElementTree.fromstring(body).iter("tree"))
    for row in rows:
        total = 0.0
        for tree in trees:
            split = tree[0]
            while split[0].tag == "feature":
                x = float32(row.get(int(split[0].text or ""), 0.0))
                left = (0.0 if math.isnan(x) else x) <= float32(float(split[1].text or ""))
                split = split[2 if left else 3]
            total = float32(total + float32(float(split[0].text or "")) * float32(float(tree.attrib["weight"])))
        found.append(total)
    return found


def read(text: str) -> Ensemble:
    return ranklib.read(text.encode(), "m")


def test_a_model_scores_as_in_ranklib() -> None:
    model = read(TEXT)
    assert model.feature_ids.tolist() == [1, 3]
    assert (model.sums, model.absent, model.average, model.feature_names) == ("float32", "zero", False, None)
    rows = [{1: a, 3: b} for a, b in ROWS.tolist()]
    assert scores(model, ROWS) == twin(TEXT, rows)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r"),
        "\ufeff" + TEXT,
        "\ufeff\n" + TEXT,
        HEAD + '<?xml version="1.0" encoding="UTF-8"?>\n' + TREES,
        HEAD + "".join(line.strip() for line in TREES.splitlines()),
        TEXT.replace("<ensemble>", "<ensemble><!-- a remark -->"),
        TEXT.replace("\t", ""),
        TREES,
        TEXT.replace("## LambdaMART", "## MART").replace("tree id", "tree  id"),
        TEXT.replace("<threshold> 0.1 ", "# a line of its own\n<threshold> 0.1 ").replace("\t\t\t#", "#"),
        TEXT.replace('pos="left"', 'pos="x"'),
    ],
)
def test_other_layouts_of_the_same_model(text: str) -> None:
    assert ranklib.looks_like(text.encode())
    assert scores(read(text), ROWS) == scores(read(TEXT), ROWS)


@pytest.mark.parametrize(
    ("key", "old", "new", "is_obeyed"),
    [
        ("weight", 'weight="0.1"', 'weight="0.2"', True),
        ("id", 'id="1"', 'id="7"', False),
        ("pos", 'pos="left"', 'pos="right"', False),
        ("another attribute", 'weight="0.1"', 'weight="0.1" depth="3"', False),
        ("another line of the head", HEAD, HEAD + "## Learning rate = 9\n## Stop early = 1\n", False),
        ("kind", "## LambdaMART", "## MART", False),
    ],
)
def test_keys_are_obeyed_as_by_ranklib(key: str, old: str, new: str, is_obeyed: bool) -> None:
    assert old in TEXT, key
    assert (scores(read(TEXT.replace(old, new)), ROWS) != scores(read(TEXT), ROWS)) is is_obeyed


def test_the_position_of_a_split_decides_whatever_it_says() -> None:
    swapped = TEXT.replace('"left"', '"?"').replace('"right"', '"left"').replace('"?"', '"right"')
    assert scores(read(swapped), ROWS) == scores(read(TEXT), ROWS)


def test_a_number_is_rounded_to_float32_once() -> None:
    # Above the middle between 1 and the float32 above it, by less than float64 shows.
    text = TEXT.replace("> 0.1 <", "> 1.000000059604644775390625000001 <")
    assert scores(read(text), np.array([[0.0, 1 + 2**-23]])) == scores(read(TEXT), np.array([[0.0, 0.0]]))
    text = TEXT.replace("> 0.1 <", "> 1.000000059604644775390625 <")
    assert scores(read(text), np.array([[0.0, 1 + 2**-23]])) == scores(read(TEXT), np.array([[0.0, 1.0]]))


FOREST = "## Random Forests\n## No. of bags = 3\n\n" + "".join(
    f'<ensemble>\n\t<tree id="1" weight="0.1">\n\t\t<split>\n\t\t\t<feature>1</feature><threshold>{t}</threshold>'
    f'<split pos="left"><output>{a}</output></split><split pos="right"><output>{b}</output></split></split>\n'
    "\t</tree>\n</ensemble>\n\n"
    for t, a, b in [(0.5, 0.1, 0.7), (1.5, 3.3, -2.0), (2.5, 1e-3, 5.0)]
)


def test_random_forests_are_the_mean_of_their_trees() -> None:
    model = read(FOREST)
    assert (model.average, model.sums) == (True, "float64")
    parts = [[float32(float32(v) * float32(0.1)) for v in pair] for pair in [(0.1, 0.7), (3.3, -2.0), (1e-3, 5.0)]]
    expected = [(parts[0][a] + parts[1][b] + parts[2][c]) / 3 for a, b, c in [(0, 0, 0), (1, 0, 0), (1, 1, 1)]]
    assert scores(model, np.array([[0.5], [1.5], [9.0]])) == expected
    bag = FOREST.replace("bags = 3", "bags = 2").replace("</tree>\n</ensemble>\n\n<ensemble>", "</tree>", 1)
    with pytest.raises(ModelError, match="a bag of the Random Forests holds several trees"):
        read(bag)
    again = ranklib.read(ranklib.write(model).content, "m")
    assert scores(again, np.array([[0.5], [1.5], [9.0]])) == expected


def test_fewer_trees_than_the_head_says_are_told() -> None:
    stopped = TEXT.replace("No. of trees = 2", "No. of trees = 1603 ")
    assert read(stopped).settings == {"source": "RankLib LambdaMART", "trees": 1603}
    assert read(TEXT).settings == {"source": "RankLib LambdaMART"}


def test_numbers_may_have_the_letter_of_their_type() -> None:
    lettered = TEXT.replace('"0.7"', '"0.7f"').replace(" 0.1 ", " 0.1F ").replace(">7 <", ">7d <")
    assert scores(read(lettered), ROWS) == scores(read(TEXT), ROWS)


REFUSED = {
    "more trees": (TEXT.replace("trees = 2", "trees = 1"), "m: the head says 1 tree, but the model has 2; correct the"),
    "fewer bags": (FOREST.replace("bags = 3", "bags = 300"), "m: the head says 300 bags, but the model has 3"),
    "more bags": (FOREST.replace("bags = 3", "bags = 1"), "m: the head says 1 bag, but the model has 3"),
    "letter": (TEXT.replace(" 0.1 ", " 0.1g "), "m:8: a threshold is ' 0.1g '"),
    "another kind": ("## Coordinate Ascent\n1:0.5", "m: a RankLib model of kind 'Coordinate Ascent' is not read"),
    "document type": (TEXT.replace("<ensemble>", '<!DOCTYPE x [<!ENTITY a "b">]><ensemble>'), "has a document type"),
    "cut": (TEXT[:400], "m: the model ends in the middle; the file was cut"),
    "wrong end": (TEXT.replace("</output>", "</outputs>"), "m:10: this is not valid XML: mismatched tag"),
    "no ensemble": (HEAD, "m: there is no <ensemble> in it"),
    "feature 0": (TEXT.replace(">3 <", ">0 <"), "m:7: the feature '0 ' is not a whole number from 1 up"),
    "feature name": (TEXT.replace(">3 <", ">a <"), "m:7: the feature 'a ' is not a whole number from 1 up"),
    "nan": (TEXT.replace("> 0.1 <", "> NaN <"), "m:8: a threshold is ' NaN ', not a finite number"),
    "underscore": (TEXT.replace("> 0.1 <", "> 1_0 <"), "m:8: a threshold is ' 1_0 '"),
    "dots": (TEXT.replace("> 0.1 <", "> 1.0.0 <"), r"m:8: a threshold is ' 1\.0\.0 '"),
    "infinite": (TEXT.replace("> 0.1 <", "> Infinity <"), "m:8: a threshold is ' Infinity '"),
    "too large": (TEXT.replace("> 0.1 <", "> 1e39 <"), "too large for float32"),
    "large leaf": (TEXT.replace(">7 <", ">1e39 <"), "too large for float32"),
    "no weight": (TEXT.replace(' weight="0.7"', ""), "m:24: <tree> has no weight"),
    "order": (
        TEXT.replace("<feature>3 </feature>", "").replace(" 0.1 </threshold>", " 0.1 </threshold><feature>3</feature>"),
        "m:8: <threshold> comes before <feature>",
    ),
    "no threshold": (TEXT.replace("<threshold> 0.1 </threshold>", ""), "m:9: <split> comes before <feature> and"),
    "three splits": (
        TEXT.replace("</output>\n\t\t\t</split>", "</output></split><split><output>1</output></split>", 1),
        "a <split> has more than two splits",
    ),
    "one split": (TEXT.replace('<split pos="left">\n\t\t\t\t<output>-1.3620659112930298 </output>\n\t\t\t</split>', ""),
                  "a <split> has not two splits in it"),
    "empty split": (TEXT.replace("<output>0.3 </output>", ""), "m:27: a <split> is empty"),
    "two roots": (TEXT.replace("<output>0.3 </output>\n\t\t</split>", "<output>0.3</output></split><split></split>"),
                  "<split> is in no <tree>, or the second"),
    "nested number": (TEXT.replace(" 0.1 ", "<output>1</output>"), "<output> is where a number should be"),
    "unknown": (TEXT.replace("<tree id=\"2\"", "<trie/><tree id=\"2\""), "<trie> is no element of an ensemble"),
    "two ensembles": (TEXT + TREES, "a LambdaMART model has 2 ensembles"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_in_one_line(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(ModelError, match=words) as refused:
        read(text)
    assert "\n" not in str(refused.value)


def test_what_looks_like_a_model_of_ranklib() -> None:
    assert ranklib.looks_like(b"## RankNet\n## Epochs = 1\n")
    assert not ranklib.looks_like(b"## some data\n1 qid:1 1:0.5\n")
    assert not ranklib.looks_like(b"<ranker><info>")
    assert not ranklib.looks_like(b'{"format": "lmart"}')


@pytest.mark.slow
def test_splits_nested_without_end_are_refused() -> None:
    with pytest.raises(ModelError, match="nested more than 100,000 deep"):
        read(HEAD + '<ensemble><tree weight="1">' + "<split><feature>1</feature><threshold>1</threshold>" * 150_000)
    chain = grow(random.Random(1), 20_000, [0], [0.5], "chain")
    ensemble = Ensemble((chain,), np.array([1]))
    written = ranklib.write(ensemble).content
    assert len(written) < 10_000_000
    assert ranklib.read(written, "m").trees[0].n_leaves == 20_000


@given(models())
def test_rows_of_float32_numbers_come_to_the_same_leaves(ensemble: Ensemble) -> None:
    back = ranklib.read(ranklib.write(ensemble).content, "m")
    values, ids = planted(ensemble), ensemble.feature_ids.tolist()
    for t in range(len(ensemble.trees)):
        before = np.array(leaf_values(ensemble, t, values, ids)).astype(np.float32)
        assert np.array_equal(before, np.array(leaf_values(back, t, values, ids)))
    text = ranklib.write(ensemble).content.decode()
    rows = [dict(zip(ids, row, strict=True)) for row in planted(ensemble, with_nan=True).tolist()]
    assert twin(text, rows) == scores(back, planted(ensemble, with_nan=True), ids)
    assert ranklib.write(back).content == ranklib.write(ensemble).content
    assert not any("finer" in note for note in ranklib.write(back).notes)


def test_ranklibs_own_reader_would_take_it() -> None:
    rng = random.Random(1)
    ensemble = Ensemble(tuple(grow(rng, size, [0, 1], [0.5, 1e-7]) for size in (1, 2, 60)), np.array([1, 2]))
    for model, head, count in ((ensemble, "LambdaMART", 1), (replace(ensemble, average=True), "Random Forests", 3)):
        lines = ranklib.write(model).content.decode().split("\n")
        assert lines[0] == f"## {head}"
        assert lines.count("</ensemble>") == count  # Random Forests end one at the end of a line
        joined = "".join(line.strip() for line in lines if not line.startswith("#"))
        assert re.search(r">\s+<", joined) is None  # a blank between two tags would count as an element
        assert re.search(r"(?i)<feature>\d+</feature><threshold>[-+.\de]+</threshold><split pos=.left.>", joined)


def test_what_gets_lost_is_said_with_counts() -> None:
    tree = grow(random.Random(1), 4, [0], [0.5], missing_left=False)
    tree = replace(tree, leaf_values=np.array([0.1, 0.25, 0.5, 1.0]))
    ensemble = Ensemble((tree,), np.array([1]), ("a",), 0.5)
    written = ranklib.write(ensemble)
    assert [note.split(":")[0] for note in written.notes] == [
        "3 of 3 thresholds are finer than float32, in which RankLib compares",
        "3 of 3 splits send missing values to the other side than RankLib, which takes them as 0",
        "1 of 5 leaf values is rounded to float32, by at most 1.5e-09, and scores are float32 sums in RankLib",
        "1 feature name not written",
    ]
    assert ranklib.read(written.content, "m").trees[0].leaf_values.tolist() == [0.5]
    exact = replace(ensemble, feature_names=None, sums="float32", trees=(replace(tree, leaf_values=np.ones(4)),))
    assert len(ranklib.write(exact).notes) == 2
    assert ranklib.write(ranklib.read(ranklib.write(exact).content, "m")).notes == ()


def test_a_model_of_ranklib_comes_back_exactly() -> None:
    text = TEXT.replace('weight="0.7"', 'weight="0.1"')
    model = read(text)
    assert model.settings == {"source": "RankLib LambdaMART", "weight": 0.1}
    written = ranklib.write(model)
    assert written.notes == ()
    assert b'weight="0.1"' in written.content and b"<output>-1.3620659</output>" in written.content
    assert scores(ranklib.read(written.content, "m"), ROWS) == scores(model, ROWS)
    trees = (model.trees[0], replace(model.trees[1], leaf_values=np.array([1 / 3])))
    other = ranklib.write(replace(model, trees=trees))
    assert [note.split(",")[0] for note in other.notes] == ["1 of 4 leaf values is rounded to float32"]
    assert other.content.count(b'weight="1.0"') == 1
    assert b"weight" not in str(read(TEXT).settings).encode()


def test_what_cannot_be_written_is_refused() -> None:
    tree = grow(random.Random(1), 2, [0], [0.5])
    with pytest.raises(ModelError, match="a split is on feature 0, and RankLib numbers features from 1"):
        ranklib.write(Ensemble((tree,), np.array([0, 1])))
    with pytest.raises(ModelError, match=r"a leaf value of 1e\+39 is too large for RankLib"):
        ranklib.write(Ensemble((replace(tree, leaf_values=np.array([0.0, 1e39])),), np.array([1])))
