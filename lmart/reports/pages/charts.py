"""Charts as SVG text for a page: drawn by matplotlib, coloured by the variables of the page's style sheet.

The same content gives the same bytes: no dates, no random names, none of the user's own settings of matplotlib.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from lmart.errors import OutputError, needs_package, visible
from lmart.reports.html_parts import text
from lmart.reports.pages.evaluation_content import CutoffCurve, Distribution
from lmart.reports.run_report import Curve, RankerRun
from lmart.scoring.effects import FeatureEffect

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 4.6  # inches of 72 units; a page shows them from 320 to 640 pixels wide
SERIES = 6  # colours of the style sheet, used in turn
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P")
# Colours that stand for variables of the style sheet; nothing else in a chart has them.
INK, GRID = "#010203", "#010204"
COLOURS = tuple(f"#0102{16 + k:02x}" for k in range(SERIES))
VARIABLES = {
    INK: "currentColor",
    GRID: "var(--grid)",
    **{colour: f"var(--s{k + 1})" for k, colour in enumerate(COLOURS)},
}
MOST_BANDS = 2  # systems whose intervals are drawn; more would hide each other
SKEWED = 8  # times its middle part that the range of a feature may be on a linear axis
LONGEST_LABEL = 40  # characters of a name in a legend
SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lmart",
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "axes.formatter.use_locale": False,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "xtick.color": GRID,
    "xtick.labelcolor": INK,
    "ytick.color": GRID,
    "ytick.labelcolor": INK,
    "patch.linewidth": 0,
}


class Chart(NamedTuple):
    """A chart as SVG."""

    svg: str
    title: str


class Difference(NamedTuple):
    """A difference between two systems.

    interval         : of the difference; None: there is none
    is_beyond_chance : whether it is significant
    """

    pair: str
    value: float
    interval: Sequence[float] | None
    is_beyond_chance: bool


def require_matplotlib(path: str) -> None:
    """Raise OutputError when charts cannot be drawn."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise OutputError(needs_package("a page", "matplotlib"), path)


