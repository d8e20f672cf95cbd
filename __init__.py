"""lcma: find lower-complexity matrix algorithms, prove them, keep them, and run them on real matrices.

Names are loaded when they are first used: `import lcma` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

if TYPE_CHECKING:
    from .errors import CatalogError as CatalogError
    from .errors import LcmaError as LcmaError
    from .errors import PlanError as PlanError
    from .errors import SchemeFormatError as SchemeFormatError
    from .errors import TargetError as TargetError
    from .errors import VerificationError as VerificationError
    from .kernels import BitMatrix as BitMatrix
    from .kernels import Prepared as Prepared
    from .kernels import block_low_rank as block_low_rank
    from .kernels import finite as finite
    from .kernels import kronecker as kronecker
    from .kernels import matmul as matmul
    from .kernels import plan as plan
    from .kernels import prepare as prepare
    from .kernels.compression import CompressConfig as CompressConfig
    from .kernels.einsum import einsum as einsum
    from .kernels.learning import learn as learn
    from .kernels.masked import masked_matmul as masked_matmul
    from .kernels.torch.acceleration import AccelerateConfig as AccelerateConfig
    from .kernels.torch.acceleration import accelerate_ as accelerate_
    from .kernels.torch.acceleration import restore_ as restore_
    from .kernels.torch.attention import causal_attention as causal_attention
    from .kernels.torch.block_low_rank_layers import BlastLinear as BlastLinear
    from .kernels.torch.block_low_rank_layers import LowRankLinear as LowRankLinear
    from .kernels.torch.block_low_rank_layers import MonarchLinear as MonarchLinear
    from .kernels.torch.block_low_rank_layers import fold_into as fold_into
    from .kernels.torch.compression import compress_ as compress_
    from .kernels.torch.compression import load_compressed_ as load_compressed_
    from .kernels.torch.kronecker_layers import KSFeedForward as KSFeedForward
    from .kernels.torch.kronecker_layers import KSLinear as KSLinear
    from .kernels.torch.layers import FastLinear as FastLinear
    from .kernels.torch.precompile import compile_products as compile_products
    from .kernels.triangular import causal_pv as causal_pv
    from .kernels.triangular import causal_qk as causal_qk
    from .kernels.triangular import syrk as syrk
    from .kernels.triangular import trmm as trmm
    from .schemes_db import Certificate as Certificate
    from .schemes_db import Program as Program
    from .schemes_db import Provenance as Provenance
    from .schemes_db import Ring as Ring
    from .schemes_db import Scheme as Scheme
    from .schemes_db import Target as Target
    from .schemes_db import parse_ring as parse_ring
    from .schemes_db import parse_target as parse_target
    from .schemes_db.algebra import naive as naive
    from .schemes_db.algebra import permute as permute
    from .schemes_db.algebra import reverse as reverse
    from .schemes_db.algebra import rotate as rotate
    from .schemes_db.algebra import tensor as tensor
    from .schemes_db.algebra import transpose as transpose
    from .schemes_db.catalog import Catalog as Catalog
    from .schemes_db.evaluate import evaluate as evaluate
    from .schemes_db.formats import read_file as read_file
    from .schemes_db.formats import write_file as write_file
    from .schemes_db.resolve import resolve as resolve
    from .schemes_db.straightline import program_of as program_of
    from .search import find as find
    from .search import lift as lift
    from .verify import certify as certify
    from .verify import check as check
    from .verify import check_program as check_program
    from .verify import check_traced as check_traced
    from .verify import load as load
    from .verify import recheck as recheck
    from .verify import recheck_file as recheck_file
    from .verify import verify_file as verify_file

_MODULES = {
    ".errors": ("CatalogError", "LcmaError", "PlanError", "SchemeFormatError", "TargetError", "VerificationError"),
    ".kernels": ("BitMatrix", "Prepared", "block_low_rank", "finite", "kronecker", "matmul", "plan", "prepare"),
    ".kernels.masked": ("masked_matmul",),
    ".kernels.triangular": ("causal_pv", "causal_qk", "syrk", "trmm"),
    ".kernels.compression": ("CompressConfig",),
    ".kernels.einsum": ("einsum",),
    ".kernels.learning": ("learn",),
    ".kernels.torch.acceleration": ("AccelerateConfig", "accelerate_", "restore_"),
    ".kernels.torch.attention": ("causal_attention",),
    ".kernels.torch.precompile": ("compile_products",),
    ".kernels.torch.block_low_rank_layers": ("BlastLinear", "LowRankLinear", "MonarchLinear", "fold_into"),
    ".kernels.torch.compression": ("compress_", "load_compressed_"),
    ".kernels.torch.kronecker_layers": ("KSFeedForward", "KSLinear"),
    ".kernels.torch.layers": ("FastLinear",),
    ".schemes_db": ("Certificate", "Program", "Provenance", "Ring", "Scheme", "Target", "parse_ring", "parse_target"),
    ".schemes_db.algebra": ("naive", "permute", "reverse", "rotate", "tensor", "transpose"),
    ".schemes_db.catalog": ("Catalog",),
    ".schemes_db.evaluate": ("evaluate",),
    ".schemes_db.formats": ("read_file", "write_file"),
    ".schemes_db.resolve": ("resolve",),
    ".schemes_db.straightline": ("program_of",),
    ".search": ("find", "lift"),
    ".verify": (
        "certify",
        "check",
        "check_program",
        "check_traced",
        "load",
        "recheck",
        "recheck_file",
        "verify_file",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

_TORCH = ".kernels.torch"
_MISSING = set() if find_spec("torch") else {name for name, home in _HOMES.items() if home.startswith(_TORCH)}

__all__ = sorted({"__version__", *_HOMES} - _MISSING)  # what `from lcma import *` can import


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lcma' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name], __name__), name)
    except ModuleNotFoundError as error:
        if name not in _MISSING:
            raise
        raise ModuleNotFoundError(f"lcma.{name} needs torch; pip install 'lcma[torch]'", name=error.name) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
