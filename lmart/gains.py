"""Gains of labels and discounts of ranks, shared by the objectives and the measures.

Everything here comes out with the same bits on any machine: integer arithmetic, or single IEEE operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lmart.decimals import decimal
from lmart.errors import DataError, SettingsError, counted, quote, shown
from lmart.foreign_names import perhaps

# NumPy is imported where numbers are worked out: `lmart --help` needs only the names of gains, in half the time.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lmart.array_types import Float64Array, Int64Array

LN2 = 0.6931471805599453
LN2_BITS = 160
SMALLEST_GRADE_SCALE = 4
LARGE_LABEL = 31  # from which on LightGBM and XGBoost refuse labels with the gain exp2
GAIN_MEANINGS = {"exp2": "2^label - 1", "linear": "the label", "table": "by label, from 0 up"}
"""What each kind of gain is, in a few words."""


@dataclass(frozen=True)
class Gain:
    """The gain of a label: 2^label - 1 (`exp2`), the label (`linear`), or the entry of a table (`0,1,3,7`).

    Prints and parses back: `Gain.parse(str(gain)) == gain`.
    """

    kind: str = "exp2"
    table: tuple[float, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Gain:
        """Parse `exp2`, `linear` or `G0,G1,...`; SettingsError when it is none of them."""
        if text in ("exp2", "linear"):
            return cls(text)
        table = [decimal(entry) for entry in text.split(",")]
        if None in table:
            hint = perhaps("gain", text, ("exp2", "linear"))
            raise SettingsError(f"gain {quote(text)} is not 'exp2', 'linear' or numbers such as '0,1,3,7,15'{hint}")
        return cls.of_table([gain for gain in table if gain is not None])

    @classmethod
    def of(cls, value: object) -> Gain:
        """Return the gain that a program gives: a Gain, its text, or the entries of a table, by label."""
        if isinstance(value, Gain | str):
            return value if isinstance(value, Gain) else cls.parse(value)
        try:
            table = [float(entry) for entry in value]  # type: ignore[attr-defined]
        except (TypeError, ValueError, OverflowError):
            what = f"gain is {shown(value)}, which is not 'exp2', 'linear' or numbers such as [0, 1, 3, 7, 15]"
            raise SettingsError(what) from None
        return cls.of_table(table)

    @classmethod
    def of_table(cls, table: Sequence[float]) -> Gain:
        """Return the gain with these entries, by label from 0 up; SettingsError when they are no gains."""
        if len(table) < 2:
            raise SettingsError(f"the gain table has {counted(len(table), 'entry')}; give one for each label from 0 up")
        for gain in table:
            if not 0 <= gain < math.inf:
                entry = quote(f"{gain:.15g}")
                raise SettingsError(f"the gain table has the entry {entry}; use finite numbers from 0 up")
        return cls("table", tuple(table))

    def simplest(self) -> Gain:
        """Return exp2 or linear where the table has just these gains, as tools write that know no words for them."""
        labels = range(len(self.table))
        if self.kind != "table":
            return self
        if self.table == tuple(float(2 ** min(label, 1023) - 1) for label in labels):
            return Gain()
        return Gain("linear") if self.table == tuple(map(float, labels)) else self

    def __str__(self) -> str:
        return self.kind if self.kind != "table" else ",".join(_shortest(g) for g in self.table)

    def check_labels(self, labels: Float64Array) -> None:
        """Raise DataError when a gain table has no entry for one of the labels."""
        import numpy as np

        if self.kind != "table" or not len(labels):
            return
        bad = (labels != np.floor(labels)) | (labels >= len(self.table))
        if bad.any():
            label = _shortest(float(labels[np.argmax(bad)]))
            raise DataError(
                f"label {label} has no entry in the gain table, which covers 0 to {len(self.table) - 1}; "
                "give a longer --gain table, or use exp2 or linear"
            )

    def remark(self, largest_label: float) -> str | None:
        """Return a warning when labels are so large that only the largest count; None when they are not."""
        if self.kind != "exp2" or largest_label < LARGE_LABEL:
            return None
        what = f"labels go up to {_shortest(float(largest_label))}, and with the gain exp2 each level counts twice"
        return f"{what} the level below it, so only the largest labels matter; give --gain linear if they are no grades"

    def of_labels(self, labels: Float64Array) -> Float64Array:
        """Return the gain of each label, float64; infinite where 2^label is. DataError when a table is too short."""
        import numpy as np

        self.check_labels(labels)
        if self.kind == "linear":
            return labels.copy()
        if self.kind == "table":
            entries: Float64Array = np.asarray(self.table)[labels.astype(np.int64)]
            return entries
        return _power_of_two(np.minimum(labels, 2.0**40), np.zeros(len(labels), np.int64)) - 1.0

    def scaled(self, labels: Float64Array, query_offsets: Int64Array) -> Float64Array:
        """Return gains in which each query is scaled by a power of two of its own, so that sums cannot overflow.

        Ratios of gains inside a query, and with them NDCG and its swaps, stay as they are; a query's largest gain is
        at most 1. labels : float64[n_documents]; query_offsets : int64[n_queries + 1]; returns float64[n_documents].
        """
        import numpy as np

        self.check_labels(labels)
        if not len(labels):
            return np.zeros(0)
        gains, exponents = self._exponents(labels, query_offsets)
        if self.kind == "exp2":
            return _power_of_two(np.minimum(labels, 2.0**40), exponents) - np.ldexp(1.0, -np.minimum(exponents, 1100))
        half = exponents // 2  # in two steps, as 2^1074 is no double
        scaled: Float64Array = np.ldexp(np.ldexp(gains, -half), half - exponents)
        return scaled

    def units(self, labels: Float64Array, query_offsets: Int64Array) -> Float64Array:
        """Return the factor of `scaled`, float64[n_documents]: a power of two for each query, at most 2^1000."""
        import numpy as np

        if not len(labels):
            return np.zeros(0)
        _, exponents = self._exponents(labels, query_offsets)
        units: Float64Array = np.ldexp(1.0, -np.clip(exponents, -1000, 1100))
        return units

    def _exponents(self, labels: Float64Array, query_offsets: Int64Array) -> tuple[Float64Array, npt.NDArray[np.int64]]:
        """Return gains, or labels for exp2, float64[n], and the exponent that the query is scaled down by, int64[n]."""
        import numpy as np

        sizes = np.diff(query_offsets)
        filled = np.flatnonzero(sizes)
        gains = labels if self.kind == "exp2" else self.of_labels(labels)
        largest = np.zeros(len(sizes))
        largest[filled] = np.maximum.reduceat(gains, query_offsets[:-1][filled])
        # Labels beyond 2^40 differ by more than a double can represent; the clip only keeps the exponent an integer.
        rounded_up = np.ceil(np.minimum(largest, 2.0**40)) if self.kind == "exp2" else np.frexp(largest)[1]
        return gains, np.repeat(rounded_up.astype(np.int64), sizes)


def _shortest(number: float) -> str:
    return str(int(number)) if number == math.floor(number) and abs(number) < 1e15 else repr(number)


def _power_of_two(labels: Float64Array, exponents: npt.NDArray[np.int64]) -> Float64Array:
    """Return 2^(labels - exponents), exact for integer labels, else within 2 units in the last place.

    The fraction's power is a Taylor sum of single multiplications and additions, so no processor rounds otherwise.
    """
    import numpy as np

    rounded_down = np.floor(labels)
    x = (labels - rounded_down) * LN2
    power = np.ones_like(x)
    for k in range(20, 0, -1):
        power = power * x / k + 1.0
    shift = np.clip(rounded_down.astype(np.int64) - exponents, -1100, 1100)
    with np.errstate(over="ignore", under="ignore"):
        scaled: Float64Array = np.ldexp(power, shift)
    return scaled


def grade_scale(labels: Float64Array) -> int:
    """Return L of expected reciprocal rank: 4, or the largest label rounded up when that is more."""
    return max(SMALLEST_GRADE_SCALE, math.ceil(float(labels.max(initial=0.0))))


def refuse_labels_above(labels: Float64Array, scale: int, input_rows: Int64Array | None = None) -> None:
    """Raise DataError when a label is above the largest label given for expected reciprocal rank.

    labels     : float64[n_documents]
    scale      : the largest label given
    input_rows : int64[n_documents], the row of the input, from 0, of each document; None: the documents' own order
    """
    import numpy as np

    above = np.flatnonzero(labels > scale)
    if len(above):
        row = int(above[0]) if input_rows is None else int(input_rows[above].min())
        first = row if input_rows is None else int(np.flatnonzero(input_rows == row)[0])
        what = f"row {row + 1} has the label {_shortest(float(labels[first]))}, above the largest label {scale} of err"
        raise DataError(f"{what}; give a larger max, as in err(max={grade_scale(labels)})")


def stop_probabilities(labels: Float64Array, scale: int | None = None) -> Float64Array:
    """Return how likely a reader stops at each document, (2^label - 1) / 2^scale (Chapelle et al. 2009), float64[n]."""
    import numpy as np

    largest = float(scale or grade_scale(labels))
    scale_of_all = np.append(labels, largest)  # one query of everything, and a label that holds the scale
    return Gain("exp2").scaled(scale_of_all, np.array([0, len(scale_of_all)]))[:-1]


def discount_table(n: int) -> Float64Array:
    """Return 1/log2(rank + 2) for ranks 0..n-1, float64[n], each correctly rounded (Järvelin and Kekäläinen 2002)."""
    size = 64
    while size < n:
        size *= 2
    return _discounts(size)[:n]


@lru_cache(maxsize=8)
def _discounts(n: int) -> Float64Array:
    import numpy as np

    # ln j - ln(j-1) = 2 atanh(1/(2j-1)), summed as integers of 160 fraction bits; int / int rounds correctly.
    unit = 1 << LN2_BITS
    logarithm = 0
    ln2 = 0
    table = np.empty(n)
    for j in range(2, n + 2):
        base = 2 * j - 1
        square = base * base
        term = unit // base
        k = 1
        while term:
            logarithm += 2 * term // k
            term //= square
            k += 2
        if j == 2:
            ln2 = logarithm
        table[j - 2] = ln2 / logarithm
    table.setflags(write=False)
    return table
