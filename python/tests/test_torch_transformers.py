"""multihead.torch.transformers and the functions for heads, on small models of random weights, beside transformers' "eager"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import python

torch = pytest.importorskip("torch", minversion="2.9")
transformers = pytest.importorskip("transformers", minversion="5.0")  # before, BERT and T5 compute their attention themselves

import multihead.torch as plugin  # noqa: E402
import multihead.torch.transformers  # noqa: E402
from multihead import _native  # noqa: E402

Tensor = Any
HUB_KERNEL = Path(__file__).resolve().parents[1] / "hub_kernel"
SMALL = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 6}


def made(name: str) -> Any:
    """A model with random weights, without dropout."""
    torch.manual_seed(7)
    t = transformers
    models: dict[str, Any] = {
        "bert": lambda: t.BertForMaskedLM(t.BertConfig(**SMALL)),
        "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=97, n_embd=48, n_layer=3, n_head=6)),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**SMALL, num_key_value_heads=2)),
        "gemma2": lambda: t.Gemma2ForCausalLM(
            t.Gemma2Config(**SMALL, num_key_value_heads=2, head_dim=8, sliding_window=5, attn_logit_softcapping=0.5)
        ),
        "t5": lambda: t.T5ForConditionalGeneration(
            t.T5Config(vocab_size=97, d_model=48, d_kv=8, d_ff=64, num_layers=2, num_heads=6, decoder_start_token_id=0)
        ),
        "bart": lambda: t.BartForConditionalGeneration(
            t.BartConfig(
                vocab_size=97, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=6, decoder_attention_heads=6,
                encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
            )
        ),
    }  # fmt: skip
    return models[name]().eval()


def batch() -> dict[str, Tensor]:
    """Three texts, padded at the end."""
    torch.manual_seed(8)
    tokens = torch.randint(5, 97, (3, 13))
    mask = torch.arange(13)[None, :] < torch.tensor([13, 7, 4])[:, None]
    return {"input_ids": tokens, "attention_mask": mask.long(), "labels": torch.where(mask, tokens, -100)}


def run(model: Any, implementation: str, **inputs: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Logits, loss and gradients."""
    model.set_attn_implementation(implementation)
    model.zero_grad()
    result = model(**inputs)
    result.loss.backward()
    return result.logits.detach(), result.loss.detach(), [one.grad.clone() for one in model.parameters() if one.grad is not None]


ALL = ["bert", "gpt2", "llama", "gemma2", "t5", "bart"]


@pytest.mark.parametrize("name", ALL)
def test_equals_eager(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs, calls = made(name), batch(), []
    kernel = _native.torch_attention
    monkeypatch.setattr(_native, "torch_attention", lambda *given, **named: (calls.append(1), kernel(*given, **named)))
    expected = run(model, "eager", **inputs)
    assert not calls
    found = run(model, "multihead", **inputs)
    assert len(calls) == len(plugin.layers(model))
    seen = inputs["labels"] != -100
    assert (found[0] - expected[0])[seen].abs().max() < 1e-5
    assert abs(found[1] - expected[1]) < 1e-5
    for one, other in zip(found[2], expected[2], strict=True):
        assert (one - other).abs().max() < 1e-5 * max(1.0, float(other.abs().max()))


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "t5"])
@pytest.mark.parametrize("cache", [None, "static"])
def test_generates_the_same(name: str, cache: str | None) -> None:
    model, inputs = made(name), batch()
    del inputs["labels"]
    if name != "t5":  # a causal model has its padding at the left
        inputs = {key: value.flip(1) for key, value in inputs.items()}
    given = {"max_new_tokens": 7, "do_sample": False, "cache_implementation": cache, "pad_token_id": 0, "eos_token_id": None}
    tokens = []
    for implementation in ("eager", "multihead"):
        model.set_attn_implementation(implementation)
        tokens.append(model.generate(**inputs, **given, disable_compile=True))
    assert torch.equal(*tokens)


def test_compiled() -> None:
    model, inputs = made("llama"), batch()
    model.set_attn_implementation("multihead")
    expected = model(**inputs).logits
    with plugin.attention():
        assert (torch.compile(model, backend="aot_eager")(**inputs).logits - expected).abs().max() < 1e-5


@pytest.mark.parametrize("name", ALL)
def test_weights_are_those_of_eager(name: str) -> None:
    model, inputs = made(name), batch()
    model.set_attn_implementation("eager")
    result = model(**inputs, output_attentions=True)
    eager = [*result.attentions] if "attentions" in result else []
    if not eager:  # encoder, then each decoder layer's own and its cross-attention
        eager = [*result.encoder_attentions]
        for own, cross in zip(result.decoder_attentions, result.cross_attentions, strict=True):
            eager += [own, cross]
    assert len(eager) == len(plugin.layers(model))
    chosen = [(0, 0), (1, 5), (plugin.layers(model)[-1], 2)]
    with plugin.weights(model, chosen) as seen:
        found = model(**inputs)
    assert model.config._attn_implementation == "eager"
    assert (found.logits - result.logits)[inputs["labels"] != -100].abs().max() < 1e-5
    assert list(seen) == chosen
    for (layer, head), weights in seen.items():
        expected = eager[layer if isinstance(layer, int) else -1][:, head]
        rows = inputs["labels"] != -100  # the states of padding may differ, which nothing reads
        assert weights.shape == expected.shape and (weights - expected)[rows].abs().max() < 1e-6


