"""Usual ways to run a scheme that ours are compared with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ...kernels.cpu.threads import parallel_tasks, single_threaded_blas, thread_count
from ...schemes_db.scheme import Scheme
from .case import Say
from .cpu_products import Call, Matrix


def rivals(scheme: Scheme, a: Matrix, b: Matrix, say: Say, compiled: bool = True) -> dict[str, Call]:
    """The usual ways that can run here, by name; those that take a compilation only if `compiled`."""
    found: dict[str, Call | None] = {"R tasks adding into C": tasks_adding(scheme, a, b)}
    if compiled:
        found["formula under torch.compile"] = compiled_formula(scheme, a, b, say)
    return {name: call for name, call in found.items() if call is not None}


def tasks_adding(scheme: Scheme, a: Matrix, b: Matrix) -> Call:
    """R tasks, each one sum of A, one of B, their product, added into the blocks of C under a lock for each.

    Source: the H_r-parallel form that FalconGEMM (arXiv:2605.06057, section II-B) names as usual.
    """
    gm, gk, gn = scheme.target.shape
    out = np.empty((len(a), b.shape[1]), a.dtype)
    locks = [threading.Lock() for _ in range(gm * gn)]

    def blocks(matrix: Matrix, rows: int, columns: int) -> list[Matrix]:
        return [part for strip in np.vsplit(matrix, rows) for part in np.hsplit(strip, columns)]

    def total(parts: list[Matrix], terms: Any) -> Matrix:
        result = np.zeros_like(parts[0])
        for index, value in terms:
            result += result.dtype.type(value) * parts[index]
        return result

    lefts, rights, targets = blocks(a, gm, gk), blocks(b, gk, gn), blocks(out, gm, gn)

    def task(r: int, _: int) -> None:
        product = total(lefts, scheme.u.terms(r)) @ total(rights, scheme.v.terms(r))
        for index, value in scheme.w.terms(r):
            with locks[index]:
                targets[index] += product.dtype.type(value) * product

    def call() -> Matrix:
        out[...] = 0
        with single_threaded_blas():
            parallel_tasks(task, scheme.rank, thread_count())
        return out

    return call


def compiled_formula(scheme: Scheme, a: Matrix, b: Matrix, say: Say) -> Call | None:
    """The scheme written with torch's operations and compiled by torch.compile; None where that cannot be done."""
    try:
        import torch
    except ImportError:
        return None
    formula = _formula(scheme, a, b, torch.from_numpy)
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    compiled = torch.compile(formula)
    try:
        compiled(left, right)
    except Exception as error:  # no compiler on this machine, say: torch raises many kinds
        say(f"torch.compile is left out: {type(error).__name__}")
        return None
    return lambda: compiled(left, right).numpy()


def jitted_on_gpu(scheme: Scheme, a: Any, b: Any, say: Say) -> Callable[[], Any] | None:
    """The scheme in jax's operations, compiled by jax.jit, for tensors of a GPU; None where jax has no GPU."""
    import os

    # Else jax takes three quarters of the GPU's memory when it is imported.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        jax: Any = import_module("jax")
        left, right = jax.dlpack.from_dlpack(a), jax.dlpack.from_dlpack(b)
    except Exception as error:  # not installed, without a GPU, or with one of its own: jax raises many kinds
        say(f"jax.jit is left out: {type(error).__name__}: {error}".splitlines()[0])
        return None
    import torch

    compiled = jax.jit(_formula(scheme, left, right, jax.numpy.asarray))

    def call() -> Any:
        with jax.default_matmul_precision("highest" if a.dtype == torch.float32 else "default"):
            return torch.from_dlpack(compiled(left, right).block_until_ready())

    return call


def _formula(scheme: Scheme, a: Matrix, b: Matrix, array: Callable[[Matrix], Any]) -> Callable[[Any, Any], Any]:
    """The scheme in operations that torch's and jax's arrays share; `array` makes one of the library's."""
    (gm, gk, gn), (m, k), n = scheme.target.shape, a.shape, b.shape[1]
    u, v, w = (array(factor.dense.reshape(scheme.rank, -1).astype(a.dtype)) for factor in scheme.factors)

    def formula(x: Any, y: Any) -> Any:
        xs = x.reshape(gm, m // gm, gk, k // gk).swapaxes(1, 2).reshape(gm * gk, -1)
        ys = y.reshape(gk, k // gk, gn, n // gn).swapaxes(1, 2).reshape(gk * gn, -1)
        lefts = (u @ xs).reshape(-1, m // gm, k // gk)
        rights = (v @ ys).reshape(-1, k // gk, n // gn)
        blocks = (w.T @ (lefts @ rights).reshape(scheme.rank, -1)).reshape(gm, gn, m // gm, n // gn)
        return blocks.swapaxes(1, 2).reshape(m, n)

    return formula
