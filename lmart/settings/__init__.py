"""The settings of training.

As they are given (`train_settings`), the records of what can be named in them (`kinds`), how several rankers differ
(`recipe`), and as training uses them (`resolved`).
"""

from lmart.settings.kinds import OBJECTIVES, TREE_FORMS, WITH_POSITIONS, ObjectiveKind, TreeForm
from lmart.settings.train_settings import AUTO, RECORDED, TrainSettings, in_words, options, range_in_words, setting

__all__ = [
    "AUTO",
    "OBJECTIVES",
    "RECORDED",
    "TREE_FORMS",
    "WITH_POSITIONS",
    "ObjectiveKind",
    "TrainSettings",
    "TreeForm",
    "in_words",
    "options",
    "range_in_words",
    "setting",
]
