"""Judged documents in memory, and their metadata."""
