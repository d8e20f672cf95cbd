"""Models of transformers, built from their configurations alone, through `accelerate_`.

Skipped unless transformers is installed (pip install transformers): no extra of this package has it.
"""

from __future__ import annotations

import pytest

import lcma

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WIDTH, TOKENS = 256, 24


def llama():
    config = transformers.LlamaConfig(
        hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=2, num_attention_heads=4, vocab_size=64
    )
    return transformers.LlamaForCausalLM(config), 2 * 7 + 1


def gpt2():
    config = transformers.GPT2Config(n_embd=WIDTH, n_layer=2, n_head=4, vocab_size=64, n_positions=TOKENS)
    return transformers.GPT2LMHeadModel(config), 2 * 4


@pytest.mark.slow
@pytest.mark.parametrize("build", [llama, gpt2], ids=["Llama", "GPT-2"])
def test_a_model_of_random_weights_runs_unchanged(build, monkeypatch):
    from lcma.kernels.torch import acceleration
    from lcma.kernels.torch.layers import FastModule

    torch.manual_seed(0)
    model, layers = build()
    model = model.double().eval()
    tokens = torch.randint(0, 64, (2, TOKENS))
    with torch.no_grad():
        wanted = model(tokens).logits
    # Every layer counts as one that gains: sizes for which a scheme does would take minutes here.
    monkeypatch.setattr(acceleration._Planner, "_decided", lambda self, requests: ("2x2x2:7", 1.2, None))
    reports = lcma.accelerate_(model, lcma.AccelerateConfig(rows=(2 * TOKENS,)))
    taken = [report.name for report in reports if report.refused is None]
    assert len(taken) == layers
    assert [name for name, module in model.named_modules() if isinstance(module, FastModule)] == taken
    assert all("tied" in report.refused for report in reports if report.name not in taken)
    for module in model.modules():
        if isinstance(module, FastModule):
            module.recipe = "strassen"
    with torch.no_grad():
        found = model(tokens).logits
    assert not torch.equal(found, wanted)  # the scheme was run
    torch.testing.assert_close(found, wanted)
    assert lcma.restore_(model) == layers
    with torch.no_grad():
        torch.testing.assert_close(model(tokens).logits, wanted)
