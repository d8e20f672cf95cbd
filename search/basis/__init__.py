"""Changes of basis modulo 2: elementary shears, and the sparse bases that they lead to."""
