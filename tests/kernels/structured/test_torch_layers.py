"""The torch operators and KSLinear on a processor: values, gradients, strides, compile, autocast, other layouts."""

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.library import opcheck  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import lcma  # noqa: E402
from lcma import kronecker  # noqa: E402
from lcma.errors import PlanError  # noqa: E402
from lcma.kernels.cuda.dtypes import vendor_precision  # noqa: E402
from lcma.kernels.structured.backward import transposed_gradients  # noqa: E402
from lcma.kernels.structured.layouts import LAYOUTS  # noqa: E402
from lcma.kernels.structured.outer import SLAB, outer_blocks  # noqa: E402
from lcma.kernels.torch import structured_gradients  # noqa: E402
from lcma.kernels.torch.structured import structured_mm  # noqa: E402
from lcma.kernels.torch.structured_gradients import structure_of_factor  # noqa: E402
from lcma.kernels.torch.structured_products import arithmetic_on_gpu  # noqa: E402

UP = ((1, 12, 3, 2), (3, 2, 2, 1))
"""24 x 6, two factors; the second has d = 1."""

PATTERNS = [(2, 3, 4, 3), UP, (3, 2, 5, 1)]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def kronecker_mm(x, weights, last=False, strategy=None, precision=None):
    return structured_mm(x, [weights], structure_of_factor(weights), last, strategy, precision)


def dense(layer):
    """The weight by definition, as a differentiable function of the factors."""
    full = None
    for weights, pattern in zip(layer.factors, layer.structure.patterns, strict=True):
        a, _, _, d = pattern.sizes
        eyes = torch.eye(a, dtype=weights.dtype), torch.eye(d, dtype=weights.dtype)
        factor = torch.einsum("ijpq,ik,jl->ipjkql", weights, *eyes).reshape(pattern.rows, pattern.cols)
        full = factor if full is None else full @ factor
    return full


@pytest.mark.parametrize("patterns", PATTERNS, ids=str)
@pytest.mark.parametrize("layout", ["bsf", "bsl"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_values_and_gradients_are_those_of_the_dense_layer(patterns, layout, dtype):
    layer = lcma.KSLinear(patterns, layout=layout, dtype=dtype)
    n = layer.in_features
    x = torch.randn(*((2, 5, n) if layout == "bsf" else (n, 2, 5)), dtype=dtype, requires_grad=True)
    weight = dense(layer)
    last = torch.tensordot(weight, x if layout == "bsl" else x.movedim(-1, 0), 1) + layer.bias[:, None, None]
    truth = last if layout == "bsl" else last.movedim(0, -1)
    y = layer(x)
    torch.testing.assert_close(y, truth)
    assert y.is_contiguous()
    leaves = [x, *layer.parameters()]
    ask = torch.randn_like(y)
    torch.testing.assert_close(*(torch.autograd.grad(z, leaves, ask) for z in (y, truth)))


@pytest.mark.parametrize("last", [False, True])
def test_gradcheck_and_opcheck(last):
    weights = torch.randn(2, 3, 2, 4, dtype=torch.float64, requires_grad=True)
    for x in (torch.randn(24, 5, dtype=torch.float64), torch.randn(5, 24, dtype=torch.float64).T):
        x.requires_grad_()
        assert torch.autograd.gradcheck(lambda x, w: kronecker_mm(x, w, last), (x, weights))
        assert torch.autograd.gradgradcheck(lambda x, w: kronecker_mm(x, w, last), (x, weights), fast_mode=True)
        for precision in (None, "tf32x3"):
            opcheck(torch.ops.lcma.structured_mm.default, (x, [weights], "(2,2,4,3)", last, None, precision))
    for precision in (None, "tf32"):
        opcheck(
            torch.ops.lcma.structured_outer.default, (torch.randn(12, 5), torch.randn(24, 5), 2, 3, False, precision)
        )


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own rules of forward AD
def test_forward_ad_and_vmap():
    weights = torch.randn(2, 3, 2, 4, dtype=torch.float64)
    x, v = (torch.randn(24, 5, dtype=torch.float64) for _ in range(2))
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(kronecker_mm(forward_ad.make_dual(x, v), weights)).tangent
    torch.testing.assert_close(tangent, kronecker_mm(v, weights))
    several = torch.randn(3, 24, 5, dtype=torch.float64)
    mapped = torch.vmap(kronecker_mm, (0, None))(several, weights)
    torch.testing.assert_close(mapped, torch.stack([kronecker_mm(one, weights) for one in several]))
    many = torch.randn(3, 2, 3, 2, 4, dtype=torch.float64)
    mapped = torch.vmap(kronecker_mm, (None, 0))(x, many)
    torch.testing.assert_close(mapped, torch.stack([kronecker_mm(x, one) for one in many]))


def test_the_result_has_the_strides_that_a_graph_expects():
    weights = torch.randn(2, 3, 2, 4)
    for last in (False, True):
        real = kronecker_mm(torch.randn(24, 7), weights, last)
        fake = kronecker_mm(torch.empty(24, 7, device="meta"), weights.to("meta"), last)
        assert (real.shape, real.stride()) == (fake.shape, fake.stride()) == ((12, 7), (1, 12) if last else (7, 1))


def test_a_compiled_layer_is_one_graph():
    layer = lcma.KSLinear(UP, dtype=torch.float64)
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), layer(x))
    (mine,), (other,) = (torch.autograd.grad(f(x).square().sum(), (x,)) for f in (compiled, layer))
    torch.testing.assert_close(mine, other)


