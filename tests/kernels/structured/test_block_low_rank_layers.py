"""The torch operator and the layers on a processor: values, gradients, compile, autocast, the papers' layouts."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad  # noqa: E402
from torch.library import opcheck  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import lcma  # noqa: E402
from lcma.errors import PlanError  # noqa: E402
from lcma.kernels.block_low_rank import Blast, LowRank, Monarch  # noqa: E402
from lcma.kernels.torch.block_low_rank_layers import BlockLowRankLinear, layer_of  # noqa: E402
from lcma.kernels.torch.structured import structured_mm  # noqa: E402

STRUCTURES = [
    LowRank(8, 12, 3),
    Monarch(8, 12, 3, 2, 3),
    Monarch(8, 12, 3, 2, 3, interleaved=True),
    Blast(8, 12, 3, 2, 5),
]
ids = pytest.mark.parametrize("structure", STRUCTURES, ids=repr)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def block_low_rank_mm(x, factors, structure):
    return structured_mm(x.T, factors, structure, True).T


def dense(structure, factors):
    """W by definition, as a differentiable function of the factors."""
    if isinstance(structure, LowRank):
        return factors[0] @ factors[1]
    if isinstance(structure, Blast):
        blocks = torch.einsum("kqr,rkl,lrp->kqlp", *factors)
    else:
        blocks = torch.einsum("kqls,lskp->kqlp", *factors)
        blocks = blocks.swapaxes(0, 1) if structure.interleaved else blocks
    return blocks.reshape(structure.rows, structure.cols)


@ids
def test_values_and_gradients_are_those_of_the_dense_layer(structure):
    layer = layer_of(structure, dtype=torch.float64)
    x = torch.randn(2, 5, structure.cols, dtype=torch.float64, requires_grad=True)
    truth = torch.nn.functional.linear(x, dense(structure, layer.factors), layer.bias)
    y = layer(x)
    torch.testing.assert_close(y, truth)
    torch.testing.assert_close(layer.dense(), dense(structure, layer.factors))
    leaves = [x, *layer.parameters()]
    ask = torch.randn_like(y)
    torch.testing.assert_close(*(torch.autograd.grad(z, leaves, ask) for z in (y, truth)))
    for shape in ((0, structure.cols), (structure.cols,)):
        assert layer(torch.randn(shape, dtype=torch.float64)).shape == (*shape[:-1], structure.rows)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own rules of forward AD
@ids
def test_the_operator_is_sound_and_its_derivatives_of_both_orders_and_modes_are_right(structure):
    layer = layer_of(structure, bias=False, dtype=torch.float64)
    x = torch.randn(3, structure.cols, dtype=torch.float64, requires_grad=True)
    columns = torch.randn(structure.cols, 3, dtype=torch.float64, requires_grad=True)
    opcheck(torch.ops.lcma.structured_mm.default, (columns, layer.factors, structure.text, True, None))

    def call(x, *factors):
        return block_low_rank_mm(x, factors, structure)

    operands = (x, *layer.factors)
    torch.autograd.gradcheck(call, operands, check_forward_ad=True)
    torch.autograd.gradgradcheck(call, operands, fast_mode=True)
    tangent = torch.randn_like(x)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(call(forward_ad.make_dual(x, tangent), *layer.factors)).tangent
    torch.testing.assert_close(found, tangent @ dense(structure, layer.factors).T)


@ids
def test_complex_layers_have_the_gradients_of_the_dense_layer(structure):
    layer = layer_of(structure, bias=False, dtype=torch.complex128)
    x = torch.randn(3, structure.cols, dtype=torch.complex128, requires_grad=True)
    y, truth = layer(x), x @ dense(structure, layer.factors).T
    torch.testing.assert_close(y, truth)
    leaves, ask = [x, *layer.parameters()], torch.randn_like(y)
    torch.testing.assert_close(*(torch.autograd.grad(z, leaves, ask) for z in (y, truth)))


@ids
def test_vmap_maps_inputs_and_factors(structure):
    layer = layer_of(structure, bias=False, dtype=torch.float64)
    x = torch.randn(4, 3, structure.cols, dtype=torch.float64)
    full = dense(structure, layer.factors).detach()
    found = torch.vmap(lambda one: block_low_rank_mm(one, layer.factors, structure))(x)
    torch.testing.assert_close(found, x @ full.T)
    several = torch.stack([layer.factors[0].detach(), 2 * layer.factors[0].detach()])
    found = torch.vmap(lambda one: block_low_rank_mm(x[0], [one, *layer.factors[1:]], structure))(several)
    torch.testing.assert_close(found, torch.stack([x[0] @ full.T, 2 * x[0] @ full.T]))


@ids
def test_a_compiled_layer_trains_as_the_plain_one(structure):
    layer = layer_of(structure, dtype=torch.float64)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    x = torch.randn(5, structure.cols, dtype=torch.float64)
    leaves = list(layer.parameters())
    torch.testing.assert_close(*(torch.autograd.grad(module(x).square().sum(), leaves) for module in (compiled, layer)))


@ids
def test_autocast_and_halves_multiply_in_the_lower_dtype(structure):
    layer = layer_of(structure)
    x = torch.randn(6, structure.cols)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    halved = layer.to(torch.bfloat16)(x.bfloat16())
    torch.testing.assert_close(halved.float(), layer.float()(x), atol=0.05, rtol=0.05)


@ids
def test_operations_are_counted(structure):
    layer = layer_of(structure)
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(6, structure.cols))
    assert counter.get_total_flops() == structure.flops(6)


@ids
def test_states_and_the_papers_layouts_survive_a_round_trip(structure):
    layer, other = layer_of(structure), layer_of(structure)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(4, structure.cols)
    torch.testing.assert_close(other(x), layer(x))
    given = layer.in_layout()
    other = layer_of(structure).load_layout(given["V"], given["U"], given.get("S"), bias=layer.bias)
    torch.testing.assert_close(other(x), layer(x))
    again = BlockLowRankLinear.from_matrix(layer.matrix(), layer.bias)
    assert type(again) is type(layer)
    torch.testing.assert_close(again(x), layer(x))


def test_layers_of_sizes_as_nn_linear():
    for layer in (
        lcma.LowRankLinear(12, 8, 3),
        lcma.MonarchLinear(12, 8, 4, 2),
        lcma.MonarchLinear(12, 8, (3, 2), 2, bias=False, dtype=torch.float64),
        lcma.BlastLinear(12, 8, 4, 5),
    ):
        assert layer(torch.randn(2, 12, dtype=layer.factors[0].dtype)).shape == (2, 8)
        y = layer(torch.randn(4000, 12, dtype=layer.factors[0].dtype))
        assert y.detach().var() < 2


def test_interleaving_moves_into_the_next_weight():
    gate, up = (lcma.MonarchLinear(12, 8, (3, 2), 2, interleaved=True, dtype=torch.float64) for _ in range(2))
    norm = torch.nn.LayerNorm(8, dtype=torch.float64)
    down = torch.nn.Linear(8, 12, dtype=torch.float64)
    for vector in (norm.weight, norm.bias):
        torch.nn.init.normal_(vector)
    x = torch.randn(5, 12, dtype=torch.float64)

    def block(x):
        return down(norm(torch.nn.functional.silu(gate(x)) * up(x)))

    wanted = block(x)
    lcma.fold_into([gate, up], down, norm)
    assert not gate.structure.interleaved
    assert not up.structure.interleaved
    torch.testing.assert_close(block(x), wanted)
    with pytest.raises(PlanError, match="only interleaved"):
        lcma.fold_into([gate], down)
    other = lcma.MonarchLinear(12, 8, (3, 4), 2, interleaved=True, dtype=torch.float64)
    first = lcma.MonarchLinear(12, 8, (3, 2), 2, interleaved=True, dtype=torch.float64)
    with pytest.raises(PlanError, match="the same outputs and b2"):
        lcma.fold_into([first, other], down)
    with pytest.raises(PlanError, match="takes 9 features, not 8"):
        lcma.fold_into([first], torch.nn.Linear(9, 2))
    with pytest.raises(PlanError, match="other features"):
        lcma.fold_into([first], down, torch.nn.LayerNorm(9))


class Conv1D(torch.nn.Module):
    """As Hugging Face's: a linear layer with the weight (inputs, outputs)."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf, self.weight = nf, torch.nn.Parameter(torch.randn(nx, nf, dtype=torch.float64))

    def forward(self, x):
        return x @ self.weight


