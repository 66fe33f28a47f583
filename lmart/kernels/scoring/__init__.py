"""Kernels that score rows with trees and explain the scores."""
