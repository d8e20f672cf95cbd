"""How a scheme lies in words: packed terms of each ring, and bit operations on them."""
