"""torch.compile traces every layer and product into one graph, with and without gradients."""

import pytest
import torch

import lcma


def operands(*shapes):
    return [torch.randn(shape) for shape in shapes]


PATTERN = (2, 4, 4, 8)

LAYERS = {
    "FastLinear": lambda: lcma.FastLinear(64, 48),
    "FastLinear by a scheme": lambda: lcma.FastLinear(64, 48, scheme="strassen"),
    "KSLinear": lambda: lcma.KSLinear(PATTERN),
    "MonarchLinear": lambda: lcma.MonarchLinear(64, 48, 4, 2),
    "BlastLinear": lambda: lcma.BlastLinear(64, 48, 4, 2),
    "LowRankLinear": lambda: lcma.LowRankLinear(64, 48, 8),
    "KSFeedForward": lambda: lcma.KSFeedForward(PATTERN, PATTERN),
}

MASK = torch.ones(4, 4, dtype=torch.bool).tril()
"""A mask of numpy would be a break: torch traces no attributes of arrays."""

HEADS = (2, 4, 64, 16)

PRODUCTS = {
    "matmul": (lambda a, b: lcma.matmul(a, b), [(8, 64), (64, 48)]),
    "matmul by a scheme": (lambda a, b: lcma.matmul(a, b, "strassen"), [(8, 64), (64, 48)]),
    "causal_qk": (lambda q, k: lcma.causal_qk(q, k), [HEADS, HEADS]),
    "causal_pv": (lambda p, v: lcma.causal_pv(p.tril(), v), [(2, 4, 64, 64), HEADS]),
    "causal_attention": (lambda q, k, v: lcma.causal_attention(q, k, v), [HEADS, HEADS, HEADS]),
    "syrk": (lambda a: lcma.syrk(a), [(64, 32)]),
    "trmm": (lambda a, b: lcma.trmm(a, b), [(64, 64), (64, 32)]),
    "masked_matmul": (lambda a, b: lcma.masked_matmul(a, b, MASK), [(64, 64), (64, 64)]),
}


@pytest.mark.parametrize("recorded", [True, False], ids=["gradients", "no gradients"])
@pytest.mark.parametrize("name", [*LAYERS, *PRODUCTS])
def test_there_is_one_graph_and_no_break(name, recorded):
    if name in LAYERS:
        function, given = LAYERS[name](), operands((8, 64))
    else:
        function, shapes = PRODUCTS[name]
        given = [x.requires_grad_(recorded) for x in operands(*shapes)]
    torch._dynamo.reset()
    with torch.set_grad_enabled(recorded):
        found = torch._dynamo.explain(function)(*given)
    assert (found.graph_count, found.graph_break_count) == (1, 0), found.break_reasons
    targets = [str(node.target) for node in found.graphs[0].graph.nodes]
    assert any("lcma" in target for target in targets) or name == "causal_attention", targets
