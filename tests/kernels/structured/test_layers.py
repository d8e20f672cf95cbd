"""The torch operators and the layers on a processor: values, gradients, strides, compile, autocast, other layouts."""

import copy

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad
from torch.library import opcheck
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

import lcma
from lcma import kronecker
from lcma.kernels.cuda.dtypes import vendor_precision
from lcma.kernels.factored import ORDERS
from lcma.kernels.kronecker import KroneckerSparse
from lcma.kernels.structured.block_low_rank import parse_structure
from lcma.kernels.structured.layouts import LAYOUTS
from lcma.kernels.structured.outer import SLAB, outer_blocks, transposed_gradients
from lcma.kernels.torch import factored_layer, structured
from lcma.kernels.torch.block_low_rank_layers import layer_of
from lcma.kernels.torch.structured import structure_of_factor, structured_mm
from lcma.kernels.torch.structured_products import arithmetic_on_gpu

from ...refusal import refuses
from ..cases import STRUCTURE, each, table
from ..modules import Conv1D
from .products import defined

UP, DOWN = ((1, 12, 3, 2), (3, 2, 2, 1)), ((3, 2, 4, 1), (1, 6, 12, 2))
"""24 x 6 and 6 x 24, two factors each; the second of UP has d = 1."""

every = each("structure", __file__, "layers", **STRUCTURE)
in_both_layouts = pytest.mark.parametrize(
    ("structure", "layout"),
    [
        (parse_structure(text), layout)
        for text in table(__file__, "layers")
        for layout in ORDERS[: 1 + (text[0] == "(")]
    ],
    ids=str,
)
"""Batch-first, and layers of patterns batch-last, too."""


def made(structure, bias=True, dtype=None, layout="bsf"):
    """The layer of a structure."""
    if layout == "bsl":
        return lcma.KSLinear(structure.patterns, bias, layout, dtype=dtype)
    return layer_of(structure, bias, dtype=dtype)


def compiled_graph(layer):
    """The layer as one graph; torch compiles the code of one forward, which all layers share, only so many times."""
    torch.compiler.reset()
    return torch.compile(layer, backend="aot_eager", fullgraph=True)


def product(x, factors, structure, last=True):
    """x W^T by the operator."""
    return structured_mm(x.T, factors, structure, last).T


def kronecker_mm(x, weights, last=False, strategy=None, precision=None):
    return structured_mm(x, [weights], structure_of_factor(weights), last, strategy, precision)


@in_both_layouts
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_values_and_gradients_are_those_of_the_dense_layer(structure, layout, dtype):
    layer = made(structure, dtype=dtype, layout=layout)
    n, weight = layer.in_features, defined(structure, layer.weights())
    x = torch.randn(*((2, 5, n) if layout == "bsf" else (n, 2, 5)), dtype=dtype, requires_grad=True)
    last = torch.tensordot(weight, x if layout == "bsl" else x.movedim(-1, 0), 1) + layer.bias[:, None, None]
    truth = last if layout == "bsl" else last.movedim(0, -1)
    y = layer(x)
    torch.testing.assert_close(y, truth)
    torch.testing.assert_close(layer.dense(), weight)
    assert y.is_contiguous()
    leaves, ask = [x, *layer.parameters()], torch.randn_like(y)
    torch.testing.assert_close(*(torch.autograd.grad(z, leaves, ask) for z in (y, truth)))
    for shape in ((0, n), (n,)) if layout == "bsf" else ((n, 0), (n,)):
        y = layer(torch.randn(shape, dtype=dtype, requires_grad=True))
        assert y.shape == ((*shape[:-1], len(weight)) if layout == "bsf" else (len(weight), *shape[1:]))
        y.sum().abs().backward()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own rules of forward AD
