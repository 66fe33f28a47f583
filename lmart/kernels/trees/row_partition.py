"""The rows of leaves: split them, count them, and add to scores what their leaves give."""

from __future__ import annotations

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt8Array
from lmart.kernels.numba_support.code_cache import kernel, shared_kernel


@shared_kernel
def count_children(
    bins: UInt8Array,
    split_bin: int,
    missing_bin: int,
    missing_left: bool,
    documents: Int32Array,
    enough: int,
    n_left: int,
    n_right: int,
) -> tuple[int, int]:
    """Return n_left and n_right, raised by the documents on each side of a split until both are `enough`.

    bins            : uint8[n], the bin of each row in the split's feature, in
    split_bin       : int64, a document goes left when its bin <= split_bin
    missing_bin     : int64, the bin of missing values      missing_left : bool, whether a missing value goes left
    documents       : int32[n_leaf], rows of the leaf, in
    enough          : int64, documents of each side from which on nothing more is counted
    n_left, n_right : int64, documents counted so far

    Cost: that of the first few documents, unless one side is nearly empty.
    """
    for i in range(len(documents)):
        if n_left >= enough and n_right >= enough:
            break
        document_bin = bins[documents[i]]
        goes_left = missing_left if document_bin == missing_bin else document_bin <= split_bin
        n_left += goes_left
        n_right += not goes_left
    return n_left, n_right


@shared_kernel
def count_leaf_bins(bins: UInt8Array, documents: Int32Array, start: int, stop: int, counts: Int64Array) -> None:
    """Add how many of documents[start:stop] are in each bin of a feature.

    bins      : uint8[n], the bin of each row in the feature, in
    documents : int32[n_leaf], rows of the leaf, in      start, stop : int64, the documents of this call
    counts    : int64[256], documents by bin, in and out
    """
    for i in range(start, stop):
        counts[bins[documents[i]]] += 1


@shared_kernel
def partition_rows(
    bins: UInt8Array,
    split_bin: int,
    missing_bin: int,
    missing_left: bool,
    documents: Int32Array,
    start: int,
    stop: int,
    right: Int32Array,
) -> int:
    """Move the documents of start:stop that go left to documents[start:], write the others to right[start:].

    Both keep their order; returns how many go left.
    bins, split_bin, missing_bin, missing_left : as in `count_children`
    documents    : int32[n_leaf], rows of the leaf, in and out      start, stop : int64, the documents of this call
    right        : int32[n_leaf], out

    Parallel: each call writes its start:stop of `documents` and `right` only; the caller runs chunks side by side and
    closes the gaps. Cost: O(stop - start), without branches.
    """
    n_left = 0
    n_right = 0
    leaf_documents = documents[start:stop]
    right_documents = right[start:stop]
    for i in range(stop - start):
        document = leaf_documents[i]
        document_bin = bins[document]
        goes_left = document_bin <= split_bin
        if document_bin == missing_bin:
            goes_left = missing_left
        leaf_documents[n_left] = document  # never beyond i
        right_documents[n_right] = document
        n_left += goes_left
        n_right += not goes_left
    return n_left


@kernel
def add_leaf_values(
    documents: Int32Array, starts: Int64Array, stops: Int64Array, values: Float64Array, scores: Float64Array
) -> None:
    """Add to the score of each document the value of its leaf.

    documents : int32[n], rows in the order of their leaves, in
    starts    : int64[n_leaves], the documents of leaf l are documents[starts[l]:stops[l]], in
    stops     : int64[n_leaves], in      values : float64[n_leaves], leaf values, in
    scores    : float64[n_rows], in and out

    Parallel: leaves share no document, so ranges of leaves may be run side by side.
    """
    for leaf in range(len(values)):
        for i in range(starts[leaf], stops[leaf]):
            scores[documents[i]] += values[leaf]
