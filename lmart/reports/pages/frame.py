"""The frame of all pages: one HTML file that needs nothing else, for screens of any width, light, dark and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmart import __version__
from lmart.reports.html_parts import embedded, section, text
from lmart.reports.pages.charts import Chart

# One column for telephones, two of charts where there is room; light and dark.
STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c1e21; --faint: #5c636a; --paper: #ffffff; --line: #c9ced3; --grid: #c9ced3; --raised: #f4f6f8;
  --s1: #0b62a8; --s2: #b34700; --s3: #028179; --s4: #760023; --s5: #086efb; --s6: #0000f9;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ea; --faint: #a4abb2; --paper: #15181b; --line: #434a51; --grid: #434a51; --raised: #1f2327;
    --s1: #63b3f4; --s2: #ff9f5a; --s3: #9dffc2; --s4: #f9de0a; --s5: #43ffff; --s6: #81876b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .4rem 0; max-width: 44rem; }
.verdict { padding: .5rem .9rem; background: var(--raised); border-left: 4px solid var(--s1); max-width: 48rem; }
.faint, caption, footer { color: var(--faint); }
footer { margin-top: 2.5rem; font-size: .875rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--faint); }
dd { margin: 0; min-width: 0; }
.scroll { overflow-x: auto; margin: .5rem 0; }
.scroll:focus-visible { outline: 2px solid var(--s1); outline-offset: 2px; }
.scroll + .scroll { margin-top: 1.25rem; }
table { border-collapse: collapse; font-size: .9375rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding-bottom: .25rem; font-size: .875rem; }
th, td { padding: .2rem .65rem .2rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; color: var(--faint); font-weight: 600; white-space: normal; min-width: 4rem; }
thead th { overflow-wrap: break-word; }
tbody th, .text { overflow-wrap: anywhere; }
th:first-child { position: sticky; left: 0; background: var(--paper); }
th:first-child, td:first-child, .text { text-align: left; }
tbody th, .text { font-weight: 400; white-space: normal; min-width: 5rem; max-width: 16rem; }
td.best { font-weight: 700; }
td span.under { display: block; font-size: .875em; font-weight: 400; color: var(--faint); }
td.bar { min-width: 5rem; width: 40%; }
td.bar span { display: block; height: .7rem; background: var(--s1); border-radius: 2px; }
details { margin: .25rem 0 .75rem; }
summary { cursor: pointer; color: var(--faint); font-size: .875rem; padding: .2rem 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem 2rem; }
figure { margin: .5rem 0; max-width: 36rem; }
.charts > div { min-width: 0; }
.pairs { grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
figcaption { font-weight: 600; margin-bottom: .25rem; }
svg { display: block; width: 100%; height: auto; color: var(--ink); stroke-linejoin: round; }
svg text { font-family: inherit; }
svg.bars { display: inline-block; width: 6.5rem; height: 1.5rem; vertical-align: middle; fill: var(--s1); }
svg.bars .other { fill: none; stroke: var(--s2); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.tree, .tree ul { list-style: none; margin: 0; padding-left: 1.2rem; }
.tree { padding-left: 0; min-width: max-content; font-size: .9375rem; }
.tree li { position: relative; padding: .08rem 0 .08rem .2rem; }
.tree ul > li::before, .tree ul > li:first-child::after {
  content: ""; position: absolute; left: -.7rem; top: 0; width: .7rem; height: .9rem;
  border: solid var(--grid); border-width: 0 0 1px 1px;
}
.tree ul > li:first-child::after { top: .8rem; height: auto; bottom: 0; width: 0; border-width: 0 0 0 1px; }
.tree i { color: var(--faint); font-style: normal; font-size: .875em; }
.sway { display: inline-block; position: relative; width: 6rem; height: .7rem; vertical-align: middle; }
.sway::before {
  content: ""; position: absolute; left: 50%; top: -.15rem; bottom: -.15rem; border-left: 1px solid var(--grid);
}
.sway span { position: absolute; top: 0; bottom: 0; left: 50%; background: var(--s1); }
.sway .down { left: auto; right: 50%; background: var(--s2); }
@media screen and (max-width: 40rem) {
  .tree { min-width: 0; }
  .tree ul { padding-left: .8rem; }
  .sway { width: 3.5rem; }
  .tree ul > li::before, .tree ul > li:first-child::after { left: -.5rem; width: .5rem; }
  .tree ul > li:first-child::after { width: 0; }
  dl { display: block; }
  thead { display: none; }
  table, caption, tbody, tr { display: block; }
  tr { padding: .35rem 0; border-bottom: 1px solid var(--line); }
  tbody th, td { display: block; padding: .05rem 0; border: 0; }
  tbody th, .text { max-width: none; }
  tbody th { position: static; font-weight: 600; }
  td::before {
    content: attr(data-label); color: var(--faint); font-weight: 400; float: left; text-align: left; max-width: 55%;
  }
  td, .text { text-align: right; white-space: normal; }
  td::after { content: ""; display: block; clear: left; }
  td.bar { width: auto; }
  td.bar::before { content: none; }
}
@media print {
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .scroll { overflow: visible; }
  table, caption { font-size: 8pt; }
  th, td { white-space: normal; padding-right: .4rem; }
  th:first-child { position: static; }
  td data { white-space: nowrap; }
  h1, h2, h3, caption, figcaption, summary { break-after: avoid; }
  figure, tr, dl, .verdict { break-inside: avoid; }
  figure { max-width: 26rem; }
  .pairs { grid-template-columns: 1fr 1fr; }
  .pairs > div { break-inside: avoid; }
  .pairs details { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""


def render(title: str, before: str, sections: Iterable[tuple[str, str, str]], content: Mapping[str, Any]) -> str:
    """Return a page as HTML; the same content gives the same bytes.

    before   : HTML between the title and the sections
    sections : name, title and HTML of each
    content  : all of the page as plain values, which stands in the page as JSON, in the script element `content`, after
               the version of lmart
    """
    content = {"version": __version__, **content}
    parts = "".join(section(*entry) for entry in sections)
    footer = (
        f"Made by lmart {text(__version__)}. Every number of this page, with all its digits, is in its element "
        "<code>script#content</code>, as JSON."
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{text(title)}</h1>\n{before}{parts}</main>\n<footer>{footer}</footer>\n"
        f'<script type="application/json" id="content">{embedded(content)}</script>\n</body>\n</html>\n'
    )


class Figures:
    """Numbers the charts of a page, so that their parts have names of their own."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> int:
        """Return the number of the next chart."""
        self.count += 1
        return self.count

    @staticmethod
    def figure(chart: Chart, below: str = "") -> str:
        """Return a chart with its title, and what stands below it as HTML."""
        figure = f"<figure><figcaption>{text(chart.title)}</figcaption>\n{chart.svg}</figure>\n"
        return f"<div>\n{figure}{below}</div>\n"


def side_by_side(figures: Iterable[str], in_pairs: bool = False) -> str:
    """Return figures that stand beside each other where there is room.

    in_pairs : on paper too, without what unfolds below them
    """
    return f'<div class="charts{" pairs" if in_pairs else ""}">\n{"".join(figures)}</div>\n'
