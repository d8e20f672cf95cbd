"""Static pages of a catalogue: they open from a folder, without a server and without a network."""

from .build import Built, build_site

__all__ = ["Built", "build_site"]
