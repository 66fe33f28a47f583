"""What measures there are: one record each, of which parsing, help, the manual page and evaluation take a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Relevance = Literal["gain", "scaled gain", "stopping probability", "relevant", "preference", "label", "being judged"]
Discount = Literal["log2", "none", "geometric"]
Kernel = Literal[
    "discounted_sums",
    "precision_sums",
    "reciprocal_ranks",
    "expected_reciprocal_ranks",
    "preference_sums",
    "rank_correlations",
]
Divisor = Literal[
    "ideal DCG", "relevant documents", "relevant documents to the cutoff", "cutoff", "documents to the cutoff", "none"
]
Parameter = Literal["persistence", "largest label", "none"]
Cutoff = Literal["needed", "may be", "none"]


@dataclass(frozen=True)
class MeasureKind:
    """A measure without its cutoff and parameters.

    name         : as it is written, such as `ndcg`
    meaning      : one short line; ranks in it are 1-based, relevant means label > 0
    relevance    : what a document counts: its `gain`; its `scaled gain`, by a power of two for each query, so that no
                   sum overflows; the `stopping probability` of a reader; 1 if it is `relevant`, else 0; as its
                   `preference`, 1 if it is relevant, 0 if it is judged otherwise, -1 if it is not judged; its `label`,
                   nan if it is not judged; or for `being judged` 1, else 0
    divisor      : what the kernel's sum of a query is divided by
    discount     : factor of each 0-based rank: `log2` 1 / log2(rank + 2), or another that the conventions say;
                   `geometric` (1 - r) r^rank with r the persistence; `none` 1; only `discounted_sums` has one
    kernel       : name of the function in lmart.kernels.measures
    parameter    : the measure's own parameter, in brackets
    cutoff       : whether the measure is undefined without a cutoff, may have one, or has none
    aliases      : further names under which it is read
    equation     : of one query, for the manual page
    notes        : what else the manual page says
    source       : where the measure was defined
    """

    name: str
    meaning: str
    relevance: Relevance
    divisor: Divisor = "none"
    discount: Discount = "none"
    kernel: Kernel = "discounted_sums"
    parameter: Parameter = "none"
    cutoff: Cutoff = "may be"
    aliases: tuple[str, ...] = ()
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
        """Whether no value exceeds 1; only a sum of gains that nothing divides may be larger."""
        return self.relevance != "gain"

    @property
    def lowest(self) -> float:
        """The lowest value there is: -1 for a correlation, else 0."""
        return -1.0 if self.relevance == "label" else 0.0

    @property
    def is_of_order(self) -> bool:
        """Whether the order of judged documents matters, so that something may be trained for it."""
        return self.relevance != "being judged"

    @property
    def counts_empty(self) -> bool:
        """Whether the conventions say what a query without a relevant document counts.

        A sum of gains, and the judged share, are defined for it as for any other.
        """
        return self.relevance not in ("gain", "being judged")

    @property
    def syntax(self) -> tuple[str, ...]:
        """The forms in which the measure may be written, such as `rbp[@k]` and `rbp(R)[@k]`."""
        cutoff = {"needed": "@k", "may be": "[@k]", "none": ""}[self.cutoff]
        plain = self.name + cutoff
        if self.parameter == "persistence":
            return plain, f"{self.name}(R){cutoff}"
        if self.parameter == "largest label":
            return plain, f"{plain}(max=L)"
        return (plain,)


_ALL = (
    MeasureKind(
        "ndcg",
        "DCG divided by the DCG of the best order",
        "scaled gain",
        divisor="ideal DCG",
        discount="log2",
        equation="DCG@k / (DCG@k of the query's judged documents in the best order)",
        notes="Documents that are not retrieved count in the best order.",
        source="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002; "
        "with 2^label - 1 as gain, Burges et al., Learning to rank using gradient descent, ICML 2005",
    ),
    MeasureKind(
        "dcg",
        "sum of gain / log2(rank + 1)",
        "gain",
        discount="log2",
        equation="sum over ranks i = 1..k of gain(i) / log2(i + 1)",
        source="Järvelin and Kekäläinen 2002, whose discount is 1 / log2(i) from rank 2 on; with "
        "log2(i + 1), Burges et al. 2005",
    ),
    MeasureKind(
        "map",
        "mean precision at the ranks of the relevant documents",
        "relevant",
        divisor="relevant documents to the cutoff",
        kernel="precision_sums",
        aliases=("ap",),
        equation="(1 / R) x sum over the relevant ranks i <= k of (relevant documents at ranks 1..i) / i",
        notes="Relevant documents that are not retrieved, or below rank k, count 0. --map-divisor says by what the sum "
        "is divided when there is a k.",
        source="Buckley and Voorhees, Retrieval system evaluation, in TREC: Experiment and Evaluation in Information "
        "Retrieval, MIT Press 2005, chapter 3",
    ),
    MeasureKind(
        "mrr",
        "1 / rank of the first relevant document",
        "relevant",
        kernel="reciprocal_ranks",
        aliases=("rr", "recip_rank"),
        equation="1 / (rank of the first relevant document), 0 when that is below rank k",
        source="Voorhees, The TREC-8 question answering track report, TREC-8, 1999",
    ),
    MeasureKind(
        "p",
        "share of the first k that is relevant",
        "relevant",
        divisor="cutoff",
        cutoff="needed",
        aliases=("precision", "pre"),
        equation="(relevant documents at ranks 1..k) / k",
        notes="A shorter query is divided by k too, unless --p-divisor says otherwise.",
        source="Buckley and Voorhees 2005, chapter 3",
    ),
    MeasureKind(
        "recall",
        "share of the relevant documents among the first k",
        "relevant",
        divisor="relevant documents",
        cutoff="needed",
        equation="(relevant documents at ranks 1..k) / R",
        source="Buckley and Voorhees 2005, chapter 3",
    ),
    MeasureKind(
        "err",
        "expected 1 / rank at which a reader stops; err(max=L)",
        "stopping probability",
        kernel="expected_reciprocal_ranks",
        parameter="largest label",
        equation="sum over ranks i = 1..k of (1 / i) x S(i) x product over ranks j < i of (1 - S(j)), with "
        "S(i) = (2^label(i) - 1) / 2^L",
        notes="L is what is in the brackets, as in err@10(max=4); else that of the model; else 4, or the largest label "
        "of the data rounded up when that is more. Gains do not count.",
        source="Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009",
    ),
    MeasureKind(
        "rbp",
        "rank-biased precision; rbp(R) with persistence R, else 0.8",
        "relevant",
        discount="geometric",
        parameter="persistence",
        equation="(1 - r) x sum over the relevant ranks i <= k of r^(i - 1)",
        notes="The persistence r is 0.8, or the number in the brackets, as in rbp(0.95)@20, or a decimal below 1 after "
        "the @, as in rbp@0.95.",
        source="Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, ACM TOIS 27(1), "
        "2008",
    ),
    MeasureKind(
        "bpref",
        "share of the judged others that relevant documents precede",
        "preference",
        divisor="relevant documents",
        kernel="preference_sums",
        cutoff="none",
        equation="(1 / R) x sum over the relevant ranks i of 1 - min(judged documents above i that are not relevant, "
        "R) / min(R, N), with N judged documents that are not relevant; unjudged documents do not count",
        source="Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004; the divisor "
        "min(R, N) is that of trec_eval",
    ),
    MeasureKind(
        "kendall",
        "Kendall's tau-b of scores and labels, from -1 to 1",
        "label",
        kernel="rank_correlations",
        cutoff="none",
        notes="A query whose judged documents have one label is an empty one. Equal scores are ties, whatever --ties "
        "says.",
        equation="(C - D) / sqrt((P - T) x (P - U)), over the P pairs of judged documents: C in the same order by "
        "score and label, D in opposite orders, T of equal score, U of equal label; 0 when all scores are equal",
        source="Kendall, The treatment of ties in ranking problems, Biometrika 33(3), 1945; computed as in Knight, "
        "A computer method for calculating Kendall's tau with ungrouped data, JASA 61, 1966",
    ),
    MeasureKind(
        "judged",
        "share of the first k that is judged",
        "being judged",
        divisor="documents to the cutoff",
        equation="(judged documents at ranks 1..k) / min(k, n), with n documents that are ranked",
        notes="It says how far the other measures can be trusted. Nothing can be trained for it.",
        source="as Judged@k of ir_measures",
    ),
)

KINDS = {kind.name: kind for kind in _ALL}


def kind_named(name: str) -> MeasureKind | None:
    """Return the kind of this name or alias; None when there is none."""
    return next((kind for kind in KINDS.values() if name == kind.name or name in kind.aliases), None)


def names_with(parameter: Parameter) -> str:
    """Return the names of the measures with a parameter of their own, for messages."""
    return " and ".join(kind.name for kind in KINDS.values() if kind.parameter == parameter)