def test_mute_is_a_zero_in_w_o() -> None:
    model, inputs = made("bert"), batch()
    before = model(**inputs).loss
    with plugin.mute(model, [(1, 4), (2, 0)]):
        muted = model(**inputs).loss
    assert torch.equal(model(**inputs).loss, before)
    with torch.no_grad():
        for layer, head in ((1, 4), (2, 0)):
            model.bert.encoder.layer[layer].attention.output.dense.weight[:, 8 * head : 8 * head + 8] = 0
    assert abs(model(**inputs).loss - muted) < 1e-6
    assert abs(muted - before) > 1e-6


@pytest.mark.parametrize("name", ["bert", "llama", "bart"])
def test_importance_is_the_slope_of_the_gates(name: str) -> None:
    model, inputs = made(name), batch()
    texts = [{key: value[at : at + 1] for key, value in inputs.items()} for at in range(3)]
    found = plugin.importance(model, texts)
    assert list(found) == plugin.layers(model) and all(one.shape == (6,) for one in found.values())
    assert all(one.grad is None for one in model.parameters())
    layer = plugin.layers(model)[1]
    slopes = []
    for text in texts:
        losses = []
        for step in (1e-1, -1e-1):
            with plugin.gates(model) as gates:
                model(**text)
                with torch.no_grad():
                    gates[layer][3] += step
                losses.append(float(model(**text).loss))
        slopes.append(abs(losses[0] - losses[1]) / 2e-1)
    assert float(found[layer][3]) == pytest.approx(float(sum(slopes) / 3), rel=0.02, abs=1e-5)


def test_patching_all_heads_of_a_layer() -> None:
    """With all outputs of all heads of the other text, only the residual stream differs; with one's own nothing does."""
    model, inputs = made("llama"), batch()
    other = {**inputs, "input_ids": inputs["input_ids"].flip(0)}
    heads = [(layer, head) for layer in range(3) for head in range(6)]
    with plugin.outputs(model, heads) as own:
        expected = model(**inputs).logits
    with plugin.patch(model, own):
        assert torch.equal(model(**inputs).logits, expected)
    with plugin.outputs(model, heads) as kept, torch.no_grad():
        model(**other)
    with plugin.patch(model, kept), plugin.outputs(model, [(2, 1)]) as seen:
        assert not torch.equal(model(**inputs).logits, expected)
    assert torch.equal(seen[2, 1], kept[2, 1])
    with plugin.patch(model, {(0, 0): torch.ones(5)}), pytest.raises(ValueError, match="do not fit its output"):
        model(**inputs)


def test_bad_inputs() -> None:
    model, inputs = made("bert"), batch()
    with pytest.raises(IndexError, match="3 layers of attention, 0 to 2; there is no layer 3"), plugin.mute(model, [(3, 0)]):
        pass
    with pytest.raises(KeyError, match="encoder"), plugin.weights(model, [("encoder", 0)]):
        pass
    with pytest.raises(IndexError, match="6 heads, 0 to 5; there is no head 6"), plugin.weights(model, [(0, 6)]):
        model(**inputs)
    assert model.config._attn_implementation == "sdpa"
    assert not any(hasattr(one, "_multihead_actions") for one in model.modules())
    with pytest.raises(ValueError, match="no layers of attention"), plugin.mute(torch.nn.Linear(2, 2), [(0, 0)]):
        pass
    with pytest.raises(ValueError, match="no loss"):
        plugin.importance(model, [{"input_ids": inputs["input_ids"]}])
    with pytest.raises(ValueError, match="no batches"):
        plugin.importance(model, [])
    with pytest.raises(ValueError, match="sinks"):
        multihead.torch.transformers.attention(model, *torch.zeros(3, 1, 1, 2, 8), None, s_aux=torch.zeros(1))
    double = made("gemma2").double()
    double.set_attn_implementation("multihead")
    with pytest.raises(ValueError, match="cap of scores"):
        double(**inputs)


def test_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The Python of docs/torch.md, and what it says that it prints."""
    from test_docs import blocks

    pytest.importorskip("torch.nn.attention.varlen")
    there: dict[str, Any] = {}
    found = blocks("docs/torch.md")
    assert len(found) == 4
    for _, code in found:
        exec(compile(code, "docs/torch.md", "exec"), there)
    printed = capsys.readouterr().out
    assert "bert.encoder.layer.0.attention.self\n" in printed and "torch.Size([2, 9, 9])" in printed


def test_as_a_kernel_of_the_hub() -> None:
    """python/hub_kernel by LOCAL_KERNELS; models with padding run by it where transformers takes the version of kernels."""
    pytest.importorskip("kernels")
    done = python(f"""
        import os, sys
        os.environ["LOCAL_KERNELS"] = {"multihead/attention=" + str(HUB_KERNEL)!r}
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import kernels, torch
        from transformers.utils import is_kernels_available
        kernel = kernels.get_kernel("multihead/attention", version=1, trust_remote_code=True)
        q = torch.randn(2, 7, 3, 16)
        expected = torch.nn.functional.scaled_dot_product_attention(*[q.transpose(1, 2)] * 3, is_causal=True).transpose(1, 2)
        assert (kernel.flash_attn_func(q, q, q, causal=True) - expected).abs().max() < 1e-5
        from test_torch_transformers import batch, made
        for name in ("llama", "bert") if is_kernels_available() else ():
            model, inputs = made(name), batch()
            expected = model(**inputs).loss
            model.set_attn_implementation("multihead/attention", allow_all_kernels=True)
            loss = model(**inputs).loss
            assert model.config._attn_implementation == "multihead/attention"
            assert abs(loss - expected) < 1e-5, (name, loss, expected)
            loss.backward()
    """)
    assert done.returncode == 0, done.stderr
