"""The best split of a histogram, and the parting of a leaf's documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Shorts = npt.NDArray[np.int16]

# A gain below this share of its terms is rounding, not gain.
ROUNDING = 1e-13


@kernel
def best_splits(
    histogram: Longs,
    bin_offsets: Longs,
    has_missing: Flags,
    all_finite: Flags,
    total: int,
    l2: float,
    min_hessian: float,
    first: int,
    last: int,
    gains: Floats,
    codes: Shorts,
    missing_left: Flags,
    left_totals: Longs,
) -> None:
    """Write the best split of each feature in first..last, documents uncounted.

    histogram      : int64[n_bins], packed sums, in      bin_offsets : int64[m + 1], in
    has_missing    : bool[m], the last bin is that of missing values, in
    all_finite     : bool[m], no value is infinite, so that 'every number left, missing right' has a threshold, in
    total          : packed sum of the leaf, in          l2, min_hessian : float64, in units of the low half, in
    gains          : float64[m], out, -inf without a split; in units, so that no setting makes it overflow
    codes          : int16[m], out, left is code <= this; missing_left : bool[m], out
    left_totals    : int64[m], out, packed sum of the left side
    Equation: GL^2/(HL + l2) + GR^2/(HR + l2) - G^2/(H + l2), strictly above 0, HL and HR at least min_hessian.
    Source: Chen and Guestrin 2016, equation 7, without the 1/2. Ties: lowest code, then missing right.
    Parallel: the caller runs ranges of features side by side. Cost: O(bins).
    """
    left = np.empty(256, np.int64)
    value = np.empty(256, np.float64)
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    parent = total_g * total_g / (total_h + l2) if total_h + l2 > 0.0 else 0.0
    for f in range(first, last):
        start = bin_offsets[f]
        n_values = bin_offsets[f + 1] - start
        missing = np.int64(0)
        n_cuts = n_values - 1
        if has_missing[f]:
            n_values -= 1
            missing = histogram[start + n_values]
            n_cuts = n_values if all_finite[f] else n_values - 1
        running = np.int64(0)
        for b in range(n_cuts):
            running += histogram[start + b]
            left[b] = running
        best = -np.inf
        best_code = -1
        best_left = False
        for side in range(2 if missing != 0 else 1):
            for b in range(n_cuts):
                packed = left[b] + (missing if side == 1 else 0)
                left_g = np.float64(packed >> 32)
                left_h = np.float64(packed & 0xFFFFFFFF)
                right_g = total_g - left_g
                right_h = total_h - left_h
                allowed = left_h >= min_hessian and right_h >= min_hessian
                left_h += l2
                right_h += l2
                both = left_h * right_h  # one division instead of two, since it is what takes time
                gain = (left_g * left_g * right_h + right_g * right_g * left_h) / both
                value[b] = gain if allowed and both > 0.0 else -np.inf
            for b in range(n_cuts):
                if value[b] > best or (value[b] == best and b < best_code):
                    best = value[b]
                    best_code = b
                    best_left = side == 1
        gains[f] = best - parent if best - parent > ROUNDING * best else -np.inf
        codes[f] = best_code
        missing_left[f] = best_left
        if best_code >= 0:
            left_totals[f] = left[best_code] + (missing if best_left else 0)


@kernel
def best_counted_split(
    histogram: Longs,
    counts: Longs,
    start: int,
    n_bins: int,
    has_missing: bool,
    all_finite: bool,
    total: int,
    l2: float,
    min_hessian: float,
    min_docs: int,
) -> tuple[float, int, bool, int]:
    """Return (gain, code, missing left, left total) of one feature's best split with min_docs documents on each side.

    As `best_splits`, with counts : int64[>= n_bins], the documents of each code in the leaf.
    """
    total_g = np.float64(total >> 32)
    total_h = np.float64(total & 0xFFFFFFFF)
    parent = total_g * total_g / (total_h + l2) if total_h + l2 > 0.0 else 0.0
    documents = np.int64(0)
    for b in range(n_bins):
        documents += counts[b]
    missing = np.int64(0)
    missing_documents = np.int64(0)
    n_cuts = n_bins - 1
    if has_missing:
        missing = histogram[start + n_bins - 1]
        missing_documents = counts[n_bins - 1]
        n_cuts = n_bins - 1 if all_finite else n_bins - 2
    best = -np.inf
    best_code = -1
    best_left = False
    best_total = 0
    for side in range(2 if missing_documents != 0 else 1):
        running = missing if side == 1 else np.int64(0)
        left_documents = missing_documents if side == 1 else np.int64(0)
        for b in range(n_cuts):
            running += histogram[start + b]
            left_documents += counts[b]
            left_g = np.float64(running >> 32)
            left_h = np.float64(running & 0xFFFFFFFF)
            right_g = total_g - left_g
            right_h = total_h - left_h
            if (
                left_documents >= min_docs
                and documents - left_documents >= min_docs
                and left_h >= min_hessian
                and right_h >= min_hessian
            ):
                left_h += l2
                right_h += l2
                both = left_h * right_h
                gain = (left_g * left_g * right_h + right_g * right_g * left_h) / both
                if both > 0.0 and (gain > best or (gain == best and b < best_code)):
                    best = gain
                    best_code = b
                    best_left = side == 1
                    best_total = running
    enough = best - parent > ROUNDING * best
    return (best - parent if enough else -np.inf), best_code, best_left, best_total


@kernel
def count_leaf_codes(codes: Codes, documents: Rows, start: int, stop: int, counts: Longs) -> None:
    """Add, for documents[start:stop], how many have each code. codes : uint8[n], counts : int64[256], added to."""
    for i in range(start, stop):
        counts[codes[documents[i]]] += 1


@kernel
def part_documents(
    codes: Codes, code: int, missing_code: int, missing_left: bool, documents: Rows, start: int, stop: int, right: Rows
) -> int:
    """Move the documents of start..stop that go left to documents[start:], write the others to right[start:].

    Both keep their order; returns how many go left.
    codes            : uint8[n] of the split's feature, in; a document goes left when its code <= code, one with the
                       missing code when missing_left
    documents, right : int32[n]; each call writes their start..stop only
    Parallel: the caller runs chunks side by side and closes the gaps. Cost: O(stop - start), without branches.
    """
    n_left = 0
    n_right = 0
    own = documents[start:stop]
    rights = right[start:stop]
    for i in range(stop - start):
        document = own[i]
        at = codes[document]
        goes_left = at <= code
        if at == missing_code:
            goes_left = missing_left
        own[n_left] = document  # never beyond i
        rights[n_right] = document
        n_left += goes_left
        n_right += not goes_left
    return n_left


@kernel
def add_leaf_values(documents: Rows, starts: Longs, stops: Longs, values: Floats, scores: Floats) -> None:
    """Add to each document's score the value of its leaf. documents : int32[n]; starts, stops : int64[leaves];
    scores out.
    """
    for leaf in range(len(values)):
        for i in range(starts[leaf], stops[leaf]):
            scores[documents[i]] += values[leaf]


@kernel
def walk_codes(
    codes: Codes,
    split_features: Rows,
    split_codes: Rows,
    missing_codes: Codes,
    missing_left: Flags,
    left: Rows,
    right: Rows,
    leaf_values: Floats,
    start: int,
    stop: int,
    scores: Floats,
) -> None:
    """Add the value of each document's leaf to scores[start:stop], walking one tree over bin codes.

    codes         : uint8[m, n], in                       split_features, split_codes : int32[nodes], in
    missing_codes : uint8[m], the code of nan, in          left, right : int32[nodes], ~leaf when negative, in
    """
    for row in range(start, stop):
        node = 0 if len(left) else -1
        while node >= 0:
            own = codes[split_features[node], row]
            goes_left = missing_left[node] if own == missing_codes[split_features[node]] else own <= split_codes[node]
            node = left[node] if goes_left else right[node]
        scores[row] += leaf_values[~node]
