"""Layers of DTensors, computed from local parts, as functions that dynamo does not trace.

This module is imported with the first sharded tensor: it imports dynamo and torch.distributed.tensor, which take
seconds. Dynamo would try gradients with the placements of the result, which may be partial.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..structured.block_low_rank import LowRank, parse_structure
from .ops import bilinear_mm
from .recipe import AUTO, ProductRecipe
from .sharding import sharded_layer, sharded_product
from .structured import multiply_factors
from .structured_products import Options


@torch.compiler.allow_in_graph
def dense_linear(x: Tensor, weight: Tensor, bias: Tensor | None, recipe: str, transposed: bool) -> Tensor:
    """Compute x W^T + bias for DTensors x (..., in), weight (out, in) and bias (out,); W if not `transposed`.

    Local parts are multiplied with the plan for their sizes; nothing is communicated. See `sharded_product`.
    """
    ProductRecipe.parse(recipe).require_general("parts of DTensors are multiplied as")
    rows = x.unsqueeze(0) if x.dim() == 1 else x
    result = sharded_product(lambda left, right: bilinear_mm(left, right, recipe), rows, weight, bias, transposed)
    return result.squeeze(0) if x.dim() == 1 else result


@torch.compiler.allow_in_graph
def factored_linear(x: Tensor, factors: list[Tensor], bias: Tensor | None, text: str, options: Options) -> Tensor:
    """Map a DTensor x in the layer's layout by the local parts of x and of the factors. See `sharded_layer`.

    A batch-first x has batch-first results, of which the `options` tell.
    """
    first, structure = options[0], parse_structure(text)

    def run(part: Tensor, *weights: Tensor) -> Tensor:
        matrix = part.reshape(-1, structure.cols).T if first else part.reshape(structure.cols, -1)
        y = multiply_factors(matrix, weights, structure, options)
        return y.T.reshape(*part.shape[:-1], structure.rows) if first else y.reshape(structure.rows, *part.shape[1:])

    def low_rank(part: Tensor, u: Tensor, v: Tensor) -> Tensor:  # of parts the rank may exceed a side
        rows = part.unsqueeze(0) if part.dim() == 1 else part
        y = bilinear_mm(bilinear_mm(rows, v.t(), AUTO), u.t(), AUTO)
        return y.squeeze(0) if part.dim() == 1 else y

    by_factors = low_rank if isinstance(structure, LowRank) else None
    return sharded_layer(run, by_factors, x, factors, bias, structure.rows, -1 if first else 0)
