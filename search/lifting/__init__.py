"""Lifts from Z2 or Z3 to Z and Q: Hensel lifting, ternary lifts, whole pools."""
