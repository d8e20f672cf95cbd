"""The torch operator and module on the CPU: values, gradients, tracing, autocast, state; one graph of every product."""

from functools import partial

import pytest
import torch
from torch.autograd import forward_ad
from torch.library import opcheck
from torch.utils.flop_counter import FlopCounterMode

import lcma
from lcma.kernels.torch import ops
from lcma.kernels.torch.bilinear import is_eager

from ..refusal import refuses
from .cases import call, table
from .gradients import compiles, drawn, every_derivative, same_gradients, same_hessians

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("recipe", ["strassen", "2x2x3", "strassen/2x2x3"])
@pytest.mark.parametrize(
    "shapes", [((5, 7), (7, 3)), ((2, 3, 5, 7), (7, 3)), ((5, 7), (2, 7, 3)), ((3, 1, 5, 7), (2, 7, 3))]
)
def test_values_and_gradients(recipe, shapes):
    operands = drawn(*shapes[0]), drawn(*shapes[1])
    same_gradients(lambda a, b: ops.bilinear_mm(a, b, recipe), torch.matmul, operands)


def test_gradients_operator_autocast_and_flops():
    a, b = drawn(4, 5), drawn(5, 3)
    assert torch.autograd.gradcheck(lambda x, y: ops.bilinear_mm(x, y, "2x2x3"), (a, b))
    assert torch.autograd.gradgradcheck(lambda x, y: ops.bilinear_mm(x, y, "strassen"), (a, b), fast_mode=True)
    opcheck(torch.ops.lcma.bilinear_mm.default, (a, b, "strassen"))
    batch = drawn(2, 4, 5), b, "2x2x3"
    opcheck(torch.ops.lcma.bilinear_mm.default, batch, test_utils=("test_schema", "test_faketensor"))
    a, b = drawn(8, 9, dtype=torch.float32), drawn(9, 10, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = ops.bilinear_mm(a, b, "strassen")
        assert result.dtype == torch.bfloat16
        assert ops.bilinear_mm(a.double(), b.double(), "strassen").dtype == torch.float64
    result.sum().backward()
    assert a.grad.dtype == torch.float32
    with FlopCounterMode(display=False) as counter:
        ops.bilinear_mm(a.detach(), b.detach(), "strassen")
    assert counter.get_total_flops() == 2 * 8 * 9 * 10


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own rules of forward AD
def test_forward_ad_and_the_transforms_of_torch_func():
    a, b, func = drawn(4, 5, grad=False), drawn(5, 3, grad=False), torch.func

    def ours(x, y):
        return lcma.matmul(x, y, "strassen")

    for product in (ours, lambda x, y: ops.bilinear_mm(x, y, "strassen"), lambda x, y: lcma.matmul(x, y)):
        torch.testing.assert_close(func.jvp(product, (a, b), (a, b)), (a @ b, 2 * a @ b))
    torch.testing.assert_close(func.jvp(partial(ours, a), (b,), (b,)), (a @ b, a @ b))
    with forward_ad.dual_level():
        product = ours(forward_ad.make_dual(a, a), b)
        torch.testing.assert_close(forward_ad.unpack_dual(product).tangent, a @ b)
        refuses("no tangent", lcma.matmul, a, b, "strassen", out=torch.empty(4, 3, dtype=torch.float64))
    batched = {"check_batched_grad": True, "check_batched_forward_grad": True}
    every_derivative(ours, (drawn(4, 5), drawn(5, 3)), **batched)
    same_hessians(lambda x: ours(x, b).sin().sum(), lambda x: (x @ b).sin().sum(), a)
    for shapes, dims in (
        (((2, 4, 5), (5, 3)), (0, None)),
        (((4, 5), (5, 2, 3)), (None, 1)),
        (((2, 4, 5), (7, 5, 3, 2)), (0, 3)),
    ):
        x, y = (drawn(*shape, grad=False) for shape in shapes)
        torch.testing.assert_close(torch.vmap(ours, dims)(x, y), torch.vmap(torch.matmul, dims)(x, y))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_gradients_are_torchs(dtype):
    a, b = drawn(4, 5, dtype=dtype), drawn(5, 3, dtype=dtype)
    layer = lcma.FastLinear(5, 3, dtype=dtype, scheme="strassen")
    for ours in (partial(lcma.matmul, scheme="strassen"), lcma.matmul):
        same_gradients(ours, torch.matmul, (a, b))
    same_gradients(lambda x, *_: layer(x), torch.nn.functional.linear, (a, layer.weight, layer.bias))


@pytest.mark.parametrize("scheme", ["strassen", lcma.resolve("laderman")[0], ["strassen", "2x2x3"]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_matmul(scheme, dtype):
    a, b = drawn(9, 10, dtype=dtype, grad=False), drawn(10, 11, dtype=dtype, grad=False)
    result = ops.matmul(a, b, scheme)
    assert result.dtype == dtype
    coarse = {torch.bfloat16: 0.1, torch.float16: 0.02}.get(dtype, 1e-5)
    torch.testing.assert_close(result, a @ b, rtol=coarse, atol=coarse)
    out = torch.empty(9, 11, dtype=dtype)
    assert ops.matmul(a, b, scheme, out=out) is out
    assert torch.equal(out, result)


@pytest.mark.parametrize("view", [lambda x: x.conj().imag, lambda x: x.conj()])
def test_tensors_whose_memory_holds_other_numbers_pass_the_dispatcher(view):
    other = view(torch.randn(5, 7, dtype=torch.complex64))
    assert other.is_neg() or other.is_conj()
    plain = other.clone().resolve_conj().resolve_neg()
    assert (is_eager(other, plain), is_eager(plain, plain)) == (False, True)
    assert torch.equal(
        lcma.matmul(other, plain.mT.clone(), "strassen"), lcma.matmul(plain, plain.mT.clone(), "strassen")
    )


def test_levels_and_gradients_by_a_structured_scheme():
    a, b = drawn(9, 10, grad=False), drawn(10, 11, grad=False)
    for levels in (0, 1, 2, 3):
        torch.testing.assert_close(ops.matmul(a, b, "strassen", levels), a @ b)
    assert ops.recipe_of("strassen", 2) == "strassen/strassen"
    a, b = drawn(2, 8, 8), drawn(8, 3)
    same_gradients(partial(lcma.matmul, scheme="2x2x2-tri-left-r6"), lambda x, y: x.tril() @ y, (a, b))
    refuses("no gradient", ops.matmul, drawn(4, 5), drawn(5, 3), out=torch.empty(4, 3, dtype=torch.float64))


def test_one_graph_serves_any_m_and_gradients():
    traced = []

    @torch.compile(fullgraph=True, dynamic=True, backend=lambda graph, _: traced.append(graph) or graph)
    def doubled(a, b):
        return 2 * ops.matmul(a, b, "strassen", 2)

    b = drawn(7, 6, grad=False)
    for m in (3, 5, 9, 17):
        a = drawn(m, 7, grad=False)
        torch.testing.assert_close(doubled(a, b), 2 * a @ b)
    assert len(traced) == 1
    compiles(lambda x, y: ops.bilinear_mm(x, y, "2x2x3").sin(), drawn(5, 7), drawn(7, 3))


def test_a_linear_layer_has_levels_and_runs_without_data():
    """Copies, and layers that are stored and loaded: test_linear_modules.py and test_acceleration.py."""
    layer, x = lcma.FastLinear(6, 5, bias=False, dtype=torch.float64, scheme="strassen", levels=2), drawn(3, 6)
    assert "strassen/strassen" in repr(layer)
    refuses("GPU", layer.pack, 16)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for one in (layer, compiled):
        torch.testing.assert_close(one(x), x @ layer.weight.t())
    assert lcma.FastLinear(6, 5, device="meta", scheme="strassen")(torch.empty(3, 6, device="meta")).shape == (3, 5)


@pytest.mark.parametrize("recorded", [True, False], ids=["gradients", "no gradients"])
@pytest.mark.parametrize("name", table(__file__, "graphs"))
def test_there_is_one_graph_and_no_break(name, recorded):
    """A mask of numpy would be a break: torch traces no attributes of arrays."""
    made = call(table(__file__, "graphs")[name])
    given = [x for x in made.args if isinstance(x, torch.Tensor)]
    multiply, options = made.func, made.args[len(given) :]
    function = (lambda *operands: multiply(*operands, *options)) if given else made()
    given = [x.requires_grad_(recorded) if x.is_floating_point() else x for x in given] or [torch.randn(8, 64)]
    torch._dynamo.reset()
    with torch.set_grad_enabled(recorded):
        found = torch._dynamo.explain(function)(*given)
    assert (found.graph_count, found.graph_break_count) == (1, 0), found.break_reasons
    targets = [str(node.target) for node in found.graphs[0].graph.nodes]
    assert any("lcma" in target for target in targets) or name == "causal_attention", targets
