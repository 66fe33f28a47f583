"""What measures there are: a function each, which makes it of sums over ranked documents, and a record of its facts.

Parsing, help, the manual page and evaluation take what they need from the record. Light: loads no numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from lmart.array_types import Float64Array
    from lmart.measures.query_kernels import RankedQueries

Relevance = Literal[
    "gain", "scaled gain", "stopping probability", "relevant", "preference", "label", "being judged", "own"
]
Parameter = Literal["persistence", "largest label", "recall level", "none"]
Cutoff = Literal["needed", "may be", "none"]
Compute: TypeAlias = "Callable[[RankedQueries], Float64Array]"


@dataclass(frozen=True)
class MeasureKind:
    """A measure without its cutoff and parameters.

    meaning     : one short line; ranks in it are 1-based, relevant means label > 0
    relevance   : what a document counts: its `gain`; its `scaled gain`, by a power of two for each query, so that no
                  sum overflows; the `stopping probability` of a reader; 1 if it is `relevant`, else 0; as its
                  `preference`, 1 if it is relevant, 0 if it is judged otherwise, -1 if it is not judged; its `label`,
                  nan if it is not judged; for `being judged` 1, else 0; or what an `own` function makes of it
    compute     : returns float64[n_queries], nan where a query is empty: the conventions say what such a query counts
    parameter   : the measure's own parameter: in brackets, or for `recall level` after the @
    cutoff      : whether the measure is undefined without a cutoff, may have one, or has none
    aliases     : further names under which it is read
    conventions : names of those that only some measures go by
    is_geometric : whether the mean over queries is geometric; values of queries are then natural logarithms
    is_trained  : whether something may be trained for it
    equation    : of one query, for the manual page
    notes       : what else the manual page says
    source      : where the measure was defined
    """

    name: str
    meaning: str
    relevance: Relevance
    compute: Compute
    parameter: Parameter = "none"
    cutoff: Cutoff = "may be"
    aliases: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()
    is_geometric: bool = False
    is_trained: bool = True
    equation: str = ""
    notes: str = ""
    source: str = ""

    @property
    def uses_gain(self) -> bool:
        """Whether values depend on the gain of a label."""
        return self.relevance in ("gain", "scaled gain")

    @property
    def uses_label_scale(self) -> bool:
        """Whether values depend on L, the largest label, from which stopping probabilities come."""
        return self.parameter == "largest label"

    @property
    def is_binary(self) -> bool:
        """Whether values depend only on which documents are relevant, so that a least label may be given."""
        return self.relevance in ("relevant", "preference")

    @property
    def at_most_1(self) -> bool:
        """Whether no value exceeds 1; only a sum of gains that nothing divides, or a function, may be larger."""
        return self.relevance not in ("gain", "own")

    @property
    def lowest(self) -> float:
        """The lowest value there is: -1 for a correlation, else 0; of a function of a program it is not known."""
        return {"label": -1.0, "own": -math.inf}.get(self.relevance, 0.0)

    @property
    def counts_empty(self) -> bool:
        """Whether the conventions say what a query without a relevant document counts.

        A sum of gains, and the judged share, are defined for it as for any other; a function of a program decides.
        """
        return self.relevance not in ("gain", "being judged", "own")

    @property
    def syntax(self) -> tuple[str, ...]:
        """The forms in which the measure may be written, such as `rbp[@k]` and `rbp(R)[@k]`."""
        cutoff = {"needed": "@k", "may be": "[@k]", "none": ""}[self.cutoff]
        plain = self.name + cutoff
        if self.parameter == "persistence":
            return plain, f"{self.name}(R){cutoff}"
        if self.parameter == "largest label":
            return plain, f"{plain}(max=L)"
        return (f"{self.name}@R",) if self.parameter == "recall level" else (plain,)


KINDS: dict[str, MeasureKind] = {}
"""The measures by name, in the order of the manual page."""

_BUCKLEY = (
    "Buckley and Voorhees, Retrieval system evaluation, in TREC: Experiment and Evaluation in Information Retrieval, "
    "MIT Press 2005, chapter 3"
)
_BUCKLEY_AGAIN = "Buckley and Voorhees 2005, chapter 3"


def measure(
    name: str,
    meaning: str,
    relevance: Relevance,
    *,
    equation: str,
    source: str,
    notes: str = "",
    parameter: Parameter = "none",
    cutoff: Cutoff = "may be",
    aliases: tuple[str, ...] = (),
    conventions: tuple[str, ...] = (),
    is_geometric: bool = False,
    is_trained: bool = True,
) -> Callable[[Compute], Compute]:
    """Return a decorator that makes a function the measure of this name; the parameters are those of MeasureKind."""

    def register(compute: Compute) -> Compute:
        KINDS[name] = MeasureKind(
            name,
            meaning,
            relevance,
            compute,
            parameter,
            cutoff,
            aliases,
            conventions,
            is_geometric,
            is_trained,
            equation,
            notes,
            source,
        )
        return compute

    return register


@measure(
    "ndcg",
    "DCG divided by the DCG of the best order",
    "scaled gain",
    conventions=("discount", "short", "ideal", "empty_ndcg", "empty_weight"),
    equation="DCG@k / (DCG@k of the query's judged documents in the best order)",
    notes="Documents that are not retrieved count in the best order.",
    source="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002; "
    "with 2^label - 1 as gain, Burges et al., Learning to rank using gradient descent, ICML 2005",
)
def _ndcg(queries: RankedQueries) -> Float64Array:
    values: Float64Array = queries.dcg() / queries.ideal_dcg()
    if queries.conventions.ideal == "gain":
        values = values.clip(max=1.0)  # rounding must not lift a sum above that of the best order
    if queries.conventions.short == "zero" and queries.measure.cutoff is not None:
        values[queries.n_ranked < queries.measure.cutoff] = 0.0
    values[queries.has_no_ideal()] = float("nan")
    return values


@measure(
    "dcg",
    "sum of gain / log2(rank + 1)",
    "gain",
    conventions=("discount",),
    equation="sum over ranks i = 1..k of gain(i) / log2(i + 1)",
    source="Järvelin and Kekäläinen 2002, whose discount is 1 / log2(i) from rank 2 on; with "
    "log2(i + 1), Burges et al. 2005",
)
def _dcg(queries: RankedQueries) -> Float64Array:
    return queries.dcg()


@measure(
    "map",
    "mean precision at the ranks of the relevant documents",
    "relevant",
    aliases=("ap",),
    conventions=("map_divisor",),
    equation="(1 / R) x sum over the relevant ranks i <= k of (relevant documents at ranks 1..i) / i",
    notes="Relevant documents that are not retrieved, or below rank k, count 0. --map-divisor says by what the sum "
    "is divided when there is a k.",
    source=_BUCKLEY,
)
def _average_precision(queries: RankedQueries) -> Float64Array:
    limits = {"relevant": queries.n_relevant, "k": queries.cutoffs, "length": queries.looked_at}
    divisors = queries.n_relevant.clip(max=limits[queries.conventions.map_divisor])
    return queries.unless_empty(queries.precision_sums() / divisors.clip(min=1.0))


@measure(
    "gmap",
    "geometric mean over the queries of the values of map",
    "relevant",
    aliases=("gm_map",),
    conventions=("map_divisor",),
    is_geometric=True,
    is_trained=False,
    equation="ln(max(AP, 0.00001)), AP as in map; the mean over the queries is exp(mean)",
    notes="Values of queries, their standard deviation, and differences of systems are logarithms: a difference of "
    "0.0953 is a ratio of 1.1. Means, medians and their intervals are not. Nothing can be trained for it.",
    source="Robertson, On GMAP and other transformations, CIKM 2006; the least AP is that of trec_eval",
)
def _logarithm_of_average_precision(queries: RankedQueries) -> Float64Array:
    return _average_precision(queries)  # its logarithm is taken when empty queries have a value


@measure(
    "mrr",
    "1 / rank of the first relevant document",
    "relevant",
    aliases=("rr", "recip_rank"),
    equation="1 / (rank of the first relevant document), 0 when that is below rank k",
    source="Voorhees, The TREC-8 question answering track report, TREC-8, 1999",
)
def _reciprocal_rank(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.reciprocal_ranks())


@measure(
    "success",
    "whether a relevant document is among the first k",
    "relevant",
    cutoff="needed",
    aliases=("hit_rate", "hr"),
    equation="1 if one of the ranks 1..k is relevant, else 0; the mean is the hit rate",
    source="Craswell and Hawking, Overview of the TREC 2004 web track, TREC-13, 2004, as S@k",
)
def _success(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.successes())


@measure(
    "p",
    "share of the first k that is relevant",
    "relevant",
    cutoff="needed",
    aliases=("precision", "pre"),
    conventions=("p_divisor", "empty_p"),
    equation="(relevant documents at ranks 1..k) / k",
    notes="A shorter query is divided by k too, unless --p-divisor says otherwise.",
    source=_BUCKLEY_AGAIN,
)
def _precision(queries: RankedQueries) -> Float64Array:
    values = queries.hits() / queries.precision_divisors()
    return values if queries.conventions.empty_p == "zero" else queries.unless_empty(values)


@measure(
    "recall",
    "share of the relevant documents among the first k",
    "relevant",
    cutoff="needed",
    equation="(relevant documents at ranks 1..k) / R",
    source=_BUCKLEY_AGAIN,
)
def _recall(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.hits() / queries.n_relevant)


@measure(
    "recall_cap",
    "relevant among the first k, divided by min(k, R)",
    "relevant",
    cutoff="needed",
    aliases=("r_cap", "capped_recall"),
    equation="(relevant documents at ranks 1..k) / min(k, R)",
    notes="It reaches 1 for the best order also when R is above k, as recall does not.",
    source="Thakur et al., BEIR: a heterogeneous benchmark for zero-shot evaluation of information retrieval models, "
    "NeurIPS 2021, as R_cap@k",
)
def _capped_recall(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.hits() / queries.n_relevant.clip(max=queries.cutoffs))


@measure(
    "rprec",
    "precision at rank R, the number of relevant documents",
    "relevant",
    cutoff="none",
    aliases=("r_precision", "rprecision"),
    equation="(relevant documents at ranks 1..R) / R",
    source=_BUCKLEY_AGAIN,
)
def _r_precision(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.hits(queries.n_relevant) / queries.n_relevant)


@measure(
    "f1",
    "harmonic mean of precision and recall of the first k",
    "relevant",
    aliases=("f", "f_score", "set_f"),
    conventions=("p_divisor",),
    equation="2 P R / (P + R) with P = p@k and R = recall@k, which is 2 x (relevant documents at ranks 1..k) / (k + R)",
    notes="Without k the whole ranking counts, as in set_F of trec_eval. In a shorter query k is as --p-divisor says.",
    source="van Rijsbergen, Information retrieval, Butterworths 1979, chapter 7, with equal weights",
)
def _f1(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(2.0 * queries.hits() / (queries.precision_divisors() + queries.n_relevant))


@measure(
    "iprec",
    "interpolated precision at a recall from 0 to 1",
    "relevant",
    parameter="recall level",
    cutoff="none",
    aliases=("iprec_at_recall",),
    equation="max over ranks i with (relevant documents at ranks 1..i) >= floor(r R + 0.9) of (relevant documents at "
    "ranks 1..i) / i; 0 when so many are not retrieved",
    notes="The recall r stands after the @, as in iprec@0.1. It has no mean over the orders of equal scores: --ties "
    "average is refused.",
    source=f"{_BUCKLEY_AGAIN}; the rounding of r R is that of trec_eval",
)
def _interpolated_precision(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.interpolated_precisions())


@measure(
    "err",
    "expected 1 / rank at which a reader stops; err(max=L)",
    "stopping probability",
    parameter="largest label",
    equation="sum over ranks i = 1..k of (1 / i) x S(i) x product over ranks j < i of (1 - S(j)), with "
    "S(i) = (2^label(i) - 1) / 2^L",
    notes="L is the number in the brackets, as in err@10(max=4); without it that of the model; without a model 4, or "
    "the largest label of the data, rounded up, if that is more. --gain has no effect.",
    source="Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009",
)
def _expected_reciprocal_rank(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.expected_reciprocal_ranks())


@measure(
    "rbp",
    "rank-biased precision; rbp(R) has persistence R, else 0.8",
    "relevant",
    parameter="persistence",
    equation="(1 - r) x sum over the relevant ranks i <= k of r^(i - 1)",
    notes="The persistence r is 0.8, or the number in the brackets, as in rbp(0.95)@20, or a decimal below 1 after "
    "the @, as in rbp@0.95. No tool of the presets computes it; ir_measures does so by cwl-eval, to the same value "
    "for RBP(rel=1,p=0.8) of whole rankings, but without rel= it counts grades.",
    source="Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, ACM TOIS 27(1), 2008",
)
def _rank_biased_precision(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.rank_biased_sums())


@measure(
    "bpref",
    "share of judged irrelevant documents below the relevant ones",
    "preference",
    cutoff="none",
    equation="(1 / R) x sum over the relevant ranks i of 1 - min(judged documents above i that are not relevant, "
    "R) / min(R, N), with N judged documents that are not relevant; unjudged documents do not count",
    source="Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004; the divisor "
    "min(R, N) is that of trec_eval",
)
def _binary_preference(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.preference_sums() / queries.n_relevant)


@measure(
    "auc",
    "share of pairs of different relevance in the right order",
    "preference",
    cutoff="none",
    aliases=("roc_auc",),
    equation="(pairs of a relevant and another judged document of which the relevant one has the higher score, and "
    "half of those of equal score) / (R N), with N judged documents that are not relevant",
    notes="A query without a relevant document, or without one that is not, is empty. Equal scores count a half, "
    "whatever --ties says; documents that are not retrieved rank below all others.",
    source="Hanley and McNeil, The meaning and use of the area under a receiver operating characteristic (ROC) curve, "
    "Radiology 143, 1982",
)
def _area_under_curve(queries: RankedQueries) -> Float64Array:
    return queries.unless_empty(queries.ordered_pairs() / (queries.n_relevant * queries.n_others))


@measure(
    "kendall",
    "Kendall's tau-b of scores and labels, from -1 to 1",
    "label",
    cutoff="none",
    notes="A query whose judged documents have one label is an empty one. Equal scores are ties, whatever --ties says.",
    equation="(C - D) / sqrt((P - T) x (P - U)), over the P pairs of judged documents: C in the same order by "
    "score and label, D in opposite orders, T of equal score, U of equal label; 0 when all scores are equal",
    source="Kendall, The treatment of ties in ranking problems, Biometrika 33(3), 1945; computed as in Knight, "
    "A computer method for calculating Kendall's tau with ungrouped data, JASA 61, 1966",
)
def _kendall(queries: RankedQueries) -> Float64Array:
    return queries.rank_correlations()


@measure(
    "judged",
    "share of the first k that is judged",
    "being judged",
    is_trained=False,
    equation="(judged documents at ranks 1..k) / min(k, n), with n documents that are ranked",
    notes="It says how far the other measures can be trusted. Nothing can be trained for it. A document with a label "
    "below 0 is not judged, as in trec_eval; to ir_measures it is.",
    source="as Judged@k of ir_measures",
)
def _judged(queries: RankedQueries) -> Float64Array:
    values: Float64Array = queries.hits() / queries.looked_at.clip(min=1.0)
    return values


def kind_named(name: str) -> MeasureKind | None:
    """Return the kind of this name or alias; None when there is none."""
    return next((kind for kind in KINDS.values() if name == kind.name or name in kind.aliases), None)


def names_with(parameter: Parameter) -> str:
    """Return the names of the measures with a parameter of their own, for messages."""
    return " and ".join(kind.name for kind in KINDS.values() if kind.parameter == parameter)


def names_by(convention: str) -> str:
    """Return the measures that go by a convention, with their cutoff, for messages."""
    return " and ".join(f"{kind.name}@k" for kind in KINDS.values() if convention in kind.conventions)
