"""Schemes in the dense blocks of factors: on tensors of a processor, by the naive twins of the combine kernels."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from lcma.errors import PlanError  # noqa: E402
from lcma.kernels import decision_for, machine_for, strategies  # noqa: E402
from lcma.kernels.factored import factored_request  # noqa: E402
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse, Pattern  # noqa: E402
from lcma.kernels.request import Layout  # noqa: E402
from lcma.kernels.structured import block_schemes  # noqa: E402

LARGE = KroneckerSparse.of(Pattern(1, 4096, 4096, 4))


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize(
    "patterns",
    [(Pattern(1, 9, 7, 4),), (Pattern(3, 8, 12, 2),), (Pattern(4, 5, 6, 1), Pattern(1, 6, 8, 4))],
    ids=["d above a", "a above d", "list"],
)
def test_blocks_by_a_scheme_are_the_product(patterns, levels):
    structure = KroneckerSparse.of(patterns)
    matrix = FactoredMatrix.random(structure.patterns, dtype="float64")
    factors, full = list(map(torch.from_numpy, matrix.factors)), torch.from_numpy(matrix.dense())
    x = torch.randn(structure.cols, 37, dtype=torch.float64)
    layouts = (Layout.ROWS, Layout.COLUMNS)
    for first, last in itertools.product(layouts, layouts):
        request = factored_request(structure, 37, "float64", device="cuda", layouts=(first, last))
        given = x if first is Layout.ROWS else x.T.contiguous().T
        ends = ((first, structure.patterns[-1]), (last, structure.patterns[0]))
        if any(layout is Layout.COLUMNS and pattern.d > 1 for layout, pattern in ends):
            with pytest.raises(PlanError, match="store the batch last"):
                decision_for(request, "strassen", levels)
            continue
        plan = decision_for(request, "strassen", levels).plan
        assert plan.candidate.strategy == "scheme"
        assert plan.candidate.program is not None
        found = plan.build().run(factors, given)
        torch.testing.assert_close(found, full @ x)
        out = torch.full_like(found, torch.nan)
        assert plan.build().run(factors, given, out) is out
        torch.testing.assert_close(out, full @ x)


def test_a_workspace_limit_is_met_by_splitting_the_batch():
    structure = KroneckerSparse.of(Pattern(1, 16, 16, 2))
    matrix = FactoredMatrix.random(structure.patterns, dtype="float64")
    x = torch.randn(32, 1000, dtype=torch.float64)
    whole = decision_for(factored_request(structure, 1000, "float64", "bsl", device="cuda"), "strassen").plan
    bound = factored_request(structure, 1000, "float64", "bsl", device="cuda", max_workspace=whole.workspace // 3)
    plan = decision_for(bound, "strassen").plan
    assert plan.workspace <= whole.workspace // 3
    found = plan.build().run([torch.from_numpy(matrix.factors[0])], x)
    torch.testing.assert_close(found, torch.from_numpy(matrix.dense()) @ x)
    tiny = factored_request(structure, 1000, "float64", "bsl", device="cuda", max_workspace=100)
    with pytest.raises(PlanError, match="more workspace than the 100 bytes"):
        decision_for(tiny, "strassen")


def test_large_blocks_are_predicted_to_gain_and_small_ones_are_not_proposed():
    request = factored_request(LARGE, 25088, order="bsl", device="cuda")
    decision = decision_for(request)
    assert decision.plan.candidate.strategy == "scheme"
    assert decision.plan.seconds < decision_for(request, strategy="strided").plan.seconds / 1.10
    assert str(decision.plan.candidate) == "scheme strassen/strassen/strassen"
    strategy = strategies("cuda")["structured", "scheme"]
    for structure, dtype in ((LARGE, "float16"), (KroneckerSparse.of(Pattern(4, 512, 512, 4)), "float32")):
        small = factored_request(structure, 25088, dtype, "bsl", device="cuda")
        assert strategy.propose(small, machine_for(small)) == []


def test_candidates_are_restored_by_name_and_nothing_else():
    request = factored_request(LARGE, 25088, order="bsl", device="cuda")
    strategy = strategies("cuda")["structured", "scheme"]
    for candidate in strategy.candidates(request):
        _, _, key, parameters = candidate.key
        assert strategy.restore(key, parameters, request) == candidate
    for key, parameters in (("", ()), ("strassen/laderman", ()), (block_schemes.NAMES[0], (("slab", 1),))):
        assert strategy.restore(key, parameters, request) is None


def test_sums_of_complex_blocks_are_refused():
    request = factored_request(LARGE, 64, "complex64", "bsl", device="cuda")
    with pytest.raises(PlanError, match="not computed in complex64"):
        decision_for(request, "strassen")
