"""Kernels of the objectives: orders of documents, and gradients and hessians by query."""
