"""One family: triangular and masked products."""
