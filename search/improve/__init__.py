"""Directed search: where the catalogue is behind, and how it is improved."""
