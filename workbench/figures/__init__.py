"""The figures of the documentation, drawn from the rows of benchmarks and from the catalogue."""

from .registry import FIGURES, Written, write_figures

__all__ = ["FIGURES", "Written", "write_figures"]
