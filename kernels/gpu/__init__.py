"""Products on GPUs: kernels generated in Triton around the vendor's products. Nothing here imports torch by itself."""

from ..strategy import Strategy
from .strategies import ThreeStageStrategy
from .three_stage import Way
from .vendor import VendorStrategy

STRATEGIES: tuple[Strategy, ...] = (VendorStrategy(), *(ThreeStageStrategy(way) for way in Way))
"""The strategies for GPUs."""