def test_autocast_and_halves_round_once():
    layer = lcma.KSLinear(UP)
    x = torch.randn(9, 6)
    truth = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        lowered = layer(x)
    assert lowered.dtype == torch.bfloat16
    assert (lowered.float() - truth).norm() < 2e-2 * truth.norm()
    halved = layer.to(torch.float16)(x.half())
    assert halved.dtype == torch.float16
    assert (halved.float() - truth).norm() < 4e-3 * truth.norm()


@pytest.mark.parametrize("precision", ["ieee", "tf32", "fp32-accurate", "tf32x3"])
def test_a_precision_is_of_float32_on_a_gpu(precision):
    """The precision reaches a GPU's request; a processor multiplies strictly, under autocast and compile, too."""
    layer, plain = lcma.KSLinear(UP, precision=precision), lcma.KSLinear(UP)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(9, 6, requires_grad=True)
    for run in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True)):
        torch.testing.assert_close(run(x), plain(x), rtol=0, atol=0)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), plain(x))
    assert f"precision={precision}" in repr(layer)
    known = {"ieee": "float32", "tf32x3": "fp32-accurate"}
    assert arithmetic_on_gpu(x, precision).name == known.get(precision, precision)
    assert arithmetic_on_gpu(x.half(), precision) == ("float16", None)
    assert arithmetic_on_gpu(x.double(), precision) == ("float64", None)
    with pytest.raises(PlanError, match="precision must be one of ieee, tf32, fp32-accurate"):
        lcma.KSLinear(UP, precision="fp32")
    with pytest.raises(PlanError, match="precision must be one of"):
        kronecker_mm(x.T, layer.factors[1], precision="fp32")


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


def test_flops_are_those_of_the_parameters():
    layer = lcma.KSLinear(UP, bias=False)
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(10, 6, requires_grad=True)).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * layer.structure.parameters * 10


