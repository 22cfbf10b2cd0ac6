"""Attention against the formula in float64, over random shapes, strides and types, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multihead as mh

Array = np.ndarray[Any, Any]


def formula(
    q: Array, k: Array, v: Array, allowed: Array | None = None, scale: float | None = None, soft_cap: float | None = None
) -> tuple[Array, Array, Array]:
    """Output [B, Tq, H, Dv], log of the sums [B, Tq, H] and weights [B, H, Tq, Tk], in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    heads = q.shape[2]
    k, v = np.repeat(k, heads // k.shape[2], axis=2), np.repeat(v, heads // v.shape[2], axis=2)
    scores = np.einsum("bihd,bjhd->bhij", q, k) * (scale if scale is not None else q.shape[3] ** -0.5)
    if soft_cap is not None:
        scores = soft_cap * np.tanh(scores / soft_cap)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    highest = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    highest = np.where(np.isfinite(highest), highest, 0)
    exponentials = np.exp(scores - highest)
    sums = exponentials.sum(-1, keepdims=True)
    weights = exponentials / np.where(sums == 0, 1, sums)
    with np.errstate(divide="ignore"):
        lse = (np.log(sums) + highest)[..., 0]
    return np.einsum("bhij,bjhd->bihd", weights, v), lse.transpose(0, 2, 1), weights


def random_arrays(
    seed: int, batch: int, queries: int, keys: int, heads: tuple[int, int, int], sizes: tuple[int, int]
) -> list[Array]:
    rng = np.random.default_rng(seed)
    shapes = [(batch, queries, heads[0], sizes[0]), (batch, keys, heads[1], sizes[0]), (batch, keys, heads[2], sizes[1])]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


HEADS = st.sampled_from([(1, 1, 1), (3, 3, 3), (6, 2, 3), (5, 1, 5), (4, 4, 2)])
SOFT_CAPS = st.sampled_from([None, None, 0.5, 50.0])
SIZES = st.sampled_from([(1, 1), (5, 3), (16, 16), (24, 7), (64, 64)])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(0, 13), st.integers(0, 17), HEADS, SIZES,
       st.sampled_from([None, "causal", "causal_top_left", (2, 1), (0, 0), "random", "random by sequence"]),
       st.sampled_from(["plain", "reversed", "strided", "transposed", "read-only", "float64", "float16"]),
       SOFT_CAPS)  # fmt: skip
def test_is_the_formula(seed: int, batch: int, queries: int, keys: int, heads: Any, sizes: Any, mask: Any, form: str,
                        soft_cap: float | None) -> None:  # fmt: skip
    q, k, v = random_arrays(seed, batch, queries, keys, heads, sizes)
    places = np.arange(queries)[:, None], np.arange(keys)[None, :]
    allowed: Array | None = None
    if mask == "causal":
        allowed = places[1] <= places[0] + keys - queries
    elif mask == "causal_top_left":
        allowed = places[1] <= places[0]
    elif isinstance(mask, tuple):
        distance = places[1] - (places[0] + keys - queries)
        allowed = (distance >= -mask[0]) & (distance <= mask[1])
    elif mask is not None:
        shape = (queries, keys) if mask == "random" else (batch, queries, keys)
        mask = allowed = np.random.default_rng(seed).random(shape) < 0.6
        if allowed.ndim == 3:
            allowed = allowed[:, None]
    changed = [q, k, v]
    if form == "reversed":
        changed = [x[:, ::-1, :, ::-1] for x in changed]
    elif form == "strided":
        changed = [np.repeat(x, 2, axis=1)[:, ::2] for x in changed]
    elif form == "transposed":
        changed = [np.ascontiguousarray(x.transpose(2, 0, 3, 1)).transpose(1, 3, 0, 2) for x in changed]
    elif form == "read-only":
        for x in changed:
            x.flags.writeable = False
    elif form in ("float64", "float16"):
        changed = [x.astype(form) for x in changed]
    expected, expected_lse, expected_weights = formula(*changed, allowed, soft_cap=soft_cap)
    y, lse, weights = mh.attention(*changed, mask=mask, soft_cap=soft_cap, return_lse=True, return_weights=True)
    assert (y.shape, y.dtype) == (expected.shape, np.float32)
    np.testing.assert_allclose(y, expected, atol=2e-5)
    np.testing.assert_allclose(lse, expected_lse, atol=2e-5)
    np.testing.assert_allclose(weights, expected_weights, atol=2e-5)
    turned = [x.transpose(0, 2, 1, 3) for x in changed]
    other, other_lse = mh.attention(*turned, mask=mask, soft_cap=soft_cap, layout="BHTD", return_lse=True)
    np.testing.assert_array_equal(other.transpose(0, 2, 1, 3), y)
    np.testing.assert_array_equal(other_lse.transpose(0, 2, 1), lse)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.integers(1, 7), st.integers(1, 9), HEADS,
       st.sampled_from([(5, 3), (16, 16)]), st.booleans(), st.sampled_from(["BTHD", "BHTD"]), SOFT_CAPS)  # fmt: skip
