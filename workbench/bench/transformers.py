"""The parts of a transformer's block around any linear layers. Imports torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional


class AttentionCore(nn.Module):
    """Scaled dot-product attention of q, k, v (batch, heads, tokens, width): what is timed as attention's share."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        grouped = k.shape[1] != q.shape[1]
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=grouped)
        return mixed.transpose(1, 2).flatten(2)


def heads_of(x: Tensor, width: int) -> Tensor:
    """(batch, tokens, heads * width) to (batch, heads, tokens, width)."""
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


class Attention(nn.Module):
    """Attention with heads of `width` by one layer for queries, keys and values, or by three, and an output layer.

    With `gated` the first of three gives a gate behind the queries, whose sigmoid multiplies the result.
    """

    def __init__(self, width: int, causal: bool, output: nn.Module, *inputs: nn.Module, gated: bool = False) -> None:
        super().__init__()
        self.width, self.gated = width, gated
        self.inputs, self.output, self.core = nn.ModuleList(inputs), output, AttentionCore(causal)

    def forward(self, x: Tensor) -> Tensor:
        parts = [one(x) for one in self.inputs]
        q, k, v = parts[0].chunk(3, -1) if len(parts) == 1 else parts
        q, gate = q.chunk(2, -1) if self.gated else (q, None)
        q, k, v = (heads_of(one, self.width) for one in (q, k, v))
        if self.gated:  # repeated, since not every kernel of torch has groups of heads
            k, v = (one.repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
        mixed = self.core(q, k, v)
        result: Tensor = self.output(mixed if gate is None else mixed * torch.sigmoid(gate))
        return result


class FeedForward(nn.Module):
    """down(gelu(up(x))), or down(silu(gate(x)) up(x)); `approximate` is that of the GELU."""

    def __init__(
        self, up: nn.Module, down: nn.Module, gate: nn.Module | None = None, approximate: str = "none"
    ) -> None:
        super().__init__()
        self.gate, self.up, self.down, self.approximate = gate, up, down, approximate

    def forward(self, x: Tensor) -> Tensor:
        inner = self.up(x)
        if self.gate is None:
            inner = functional.gelu(inner, approximate=self.approximate)
        else:
            inner = functional.silu(self.gate(x)) * inner
        result: Tensor = self.down(inner)
        return result


class Residual(nn.Module):
    """x + inner(norm(x))."""

    def __init__(self, norm: nn.Module, inner: nn.Module) -> None:
        super().__init__()
        self.norm, self.inner = norm, inner

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.inner(self.norm(x))
        return result


class Block(nn.Module):
    """x + attention, then + feed-forward, each of the normalised x, which a condition (adaLN) may scale and shift."""

    def __init__(
        self,
        norm: Callable[[], nn.Module],
        attention: nn.Module,
        feed_forward: nn.Module,
        modulation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.norms = nn.ModuleList(norm() for _ in range(2))
        self.attention, self.feed_forward, self.modulation = attention, feed_forward, modulation

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        first, second = self.norms
        if self.modulation is None:
            x = x + self.attention(first(x))
            plain: Tensor = x + self.feed_forward(second(x))
            return plain
        assert condition is not None
        shift, scale, gate, shift2, scale2, gate2 = self.modulation(functional.silu(condition))[:, None].chunk(6, -1)
        x = x + gate * self.attention(first(x) * (1 + scale) + shift)
        result: Tensor = x + gate2 * self.feed_forward(second(x) * (1 + scale2) + shift2)
        return result


class Transformer(nn.Module):
    """Blocks: x (batch, tokens, features) and a condition (batch, features) to (batch, tokens, features)."""

    def __init__(self, count: int, block: Callable[[], Block]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(count))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, condition)
        return x
