"""Formats of scores and predictions."""
