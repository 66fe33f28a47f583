"""What measures there are: one record each, from which parsing, help and evaluation take what they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Relevance = Literal["gain", "scaled gain", "stopping probability", "relevant"]
Discount = Literal["log2", "none", "geometric"]
Kernel = Literal["discounted_sums", "precision_sums", "reciprocal_ranks", "expected_reciprocal_ranks"]
Divisor = Literal["ideal DCG", "relevant documents", "cutoff", "none"]
Parameter = Literal["persistence", "largest label", "none"]


@dataclass(frozen=True)
class MeasureKind:
    """A measure without its cutoff and parameter.

    name         : as it is written, such as `ndcg`
    meaning      : one line for help and man pages; ranks in it are 1-based, relevant means label > 0
    relevance    : what a document counts: its `gain`; its `scaled gain`, by a power of two for each query, so that no
                   sum overflows; the `stopping probability` of a reader; or 1 if it is `relevant`, else 0
    divisor      : what the kernel's sum of a query is divided by
    discount     : factor of each 0-based rank: `log2` 1 / log2(rank + 2), `geometric` (1 - r) r^rank with r the
                   persistence, `none` 1; only `discounted_sums` has one
    kernel       : name of the function in lmart.kernels.measures
    parameter    : the measure's own parameter, in brackets
    needs_cutoff : whether the measure is undefined without a cutoff
    aliases      : further names under which it is read
    """

    name: str
    meaning: str
    relevance: Relevance
    divisor: Divisor = "none"
    discount: Discount = "none"
    kernel: Kernel = "discounted_sums"
    parameter: Parameter = "none"
    needs_cutoff: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def uses_gain(self) -> bool:
        """Whether values depend on the gain of a label."""
        return self.relevance in ("gain", "scaled gain")

    @property
    def uses_label_scale(self) -> bool:
        """Whether values depend on L, the largest label, from which stopping probabilities come."""
        return self.parameter == "largest label"

    @property
    def at_most_1(self) -> bool:
        """Whether values lie between 0 and 1; only a sum of gains that nothing divides may be larger.

        Such a sum is defined for queries without a relevant document too: it is 0.
        """
        return self.relevance != "gain"

    @property
    def syntax(self) -> tuple[str, ...]:
        """The forms in which the measure may be written, such as `rbp[@k]` and `rbp(R)[@k]`."""
        cutoff = "@k" if self.needs_cutoff else "[@k]"
        plain = self.name + cutoff
        if self.parameter == "persistence":
            return plain, f"{self.name}(R){cutoff}"
        if self.parameter == "largest label":
            return plain, f"{plain}(max=L)"
        return (plain,)


_ALL = (
    MeasureKind(
        "ndcg",
        "DCG divided by the DCG of the best order of the query's documents",
        "scaled gain",
        divisor="ideal DCG",
        discount="log2",
    ),
    MeasureKind("dcg", "sum of gain / log2(rank + 1)", "gain", discount="log2"),
    MeasureKind(
        "map",
        "mean over the relevant documents of the precision at their ranks; those below rank k count 0",
        "relevant",
        divisor="relevant documents",
        kernel="precision_sums",
        aliases=("ap",),
    ),
    MeasureKind(
        "mrr",
        "1 / rank of the first relevant document; 0 when it is below rank k",
        "relevant",
        kernel="reciprocal_ranks",
        aliases=("rr", "recip_rank"),
    ),
    MeasureKind(
        "p",
        "relevant documents among the first k, divided by k, also when the query is shorter",
        "relevant",
        divisor="cutoff",
        needs_cutoff=True,
        aliases=("precision", "pre"),
    ),
    MeasureKind(
        "recall",
        "relevant documents among the first k, divided by all relevant ones of the query",
        "relevant",
        divisor="relevant documents",
        needs_cutoff=True,
    ),
    MeasureKind(
        "err",
        "expected 1 / rank at which a reader stops, who stops at a document with (2^label - 1) / 2^L; "
        "L is 4, or the data's largest label rounded up when that is more, or what is in brackets, as in err@10(max=5)",
        "stopping probability",
        kernel="expected_reciprocal_ranks",
        parameter="largest label",
    ),
    MeasureKind(
        "rbp",
        "rank-biased precision, (1 - r) x sum over the relevant documents of r^(rank - 1); r is 0.8, "
        "or what is in brackets, as in rbp(0.95)",
        "relevant",
        discount="geometric",
        parameter="persistence",
    ),
)

KINDS = {kind.name: kind for kind in _ALL}


def kind_named(name: str) -> MeasureKind | None:
    """Return the kind of this name or alias; None when there is none."""
    return next((kind for kind in KINDS.values() if name == kind.name or name in kind.aliases), None)


def names_with(parameter: Parameter) -> str:
    """Return the names of the measures with a parameter of their own, for messages."""
    return " and ".join(kind.name for kind in KINDS.values() if kind.parameter == parameter)
