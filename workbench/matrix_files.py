"""Matrices in files: .npy, and tensors of .safetensors files named FILE:TENSOR; copies of them on a GPU."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import PlanError, SchemeFormatError
from ..kernels import safetensors
from ..kernels.arrays import Matrix, torch
from ..kernels.bfloat16 import bfloat16_bits, float32_of
from ..kernels.factor_files import readable
from ..kernels.precision import TF32, arithmetic_of
from .destination import write

_NPY_MAGIC = b"\x93NUMPY"

SUFFIX = ".safetensors"

_REAL = ("float16", "bfloat16", "tf32", "fp32-accurate", "tf32x3", "fp8", "float32", "float64")
DTYPES = (*_REAL, "complex64", "complex128", "int8", "int32", "int64")
"""The arithmetics that operands can be converted for, by name; the planner decides which a device multiplies."""

PRODUCT = "C"
"""The name of a product's tensor where none is given."""

SHOWN = 8
"""Names of tensors that a message lists."""


@dataclass(frozen=True)
class Operand:
    """A matrix (..., rows, cols) with the name of its arithmetic; the bits of a bfloat16 stand in uint16."""

    matrix: Matrix
    arithmetic: str
    file: str

    @property
    def dtype(self) -> str:
        """The dtype that stores the matrix."""
        return arithmetic_of(self.arithmetic).dtype

    def converted(self, arithmetic: str | None) -> Operand:
        """The operand in the dtype of another arithmetic, by its name; None leaves it as it is.

        Raises:
            PlanError: the conversion would lose imaginary parts or fractions, or entries are too large for it.
        """
        if arithmetic in (None, self.arithmetic):
            return self
        assert arithmetic is not None
        dtype = arithmetic_of(arithmetic).dtype
        kinds = "biufc"
        mine = np.dtype(np.float32 if self.dtype == "bfloat16" else self.matrix.dtype).kind
        other = "c" if dtype.startswith("complex") else "i" if dtype.startswith("int") else "f"
        if mine == "b" or kinds.index(mine) > kinds.index("c" if other == "c" else "f"):
            raise PlanError(f"{self.file} is {self.dtype}, which can't become {dtype}")
        if other == "i" and mine == "f":
            raise PlanError(f"{self.file} is {self.dtype}; converting it to {dtype} would lose its fractions")
        return Operand(_converted(self.widened(), dtype, self.file), arithmetic, self.file)

    def widened(self) -> Matrix:
        """The matrix in a dtype that numpy knows: bfloat16 as float32."""
        return float32_of(self.matrix) if self.dtype == "bfloat16" else self.matrix


def _converted(matrix: Matrix, dtype: str, file: str) -> Matrix:
    storage = np.dtype("float32" if dtype == "bfloat16" else dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        found = matrix.astype(storage)
    if dtype == "bfloat16":
        bits = bfloat16_bits(found)
        if not np.array_equal(np.isfinite(float32_of(bits)), np.isfinite(matrix)):
            raise PlanError(f"{file} has entries that are too large for bfloat16")
        return bits
    if storage.kind == "i":
        if not np.array_equal(found, matrix):
            raise PlanError(f"{file} has entries that {dtype} does not hold")
    elif storage.itemsize < matrix.itemsize and not np.array_equal(np.isfinite(found), np.isfinite(matrix)):
        raise PlanError(f"{file} has entries that are too large for {dtype}")
    return found


def read_operand(text: str) -> Operand:
    """A memory-mapped operand: a .npy file, or FILE.safetensors[:TENSOR].

    Raises:
        SchemeFormatError: there is no such file or tensor, or it holds no matrix.
    """
    path, tensor = _place(text)
    with readable(path):
        found = _tensor(path, tensor, text) if path.suffix == SUFFIX else _npy(path, text)
    if found.matrix.ndim < 2:
        raise SchemeFormatError(f"has {found.matrix.ndim} dimension(s); a matrix has two or more", text)
    if not found.matrix.dtype.isnative:
        return Operand(found.matrix.astype(found.matrix.dtype.newbyteorder("=")), found.dtype, text)
    return found


def _place(text: str) -> tuple[Path, str | None]:
    """A file, and the tensor that is named in it."""
    before, mark, tensor = text.rpartition(f"{SUFFIX}:")
    if mark and not Path(text).is_file():
        return Path(before + SUFFIX), tensor
    return Path(text), None


def file_of(text: str) -> Path:
    """Return the file of an operand or a product."""
    return _place(text)[0]


def _npy(path: Path, text: str) -> Operand:
    with open(path, "rb") as stream:
        magic = stream.read(len(_NPY_MAGIC))
    if magic != _NPY_MAGIC:
        raise SchemeFormatError("is not a .npy matrix: it does not start as one", text)
    try:
        array: Matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, SyntaxError) as error:
        raise SchemeFormatError(f"is not a .npy matrix: {str(error).splitlines()[0]}", text) from None
    return Operand(array, array.dtype.newbyteorder("=").name, text)


