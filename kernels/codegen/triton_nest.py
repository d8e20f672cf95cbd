"""A large combine kernel as a loop over the products of one of its two levels, around straight-line code of the other.

Triton's compile time grows with the third power of the number of operations: three levels of Strassen as
straight-line code take it 10 to 20 seconds, as a loop of 7 turns less than one. Every source is still read once
and every result written once; the sums of the level of the loop have run-time coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .maps import LinearMap
from .triton_order import Fetch, Keep, Step, Take, steps

MOST_TURNS = 31
"""Maximum number of products of the loop's level: their coefficients of one block are in one integer of 64 bits."""


@dataclass(frozen=True)
class Nest:
    """A map as two levels, one of which is a loop.

    `coefficients[r][o]`, each -1, 0 or 1, is that of block o of the loop's level in its product r. `body` is the map of
    the other level, `places[o][i]` the index in the whole map of its block i within block o: a source (split) or a
    result (merge). Slab s of the body in turn t of the loop is slab s * `slab_step` + t * `turn_step` of the whole map.
    """

    coefficients: tuple[tuple[int, ...], ...]
    body: LinearMap
    places: tuple[tuple[int, ...], ...]
    slab_step: int
    turn_step: int


def nest_lines(
    whole: LinearMap, nest: Nest, split: bool, dtype: str, ahead: int, line_of: Callable[[Step], str]
) -> list[str]:
    """Return the lines of the kernel of a map after its head.

    `split`: from a matrix to slabs, else back. Sums are in `dtype`; `ahead`: see `triton_order.steps`. `line_of` gives
    the line of a step of the whole map, on the matrix, or of the body, on the slabs.
    """
    real = f"tl.{dtype}"
    # Adding to -0.0 changes no number. A coefficient of zero is skipped, not multiplied: the number may be infinite.
    blank = f"tl.zeros((ROWS, COLS), {real})" + ("" if dtype == "int32" else " * -1.0")
    blocks = range(len(nest.places))
    codes = [sum((row[o] + 1) << (2 * r) for r, row in enumerate(nest.coefficients)) for o in blocks]
    body = []
    for o, code in zip(blocks, codes, strict=True):
        body.append(f"c{o} = (((zero + {code}) >> (2 * turn)) & 3) - 1")
        body.append(f"sign{o} = tl.where(c{o} < 0, -1, 1).to({real})")
    lines = [f"blank = {blank}"]

    def added(total: str, o: int, value: str) -> str:
        return f"tl.where(c{o} != 0, {total} + sign{o} * {value}, {total})"

    def body_line(step: Step) -> list[str]:
        if split and isinstance(step, Fetch):
            return []
        if split and isinstance(step, Take):
            name = f"v{step.value}"
            return [f"{name} = blank"] + [
                f"{name} = {added(name, o, f's{nest.places[o][step.value]}')}" for o in blocks
            ]
        if not split and isinstance(step, Keep):
            names = [f"s{nest.places[o][step.result]}" for o in blocks]
            return [f"{name} = {added(name, o, f'v{step.value}')}" for o, name in enumerate(names)]
        return [line_of(step)]

    if split:
        for source in range(whole.sources):
            lines += [line_of(Fetch(source)), line_of(Take(source)), f"s{source} = v{source}"]
    else:
        lines += [f"s{result} = blank" for result in range(len(whole.results))]
    for step in steps(nest.body, ahead):
        body += body_line(step)
    body.append(f"on += {nest.turn_step} * slab")
    lines += [
        f"for turn in range({len(nest.coefficients)}):",
        *("    " + line.replace("\n", "\n    ") for line in body),
    ]
    if not split:
        for result in range(len(whole.results)):
            lines += [f"v{result} = s{result}", line_of(Keep(result, result))]
    return lines
