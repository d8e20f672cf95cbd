"""Moves between formats: extend, project, merge, product, and bases that meet a border."""
