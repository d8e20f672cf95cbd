"""Planning for a GPU from a profile alone: orders of steps, shapes, rates, reasons, choices, recipes, other GPUs."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

import lcma
from lcma.kernels import Profile, Request, decision_for, plan_for, strategies
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.order import Accumulate, Fetch, Keep, Take, ValueSum, peak_alive, steps
from lcma.kernels.codegen.triton_tiles import ACCESS, MOST_REGISTERS, SPARE, candidates, tile_of
from lcma.kernels.cuda import machine
from lcma.kernels.cuda.estimate import NAME, completed, device_profile, h200
from lcma.kernels.cuda.flat_program import flat_program
from lcma.kernels.cuda.machine import cuda_machine
from lcma.kernels.cuda.shape import batch_pieces, pieces_within, stack_bytes
from lcma.kernels.dense.cuda import PRICED, CudaScheme
from lcma.kernels.planning.profile import find_profile
from lcma.kernels.ring import exact_ring
from lcma.kernels.torch.recipe import ProductRecipe
from lcma.workbench.bench.workloads import sample
from lcma.workbench.commands.tune import require_prices

from ...refusal import refuses
from ..cases import each
from ..gpu import H200, SCHEME, candidate, decision, gpu_machine, program


def seconds(dtype, sizes):
    return float(H200.costs.gemm(dtype, *sizes))


def worked(linear, sources, ahead):
    """The steps of a map, done in plain Python; each source is fetched once, and `ahead` of them early."""
    values, results, coming = {}, [None] * len(linear.results), []
    for step in steps(linear, ahead):
        if isinstance(step, Fetch):
            assert step.value not in values
            coming.append(step.value)
            assert len(coming) <= ahead + 1
        elif isinstance(step, Take):
            assert len(coming) == ahead + 1 or len(values.keys() | coming) >= linear.sources
            assert coming.pop(0) == step.value
            values[step.value] = sources[step.value]
        elif isinstance(step, ValueSum):
            values[step.value] = sum(float(c) * values[src] for c, src in step.terms)
        elif isinstance(step, Accumulate):
            assert step.first == (step.value not in values)
            values[step.value] = values.get(step.value, 0.0) + float(step.coefficient) * values[step.term]
        else:
            assert isinstance(step, Keep)
            assert results[step.result] is None
            results[step.result] = values[step.value]
    return results


@pytest.mark.parametrize("names", [("strassen",), ("laderman", "2x2x3"), ("strassen",) * 3], ids="/".join)
def test_steps_work_the_map(names):
    rng = np.random.default_rng(0)
    whole = flat_program(program(*names))
    for linear in (whole.left, whole.right, whole.merge):
        sources = rng.integers(-9, 9, linear.sources).astype(float)
        values = list(sources)
        for terms in linear.lins:
            values.append(sum(float(c) * values[src] for c, src in terms))
        expected = [sum(float(c) * values[src] for c, src in terms) for terms in linear.results]
        for ahead in (0, 3, linear.sources):
            assert worked(linear, sources, ahead) == expected


def test_few_values_are_alive_and_products_that_share_a_sum_have_a_slab_each():
    """A merge keeps its results and little else, however many products there are."""
    whole = flat_program(program("strassen", "strassen", "strassen"))
    assert peak_alive(whole.merge) <= 64 + 24
    assert peak_alive(whole.left) <= 64 + 24
    assert (whole.rank, len(whole.left.results), len(whole.merge.results)) == (343, 343, 64)
    whole = flat_program(program("5x5x5"))
    assert len(maps_of(whole.program).left.results) < whole.rank == len(whole.left.results)


@pytest.mark.parametrize("itemsize", [2, 4, 8])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_tiles_fit_the_registers_and_hide_the_latency(levels, itemsize):
    whole = flat_program(program(*["strassen"] * levels))
    for linear in (whole.left, whole.merge):
        tiles = list(candidates(linear, itemsize))
        assert len(set(tiles)) == len(tiles) >= 4
        for tile in tiles:
            values = peak_alive(linear) * (2 if itemsize == 8 else 1)
            assert tile.elements * values + SPARE <= MOST_REGISTERS
            assert 4 <= tile.elements * itemsize <= ACCESS
            assert tile.elements * 32 * tile.warps == tile.rows * tile.cols
        assert 0 < tiles[0].ahead <= linear.sources
    assert tile_of(whole.left, itemsize, transposed=True).rows > 1


@pytest.mark.parametrize("items", [1, 3])
def test_pieces_cover_everything_once_and_divide_the_stacks_of_a_and_c(items):
    target, rank = lcma.Target.general(2, 2, 2), 7
    for count in (1, 2, 4, 8, 64):
        seen = np.zeros((items, 300), int)
        for piece in batch_pieces(items, 300, 4, target, count):
            seen[piece] += 1
        assert (seen == 1).all()
    large, stack = Request(4096, 4096, 4096, device="cuda"), 7 * 2048**2 * 4
    quarters = stack_bytes(large, target, rank, 4)
    assert (stack_bytes(large, target, rank, 1), quarters) == (3 * stack, stack + 2 * stack // 4)
    assert [pieces_within(large, target, rank, limit) for limit in (quarters, stack)] == [4, None]


def test_rates_go_through_the_measured_points():
    for row in H200.profile.gemm:
        if (row.dtype, row.mode) == ("bfloat16", "whole"):
            sizes = row.m, row.k, row.n
            assert seconds("bfloat16", sizes) == pytest.approx(2 * math.prod(sizes) / row.rate, rel=0.01)
    between = 2 * 6000**3 / seconds("bfloat16", (6000, 6000, 6000))
    assert 600e12 < between < 760e12
    assert np.isnan(seconds("complex64", (64, 64, 64)))


def test_orders_of_the_same_levels_are_priced_together(monkeypatch):
    priced = []
    predict = CudaScheme.predict

    def recorded(self, one, request, machine):
        priced.append(one)
        return predict(self, one, request, machine)

    monkeypatch.setattr(CudaScheme, "predict", recorded)
    found = decision_for(Request(12288, 6144, 12288, "float32", device="cuda"), machine=H200)
    alike, grids = {}, set()
    for proposal in found.proposals:
        schemes = [level.scheme for level in proposal.candidate.source.levels]
        figures = np.prod([(*scheme.target.shape, scheme.rank) for scheme in schemes], axis=0)
        grids.add(tuple(figures.tolist()))
        same = tuple(sorted(scheme.digest for scheme in schemes)), proposal.candidate.method
        alike.setdefault(same, []).append(proposal.bound)
    assert 1 < len(grids) <= PRICED
    assert max(map(len, alike.values())) > 1  # several orders of the same levels
    for bounds in alike.values():
        np.testing.assert_allclose(bounds, bounds[0], rtol=1e-12)
    # The bounds are prices, so that the first that can run is the best.
    assert 1 <= len(priced) <= 4


def test_without_rates_the_product_is_the_vendors():
    """Choices by rates, sizes and limits: test_golden_plans.py."""
    for profile in (replace(H200.profile, gemm=()), Profile("none", "test")):
        request = Request(32768, 32768, 32768, "bfloat16", device="cuda")
        found = decision_for(request, machine=gpu_machine(profile))
        assert found.plan.candidate.strategy == "vendor"
        assert found.plan.candidate.source is None


def test_stages_static_operands_and_reasons():
    request = Request(4096, 4096, 4096, "float32", device="cuda")
    online = plan_for(request, "strassen", machine=H200)
    offline = plan_for(replace(request, static="B"), "strassen", machine=H200)
    names = ["Combine A", "Combine B", "7 products 2048x2048x2048", "Combine H"]
    assert [stage.name for stage in online.stages] == names
    assert [stage.name for stage in offline.stages] == [names[0], *names[2:]]
    assert offline.seconds == pytest.approx(online.seconds - online.stages[1].seconds)
    assert online.stages[2].flops == 7 * 2 * 2048**3
    assert online.stages[0].bytes == 4 * (4096**2 + 7 * 2048**2)
    assert online.workspace == 3 * 4 * 7 * 2048**2
    request = Request(64, 64, 64, "float32", device="cuda")

    def refused(*names, method="batched", **changes):
        return SCHEME.can_run(candidate(*names, method=method), replace(request, **changes), H200)

    assert refused("strassen") is None
    assert "more than 512" in refused(*["strassen"] * 4)
    assert "half products" in refused("4x4x4-tri-out-r34")
    assert "registers" in refused("4x4x5", "strassen", dtype="float64")
    assert "bytes of workspace" in refused("strassen", max_workspace=10)
    assert list(strategies("cuda")["dense", "vendor"].candidates_of(candidate("strassen").source)) == []


@each("sizes, dtype, reason", __file__, "stacks")
def test_what_a_stack_refuses(sizes, dtype, reason):
    pytest.importorskip("torch")
    stacked, request = candidate("strassen", "strassen", method="stack"), Request(*sizes, dtype=dtype, device="cuda")
    assert (SCHEME.can_run(stacked, request, H200) or "") == reason


def test_recipes_are_texts_that_are_permuted():
    for text in ("auto", "strassen", "laderman/strassen?@scheme:stack;max_error=0.001;max_workspace=5"):
        assert str(ProductRecipe.parse(text)) == text
    for text in ("", "a//b", "strassen@", "strassen;max_error=big", "strassen;speed=1"):
        refuses("recipe", ProductRecipe.parse, text)
    recipe = ProductRecipe.parse("2x2x3/strassen;max_workspace=9")
    turned = recipe.permuted("mnk")
    assert [scheme.target.shape for scheme in turned.schemes()] == [(2, 3, 2), (2, 2, 2)]
    assert turned.max_workspace == 9
    assert all(lcma.check(scheme).ok for scheme in turned.schemes())


pytestmark = pytest.mark.usefixtures("no_gpu")


def test_the_decision_says_what_was_considered_and_why():
    found = decision("float32", 8192)
    assert found.plan.candidate.source is not None
    assert found.gain > 1.2
    times = [proposal.bound for proposal in found.proposals]
    assert times == sorted(times)
    assert sum(stage.seconds for stage in found.plan.stages) == pytest.approx(found.plan.seconds)
    tiny = decision("bfloat16", 256)
    assert (tiny.plan.label, tiny.gain) == ("vendor", 1.0)
    assert "launches alone" in tiny.reason
    assert "nothing is predicted to be faster" in decision("bfloat16", 4096).reason


def test_profiles_come_from_a_file_the_gpu_or_the_h200(tmp_path, monkeypatch):
    assert cuda_machine().profile is h200()
    assert find_profile(NAME) == h200()
    path = tmp_path / "mine.json"
    path.write_text(h200().to_json())
    assert find_profile(str(path)) == h200()
    refuses("nvidia-h200", find_profile, str(tmp_path / "none.json"))


class Properties:
    """What torch reports of a GPU with half the multiprocessors of an H200, at its clock and bandwidth."""

    multi_processor_count = 66
    clock_rate = 1_980_000
    memory_clock_rate = 3_125_000
    memory_bus_width = 6144


def test_a_gpu_that_was_never_measured_has_an_estimate_that_chooses_nothing(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(machine, "device_reason", lambda index=None: None)
    monkeypatch.setattr(machine, "device_id", lambda index: "cuda-mine")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "mine")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties)
    machine._unmeasured.cache_clear()
    unknown = cuda_machine()
    machine._unmeasured.cache_clear()
    profile = unknown.profile
    assert (profile.id, profile.hardware, profile.source) == ("cuda-mine", "mine", "estimated")
    assert profile.gemm[0].rate == pytest.approx(h200().gemm[0].rate / 2)
    assert profile.bandwidth == pytest.approx(h200().bandwidth, rel=0.01)
    request = Request(8192, 8192, 8192, device="cuda")
    found = decision_for(request, machine=unknown)
    assert found.is_baseline
    assert "nothing was timed on this machine yet" in found.reason
    assert found.proposals[0].candidate.source is not None
    require_prices(request, unknown)


def test_a_gpu_of_a_shipped_kind_has_its_rates_and_others_can_be_tuned():
    found = device_profile("NVIDIA H100 80GB HBM3", Properties)
    assert (found.id, found.source) == ("nvidia-h100", "published")
    request = Request(8192, 8192, 8192, device="cuda")
    assert decision_for(request, machine=gpu_machine(found)).plan.candidate.source is not None
    sizes, ring = (512, 512, 512), exact_ring("GF(1021)")
    for request in (
        Request(*sizes, "int8", device="cuda", max_abs=31),
        Request(*sizes, "bfloat16", device="cuda", precision="fp8"),
        Request(*sizes, device="cuda", precision="fp32-accurate"),
        Request(*sizes, "int64", device="cuda", ring=ring),
        Request(*sizes, device="cuda"),
    ):
        require_prices(request, H200)


BYTES = 30 << 30
"""Of the three matrices of a product: all of the paper's shapes fit."""


