"""Conversion of schemes to states of walkers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ....errors import PlanError
from ....schemes_db import Provenance, Scheme
from ....schemes_db.factor import IntArray
from ...terms.involution import backward
from ...terms.orbits import SymmetricTerms
from ...terms.ternary import canonical, with_signs
from ...terms.words import is_wide, with_moved_bits
from .layout import HASH, MAX_CUBES, PRIME, WalkerLayout, Words, bit_print

Values = npt.NDArray[np.uint64]

_PART = np.uint64(0xFFFF)


def encode(layout: WalkerLayout, plus: Values, minus: Values) -> Values:
    """Return the parts of values, given the bits of their 1s and -1s: (planes, ...) of 16 bits each."""
    shifts = np.arange(layout.form.parts, dtype=np.uint64) * np.uint64(16)
    sources = (plus, minus) if layout.form.ternary else (plus,)
    parts = np.stack([(source >> shift) & _PART for source in sources for shift in shifts])
    if layout.form.half:
        lesser = np.minimum(plus, reversed_bits(plus, layout.form.half))
        prints = np.maximum(lesser * np.uint64(HASH) >> np.uint64(48), np.uint64(1)) * (plus != 0)
        return np.concatenate([prints[None], parts])
    parts[0] = (parts[0] + _mix(parts) if layout.form.ternary else parts[0] ^ _linear(layout, plus)) & _PART
    return parts


def decode(layout: WalkerLayout, parts: Values) -> tuple[Values, Values]:
    """Invert `encode`."""
    shifts = (np.arange(layout.form.parts, dtype=np.uint64) * np.uint64(16)).reshape(-1, *[1] * (parts.ndim - 1))
    if layout.form.half:
        plus = np.bitwise_or.reduce(parts[1:] << shifts, axis=0)
        return plus, np.zeros_like(plus)
    whole = parts.copy()
    if layout.form.ternary:
        whole[0] = (parts[0] - _mix(parts)) & _PART
    plus = np.bitwise_or.reduce(whole[: layout.form.parts] << shifts, axis=0)
    if layout.form.ternary:
        return plus, np.bitwise_or.reduce(whole[layout.form.parts :] << shifts, axis=0)
    return plus ^ _linear(layout, plus), np.zeros_like(plus)


def reversed_bits(values: Values, half: int) -> Values:
    """Return the matrices with rows and columns in reverse order, for layouts with `Form.half`."""
    low = np.uint64((1 << half) - 1)
    return (values >> np.uint64(half)) | ((values & low) << np.uint64(half))


def folded(words: Values, half: int, back: bool = False) -> Values:
    """Convert matrices from the layout of `involution.mirrored_layout` to that of `Form.half`; or `back`."""
    low, shift = np.uint64((1 << half) - 1), np.uint64(half)
    return (words & low) | (backward((words >> shift) & low) if back else (backward(words) & low) << shift)


def _mix(parts: Values) -> Values:
    """Return the summand of the fingerprint of a ternary value beside its first part."""
    factors = np.array([p * PRIME & 0xFFFFFFFF for p in range(1, len(parts))], dtype=np.uint64)
    total = (parts[1:] * factors.reshape(-1, *[1] * (parts.ndim - 1))).sum(axis=0, dtype=np.uint64)
    return (total >> np.uint64(7)) & _PART


def _linear(layout: WalkerLayout, plus: Values) -> Values:
    """Return the summand of the fingerprint of a value modulo 2, which must be linear."""
    mixed = np.zeros_like(plus)
    for bit in range(16, 16 * layout.form.parts):
        mixed ^= ((plus >> np.uint64(bit)) & np.uint64(1)) * np.uint64(bit_print(bit))
    return mixed


def pack(layout: WalkerLayout, scheme: Scheme) -> Words:
    """Convert a scheme to a state (words,).

    Raises:
        PlanError: it computes another target, has too many terms, a zero factor, or lacks the coefficients or
            the symmetry of the layout.
    """
    if scheme.target != layout.target:
        raise PlanError(f"{scheme!r} does not compute {layout.target}: a walk can't start there")
    form, kind = layout.form, layout.walk.kind
    signs, cubes = np.zeros(scheme.rank, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    if issubclass(kind, SymmetricTerms):
        orbits = kind.from_scheme(scheme, layout.walk.swaps)
        plus, cubes = orbits.words, orbits.cubes
        if form.half:
            plus, cubes = folded(plus, form.half), folded(cubes, form.half)
        minus = np.zeros_like(plus)
    else:
        plus, minus, signs = _bits(layout, scheme)
    if not (plus | minus).all():
        raise PlanError(f"{scheme!r} has a term with a zero factor: leave it out to start a walk there")
    if plus.shape[1] > form.slots or len(cubes) > MAX_CUBES:
        raise PlanError(f"{scheme!r} does not fit a walk of {form.slots} slots")
    state = np.zeros(form.words, dtype=np.uint32)
    parts = encode(layout, plus, minus)
    slots, rows = form.slot_ids[: plus.shape[1]], form.rows[: plus.shape[1]]
    for p in range(form.planes):
        for f in range(3):
            word = parts[p, f].astype(np.uint32) << (slots & 16).astype(np.uint32)
            np.bitwise_or.at(state, form.places[p, f][rows], word)
    if form.ternary:
        bits = signs.astype(np.uint32) << (slots & 31).astype(np.uint32)
        np.bitwise_or.at(state, form.signs + (slots >> 5), bits)
    # Cubes are stored as they are compared: without the hash of an involution, with a linear fingerprint.
    coded = enumerate(encode(layout, cubes, np.zeros_like(cubes))[form.half > 0 :])
    whole = np.bitwise_or.reduce([part << np.uint64(16 * p) for p, part in coded], axis=0, dtype=np.uint64)
    state[form.cubes :][: 2 * len(cubes)] = whole.view(np.uint32)
    return state


def _moved(layout: WalkerLayout, words: Values, back: bool = False) -> Values:
    """Return packed terms (3 planes, R) with bits of present blocks only, in their order; the inverse with `back`."""
    if is_wide(layout.target):
        return words
    moves = [list(enumerate(places.tolist())) for places in layout.places]
    rows = enumerate(words)
    return np.stack(
        [with_moved_bits(row, moves[f % 3] if back else ((old, new) for new, old in moves[f % 3])) for f, row in rows]
    )


def _bits(layout: WalkerLayout, scheme: Scheme) -> tuple[Values, Values, Values]:
    """Return (3, R) bits of 1s and of -1s, with lowest coefficient 1, and the extracted signs (R,)."""
    kind: Any = layout.walk.kind
    forms, signs = canonical(kind(layout.target, _moved(layout, kind.from_scheme(scheme).words)))
    return forms[:3], forms[3:] if layout.form.ternary else np.zeros_like(forms), signs & np.uint64(1)


def unpack(layout: WalkerLayout, state: Words, provenance: Provenance | None = None) -> Scheme:
    """Return the scheme of a state, over Z2 or, if ternary, over Z."""
    plus, minus, signs = bits_of(layout, state)
    form, kind = layout.form, layout.walk.kind
    if issubclass(kind, SymmetricTerms):
        cubes = state[form.cubes :][: 2 * MAX_CUBES if form.symmetric else 0].view(np.uint64)
        if form.half:
            plus, cubes = (folded(values, form.half, back=True) for values in (plus, cubes))
        else:
            parts = np.stack([(cubes >> np.uint64(16 * p)) & _PART for p in range(form.planes)])
            cubes = decode(layout, parts)[0]
        return kind(layout.target, plus, cubes[cubes != 0], layout.walk.swaps).to_scheme(provenance)
    whole = _moved(layout, np.concatenate([plus, minus]) if form.ternary else plus, back=True)
    return with_signs(kind(layout.target, whole), whole, np.uint64(0) - signs).to_scheme(provenance)


def bits_of(layout: WalkerLayout, state: Words) -> tuple[Values, Values, Values]:
    """Return (3, R) bits of 1s and of -1s, and the signs (R,), of the slots in use, in order of slots."""
    form, slots, parts = layout.form, layout.form.slot_ids, _parts(layout, state)
    used = parts.any(axis=0).all(axis=0)
    plus, minus = decode(layout, parts[:, :, used])
    signs = np.zeros(int(used.sum()), dtype=np.uint64)
    if form.ternary:
        taken = slots[used]
        signs = state[form.signs + (taken >> 5)].astype(np.uint64) >> (taken & 31).astype(np.uint64) & np.uint64(1)
    return plus, minus, signs


def _parts(layout: WalkerLayout, states: Words) -> Values:
    """Return (planes, ..., 3, slots): the 16-bit parts of values in states (..., words)."""
    form = layout.form
    words = states[..., form.places[:, :, form.rows]] >> (form.slot_ids & 16).astype(np.uint32)
    return np.moveaxis(words & np.uint32(0xFFFF), -3, 0).astype(np.uint64)


def ranks_of(layout: WalkerLayout, states: Words) -> IntArray:
    """Return (N,): the numbers of terms in states (N, words)."""
    form = layout.form
    # A live slot has a nonzero value in each factor, though its fingerprint may be 0; an empty one has none.
    used = np.bitwise_or.reduce(states[:, form.places[:, 0]], axis=1)
    ranks = np.count_nonzero(used & np.uint32(0xFFFF), axis=1) + np.count_nonzero(used >> np.uint32(16), axis=1)
    if form.half:
        ranks = 2 * ranks - _alike(layout, states)
    if form.symmetric:
        cubes = np.ascontiguousarray(states[:, form.cubes :][:, : 2 * MAX_CUBES]).view(np.uint64)
        ranks = 3 * ranks + np.count_nonzero(cubes, axis=1)
    return ranks.astype(np.int64)


def _alike(layout: WalkerLayout, states: Words) -> IntArray:
    """Return (N,): the numbers of orbits of states (N, words) that are their own reversal, matrix by matrix."""
    counts = []
    for some in np.array_split(states, -(-len(states) // 1024)):
        values, _ = decode(layout, _parts(layout, some))
        own = (values == reversed_bits(values, layout.form.half)).all(axis=1) & values.all(axis=1)
        counts.append(np.count_nonzero(own, axis=1))
    return np.concatenate(counts)
