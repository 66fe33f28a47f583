"""Numbers mixed from bits, and what is drawn by them."""

from __future__ import annotations


def mix(x: int) -> int:
    """SplitMix64's output for a state, in whole numbers."""
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def is_chosen(row: int, seed: int, halvings: int) -> bool:
    """Whether a row is in the sample that takes one of 2^halvings rows."""
    return mix(row ^ mix(seed)) < 1 << (64 - halvings)


def sample_rows(n: int, limit: int, seed: int) -> list[int]:
    """The rows of the largest such sample of n rows that has at most `limit`."""
    halvings = 0
    while len(rows := [row for row in range(n) if is_chosen(row, seed, halvings)]) > limit:
        halvings += 1
    return rows


def uniform(row: int, key: int, bits: int = 53) -> float:
    """A number in [0, 1) from the mixed bits of a row, of which `bits` count."""
    return (mix(row ^ key) >> (64 - bits)) / 2.0**bits


def round_key(seed: int, round_number: int) -> int:
    """What objectives mix the numbers of rows with in a round."""
    return mix(mix(mix(seed) ^ round_number))
