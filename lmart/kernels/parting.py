"""The parting of a leaf's documents, the count of them, and what their leaves add to scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


@kernel
def count_sides(
    codes: Codes, code: int, missing_code: int, missing_left: bool, documents: Rows, enough: int, left: int, right: int
) -> tuple[int, int]:
    """Return left and right, raised by the documents on each side of a split until both are `enough`.

    codes : uint8[n] of the split's feature, in      documents : int32[n_leaf], in
    Cost: that of the first few documents, unless one side is nearly empty.
    """
    for i in range(len(documents)):
        if left >= enough and right >= enough:
            break
        own = codes[documents[i]]
        goes_left = missing_left if own == missing_code else own <= code
        left += goes_left
        right += not goes_left
    return left, right


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
