"""`out` of every product: of exactly the result's shape, dtype and device, or refused with nothing written."""

from functools import partial

import numpy as np
import pytest

import lcma
from lcma.kernels import executor_for
from lcma.kernels.arrays import torch
from lcma.kernels.factored import factored_request
from lcma.kernels.request import Request, structures_of
from lcma.kernels.structure import DENSE, BlockMask
from lcma.kernels.structured.block_low_rank import LowRank
from lcma.kernels.structured.matrix import FactoredMatrix
from lcma.schemes_db.symmetry import Triangle

from ..refusal import refuses
from .cases import call, table

SIZE = 12


def drawn(*shape, dtype="float32"):
    return np.random.default_rng(30).integers(-4, 5, shape).astype(dtype)


def of_arrays():
    """Products of arrays by name: functions of `out`."""
    yield from ((name, call(text)) for name, text in table(__file__, "out").items())
    a, b = drawn(SIZE, SIZE), drawn(SIZE, SIZE)[::-1].copy()
    low = FactoredMatrix.random(LowRank(SIZE, SIZE, 3), dtype="float32")
    yield "prepared", lambda out=None: lcma.matmul(a, lcma.Prepared(b, SIZE, "strassen"), out=out)
    for name, structures in (
        ("triangular", structures_of(Triangle("out"))),
        ("masked", (DENSE, DENSE, BlockMask.of(np.tri(3, dtype=np.int8)))),
    ):
        yield name, partial(executor_for(Request.of(a, b, structures=structures)).run, a, b)
    low_rank = executor_for(factored_request(low.structure, 5, "float32"))
    yield "low rank", partial(low_rank.run, low.factors, np.asfortranarray(drawn(5, SIZE).T))


def of_tensors():
    """Products of CPU tensors by name, and executors of GPU products that run on them, too."""
    from lcma.kernels.cuda.executor import VendorExecutor
    from lcma.kernels.cuda.level import padded_product
    from lcma.kernels.cuda.level_product import level_executor
    from lcma.kernels.cuda.requests import request_of

    yield from ((name, call(text)) for name, text in table(__file__, "out_of_tensors").items())
    a, b = (torch.from_numpy(drawn(SIZE, SIZE)[::step].copy()) for step in (1, -1))
    three = torch.from_numpy(drawn(3, SIZE, SIZE))
    request = request_of(a, b)
    yield "vendor", partial(VendorExecutor().run, a, b)
    yield "vendor of a batch", partial(VendorExecutor(strict=True).run, three, b)
    yield "padded", partial(level_executor(request, padded_product()).run, a, b)


def refused_arrays(wanted):
    """Arrays that a result is not written to, by what is wrong with them."""
    shape, dtype = wanted.shape, wanted.dtype
    yield "float", np.full(shape, 7, "float32" if dtype != "float32" else "float64")
    yield "integer", np.full(shape, 7, "int32" if dtype != "int32" else "int64")
    if dtype.kind != "O" and dtype.itemsize > 1:
        yield "byte order", np.full(shape, 7, dtype.newbyteorder())
    yield "leading size", np.full((2, *shape), 7, dtype)
    yield "flat", np.full(wanted.size, 7, dtype) if wanted.ndim > 1 else np.full((1, wanted.size), 7, dtype)
    yield "longer", np.full((*shape[:-1], shape[-1] + 1), 7, dtype)
    yield "empty", np.full(0, 7, dtype)
    yield "masked", np.ma.masked_array(np.full(shape, 7, dtype))
    frozen = np.full(shape, 7, dtype)
    frozen.flags.writeable = False
    yield "read-only", frozen
    one = np.full((*shape[:-1], 1), 7, dtype)
    yield "repeated", np.lib.stride_tricks.as_strided(one, shape, (*one.strides[:-1], 0))
    rows = np.full(2 * wanted.size, 7, dtype)
    step = rows.strides[0]
    yield "sliding", np.lib.stride_tricks.as_strided(rows, shape, (step,) * len(shape)) if wanted.ndim > 1 else one
    yield "list", np.full(shape, 7, dtype).tolist()


def good_arrays(wanted):
    shape, dtype = wanted.shape, wanted.dtype
    yield np.full(shape, 7, dtype)
    yield np.full(shape, 7, dtype, order="F")
    yield np.full((*shape[:-1], 2 * shape[-1]), 7, dtype)[..., ::2]
    yield np.full((*shape[:-1], shape[-1] + 3), 7, dtype)[..., 1 : 1 + shape[-1]]


@pytest.mark.parametrize("scheme", ["auto", "strassen"])
def test_a_result_may_replace_an_operand(scheme):
    for dtype in ("float32", "float64", "float16", "int64"):
        a, b = drawn(SIZE, SIZE, dtype=dtype), drawn(SIZE, SIZE, dtype=dtype)
        if dtype == "float16" and scheme != "auto":
            continue
        wanted = a @ b
        np.testing.assert_array_equal(lcma.matmul(a, b, scheme, out=a), wanted)
    a, b = drawn(SIZE, SIZE, dtype="int64"), drawn(SIZE, SIZE, dtype="int64")
    wanted = a @ b
    np.testing.assert_array_equal(lcma.matmul(a, b, scheme, out=b.T if scheme == "auto" else b, ring="Z").T, wanted.T)


