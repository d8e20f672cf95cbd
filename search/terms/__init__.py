"""Packed terms of schemes over each ring, and bit operations on them."""