def test_gradients_are_those_of_the_formula(seed: int, batch: int, queries: int, keys: int, heads: Any, sizes: Any, causal: bool,
                                            layout: Any, soft_cap: float | None) -> None:  # fmt: skip
    q, k, v = random_arrays(seed, batch, queries, keys, heads, sizes)
    mask = "causal" if causal else None
    allowed = np.arange(keys)[None, :] <= np.arange(queries)[:, None] + keys - queries if causal else None
    d_out = np.random.default_rng(seed).standard_normal((batch, queries, heads[0], sizes[1])).astype(np.float32)

    def turn(x: Array) -> Array:
        return x if layout == "BTHD" else np.moveaxis(x, 2, 1)

    same: dict[str, Any] = {"mask": mask, "soft_cap": soft_cap, "layout": layout}
    y, lse = mh.attention(turn(q), turn(k), turn(v), **same, return_lse=True)
    gradients = mh.attention_backward(turn(q), turn(k), turn(v), y, lse, turn(d_out), **same)
    rng = np.random.default_rng(seed + 1)
    for i, x in enumerate((q, k, v)):
        direction = rng.standard_normal(x.shape)
        step = 1e-6
        ends = []
        for sign in (1, -1):
            moved = [a.astype(np.float64) for a in (q, k, v)]
            moved[i] = moved[i] + sign * step * direction
            ends.append(float((formula(moved[0], moved[1], moved[2], allowed, soft_cap=soft_cap)[0] * d_out).sum()))
        slope = (ends[0] - ends[1]) / (2 * step)
        found = float((turn(gradients[i]).astype(np.float64) * direction).sum())
        assert found == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_sequences_end_to_end() -> None:
    offsets, key_offsets = [0, 3, 3, 10], [0, 2, 6, 11]
    rng = np.random.default_rng(7)
    q, k, v = (rng.standard_normal((n, 3, 5)).astype(np.float32) for n in (10, 11, 11))
    y, lse = mh.attention(q, k, v, offsets=offsets, key_offsets=key_offsets, mask="causal", return_lse=True)
    assert (y.shape, lse.shape) == ((10, 3, 5), (10, 3))
    for s in range(3):
        rows, keys = slice(offsets[s], offsets[s + 1]), slice(key_offsets[s], key_offsets[s + 1])
        alone = mh.attention(q[None, rows], k[None, keys], v[None, keys], mask="causal")
        np.testing.assert_allclose(y[rows], alone[0], atol=1e-6)
    d_q, d_k, d_v = mh.attention_backward(q, k, v, y, lse, y, offsets=offsets, key_offsets=key_offsets, mask="causal")
    assert (d_q.shape, d_k.shape, d_v.shape) == (q.shape, k.shape, v.shape)


def test_writes_to_an_array_of_the_caller() -> None:
    q, k, v = random_arrays(3, 2, 5, 5, (3, 3, 3), (7, 7))
    out = np.full((2, 5, 3, 7), np.nan, dtype=np.float32)
    assert mh.attention(q, k, v, out=out) is out
    np.testing.assert_array_equal(out, mh.attention(q, k, v))
    for bad in (np.empty((2, 5, 3, 8), np.float32), np.empty((2, 5, 3, 7)), np.empty((2, 5, 3, 14), np.float32)[..., ::2], [1.0]):
        with pytest.raises(mh.UsageError, match="`out`"):
            mh.attention(q, k, v, out=bad)
    out.flags.writeable = False
    with pytest.raises(mh.UsageError, match="`out`"):
        mh.attention(q, k, v, out=out)


