"""Usual ways to run a scheme that ours are compared with: arrays of numpy on a processor, tensors on a GPU."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...kernels.arrays import torch
from ...kernels.cpu.threads import parallel_tasks, single_threaded_blas, thread_count
from ...kernels.cuda.naive import blocks_of
from ...schemes_db.scheme import Scheme
from .baselines import Array
from .case import Say
from .contest import Call


def total(parts: list[Array], terms: Iterable[tuple[int, Any]]) -> Array:
    """The sum of some parts, each times its coefficient; of signs alone no product is computed."""
    (first, value), *rest = terms
    found = parts[first] if value == 1 else float(value) * parts[first]
    for index, value in rest:
        part = parts[index] if abs(value) == 1 else float(abs(value)) * parts[index]
        found = found - part if value < 0 else found + part
    return found


def tasks_adding(scheme: Scheme, a: Array, b: Array) -> Call:
    """R tasks, each one sum of A, one of B, their product, added into the blocks of C, on a processor under locks.

    Source: the H_r-parallel form that FalconGEMM (arXiv:2605.06057, section II-B) names as usual.
    """
    (gm, gk, gn), on_cpu, shape = scheme.target.shape, isinstance(a, np.ndarray), (a.shape[0], b.shape[1])
    out = np.empty(shape, a.dtype) if on_cpu else a.new_empty(shape)
    grids = (a, (gm, gk)), (b, (gk, gn)), (out, (gm, gn))
    lefts, rights, targets = (list(blocks_of(matrix, grid).values()) for matrix, grid in grids)
    locks = [threading.Lock() for _ in targets]

    def task(r: int, _: int) -> None:
        product = total(lefts, scheme.u.terms(r)) @ total(rights, scheme.v.terms(r))
        for index, value in scheme.w.terms(r):
            part = product if abs(value) == 1 else float(abs(value)) * product
            with locks[index]:
                if value < 0:
                    targets[index] -= part
                else:
                    targets[index] += part

    def call() -> Array:
        out[...] = 0
        with single_threaded_blas():
            parallel_tasks(task, scheme.rank, thread_count() if on_cpu else 1)
        return out

    return call


def formula_of(scheme: Scheme, joined: Callable[[list[Array], int], Array]) -> Callable[[Array, Array], Array]:
    """The scheme in operations that numpy's, torch's and jax's arrays share, without shared sums, for sizes that the
    grid divides; `joined` is the library's concatenation of arrays along an axis."""
    gm, gk, gn = scheme.target.shape
    stored: list[list[tuple[int, Any]]] = [[] for _ in range(gm * gn)]
    for r in range(scheme.rank):
        for index, value in scheme.w.terms(r):
            stored[index].append((r, value))

    def formula(a: Array, b: Array) -> Array:
        lefts, rights = (list(blocks_of(x, grid).values()) for x, grid in ((a, (gm, gk)), (b, (gk, gn))))
        products = [total(lefts, scheme.u.terms(r)) @ total(rights, scheme.v.terms(r)) for r in range(scheme.rank)]
        out = [total(products, terms) for terms in stored]
        return joined([joined(out[i * gn : (i + 1) * gn], 1) for i in range(gm)], 0)

    return formula


def compiled_formula(scheme: Scheme, a: Array, b: Array, say: Say) -> Call | None:
    """The formula compiled by torch.compile; None where that cannot be done."""
    if find_spec("torch") is None:
        return None
    compiled, on_cpu = torch.compile(formula_of(scheme, torch.cat)), isinstance(a, np.ndarray)
    left, right = (torch.from_numpy(x) if on_cpu else x for x in (a, b))
    try:
        compiled(left, right)
    except Exception as error:  # no compiler on this machine, say: torch raises many kinds
        say(f"torch.compile is left out: {type(error).__name__}")
        return None
    return (lambda: compiled(left, right).numpy()) if on_cpu else (lambda: compiled(left, right))


def jitted_on_gpu(scheme: Scheme, a: Array, b: Array, say: Say) -> Call | None:
    """The formula compiled by jax.jit, for tensors of a GPU; None where jax has no GPU."""
    # Else jax takes three quarters of the GPU's memory when it is imported.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        jax: Any = import_module("jax")
        left, right = jax.dlpack.from_dlpack(a), jax.dlpack.from_dlpack(b)
    except Exception as error:  # not installed, without a GPU, or with one of its own: jax raises many kinds
        say(f"jax.jit is left out: {type(error).__name__}: {error}".splitlines()[0])
        return None
    compiled = jax.jit(formula_of(scheme, jax.numpy.concatenate))

    def call() -> Array:
        with jax.default_matmul_precision("highest" if a.dtype == torch.float32 else "default"):
            return torch.from_dlpack(compiled(left, right).block_until_ready())

    return call