def cutoff_chart(curves: Sequence[CutoffCurve], number: int) -> Chart:
    """Return NDCG against the cutoff, a line for each system, and of a few systems the bands of their intervals."""

    def draw(axes: Axes) -> None:
        """Draw the lines and bands."""
        for k, curve in enumerate(curves):
            points = [(point.cutoff, point.mean) for point in curve.points if point.mean is not None]
            axes.plot(
                [cutoff for cutoff, _ in points],
                [mean for _, mean in points],
                color=COLOURS[k % SERIES],
                linestyle=DASHES[k // SERIES % len(DASHES)],
                marker=MARKERS[k % len(MARKERS)],
                markersize=3,
                linewidth=1.6,
                label=_label(curve.system),
            )
            banded = [(point.cutoff, *point.interval) for point in curve.points if point.interval is not None]
            if banded and len(curves) <= MOST_BANDS:
                x, low, high = zip(*banded, strict=True)
                axes.fill_between(
                    x, low, high, color=COLOURS[k % SERIES], alpha=0.15 if len(curves) == 1 else 0.1, linewidth=0
                )
        axes.set_xlabel("k")
        axes.set_ylabel("NDCG@k")
        axes.set_xticks([1, 5, 10, 15, 20])
        _legend(axes, len(curves))

    with_bands = ", with the interval of the mean" if len(curves) <= MOST_BANDS else ""
    return _chart(draw, f"NDCG at each cutoff{with_bands}", number, 3.0 + 0.2 * len(curves))


def difference_chart(measure: str, differences: Sequence[Difference], number: int) -> Chart:
    """Return the differences of one measure, each with its interval beside a line at 0: a forest plot."""

    def draw(axes: Axes) -> None:
        """Draw the points and intervals, the first on top."""
        for k, difference in enumerate(differences):
            colour = INK if not difference.is_beyond_chance else COLOURS[0] if difference.value > 0 else COLOURS[1]
            if difference.interval is not None:
                axes.plot(difference.interval, (k, k), color=colour, linewidth=1.6)
            filling = colour if difference.is_beyond_chance else "none"
            axes.plot([difference.value], [k], marker="o", markersize=6, color=colour, markerfacecolor=filling)
        axes.axvline(0, color=INK, linewidth=1, linestyle=":")
        axes.set_yticks(range(len(differences)), [_label(difference.pair) for difference in differences])
        axes.set_ylim(len(differences) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.locator_params("x", nbins=5)
        axes.set_xlabel(f"difference in {_label(measure)}")

    title = f"Differences in {measure} with their intervals; filled: more than chance explains"
    return _chart(draw, title, number, 0.8 + 0.32 * len(differences))


def distribution_chart(distribution: Distribution, number: int) -> Chart:
    """Return how many queries have which value, a row of bars for each system."""
    n = len(distribution.counts)
    most = max(map(max, distribution.counts.values()))
    title = f"Queries by their {distribution.measure}"

    def draw(*rows: Axes) -> None:
        """Draw the bars of each system."""
        for k, (axes, (system, counts)) in enumerate(zip(rows, distribution.counts.items(), strict=True)):
            step = (distribution.high - distribution.low) / len(counts)
            starts = [distribution.low + step * place for place in range(len(counts))]
            axes.bar(starts, counts, width=step * 0.92, align="edge", color=COLOURS[k % SERIES])
            axes.set_xlim(distribution.low, distribution.high)
            axes.set_ylim(0, most * 1.05)
            axes.locator_params("y", integer=True, nbins=4)
            axes.grid(visible=False, axis="x")
            if n > 1:
                axes.set_title(_label(system), fontsize=9.5, loc="left")
        rows[n // 2].set_ylabel("queries")
        rows[-1].set_xlabel(distribution.measure)

    return _chart(draw, title, number, 2.4 if n == 1 else 0.4 + 1.3 * n, n)


def learning_chart(run: RankerRun, curves: Sequence[Curve], metric: str, number: int, title: str) -> Chart:
    """Return learning curves of a ranker, a line for each data set, with the last round that was kept."""
    shown = [curve for curve in curves if any(value is not None for value in curve.values)]

    def draw(axes: Axes) -> None:
        """Draw the lines and the mark."""
        for k, curve in enumerate(shown):
            defined = [(x, y) for x, y in zip(run.rounds, curve.values, strict=True) if y is not None]
            axes.plot(
                [x for x, _ in defined],
                [y for _, y in defined],
                color=COLOURS[k % SERIES],
                linestyle=DASHES[k // SERIES % len(DASHES)],
                marker="o" if len(defined) == 1 else None,
                linewidth=1.6,
                label=_label(curve.name),
            )
        if run.trees:
            axes.axvline(run.rounds[run.trees - 1], color=INK, linewidth=1, linestyle=":", label="last round kept")
        axes.locator_params("x", integer=True)
        axes.set_xlabel("round")
        axes.set_ylabel(_label(metric))
        _legend(axes, len(shown) + 1)

    return _chart(draw, title, number, 2.7 + 0.2 * len(shown))


def effect_chart(effect: FeatureEffect, mean_score: float, limits: tuple[float, float], number: int) -> Chart:
    """Return how the score changes with a feature: a line of means, and a dot for the contribution in some rows.

    mean_score : of the rows, which the line is drawn about
    limits     : of the change of the score
    """
    scale, low, high, linear = _value_axis(effect)

    def draw(axes: Axes) -> None:
        """Draw the line, the dots, and a mark at each decile."""
        axes.axhline(0, color=INK, linewidth=0.8, linestyle=":")
        (dots,) = axes.plot(effect.row_values, effect.contributions, "o", color=COLOURS[1], alpha=0.45, markersize=2.4)
        dots.set_markeredgewidth(0)
        changes = effect.scores - mean_score
        if effect.categories:
            axes.plot(effect.values, changes, "_", color=COLOURS[0], markersize=9, markeredgewidth=1.8)
        else:
            axes.step([*effect.values, high], [*changes, changes[-1]], where="post", color=COLOURS[0], linewidth=1.8)
        bottom = axes.get_xaxis_transform()
        axes.plot(effect.deciles, [0] * len(effect.deciles), "|", color=INK, transform=bottom, clip_on=False)
        if scale == "symlog":
            axes.set_xscale(scale, linthresh=linear)
        else:
            axes.set_xscale(scale)
        axes.set_xlim(low, high)
        axes.set_ylim(*limits)
        if scale == "linear":
            axes.locator_params("x", nbins=6)
        axes.locator_params("y", nbins=6)
        axes.set_xlabel(_label(effect.feature))
        axes.set_ylabel("change of the score")

    return _chart(draw, f"Effect of the feature {visible(effect.feature)}", number, 2.7)


def _value_axis(effect: FeatureEffect) -> tuple[str, float, float, float]:
    """Return the scale of a feature's axis, its ends, and up to where a symmetrical logarithm is linear.

    Few features are spread evenly: of large values in few documents, a linear axis would show nothing else.
    """
    deciles = effect.deciles.tolist()
    low, high, middle = deciles[0], deciles[-1], deciles[9] - deciles[1]
    if low == high:
        return "linear", low - 0.5, high + 0.5, 0.0
    margin = 0.02 * (high - low)
    positive = min((value for value in effect.values.tolist() if value > 0), default=0.0)
    if low < 0 or positive <= 0 or high - low <= SKEWED * middle or high <= SKEWED * positive:
        return "linear", low - margin, high + margin, 0.0
    if low > 0:
        return "log", low / 1.1, high * 1.1, 0.0
    return "symlog", -0.1 * positive, high * 1.1, positive


def _label(name: str) -> str:
    """Return a name for a chart: its end, where it is long; what starts with _ would be left out of legends.

    What cannot be printed is escaped, as elsewhere on the page: no font draws it, and half a surrogate pair is refused.
    """
    name = visible(name)
    label = name if len(name) <= LONGEST_LABEL else f"...{name[3 - LONGEST_LABEL :]}"
    return f" {label}" if label.startswith("_") else label


def _legend(axes: Axes, entries: int) -> None:
    """Put the legend above the chart, one entry a line, so that it hides nothing."""
    if entries > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=1, borderaxespad=0.2, handlelength=2.4)


def _chart(draw: Callable[..., None], title: str, number: int, height: float, rows: int = 1) -> Chart:
    """Return a drawing as SVG."""
    with _own_settings():
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        canvas = FigureCanvasSVG(figure)
        draw(*[figure.add_subplot(rows, 1, row + 1) for row in range(rows)])
        drawn = io.BytesIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.print_svg(drawn, metadata=nothing)
    return Chart(_for_page(drawn.getvalue().decode(), title, number), title)


@contextmanager
def _own_settings() -> Iterator[None]:
    """Use matplotlib's defaults and SETTINGS, whatever the user set, and keep it silent.

    It would warn of folders that it cannot write, and of letters that only the page's font has.
    """
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import matplotlib

            with matplotlib.rc_context():
                matplotlib.rcdefaults()
                matplotlib.rcParams.update(SETTINGS)
                yield
    finally:
        logger.setLevel(level)


def _for_page(svg: str, title: str, number: int) -> str:
    """Return a drawing for a page: without a prologue, named, with names of its own, and the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="c{number}-', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\1c{number}-", svg)
    svg = re.sub(r"font-family:[^;\"]*;?|font: ([\d.]+px) [^;\"]*", _font, svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    label = f'role="img" aria-label="{text(title)}"'
    svg = re.sub(r'<svg([^>]*?) width="[^"]*"', r"<svg\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg", f"<svg {label}", 1).strip()


def _font(found: re.Match[str]) -> str:
    """Return the style of text without a family, which is that of the page."""
    return f"font-size: {found[1]}" if found[1] else ""
