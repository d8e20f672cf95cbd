"""Block low-rank products: low-rank, Monarch and BLAST matrices, and the strategies that multiply by them.

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import names_on_first_use

if TYPE_CHECKING:
    from .products.factored import matmul as matmul
    from .structured.block_low_rank import Blast as Blast
    from .structured.block_low_rank import LowRank as LowRank
    from .structured.block_low_rank import Monarch as Monarch
    from .structured.decomposition import decompose as decompose
    from .structured.matrix import FactoredMatrix as FactoredMatrix
    from .structured.matrix import from_kronecker as from_kronecker
    from .structured.matrix import load as load
    from .structured.matrix import save as save
    from .structured.matrix import to_kronecker as to_kronecker
    from .structured.published_layouts import from_layout as from_layout
    from .structured.published_layouts import to_layout as to_layout

__getattr__, __dir__ = names_on_first_use(__name__)
