"""From dense weights to Kronecker-sparse and block low-rank factors, and the compression of the layers of a model."""

import contextlib
import itertools
import math
import time

import numpy as np
import pytest
import torch
from torch import nn

import lcma
from lcma import kronecker
from lcma.errors import PlanError, RankError
from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.compression import CompressConfig, compress_weight
from lcma.kernels.kronecker import FactoredMatrix, Pattern, factorize
from lcma.kernels.structured import decomposition
from lcma.kernels.structured.approximation import ALGORITHMS, two_factors
from lcma.kernels.structured.decomposition import decompose, least_error
from lcma.kernels.structured.naive import support
from lcma.kernels.structured.pattern import chain_pattern, chain_rank
from lcma.kernels.structured.truncation import gram_values, truncated, truncated_by_gram
from lcma.kernels.torch import compression
from lcma.kernels.torch.block_low_rank_layers import BlockLowRankLinear

from ...refusal import refuses, refuses_with
from ..cases import STRUCTURE, each
from ..modules import Conv1D

CHAINABLE = {
    "monarch": kronecker.monarch(32, 64, 4),
    "low rank": kronecker.low_rank(20, 30, 5),
    "rank 2 blocks": (Pattern(1, 4, 4, 4), Pattern(2, 4, 3, 2)),
    "dyadic": kronecker.square_dyadic(32),
    "block butterfly": kronecker.block_butterfly(24, 3),
    "one factor": (Pattern(2, 3, 4, 5),),
}
DOWN = (Pattern(1, 16, 8, 3), Pattern(6, 4, 16, 1))
"""Composes, and is not chainable."""


