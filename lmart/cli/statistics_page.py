"""What the manual page on measures says of intervals and of comparing systems."""

from __future__ import annotations

from lmart.measures.resampling import (
    DEFAULT_FLIPS,
    DRAWS,
    EXACT_UP_TO,
    LEAST_RESAMPLES,
    MOST_RESAMPLES,
)

STATISTICS = """
lmart eval says how sure a mean is, and compares several systems with the first one, or with --all-pairs each two, in
each measure. d is the difference of a query's values, system less baseline, and N the number of queries that count in
both systems; those that count in one only, as with --missing skip, are left out, and counted. A difference of at most
1e-12 of the larger value is none: it may come of rounding alone.

All that is drawn by chance follows from --seed: the same seed gives the same digits on any machine and for any number
of threads. --json has every digit, and of each system the mean, median, count, standard deviation and interval of each
measure.
"""

NOTES = {
    "interval": (
        "Where the mean, or the difference of two, would lie for other queries like these: a bootstrap percentile "
        "interval.",
        (
            (
                "Method",
                "As many queries as count are drawn with replacement, --resamples times; the interval goes from the "
                "quantile (1 - level) / 2 of the means to the quantile (1 + level) / 2. Measures in which the same "
                "queries count share the draws.",
            ),
            (
                "Notes",
                f"--resamples auto is {MOST_RESAMPLES:,}, or as many as draw {DRAWS:,} queries, but "
                f"{LEAST_RESAMPLES:,} at least. Of very few queries the interval is too narrow; of a single one there "
                "is none. Six measures of 31,531 queries take about 0.8 s of one processor.",
            ),
            ("Source", "Efron and Tibshirani, An introduction to the bootstrap, Chapman and Hall 1993, section 13.3."),
        ),
    ),
    "p rand (p_randomization)": (
        "Fisher's randomization test: how likely |sum of d| is as large as it is when the systems do not differ, so "
        "that the sign of each d might as well be the other one.",
        (
            (
                "Equation",
                "(1 + #{choices of signs with |sum of s d| >= |sum of d|}) / (1 + --flips), signs s drawn; where at "
                f"most {EXACT_UP_TO} queries differ, the share of all choices of signs.",
            ),
            (
                "Notes",
                "Two-sided; the comparison allows for 1e-12 of the sum of |d|. The smallest p that "
                f"{DEFAULT_FLIPS:,} flips give is 0.00001. Of 31,531 queries they take about 0.25 s of one processor; "
                "1,000 flips of 1,000,000 queries 0.1 s.",
            ),
            (
                "Source",
                "Fisher, The design of experiments, 1935, section 21; Smucker, Allan and Carterette, A comparison of "
                "statistical significance tests for information retrieval evaluation, CIKM 2007.",
            ),
        ),
    ),
    "p t (p_t)": (
        "Paired t test, two-sided.",
        (
            ("Equation", "t = mean(d) / (sd(d) / sqrt(N)), by Student's distribution with N - 1 degrees of freedom."),
            ("Notes", "Where all d are the same, and not 0, p is 0, and t has no number in --json."),
            ("Source", "Student, The probable error of a mean, Biometrika 6(1), 1908."),
        ),
    ),
    "p holm (p_holm)": (
        "p rand adjusted for the number of comparisons in the measure: the chance that any of those up to 0.05 is so "
        "without a difference is at most 0.05.",
        (
            (
                "Equation",
                "the i-th smallest of m p values becomes the largest of (m - j + 1) p_j, j = 1..i, at most 1.",
            ),
            ("Notes", "It does not adjust for looking at several measures: choose one before you look."),
            ("Source", "Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6, 1979."),
        ),
    ),
    "win/tie/loss": ("Queries in which the system is better than the baseline, equal, and worse.", ()),
    "gained, lost": ("The queries in which the system is better, and worse, by most; five each in --json.", ()),
    "weights": (
        "With --weights w, means and their intervals are weighted, and a resample draws queries with their weights.",
        (
            (
                "Notes",
                "The randomization test takes w d for d. The t test divides the weighted mean by its standard error "
                "(Cochran, Sampling techniques, 1977, 6.13). A query of weight 0 does not count. Wins, ties and "
                "losses are numbers of queries. The median is the value that half of the weight lies below.",
            ),
        ),
    ),
}
