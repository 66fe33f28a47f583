"""Samples of documents: for bin edges by row number, for a tree by gradient."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import inner_kernel, kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]


@kernel
def mix(x: np.uint64) -> np.uint64:
    """Return 64 well mixed bits of a 64-bit number (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def round_key(seed: int, round_number: int) -> np.uint64:
    """Return 64 bits of a seed and a round, to mix the numbers of rows and features with."""
    return mix(mix(np.uint64(seed)) ^ np.uint64(round_number))


@kernel
def mix_each(numbers: Rows, key: np.uint64, out: Words) -> None:
    """Write the mixed bits of each number under a key. numbers : int32[n], in; out : uint64[n]"""
    for k in range(len(numbers)):
        out[k] = mix(np.uint64(numbers[k]) ^ key)


@inner_kernel
def is_chosen(row: int, key: np.uint64, halvings: int) -> bool:
    """Return whether the mixed bits of a row's number start with `halvings` zeros; key : mix(seed)."""
    return halvings == 0 or mix(np.uint64(row) ^ np.uint64(key)) >> np.uint64(64 - halvings) == 0


@inner_kernel
def same_columns(columns: Rows, one: int, other: int, length: int) -> bool:
    """Return whether columns[one:one + length] and columns[other:other + length] are the same."""
    for k in range(length):  # noqa: SIM110  (no generators in kernels)
        if columns[np.uint64(one + k)] != columns[np.uint64(other + k)]:
            return False
    return True


@kernel
def choose_rows(
    offsets: Longs, columns: Rows, first_row: int, key: np.uint64, halvings: int, chosen: Longs
) -> tuple[int, int, int]:
    """Write which of a block's rows are in the sample, so that each is decided by its own number alone.

    offsets, columns : SparseRows, in          first_row : number of the block's first row, in
    chosen : int64[n], out, places in the block, ascending
    Returns how many rows, their cells, and how many of those have columns that `copy_chosen` writes.
    """
    count = 0
    n_cells = 0
    n_columns = 0
    start = -1
    length = -1
    for i in range(len(offsets) - 1):
        if is_chosen(first_row + i, key, halvings):
            own = offsets[i + 1] - offsets[i]
            if own != length or not same_columns(columns, start, offsets[i], own):
                n_columns += own
            start = offsets[i]
            length = own
            n_cells += own
            chosen[count] = i
            count += 1
    return count, n_cells, n_columns


@kernel
def copy_chosen(
    offsets: Longs,
    columns: Rows,
    values: Floats,
    chosen: Longs,
    first_row: int,
    first_cell: int,
    first_column: int,
    rows: Longs,
    ends: Longs,
    column_starts: Longs,
    out_columns: Rows,
    out_values: Floats,
) -> None:
    """Write the chosen rows of a block; a row with the columns of the one before points to them.

    offsets, columns, values : SparseRows, in       chosen : int64[n], places in the block, in
    rows, ends, column_starts : int64[n], out: a row's number, where its cells end and where its columns start,
                                counted from first_cell and first_column
    out_columns : int32[n_columns], out_values : float64[n_cells], as choose_rows counted, out
    Parallel: the caller runs blocks side by side, each call writing its own slices.
    """
    n_cells = 0
    n_columns = 0
    before = -1
    for j in range(len(chosen)):
        i = chosen[j]
        start = offsets[i]
        own = offsets[i + 1] - start
        shared = before >= 0 and offsets[before + 1] - offsets[before] == own
        if shared and same_columns(columns, offsets[before], start, own):
            column_starts[j] = first_column + n_columns - own
        else:
            column_starts[j] = first_column + n_columns
            for k in range(own):
                out_columns[np.uint64(n_columns + k)] = columns[np.uint64(start + k)]
            n_columns += own
        for k in range(own):
            out_values[np.uint64(n_cells + k)] = values[np.uint64(start + k)]
        n_cells += own
        rows[j] = first_row + i
        ends[j] = first_cell + n_cells
        before = i


@kernel
def thin_rows(
    rows: Longs, offsets: Longs, column_starts: Longs, columns: Rows, values: Floats, key: np.uint64, halvings: int
) -> tuple[int, int, int]:
    """Keep the rows whose bits start with `halvings` zeros, moved to the front; all arrays are in and out.

    rows, column_starts : int64[n], offsets : int64[n + 1], as copy_chosen wrote them
    Returns how many rows, cells and columns are left.
    """
    count = 0
    n_cells = 0
    n_columns = 0
    before = -1
    length = -1
    start = offsets[0]
    for i in range(len(rows)):
        stop = offsets[i + 1]
        if is_chosen(rows[i], key, halvings):
            own = stop - start
            source = column_starts[i]
            shared = own == length and (source == before or same_columns(columns, n_columns - own, source, own))
            if not shared:  # columns only move to the front, so those at `source` stand until here
                for k in range(own):
                    columns[np.uint64(n_columns + k)] = columns[np.uint64(source + k)]
                n_columns += own
            before = source
            length = own
            for k in range(own):
                values[np.uint64(n_cells + k)] = values[np.uint64(start + k)]
            n_cells += own
            rows[count] = rows[i]
            column_starts[count] = n_columns - own
            count += 1
            offsets[count] = n_cells
        start = stop
    return count, n_cells, n_columns


@inner_kernel
def size_of(gradient: float, hessian: float) -> float:
    """Return a row's sampling weight sqrt(g^2 + h^2 / 10)."""
    return float(np.sqrt(gradient * gradient + 0.1 * hessian * hessian))


@kernel
def sizes(gradients: Floats, hessians: Floats, start: int, stop: int, out: Floats) -> None:
    """Write the `size_of` rows start..stop. out : float64[n]"""
    for row in range(start, stop):
        out[row] = size_of(gradients[row], hessians[row])


@kernel
def threshold_for(sorted_sizes: Floats, share: float) -> float:
    """Return mu with mean(min(1, size / mu)) = share over the ascending sizes; 0 when all are to be kept.

    Source: Ibragimov and Gusev 2019 (minimal variance sampling), equation 6.
    """
    n = len(sorted_sizes)
    below = 0.0
    for i in range(n):
        below += sorted_sizes[i]
    # mu between sizes i-1 and i: below_i / mu + (n - i) = share * n
    for i in range(n, 0, -1):
        wanted = share * n - (n - i)
        if wanted <= 0.0:
            return float(sorted_sizes[min(i, n - 1)])
        mu = below / wanted
        if mu >= sorted_sizes[i - 1]:
            return mu
        below -= sorted_sizes[i - 1]
    return 0.0


@kernel
def draw(
    gradients: Floats,
    hessians: Floats,
    threshold: float,
    key: np.uint64,
    start: int,
    stop: int,
    taken: Rows,
    rest: Rows,
) -> int:
    """Part rows start..stop into those drawn and the rest; divide the drawn ones' gradient and hessian by their chance,
    and make the others' 0.

    A row is drawn when its uniform number, mixed from `key` and the row, is below size / threshold.
    gradients, hessians : float64[n], in and out         threshold : from threshold_for, > 0
    taken, rest         : int32[n], out: taken[start:] and rest[start:] hold the rows, ascending
    Returns how many are drawn. Parallel: the caller runs ranges of rows side by side.
    """
    n_taken = np.uint64(0)
    first = np.uint64(start)
    for row in range(first, np.uint64(stop)):
        g = gradients[row]
        h = hessians[row]
        size = size_of(g, h)
        uniform = np.float64(mix(row ^ np.uint64(key)) >> np.uint64(11)) * 2.0**-53
        # Without a branch, as nobody can guess it: the row is written to both, and the next one over it in one of them.
        drawn = uniform * threshold < size
        taken[first + n_taken] = row
        rest[row - n_taken] = row
        n_taken += np.uint64(drawn)
        factor = max(threshold / size, 1.0) if drawn else 0.0
        gradients[row] = g * factor
        hessians[row] = h * factor
    return int(n_taken)