@pytest.mark.parametrize("following", [lambda: Conv1D(5, 8), lambda: lcma.LowRankLinear(8, 5, 3, dtype=torch.float64)])
def test_interleaving_folds_into_every_layer_whose_inputs_may_be_in_any_order(following):
    monarch = lcma.MonarchLinear(12, 8, (3, 2), 2, interleaved=True, dtype=torch.float64)
    after, x = following(), torch.randn(4, 12, dtype=torch.float64)
    wanted = after(monarch(x))
    with pytest.raises(PlanError, match="is given twice"):
        lcma.fold_into([monarch, monarch], after)
    for blocked in (lcma.MonarchLinear(8, 5, (2, 1), 2), lcma.BlastLinear(8, 5, (2, 1), 2), torch.nn.ReLU()):
        with pytest.raises(PlanError, match="whose inputs can't be in any order"):
            lcma.fold_into([monarch], blocked)
    torch.testing.assert_close(after(monarch(x)), wanted)  # nothing was changed
    lcma.fold_into([monarch], after)
    assert not monarch.structure.interleaved
    torch.testing.assert_close(after(monarch(x)), wanted)


@ids
def test_a_packed_layer_uses_the_dense_weight_only_where_no_gradients_are_recorded(structure, monkeypatch):
    from lcma.kernels.torch import block_low_rank_layers

    layer = layer_of(structure, dtype=torch.float64).eval()
    layer.strategy = "strided"
    assert not layer.pack(5, 1 << 30)
    layer.strategy = "dense"  # in place of the planner's choice, which depends on this machine
    extra = structure.rows * structure.cols * 8
    assert not layer.pack(5, extra - 1)
    assert layer.pack(5, extra)
    assert layer.packed_bytes == extra
    x = torch.randn(5, structure.cols, dtype=torch.float64)
    factored, products = block_low_rank_layers.structured_mm, []

    def counted(*arguments):
        products.append(arguments)
        return factored(*arguments)

    monkeypatch.setattr(block_low_rank_layers, "structured_mm", counted)
    wanted = torch.nn.functional.linear(x, dense(structure, layer.factors), layer.bias).detach()
    with torch.no_grad():
        torch.testing.assert_close(layer(x), wanted)
        assert not products
        compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), wanted)
        with pytest.raises(PlanError, match="convert one with"):
            layer(x.float())
        assert layer.packed_bytes
        layer.factors[0].mul_(2)
        torch.testing.assert_close(layer(x) - layer.bias, 2 * (wanted - layer.bias))
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