def test_sums_over_the_batch_have_a_fixed_order():
    rng = np.random.default_rng(0)
    n = 2 * SLAB + 77
    grad, x = rng.standard_normal((12, n)).astype("f"), rng.standard_normal((24, n)).astype("f")
    truth = np.einsum("ipjn,iqjn->ijpq", grad.reshape(2, 2, 3, n).astype(float), x.reshape(2, 4, 3, n).astype(float))
    found = outer_blocks(grad, x, 2, 3)
    np.testing.assert_allclose(found, truth, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(found, outer_blocks(np.asfortranarray(grad), np.asfortranarray(x), 2, 3))


@pytest.mark.parametrize("name", LAYOUTS)
def test_parameters_of_other_code_come_in_and_go_out(name):
    layer, other = lcma.KSLinear(UP), lcma.KSLinear(UP)
    other.load_layout(layer.in_layout(name), name, layer.bias.detach()[:, None])
    x = torch.randn(3, 6)
    torch.testing.assert_close(other(x), layer(x))
    with pytest.raises(PlanError, match="2 factors, not 1"):
        layer.load_layout(layer.in_layout(name)[:1], name)
    assert list(layer.state_dict()) == ["bias", "factors.0", "factors.1"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_bits_of_bfloat16_move_between_layouts(name):
    layer, other = (lcma.KSLinear(UP, bias=False, dtype=torch.bfloat16) for _ in range(2))
    weights = layer.in_layout(name)
    assert {one.dtype for one in weights} == {torch.bfloat16}
    other.load_layout(weights, name)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(other.factors, layer.factors, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dense_factors_with_entries_outside_their_patterns_are_refused(dtype):
    layer = lcma.KSLinear(UP, bias=False, dtype=dtype)
    before = [factor.detach().clone() for factor in layer.factors]
    first, second = layer.in_layout("dense")
    layer.load_layout([first, torch.where(second == 0, -0.0, second)], "dense")
    second = torch.where(second == 0, 0.5, second)
    with pytest.raises(PlanError, match=r"outside the support.* of its Frobenius norm.*KSLinear.from_dense"):
        layer.load_layout([2 * first, second], "dense")
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(layer.factors, before, strict=True))


def test_a_layer_of_bfloat16_is_stored_and_read(tmp_path):
    layer = lcma.KSLinear(UP, bias=False, dtype=torch.bfloat16)
    kronecker.save(tmp_path / "k.safetensors", layer.matrix())
    again = lcma.KSLinear.from_matrix(kronecker.load(tmp_path / "k.safetensors"))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(again.factors, layer.factors, strict=True))


def test_a_stored_matrix_becomes_a_layer_and_back(tmp_path):
    layer = lcma.KSLinear(UP, bias=False, dtype=torch.float64)
    kronecker.save(tmp_path / "k.npz", layer.matrix())
    again = lcma.KSLinear.from_matrix(kronecker.load(tmp_path / "k.npz"))
    x = torch.randn(3, 6, dtype=torch.float64)
    torch.testing.assert_close(again(x), layer(x))
    assert "(1,12,3,2)(3,2,2,1), bias=False, layout=bsf" in repr(again)


def test_initial_values_are_uniform():
    layer = lcma.KSLinear((4, 32, 16, 4))
    bound = 16**-0.5
    assert layer.factors[0].abs().max() <= bound
    assert abs(layer.factors[0].std() - bound / 3**0.5) < 0.02 * bound
    assert layer.bias.abs().max() <= layer.in_features**-0.5


def test_what_does_not_fit_is_refused():
    layer = lcma.KSLinear(UP)
    with pytest.raises(PlanError, match="layout bsf have shape"):
        layer(torch.randn(2, 5))
    with pytest.raises(PlanError, match='make the layer with layout="bsl"'):
        layer(torch.randn(6, 5))
    with pytest.raises(PlanError, match=r"convert one with \.to"):
        layer(torch.randn(2, 6, dtype=torch.float64))
    with pytest.raises(PlanError, match="do not compose"):
        lcma.KSLinear([(1, 2, 3, 1), (1, 4, 2, 1)])
    with pytest.raises(PlanError, match="layout must be"):
        lcma.KSLinear(UP, layout="channels-last")
    for wrong in ((2, 24, 3), [(2, 24, 3)], [(1, 12, 3, 2), (3, 2, 2, 1, 1)]):
        with pytest.raises(PlanError, match="four sizes"):
            lcma.KSLinear(wrong)
    assert layer(torch.randn(0, 6)).shape == (0, 24)


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

    monkeypatch.setattr(structured_gradients, "_is_transposed", lambda *_: True)
    monkeypatch.setattr(structured_gradients, "transposed_gradients", shared)
    for found, wanted in zip(gradients(), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert given == [((30, 6), (24, 6))]


@pytest.mark.parametrize("layout", ["bsf", "bsl"])
def test_a_packed_layer_uses_the_dense_weight_until_its_factors_change(layout, monkeypatch):
    layer = lcma.KSLinear([(1, 6, 4, 2), (2, 4, 3, 1)], layout=layout, dtype=torch.float64, strategy="dense").eval()
    x = torch.randn(*((5, 6) if layout == "bsf" else (6, 5)), dtype=torch.float64)
    wanted = layer(x).detach()
    assert layer.pack(5, 1 << 20)
    monkeypatch.setattr(lcma.KSLinear, "columns", lambda *_, **__: pytest.fail("the factors are multiplied"))
    with torch.no_grad():
        torch.testing.assert_close(layer(x), wanted)
    monkeypatch.undo()
    with torch.no_grad():
        layer.factors[0].mul_(2)
    assert not torch.allclose(layer(x), wanted)
    assert not layer.packed_bytes
    with pytest.raises(PlanError, match="without precision="):
        lcma.KSLinear((1, 6, 4, 2), precision="tf32").pack(5, 1 << 20)
