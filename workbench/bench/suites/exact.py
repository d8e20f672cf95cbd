"""Suite "exact": products over GF(2), GF(p) and Z on a processor, against other libraries and against our own leaf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from ....errors import PlanError, VerificationError
from ....kernels import BitMatrix, Request, matmul, plan_for
from ....kernels.exact.bench import from_words
from ....kernels.exact.naive import naive_product
from ....kernels.products.exact import exact_request
from ....kernels.ring import GF2, INTEGERS, exact_ring
from ...cpu_profile import limited
from ..case import Bar, Case, Figures, Options, Say, barred
from ..contest import Call, Clock, Contest, CpuClock
from ..exact_peers import FFLAS, FLINT, M4RI, Peer, compiled
from ..table import rows

ROWS = rows("exact")
"""Squares over GF(2) or a field that a library, our leaf or one thread multiplies too, and how many times its speed is
asked for."""

FLOAT_PRIME = 1 << 11
"""Below it FFLAS-FFPACK also runs on float32, and the faster of the two counts."""

INTEGER_SIZE, INTEGER_BITS = 4096, (20, 31)
"""Products over Z."""

NUMPY_ROWS = 64
"""numpy's own product of int64 is timed on so many rows of A: its time is proportional to them."""


@barred
def cases(options: Options) -> Iterator[Case]:
    if options.device != "cpu":
        raise PlanError("suite exact is of a processor; leave --device out")

    def wanted(size: int) -> bool:
        return not options.sizes or size in options.sizes

    runs: dict[str, Any] = {f"over {one.name}": partial(_over_library, one) for one in (M4RI, FLINT, FFLAS)}
    runs |= {"over the leaf": _over_leaf, "two threads over one": _two_threads}
    for row in ROWS:
        if wanted(row.size):
            run = partial(runs[row.over], row.size, row.ring, options.rounds or row.rounds, options.seed)
            yield Case(f"{row.ring} {row.size} {row.over}", run, (Bar("ratio", row.bar),))
    for bits in INTEGER_BITS if wanted(INTEGER_SIZE) else ():
        run = partial(_integers, INTEGER_SIZE, bits, options.rounds or 5, options.seed)
        yield Case(f"Z {INTEGER_SIZE} below 2^{bits}", run)


def _contest(base: Mapping[str, Call], ours: Call, rounds: int, own: bool = False) -> dict[str, Any]:
    """Figures of turns of the baselines, which with `own` return their seconds, and ours; ratios are to the fastest."""
    calls = {**base, "ours": partial(CpuClock().seconds, ours) if own else ours}
    timings = Contest(calls, rounds, Clock() if own else CpuClock()).run()
    return {**timings.against(timings.fastest(base), "ours"), "quartiles_s": timings.quartiles_s}


def _bits(size: int, seed: int) -> tuple[Any, Any]:
    return BitMatrix.random(size, size, seed=seed), BitMatrix.random(size, size, seed=seed + 1)


def _over_gf2(a: Any, b: Any, out: Any = None, strategy: str | None = None) -> Any:
    return matmul(a, b, out=out, ring="Z2", strategy=strategy)


def _bit_plan(size: int) -> str:
    return str(plan_for(Request(size, size, size, "bit", ring=GF2)).candidate)


def _require_equal(mine: Any, other: Any, what: str) -> None:
    if not np.array_equal(mine, other):
        raise VerificationError(f"our product and that of {what} differ; nothing was timed")


def _over_leaf(size: int, ring: str, rounds: int, seed: int, say: Say) -> Figures:
    """`auto` over the product without a scheme; the same call where that is what `auto` takes."""
    a, b = _bits(size, seed)
    with limited(1):
        out, other = _over_gf2(a, b), _over_gf2(a, b, strategy="leaf")
        _require_equal(out.words, other.words, "the leaf")
        plan = _bit_plan(size)
        say(plan)
        figures = _contest({"leaf": lambda: _over_gf2(a, b, other, "leaf")}, lambda: _over_gf2(a, b, out), rounds)
    same = plan == "leaf"
    # The same call cannot lose: what its pairs differ by is what the machine did meanwhile.
    return {**figures, "ratio": 1.0 if same else figures["ratio"], "same_call": same, "plan": plan}


