"""The next token: its logits are those that are observed, and its best tokens those that other methods give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh


@pytest.fixture(scope="module")
def gpt2() -> mh.Model:
    return mh.load(golden("generate/gpt2"))


@pytest.fixture(scope="module")
def masked() -> mh.Model:
    return mh.load(golden("fill/bert"))


def assert_next(found: mh.Next, logits: Any, top: int) -> None:
    """That it is what these logits [V] say."""
    np.testing.assert_allclose(found.logits, logits, atol=1e-5)
    assert found.logits.dtype == found.probabilities.dtype == np.float32
    powers = np.exp(logits.astype(np.float64) - logits.max())
    np.testing.assert_allclose(found.probabilities, powers / powers.sum(), rtol=1e-4)
    assert [one.id for one in found.best] == np.argsort(-found.logits, kind="stable")[:top].tolist()
    for one in found.best:
        assert (one.probability, one.logit) == (found.probabilities[one.id], found.logits[one.id])


def test_of_a_causal_model(gpt2: mh.Model) -> None:
    text = "two dogs run"
    found = gpt2.next(text, top=7)
    assert_next(found, gpt2.observe(text, sites="decoder.logits")["decoder.logits"][-1], 7)
    one = gpt2.generate(text, max_new_tokens=1, search="greedy")
    assert gpt2.decode([found.best[0].id]) == one
    assert "logits" not in repr(found) and found.best[0].token in repr(found)


def test_of_no_words_is_that_of_the_start_token(gpt2: mh.Model) -> None:
    assert gpt2.decode([gpt2.next("").best[0].id]) == gpt2.generate("", max_new_tokens=1, search="greedy")


def test_of_a_translator(demo: mh.Model) -> None:
    for prefix in ("der", "der kleine Hund"):
        seen = demo.observe(SENTENCES[0], target=prefix, sites="decoder.logits")
        found = demo.next(SENTENCES[0], prefix=prefix)
        assert_next(found, seen["decoder.logits"][-1], 5)
    assert found.best[0].token == "sieht"
    assert demo.next(SENTENCES[0]).best[0].token == "der"
    patched = mh.heads.patch(
        demo, clean=SENTENCES[0], corrupt="the small cat sees a cat .", answer="Hund", wrong="Katze", prefix="der kleine"
    )
    logits = demo.next(SENTENCES[0], prefix="der kleine").logits
    hund, katze = (demo.tokenize(word, target=True, special_tokens=False).ids[0] for word in ("Hund", "Katze"))
    assert logits[hund] - logits[katze] == pytest.approx(patched.report["clean"]["score"], abs=1e-4)


def test_of_a_mask(masked: mh.Model) -> None:
    text = f"the {masked.mask_token} sees"
    found = masked.next(text)
    at = masked.tokenize(text).tokens.index(masked.mask_token)
    assert_next(found, masked.observe(text, sites="encoder.logits")["encoder.logits"][at], 5)
    words = masked.fill(text)[0]
    assert [one.id for one in found.best] == [word.id for word in words]
    np.testing.assert_allclose([one.probability for one in found.best], [word.probability for word in words], rtol=1e-5)


def test_obeys_edits(gpt2: mh.Model, masked: mh.Model) -> None:
    text, head = "two dogs run", "decoder.0.self_attention.1"
    plain = gpt2.next(text).logits
    with gpt2.edit(mute=head):
        np.testing.assert_allclose(
            gpt2.next(text).logits, gpt2.observe(text, sites="decoder.logits")["decoder.logits"][-1], atol=1e-5
        )
        assert np.abs(gpt2.next(text).logits - plain).max() > 1e-3
    numbers = np.linspace(-1, 1, len(plain), dtype=np.float32)
    last = len(gpt2.tokenize(text).ids) - 1
    with gpt2.edit(replace={"decoder.logits": mh.At(numbers, position=last)}):
        np.testing.assert_array_equal(gpt2.next(text).logits, numbers)
    masks = f"the {masked.mask_token} sees"
    columns = masked.sites["encoder.logits"]
    with masked.edit(replace={"encoder.logits": np.zeros(columns, np.float32)}):
        np.testing.assert_allclose(masked.next(masks).probabilities, 1 / columns, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda gpt2, _: gpt2.next("a", top=-1), "`top`: expected 0 to .*, the numbers of the vocabulary, got -1"),
        (lambda gpt2, _: gpt2.next("a", top=10**6), "`top`: expected 0 to .*, got 1000000"),
        (lambda gpt2, _: gpt2.next("a", prefix="b"), "`prefix`: this model translates nothing"),
        (lambda gpt2, _: gpt2.next("", prefix="b"), "`prefix`: this model translates nothing"),
        (lambda gpt2, _: gpt2.next("a " * 3000), "tokens"),
        (lambda _, masked: masked.next("the cat sees"), "the given text has 0 masks; write .* once"),
        (lambda _, masked: masked.next("[MASK] [MASK]"), "the given text has 2 masks"),
        (
            lambda *_: mh.load(golden("sentences/plain")).next("a"),
            "cannot say the next token: it is an encoder that predicts no words",
        ),
    ],
)
def test_refuses_in_one_line(gpt2: mh.Model, masked: mh.Model, call: Callable[..., Any], words: str) -> None:
    with pytest.raises(mh.Error, match=words) as raised:
        call(gpt2, masked)
    assert "\n" not in str(raised.value)
