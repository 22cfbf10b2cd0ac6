"""Token ids in the place of a text give what the text gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh

TEXTS = ["two dogs run", "a man sees the dog and the cat", "she sleeps"]
HEAD = "decoder.0.self_attention.1"


@pytest.fixture(scope="module")
def gpt2() -> mh.Model:
    return mh.load(golden("generate/gpt2"))


@pytest.fixture(scope="module")
def bert() -> mh.Model:
    return mh.load(golden("fill/bert"))


def ids_of(model: mh.Model, texts: list[str]) -> list[list[int]]:
    return [model.tokenize(text).ids for text in texts]


def assert_same_seen(found: mh.Observation, expected: mh.Observation) -> None:
    assert (found.tokens, found.target_tokens, found.predicted_tokens) == (
        expected.tokens,
        expected.target_tokens,
        expected.predicted_tokens,
    )
    assert list(found) == list(expected)
    for site in expected:
        np.testing.assert_array_equal(found[site], expected[site])


def test_of_a_causal_model(gpt2: mh.Model) -> None:
    ids = ids_of(gpt2, TEXTS)
    assert_same_seen(gpt2.observe(ids[1]), gpt2.observe(TEXTS[1]))
    for found, expected in zip(gpt2.observe(ids), gpt2.observe(TEXTS), strict=True):
        assert_same_seen(found, expected)
    for found, expected in zip(gpt2.observe(iter([ids[0], TEXTS[1]])), gpt2.observe(TEXTS[:2]), strict=True):
        assert_same_seen(found, expected)
    np.testing.assert_array_equal(gpt2.score(ids), gpt2.score(TEXTS))
    assert gpt2.score(ids[2]) == gpt2.score(TEXTS[2])
    np.testing.assert_array_equal(gpt2.score(ids[0], per_token=True), gpt2.score(TEXTS[0], per_token=True))
    np.testing.assert_array_equal(gpt2.next(ids[0]).logits, gpt2.next(TEXTS[0]).logits)
    np.testing.assert_array_equal(gpt2.embed(ids), gpt2.embed(TEXTS))
    settings: dict[str, Any] = {"max_new_tokens": 5, "seed": 3}
    assert gpt2.generate(ids, **settings) == gpt2.generate(TEXTS, **settings)
    assert gpt2.generate(ids[1], **settings) == gpt2.generate(TEXTS[1], **settings)
    assert "".join(gpt2.stream(ids[1], **settings)) == gpt2.generate(TEXTS[1], **settings)
    slopes, expected_slopes = gpt2.gradient(ids[1], at="*.gates"), gpt2.gradient(TEXTS[1], at="*.gates")
    assert slopes.value == expected_slopes.value and slopes.tokens == expected_slopes.tokens
    for site in expected_slopes:
        np.testing.assert_array_equal(slopes[site], expected_slopes[site])


def test_of_a_translator(demo: mh.Model) -> None:
    sources = ids_of(demo, SENTENCES)
    translations = demo.translate(SENTENCES)
    targets = [demo.tokenize(one, target=True, special_tokens=False).ids for one in translations]
    assert_same_seen(demo.observe(sources[0]), demo.observe(SENTENCES[0]))
    assert demo.observe(sources[0]).translation == demo.observe(SENTENCES[0]).translation
    given = demo.observe(SENTENCES[0], target=translations[0])
    assert_same_seen(demo.observe(sources[0], target=translations[0]), given)
    np.testing.assert_array_equal(demo.score(sources, targets), demo.score(SENTENCES, translations))
    np.testing.assert_array_equal(demo.score(SENTENCES, targets), demo.score(SENTENCES, translations))
    for prefix in ("", "der kleine"):
        np.testing.assert_array_equal(demo.next(sources[0], prefix=prefix).logits, demo.next(SENTENCES[0], prefix=prefix).logits)
    assert demo.gradient(sources[0], at="*.gates").value == demo.gradient(SENTENCES[0], at="*.gates").value


def test_of_an_encoder(bert: mh.Model) -> None:
    texts = ["the cat sees the dogs", "dogs run", f"the {bert.mask_token} sees"]
    ids = ids_of(bert, texts)
    assert_same_seen(bert.observe(ids[0]), bert.observe(texts[0]))
    np.testing.assert_array_equal(bert.embed(ids), bert.embed(texts))
    np.testing.assert_array_equal(bert.embed(ids[1]), bert.embed(texts[1]))
    np.testing.assert_array_equal(bert.next(ids[2]).logits, bert.next(texts[2]).logits)
    of_similarity = {"of": "similarity", "second": texts[1], "at": "*.gates"}
    assert bert.gradient(ids[0], **of_similarity).value == bert.gradient(texts[0], **of_similarity).value  # type: ignore[arg-type]


@pytest.mark.parametrize("folder", ["bert_pairs", "bart_pairs"])
def test_of_a_classifier(folder: str) -> None:
    model, text = mh.load(golden(f"labels/{folder}")), "the cat sees the dogs"
    of_label: dict[str, Any] = {"of": "label", "label": model.labels[0], "at": "*.gates"}
    (ids,) = ids_of(model, [text])
    assert model.gradient(ids, **of_label).value == model.gradient(text, **of_label).value
    assert_same_seen(model.observe(ids), model.observe(text))


@pytest.mark.parametrize("kind", ["int64", "int32", "uint16"])
def test_arrays_are_lists(gpt2: mh.Model, kind: str) -> None:
    ids = ids_of(gpt2, TEXTS)
    array = np.array(ids[0], kind)
    assert_same_seen(gpt2.observe(array), gpt2.observe(TEXTS[0]))
    np.testing.assert_array_equal(gpt2.next(array).logits, gpt2.next(TEXTS[0]).logits)
    np.testing.assert_array_equal(gpt2.score([np.array(one, kind) for one in ids]), gpt2.score(TEXTS))
    rows = np.array([ids[0], ids[0][::-1]], kind)
    assert gpt2.embed(rows).shape == (2, gpt2.d_model) and gpt2.embed(rows[0]).shape == (gpt2.d_model,)
    assert gpt2.score(tuple(ids[1])) == gpt2.score(TEXTS[1])


def test_edits_meet_the_text_of_a_list(gpt2: mh.Model) -> None:
    ids, site = ids_of(gpt2, TEXTS), "decoder.0.self_attention.heads"
    numbers = np.arange(gpt2.sites[site], dtype=np.float32)
    with gpt2.edit(replace={site: mh.At(numbers, sequence=1, position=2)}):
        changed = [np.array_equal(seen[site][2], numbers) for seen in gpt2.observe(ids, sites=site) if len(seen[site]) > 2]
    assert changed == [False, True, False]


def test_without_a_tokenizer() -> None:
    model = mh.load(golden("gpt2/tied"))
    ids = [5, 2, 11, 7, 3]
    seen = model.observe(ids, sites=["decoder.logits", "*.weights.*"])
    assert seen.tokens == ["5", "2", "11", "7", "3"]
    found = model.next(ids, top=2)
    np.testing.assert_allclose(found.logits, seen["decoder.logits"][-1], atol=1e-5)
    assert [one.token for one in found.best] == ["", ""]
    logs = [model.next(ids[:n]).probabilities[ids[n]] for n in range(1, len(ids))]
    np.testing.assert_allclose(model.score(ids, per_token=True), np.log(logs), atol=1e-4)
    assert np.abs(model.gradient(ids, at="*.gates")["decoder.0.self_attention.gates"]).max() > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda gpt2, _: gpt2.observe([1, -1]), "text 1: expected token ids from 0 to .*, got -1"),
        (lambda gpt2, _: list(gpt2.observe([[1], [10**6]])), "text 2: expected token ids from 0 to .*, got 1000000"),
        (lambda gpt2, _: gpt2.next([10**6]), "text 1: expected token ids from 0 to "),
        (lambda gpt2, _: gpt2.score([[5, 6], [5, -3]]), "text 2: expected token ids from 0 to .*, got -3"),
        (lambda gpt2, _: gpt2.embed([5, 10**6]), "text 1: expected token ids from 0 to "),
        (lambda gpt2, _: gpt2.gradient([-5, 4], at="*"), "text 1: expected token ids from 0 to .*, got -5"),
        (lambda gpt2, _: gpt2.generate([5, -6]), "token id.* 0 to .*-6|got -6"),
        (lambda gpt2, _: gpt2.generate([5] * 10**4), "prompt 1: expected at most "),
        (lambda gpt2, _: gpt2.observe([5] * 10**4), "text 1: expected at most .* tokens, as many as the model reads, got 10000"),
        (lambda gpt2, _: gpt2.next([]), "`text`: expected text or a list of token ids, got no ids at all"),
        (lambda gpt2, _: gpt2.gradient([], at="*"), "`texts`: of='log_probability' takes one text at a time"),
        (lambda gpt2, _: gpt2.score([[5, 6], []]), "`texts`: expected .*, got no ids at all in it"),
        (lambda gpt2, _: gpt2.embed(np.array([], np.int64)), "`texts`: expected .*, got no ids at all"),
        (lambda gpt2, _: gpt2.next(["a"]), "`text`: expected text or a list of token ids, got str in it"),
        (lambda gpt2, _: gpt2.next(np.ones(3)), "`text`: expected text or a list of token ids, got float in it"),
        (lambda gpt2, _: gpt2.next([2**40]), "token ids.*32 bits, got 1099511627776"),
        (lambda gpt2, _: gpt2.score([5, "a"]), "`texts`: expected .*, got str in it"),
        (lambda gpt2, _: gpt2.score(["a", [5]]), "`texts`: texts and token ids are both in the list"),
        (lambda gpt2, _: gpt2.generate([5], chat=True), "a chat is made of text"),
        (lambda gpt2, _: gpt2.embed([5], prompt="a"), "prompts and pairs are made of text"),
        (lambda _, bert: bert.observe([5], pair="a"), "`pair`: a pair is made of two texts"),
        (lambda _, bert: bert.next([5, 6]), "the token ids have 0 masks; put .*, the id of .*, in once"),
        (lambda gpt2, _: gpt2.next([5], prefix="a"), "`prefix`: this model translates nothing"),
    ],
)
def test_refuses_in_one_line(gpt2: mh.Model, bert: mh.Model, call: Callable[..., Any], words: str) -> None:
    with pytest.raises(mh.Error, match=words) as raised:
        call(gpt2, bert)
    assert "\n" not in str(raised.value)
