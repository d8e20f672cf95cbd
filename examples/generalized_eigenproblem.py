"""For the one who has triangular matrices: A x = lambda B x by Cholesky, with the triangular products in our hands."""

import numpy as np

import lcma

try:
    from scipy.linalg import eigh, solve_triangular
except ImportError:
    print("this example is checked against scipy, which is not installed: pip install scipy")
    raise SystemExit from None

rng, size = np.random.default_rng(0), 700
half, root = rng.standard_normal((2, size, size))
a = half + half.T
# B = L L^T is wanted, and one triangle of that product is all there is to compute.
lower = lcma.syrk(root) + size * np.eye(size)
b = np.tril(lower) + np.tril(lower, -1).T

# B = L L^T and x = L^-T y turn A x = lambda B x into the symmetric (L^-1 A L^-T) y = lambda y.
factor = np.linalg.cholesky(b)
inverse = solve_triangular(factor, np.eye(size), lower=True)
# Both products have a triangular factor: half of a full product's arithmetic, before any scheme.
left = lcma.trmm(inverse, a, scheme="eca-stage2")
values, y = np.linalg.eigh(lcma.trmm(inverse, left, side="right", transposed=True, scheme="eca-stage2"))
x = inverse.T @ y

expected = eigh(a, b, eigvals_only=True)
scale = np.abs(expected).max()
print(f"eigenvalues agree with scipy.linalg.eigh to {np.abs(values - expected).max() / scale:.1e} of the largest")
print(f"A x = lambda B x holds to {np.linalg.norm(a @ x - b @ x * values) / np.linalg.norm(a @ x):.1e}")
if np.abs(values - expected).max() > 1e-10 * scale:
    raise SystemExit("the eigenvalues are wrong")
