"""Small parts of HTML."""

from __future__ import annotations

import json

from lmart.reports.html_parts import Cell, embedded, interval, number, table, text


def test_text_is_escaped() -> None:
    assert text("<b>&\"'\n\x07") == "&lt;b&gt;&amp;&quot;&#x27;\\n\\x07"


def test_numbers_hold_every_digit() -> None:
    assert number(0.1 + 0.2) == '<data value="0.30000000000000004">0.300000</data>'
    assert number(12345, ",d") == '<data value="12345">12,345</data>'
    assert number(3e12) == '<data value="3000000000000.0">3e+12</data>'
    assert number(None) == interval(None) == "n/a"


def test_embedded_json_cannot_end_its_element() -> None:
    content = {"name": "</script><!--&amp;\u2028"}
    made = embedded(content)
    assert json.loads(made) == content
    assert made.isascii() and not set("<>&") & set(made)


def test_tables_have_headers_and_a_region_that_scrolls() -> None:
    made = table("Means & more", ["measure", "a<b"], [["ndcg", "1"], ["map", Cell("2", "best")]], "means")
    assert made.startswith('<div class="scroll" tabindex="0" role="region" aria-label="Means &amp; more">')
    assert '<th scope="col">a&lt;b</th>' in made
    assert '<tr><th scope="row">ndcg</th><td data-label="a&lt;b">1</td></tr>' in made
    assert '<tr><th scope="row">map</th><td class="best" data-label="a&lt;b">2</td></tr>' in made