def _two_threads(size: int, ring: str, rounds: int, seed: int, say: Say) -> Figures:
    """Two threads over one, by what `auto` takes for each."""
    a, b = _bits(size, seed)
    plans, outs = dict[int, str](), dict[int, Any]()

    def multiply(threads: int) -> None:
        with limited(threads):
            outs[threads] = _over_gf2(a, b, outs.get(threads))
            plans[threads] = plans.get(threads) or _bit_plan(size)

    multiply(1)
    multiply(2)
    _require_equal(outs[1].words, outs[2].words, "one thread")
    figures = _contest({"one thread": partial(multiply, 1)}, partial(multiply, 2), rounds)
    return {**figures, "plan": plans[2], "plan_of_one": plans[1]}


def _over_library(library: Any, size: int, ring: str, rounds: int, seed: int, say: Say) -> Figures:
    """`auto` over a library's product modulo p or of bits, both in one thread; all entries are compared first."""
    say(f"compiling {library.name}'s program")
    program = compiled(library)
    field, rng, bits = exact_ring(ring), np.random.default_rng(seed), library == M4RI
    a: Any
    b: Any
    a, b = _bits(size, seed) if bits else (rng.integers(0, field.modulus, (size, size)) for _ in range(2))
    variants = [""] if library != FFLAS else ["double", "float"] if field.modulus < FLOAT_PRIME else ["double"]
    sent = (a.words, b.words) if bits else (a, b)
    with limited(1), ExitStack() as stack:
        peers = {}
        for variant in variants:
            peer = Peer([str(program)], *sent, (size, size, size), field.modulus, variant)
            peers["mzd_mul" if bits else f"{library.name} {variant}".rstrip()] = stack.enter_context(peer)
        out: Any = matmul(a, b, ring=field)
        for name, peer in peers.items():
            peer.multiply()
            _require_equal(out.words if bits else out, peer.product(), name)
        base = {name: peer.multiply for name, peer in peers.items()}
        figures = _contest(base, lambda: matmul(a, b, ring=field, out=out), rounds, own=True)
        plan = _bit_plan(size) if bits else str(plan_for(exact_request(a, b, field)).candidate)
        return {**figures, "plan": plan}


def _integers(size: int, bits: int, rounds: int, seed: int, say: Say) -> Figures:
    """The product over Z in two threads, over float64's product and numpy's own of int64.

    Below 2^31 results can exceed int64, so two words are computed; numpy's rows wrap there, and are not compared.
    """
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(1 - (1 << bits), 1 << bits, (size, size)) for _ in range(2))
    wide = "int128" if size * (1 << 2 * bits) >= 1 << 63 else None
    floats, some = a.astype(np.float64), a[:NUMPY_ROWS]
    with limited(2):
        out = matmul(a, b, ring="Z", out_dtype=wide)
        rows = np.array([0, size // 3, size - 1])
        found = from_words(out[rows]) if wide else out[rows]
        _require_equal(found.astype(object), naive_product(a[rows], b, INTEGERS), "Python integers")
        product = np.empty_like(floats)
        calls = {
            "float64": lambda: np.matmul(floats, floats, out=product),
            "numpy int64, some rows": lambda: some @ b,
            "ours": lambda: matmul(a, b, ring="Z", out_dtype=wide, out=out),
        }
        timings = Contest(calls, rounds, say=say).run()
    mine, parts = timings["ours"].median, size / NUMPY_ROWS
    return {
        "time_over_float64": mine / timings["float64"].median,
        "over_numpy": parts * timings["numpy int64, some rows"].median / mine,
        **timings.against(timings["float64"], "ours"),
        "numpy_rows": NUMPY_ROWS,
        "out_dtype": wide or "int64",
    }