@ids
def test_bfloat16_layers_exchange_the_papers_layouts(structure):
    layer = layer_of(structure, dtype=torch.bfloat16)
    x = torch.randn(3, structure.cols).bfloat16()
    given = layer.in_layout()
    assert {one.dtype for one in given.values()} == {torch.bfloat16}
    other = layer_of(structure, dtype=torch.bfloat16)
    other.load_layout(given["V"], given["U"], given.get("S"), bias=layer.bias)
    matrix = layer.matrix()
    assert matrix.dtype == "bfloat16"
    read = BlockLowRankLinear.from_matrix(matrix, layer.bias)
    for one in (other, read):
        assert all(map(torch.equal, one.factors, layer.factors))
        assert torch.equal(one(x), layer(x))
    np.testing.assert_array_equal(matrix.dense(), matrix.astype("float32").dense())


def test_operands_that_do_not_fit_are_refused():
    layer = lcma.LowRankLinear(12, 8, 3)
    with pytest.raises(PlanError, match=r"inputs have shape \(..., 12\)"):
        layer(torch.randn(2, 11))
    with pytest.raises(PlanError, match=r"convert one with \.to"):
        layer(torch.randn(2, 12, dtype=torch.float64))
    with pytest.raises(PlanError, match="factor 1 has shape"):
        block_low_rank_mm(torch.randn(2, 12), layer.factors[::-1], layer.structure)
    with pytest.raises(PlanError, match="has 2 factors, not 1"):
        block_low_rank_mm(torch.randn(2, 12), layer.factors[:1], layer.structure)
