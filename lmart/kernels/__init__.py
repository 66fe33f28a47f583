"""Compiled loops: bare arrays in, caller's arrays out. They check nothing; the floor above does."""
