"""Kronecker-sparse products: patterns, matrices, and the strategies of products. Names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import names_on_first_use

if TYPE_CHECKING:
    from .products.factored import linear_operator as linear_operator
    from .products.factored import matmul as matmul
    from .products.fourier import dft as dft
    from .structured.approximation import factorize as factorize
    from .structured.chain import KroneckerSparse as KroneckerSparse
    from .structured.constructions import block_butterfly as block_butterfly
    from .structured.constructions import deformable_butterfly as deformable_butterfly
    from .structured.constructions import dense as dense
    from .structured.constructions import kaleidoscope as kaleidoscope
    from .structured.constructions import low_rank as low_rank
    from .structured.constructions import monarch as monarch
    from .structured.constructions import square_dyadic as square_dyadic
    from .structured.layouts import from_layout as from_layout
    from .structured.layouts import to_layout as to_layout
    from .structured.matrix import FactoredMatrix as FactoredMatrix
    from .structured.matrix import load as load
    from .structured.matrix import save as save
    from .structured.pattern import Pattern as Pattern

__getattr__, __dir__ = names_on_first_use(__name__)
