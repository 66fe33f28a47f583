"""The one place that touches Numba's internals: decorators, cache of machine code, intrinsics."""
