"""Functions over `terms.lanes`, compiled for the lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ...terms import bits, lanes
from .device import cuda_module

WARP = 32
"""Lanes of a walk."""


def on_lanes(modules: Sequence[ModuleType]) -> Callable[[Any], Any]:
    """Return what turns a function into one for a GPU, where a warp works as `terms.lanes` say.

    The function, and all that it calls, are in the modules, callees first.
    """
    cuda = cuda_module()
    whole = 0xFFFFFFFF

    def width():
        return WARP

    def lane():
        return cuda.threadIdx.x

    def votes(hit):
        return np.int64(cuda.popc(cuda.ballot_sync(whole, hit)))

    def voter(hit, k):
        lanes_hit = cuda.ballot_sync(whole, hit)
        for _ in range(k):
            lanes_hit &= lanes_hit - np.uint32(1)
        return np.int64(cuda.ffs(lanes_hit) - 1)

    def meet():
        cuda.syncwarp()

    def share(word):
        return word & (np.uint64(1) << np.uint64(cuda.threadIdx.x))

    def xor_of_all(word):
        for distance in (16, 8, 4, 2, 1):
            word ^= np.uint64(cuda.shfl_xor_sync(whole, np.int64(word), distance))
        return word

    def first_bit(word):
        return np.uint64(cuda.ffs(word) - 1)

    def popcount(word):
        return np.uint64(cuda.popc(word))

    own = {lanes: (width, lane, votes, voter, meet, share, xor_of_all), bits: (first_bit, popcount)}
    made = {
        id(getattr(module, one.__name__)): cuda.jit(device=True, forceinline=True)(one)
        for module, ones in own.items()
        for one in ones
    }
    for module in modules:
        _rebound(module, made)
    return lambda function: made[id(function)]


def _rebound(module: ModuleType, made: dict[int, Any]) -> None:
    """Add the compiled functions of a module, with those in `made` in place of the ones that they call."""
    scope = dict(vars(module))
    for name, value in vars(module).items():
        if id(value) in made:
            scope[name] = made[id(value)]
        elif hasattr(value, "py_func") and value.py_func.__module__ == module.__name__:
            function = FunctionType(value.py_func.__code__, scope, name)
            made[id(value)] = scope[name] = cuda_module().jit(device=True)(function)
