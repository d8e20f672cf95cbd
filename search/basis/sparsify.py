"""Reduction of the nonzeros of a scheme by a change of basis over GF(2), before a lift.

Sparse schemes are far likelier to have a ternary lift, and can lift where a dense one needs larger integers.
"""

from __future__ import annotations

import numpy as np

from ..terms.packed import PackedTerms
from ..terms.words import is_wide
from .shears import half_masks, shear_table


def sparsified(terms: PackedTerms) -> PackedTerms:
    """Return the scheme in a basis that no single shear improves: fewest full products, then fewest nonzeros.

    The number of full products never increases. Deterministic. Terms with factors of more than 64 blocks stay as they
    are.
    """
    if is_wide(terms.target):
        return terms
    from .sparsify_kernel import sparsify_kernel

    words = np.array(terms.words, order="C")
    sparsify_kernel(words, shear_table(terms.target), half_masks(terms.target))
    return PackedTerms(terms.target, words)
