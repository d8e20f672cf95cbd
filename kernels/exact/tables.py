"""Compiled code over GF(2) for any processor: products by tables of sums of rows, and transpositions.

The products are by the method of the four Russians; 64 x 64 bits are transposed at a time.
"""

from __future__ import annotations

import numpy as np

from ...jit import njit

STRIP_WORDS = 32
"""Words of B that one pass covers: eight tables of 256 rows of 32 words are 512 KiB, half of a second-level cache of
1 MiB.
"""

TABLES = 8


@njit(nogil=True)
def multiply_tables(a, b, c, first, last):
    """Compute rows first <= i < last of c (rows, words) = a b, for a (rows, inner words) and b (inner rows, words).

    For every word of a row of A, eight tables store the sums of all subsets of eight rows of B; each is computed in
    the order of a Gray code, with one addition per entry.
    Source: Arlazarov, Dinic, Kronrod, Faradzev (1970); several tables at once: Albrecht, Bard, Hart (2010).
    """
    inner, words = b.shape
    table = np.zeros((TABLES, 256, STRIP_WORDS), np.uint64)
    byte = np.uint64(255)
    for start in range(0, words, STRIP_WORDS):
        width = min(STRIP_WORDS, words - start)
        for i in range(first, last):
            for w in range(width):
                c[i, start + w] = np.uint64(0)
        for word in range(a.shape[1]):
            for t in range(TABLES):
                before = 0
                for count in range(1, 256):
                    gray = count ^ (count >> 1)
                    changed = gray ^ before
                    bit = 0
                    while changed > 1:
                        changed >>= 1
                        bit += 1
                    row = 64 * word + 8 * t + bit
                    if row < inner:
                        for w in range(width):
                            table[t, gray, w] = table[t, before, w] ^ b[row, start + w]
                    else:
                        for w in range(width):
                            table[t, gray, w] = table[t, before, w]
                    before = gray
            for i in range(first, last):
                bits = a[i, word]
                t0, t1 = bits & byte, (bits >> np.uint64(8)) & byte
                t2, t3 = (bits >> np.uint64(16)) & byte, (bits >> np.uint64(24)) & byte
                t4, t5 = (bits >> np.uint64(32)) & byte, (bits >> np.uint64(40)) & byte
                t6, t7 = (bits >> np.uint64(48)) & byte, bits >> np.uint64(56)
                for w in range(width):
                    # One array for all tables: with eight the vectoriser fails to prove that none overlaps c.
                    total = table[0, t0, w] ^ table[1, t1, w] ^ table[2, t2, w] ^ table[3, t3, w]
                    total ^= table[4, t4, w] ^ table[5, t5, w] ^ table[6, t6, w] ^ table[7, t7, w]
                    c[i, start + w] ^= total


@njit(nogil=True)
def transposed_words(words, out):
    """Write the transpose of words (rows, col words) to out (cols, row words), which must be zero before.

    Source: Warren, Hacker's Delight, section 7-3: halves of 32, 16, ..., 1 bits are swapped.
    """
    rows, width = words.shape
    cols = out.shape[0]
    block = np.empty(64, np.uint64)
    for i in range(0, rows, 64):
        for word in range(width):
            for r in range(64):
                block[r] = words[i + r, word] if i + r < rows else np.uint64(0)
            half, mask = np.uint64(32), np.uint64(0x00000000FFFFFFFF)
            for level in range(6):
                step = 32 >> level
                for start in range(0, 64, 2 * step):
                    for r in range(start, start + step):
                        # The upper bits of row r are swapped with the lower ones of row r + step.
                        moved = ((block[r] >> half) ^ block[r + step]) & mask
                        block[r] ^= moved << half
                        block[r + step] ^= moved
                half >>= np.uint64(1)
                mask ^= mask << half
            for r in range(min(64, cols - 64 * word)):
                out[64 * word + r, i // 64] = block[r]
