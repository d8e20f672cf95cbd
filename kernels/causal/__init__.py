"""The family of triangular and masked products."""
