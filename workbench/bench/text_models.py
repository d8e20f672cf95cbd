"""A small transformer over the bytes of a text that ships with Python, its training and its loss. Imports torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pydoc_data import topics
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .transformers import Sizes, dense

BYTES = 256

HELD_OUT = 0.1
"""The part of the text, its end, that the loss is computed on."""


@dataclass(frozen=True)
class Training:
    """Features of the model, blocks, inputs of a batch (sequences and tokens), steps and the rate of AdamW."""

    features: int
    blocks: int
    batch: int
    tokens: int
    steps: int
    rate: float


def texts() -> tuple[Tensor, Tensor]:
    """The help texts of the language (`pydoc_data.topics`) as bytes (n,): what is trained on, and what is held out."""
    joined = "\n".join(topics.topics.values()).encode()
    known = torch.frombuffer(bytearray(joined), dtype=torch.uint8).long()
    end = int(len(known) * (1 - HELD_OUT))
    return known[:end], known[end:]


class TextModel(nn.Module):
    """Bytes (batch, tokens) to logits of the next ones (batch, tokens, 256); linear layers lie in `blocks`."""

    def __init__(self, setting: Training, device: str, dtype: torch.dtype) -> None:
        super().__init__()
        n = setting.features
        sizes, where = Sizes(n, max(1, n // 64), 4 * n), dict[str, Any](device=device, dtype=dtype)
        self.embedding, self.place = nn.Embedding(BYTES, n, **where), nn.Embedding(setting.tokens, n, **where)
        self.blocks = nn.ModuleList(sizes.block(dense(**where), **where) for _ in range(setting.blocks))
        self.norm, self.head = nn.LayerNorm(n, **where), nn.Linear(n, BYTES, **where)
        for table in (self.embedding, self.place):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, given: Tensor) -> Tensor:
        x = self.embedding(given) + self.place.weight[: given.shape[1]]
        for one in self.blocks:
            x = one(x)
        return self.head(self.norm(x))


def train(
    model: nn.Module, setting: Training, steps: int, seed: int, say: Callable[[str], None] = lambda _: None
) -> None:
    """Train in place on random pieces of the text, with a rate that falls to zero; float32 parameters.

    On a GPU products are in bfloat16 (autocast).
    """
    device = next(model.parameters()).device
    known, _ = texts()
    chosen = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), setting.rate, weight_decay=0.01)
    model.train()
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = setting.rate * min(1.0, (step + 1) / 20) * (1 - step / steps)
        starts = torch.randint(len(known) - setting.tokens - 1, (setting.batch,), generator=chosen)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = _loss(model, _pieces(known, starts, setting.tokens).to(device))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 10 == 0:
            say(f"step {step} of {steps}, loss {float(loss.detach()):.3f}")
    model.eval()


def held_out_loss(model: nn.Module, setting: Training, batches: int = 8) -> float:
    """Nats a byte over evenly spaced pieces of the end of the text."""
    device = next(model.parameters()).device
    _, known = texts()
    starts = torch.linspace(0, len(known) - setting.tokens - 2, batches * setting.batch).long()
    with torch.no_grad():
        pieces = (_pieces(known, part, setting.tokens).to(device) for part in starts.chunk(batches))
        losses = [float(_loss(model, some)) for some in pieces]
    return sum(losses) / len(losses)


def sample_inputs(setting: Training, device: str) -> Tensor:
    """One batch of the held-out text (batch, tokens)."""
    _, known = texts()
    starts = torch.arange(setting.batch) * setting.tokens
    return _pieces(known, starts, setting.tokens - 1).to(device)


def _pieces(known: Tensor, starts: Tensor, tokens: int) -> Tensor:
    return known[starts[:, None] + torch.arange(tokens + 1)]


def _loss(model: nn.Module, pieces: Tensor) -> Tensor:
    logits = model(pieces[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1).float(), pieces[:, 1:].flatten())
