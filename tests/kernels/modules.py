"""Modules of torch around which models are built."""

from torch import Tensor, nn, randn


class Conv1D(nn.Module):
    """A linear layer as Hugging Face's GPT-2 has it: the weight is (inputs, outputs)."""

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight, self.bias = nn.Parameter(randn(nx, nf) / nx**0.5), nn.Parameter(randn(nf))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class Around(nn.Module):
    """A module that calls a linear layer."""

    def __init__(self, fc: nn.Module) -> None:
        super().__init__()
        self.fc = fc

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x)
