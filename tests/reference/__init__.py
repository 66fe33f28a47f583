"""Slow plain-Python twins of the kernels, written from the definitions alone; nothing of lmart is imported here."""
