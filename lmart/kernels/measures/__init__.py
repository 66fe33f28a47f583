"""Kernels of measures of ranked queries and their statistics."""
