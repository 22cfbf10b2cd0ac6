"""docs/from-transformerlens.md runs, and gives what transformers gives with hooks in the same places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from conftest import golden
from test_docs import blocks

PAGE = "docs/from-transformerlens.md"
FOLDER = golden("generate/gpt2")
LAYER, HEAD = 1, 2


@pytest.fixture(scope="module")
def there() -> dict[str, Any]:
    """The names that the page makes."""
    made: dict[str, Any] = {"gpt2_folder": FOLDER}
    for _, code in blocks(PAGE):
        exec(compile(code, PAGE, "exec"), made)
    return made


def test_page_runs(there: dict[str, Any]) -> None:
    assert len(blocks(PAGE)) == 10
    assert there["logits"].shape == (len(there["tokens"]), len(there["found"].logits))
    for name in ("ablated", "mean_ablated", "steered"):
        assert np.abs(there[name].logits - there["found"].logits).max() > 1e-3, name
    assert there["difference"] == there["found"].logits[there["dog"]] - there["found"].logits[there["cat"]]
    assert there["difference_slopes"][0].value == pytest.approx(there["difference"], abs=1e-5)
    assert len(there["table"]) == len(there["model"].heads)


@pytest.fixture(scope="module")
def peer() -> Any:
    """GPT-2 of transformers, in float64."""
    torch = pytest.importorskip("torch", reason="torch is not there")
    transformers = pytest.importorskip("transformers", reason="transformers is not there")
    return transformers.GPT2LMHeadModel.from_pretrained(FOLDER, attn_implementation="eager", dtype=torch.float64).eval()


@contextmanager
def changed(module: Any, change: Callable[[Any], Any]) -> Iterator[None]:
    """What the module reads becomes change(of it)."""
    hook = module.register_forward_pre_hook(lambda _, inputs: (change(inputs[0]), *inputs[1:]))
    try:
        yield
    finally:
        hook.remove()


def last_logits(peer: Any, ids: list[int]) -> Any:
    import torch

    with torch.no_grad():
        return peer(torch.tensor([ids])).logits[0, -1].numpy()


def test_logits_and_patterns(there: dict[str, Any], peer: Any) -> None:
    import torch

    with torch.no_grad():
        found = peer(torch.tensor([there["tokens"]]), output_attentions=True)
    np.testing.assert_allclose(there["logits"], found.logits[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(there["found"].logits, found.logits[0, -1].numpy(), atol=1e-5)
    of_targets = found.logits[0].log_softmax(-1)[torch.arange(len(there["tokens"]) - 1), there["tokens"][1:]]
    np.testing.assert_allclose(there["log_probabilities"], of_targets.numpy(), atol=1e-5)
    pattern = there["model"].observe(there["text"]).pattern()
    np.testing.assert_allclose(pattern, torch.stack(found.attentions)[:, 0].numpy(), atol=1e-5)


def test_heads_are_ablated_and_patched_as_by_hooks(there: dict[str, Any], peer: Any) -> None:
    width, projection = there["width"], peer.transformer.h[LAYER].attn.c_proj
    own = slice(HEAD * width, (HEAD + 1) * width)
    kept: list[Any] = []

    def with_head(numbers: Any) -> Callable[[Any], Any]:
        def change(z: Any) -> Any:
            z = z.clone()
            z[..., own] = numbers(z[..., own])
            return z

        return change

    def keep(z: Any) -> Any:
        kept.append(z)
        return z

    ids = [there["model"].tokenize(there[text]).ids for text in ("clean", "corrupt")]
    with changed(projection, with_head(lambda z: 0 * z)):
        np.testing.assert_allclose(there["ablated"].logits, last_logits(peer, there["tokens"]), atol=1e-5)
        np.testing.assert_array_equal(there["hooked"].logits, there["ablated"].logits)
    with changed(projection, with_head(lambda z: z.mean(1, keepdim=True))):
        np.testing.assert_allclose(there["mean_ablated"].logits, last_logits(peer, there["tokens"]), atol=1e-5)
    with changed(projection, keep):
        last_logits(peer, ids[0])
    with changed(projection, with_head(lambda _: kept[0][..., own])):
        np.testing.assert_allclose(there["patched"].logits, last_logits(peer, ids[1]), atol=1e-5)


def test_matrices_are_those_of_the_file(there: dict[str, Any], peer: Any) -> None:
    attention, width, d = peer.transformer.h[LAYER].attn, there["width"], there["model"].d_model
    q, k, v = (attention.c_attn.weight.detach().numpy()[:, n * d : (n + 1) * d] for n in range(3))
    own = slice(HEAD * width, (HEAD + 1) * width)
    np.testing.assert_allclose(there["ov"], v[:, own] @ attention.c_proj.weight.detach().numpy()[own], atol=1e-6)
    np.testing.assert_allclose(there["qk"], q[:, own] @ k[:, own].T, atol=1e-6)
    np.testing.assert_array_equal(there["model"].W_E, peer.transformer.wte.weight.detach().numpy())
    np.testing.assert_array_equal(there["model"].W_U, peer.lm_head.weight.detach().numpy().T)
    np.testing.assert_array_equal(there["head"].b_V, attention.c_attn.bias.detach().numpy()[2 * d :][own])
    np.testing.assert_array_equal(there["head"].b_O, attention.c_proj.bias.detach().numpy())


def test_gradients_and_steering(there: dict[str, Any], peer: Any) -> None:
    import torch

    kept: list[Any] = []

    def keep(z: Any) -> Any:
        z.retain_grad()
        kept.append(z)
        return z

    tokens = torch.tensor([there["tokens"]])
    with changed(peer.transformer.h[LAYER].attn.c_proj, keep):
        peer(tokens).logits[0].log_softmax(-1)[torch.arange(tokens.shape[1] - 1), tokens[0, 1:]].sum().backward()
    peer.zero_grad()
    slopes = kept[0].grad[0].numpy()
    np.testing.assert_allclose(there["slopes"][f"decoder.{LAYER}.self_attention.heads"], slopes, atol=1e-4)
    gates = (slopes * kept[0].detach()[0].numpy()).reshape(tokens.shape[1], -1, there["width"]).sum((0, 2))
    np.testing.assert_allclose(there["slopes"][f"decoder.{LAYER}.self_attention.gates"][0], gates, atol=1e-4)
    with changed(peer.transformer.h[LAYER], lambda x: x + 4 * torch.tensor(there["direction"], dtype=torch.float64)):
        np.testing.assert_allclose(there["steered"].logits, last_logits(peer, there["tokens"]), atol=1e-5)
