"""The version of lcma, recorded in certificates and provenance."""

__version__ = "0.1.0"
