"""Analysis of triangular schemes: savings in operations, memory traffic, errors."""