@every
def test_the_operator_is_sound_and_its_derivatives_of_both_orders_and_modes_are_right(structure):
    layer = made(structure, bias=False, dtype=torch.float64)
    x = torch.randn(3, structure.cols, dtype=torch.float64, requires_grad=True)
    factors = layer.weights()
    several = isinstance(structure, KroneckerSparse)
    for last, precision in ((True, None), (False, "tf32x3")) if several else ((True, None),):
        columns = torch.randn(structure.cols, 3, dtype=torch.float64, requires_grad=True)
        opcheck(torch.ops.lcma.structured_mm.default, (columns, factors, structure.text, last, None, precision))
        strides = structured_mm(columns, factors, structure, last).stride()
        assert strides == ((1, structure.rows) if last else (3, 1))  # as a graph expects them
        call = lambda x, *factors, last=last: product(x, factors, structure, last)  # noqa: E731
        torch.autograd.gradcheck(call, (x, *factors), check_forward_ad=True, fast_mode=True)
    torch.autograd.gradgradcheck(lambda x, *factors: product(x, factors, structure), (x, *factors), fast_mode=True)
    tangent = torch.randn_like(x)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(product(forward_ad.make_dual(x, tangent), factors, structure)).tangent
    torch.testing.assert_close(found, tangent @ defined(structure, factors).T)


@every
def test_vmap_maps_inputs_and_factors(structure):
    layer = made(structure, bias=False, dtype=torch.float64)
    x = torch.randn(4, 3, structure.cols, dtype=torch.float64)
    first, *others = (one.detach() for one in layer.weights())
    full = defined(structure, [first, *others])
    found = torch.vmap(lambda one: product(one, [first, *others], structure))(x)
    torch.testing.assert_close(found, x @ full.T)
    several = torch.stack([first, 2 * first])
    found = torch.vmap(lambda one: product(x[0], [one, *others], structure))(several)
    torch.testing.assert_close(found, torch.stack([x[0] @ full.T, 2 * x[0] @ full.T]))


@every
def test_a_layer_is_compiled_cast_and_counted_as_one_of_torch(structure):
    layer = made(structure, dtype=torch.float64)
    compiled = compiled_graph(layer)
    x = torch.randn(5, structure.cols, dtype=torch.float64, requires_grad=True)
    leaves = [x, *layer.parameters()]
    torch.testing.assert_close(compiled(x), layer(x))
    torch.testing.assert_close(*(torch.autograd.grad(module(x).square().sum(), leaves) for module in (compiled, layer)))
    layer, x = made(structure), torch.randn(9, structure.cols)
    truth = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        lowered = layer(x)
    assert lowered.dtype == torch.bfloat16
    assert (lowered.float() - truth).norm() < 2e-2 * truth.norm()
    for dtype, limit in ((torch.float16, 4e-3), (torch.bfloat16, 2e-2)):
        halved = copy.deepcopy(layer).to(dtype)(x.to(dtype))
        assert halved.dtype == dtype
        assert (halved.float() - truth).norm() < limit * truth.norm()
    layer = made(structure, bias=False)
    x = torch.randn(6, structure.cols, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        layer(x)
    assert counter.get_total_flops() == structure.flops(6)
    if isinstance(structure, KroneckerSparse):
        with FlopCounterMode(display=False) as counter:
            layer(x).sum().backward()
        assert counter.get_total_flops() == 3 * 2 * structure.parameters * 6


@pytest.mark.parametrize("precision", ["ieee", "tf32", "fp32-accurate", "tf32x3"])
def test_a_precision_is_of_float32_on_a_gpu(precision):
    """The precision reaches a GPU's request; a processor multiplies strictly, under autocast and compile, too."""
    layer, plain = lcma.KSLinear(UP, precision=precision), lcma.KSLinear(UP)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(9, 6, requires_grad=True)
    for run in (layer, compiled_graph(layer)):
        torch.testing.assert_close(run(x), plain(x), rtol=0, atol=0)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), plain(x))
    assert f"precision={precision}" in repr(layer)
    known = {"ieee": "float32", "tf32x3": "fp32-accurate"}
    assert arithmetic_on_gpu(x, precision).name == known.get(precision, precision)
    assert arithmetic_on_gpu(x.half(), precision) == ("float16", None)
    assert arithmetic_on_gpu(x.double(), precision) == ("float64", None)
    refuses("precision must be one of", kronecker_mm, x.T, layer.factors[1], precision="fp32")


