"""Moves between formats: extend, project, merge, product, and changes of basis that align a scheme with a border."""