def test_a_bit_matrix_that_does_not_fit_is_refused():
    a, b = (lcma.BitMatrix.random(70, 70, seed=seed) for seed in (1, 2))
    frozen = lcma.BitMatrix.zeros(70, 70)
    frozen.words.flags.writeable = False
    for out in (lcma.BitMatrix.zeros(70, 71), lcma.BitMatrix.zeros(1, 70, 70), a.words, frozen, a.to_array()):
        refuses(r"^out ", lcma.matmul, a, b, ring="Z2", out=out)
    wanted = a @ b
    assert lcma.matmul(a, b, ring="Z2", out=a) == wanted
    assert a == wanted


def refused_tensors(wanted):
    """Tensors that a result is not written to, by what is wrong with them."""
    shape, dtype = tuple(wanted.shape), wanted.dtype
    yield "float", torch.full(shape, 7, dtype=torch.float32 if dtype != torch.float32 else torch.float64)
    yield "integer", torch.full(shape, 7, dtype=torch.int32 if dtype != torch.int32 else torch.int64)
    yield "half", torch.full(shape, 7, dtype=torch.float16)
    yield "leading size", torch.full((2, *shape), 7, dtype=dtype)
    yield "longer", torch.full((*shape[:-1], shape[-1] + 1), 7, dtype=dtype)
    yield "flat", torch.full((1, wanted.numel()), 7, dtype=dtype)
    yield "repeated", torch.full((*shape[:-1], 1), 7, dtype=dtype).expand(shape)
    yield "meta", torch.empty(shape, dtype=dtype, device="meta")
    yield "array", np.full(shape, 7, "float32")
    if dtype not in (torch.bfloat16, torch.float8_e4m3fn):
        yield "empty, of an array", torch.from_numpy(torch.empty(0, dtype=dtype).numpy())
    yield "sparse", torch.zeros(shape, dtype=dtype).to_sparse()
    if dtype.is_floating_point:
        yield "requires grad", torch.full(shape, 7, dtype=dtype, requires_grad=True)
        yield "empty, requires grad", torch.empty(0, dtype=dtype, requires_grad=True)


def good_tensors(wanted):
    shape, dtype = tuple(wanted.shape), wanted.dtype
    yield torch.full(shape, 7, dtype=dtype)
    yield torch.empty(0, dtype=dtype)
    yield torch.full((*shape[:-1], 2 * shape[-1]), 7, dtype=dtype)[..., ::2]
    yield torch.full(shape[::-1], 7, dtype=dtype).permute(*reversed(range(len(shape))))


KINDS = {"arrays": (of_arrays, refused_arrays, good_arrays), "tensors": (of_tensors, refused_tensors, good_tensors)}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """Products by name, and functions of their results: what is refused as `out`, and what fits."""
    if request.param == "tensors":
        pytest.importorskip("torch")
    products, refused, good = KINDS[request.param]
    return dict(products()), refused, good


def test_what_does_not_fit_is_refused_and_not_written(kind):
    products, refused, _ = kind
    for name, product in products.items():
        for what, out in refused(product()):
            before = repr(out)
            refuses(r"^(out|elements of out) ", product, out=out)
            assert repr(out) == before, (name, what)


def test_a_result_is_written_to_whatever_fits(kind):
    products, _, good = kind
    for name, product in products.items():
        wanted, written = product(), 0
        for out in good(wanted):
            try:
                assert product(out=out) is out, name
            except lcma.PlanError:  # a plan or a layout is for another order of the elements
                assert "Kronecker" in name or name in ("triangular", "masked", "low rank"), name
                continue
            assert (out == wanted).all(), name
            written += 1
        assert written, name


def test_a_tensor_may_replace_an_operand_but_no_view_without_elements():
    pytest.importorskip("torch")
    for name, product in of_tensors():
        whole = torch.full(tuple(product().shape), 7, dtype=product().dtype)
        refuses(r"^out must be a tensor of shape", product, out=whole[:0])
        assert (whole == 7).all(), name
    from lcma.kernels.cuda.executor import VendorExecutor

    a, b = (torch.randn(SIZE, SIZE, dtype=torch.float64) for _ in range(2))
    for product in (lcma.matmul, partial(lcma.matmul, scheme="strassen"), VendorExecutor().run):
        for place in range(2):
            operands = a.clone(), b.clone()
            torch.testing.assert_close(product(*operands, out=operands[place]), a @ b)
    a = torch.arange(5.0)
    assert lcma.matmul(a, a).shape == torch.matmul(a, a).shape
    assert lcma.matmul(a, a, out=torch.empty(())) == 30
