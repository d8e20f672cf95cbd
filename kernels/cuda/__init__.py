"""One device: NVIDIA GPUs, by kernels generated in Triton around the vendor's products. Nothing here imports torch."""
