"""QuickRank's models: read as QuickRank scores them, written so that float32 rows come to the same leaves."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.float32_rows import leaf_values, models, planted, scores
from helpers.trees import grow
from hypothesis import given

from lmart.errors import ModelError
from lmart.formats.models import quickrank
from lmart.scoring.ensemble import Ensemble

TEXT = """\
<?xml version="1.0"?>
<ranker>
	<info>
		<type>LAMBDAMART</type>
		<trees>100</trees>
		<shrinkage>0.1</shrinkage>
	</info>
	<ensemble>
		<tree id="1" weight="0.10000000000000001">
			<split>
				<feature>3</feature>
				<threshold>0.10000000149011612</threshold>
				<split pos="left">
					<output>-1.3620659112930298</output>
				</split>
				<split pos="right">
					<feature>1</feature>
					<threshold>-0.0024999999441206455</threshold>
					<split pos="left">
						<output>0.25</output>
					</split>
					<split pos="right">
						<output>7</output>
					</split>
				</split>
			</split>
		</tree>
		<tree id="2" weight="0.7">
			<split>
				<output>0.3</output>
			</split>
		</tree>
	</ensemble>
</ranker>
"""
ROWS = np.array([[0.0, 0.1], [-0.0025, 0.2], [-0.0026, 0.2], [math.nan, 0.2], [9.0, math.nan]])  # features 1 and 3


def twin(text: str, rows: list[dict[int, float]]) -> list[float]:
    """The scores as QuickRank makes them, by another XML reader."""
    found = []
    trees = list(ElementTree.fromstring(text).iter("tree"))
    for row in rows:
        total = 0.0
        for tree in trees:
            split = tree[0]
            while (output := split.find("output")) is None:
                x = np.float32(row.get(int(split.findtext("feature", "")), 0.0))
                pos = "left" if x <= np.float32(float(split.findtext("threshold", ""))) else "right"
                split = next(child for child in split.findall("split") if child.get("pos") == pos)
            total += float(output.text or "") * float(tree.attrib["weight"])
        found.append(total)
    return found


def read(text: str) -> Ensemble:
    return quickrank.read(text.encode(), "m")


def test_a_model_scores_as_in_quickrank() -> None:
    model = read(TEXT)
    assert model.feature_ids.tolist() == [1, 3]
    assert (model.sums, model.absent, model.feature_names) == ("float64", "zero", None)
    assert scores(model, ROWS) == twin(TEXT, [{1: a, 3: b} for a, b in ROWS.tolist()])


SWAPPED = """<split>
<split pos="right"><split pos="left"><output>0.25</output></split><threshold>-0.0024999999441206455</threshold>
<split pos="right"><output>7</output></split><feature>1</feature></split>
<threshold>0.10000000149011612</threshold><split pos="left"><output>-1.3620659112930298</output></split>
<feature>3</feature></split>"""


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        TEXT.removeprefix('<?xml version="1.0"?>'),
        "".join(line.strip() for line in TEXT.splitlines()),
        TEXT.replace("<ensemble>", "<!-- a remark --><ensemble>"),
        TEXT.replace("<feature>3", "<feature><!-- a remark -->&#51;"),
        TEXT[: TEXT.index("<split>")] + SWAPPED + TEXT[TEXT.index("</tree>") :],
        TEXT.replace("<output>7<", "<output><![CDATA[7]]><"),
    ],
)
def test_other_layouts_of_the_same_model(text: str) -> None:
    assert quickrank.looks_like(text.encode())
    assert scores(read(text), ROWS) == scores(read(TEXT), ROWS)


def test_fewer_trees_than_the_head_says_are_told() -> None:
    assert read(TEXT).settings == {"source": "QuickRank LAMBDAMART", "trees": 100}
    for said in ("2", "many", ""):
        assert read(TEXT.replace("<trees>100<", f"<trees>{said}<")).settings == {"source": "QuickRank LAMBDAMART"}


@pytest.mark.parametrize(
    ("key", "old", "new", "is_obeyed"),
    [
        ("weight", 'weight="0.7"', 'weight="0.8"', True),
        ("id", 'id="1"', 'id="7"', False),
        ("another attribute", 'weight="0.7"', 'weight="0.7" depth="3"', False),
        ("shrinkage", "<shrinkage>0.1<", "<shrinkage>9<", False),
        ("type", "<type>LAMBDAMART<", "<type>DART<", False),
        ("another element of the head", "<shrinkage>", "<sample_type>UNIFORM</sample_type><shrinkage>", False),
    ],
)
def test_keys_are_obeyed_as_by_quickrank(key: str, old: str, new: str, is_obeyed: bool) -> None:
    assert old in TEXT, key
    assert (scores(read(TEXT.replace(old, new)), ROWS) != scores(read(TEXT), ROWS)) is is_obeyed


REFUSED = {
    "more trees": (TEXT.replace("<trees>100<", "<trees>1<"), "m: the head says 1 tree, but the model has 2"),
    "random forest": (TEXT.replace("LAMBDAMART", "RANDOMFOREST"), "m: a QuickRank model of type 'RANDOMFOREST' is not"),
    "linear": (TEXT.replace("LAMBDAMART", "COORDASC"), "of type 'COORDASC'"),
    "document type": ('<!DOCTYPE x [<!ENTITY a "b">]>' + TEXT, "has a document type"),
    "entity": (TEXT.replace("<output>7<", "<output>&a;<"), "m:23: this is not valid XML: undefined entity"),
    "cut": (TEXT[:400], "m: the model ends in the middle; the file was cut"),
    "wrong end": (TEXT.replace("</info>", "</inf>"), "m:7: this is not valid XML: mismatched tag"),
    "feature 0": (TEXT.replace(">3<", ">0<"), "m:11: the feature '0' is not a whole number from 1 up"),
    "infinite": (TEXT.replace(">7<", ">inf<"), "m:23: an output is 'inf', not a finite number"),
    "large leaf": (TEXT.replace(">7<", ">1e308<").replace("0.10000000000000001", "1e10"), "a number is too large"),
    "no pos": (TEXT.replace(' pos="left"', "", 1), "m:13: the pos of a <split> is '', not 'left' or 'right'"),
    "two left": (TEXT.replace("right", "left", 1), "m:17: a <split> has two splits at pos='left'"),
    "two outputs": (TEXT.replace("<output>7</output>", "<output>7</output><output>8</output>"), "<output> is in a <sp"),
    "no feature": (TEXT.replace("<feature>3</feature>", ""), "a <split> has no <feature>"),
    "two features": (TEXT.replace("<feature>3<", "<feature>3</feature><feature>3<"), "two of <feature>"),
    "no threshold": (TEXT.replace("<threshold>0.10000000149011612</threshold>", ""), "has no <threshold>"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_in_one_line(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(ModelError, match=words) as refused:
        read(text)
    assert "\n" not in str(refused.value)


def test_what_looks_like_a_model_of_quickrank() -> None:
    assert quickrank.looks_like(b"\n<!-- x -->\n<ranker>")
    assert not quickrank.looks_like(b"## LambdaMART\n<ensemble>")
    assert not quickrank.looks_like(b"")


@given(models())
def test_rows_of_float32_numbers_come_to_the_same_leaves(ensemble: Ensemble) -> None:
    written = quickrank.write(ensemble)
    back = quickrank.read(written.content, "m")
    values, ids = planted(ensemble), ensemble.feature_ids.tolist()
    for t in range(len(ensemble.trees)):
        assert leaf_values(ensemble, t, values, ids) == leaf_values(back, t, values, ids)
    assert scores(ensemble, values) == scores(back, values, ids)
    with_nan = planted(ensemble, with_nan=True)
    rows = [dict(zip(ids, row, strict=True)) for row in with_nan.tolist()]
    assert twin(written.content.decode(), rows) == scores(back, with_nan, ids)
    assert quickrank.write(back).content == written.content
    assert quickrank.write(back).notes == ()


def test_what_gets_lost_is_said_with_counts() -> None:
    tree = grow(random.Random(1), 4, [0], [-0.1], missing_left=True)
    ensemble = Ensemble((tree, tree), np.array([1]), ("a",), 0.5, "missing", sums="float32", average=True)
    written = quickrank.write(ensemble)
    assert [note.split(":")[0] for note in written.notes] == [
        "6 of 6 thresholds are finer than float32, in which QuickRank compares",
        "6 of 6 splits send nan to the left, where QuickRank sends it to the right",
        "6 of 6 splits send features that a row does not name to the other side than QuickRank, which takes them as 0",
        "scores are float64 sums in QuickRank",
        "1 feature name not written",
    ]
    back = quickrank.read(written.content, "m")
    assert len(back.trees) == 3
    assert scores(back, np.array([[0.5]])) == pytest.approx(scores(ensemble, np.array([[0.5]])), rel=1e-6)
    plain = replace(ensemble, sums="float64", base_score=0.5, average=False)
    assert scores(quickrank.read(quickrank.write(plain).content, "m"), np.array([[0.5]])) == scores(
        plain, np.array([[0.5]])
    )
