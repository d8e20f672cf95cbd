from functools import partial
from itertools import product

import numpy as np
import pytest

import lcma
from lcma.verify import check_traced

GENERAL = lcma.parse_target("2x3x2")
dtypes = pytest.mark.parametrize(
    "options",
    [{"dtype": "int64"}, {"dtype": "int32"}, {"modulus": 101}, {"dtype": "float32"}, {"dtype": "float64"}],
    ids=str,
)
STRUCTURED = ["2x2x3:tri-left", "3x2x2:tri-right:upper", "2x2x2:tri-out", "2x1x2:tri-out:upper"]


@dtypes
def test_the_classical_product_passes(options):
    outcome = check_traced(np.matmul, GENERAL, **options)
    assert outcome.ok
    assert outcome.proof.method == "traced"
    assert outcome.proof.error_log2 <= -100


@dtypes
@pytest.mark.parametrize("fault", [
    lambda a, b: a @ b + (a[:, :1] @ b[:1, :]),
    lambda a, b: np.where(np.arange(b.shape[1]) == 5, 0, a @ b),
    lambda a, b: a @ (b + np.eye(*b.shape, dtype=b.dtype)),
    lambda a, b: (a @ b)[:, ::-1],
    lambda a, b: a @ b + (np.arange(a.shape[0])[:, None] == 3) * a[0, 0] * b[1, 2] * (b.dtype.type(2) ** 20),
])  # fmt: skip
def test_faults_are_found(options, fault):
    assert not check_traced(fault, GENERAL, **options, seed=3).ok


@dtypes
@pytest.mark.parametrize("name", STRUCTURED)
def test_evaluation_of_structured_programs_reads_no_garbage(options, name):
    program = lcma.program_of(lcma.resolve(f"naive:{name}")[0])
    # The plain product reads what it must not, or fills what should be zero.
    for call, ok in ((partial(lcma.evaluate, program), True), (np.matmul, False)):
        assert check_traced(call, program.target, **options, zero_outside=True).ok is ok


def test_without_garbage_a_plain_product_does_for_triangular_operands():
    target = lcma.parse_target("2x2x3:tri-left")
    assert check_traced(np.matmul, target, garbage=False).ok
    assert check_traced(np.matmul, lcma.parse_target("2x2x2:tri-out")).ok


FAST = {("strassen", "int64"), ("eca-stage1", "float32")}
KERNELS = product(("strassen", "laderman", "eca-stage1", "eca-stage2"), ("int64", "float32"))


@pytest.mark.parametrize(
    ("name", "dtype"), [case if case in FAST else pytest.param(*case, marks=pytest.mark.slow) for case in KERNELS]
)
def test_the_generated_kernels_compute_their_targets(name, dtype):
    target = lcma.resolve(name)[0].target
    options = {"sizes": tuple(5 * size for size in target.shape), "dtype": dtype, "zero_outside": True}
    outcome = check_traced(lambda a, b: lcma.matmul(a, b, name), target, **options, error_log2=-20)
    assert outcome.ok, outcome.explain()


def test_ragged_sizes_of_generated_kernels():
    target, twice = lcma.parse_target("2x2x2"), partial(lcma.matmul, scheme="strassen", levels=2)
    outcome = check_traced(twice, target, sizes=(7, 11, 5), error_log2=-20)
    assert outcome.ok, outcome.explain()


def test_failures_say_where():
    target = lcma.parse_target("2x2x2")
    assert "C is (4, 6), wanted (4, 8)" in check_traced(lambda a, b: (a @ b)[:, :6], target).explain()
    outcome = check_traced(lambda a, b: np.where(np.arange(8) == 2, 7, a @ b), target)
    assert outcome.explain().startswith("4 of 32 entries of C are wrong in round 1 (4x6x8, int64); C[1,3] is 7, wanted")


def test_a_seed_repeats_the_matrices():
    seen = []
    for _ in range(2):
        check_traced(lambda a, b: seen.append(a.copy()) or a @ b, GENERAL, seed=4, error_log2=-1)
    assert (seen[0] == seen[len(seen) // 2]).all()


def test_object_matrices_modulo_a_prime():
    program = lcma.program_of(lcma.resolve("laderman")[0])
    outcome = check_traced(partial(lcma.evaluate, program), program.target, dtype="object", modulus=2147483647)
    assert outcome.ok
