"""Directed search: gaps of the catalogue to the best known ranks, and searches that improve it."""
