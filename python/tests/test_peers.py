"""Beside torch and transformers, where they are there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from conftest import golden, python, real_model

import multihead as mh

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXTS = ["The chef cooked the meal.", "It rained in the morning, and again in the evening.", "Why?"]


@pytest.mark.parametrize("order", ["torch, multihead", "multihead, torch"])
def test_torch_beside_it(order: str) -> None:
    done = python(f"""
        import {order}
        import torch, multihead as mh
        q, k, v = (torch.randn(2, 7, 4, 8) for _ in range(3))
        turned = [x.transpose(1, 2) for x in (q, k, v)]
        expected = torch.nn.functional.scaled_dot_product_attention(*turned, is_causal=True).transpose(1, 2)
        assert (torch.from_numpy(mh.attention(q, k, v, mask="causal")) - expected).abs().max() < 1e-5
        half = [x.bfloat16() for x in (q, k, v)]
        expected = torch.nn.functional.scaled_dot_product_attention(*[x.float().transpose(1, 2) for x in half]).transpose(1, 2)
        assert (torch.from_numpy(mh.attention(*half)) - expected).abs().max() < 1e-5
        print(mh.demo().translate("two dogs run ."))
    """)
    assert done.returncode == 0, done.stderr


def test_check() -> None:
    model = mh.load(golden("gpt2/tied"))
    threads = torch.get_num_threads()
    table = mh.check(model, new_tokens=3)
    assert table.report["right"]
    assert table.report["versions"]["transformers"] == transformers.__version__
    assert table[0]["part"] == "decoder.embeddings"
    assert torch.get_num_threads() == threads
    assert not mh.check(model, tolerance=1e-9).report["right"]
    with pytest.raises(mh.Error, match="transformers opens folders"):
        mh.check(mh.demo())
    with pytest.raises(mh.UsageError, match="were removed"):
        mh.check(model.prune(["decoder.0.self_attention.1"]))


def test_check_of_a_gguf_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gguf")
    model = mh.load(golden("gguf/untied_llama3.gguf"))
    assert mh.check(model, text=["The year 2024"], new_tokens=3).report["right"]
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(mh.MissingPackageError, match="has no gguf; install it with: .* -m pip install gguf"):
        mh.check(model, text=["The year 2024"])


def test_memory_is_shared() -> None:
    q = torch.randn(1, 5, 2, 8)
    y = mh.attention(q, q, q)
    shared = torch.from_dlpack(y)
    shared[0, 0, 0, 0] = 7
    assert y[0, 0, 0, 0] == 7


def test_numbers_of_torch_are_numbers(demo: mh.Model) -> None:
    x = torch.randn(7, 2, 3)
    expected = mh.attention(x, x, x, offsets=[0, 3, 7], scale=0.5)
    np.testing.assert_array_equal(mh.attention(x, x, x, offsets=torch.tensor([0, 3, 7]), scale=torch.tensor(0.5)), expected)
    with pytest.raises(mh.ArgumentTypeError, match="`offsets`: expected a whole number, got float") as raised:
        mh.attention(x, x, x, offsets=torch.tensor([0.0, 3.0, 7.0]))
    assert "\n" not in str(raised.value)
    assert demo.decode(torch.tensor(demo.tokenize("two dogs run .").ids)) == "two dogs run ."
    text = demo.translate("two dogs run .", beam_size=1)
    assert demo.translate("two dogs run .", beam_size=torch.tensor(1)) == text  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def encoder() -> tuple[Any, Any]:
    folder = real_model("minilm")
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64)
    return transformers.AutoTokenizer.from_pretrained(folder), model.eval()


def test_weights_are_those_of_transformers(minilm: mh.Model, encoder: tuple[Any, Any]) -> None:
    tokenizer, model = encoder
    for text, seen in zip(TEXTS, minilm.observe(TEXTS), strict=True):
        with torch.inference_mode():
            expected = model(**tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
        assert seen.tokens == tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
        for layer, weights in enumerate(expected):
            np.testing.assert_allclose(seen.weights(f"encoder.{layer}.self_attention"), weights[0].numpy(), atol=1e-5)


def test_vectors_are_those_of_transformers(minilm: mh.Model, encoder: tuple[Any, Any]) -> None:
    tokenizer, model = encoder
    for text, found in zip(TEXTS, minilm.embed(TEXTS), strict=True):
        with torch.inference_mode():
            mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
        np.testing.assert_allclose(found, (mean / mean.norm()).numpy(), atol=1e-6)


def test_slopes_of_gates_are_those_of_torch(minilm: mh.Model, encoder: tuple[Any, Any]) -> None:
    """d cos(text, other) / d gate, of all heads: torch's by hooks in front of W^O."""
    tokenizer, model = encoder
    text, other = TEXTS[:2]
    found = minilm.gradient(text, of="similarity", second=other, at="*.gates")
    gates = [torch.ones(12, dtype=torch.float64, requires_grad=True) for _ in range(6)]
    hooks = [
        layer.attention.output.dense.register_forward_pre_hook(
            lambda _, inputs, gate=gate: (inputs[0] * gate.repeat_interleave(32),)
        )
        for layer, gate in zip(model.encoder.layer, gates, strict=True)
    ]
    vector = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
    for hook in hooks:
        hook.remove()
    with torch.no_grad():
        fixed = model(**tokenizer(other, return_tensors="pt")).last_hidden_state[0].mean(0)
    torch.nn.functional.cosine_similarity(vector, fixed, dim=0).backward()
    for layer, gate in enumerate(gates):
        np.testing.assert_allclose(found[f"encoder.{layer}.self_attention.gates"][0], gate.grad.numpy(), atol=1e-5)


def test_slopes_of_sites_are_those_of_torch() -> None:
    """Of a direction in the stream and of a difference of two logits, at the last token of two texts, by the stream below and by
    what heads give: torch's by autograd, through hooks.
    """
    folder = golden("generate/gpt2")
    model, peer = mh.load(folder), transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
    peer = peer.double().eval()
    texts, dog, cat = ["the small dog sees a cat .", "two dogs run ."], 5, 3
    along = np.random.default_rng(1).standard_normal(model.d_model).astype(np.float32)
    sites = ["decoder.1.input", "decoder.1.self_attention.heads"]
    for of, numbers in (("decoder.1.output", along), ("decoder.logits", {dog: 1, cat: -1})):
        found = model.gradient(texts, of=of, along=numbers, position=-1, at=sites)
        for text, slopes in zip(texts, found, strict=True):
            kept: list[Any] = []

            def keep(_: Any, inputs: Any, kept: list[Any] = kept) -> None:
                inputs[0].retain_grad()
                kept.append(inputs[0])

            layer = peer.transformer.h[1]
            hooks = [module.register_forward_pre_hook(keep) for module in (layer, layer.attn.c_proj, peer.transformer.h[2])]
            logits = peer(torch.tensor([model.tokenize(text).ids])).logits[0, -1]
            value = logits[dog] - logits[cat] if of == "decoder.logits" else kept[2][0, -1] @ torch.tensor(along).double()
            value.backward()
            for hook in hooks:
                hook.remove()
            assert slopes.value == pytest.approx(value.item(), abs=1e-4)
            for site, there in zip(sites, kept, strict=False):
                np.testing.assert_allclose(slopes[site], there.grad[0].numpy(), atol=1e-4, err_msg=f"{of} by {site}")
