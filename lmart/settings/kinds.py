"""What objectives and forms of trees there are: one record each, for help, checks and training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from lmart.errors import SettingsError

ObjectiveName = Literal["lambdamart", "ranknet", "lambdaloss", "map", "mrr", "err", "xendcg", "yetirank"]
TreeName = Literal["leafwise", "depthwise", "oblivious"]
"""The names of the records below, for programs that check types; a test holds them together."""
Relevance = Literal["gain", "order of gains", "label", "relevant", "stopping probability"]


@dataclass(frozen=True)
class ObjectiveKind:
    """An objective.

    meaning     : one line for help and man pages, without what it ignores
    relevance   : what documents are ordered by: their `gain`; the `order of gains` alone; their `label`; 1 if they are
                  `relevant` (label above 0), else 0; or the `stopping probability` of a reader, as in the measure err
    whole_query : it is a cost of whole queries, to which truncation and normalize mean nothing
    positions   : it can learn a bias of positions
    random      : it draws by chance in each round
    module      : the file in training/objectives whose class OBJECTIVE computes it
    function    : of a Python program, that computes it
    """

    name: str
    meaning: str
    relevance: Relevance = "gain"
    whole_query: bool = False
    positions: bool = False
    random: bool = False
    module: str = "pairs"
    function: Callable[..., Any] | None = None

    @property
    def ignored(self) -> tuple[str, ...]:
        """The settings that mean nothing to it, whatever their values."""
        if self.function is not None:
            return ("truncation", "sigma", "normalize", "gain")
        of_queries = ("truncation", "normalize") if self.whole_query else ()
        return of_queries if self.relevance in ("gain", "order of gains") else (*of_queries, "gain")

    @property
    def help(self) -> str:
        """The meaning, and the options that it ignores."""
        ignored = " and ".join(f"--{name}" for name in self.ignored)
        return self.meaning + (f"; ignores {ignored}" if ignored else "")


@dataclass(frozen=True)
class TreeForm:
    """A form of trees.

    by_level  : leaves of a level are split before those of the next one; else the leaf with the highest gain of all
    oblivious : all leaves of a level have the same split
    """

    name: str
    by_level: bool = False
    oblivious: bool = False

    @property
    def is_usual(self) -> bool:
        """Whether this is the usual form, which reports need not name: the leaf with the highest gain is split."""
        return not (self.by_level or self.oblivious)


_OBJECTIVES = (
    ObjectiveKind("lambdamart", "by pairs, each weighted by how much swapping it would change NDCG", positions=True),
    ObjectiveKind("ranknet", "by pairs, all of weight 1; only the order of the gains matters", "order of gains"),
    ObjectiveKind(
        "lambdaloss",
        "by pairs, NDCG-Loss2++ (LambdaLoss): the weight of lambdamart plus 10 times a weight that depends "
        "on the rank distance of the pair; use --no-normalize, as in the paper",
    ),
    ObjectiveKind(
        "map",
        "by pairs of a relevant document (label above 0) and one that is not, each weighted by how much swapping it "
        "would change average precision",
        "relevant",
    ),
    ObjectiveKind(
        "mrr", "by pairs like map, weighted by the change of 1 / rank of the first relevant document", "relevant"
    ),
    ObjectiveKind(
        "err",
        "by pairs, each weighted by how much swapping it would change expected reciprocal rank",
        "stopping probability",
    ),
    ObjectiveKind(
        "xendcg",
        "by whole queries, XE-NDCG: the cross entropy between the distribution of gains, with new noise in each "
        "round, and the softmax of scores",
        whole_query=True,
        random=True,
        module="xendcg",
    ),
    ObjectiveKind(
        "yetirank",
        "by pairs of neighbours in 10 random orders of each query, drawn in each round by scores plus noise; "
        "a pair is weighted by the difference of its labels times 0.85^rank; pairs below rank --truncation do not "
        "count",
        "label",
        random=True,
        module="yetirank",
    ),
)

OBJECTIVES = {kind.name: kind for kind in _OBJECTIVES}
LISTNET = ObjectiveKind("listnet", "by whole queries: xendcg without noise", whole_query=True, module="listnet")
"""The objective of the linear ranker, which trees are not fitted to."""


def own_objective(name: str, function: Callable[..., Any]) -> ObjectiveKind:
    """Return the objective that a function of a Python program computes; see `training.objectives.own`."""
    return ObjectiveKind(name, "a function of Python", "label", whole_query=True, module="own", function=function)


WITH_POSITIONS = tuple(kind.name for kind in _OBJECTIVES if kind.positions)

_TREE_FORMS = (TreeForm("leafwise"), TreeForm("depthwise", by_level=True), TreeForm("oblivious", oblivious=True))
TREE_FORMS = {form.name: form for form in _TREE_FORMS}
LINEAR = TreeForm("linear")
"""The form of the trees of the linear ranker: each is a step function of one feature."""


def check_positions(objective: str) -> None:
    """Raise SettingsError when an objective, or several with + between, cannot learn a bias of positions."""
    if objective not in WITH_POSITIONS:
        raise SettingsError(f"objective {objective} knows no positions; use {' or '.join(WITH_POSITIONS)}")
