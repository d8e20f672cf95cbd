"""CP-SAT models: the Brent equations, recombination of products, signs."""
