"""Samples of documents: for bin edges by row number, for a tree by gradient."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.kernels.compiler import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@kernel
def mix(x: np.uint64) -> np.uint64:
    """Return 64 well mixed bits of a 64-bit number (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def sample_rows(n: int, limit: int, seed: int, out: Longs) -> int:
    """Write the rows of a sample of at most `limit` of n, ascending; return how many.

    A row is in when the mixed bits of its number start with `halvings` zeros, so the sample does not depend on the
    order in which rows arrive. out : int64[min(n, limit)]
    """
    halvings = np.uint64(0)
    while True:
        count = 0
        shift = np.uint64(64) - halvings
        for row in range(n):
            if halvings == 0 or mix(np.uint64(row) ^ mix(np.uint64(seed))) >> shift == 0:
                if count < limit:
                    out[count] = row
                count += 1
        if count <= limit:
            return count
        halvings += np.uint64(1)


@kernel
def sizes(gradients: Floats, hessians: Floats, start: int, stop: int, out: Floats) -> None:
    """Write each row's sampling weight sqrt(g^2 + h^2 / 10) for rows start..stop. out : float64[n]"""
    for row in range(start, stop):
        out[row] = np.sqrt(gradients[row] * gradients[row] + 0.1 * hessians[row] * hessians[row])


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
    """Part rows start..stop into those drawn and the rest; divide the drawn ones' gradient and hessian by their chance.

    A row is drawn when its uniform number, mixed from `key` and the row, is below size / threshold.
    gradients, hessians : float64[n], in and out         threshold : from threshold_for, > 0
    taken, rest         : int32[n], out: taken[start:] and rest[start:] hold the rows, ascending
    Returns how many are drawn. Parallel: the caller runs ranges of rows side by side.
    """
    n_taken = 0
    n_rest = 0
    for row in range(start, stop):
        size = np.sqrt(gradients[row] * gradients[row] + 0.1 * hessians[row] * hessians[row])
        chance = size / threshold
        uniform = np.float64(mix(np.uint64(row) ^ np.uint64(key)) >> np.uint64(11)) * 2.0**-53
        if uniform < chance:
            if chance < 1.0:
                gradients[row] /= chance
                hessians[row] /= chance
            taken[start + n_taken] = row
            n_taken += 1
        else:
            rest[start + n_rest] = row
            n_rest += 1
    return n_taken
