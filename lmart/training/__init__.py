"""Training: the boosting loop, what it grows trees with, and how settings are chosen."""
