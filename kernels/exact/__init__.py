"""Exact products over GF(2), GF(p), Z/n and the integers."""
