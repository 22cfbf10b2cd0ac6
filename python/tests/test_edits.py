"""Edits: what a block changes, when it begins and ends, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh

HEAD = "decoder.1.cross_attention.0"
SITE = "encoder.0.self_attention.heads"


def muted_heads(seen: mh.Observation) -> bool:
    return not seen[SITE].any()


def test_edits(demo: mh.Model) -> None:
    plain = demo.translate(SENTENCES)
    with demo.edit(mute="*.cross_attention.*"):
        muted = demo.translate(SENTENCES)
        with demo.edit(gate={"*": 1.0}):
            assert demo.translate(SENTENCES) == plain
        with demo.edit(gate={HEAD: 0.25}), demo.edit(mute=HEAD):
            assert demo.translate(SENTENCES) == muted
        assert demo.translate(SENTENCES) == muted
    assert muted != plain
    assert demo.translate(SENTENCES) == plain
    with demo.edit(gate={HEAD: 0.0}):
        gated = demo.observe(SENTENCES[0], target=plain[0], sites="decoder.1.cross_attention.heads")
        assert not gated["decoder.1.cross_attention.heads"][:, :24].any()
    with demo.edit(replace={HEAD: "uniform"}):
        weights = demo.observe(SENTENCES[0], target=plain[0]).weights(HEAD)
        np.testing.assert_allclose(weights, np.full_like(weights, 1 / weights.shape[1]))
    numbers = np.arange(24, dtype=np.float32)
    with demo.edit(replace={SITE: mh.At(numbers, position=2, head=1)}):
        seen = demo.observe(SENTENCES[0], sites=SITE)
        np.testing.assert_array_equal(seen[SITE][2, 24:48], numbers)
    assert demo.translate(SENTENCES) == plain


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mute": "encoder.9.self_attention.0"}, "encoder.9"),
        ({"replace": {HEAD: "sideways"}}, "sideways"),
        ({"mute": "nonsense"}, "nonsense"),
        ({"replace": {"encoder.0.nothing": np.ones(24)}}, "encoder.0.nothing"),
        ({"gate": {HEAD: float("nan")}}, "finite"),
        ({"mute": HEAD, "gate": {HEAD: 1}}, "muted and gated"),
        ({"mute": "decoder.*", "gate": {HEAD: 0.5}}, f"{HEAD} is muted by 'decoder.*' and gated by '{HEAD}'"),
        ({"replace": {SITE: np.full(96, np.nan)}}, f"site '{SITE}': row 0 of the numbers to put there has one that is not finite"),
        ({"replace": {SITE: mh.At(np.ones(96), strength=2)}}, "numbers that are put there have no strength, but it is 2"),
        ({"add": {"encoder.0.nothing": np.ones(24)}}, "encoder.0.nothing"),
        ({"add": {SITE: np.ones((1, 1, 96))}}, f"`add`: expected .columns. or .rows, columns. for {SITE}, got "),
        ({"add": {SITE: np.full(96, np.inf)}}, f"site '{SITE}': row 0 of the numbers to add there has one that is not finite"),
        ({"add": {SITE: np.ones(3)}}, f"site '{SITE}': the numbers to add there have 3 columns, expected 96"),
        ({"add": {SITE: mh.At(np.ones(96), strength=float("nan"))}}, f"site '{SITE}': the strength is nan; expected a finite"),
        ({"add": {SITE: mh.At(np.full(96, 1e30), strength=1e30)}}, "1e.30, the strength, times 1e.30, a number of row 0, is too"),
        ({"replace": {SITE: np.ones(3)}}, f"site '{SITE}': the numbers to put there have 3 columns, expected 96"),
        ({"replace": {SITE: mh.At(np.ones((5, 96)), head=1)}}, "have 96 columns, expected 24"),
        ({"replace": {SITE: mh.At(np.ones(24), head=4)}}, "there is no head 4; it has 4"),
    ],
)
def test_refused_at_the_call(demo: mh.Model, given: dict[str, Any], words: str) -> None:
    with pytest.raises(mh.UsageError, match=words) as raised:
        demo.edit(**given)
    assert "\n" not in str(raised.value)


def test_added_numbers(demo: mh.Model) -> None:
    plain = demo.observe(SENTENCES[0], sites=SITE)[SITE]
    numbers = np.arange(24, dtype=np.float32)
    with demo.edit(add={SITE: mh.At(numbers, position=2, head=1, strength=-0.5)}):
        seen = demo.observe(SENTENCES[0], sites=SITE)[SITE]
    expected = plain.copy()
    expected[2, 24:48] -= 0.5 * numbers
    np.testing.assert_array_equal(seen, expected)
    with demo.edit(replace={SITE: np.zeros(96)}, add={SITE: np.ones(96)}), demo.edit(add={SITE: mh.At(np.ones(96), strength=2)}):
        assert (demo.observe(SENTENCES[0], sites=SITE)[SITE] == 3).all()
    with demo.edit(add={"decoder.*.output": mh.At(np.ones(96), strength=0)}):
        unchanged = demo.translate(SENTENCES)
    assert unchanged == demo.translate(SENTENCES)


def test_functions_of_values(demo: mh.Model) -> None:
    plain = demo.observe(SENTENCES[0], sites=SITE)[SITE]
    shapes = []

    def doubled(rows: np.ndarray) -> np.ndarray:
        shapes.append(rows.shape)
        return 2 * rows.astype(np.float64)

    def halved_in_place(rows: np.ndarray) -> None:
        rows *= 0.5

    with demo.edit(replace={SITE: doubled}):
        np.testing.assert_array_equal(demo.observe(SENTENCES[0], sites=SITE)[SITE], 2 * plain)
        doubled_text = demo.translate(SENTENCES[0])
    assert plain.shape in shapes
    with demo.edit(replace={SITE: 2 * plain}):
        assert demo.translate(SENTENCES[0]) == doubled_text
    with demo.edit(replace={SITE: doubled}), demo.edit(replace={SITE: halved_in_place}):
        np.testing.assert_array_equal(demo.observe(SENTENCES[0], sites=SITE)[SITE], plain)
    with demo.edit(replace={SITE: halved_in_place}, add={SITE: np.ones(96)}):  # functions come last
        np.testing.assert_array_equal(demo.observe(SENTENCES[0], sites=SITE)[SITE], (plain + 1) / 2)
    with pytest.raises(mh.UsageError, match="has no site"):
        demo.edit(replace={"*.states.3": doubled})


def test_functions_are_called_in_each_step() -> None:
    model = mh.load(golden("generate/gpt2"))
    site, rows_seen = "decoder.1.output", []
    numbers = np.random.default_rng(3).standard_normal(model.observe("the", sites=site)[site].shape[1]).astype(np.float32)

    def steer(rows: np.ndarray) -> np.ndarray:
        rows_seen.append(len(rows))
        return rows + 3 * numbers

    settings: dict[str, Any] = {"max_new_tokens": 9, "search": "greedy"}
    with model.edit(add={site: mh.At(numbers, strength=3)}):
        steered = model.generate("the", **settings)
    with model.edit(replace={site: steer}):
        assert model.generate("the", **settings) == steered
    assert len(rows_seen) > 5 and rows_seen[-1] == 1


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda rows: rows[:, 1:], mh.UsageError, rf"`replace`: the function of site '{SITE}' gave .*, expected .*, 96"),
        (lambda rows: rows / 0, mh.UsageError, "gave numbers that are not finite"),
        (lambda rows: "no array", TypeError, "`replace`"),
        (lambda rows: {}["no such key"], KeyError, "no such key"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_functions_that_fail(demo: mh.Model, function: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with demo.edit(replace={SITE: function}), pytest.raises(error, match=words) as raised:
        demo.translate(SENTENCES[0])
    assert "\n" not in str(raised.value)
    assert demo.translate(SENTENCES[0])


def test_what_is_added_reaches_every_token_that_is_generated() -> None:
    model = mh.load(golden("generate/gpt2"))
    site, width = "decoder.1.output", model.observe("the", sites="decoder.1.output")["decoder.1.output"].shape[1]
    numbers = np.random.default_rng(3).standard_normal(width).astype(np.float32)
    settings: dict[str, Any] = {"max_new_tokens": 9, "search": "greedy"}
    plain = model.generate("the", **settings)
    with model.edit(add={site: mh.At(numbers, strength=3)}):
        steered = model.generate("the", **settings)
        assert "".join(model.stream("the", **settings)) == steered
    assert steered != plain and model.generate("the", **settings) == plain


def test_a_head_does_where_a_name_does(demo: mh.Model) -> None:
    """Of every function that takes names of heads."""
    head = demo.heads[5]
    assert head.name == "encoder.1.self_attention.1"
    calls: list[Callable[[Any], Any]] = [
        lambda given: _translated(demo, mute=given),
        lambda given: _translated(demo, mute=[given, "decoder.0.*"]),
        lambda given: _translated(demo, gate={given: 0.5}),
        lambda given: _translated(demo, replace={given: "first"}),
        lambda given: demo.observe(SENTENCES[0]).weights(given).tolist(),
        lambda given: demo.heads_named(given),
        lambda given: demo.prune(given).parameter_count,
        lambda given: mh.heads.importance(demo, SENTENCES, heads=given).report,
        lambda given: mh.heads.where(demo, SENTENCES, heads=[given], least_count=1).report,
        lambda given: mh.view(demo, SENTENCES[1], head=given, importance=False).title,
    ]
    for call in calls:
        assert call(head) == call(head.name)
    seen = demo.observe(SENTENCES[0])
    assert seen.key_tokens(head) == seen.key_tokens("encoder.1.self_attention") == seen.query_tokens(head)


def _translated(model: mh.Model, **edits: Any) -> list[str]:
    with model.edit(**edits):
        return model.translate(SENTENCES)


def test_what_is_called_in_a_block_is_changed_when_it_comes(demo: mh.Model) -> None:
    with demo.edit(mute="encoder.0.*"):
        inside = demo.observe(SENTENCES, sites=SITE)
    assert all(muted_heads(seen) for seen in inside)
    outside = demo.observe(iter(SENTENCES), sites=SITE)
    with demo.edit(mute="encoder.0.*"):
        assert not any(muted_heads(seen) for seen in outside)
    with pytest.raises(mh.UsageError, match="no site 'encoder.0.nothing'"):
        demo.observe(SENTENCES, sites="encoder.0.nothing")  # at the call


@pytest.mark.parametrize("threads", [1, 3])
def test_a_text_of_a_list_is_the_same_however_it_is_read(demo: mh.Model, threads: int) -> None:
    numbers = np.arange(96, dtype=np.float32)
    before = mh.threads()
    try:
        mh.set_threads(threads)
        with demo.edit(replace={SITE: mh.At(numbers, sequence=8, position=1)}):
            changed = [np.array_equal(seen[SITE][1], numbers) for seen in demo.observe(SENTENCES * 2, sites=SITE)]
    finally:
        mh.set_threads(before)
    assert changed == [number == 8 for number in range(10)]


@pytest.mark.parametrize(
    "call",
    [
        lambda demo: list(demo.observe(SENTENCES, sites=SITE)),
        lambda demo: demo.translate(SENTENCES, max_length=9),
    ],
)
def test_says_what_nothing_met(demo: mh.Model, call: Callable[[mh.Model], Any]) -> None:
    far = mh.At(np.zeros(96), sequence=4, position=99)
    with demo.edit(replace={"decoder.0.output": far}), pytest.warns(mh.Remark, match="decoder.0.output.*position 99") as told:
        call(demo)
    assert {one.filename for one in told} == {__file__}


def test_streams_keep_the_edits_of_their_call() -> None:
    model = mh.load(golden("generate/gpt2"))
    settings: dict[str, Any] = {"max_new_tokens": 12, "search": "greedy"}
    plain = model.generate("the", **settings)
    with model.edit(mute="*"):
        muted = model.generate("the", **settings)
        inside = model.stream("the", **settings)
    assert muted != plain and "".join(inside) == muted
    outside = model.stream("the", **settings)
    with model.edit(mute="*"):
        assert "".join(outside) == plain


def changed_while_open(model: mh.Model, mute: str) -> Iterator[list[str]]:
    with model.edit(mute=mute):
        for _ in range(2):
            yield model.translate(SENTENCES)


def test_blocks_end_in_any_order(demo: mh.Model) -> None:
    plain = demo.translate(SENTENCES)
    first, second = demo.edit(mute="encoder.0.*"), demo.edit(mute="encoder.1.*")
    alone = _translated(demo, mute="encoder.1.*")
    assert plain != alone
    first.__enter__()
    second.__enter__()
    assert demo.translate(SENTENCES) == _translated(demo, mute=["encoder.0.*", "encoder.1.*"])
    first.__exit__(None, None, None)
    assert demo.translate(SENTENCES) == alone
    second.__exit__(None, None, None)
    assert demo.translate(SENTENCES) == plain
    list(zip(changed_while_open(demo, "encoder.0.*"), changed_while_open(demo, "decoder.*"), strict=True))
    assert demo.translate(SENTENCES) == plain


def test_a_block_that_another_thread_ends(demo: mh.Model) -> None:
    plain = demo.translate(SENTENCES)
    opened = changed_while_open(demo, "*.cross_attention.*")
    assert next(opened) != plain
    thread = threading.Thread(target=opened.close)  # type: ignore[attr-defined]
    thread.start()
    thread.join()
    assert demo.translate(SENTENCES) == plain


def test_names_that_were_not_observed(demo: mh.Model) -> None:
    seen = demo.observe(SENTENCES[0], sites="encoder.0.self_attention.weights.1")
    for call, words in (
        (lambda: seen["encoder.states"], "encoder.states was not observed; name it, or a pattern"),
        (lambda: seen["encoder.stats"], "the model has no site 'encoder.stats'"),
        (lambda: seen.weights("encoder.0.self_attention.4"), "encoder.0.self_attention has heads 0 to 3, and no head 4"),
        (lambda: seen.weights("encoder.0.self_attention.2"), "was not observed"),
        (lambda: seen.weights("encoder.1.self_attention"), "were not observed; add 'encoder.1.self_attention.weights"),
        (lambda: seen.weights("encoder.2.self_attention"), "no attention 'encoder.2.self_attention'; it has encoder.0"),
        (lambda: demo.gradient(SENTENCES[0], at="encoder.states")["encoder"], "no gradient at 'encoder'"),
        (lambda: mh.Table([{"a": 1}])["b"], "there is no column 'b'; there are a"),
    ):
        with pytest.raises(mh.UnknownNameError, match=words) as raised:
            call()
        assert isinstance(raised.value, KeyError) and "\n" not in str(raised.value) and not str(raised.value).startswith(("'", '"'))


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_gradients_where_nothing_flows() -> None:
    model = mh.load(golden("sentences/plain"))
    given: dict[str, Any] = {"of": "similarity", "second": "c"}
    for at in ("encoder.pooled", ["encoder.*.gates", "encoder.pooled"]):
        with pytest.raises(mh.UsageError, match="`at`: the similarity does not depend on encoder.pooled; name sites"):
            model.gradient("a b", at=at, **given)
    everything = model.gradient("a b", at="*", **given)
    assert "encoder.states" in everything and "encoder.pooled" not in everything


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_gradients_of_the_vector_itself() -> None:
    model = mh.load(golden("sentences/plain"))
    found = model.gradient("a b", at="sentence.vectors", of="similarity", second="c")
    a, b = model.embed(["a b", "c"]).astype(np.float64)
    lengths = np.linalg.norm(a), np.linalg.norm(b)
    cosine = a @ b / (lengths[0] * lengths[1])
    assert list(found) == ["sentence.vectors"] and found.value == pytest.approx(cosine, abs=1e-6)
    np.testing.assert_allclose(found["sentence.vectors"][0], (b / lengths[1] - cosine * a / lengths[0]) / lengths[0], atol=1e-6)