def gains(name, dtype, count=24):
    """Return predicted gains for products spread over the paper's 960 shapes."""
    machine = cuda_machine(profile=find_profile(name))
    shapes = [(rows, layer.k, layer.n) for rows, layer in sample(count, most_rows=20480, most_bytes=BYTES)]
    requests = (Request(*shape, dtype, device="cuda") for shape in shapes)
    return [decision_for(request, machine=machine).gain for request in requests]


@each("name, dtype, mean, selected", __file__, "published")
def test_predicted_gains_are_near_those_of_the_paper(name, dtype, mean, selected):
    found = gains(name, dtype)
    # The plans of two levels are predicted to gain more on the A100 than the paper measured of its schemes.
    assert mean - 0.03 < statistics.mean(found) < mean + 0.15
    assert abs(sum(one > 1 for one in found) / len(found) - selected) < 0.25
    assert max(found) < (8 / 7) ** 3


@pytest.mark.parametrize("name", ["nvidia-h20", "nvidia-a100-40gb"])
def test_no_rate_exceeds_the_published_one_and_large_products_come_near(name):
    given = find_profile(name)
    found = completed(given)
    for published in given.gemm:
        rates = {(row.mode, row.m): row.rate for row in found.gemm if row.dtype == published.dtype}
        assert max(rates.values()) <= published.rate * (1 + 1e-9)
        assert rates["whole", 8192] > 0.85 * published.rate
        assert rates["whole", 1024] < rates["whole", 8192]
    assert found.source == "published"
    assert "scaled from the rates of NVIDIA H200" in found.notes
    assert completed(found) is found


def test_measured_profiles_stay_and_half_precision_gains_nothing_where_memory_is_slow():
    assert completed(h200()) is h200()
    machine = cuda_machine(profile=find_profile("nvidia-a100-40gb"))
    found = decision_for(Request(8192, 8192, 8192, "bfloat16", device="cuda"), machine=machine)
    assert found.is_baseline
