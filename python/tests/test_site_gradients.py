"""model.gradient of linear functions of the values at a site."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh

Random = np.random.default_rng


@pytest.fixture(scope="module")
def gpt2() -> mh.Model:
    return mh.load(golden("generate/gpt2"))


def direction(columns: int, seed: int = 1) -> Any:
    return Random(seed).standard_normal(columns).astype(np.float32)


@pytest.mark.parametrize("name", ["generate/gpt2", "labels/bert_pairs"])
def test_of_every_site_are_slopes(name: str) -> None:
    """Beside central differences, of every site by every site; what has no gradient moves nothing."""
    model, text, random = mh.load(golden(name)), "the cat sees", Random(3)
    plain = {site: value.astype(float) for site, value in model.observe(text, sites="*").items()}
    along = {site: random.standard_normal(value.shape).astype(np.float32) for site, value in plain.items()}
    found = {site: model.gradient(text, of=site, along=along[site], at="*") for site in plain}
    for at in plain:
        moved = random.standard_normal(plain[at].shape).astype(np.float32)
        if ".weights." in at or ".scores." in at:
            moved *= plain[at] != 0  # a query sees no more keys than it did
        step, ends = 1e-2 * np.sqrt((plain[at] ** 2).mean() + 1e-4), []
        for sign in (1, -1):
            with model.edit(add={at: mh.At(moved, strength=sign * step)}):
                seen = model.observe(text, sites="*")
                ends.append({site: (along[site] * seen[site].astype(float)).sum() for site in plain})
        for of in plain:
            slope, noise = (ends[0][of] - ends[1][of]) / (2 * step), 3e-6 * np.abs(along[of] * plain[of]).sum() / step
            if at not in found[of]:
                assert abs(slope) <= noise + 1e-6, f"{of} moves by {at}"
                continue
            gradient = found[of][at].astype(float)
            allowed = 0.03 * abs(slope) + 0.03 * np.sqrt((gradient**2).sum()) + noise
            assert (gradient * moved).sum() == pytest.approx(slope, abs=allowed), f"{of} by {at}"
    for of in plain:
        np.testing.assert_array_equal(found[of][of], along[of])
        assert found[of].value == pytest.approx((along[of] * plain[of]).sum(), rel=1e-4, abs=1e-4)


def test_a_list_gives_what_each_text_gives(gpt2: mh.Model) -> None:
    along = [direction(gpt2.d_model, seed) for seed in range(len(SENTENCES))]
    positions = [-1, 0, 2, -3, 1]
    asked: dict[str, Any] = {"of": "decoder.1.output", "at": ["*.heads", "*.gates", "*.weights.*"]}
    found = gpt2.gradient(SENTENCES, along=along, position=positions, **asked)
    assert [one.tokens for one in found] == [seen.tokens for seen in gpt2.observe(SENTENCES)]
    for text, one, position, numbers in zip(SENTENCES, along, positions, found, strict=True):
        alone = gpt2.gradient(text, along=one, position=position, **asked)
        assert alone.value == numbers.value and list(alone) == list(numbers)
        for site in alone:
            np.testing.assert_array_equal(alone[site], numbers[site])
    for again in (np.stack(along), iter(SENTENCES)):
        texts: Any = SENTENCES if isinstance(again, np.ndarray) else again
        given = again if isinstance(again, np.ndarray) else along
        same = gpt2.gradient(texts, along=given, position=np.array(positions), **asked)  # type: ignore[arg-type]
        np.testing.assert_array_equal(same[3]["decoder.0.self_attention.heads"], found[3]["decoder.0.self_attention.heads"])
    assert gpt2.gradient([], along=along[0], **asked) == []


def test_is_linear_in_the_direction(gpt2: mh.Model) -> None:
    one, other = direction(gpt2.d_model, 1), direction(gpt2.d_model, 2)
    found = [
        gpt2.gradient(SENTENCES[0], of="decoder.1.output", along=along, at="decoder.0.input")["decoder.0.input"]
        for along in (one, other, 2 * one - 3 * other)
    ]
    np.testing.assert_allclose(found[2], 2 * found[0] - 3 * found[1], atol=1e-3)


def test_positions_heads_and_columns_are_rows_and_columns_of_numbers(gpt2: mh.Model) -> None:
    site, at, text = "decoder.1.self_attention.heads", "decoder.0.output", SENTENCES[0]
    width = gpt2.heads[0].d_value
    own = direction(width)
    rows = len(gpt2.observe(text).tokens)
    whole = np.zeros((rows, gpt2.sites[site]), np.float32)
    whole[-2, 2 * width : 3 * width] = own
    expected = gpt2.gradient(text, of=site, along=whole, at=at)[at]
    np.testing.assert_array_equal(gpt2.gradient(text, of=site, along=own, head=2, position=-2, at=at)[at], expected)
    np.testing.assert_array_equal(gpt2.gradient(text, of=site, along=list(own), head=2, position=rows - 2, at=at)[at], expected)
    steering = mh.heads.direction(gpt2, SENTENCES[1], SENTENCES[2], site=at)
    by_name = gpt2.gradient(text, of=at, along=steering, at="decoder.0.input")
    assert by_name.value == gpt2.gradient(text, of=at, along=steering.numbers, at="decoder.0.input").value
    dog, cat = 5, 3
    logits = gpt2.next(text).logits
    slopes = gpt2.gradient(text, of="decoder.logits", along={dog: 1, cat: -1}, position=-1, at=at)
    assert slopes.value == pytest.approx(logits[dog] - logits[cat], abs=1e-5)
    assert np.abs(slopes[at]).max() > 1e-4


def test_of_other_kinds(demo: mh.Model) -> None:
    """A translator after the beginnings of translations, and a label, which has another name, too."""
    texts, begun = SENTENCES[:2], ["der kleine", "zwei"]
    found = demo.gradient(texts, of="decoder.logits", along={376: 1.0}, position=-1, target=begun, at="encoder.0.output")
    for text, prefix, one in zip(texts, begun, found, strict=True):
        assert one.value == pytest.approx(demo.next(text, prefix=prefix).logits[376], abs=1e-4)
        assert one["encoder.0.output"].shape == (len(one.tokens), demo.d_model)
    classifier = mh.load(golden("labels/bert_pairs"))
    asked: dict[str, Any] = {"second": "dogs walk", "at": "*.gates"}
    by_name = classifier.gradient("the cat", of="label", label=classifier.labels[1], **asked)
    by_site = classifier.gradient("the cat", of="encoder.labels", along={1: 1}, **asked)
    assert by_site.value == by_name.value
    for site in by_name:
        np.testing.assert_allclose(by_site[site], by_name[site], atol=1e-6)


def test_edits_of_a_list_reach_their_texts(gpt2: mh.Model) -> None:
    along, asked = direction(gpt2.d_model), {"of": "decoder.1.output", "at": "decoder.0.input"}
    plain = gpt2.gradient(SENTENCES, along=along, **asked)  # type: ignore[arg-type]
    with gpt2.edit(add={"decoder.0.input": mh.At(along, sequence=3)}):
        changed = gpt2.gradient(SENTENCES, along=along, **asked)  # type: ignore[arg-type]
    assert [one.value != other.value for one, other in zip(plain, changed, strict=True)] == [False, False, False, True, False]


def test_refusals_are_one_line(gpt2: mh.Model) -> None:
    along, width = direction(gpt2.d_model), gpt2.d_model
    good: dict[str, Any] = {"of": "decoder.1.output", "along": along, "position": -1, "at": "decoder.0.output"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"of": "decoder.9.output"}, "`of`: expected 'log_probability', .* or the name of a site .*, got 'decoder.9.output'"),
        ({"of": "*.output"}, "`of`: expected the name of one site"),
        ({"at": "decoder.9.output"}, "no site 'decoder.9.output'"),
        ({"at": "decoder.logits"}, "the value at decoder.1.output does not depend on decoder.logits"),
        ({"along": along[1:]}, f"`along`: decoder.1.output has {width} columns, got {width - 1} numbers"),
        ({"along": None}, "`along` is missing"),
        ({"along": "x"}, "`along`: expected an array"),
        ({"along": {width: 1}}, f"`along`: expected columns 0 to {width - 1}"),
        ({"along": {}}, "`along`: name at least one column"),
        ({"along": {"dog": 1}}, "`along`: expected a whole number, got str"),
        ({"along": along * np.nan}, "not finite"),
        ({"along": np.stack([along] * 3)}, "`along`: expected one for each of 2 texts, got 3"),
        ({"position": [0]}, "`position`: expected one for each of 2 texts, got 1"),
        ({"position": 99}, "`position`: text [01] has . rows at decoder.1.output"),
        ({"position": 0.5}, "`position`: expected a whole number"),
        ({"head": 1}, "`head`: the columns of decoder.1.output are not those of heads"),
        ({"label": "x"}, "`label` is that of of='label'"),
        ({"second": "a"}, "`second` needs a single text"),
        ({"target": ["a"]}, "`target`: expected one for each of 2 texts, got 1"),
        ({"target": "a"}, "leave out translations"),
        ({"of": "log_probability", "along": None}, "`texts`: of='log_probability' takes one text at a time"),
    ]
    for changes, message in cases:
        with pytest.raises(mh.Error, match=message) as raised:
            gpt2.gradient(SENTENCES[:2], **{**good, **changes})
        assert "\n" not in str(raised.value)
    with pytest.raises(mh.UsageError, match="`along` and `head` need the name of a site"):
        gpt2.gradient(SENTENCES[0], at="*.gates", along=along)
    with pytest.raises(mh.UsageError, match="of a single text"):
        gpt2.gradient(SENTENCES[0], at="*.gates", position=[1, 2])
    other = mh.heads.direction(gpt2, SENTENCES[1], SENTENCES[2], site="decoder.0.output")
    with pytest.raises(mh.UsageError, match="`along`: <direction at decoder.0.output.* is of another site"):
        gpt2.gradient(SENTENCES[0], of="decoder.1.output", along=other, at="decoder.0.output")