def noisy(patterns, dtype="float64", noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    full = FactoredMatrix.random(patterns, seed, dtype).dense()
    return full + (noise * abs(full).mean() * rng.standard_normal(full.shape)).astype(full.real.dtype)


def dense_of(structure, found):
    return FactoredMatrix.of(structure, [np.asarray(weights) for weights in found.factors]).dense()


def distance(found, dense):
    return np.linalg.norm(found.matrix.dense() - dense) / np.linalg.norm(dense)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("name", CHAINABLE)
def test_a_product_of_such_factors_is_found_again(name, dtype):
    dense = noisy(CHAINABLE[name], dtype, noise=0.0)
    found = factorize(dense, CHAINABLE[name])
    limit = 1e-5 if dtype == "float32" else 1e-13
    assert distance(found, dense) < limit
    assert found.error < limit
    assert found.matrix.dtype == dtype


@pytest.mark.parametrize("name", CHAINABLE)
def test_the_error_is_true_and_within_its_bound(name):
    patterns = CHAINABLE[name]
    dense = noisy(patterns)
    said = []
    found = factorize(dense, patterns, on_event=said.append)
    assert found.error == pytest.approx(distance(found, dense), rel=1e-9)
    assert found.least <= found.error * (1 + 1e-12)
    assert found.error <= found.bound * (1 + 1e-12)
    assert found.bound <= math.sqrt(max(1, len(patterns) - 1)) * found.least * (1 + 1e-9)
    assert len(said) == len(patterns) - 1


def test_two_factors_are_at_the_optimum_and_the_left_one_is_orthonormal():
    for name in ("monarch", "low rank", "rank 2 blocks"):
        left, right = CHAINABLE[name]
        dense = noisy((left, right))
        found = factorize(dense, (left, right))
        assert found.error == pytest.approx(found.least, rel=1e-12)
        # The optimum by definition: what truncated SVDs of the blocks of equal support lose, block by block.
        columns, rows = support(left), support(right)
        lost = (dense[~support(chain_pattern((left, right)))] ** 2).sum()
        classes = {}
        for n in range(left.cols):
            classes.setdefault((columns[:, n].tobytes(), rows[n].tobytes()), []).append(n)
        for members in classes.values():
            assert len(members) == chain_rank(left, right)
            block = dense[np.ix_(columns[:, members[0]], rows[members[0]])]
            lost += (np.linalg.svd(block, compute_uv=False)[len(members) :] ** 2).sum()
        assert found.error == pytest.approx(math.sqrt(lost) / np.linalg.norm(dense), rel=1e-10)
    left, right = CHAINABLE["rank 2 blocks"]
    weights = np.random.default_rng(0).standard_normal(chain_pattern((left, right)).parameter_shape)
    u, _, dropped = two_factors(weights, left, right)
    assert dropped > 0
    groups = u.reshape(left.a, left.d, left.b, right.a // left.a, -1)
    grams = np.einsum("ijpgk,ijpgl->ijgkl", groups, groups)
    np.testing.assert_allclose(grams, np.broadcast_to(np.eye(grams.shape[-1]), grams.shape), atol=1e-12)


@pytest.mark.parametrize("patterns", [CHAINABLE["monarch"], DOWN], ids=["monarch", "down"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_alternating_squares_serve_any_list_that_composes(patterns, dtype):
    dense, by = noisy(patterns, dtype), "alternating"
    found = factorize(dense, patterns, by)
    assert found.error == pytest.approx(distance(found, dense), rel=1e-6)
    assert (found.bound, found.least) == (None, None)
    if patterns is not DOWN:
        assert found.error <= 1.001 * factorize(dense, patterns).error
    assert found.error < 0.3
    again = factorize(dense, patterns, by)
    assert again.error == found.error
    assert factorize(dense, patterns, by, seed=1).matrix.factors[0][0, 0, 0, 0] != found.matrix.factors[0][0, 0, 0, 0]


def test_alternating_squares_never_grow_the_error_and_zeros_have_factors_of_zeros():
    said = []
    factorize(noisy(DOWN), DOWN, "alternating", on_event=said.append)
    errors = [float(line.rpartition(" ")[2]) for line in said]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(errors))
    for by in ALGORITHMS:
        found = factorize(np.zeros((32, 64)), CHAINABLE["monarch"], by)
        assert np.isfinite(found.error)
        assert np.abs(found.matrix.dense()).max() < 1e-6


def test_a_linear_layer_becomes_a_sparse_one():
    dense = torch.nn.Linear(64, 32, dtype=torch.float64)
    layer = lcma.KSLinear.from_dense(dense, CHAINABLE["monarch"])
    wanted = factorize(dense.weight.detach().numpy(), CHAINABLE["monarch"]).matrix.dense()
    x = torch.randn(5, 64, dtype=torch.float64)
    torch.testing.assert_close(layer(x), x @ torch.from_numpy(wanted).T + dense.bias)
    refuses("not chainable", lcma.KSLinear.from_dense, torch.nn.Linear(96, 48), DOWN)
    assert lcma.KSLinear.from_dense(torch.nn.Linear(96, 48), DOWN, by="alternating").in_features == 96


EXACT = [LowRank(64, 48, 9), Monarch(64, 48, 4, 4, 3), Monarch(64, 48, 3, 8, 3, interleaved=True)]


@pytest.mark.parametrize("structure", EXACT, ids=repr)
@pytest.mark.parametrize("tensors", [False, True])
def test_planted_factors_are_found_by_svd(structure, tensors):
    planted = FactoredMatrix.random(structure, 1, "float64").dense()
    found = decompose(torch.from_numpy(planted) if tensors else planted, structure)
    assert found.error < 1e-12
    np.testing.assert_allclose(dense_of(structure, found), planted, atol=1e-10)


@pytest.mark.parametrize("tensors", [False, True])
def test_truncated_svds_are_optimal(tensors):
    weight = np.random.default_rng(4).standard_normal((24, 36))
    given = torch.from_numpy(weight) if tensors else weight
    for structure, blocks in (
        (LowRank(24, 36, 5), weight),
        (Monarch(24, 36, 3, 4, 2), weight.reshape(4, 6, 3, 12).swapaxes(1, 2)),
        (Monarch(24, 36, 3, 4, 2, interleaved=True), weight.reshape(6, 4, 3, 12).transpose(1, 2, 0, 3)),
    ):
        found, lost = decompose(given, structure), np.linalg.svd(blocks, compute_uv=False)[..., structure.rank :]
        for error in (np.linalg.norm(lost), np.linalg.norm(weight - dense_of(structure, found))):
            assert found.error == pytest.approx(error / np.linalg.norm(weight))
        assert least_error(given, structure) == pytest.approx(found.error, rel=1e-12)
    assert least_error(given, LowRank(24, 36, 24)) < 1e-12
    assert least_error(given * 0, LowRank(24, 36, 3)) == 0
    for structure in (LowRank(4, 4, 2), Monarch(4, 4, 2, 2, 1), Blast(4, 4, 2, 2, 2)):
        assert decompose(np.zeros((4, 4)), structure).error == 0


def test_descent_is_near_truncated_svds_and_ends_where_steps_gain_little():
    rng = np.random.default_rng(0)
    low = rng.standard_normal((64, 12)) @ rng.standard_normal((12, 64))
    assert decompose(low, Blast(64, 64, 4, 4, 12)).error < 1e-3
    decaying = low + 0.3 * rng.standard_normal((64, 64))
    least = decompose(decaying, LowRank(64, 64, 12)).error
    assert decompose(decaying, Blast(64, 64, 4, 4, 12)).error <= 1.02 * least + 1e-3
    weight, structure = np.random.default_rng(5).standard_normal((64, 64)), Blast(64, 64, 8, 8, 14)
    every, some = [], []
    whole = decompose(weight, structure, 200, on_step=lambda _, error: every.append(error))
    found = decompose(weight, structure, 200, on_step=lambda _, error: some.append(error), tolerance=0.01)
    assert len(every) == 200
    assert 10 < len(some) < 100
    assert every[: len(some) - 1] == some[:-1]
    gains = [1 - some[step] / some[step - 10] for step in range(10, len(some) - 1)]
    assert min(gains[:-1]) >= 0.01 > gains[-1]
    assert whole.error < found.error < 1.05 * whole.error


@pytest.mark.parametrize("seed", [0, 1])
def test_momentum_finds_planted_factors_of_three_quarters_of_a_block_and_balances_them(seed):
    structure, rng = Blast(128, 128, 4, 4, 24), np.random.default_rng(seed)
    planted = list(structure.draw(rng, "float64"))
    planted[1] = rng.uniform(0, 1, planted[1].shape)
    weight, errors = FactoredMatrix.of(structure, planted).dense(), {}
    found = decompose(weight, structure, on_step=errors.__setitem__)
    assert list(errors) == list(range(1, 301))
    assert found.error == min(errors.values()) < 1e-6
    full = dense_of(structure, found)
    np.testing.assert_allclose(full, weight, atol=1e-5)
    assert np.linalg.norm(full - weight) == pytest.approx(found.error * np.linalg.norm(weight), rel=1e-3)
    u, s, v = found.factors
    norms = [(x * x).sum(axes) for x, axes in ((u, (0, 1)), (s, (1, 2)), (v, (0, 2)))]
    np.testing.assert_allclose(norms[0], norms[1])
    np.testing.assert_allclose(norms[0], norms[2])


@pytest.mark.parametrize("shape", [(5, 12, 7), (3, 7, 12)])
def test_gram_matrices_give_the_values_and_factors_of_truncated_svds(shape):
    matrix = torch.randn(shape)
    for one in (matrix, torch.randn(2, *shape)):
        values = torch.linalg.svdvals(one.double())
        torch.testing.assert_close(gram_values(one).flip(-1).sqrt(), values, rtol=1e-6, atol=1e-6)
    (u, v, dropped), (first, second, least) = truncated_by_gram(matrix, 4), truncated(matrix, 4, shared=True)
    torch.testing.assert_close(u @ v, first @ second, rtol=1e-4, atol=1e-4)
    assert dropped == pytest.approx(least, rel=1e-5)
    assert float(((matrix - u @ v) ** 2).sum()) == pytest.approx(least, rel=1e-4)
    torch.testing.assert_close((u * u).sum(1), (v * v).sum(2), rtol=1e-4, atol=1e-4)


def test_the_scales_of_the_factors_stay_together_which_changes_no_step(monkeypatch):
    """Momentum lets them drift: for 384 x 384 with b = 16, r = 36 factors in float32 overflowed after 59 steps."""
    weight, structure = np.random.default_rng(5).standard_normal((128, 128)), Blast(128, 128, 16, 16, 8)
    errors, spreads, even = {}, {}, decomposition._even_scales
    for name, scales in (("even", even), ("drifting", lambda point: (1.0, 1.0, 1.0))):
        errors[name], spreads[name] = [], []

        def scaled(point, scales=scales, kept=spreads[name]):
            factors = scales(point)
            norms = [np.linalg.norm(one) * factor for one, factor in zip(point, factors, strict=True)]
            kept.append(max(norms) / min(norms))
            return factors

        monkeypatch.setattr(decomposition, "_even_scales", scaled)
        decompose(weight, structure, 60, on_step=lambda _, error, kept=errors[name]: kept.append(error))
    assert errors["even"] == errors["drifting"]
    assert max(spreads["even"]) <= 4 < 1e3 < max(spreads["drifting"])
    for given in (weight, torch.from_numpy(weight).float()):
        scales = even([given, 1e-9 * given, 3e4 * given])
        assert np.prod(scales) == 1
        assert all(np.log2(one) == round(np.log2(one)) for one in scales)


def test_a_step_that_leaves_the_range_is_dropped(monkeypatch):
    weight, swept, errors = np.random.default_rng(5).standard_normal((24, 24)), decomposition._swept, []

    def broken(*arguments):
        found, squares = swept(*arguments)
        return found, squares if len(errors) not in (3, 4) else np.nan

    monkeypatch.setattr(decomposition, "_swept", broken)
    found = decompose(weight, Blast(24, 24, 2, 2, 5), 12, on_step=lambda _, error: errors.append(error))
    assert errors[2] == errors[3] == errors[4] > errors[5]
    assert found.error == min(errors)
    assert np.isfinite(found.factors[0]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("structure", [LowRank(24, 16, 3), Monarch(24, 16, 2, 2, 3), Blast(24, 16, 2, 2, 3)], ids=repr)
def test_tensors_of_half_precision_are_decomposed_in_float32(structure, dtype):
    weight = torch.randn(24, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    found, wide = (decompose(one, structure, 20) for one in (weight, weight.float()))
    assert found.error == wide.error
    assert {one.dtype for one in found.factors} == {torch.float32}


def model():
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(16, 24), nn.GELU(), Conv1D(16, 24))
    return nn.Sequential(block, nn.Linear(16, 16, bias=False), nn.LayerNorm(16), nn.Linear(16, 7))


@pytest.mark.parametrize("kind", ["low-rank", "monarch", "blast"])
def test_the_layers_that_fit_are_replaced_and_every_one_is_reported(kind):
    net, seen = model(), []
    reports = lcma.compress_(net, CompressConfig(kind, 0.9, 4, 50), on_layer=seen.append)
    assert seen == reports
    assert [report.name for report in reports] == ["0.0", "0.2", "1", "3"]
    changed = [name for name, module in net.named_modules() if isinstance(module, BlockLowRankLinear)]
    assert changed == [report.name for report in reports if report.skipped is None]
    assert len(changed) == (4 if kind == "low-rank" else 3)
    for report in reports[: len(changed)]:
        assert report.bytes_after <= 0.9 * report.bytes_before
        assert 0 < report.error < 1
    if kind != "low-rank":
        assert "must divide the 16 inputs and the 7 outputs" in reports[3].skipped
    assert net(torch.randn(3, 16)).shape == (3, 7)


def test_the_nearest_pair_of_a_tensor_is_that_of_an_array():
    weight = np.random.default_rng(3).standard_normal((96, 64))
    structures = CompressConfig("kronecker", 0.6).structures(96, 64)
    assert len(structures) > 1
    seen = []
    theirs = compress_weight(weight, structures)
    mine = compress_weight(torch.from_numpy(weight), structures, on_event=seen.append)
    assert mine.structure == theirs.structure
    assert mine.error == pytest.approx(theirs.error, rel=1e-10)
    dense = [one.structure.multiply_wide([np.asarray(x) for x in one.factors], np.eye(64)) for one in (mine, theirs)]
    np.testing.assert_allclose(*dense, atol=1e-10)
    assert len(seen) == len(structures) + 1
    for text in ("(1,24,16,4)(4,16,16,1)", "(2,48,32,1)", "(1,96,8,1)(1,8,64,1)", "(1,48,8,2)(2,8,8,4)(8,8,8,1)"):
        with contextlib.suppress(PlanError):  # lists that are no pair as Monarch's are factorized as arrays
            chosen = CompressConfig("kronecker", patterns=text).structures(96, 64)
            errors = [compress_weight(one, chosen).error for one in (weight, torch.from_numpy(weight))]
            assert errors[0] == pytest.approx(errors[1], rel=1e-10)


def test_a_weight_that_has_the_structure_is_replaced_without_a_change_and_outputs_are_compared():
    net = model()
    with torch.no_grad():
        for place in (net[0][0], net[0][2], net[1]):
            left, right = torch.randn(place.weight.shape[0], 3), torch.randn(3, place.weight.shape[1])
            place.weight.copy_(left @ right)
    x = torch.randn(5, 16)
    wanted = net(x)
    reports = lcma.compress_(net, CompressConfig("low-rank", 0.5), lambda name, _: name != "3")
    assert len(reports) == 3
    assert max(report.error for report in reports) < 1e-6
    assert type(net[3]) is nn.Linear
    torch.testing.assert_close(net(x), wanted, atol=1e-4, rtol=1e-4)
    net, x = model(), torch.randn(4, 3, 16)
    with torch.no_grad():
        before = net[0][0](x) - net[0][0].bias
        reports = lcma.compress_(net, CompressConfig("low-rank", 0.5), calibration=x, batch=512)
        after = net[0][0](x) - net[0][0].bias
    assert reports[0].output_error == pytest.approx(float((after - before).norm() / before.norm()), rel=1e-4)
    assert all(report.output_error > 0 and report.predicted > 0 for report in reports)


@each("kind, budget, structure", __file__, "budgets", **STRUCTURE)
def test_ranks_are_the_largest_within_the_budget_or_aligned(kind, budget, structure):
    sides = structure.rows, structure.cols
    assert CompressConfig(kind, budget).structures(*sides) == (structure,)
    assert structure.parameters <= budget * math.prod(sides)
    (found,) = CompressConfig(kind, 0.3, 8).structures(64, 96)
    larger = type(found)(*found.sizes[: 2 if kind == "low-rank" else 4], found.rank + 1)
    assert found.parameters <= 0.3 * 64 * 96 < larger.parameters


def test_layers_become_pairs_of_factors_of_a_budget_or_of_given_patterns():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.Linear(128, 64))
    configs = {"0": CompressConfig("kronecker", 0.5), "1": CompressConfig("kronecker", patterns="(1,16,8,4)(4,8,32,1)")}
    reports = lcma.compress_(net, configs)
    assert [type(layer) for layer in net] == [lcma.KSLinear, lcma.KSLinear]
    assert reports[1].structure == "Kronecker-sparse (1,16,8,4)(4,8,32,1)"
    assert reports[0].bytes_after <= 0.5 * reports[0].bytes_before
    assert all(0 < report.error < 1 for report in reports)
    (other,) = lcma.compress_(nn.Sequential(nn.Linear(64, 100)), configs["1"])
    assert "the patterns are of 64 x 128" in other.skipped


def test_what_cannot_be_compressed_is_refused_first_and_nothing_is_lost():
    net = model()
    with torch.no_grad():
        net[3].weight[0, 0] = torch.nan
    refuses("the weight of 3 holds NaN or infinity", lcma.compress_, net, CompressConfig("low-rank"))
    assert not [module for module in net.modules() if isinstance(module, BlockLowRankLinear)]
    refuses("no linear layer was taken", lcma.compress_, net, CompressConfig("low-rank"), lambda *_: False)
    reports = lcma.compress_(nn.Sequential(nn.Linear(4, 4)), CompressConfig("low-rank", 0.1))
    assert "below rank one" in reports[0].skipped
    net = model()
    refuses_with(RankError, "3: rank 8 exceeds 7", lcma.compress_, net, CompressConfig("low-rank", rank=8))
    assert RankError.exit_code == 2
    assert not [module for module in net.modules() if isinstance(module, BlockLowRankLinear)]
    reports = lcma.compress_(net, {"0.*": CompressConfig("low-rank", rank=8), "1": None})
    assert [report.structure for report in reports] == ["low-rank 24x16, r 8", "low-rank 16x24, r 8"]


def test_reports_have_measured_speeds_at_the_rows_that_are_named(monkeypatch):
    clock, seen = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def takes(seconds):
        def after(module, args, result):
            clock[0] += seconds * len(args[0])
            seen.append(len(args[0]))

        return after

    dense, structured = nn.Linear(8, 8), lcma.LowRankLinear(8, 8, 2)
    dense.register_forward_hook(takes(2.0))
    structured.register_forward_hook(takes(8.0))
    assert compression.measured_ratios(dense, structured, (1, 5)) == ((1, 0.25), (5, 0.25))
    assert set(seen) == {1, 5}
    monkeypatch.undo()
    first, *_ = reports = lcma.compress_(model(), CompressConfig("low-rank", 0.9), rows=(1, 3))
    assert all([rows for rows, _ in one.at_rows] == [1, 3] and min(one.at_rows)[1] > 0 for one in reports)
    assert "x at 1 rows" in repr(first)
    config = CompressConfig("low-rank", 0.9)
    refuses_with(lcma.LcmaError, "rows must be at least 1", lcma.compress_, model(), config, rows=(0,))


def test_a_compression_goes_on_from_its_folder(tmp_path):
    config, events = CompressConfig("blast", 0.9, 4, 30), []
    lcma.compress_(first := model(), config, folder=tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 3
    lcma.compress_(second := model(), config, folder=tmp_path, on_event=events.append)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    assert not [text for text in events if "step" in text]
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)
