"""The CPU device: generated numba kernels for the sums, BLAS for the products."""
