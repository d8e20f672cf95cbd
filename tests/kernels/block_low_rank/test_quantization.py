"""Intermediate results of 8 bits: the format e4m3, scales of groups, and products on the processor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lcma import block_low_rank
from lcma.errors import PlanError
from lcma.kernels import decision_for
from lcma.kernels.block_low_rank import Blast, BlockLowRankMatrix, LowRank, Monarch
from lcma.kernels.block_low_rank.naive import multiply_rounded, rounded
from lcma.kernels.block_low_rank.quantization import GROUP, NON_FINITE, ONE, dequantize, quantize
from lcma.kernels.e4m3 import LARGEST, NAN, decode, encode
from lcma.kernels.factored import request_of
from lcma.kernels.planning.explain import explanation
from lcma.kernels.planning.wisdom import class_of
from lcma.kernels.request import INTERMEDIATES, Layout, Request

STRUCTURES = [
    LowRank(96, 128, 70),
    Monarch(24, 36, 3, 4, 5),
    Monarch(24, 36, 3, 4, 5, interleaved=True),
    Blast(24, 36, 3, 4, 7),
    Blast(96, 72, 3, 4, 66),
]
structures = pytest.mark.parametrize("structure", STRUCTURES, ids=lambda one: one.name)
forms = pytest.mark.parametrize("form", INTERMEDIATES)

CODES = np.arange(256).astype(np.uint8)
FINITE = CODES[CODES & 0x7F != NAN]


def hard_values(seed=0):
    """(130, 8): zeros, an infinity, a NaN, huge, subnormal and tied values, an outlier, and random values."""
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal((130, 8)) * np.exp2(rng.integers(-5, 5, (130, 8)))).astype(np.float32)
    values[:, 1] = 0
    values[3, 2], values[100, 3] = np.inf, np.nan
    values[:, 4] *= np.float32(1e36)
    values[:, 5] *= np.float32(1e-43)
    values[:64, 6] = np.arange(64) + 0.5
    values[5, 7] = -1e6
    return values


def test_e4m3_has_torchs_values():
    torch = pytest.importorskip("torch")
    wanted = torch.from_numpy(CODES.copy()).view(torch.float8_e4m3fn).float().numpy()
    np.testing.assert_array_equal(decode(CODES), wanted)
    assert len(FINITE) == 254
    assert decode(FINITE).max() == LARGEST


def test_every_finite_code_comes_back_from_its_value():
    np.testing.assert_array_equal(encode(decode(FINITE)), FINITE)


def test_e4m3_rounds_as_torch_does():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    drawn = (rng.standard_normal(100_000) * np.exp2(rng.integers(-14, 10, 100_000))).astype(np.float32)
    positive = decode(FINITE[:127])
    ties = (positive[:-1] + positive[1:]) / 2
    beside = [np.nextafter(ties, np.float32(way)) for way in (-1, 500)]
    values = np.concatenate([drawn, ties, -ties, *beside, np.array([0.0, -0.0, 1e-44], np.float32)])
    wanted = torch.from_numpy(np.clip(values, -LARGEST, LARGEST)).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    np.testing.assert_array_equal(encode(values), wanted)


def test_e4m3_saturates_and_is_nan_for_nan_alone():
    codes = encode(np.array([449, -1e30, np.inf, -np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(decode(codes), [448, -448, 448, -448, np.nan])


@forms
def test_groups_are_rounded_as_by_definition(form):
    values = hard_values()
    codes, exponents = quantize(values, form)
    assert codes.dtype == exponents.dtype == np.uint8
    assert exponents.shape == (3, 8)
    found = dequantize(codes, exponents, form)
    np.testing.assert_array_equal(found, rounded(values, form))
    assert (exponents[:, 1] == ONE).all()
    assert exponents[0, 2] == exponents[1, 3] == NON_FINITE
    assert np.isnan(found[:GROUP, 2]).all()
    assert np.isfinite(found[GROUP:, 2]).all()
    clean = found[:, [0, 1, 4, 5, 6, 7]]
    assert np.isfinite(clean).all()
    bound = {"fp8": 2.0**-4, "int8": 2.0**-7}[form]
    least = 2.0**-126 if form == "int8" else 2.0**-135  # half the last place of the least scale
    largest = np.repeat([np.abs(values[start : start + GROUP]).max(0) for start in (0, 64, 128)], GROUP, 0)[:130]
    assert (np.abs(clean - values[:, [0, 1, 4, 5, 6, 7]]) <= bound * largest[:, [0, 1, 4, 5, 6, 7]] + least).all()


@forms
def test_an_outlier_coarsens_its_own_group_alone(form):
    values = np.random.default_rng(3).standard_normal((2 * GROUP, 5)).astype(np.float32)
    plain = dequantize(*quantize(values, form), form)
    values[0, 0] = 1e5
    found = dequantize(*quantize(values, form), form)
    np.testing.assert_array_equal(found[:, 1:], plain[:, 1:])
    np.testing.assert_array_equal(found[GROUP:], plain[GROUP:])


@structures
@forms
def test_the_products_are_those_by_definition(structure, form):
    """Factors and inputs are small integers, so that both have the same sums in any order."""
    rng = np.random.default_rng(1)
    for dtype, n in itertools.product(("float32", "float64"), (1, 7)):
        factors = [rng.integers(-3, 4, shape).astype(dtype) for shape in structure.factor_shapes]
        x = rng.integers(-4, 5, (structure.cols, n)).astype(dtype)
        wanted = multiply_rounded(structure, factors, x, form)
        for first, last in itertools.product((Layout.ROWS, Layout.COLUMNS), repeat=2):
            request = request_of(structure, n, dtype, layouts=(first, last), intermediate=form)
            given = x if first is Layout.ROWS else np.asfortranarray(x)
            plan = decision_for(request).plan
            assert plan.candidate.strategy == "quantized"
            np.testing.assert_array_equal(plan.build().run(factors, given), wanted)


@structures
@forms
def test_errors_are_those_of_the_form_and_the_same_in_chunks(structure, form, monkeypatch):
    from lcma.kernels.block_low_rank import cpu

    matrix = BlockLowRankMatrix.random(structure)
    x = np.random.default_rng(2).standard_normal((12, structure.cols)).astype(np.float32)
    found = block_low_rank.matmul(matrix, x, intermediate=form)
    truth = structure.multiply_wide(matrix.factors, x.T).T
    error = np.linalg.norm(found - truth) / np.linalg.norm(truth)
    assert 1e-3 < error < {"fp8": 0.05, "int8": 0.02}[form]
    np.testing.assert_allclose(found, multiply_rounded(structure, matrix.factors, x.T, form).T, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(cpu, "ROUNDED", 300)
    np.testing.assert_array_equal(block_low_rank.matmul(matrix, x, intermediate=form), found)


@structures
@forms
def test_rows_of_zeros_huge_rows_and_non_finite_ones_do_not_touch_others(structure, form):
    matrix = BlockLowRankMatrix.random(structure)
    x = np.random.default_rng(4).standard_normal((9, structure.cols)).astype(np.float32)
    plain = block_low_rank.matmul(matrix, x, intermediate=form)
    hard = x.copy()
    hard[1], hard[2] = 0, hard[2] * np.float32(2.0**100)
    hard[3, 5], hard[4, 6] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        found = block_low_rank.matmul(matrix, hard, intermediate=form)
        exact = block_low_rank.matmul(matrix, hard)
    others = [0, 5, 6, 7, 8]
    np.testing.assert_array_equal(found[others], plain[others])
    assert (found[1] == 0).all()
    np.testing.assert_array_equal(found[2], plain[2] * np.float32(2.0**100))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(exact))
    assert not np.isfinite(found[3:5]).any()


def test_only_a_request_with_an_intermediate_is_rounded_and_no_other_strategy_takes_it():
    structure = LowRank(96, 128, 20)
    plain, narrow = request_of(structure, 20), request_of(structure, 20, intermediate="int8")
    assert decision_for(plain).plan.candidate.strategy == "strided"
    assert all(one.candidate.strategy != "quantized" for one in decision_for(plain).proposals)
    assert class_of(plain) != class_of(narrow)
    assert str(narrow) == f"{plain}, intermediate int8"
    assert decision_for(plain).plan.digest != decision_for(narrow).plan.digest
    with pytest.raises(PlanError, match="strided has intermediate results of float32; int8 needs quantized"):
        decision_for(narrow, strategy="strided")
    with pytest.raises(PlanError, match="allow it with intermediate fp8 or int8"):
        decision_for(plain, strategy="quantized")
    with pytest.raises(PlanError, match="intermediate must be fp8 or int8, or None, not 'fp4'"):
        request_of(structure, 20, intermediate="fp4")
    with pytest.raises(PlanError, match="for low-rank, Monarch and BLAST matrices"):
        Request(4, 4, 4, intermediate="fp8")


def test_the_stages_of_a_gpu_have_the_bytes_of_the_codes():
    pytest.importorskip("triton")
    structure, n = Monarch(11008, 4096, 16, 16, 96), 8192
    plain = decision_for(request_of(structure, n, "bfloat16", device="cuda"), strategy="strided").plan
    narrow = request_of(structure, n, "bfloat16", device="cuda", intermediate="fp8")
    plan = decision_for(narrow).plan
    codes = 16 * 16 * (96 + 2) * n  # 96 ranks in two groups
    assert plan.workspace == codes
    assert plain.workspace == 16 * 16 * 96 * n * 2
    saved = plain.workspace - codes
    for before, after in zip(plain.stages, plan.stages, strict=True):
        assert before.bytes - after.bytes == saved
        assert 0 < after.seconds <= before.seconds
    assert plan.stages[0].name.endswith(f"into fp8: {saved / 1e6:.1f} MB less")
    from lcma.kernels import strategies

    found = explanation(decision_for(narrow), strategies("cuda"))
    assert found.seconds == plan.seconds
    assert "int8" not in str(found.as_json())
    for structure, dtype, message in (
        (Monarch(24, 36, 3, 4, 5), "float64", "multiply float16, bfloat16, tf32, float32, not float64"),
        (Blast(256, 256, 2, 128, 5), "bfloat16", "at most 64 blocks, not 128"),
    ):
        with pytest.raises(PlanError, match=message):
            decision_for(request_of(structure, 8, dtype, device="cuda", intermediate="int8"))


def test_a_gpu_without_fp8_takes_int8(monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from lcma.kernels.block_low_rank.quantized import quantized_reason

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA A100")
    structure = LowRank(64, 64, 8)
    for capability, refused in (((8, 0), True), ((8, 9), False), ((9, 0), False)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda capability=capability: capability)
        reason = quantized_reason(structure, "float16", "fp8")
        assert (reason is not None) == refused
        assert quantized_reason(structure, "float16", "int8") is None
        assert not refused or "NVIDIA A100 does not convert fp8 (NVIDIA's capability 8.9 does); choose int8" in reason
