"""One device: the processor, by generated numba kernels around BLAS."""
