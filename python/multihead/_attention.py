"""Attention on arrays, forward and backward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import checked, whole_numbers

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]

Offsets = Iterable[int] | None
Mask = None | Literal["causal", "causal_top_left"] | tuple[int, int] | Any


def _offsets(given: Offsets, argument: str) -> list[int] | None:
    return None if given is None else whole_numbers(given, argument)


@checked
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Mask = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    layout: Literal["BTHD", "BHTD"] = "BTHD",
    offsets: Offsets = None,
    key_offsets: Offsets = None,
    alibi_slopes: Any | None = None,
    return_lse: bool = False,
    return_weights: bool = False,
    out: Any | None = None,
) -> Any:
    """softmax(scale * Q K^T) V for every head of every sequence, exact and fused: no Tq x Tk matrix is stored.

    ::

        q, k, v = np.random.randn(3, 2, 7, 4, 16).astype("float32")   # 2 sequences, 7 tokens, 4 heads of 16 numbers
        y = mh.attention(q, k, v, mask="causal")                       # [2, 7, 4, 16]

    Why "multi-head": each head h has a softmax of its own, over its own scores ``q[b, i, h] . k[b, j, h] * scale``. One head with
    all the numbers has a single softmax and computes something else: try ``heads=1`` on the same arrays.

    Args:
        q: queries [B, Tq, H, D]; ``layout="BHTD"``: [B, H, Tq, D], as torch has them (then numbers are copied); with `offsets`
            [Nq, H, D], sequences of any length end to end.
        k: keys [B, Tk, G, D]. G divides H: query head h reads key head h * G // H (grouped queries).
        v: values [B, Tk, U, Dv]. U divides H.
        mask: who may see whom. None: all see all. "causal": the last query sees all keys, query i those up to i + Tk - Tq.
            "causal_top_left": query i sees keys 0 to i. A window ``(left, right)``: so many keys before and after its own place.
            Booleans [Tq, Tk] or [B, Tq, Tk]: true where the query may see the key. A query that may see none gives 0.
        scale: factor of the scores; None: 1 / sqrt(D).
        soft_cap: a positive number, as Gemma 2's 50: scaled scores s become soft_cap * tanh(s / soft_cap) before slopes and mask.
        offsets: whole numbers, a list or an array; the tokens of sequence s are offsets[s] to offsets[s + 1] - 1.
        key_offsets: the same of keys and values where they differ from those of the queries.
        alibi_slopes: [H]; adds -slope * |distance| to the scores (Press et al. 2022).
        return_lse: also return log(sum(exp(scores))) [B, Tq, H], with ``layout="BHTD"`` [B, H, Tq], with `offsets` [Nq, H], which
            `attention_backward` needs; -inf where nothing is seen.
        return_weights: also return the weights [B, H, Tq, Tk], which takes memory for them.
        out: an array of float32 [B, Tq, H, Dv] to write to.

    Returns:
        float32 [B, Tq, H, Dv], or in the layout of `q`; with the two flags a tuple of it and what they ask for, in that order.

    Any array of numpy or torch, or with DLPack, will do. float32 is read where it lies, whatever its strides, unless its heads are
    not side by side; float64, float16 and bfloat16 are converted; other types are refused.

    Raises:
        ShapeError: shapes do not fit together.
        ArgumentTypeError (a TypeError): what is no array.
        UsageError: another type of numbers, an invalid option.
        Error: the result is not finite.

    Vaswani et al. 2017, eq. 1; docs/attention.md says how the kernel works.
    """
    return _native.attention(
        q, k, v, mask=mask, scale=scale, soft_cap=soft_cap, layout=layout, offsets=_offsets(offsets, "offsets"),
        key_offsets=_offsets(key_offsets, "key_offsets"), alibi_slopes=alibi_slopes, return_lse=return_lse,
        return_weights=return_weights, out=out,
    )  # fmt: skip


@checked
def attention_backward(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    d_out: Any,
    *,
    mask: Mask = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    layout: Literal["BTHD", "BHTD"] = "BTHD",
    offsets: Offsets = None,
    key_offsets: Offsets = None,
    alibi_slopes: Any | None = None,
) -> tuple[Floats, Floats, Floats]:
    """The gradients of a number L with respect to q, k and v, from its gradient with respect to the output.

    ::

        y, lse = mh.attention(q, k, v, mask="causal", return_lse=True)
        d_q, d_k, d_v = mh.attention_backward(q, k, v, y, lse, d_y, mask="causal")

    Args:
        q, k, v, mask, scale, soft_cap, layout, offsets, key_offsets, alibi_slopes: those of the forward pass.
        out: what `attention` returned, [B, Tq, H, Dv] or in the layout of the call.
        lse: what it returned with ``return_lse=True``, [B, Tq, H]; with ``layout="BHTD"`` [B, H, Tq], with `offsets` [Nq, H].
        d_out: dL/d(out), in the shape of `out`.

    Returns:
        (d_q, d_k, d_v), float32 in the shapes of q, k and v. The weights are computed again from `lse`, not stored.

    Raises:
        ShapeError, UsageError, Error: as `attention` does.
    """
    return _native.attention_backward(
        q, k, v, out, lse, d_out, mask=mask, scale=scale, soft_cap=soft_cap, layout=layout,
        offsets=_offsets(offsets, "offsets"), key_offsets=_offsets(key_offsets, "key_offsets"), alibi_slopes=alibi_slopes,
    )  # fmt: skip