def test_arrays_that_share_memory() -> None:
    x = random_arrays(9, 1, 11, 11, (3, 3, 3), (8, 8))[0]
    views = x[:, 2:9], x[:, :9], x[:, 1:10]
    np.testing.assert_array_equal(mh.attention(*views), mh.attention(*(view.copy() for view in views)))
    whole = x.copy()
    for name, out in (("q", x[:, 2:9]), ("k", x[:, :7]), ("v", x[:, 4:])):
        apart = {"q": x[:, 2:9].copy(), "k": x[:, :9].copy(), "v": x[:, 1:10].copy()}
        apart[name] = {"q": views[0], "k": views[1], "v": views[2]}[name]
        with pytest.raises(mh.UsageError, match=f"`out` shares memory with `{name}`"):
            mh.attention(apart["q"], apart["k"], apart["v"], out=out)
    np.testing.assert_array_equal(x, whole)
    one = np.broadcast_to(x[:, :1, :1], (2, 9, 3, 8))  # the same eight numbers everywhere: so is the output
    np.testing.assert_allclose(mh.attention(one, one, one), one, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 2**62), st.integers(0, 3), st.sampled_from([np.float32, np.float64, np.float16]))
def test_huge_arrays_are_refused(size: int, axis: int, kind: Any) -> None:
    """Arrays without memory behind them: the same number everywhere."""
    shape = [1, 1, 1, 1]
    shape[axis] = max(size, 2**36)  # the output has at least 256 GiB
    try:
        huge = np.lib.stride_tricks.as_strided(np.ones(1, kind), shape, (0, 0, 0, 0))
    except ValueError:  # numpy has none of that size
        return
    with pytest.raises((mh.Error, MemoryError, ValueError)):
        mh.attention(huge, huge, huge)


def test_slopes_of_distances() -> None:
    q, k, v = random_arrays(5, 1, 7, 7, (2, 2, 2), (8, 8))
    slopes = np.array([0.5, 0.25], dtype=np.float32)
    _, _, weights = mh.attention(q, k, v, alibi_slopes=slopes, return_lse=True, return_weights=True)
    distances = np.abs(np.arange(7)[None, :] - np.arange(7)[:, None])
    scores = np.einsum("bihd,bjhd->bhij", q, k) * 8**-0.5 - slopes[None, :, None, None] * distances
    expected = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(weights, expected / expected.sum(-1, keepdims=True), atol=1e-5)


def test_one_head_is_not_many() -> None:
    """h softmaxes, not one: the single head with the same numbers computes something else."""
    q, k, v = random_arrays(11, 1, 6, 6, (4, 4, 4), (8, 8))
    many = mh.attention(q, k, v, scale=8**-0.5)
    single = mh.attention(*(x.reshape(1, 6, 1, 32) for x in (q, k, v)), scale=8**-0.5)
    assert np.abs(many.reshape(1, 6, 1, 32) - single).max() > 0.1


