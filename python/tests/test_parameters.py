"""Parameters and the matrices of heads: they are the numbers with which the model computes."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh

# Of float32, of one group of keys in float16, of grouped heads, and of quantised blocks.
MODELS = ["generate/gpt2", "llama/llama3_one_key_f16", "llama/tied_grouped", "gguf/tied_quantised.gguf"]


def model_of(name: str) -> mh.Model:
    return mh.demo() if name == "demo" else mh.load(golden(name))


@pytest.mark.parametrize("name", ["demo", *MODELS, "t5/text"])
def test_counts_all_parameters(name: str) -> None:
    model = model_of(name)
    parameters = model.parameters
    for one, shape in parameters.shapes.items():
        array = parameters[one]
        assert array.shape == shape and array.dtype == np.float32 and np.isfinite(array).all()
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    counted = sum(rows * columns for one, (rows, columns) in parameters.shapes.items() if one != "logits_bias")
    assert counted == model.parameter_count
    assert list(parameters) == list(parameters.shapes) and len(parameters) == len(parameters.shapes)


def test_float32_is_shown_and_others_are_copied() -> None:
    plain, half = model_of("generate/gpt2"), model_of("llama/llama3_one_key_f16")
    name = "decoder.0.self_attention.w_q"
    assert np.shares_memory(plain.parameters[name], plain.parameters[name])
    assert not np.shares_memory(half.parameters[name], half.parameters[name])


@pytest.mark.parametrize("name", MODELS)
def test_arrays_stay_when_the_model_goes(name: str) -> None:
    model = model_of(name)
    arrays = dict(model.parameters)
    kept = {one: array.copy() for one, array in arrays.items()}
    model.score([1, 2, 3]), model.observe([1, 2, 3])
    del model
    gc.collect()
    for one, array in arrays.items():
        np.testing.assert_array_equal(array, kept[one])


@pytest.mark.parametrize("name", ["demo", *MODELS])
def test_matrices_of_heads_make_their_queries_keys_values_and_outputs(name: str) -> None:
    """From the input of an attention to what is seen of its heads; rotary positions turn queries and keys behind the site."""
    model = model_of(name)
    attention = "encoder.1.self_attention" if name == "demo" else "decoder.1.self_attention"
    text = SENTENCES[0] if name == "demo" else [5, 3, 11, 7, 2]
    seen = model.observe(text, sites=[f"{attention}.*"])
    heads = [head for head in model.heads if head.attention == attention]
    whole = model.head_weights(attention)
    for head in heads:
        own = model.head_weights(head)
        values = seen[f"{attention}.values"]
        at = head.number * len(whole.W_V) // len(heads)
        width = head.d_value
        np.testing.assert_allclose(
            values[:, at * width : (at + 1) * width], seen[f"{attention}.value_input.{at}"] @ own.W_V + own.b_V, atol=1e-4
        )
        mixed = seen.weights(head) @ values[:, at * width : (at + 1) * width]
        np.testing.assert_allclose(seen[f"{attention}.contributions.{head.number}"], mixed @ own.W_O, atol=1e-4)
        assert own.W_Q.shape == own.W_K.shape == (model.d_model, head.d_key)
        np.testing.assert_array_equal(own.W_Q, whole.W_Q[head.number])
        np.testing.assert_array_equal(own.W_K, whole.W_K[head.key_head])
    assert whole.b_O.shape == (model.d_model,)


def test_scores_are_products_of_the_matrices(demo: mh.Model) -> None:
    attention = "decoder.0.cross_attention"
    seen = demo.observe(SENTENCES[0], sites=[f"{attention}.*"])
    for head in (0, 3):
        own = demo.head_weights(f"{attention}.{head}")
        queries = seen[f"{attention}.query_input.{head}"] @ own.W_Q + own.b_Q
        keys = seen[f"{attention}.key_input.{head}"] @ own.W_K + own.b_K
        scores = queries @ keys.T / np.sqrt(own.W_Q.shape[1])
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        np.testing.assert_allclose(seen.weights(f"{attention}.{head}"), powers / powers.sum(-1, keepdims=True), atol=1e-5)


def test_embeddings_and_logits() -> None:
    model = model_of("generate/gpt2")
    seen = model.observe([5, 3, 11], sites=["decoder.logits", "decoder.states"])
    np.testing.assert_allclose(seen["decoder.logits"], seen["decoder.states"] @ model.W_U, atol=1e-4)
    assert model.W_E.shape == model.W_U.shape[::-1] and model.W_E.shape[1] == model.d_model
    with pytest.raises(mh.UsageError, match="predicts no words, and has no W_U"):
        _ = mh.load(golden("sentences/plain")).W_U


def test_of_a_pruned_model(demo: mh.Model, tmp_path: Path) -> None:
    pruned = demo.prune(["encoder.0.self_attention.1", "encoder.0.self_attention.2"])
    name = "encoder.0.self_attention.w_q"
    assert demo.parameters.shapes[name] == (96, 96) and pruned.parameters.shapes[name] == (96, 48)
    np.testing.assert_array_equal(
        pruned.head_weights("encoder.0.self_attention.1").W_O, demo.head_weights("encoder.0.self_attention.3").W_O
    )
    pruned.save(tmp_path / "pruned", own_format=True)
    again = mh.load(tmp_path / "pruned").parameters
    for one, array in pruned.parameters.items():
        np.testing.assert_array_equal(again[one], array)


def test_refuses_in_one_line(demo: mh.Model) -> None:
    with pytest.raises(mh.UnknownNameError, match="no parameter 'encoder.0.self_attention.w_p'; did you mean '.*w_.'"):
        demo.parameters["encoder.0.self_attention.w_p"]
    for name in ("encoder.0.self_attention.4", "encoder.9.self_attention", "nonsense"):
        with pytest.raises(mh.UsageError, match="encoder.0.self_attention|this model has|heads") as raised:
            demo.head_weights(name)
        assert "\n" not in str(raised.value)
