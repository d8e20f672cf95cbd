"""Straight-line programs with few additions, and schemes that have such programs."""
