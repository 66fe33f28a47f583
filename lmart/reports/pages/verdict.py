"""What the numbers of an evaluation say, in sentences, and which differences are more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmart.errors import counted
from lmart.measures.results import best_places

MAIN = "ndcg@10"  # the measure that a reader sees first
MOST_SENTENCES = 7  # comparisons that have a sentence each


def main_measure(measures: Sequence[str]) -> str:
    """Return the measure that a reader sees first: MAIN where there is one."""
    return MAIN if MAIN in measures else measures[0]


def is_beyond_chance(comparison: Mapping[str, Any], evaluation: Mapping[str, Any]) -> bool:
    """Return whether a difference is significant at the level of the intervals, given how many were tested."""
    p = comparison["p_holm"]
    return p is not None and bool(p <= 1 - evaluation["resampling"]["level"] + 1e-12)


def is_best_beyond_chance(evaluation: Mapping[str, Any], measure: str, system: str) -> bool:
    """Return whether every comparison that a system has in a measure says that it is better, beyond chance."""
    own = [comparison for comparison in evaluation.get("comparisons", ()) if comparison["measure"] == measure]
    own = [comparison for comparison in own if system in (comparison["system"], comparison["baseline"])]
    return all(
        is_beyond_chance(comparison, evaluation) and (comparison["difference"] > 0) == (comparison["system"] == system)
        for comparison in own
    )


def verdict(evaluation: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences that say how good the systems are in the main measure, and whether they differ."""
    systems = evaluation["systems"]
    measure = main_measure(list(systems[0]["metrics"]))
    means = [system["metrics"][measure] for system in systems]
    if all(mean is None for mean in means):
        yield f"No query counts in {measure}."
        return
    best = (best_places(means) or [next(place for place, mean in enumerate(means) if mean is not None)])[0]
    summary = systems[best]["summary"][measure]
    is_highest = len(systems) > 1 and len(best_places(means)) == 1
    reached = f"{systems[best]['name']} {'has the highest' if is_highest else 'has a'} mean {measure}, "
    reached += f"{means[best]:.4f}{_between(summary['interval'], '.4f', evaluation)}"
    yield f"{reached}, over {counted(summary['count'], 'query')}."
    compared = [comparison for comparison in evaluation.get("comparisons", ()) if comparison["measure"] == measure]
    if len(compared) > MOST_SENTENCES:
        n = sum(is_beyond_chance(comparison, evaluation) for comparison in compared)
        yield f"Of {len(compared)} pairs of systems, {n} differ in {measure} by more than chance explains."
    else:
        yield from (_sentence(comparison, evaluation) for comparison in compared)


def _sentence(comparison: Mapping[str, Any], evaluation: Mapping[str, Any]) -> str:
    """Return what a comparison says."""
    names = ("system", "baseline", "measure", "difference")
    system, baseline, measure, difference = (comparison[name] for name in names)
    if difference is None:
        return f"No query counts in both {system} and {baseline}."
    if comparison["wins"] == comparison["losses"] == 0:
        return f"{system} and {baseline} have the same {measure} in every query."
    way, against = ("gains", "over") if difference >= 0 else ("loses", "against")
    shown = is_beyond_chance(comparison, evaluation)
    word = "better" if difference >= 0 else "worse"
    means = f"{word}, by more than chance explains" if shown else f"not shown to be {word}; this may be chance"
    p = "p below 0.0001" if comparison["p_holm"] < 0.0001 else f"p {comparison['p_holm']:.2g}"
    between = _between(comparison["interval"], "+.4f", evaluation, p)
    return f"{system} {way} {abs(difference):.4f} {measure} {against} {baseline}{between}: {means}."


def _between(ends: Sequence[float] | None, form: str, evaluation: Mapping[str, Any], more: str = "") -> str:
    """Return an interval in brackets, with what else is to stand there."""
    parts = [more] if more else []
    if ends is not None:
        level = 100 * evaluation["resampling"]["level"]
        parts.insert(0, f"{level:.6g}% interval {ends[0]:{form}} to {ends[1]:{form}}")
    return f" ({', '.join(parts)})" if parts else ""