def _tensor(path: Path, tensor: str | None, text: str) -> Operand:
    known = safetensors.entries(path)
    if tensor is None and len(known) == 1:
        (tensor,) = known
    if tensor not in known:
        names = ", ".join([*list(known)[:SHOWN], *(["..."] if len(known) > SHOWN else [])]) or "nothing"
        what = "several tensors; name one as FILE:TENSOR" if tensor is None else f"no tensor {tensor[:80]!r}"
        raise SchemeFormatError(f"holds {what}. It has {names}", str(path))
    entry = known[tensor]
    return Operand(safetensors.read(path, entry), safetensors.NAMES[entry.kind], text)


def check_destination(text: str, dtype: str) -> None:
    """Check that a product of this dtype can be written to FILE.npy or FILE.safetensors[:TENSOR].

    Raises:
        PlanError: a .safetensors file holds no such dtype, or the file holds other tensors.
        SchemeFormatError: there is such a file, and it is not of the format.
    """
    path, tensor = _place(text)
    if path.suffix != SUFFIX:
        return
    if dtype not in safetensors.KINDS:
        raise PlanError(f"a {SUFFIX} file holds no {dtype}; write a .npy")
    if path.is_file() and (others := set(safetensors.entries(path)) - {tensor or PRODUCT}):
        raise PlanError(f"{path} holds {min(others)[:80]} and would lose it; write the product to a file of its own")


def write_product(text: str, matrix: Matrix, dtype: str) -> str:
    """Write a product to FILE.npy, or FILE.safetensors[:TENSOR] (tensor "C"), atomically; tells what was written.

    Raises:
        PlanError, SchemeFormatError: as `check_destination`.
        LcmaError: the file cannot be written.
    """
    check_destination(text, dtype)
    path, tensor = _place(text)
    note = ""
    if path.suffix == SUFFIX:
        content = safetensors.pack({tensor or PRODUCT: (safetensors.KINDS[dtype], matrix)})
    else:
        if dtype == "bfloat16":
            matrix, note = float32_of(matrix), " as float32, since .npy has no bfloat16"
        buffer = io.BytesIO()
        np.save(buffer, matrix)
        content = buffer.getvalue()
    write(path, content)
    return f"written: {text}{note}"


def to_gpu(matrix: Any, arithmetic: str, file: str = "the matrix") -> Any:
    """A copy of an array on the current GPU, where float32 is multiplied in tf32 from then on if `arithmetic` says so.

    The bits of a bfloat16 stand in uint16.

    Raises:
        PlanError: torch has no such dtype.
    """
    dtype, precision = arithmetic_of(arithmetic)
    torch.backends.cuda.matmul.allow_tf32 = precision == TF32
    matrix = np.array(matrix)  # in memory of its own: a mapped file is read-only
    if dtype == "bfloat16":
        return torch.from_numpy(matrix.view(np.int16)).view(torch.bfloat16).cuda()
    try:
        return torch.from_numpy(matrix).cuda()
    except TypeError:
        raise PlanError(f"{file} is {dtype}, which torch does not hold; convert with --dtype") from None


def as_numpy(result: Any) -> Any:
    """The product as a numpy array; bfloat16 as its bits."""
    if isinstance(result, np.ndarray):
        return result
    result = result.cpu()
    return result.view(torch.int16).numpy().view(np.uint16) if result.dtype == torch.bfloat16 else result.numpy()
