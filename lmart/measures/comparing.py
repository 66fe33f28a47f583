"""Comparison of systems that rank the same queries: differences of means, and tests of them, query by query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.measures.resampling import EXACT_UP_TO, Resampling
from lmart.measures.results import EvaluationResult
from lmart.measures.student import student_p, weighted_standard_error
from lmart.measures.summary import Interval, Summary, intervals_of_means, summarize, whole_numbers
from lmart.threads import WorkerPool, chunks

LISTED = 5
"""How many queries that gained, and that lost, are listed."""
TIE = 1e-12
"""Values whose difference is at most this share of the larger one are a tie: it may come of rounding alone."""


class System(NamedTuple):
    """A system and what it reached."""

    name: str
    per_query: Mapping[str, Float64Array]


class QueryDifference(NamedTuple):
    """What a query gained or lost.

    difference : the system's value less that of the baseline
    """

    query: int
    difference: float


@dataclass(frozen=True)
class Comparison:
    """A system against a baseline in one measure, over the queries that count in both; None where nothing is defined.

    queries         : that count in both
    left_out        : queries that count in one of them only
    difference      : of the means, system less baseline
    interval        : of the difference, by the bootstrap
    wins, ties, losses : queries in which the system is better, equal, worse
    randomization   : Fisher's randomization test; None without queries
    t               : mean difference by its standard error, infinite when all differences are the same; None for fewer
                      than two queries
    p_t             : of the paired t test, two-sided
    p_holm          : p of the randomization test, adjusted for the number of comparisons in this measure
    gained, lost    : the queries with the largest differences each way, the largest first
    """

    measure: str
    baseline: str
    system: str
    queries: int
    left_out: int
    difference: float | None
    interval: Interval | None
    wins: int
    ties: int
    losses: int
    randomization: RandomizationTest | None
    t: float | None
    p_t: float | None
    p_holm: float | None
    gained: tuple[QueryDifference, ...]
    lost: tuple[QueryDifference, ...]

    def to_json(self, query_ids: Sequence[str]) -> dict[str, Any]:
        """Return the comparison as plain JSON values; an infinite t is None."""
        test = self.randomization
        return {
            "measure": self.measure,
            "baseline": self.baseline,
            "system": self.system,
            "queries": self.queries,
            "left_out": self.left_out,
            "difference": self.difference,
            "interval": None if self.interval is None else list(self.interval),
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
            "p_randomization": None if test is None else test.p,
            "flips": None if test is None else test.flips,
            "exact": None if test is None else test.exact,
            "t": None if self.t is None or math.isinf(self.t) else self.t,
            "p_t": self.p_t,
            "p_holm": self.p_holm,
            "gained": [{"qid": query_ids[q], "difference": d} for q, d in self.gained],
            "lost": [{"qid": query_ids[q], "difference": d} for q, d in self.lost],
        }


def compare(
    systems: Sequence[System],
    weights: Float64Array | None,
    resampling: Resampling,
    pool: WorkerPool,
    all_pairs: bool = False,
) -> tuple[Comparison, ...]:
    """Compare each system with the first one in each measure; all comparisons of a measure stand together.

    all_pairs : compare each system with each one before it
    """
    pairs = list(combinations(systems, 2)) if all_pairs else [(systems[0], system) for system in systems[1:]]
    of_pairs = [_compare_pair(baseline, system, weights, resampling, pool) for baseline, system in pairs]
    compared: list[Comparison] = []
    for of_measure in zip(*of_pairs, strict=True):
        p_values = [comparison.randomization.p for comparison in of_measure if comparison.randomization is not None]
        adjusted = iter(holm(p_values))
        compared += [
            comparison if comparison.randomization is None else replace(comparison, p_holm=next(adjusted))
            for comparison in of_measure
        ]
    return tuple(compared)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted for how many there are: those up to alpha are wrong anywhere with at most that chance.

    Equation: the i-th smallest of m becomes the largest of (m - j + 1) p_j, j = 1..i, at most 1. Source: Holm 1979.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for i, place in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        largest = max(largest, min(1.0, (len(p_values) - i) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def paired_t(differences: Float64Array, weights: Float64Array | None) -> tuple[float, float] | None:
    """Return t and its two-sided p for the mean of paired differences; None for fewer than two.

    Without weights the paired t test; with weights the mean by its standard error (Cochran 1977, 6.13), about the same.
    """
    n = len(differences)
    if n < 2:
        return None
    shares = np.ones(n) if weights is None else weights
    scaled = np.ldexp(differences, -int(np.frexp(np.abs(differences).max())[1]))
    mean = math.fsum((scaled * shares).tolist()) / math.fsum(shares.tolist())
    error = weighted_standard_error(scaled, shares, mean)
    if error <= TIE * abs(mean):  # of equal differences nothing but rounding is left
        return (math.copysign(math.inf, mean), 0.0) if mean else (0.0, 1.0)
    return mean / error, student_p(mean / error, n - 1)


def _compare_pair(
    baseline: System, system: System, weights: Float64Array | None, resampling: Resampling, pool: WorkerPool
) -> list[Comparison]:
    """Return the comparisons of two systems in all measures, not yet adjusted by Holm."""
    weighed = None if weights is None else weights > 0
    counting: dict[str, BoolArray] = {}
    left_out: dict[str, int] = {}
    differences: dict[str, Float64Array] = {}
    for measure, of_baseline in baseline.per_query.items():
        after = system.per_query[measure]
        are_defined = [~np.isnan(of_baseline), ~np.isnan(after)]
        if weighed is not None:
            are_defined = [defined & weighed for defined in are_defined]
        counting[measure] = are_defined[0] & are_defined[1]
        left_out[measure] = int(np.count_nonzero(are_defined[0] != are_defined[1]))
        differences[measure] = _differences(of_baseline, after, counting[measure])
    intervals = intervals_of_means(differences, counting, weights, resampling, pool)
    compared = []
    for measure, every in differences.items():
        counts = counting[measure]
        own = None if weights is None else weights[counts]
        d = every[counts]
        test = randomization_test(d if own is None else d * own, resampling, pool) if len(d) else None
        t, p_t = paired_t(d, own) or (None, None)
        compared.append(
            Comparison(
                measure=measure,
                baseline=baseline.name,
                system=system.name,
                queries=len(d),
                left_out=left_out[measure],
                difference=_mean(d, own),
                interval=intervals[measure],
                wins=int(np.count_nonzero(d > 0)),
                ties=int(np.count_nonzero(d == 0)),
                losses=int(np.count_nonzero(d < 0)),
                randomization=test,
                t=t,
                p_t=p_t,
                p_holm=None,
                gained=_furthest(every, counts, 1.0),
                lost=_furthest(every, counts, -1.0),
            )
        )
    return compared


def _differences(of_baseline: Float64Array, of_system: Float64Array, counts: BoolArray) -> Float64Array:
    """Return of_system - of_baseline where queries count, else 0; ties are 0 as well."""
    a, b = np.where(counts, of_system, 0.0), np.where(counts, of_baseline, 0.0)
    differences: Float64Array = a - b
    differences[np.abs(differences) <= TIE * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return differences


def _mean(differences: Float64Array, weights: Float64Array | None) -> float | None:
    if not len(differences):
        return None
    shares = np.ones(len(differences)) if weights is None else weights
    largest = int(np.frexp(np.abs(differences).max())[1])  # the sum of large DCGs is beyond the numbers
    total = math.fsum((np.ldexp(differences, -largest) * shares).tolist())
    return math.ldexp(total / math.fsum(shares.tolist()), largest)


def _furthest(differences: Float64Array, counts: BoolArray, sign: float) -> tuple[QueryDifference, ...]:
    """Return the queries with the largest differences of one sign; of equal ones the first in the data."""
    signed = np.where(counts, differences * sign, 0.0)
    first = np.argsort(-signed, kind="stable")[:LISTED]
    return tuple(QueryDifference(int(q), float(differences[q])) for q in first if signed[q] > 0)


FLIPS_A_CALL = 2048
TOLERANCE = 1e-12


class RandomizationTest(NamedTuple):
    """What a randomization test found.

    p     : how likely a difference of means is as large, in either direction, when the systems do not differ
    flips : the sign vectors that were tried
    exact : whether these are all there are
    """

    p: float
    flips: int
    exact: bool


def randomization_test(differences: Float64Array, resampling: Resampling, pool: WorkerPool) -> RandomizationTest:
    """Test whether the mean of paired differences is 0; two-sided.

    differences : float64[n_queries], finite; where they have weights, times these

    When the systems do not differ, the sign of each query's difference is as likely the other one. p is the share of
    sign vectors under which the absolute sum of the differences is at least the one there is, less a tolerance of
    1e-12 of the sum of absolute differences. Queries without a difference change nothing. Where at most 20 differ,
    all sign vectors are tried; else p = (count + 1) / (flips + 1). Source: Fisher 1935, section 21; Smucker, Allan and
    Carterette 2007.
    """
    differing = differences[differences != 0]
    n = len(differing)
    exact = n <= EXACT_UP_TO
    n_flips = 2**n if exact else resampling.flips
    rounded, _ = whole_numbers(differing, bound_sum=True)
    # Each was rounded by up to a half, in the sum there is and in that of a sign vector.
    tolerance = max(n, int(TOLERANCE * float(np.abs(rounded).sum())))
    bound = abs(int(rounded.sum())) - tolerance
    count = n_flips if bound <= 0 else _count_extreme(rounded, bound, resampling.seed, (n_flips, exact), pool)
    return RandomizationTest(count / n_flips if exact else (count + 1) / (n_flips + 1), n_flips, exact)


def _count_extreme(rounded: Int64Array, bound: int, seed: int, flips: tuple[int, bool], pool: WorkerPool) -> int:
    """Count the sign vectors under which the sum is at least `bound`; flips: how many, and whether they are all."""
    # numba is loaded only when something is drawn: usage errors must come quickly
    from lmart.kernels.exact.bit_mixing import mix_bits
    from lmart.kernels.measures import resampling as kernels

    n_flips, exact = flips
    ranges = chunks(n_flips, FLIPS_A_CALL)
    buffers = [
        kernels.FlipBuffers(
            np.empty(kernels.TABLES * kernels.TABLE, np.int64),
            np.empty(FLIPS_A_CALL, np.uint64),
            np.empty(FLIPS_A_CALL, np.int64),
        )
        for _ in range(min(pool.threads, len(ranges)))
    ]
    # Other draws than those of the bootstrap.
    key = np.uint64(mix_bits(np.uint64(mix_bits(np.uint64(seed)))))
    calls = [(rounded, bound, key, exact, a, b) for a, b in ranges]
    return sum(pool.run(kernels.count_extreme_flips, calls, own=buffers))


@dataclass(frozen=True)
class SystemStatistics:
    """Summaries and comparisons of an evaluation.

    resamples   : of the bootstrap, as many as were drawn of all queries
    comparisons : those of a measure together; empty for one system, or when none were asked for
    all_pairs   : whether each system is compared with each one before it, not with the first only
    """

    resampling: Resampling
    resamples: int
    summaries: tuple[dict[str, Summary], ...]
    comparisons: tuple[Comparison, ...] = ()
    all_pairs: bool = False

    def add_to(self, content: dict[str, Any], result: EvaluationResult) -> None:
        """Add the statistics to an evaluation as plain JSON values, those of `EvaluationResult.to_json`."""
        drawn = {"seed": self.resampling.seed, "level": self.resampling.level, "resamples": self.resamples}
        content["resampling"] = drawn | ({"flips": self.resampling.flips} if self.comparisons else {})
        for system, summary in zip(content["systems"], self.summaries, strict=True):
            system["summary"] = {name: own.to_json() for name, own in summary.items()}
        if self.comparisons:
            content["comparisons"] = [comparison.to_json(result.query_ids) for comparison in self.comparisons]


def statistics_of(
    result: EvaluationResult, resampling: Resampling, pool: WorkerPool, compared: bool = True, all_pairs: bool = False
) -> SystemStatistics:
    """Return the summaries of each system, and the comparisons of several."""
    weights = result.weights
    if weights is not None:  # squares of large ones would be beyond the numbers; a power of two changes no mean
        weights = np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1]))
    reports = [system.report for system in result.systems]
    summaries = [summarize(report.per_query, report.values, weights, resampling, pool) for report in reports]
    comparisons: tuple[Comparison, ...] = ()
    if compared and len(result.systems) > 1:
        systems = [System(system.name, system.report.per_query) for system in result.systems]
        comparisons = compare(systems, weights, resampling, pool, all_pairs)
    resamples = resampling.resamples_of(len(result.query_ids))
    return SystemStatistics(resampling, resamples, tuple(summaries), comparisons, all_pairs)
