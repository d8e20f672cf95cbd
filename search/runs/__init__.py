"""Runs: configuration, engines, strategies, folders and finds."""
