"""Kernels that grow trees: bins, histograms, splits, the rows of leaves."""
