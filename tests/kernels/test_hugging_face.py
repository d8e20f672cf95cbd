"""Hugging Face's own models, built from their configurations alone, through `accelerate_` and `compress_`."""

import copy
import os
import pickle

import pytest
import torch

import lcma

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="module", autouse=True)
def _transformers():
    """Import it in the process that runs these tests, not in all that collect them: it takes two seconds."""
    global transformers
    transformers = pytest.importorskip("transformers")


WIDTH, TOKENS, WORDS = 64, 24, 48
SIZES = {"hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 1, "num_attention_heads": 4}
SIZES["vocab_size"] = WORDS


def llama():
    """A model whose head has a weight of its own: 7 linear layers a block, and the head."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, pad_token_id=0)), 7 + 1, {}


def gpt2():
    """A model of Conv1D layers, whose head is the embedding."""
    config = transformers.GPT2Config(
        n_embd=WIDTH, n_layer=1, n_head=4, vocab_size=WORDS, n_positions=TOKENS, bos_token_id=0, eos_token_id=0
    )
    tied = "its weight is tied: it is transformer.wte.weight too"
    return transformers.GPT2LMHeadModel(config), 4, {"lm_head": tied}


def bert():
    """An encoder, whose head is the embedding."""
    config = transformers.BertConfig(**SIZES, max_position_embeddings=TOKENS)
    tied = "its weight is tied: it is bert.embeddings.word_embeddings.weight too"
    return transformers.BertForMaskedLM(config), 6 + 1, {"cls.predictions.decoder": tied}


every_model = pytest.mark.parametrize("build", [llama, gpt2, bert])


def logits(model, tokens):
    with torch.no_grad():
        return model(tokens).logits


def converted(model):
    return {name: one for name, one in model.named_modules() if type(one).__module__.startswith("lcma.")}


@every_model
@pytest.mark.usefixtures("every_layer_gains")  # sizes for which a scheme does gain would take minutes here
def test_accelerated_models_run_unchanged(build):
    model, layers, left = build()
    model = model.double().eval()
    tokens = torch.randint(0, WORDS, (2, TOKENS))
    wanted, names = logits(model, tokens), list(model.state_dict())
    reports = lcma.accelerate_(model, lcma.AccelerateConfig(rows=(2 * TOKENS,)))
    assert {one.name: one.refused for one in reports if one.refused} == left
    assert [one.name for one in reports if not one.refused] == list(converted(model))
    assert len(converted(model)) == layers
    for module in converted(model).values():
        module.recipe = "strassen"
    found = logits(model, tokens)
    assert not torch.equal(found, wanted)  # the scheme was run
    torch.testing.assert_close(found, wanted)
    assert list(model.state_dict()) == names
    assert lcma.restore_(model) == layers
    assert torch.equal(logits(model, tokens), wanted)


@every_model
def test_compressed_models_are_those_of_the_structured_weights(build):
    model, layers, left = build()
    model = model.double().eval()
    tokens, dense = torch.randint(0, WORDS, (2, TOKENS)), copy.deepcopy(model)
    reports = lcma.compress_(model, lcma.CompressConfig("low-rank", 0.5))
    assert {one.name: one.skipped for one in reports if one.skipped} == left
    assert len(converted(model)) == len(reports) - len(left) == layers
    for name, layer in converted(model).items():
        weight, plain = layer(torch.eye(layer.in_features).double()), dense.get_submodule(name)
        weight = weight if layer.bias is None else weight - layer.bias
        plain.weight.data = weight.detach() if type(plain).__name__ == "Conv1D" else weight.detach().T
    wanted = logits(dense, tokens)
    stored = model.state_dict()
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(logits(other, tokens), wanted)
        assert all(torch.equal(value, stored[name]) for name, value in other.state_dict().items())
    if model.can_generate():
        options = {"attention_mask": torch.ones_like(tokens[:, :4]), "max_new_tokens": 5, "do_sample": False}
        texts = [one.generate(tokens[:, :4], pad_token_id=0, **options) for one in (model, dense)]
        assert torch.equal(*texts)
    model.train()
    model(tokens, labels=tokens).loss.backward()
    assert all(one.grad is not None for layer in converted(model).values() for one in layer.parameters())


def test_a_layer_that_is_asked_for_its_dtype_stays_dense():
    config = transformers.T5Config(
        d_model=WIDTH, d_ff=WIDTH, d_kv=16, num_layers=1, num_heads=4, vocab_size=WORDS, decoder_start_token_id=0
    )
    model = transformers.T5EncoderModel(config).eval()
    reports = lcma.compress_(model, lcma.CompressConfig("low-rank", 0.5))
    name = "encoder.block.0.layer.1.DenseReluDense.wo"
    assert {one.name: one.skipped for one in reports if one.skipped} == {
        name: "T5DenseActDense.forward reads its weight"
    }
    assert model(torch.ones(1, 4, dtype=torch.long)).last_hidden_state.isfinite().all()
