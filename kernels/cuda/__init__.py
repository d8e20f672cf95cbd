"""The GPU device: NVIDIA GPUs, by generated Triton kernels and the vendor's products. Nothing here imports torch."""
