"""Formats of models."""
