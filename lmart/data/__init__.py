"""Judged documents in memory, and what is known of them beside their features."""
