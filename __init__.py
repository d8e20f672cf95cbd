"""lcma: find lower-complexity matrix algorithms, prove them, keep them, and run them on real matrices.

Names are loaded when they are first used: `import lcma` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import names_on_first_use
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
    from .kernels.torch.ops import compile_products as compile_products
    from .kernels.triangular import causal_pv as causal_pv
    from .kernels.triangular import causal_qk as causal_qk
    from .kernels.triangular import masked_matmul as masked_matmul
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

__getattr__, _ = names_on_first_use(__name__, optional=(".kernels.torch", "torch"))


def __dir__() -> list[str]:
    return [*__getattr__("__all__")]
