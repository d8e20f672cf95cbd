"""einsum against numpy's and torch's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma

LETTERS = "abcdefg"
EXAMPLES = json.loads(Path(__file__).with_name("einsum.json").read_text(encoding="utf-8"))


def operands(equation, seed=0, dots=(2, 3)):
    rng = np.random.default_rng(seed)
    sizes = {letter: int(size) for letter, size in zip("abcdefghijklmnopq", rng.integers(1, 5, 17), strict=True)}
    inputs = equation.partition("->")[0].replace("...", ".").split(",")
    shapes = [[size for c in one for size in (dots if c == "." else (sizes[c],))] for one in inputs]
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("equation", EXAMPLES)
@pytest.mark.parametrize("scheme", ["auto", "strassen"])
def test_the_result_is_numpys(equation, scheme):
    arrays = operands(equation)
    wanted = np.einsum(equation, *arrays)
    np.testing.assert_allclose(lcma.einsum(equation, *arrays, scheme=scheme), wanted, atol=1e-12)


@st.composite
def equations(draw):
    """Two or three operands of up to four labels each, and an output of some of them in any order."""
    inputs = draw(st.lists(st.lists(st.sampled_from(LETTERS), max_size=4), min_size=2, max_size=3))
    known = sorted({letter for labels in inputs for letter in labels})
    output = draw(st.permutations(known))[: draw(st.integers(0, len(known)))]
    sizes = {letter: draw(st.integers(0, 4)) for letter in known}
    ones = draw(st.sets(st.integers(0, 30), max_size=2))  # places that are of size 1, and repeated
    shapes, place = [], 0
    for labels in inputs:
        shape = []
        for letter in labels:
            shape.append(1 if place in ones and labels.count(letter) == 1 else sizes[letter])
            place += 1
        shapes.append(shape)
    return ",".join("".join(labels) for labels in inputs) + "->" + "".join(output), shapes


@settings(max_examples=150, deadline=None)
@given(equations(), st.sampled_from([np.int64, np.float32, np.complex128]))
def test_any_equation_gives_numpys_result(found, dtype):
    equation, shapes = found
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]  # exact in every dtype
    wanted = np.einsum(equation, *arrays)
    result = lcma.einsum(equation, *arrays)
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(result, wanted)


def test_tensors_have_torchs_results_and_gradients():
    torch = pytest.importorskip("torch")
    for equation in EXAMPLES[:2] + EXAMPLES[3:6] + EXAMPLES[11:14] + EXAMPLES[16:17]:
        given = [torch.tensor(array, requires_grad=True) for array in operands(equation)]
        other = [one.detach().clone().requires_grad_() for one in given]
        result, wanted = lcma.einsum(equation, *given, scheme="strassen"), torch.einsum(equation, *other)
        torch.testing.assert_close(result, wanted)
        result.sin().sum().backward()
        wanted.sin().sum().backward()
        for one, two in zip(given, other, strict=True):
            torch.testing.assert_close(one.grad, two.grad)
