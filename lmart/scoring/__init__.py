"""Ensembles of trees, and the scores and explanations that they give to rows."""
