"""Products of torch tensors: operators, layers, attention. Everything here may import torch."""
