"""Schemes by numerical optimisation: real solutions of the equations of a target, made rational.

Chains minimise the sum of squares of the equations of a rank by Levenberg-Marquardt steps and hop from minimum to
minimum (`hopping`). A solution is brought to a sparse basis, and its entries are fixed at simple values,
many at once, while the others are solved for again (`discretise`), as in Smirnov, The bilinear complexity and practical
algorithms for matrix multiplication (2013). Integers decide whether the scheme is right, then it is
certified as others are.
"""
