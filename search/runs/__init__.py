"""Runs: configuration, engines, strategies, folders, and what they find."""
