"""Compiled code that splits matrices of integers into limbs and recombines their products."""

from __future__ import annotations

import numpy as np

from ...jit import njit


@njit(nogil=True)
def split_rows(matrix, limbs, width, modulus, out, first, last):
    """Compute rows first <= i < last of the limbs of a matrix of integers, and of the sums of every two limbs.

    x = sum of limb l * 2^(l width), each of magnitude at most 2^(width - 1) but for the last; x is first reduced to
    the residue of least magnitude if there is a modulus. out (limbs + pairs, rows, cols) is of floats.
    """
    mask, top = (1 << width) - 1, 1 << (width - 1)
    rest = np.empty(matrix.shape[1], np.int64)
    for i in range(first, last):
        if limbs == 1:
            centre_row(matrix[i], modulus, out[0, i])
            continue
        centre_row(matrix[i], modulus, rest)
        for limb in range(limbs - 1):
            target = out[limb, i]
            for j in range(len(rest)):
                low = rest[j] & mask
                carry = np.int64(1) if low >= top else np.int64(0)
                rest[j] = (rest[j] >> width) + carry
                target[j] = low - (carry << width)
        target = out[limbs - 1, i]
        for j in range(len(rest)):
            target[j] = rest[j]
        place = limbs
        for one in range(limbs):
            for other in range(one + 1, limbs):
                target, left, right = out[place, i], out[one, i], out[other, i]
                for j in range(len(target)):
                    target[j] = left[j] + right[j]
                place += 1


@njit(nogil=True)
def centre_row(row, modulus, out):
    """Convert a row of integers to another dtype, as residues of least magnitude if there is a modulus.

    Residues 0 <= x < modulus, of which most rows consist, need no division, so that the loop is vectorised.
    """
    outside = False
    for j in range(len(row)):
        x = np.int64(row[j])
        outside |= (x < 0) | (x >= modulus)
    if outside and modulus:
        for j in range(len(row)):
            x = np.int64(row[j]) % modulus
            out[j] = x - modulus if x > modulus >> 1 else x
    elif modulus:
        for j in range(len(row)):
            x = np.int64(row[j])
            out[j] = x - modulus if x > modulus >> 1 else x
    else:
        for j in range(len(row)):
            out[j] = np.int64(row[j])


@njit(nogil=True)
def single_modulo(product, modulus, out):
    """Convert a row of residues from `combine.reduce_rows`, of magnitude at most modulus, to 0 <= c < modulus."""
    for j in range(len(out)):
        x = np.int64(product[j])
        x = x + modulus if x < 0 else x
        out[j] = x - modulus if x >= modulus else x


@njit(nogil=True)
def join_rows(products, limbs, width, modulus, add, out, first, last):
    """Recombine rows first <= i < last of the products in out (int64); `add`: added to out, else out is set.

    Over Z (modulus 0) the caller's bound proves that it fits. Modulo n, 0 <= c < n: r 2^width + t is reduced with a
    quotient from float64, of magnitude below about 2^24, so its error is below 2^-24 before it is rounded: the residue
    exceeds modulus / 2 by less than modulus / 2^24. A product of single limbs is reduced already, and k not divided.
    """
    scale = 2.0**width
    term, total = np.empty(out.shape[1], np.int64), np.empty(out.shape[1], np.int64)
    for i in range(first, last):
        if limbs == 1 and modulus:
            single_modulo(products[0, i], modulus, out[i])
            continue
        total[:] = 0
        for t in range(2 * limbs - 2, -1, -1):
            term_row(products, limbs, i, t, term)
            if modulus:
                for j in range(len(term)):
                    quotient = np.int64(np.rint((total[j] * scale + term[j]) / modulus))
                    total[j] = (total[j] << width) + term[j] - quotient * modulus
            else:
                for j in range(len(term)):
                    total[j] = (total[j] << width) + term[j]
        row = out[i]
        for j in range(len(row)):
            r = total[j] + row[j] if add else total[j]
            if modulus:
                r = r + modulus if r < 0 else r
                r = r - modulus if r >= modulus else r
            row[j] = r


@njit(nogil=True)
def term_row(products, limbs, i, t, out):
    """Compute the coefficient of 2^(t width), 0 <= t <= 2 limbs - 2, of the elements of row i by Karatsuba's identity.

    a b' + a' b = (a + a') (b + b') - a b - a' b'. Every product is an integer below 2^53.
    """
    out[:] = 0
    place = limbs
    for one in range(limbs):
        left = products[one, i]
        if 2 * one == t:
            for j in range(len(out)):
                out[j] += np.int64(left[j])
        for other in range(one + 1, limbs):
            if one + other == t:
                both, right = products[place, i], products[other, i]
                for j in range(len(out)):
                    out[j] += np.int64(both[j]) - np.int64(left[j]) - np.int64(right[j])
            place += 1


@njit(nogil=True)
def join_wide(products, limbs, width, add, out, first, last):
    """Recombine rows first <= i < last of the products in out (rows, cols, 2), as two words, the lower one first."""
    term = np.empty(out.shape[1], np.int64)
    for i in range(first, last):
        row = out[i]
        if not add:
            row[:] = 0
        for t in range(2 * limbs - 1):
            shift = t * width
            term_row(products, limbs, i, t, term)
            for j in range(len(term)):
                if shift == 0:
                    part, over = np.uint64(term[j]), term[j] >> 63
                elif shift < 64:
                    part, over = np.uint64(term[j]) << np.uint64(shift), term[j] >> (64 - shift)
                else:
                    part, over = np.uint64(0), term[j] << (shift - 64)
                low = np.uint64(row[j, 0]) + part
                row[j, 0] = np.int64(low)
                row[j, 1] += over + (1 if low < part else 0)


@njit(nogil=True)
def join_terms(products, limbs, out, first, last):
    """Compute rows first <= i < last of out (2 limbs - 1, rows, cols): the coefficients of the powers of 2^width."""
    for i in range(first, last):
        for t in range(2 * limbs - 1):
            term_row(products, limbs, i, t, out[t, i])