Q, K, V = random_arrays(1, 2, 5, 7, (6, 3, 2), (8, 4))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: mh.attention(Q[0], K, V), mh.ShapeError, "`q`: expected .batch, tokens, heads, size., got .5, 6, 8."),
        (lambda: mh.attention(Q, K, V[:1]), mh.ShapeError, "different numbers of sequences"),
        (lambda: mh.attention(Q, K[..., :7], V), mh.ShapeError, "queries and keys have different sizes"),
        (lambda: mh.attention(Q, K[:, :6], V), mh.ShapeError, "not one value for each key"),
        (lambda: mh.attention(Q[:, :, :5], K, V), mh.ShapeError, "not a multiple"),
        (lambda: mh.attention(Q[..., :0], K[..., :0], V), mh.ShapeError, "1 to 1024 numbers"),
        (lambda: mh.attention(Q[:, :, :0], K, V), mh.ShapeError, "1 to 65535 heads"),
        (lambda: mh.attention(Q.astype(np.int64), K, V), mh.UsageError, "got int64"),
        (lambda: mh.attention(Q > 0, K, V), mh.UsageError, "got bool"),
        (lambda: mh.attention(Q.astype(np.complex64), K, V), mh.UsageError, "got complex64"),
        (lambda: mh.attention(Q.tolist(), K, V), TypeError, "`q`: expected an array such as numpy's or torch's, got list"),
        (lambda: mh.attention(Q.astype(object), K, V), TypeError, "`q`"),
        (lambda: mh.attention(Q, K * np.nan, V), mh.Error, "not finite"),
        (lambda: mh.attention(Q, K, V, scale=float("inf")), mh.UsageError, "`scale`"),
        (lambda: mh.attention(Q, K, V, soft_cap=0), mh.UsageError, "`soft_cap` is 0; expected a positive number"),
        (lambda: mh.attention(Q, K, V, soft_cap=-50), mh.UsageError, "`soft_cap` is -50; expected a positive number"),
        (lambda: mh.attention(Q, K, V, soft_cap=float("nan")), mh.UsageError, "`soft_cap` is nan; expected a positive number"),
        (lambda: mh.attention(Q, K, V, soft_cap=float("inf")), mh.UsageError, "`soft_cap` is inf; expected a positive number"),
        (lambda: mh.attention_backward(Q, K, V, Q, Q[..., 0], Q, soft_cap=0), mh.UsageError, "`soft_cap` is 0"),
        (lambda: mh.attention(Q, K, V, mask="diagonal"), mh.UsageError, "`mask`: .* got 'diagonal'"),
        (lambda: mh.attention(Q, K, V, mask=np.ones((5, 6), bool)), mh.ShapeError, "`mask`: expected booleans"),
        (lambda: mh.attention(Q, K, V, mask=np.ones((5, 7))), mh.UsageError, "`mask`"),
        (lambda: mh.attention(Q, K, V, mask=(-1, 2)), mh.UsageError, "0 or more"),
        (lambda: mh.attention(Q, K, V, mask=(1.5, 2)), mh.UsageError, "two whole numbers"),
        (lambda: mh.attention(Q, K, V, layout="THD"), mh.UsageError, "`layout`"),
        (lambda: mh.attention(Q[0], K[0], V[0], offsets=[0, 4]), mh.ShapeError, "offsets"),
        (lambda: mh.attention(Q[0], K[0], V[0], offsets=[1, 5], key_offsets=[0, 7]), mh.ShapeError, "begin with 0"),
        (lambda: mh.attention(Q, K, V, key_offsets=[0, 7]), mh.UsageError, "`key_offsets` belong to `offsets`"),
        (lambda: mh.attention(Q, K, V, alibi_slopes=np.ones(5, np.float32)), mh.ShapeError, "slopes"),
        (lambda: mh.attention_backward(Q, K, V, Q, Q[..., 0], Q), mh.ShapeError, "`out`"),
    ],
)  # fmt: skip
def test_refuses_in_one_line(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_a_hidden_value_may_be_anything() -> None:
    v = V.copy()
    v[:, 6] = np.nan
    mask = np.ones((5, 7), dtype=bool)
    mask[:, 6] = False
    np.testing.assert_array_equal(mh.attention(Q, K, v, mask=mask), mh.attention(Q, K, V, mask=mask))


@pytest.mark.parametrize("layout", ["BTHD", "BHTD"])
def test_many_sequences_without_tokens(layout: Any) -> None:
    """Nothing is computed and no memory taken, however many there are."""
    shape = (2**33, 0, 1, 1) if layout == "BTHD" else (2**33, 1, 0, 1)
    empty = np.zeros(shape, dtype=np.float32)
    y, lse, weights = mh.attention(empty, empty, empty, layout=layout, return_lse=True, return_weights=True)
    assert (y.shape, lse.shape, weights.shape) == (shape, shape[:3], (2**33, 1, 0, 0))
    gradients = mh.attention_backward(empty, empty, empty, y, lse, empty, layout=layout)
    assert [one.shape for one in gradients] == [shape] * 3


def test_offsets_are_whatever_holds_whole_numbers() -> None:
    x = random_arrays(4, 1, 7, 7, (2, 2, 2), (3, 3))[0][0]
    expected = mh.attention(x, x, x, offsets=[0, 3, 7])
    for offsets in (np.array([0, 3, 7]), (0, 3, 7), np.array([0, 3, 7], dtype=np.uint8), iter([0, 3, 7]), range(0, 8, 7)):
        found = mh.attention(x, x, x, offsets=offsets)
        if not isinstance(offsets, range):
            np.testing.assert_array_equal(found, expected)


def test_an_array_larger_than_memory_is_refused() -> None:
    huge = np.broadcast_to(np.float32(1), (2**20, 2**20, 1, 8))
    with pytest.raises((mh.Error, MemoryError)):
        mh.attention(huge, huge, huge)
