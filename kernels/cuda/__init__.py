"""The GPU device: NVIDIA GPUs, by generated Triton kernels and the vendor's products.

Modules import torch inside functions only.
"""
