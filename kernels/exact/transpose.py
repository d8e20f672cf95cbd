"""Transposition of bit matrices, 64 x 64 bits at a time."""

from __future__ import annotations

import numpy as np

from ...jit import njit


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
