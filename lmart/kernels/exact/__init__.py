"""Numbers that have the same bits on any processor."""
