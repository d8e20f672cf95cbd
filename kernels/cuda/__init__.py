"""The GPU device: NVIDIA GPUs, by generated Triton kernels and the vendor's products.

Modules take torch from `arrays`: importing them does not import it.
"""
