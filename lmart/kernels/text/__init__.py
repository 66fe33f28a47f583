"""Kernels that read and write the text of data files."""