def test_torchs_setting_is_lent_and_given_back():
    settings = torch.backends.cuda.matmul
    for before in (False, True):
        settings.allow_tf32 = before
        try:
            for dtype, wanted in (("tf32", True), ("fp32-accurate", False), ("float32", False), ("float16", before)):
                with vendor_precision(dtype):
                    assert settings.allow_tf32 == wanted
                assert settings.allow_tf32 == before
            with pytest.raises(ValueError, match="inside"), vendor_precision("tf32"):
                raise ValueError("inside")
            assert settings.allow_tf32 == before
        finally:
            settings.allow_tf32 = False


def test_sums_over_the_batch_have_a_fixed_order_and_their_operator_is_sound():
    for precision in (None, "tf32"):
        operands = torch.randn(12, 5), torch.randn(24, 5)
        opcheck(torch.ops.lcma.structured_outer.default, (*operands, 2, 3, precision))
    rng = np.random.default_rng(0)
    n = 2 * SLAB + 77
    grad, x = rng.standard_normal((12, n)).astype("f"), rng.standard_normal((24, n)).astype("f")
    truth = np.einsum("ipjn,iqjn->ijpq", grad.reshape(2, 2, 3, n).astype(float), x.reshape(2, 4, 3, n).astype(float))
    found = outer_blocks(grad, x, 2, 3)
    np.testing.assert_allclose(found, truth, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(found, outer_blocks(np.asfortranarray(grad), np.asfortranarray(x), 2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", LAYOUTS)
def test_parameters_of_other_code_come_in_and_go_out(name, dtype):
    layer, other = (lcma.KSLinear(UP, dtype=dtype) for _ in range(2))
    weights = layer.in_layout(name)
    assert {one.dtype for one in weights} == {dtype}
    other.load_layout(weights, name, layer.bias.detach()[:, None])
    assert all(map(torch.equal, other.parameters(), layer.parameters()))
    refuses("2 factors, not 1", layer.load_layout, weights[:1], name)
    assert list(layer.state_dict()) == ["bias", "factors.0", "factors.1"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dense_factors_with_entries_outside_their_patterns_are_refused(dtype):
    layer = lcma.KSLinear(UP, bias=False, dtype=dtype)
    before = copy.deepcopy(layer.state_dict())
    first, second = layer.in_layout("dense")
    layer.load_layout([first, torch.where(second == 0, -0.0, second)], "dense")
    second = torch.where(second == 0, 0.5, second)
    message = "outside the support.* of its Frobenius norm.*KSLinear.from_dense"
    refuses(message, layer.load_layout, [2 * first, second], "dense")
    torch.testing.assert_close(layer.state_dict(), before, rtol=0, atol=0)


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128, torch.bfloat16])
def test_a_layer_is_stored_read_and_exchanged_with_the_papers_layouts(structure, dtype, tmp_path):
    layer, again = (made(structure, dtype=dtype) for _ in range(2))
    again.load_state_dict(layer.state_dict())
    matrix, file = layer.matrix(), tmp_path / f"k.{'safetensors' if dtype is torch.bfloat16 else 'npz'}"
    kronecker.save(file, matrix)
    others = [
        again,
        type(layer).from_matrix(matrix, layer.bias),
        type(layer).from_matrix(kronecker.load(file), layer.bias),
    ]
    if not isinstance(structure, KroneckerSparse):
        given = layer.in_layout()
        assert {one.dtype for one in given.values()} == {dtype}
        papers = made(structure, dtype=dtype)
        others.append(papers.load_layout(given["V"], given["U"], given.get("S"), bias=layer.bias))
    x = torch.randn(3, structure.cols).to(dtype)
    for other in others:
        assert type(other) is type(layer)
        assert all(map(torch.equal, other.weights(), layer.weights()))
        assert torch.equal(other(x), layer(x))


def test_a_gradient_that_both_products_transpose_is_transposed_once(monkeypatch):
    def gradients():
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(6, 24, generator=generator, dtype=torch.float64, requires_grad=True)
        weights = torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
        product = kronecker_mm(x.T, weights, True).T
        return torch.autograd.grad(product, (x, weights), torch.randn(product.shape, generator=generator).double())

    expected, given = gradients(), []

    def shared(grad, x, weights):
        given.append((grad.shape, x.shape))
        return transposed_gradients(grad, x, weights)

    monkeypatch.setattr(structured, "_is_transposed", lambda *_: True)
    monkeypatch.setattr(structured, "transposed_gradients", shared)
    for found, wanted in zip(gradients(), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert given == [((30, 6), (24, 6))]


def test_initial_values_are_uniform():
    layer = lcma.KSLinear((4, 32, 16, 4))
    bound = 16**-0.5
    assert layer.factors[0].abs().max() <= bound
    assert abs(layer.factors[0].std() - bound / 3**0.5) < 0.02 * bound
    assert layer.bias.abs().max() <= layer.in_features**-0.5


@every
def test_results_are_of_the_size_of_nn_linears(structure):
    y = made(structure)(torch.randn(4000, structure.cols))
    assert y.shape == (4000, structure.rows)
    assert y.detach().var() < 2


FOLLOWING = {
    "linear": lambda: (torch.nn.Linear(8, 12), torch.nn.LayerNorm(8)),
    "Conv1D": lambda: (Conv1D(5, 8), None),
    "low-rank": lambda: (lcma.LowRankLinear(8, 5, 3), None),
}


@pytest.mark.parametrize("following", FOLLOWING)
def test_interleaving_folds_into_every_layer_whose_inputs_may_be_in_any_order(following):
    gate, up, other = (lcma.MonarchLinear(12, 8, (3, b2), 2, interleaved=True, dtype=torch.float64) for b2 in (2, 2, 4))
    after, norm = (one and one.double() for one in FOLLOWING[following]())
    for vector in norm.parameters() if norm else ():
        torch.nn.init.normal_(vector)
    x = torch.randn(5, 12, dtype=torch.float64)

    def block(x):
        hidden = torch.nn.functional.silu(gate(x)) * up(x)
        return after(norm(hidden) if norm else hidden)

    wanted = block(x)
    refuses("is given twice", lcma.fold_into, [gate, gate], after)
    for blocked in (lcma.MonarchLinear(8, 5, (2, 1), 2), lcma.BlastLinear(8, 5, (2, 1), 2), torch.nn.ReLU()):
        refuses("whose inputs can't be in any order", lcma.fold_into, [gate], blocked)
    refuses("the same outputs and b2", lcma.fold_into, [gate, other], after)
    refuses("takes 9 features, not 8", lcma.fold_into, [gate], torch.nn.Linear(9, 2))
    refuses("other features", lcma.fold_into, [gate], after, torch.nn.LayerNorm(9))
    torch.testing.assert_close(block(x), wanted)  # nothing was changed
    lcma.fold_into([gate, up], after, norm)
    assert not gate.structure.interleaved
    assert not up.structure.interleaved
    torch.testing.assert_close(block(x), wanted)
    refuses("only interleaved", lcma.fold_into, [gate], after)


@in_both_layouts
def test_a_packed_layer_uses_the_dense_weight_only_where_no_gradients_are_recorded(structure, layout, monkeypatch):
    layer = made(structure, dtype=torch.float64, layout=layout).eval()
    layer.strategy = "strided"
    assert not layer.pack(5, 1 << 30)
    layer.strategy = "dense"  # in place of the planner's choice, which depends on this machine
    extra = structure.rows * structure.cols * 8
    assert not layer.pack(5, extra - 1)
    assert layer.pack(5, extra)
    assert layer.packed_bytes == extra
    rows = torch.randn(5, structure.cols, dtype=torch.float64)
    x = rows if layout == "bsf" else rows.T.contiguous()
    factored, products = factored_layer.multiply_factors, []
    monkeypatch.setattr(factored_layer, "multiply_factors", lambda *given: products.append(given) or factored(*given))

    def unbiased():
        return (layer(x) if layout == "bsf" else layer(x).T) - layer.bias

    wanted = (rows @ defined(structure, layer.weights()).T).detach()
    with torch.no_grad():
        torch.testing.assert_close(unbiased(), wanted)
        assert not products
        compiled = compiled_graph(layer)
        torch.testing.assert_close(compiled(x), layer(x))
        refuses("convert one with", layer, x.float())
        assert layer.packed_bytes
        layer.weights()[0].mul_(2)
        torch.testing.assert_close(unbiased(), 2 * wanted)
        assert not layer.packed_bytes
    for drop in (
        lambda: layer(x),
        layer.train,
        lambda: layer.load_state_dict(layer.state_dict()),
        lambda: layer.to(torch.float64),
    ):
        assert layer.eval().pack(5, extra)
        drop()
        assert not layer.packed_bytes
    assert layer.pack(5, extra)
    assert not copy.deepcopy(layer).packed_bytes
    layer.precision = "tf32"
    refuses("without precision=", layer.pack, 5, extra)


@pytest.mark.parametrize("layer", [lcma.KSLinear(UP), lcma.LowRankLinear(6, 8, 3)], ids=["pair", "low-rank"])
def test_operands_that_do_not_fit_are_refused(layer):
    x = torch.randn(2, 6)
    refuses(r"inputs of layout bsf have shape \(..., 6\)", layer, torch.randn(2, 5))
    refuses(r"convert one with \.to", layer, x.double())
    refuses("factor 1 has shape", product, x, layer.weights()[::-1], layer.structure)
    refuses("needs a list of 2 factors, left-most first, not 1", product, x, layer.weights()[:1], layer.structure)
    assert layer(x[:0]).shape == (0, layer.out_features)


def test_the_text_of_a_layer_and_what_refuses_inputs_batch_last():
    assert "(1,12,3,2)(3,2,2,1), bias=True, layout=bsf" in repr(lcma.KSLinear(UP))
    refuses('make a KSLinear with layout="bsl"', lcma.KSLinear(UP), torch.randn(6, 5))
    refuses("inputs of layout bsf", lcma.KSFeedForward(UP, DOWN), torch.randn(6, 5))


@pytest.mark.parametrize("layout", ["bsf", "bsl"])
@pytest.mark.parametrize(("norm", "residual", "bias"), [(True, True, True), (False, False, False)])
def test_a_block_is_that_of_dense_layers(layout, norm, residual, bias):
    block = lcma.KSFeedForward(UP, DOWN, bias, layout, dtype=torch.float64, norm=norm, residual=residual)
    if norm:
        torch.nn.init.normal_(block.norm.weight)
        torch.nn.init.normal_(block.norm.bias)
    x, ask = torch.randn(2, 2, 5, 6, dtype=torch.float64)
    last = layout == "bsl"
    given = (x.movedim(-1, 0).contiguous() if last else x).requires_grad_()
    y = block(given)
    (grad,) = torch.autograd.grad(y, given, ask.movedim(-1, 0) if last else ask)
    plain = x.detach().clone().requires_grad_()
    hidden = block.norm(plain) if norm else plain
    hidden = functional.gelu(functional.linear(hidden, block.up.dense(), block.up.bias))
    truth = functional.linear(hidden, block.down.dense(), block.down.bias)
    truth = truth + plain if residual else truth
    (wanted,) = torch.autograd.grad(truth, plain, ask)
    assert y.is_contiguous()
    for found, right in ((y, truth), (grad, wanted)):
        torch.testing.assert_close(found.movedim(0, -1) if last else found, right)


def test_the_hidden_features_keep_the_batch_last_and_halves_are_normed_in_float32(monkeypatch):
    seen, gelu = [], functional.gelu
    monkeypatch.setattr(functional, "gelu", lambda x, **more: seen.append((x.shape, x.stride())) or gelu(x, **more))
    for layout, shape in (("bsf", (10, 6)), ("bsl", (6, 10))):
        lcma.KSFeedForward(UP, DOWN, layout=layout)(torch.randn(shape))
    assert seen == [((24, 10), (10, 1))] * 2
    first, last = (lcma.KSFeedForward(UP, DOWN, layout=layout).bfloat16() for layout in ("bsf", "bsl"))
    last.load_state_dict(first.state_dict())
    x = 100 + torch.randn(10, 6).bfloat16()
    torch.testing.assert_close(first(x), last(x.T.contiguous()).T, rtol=2e-2, atol=2e-2)
