"""All attention weights in one array."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh


@pytest.mark.parametrize("kind", ["encoder", "decoder", "decoder.cross_attention", "decoder.self_attention"])
def test_pattern_is_that_of_each_layer(demo: mh.Model, kind: str) -> None:
    seen = demo.observe(SENTENCES[0])
    found = seen.pattern(kind)
    layers = [kind.replace(".", f".{layer}.") if "." in kind else f"{kind}.{layer}.self_attention" for layer in range(2)]
    assert found.shape == (2, *seen.weights(layers[0]).shape)
    for layer, name in enumerate(layers):
        np.testing.assert_array_equal(found[layer], seen.weights(name))
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)


def test_one_kind_needs_no_name() -> None:
    seen = mh.load(golden("generate/gpt2")).observe("two dogs run")
    tokens = len(seen.tokens)
    assert seen.pattern().shape == (3, 3, tokens, tokens)
    np.testing.assert_array_equal(seen.pattern(), seen.pattern("decoder"))


def test_refuses_in_one_line(demo: mh.Model) -> None:
    seen = demo.observe(SENTENCES[0])
    kinds = "expected 'encoder' or 'decoder' or 'decoder.cross_attention'"
    for kind in ("", "stack"):
        with pytest.raises(mh.UnknownNameError, match=f"`kind`: {kinds}, got '{kind}'"):
            seen.pattern(kind)
    with pytest.raises(mh.UnknownNameError, match="the weights of encoder.0.self_attention were not observed"):
        demo.observe(SENTENCES[0], sites="encoder.states").pattern("encoder")
    pruned = demo.prune("encoder.1.self_attention.2").observe(SENTENCES[0])
    assert pruned.pattern("decoder").shape[:2] == (2, 4)
    with pytest.raises(mh.UsageError, match="encoder.0.self_attention has 4 heads and encoder.1.self_attention 3, which make no"):
        pruned.pattern("encoder")
