"""Changes of basis modulo 2: elementary shears, and sparse bases found by them."""
