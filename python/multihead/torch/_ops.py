"""The kernel as operators of torch: multihead::attention and multihead::attention_backward, for torch.compile and modes of
dispatch, and as a function of autograd. Without a compiler or a mode the kernel is called at once, which costs less."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import register_flop_formula, sdpa_backward_flop_count, sdpa_flop_count

from . import _kernel

_library = torch.library.Library("multihead", "DEF")
_library.define(
    "attention(Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, float? scale, float? soft_cap,"
    " float dropout, Tensor? seed) -> (Tensor, Tensor)"
)
_library.define(
    "attention_backward(Tensor d_output, Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor output, Tensor lse, bool causal,"
    " float? scale, float? soft_cap, float dropout, Tensor? seed, bool wants_d_mask) -> (Tensor, Tensor, Tensor, Tensor)"
)
_library.impl("attention", _kernel.forward, "CPU")
_library.impl("attention_backward", _kernel.backward, "CPU")


@torch.library.register_fake("multihead::attention", lib=_library)
def _(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _kernel.room_for_output(q, v), q.new_empty(q.shape[:3])


@torch.library.register_fake("multihead::attention_backward", lib=_library)
def _(
    d_output: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *rest: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return _kernel.like(q), _kernel.like(k), _kernel.like(v), _kernel.room_for_d_mask(q, k, rest[-1])


_forward = torch.ops.multihead.attention.default
_backward = torch.ops.multihead.attention_backward.default


@register_flop_formula(torch.ops.multihead.attention)  # type: ignore[untyped-decorator]
def _(q: torch.Size, k: torch.Size, v: torch.Size, *rest: Any, out_shape: Any = None, **given: Any) -> int:
    return int(sdpa_flop_count(q, k, v))


@register_flop_formula(torch.ops.multihead.attention_backward)  # type: ignore[untyped-decorator]
def _(d_output: torch.Size, q: torch.Size, k: torch.Size, v: torch.Size, *rest: Any, out_shape: Any = None, **given: Any) -> int:
    return int(sdpa_backward_flop_count(d_output, q, k, v))


class OnceOnly(torch.autograd.Function):
    """Gradients as they are, which say so when they are differentiated again."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[torch.Tensor, ...]:
        return inputs[5:]  # what comes before is what the gradients depend on

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        raise RuntimeError(
            "multihead.torch: attention has no second derivatives; torch's own has them, with"
            " `with torch.nn.attention.sdpa_kernel(SDPBackend.MATH):` around it"
        )


class _Attention(torch.autograd.Function):
    """The output, and with has_weights the weights [B, H, Tq, Tk], which may have gradients, too: not traced, without dropout."""

    @staticmethod
    def forward(
        ctx: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None,
        causal: bool,
        scale: float | None,
        soft_cap: float | None,
        dropout: float,
        seed: torch.Tensor | None,
        traced: bool,
        has_weights: bool,
    ) -> Any:
        settings = causal, scale, soft_cap, dropout
        weights = q.new_empty(*q.shape[:3], k.shape[2]) if has_weights else None
        if traced:
            output, lse = _forward(q, k, v, mask, *settings, seed)
        else:
            output, lse = _kernel.forward(q, k, v, mask, causal, scale, soft_cap, dropout, seed, weights=weights)
        ctx.save_for_backward(q, k, v, mask, output, lse, seed, weights)
        ctx.settings = settings
        ctx.traced = traced
        ctx.set_materialize_grads(not has_weights)  # else a gradient that is not there would be one of zeros [B, H, Tq, Tk]
        return (output, weights) if has_weights else output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        q, k, v, mask, output, lse, seed, weights = ctx.saved_tensors
        causal, scale, soft_cap, dropout = ctx.settings
        d_output, d_weights = (*grad_outputs, None)[:2]
        if d_output is None:
            d_output = torch.zeros_like(output)
        wants_d_mask = ctx.needs_input_grad[3]
        run = _backward if ctx.traced or torch._C._len_torch_dispatch_stack() else _kernel.backward
        gradients = run(d_output, q, k, v, mask, output, lse, causal, scale, soft_cap, dropout, seed, wants_d_mask)
        if d_weights is not None:
            gradients = _with_gradient_of_weights(gradients, d_weights, weights, q, k, scale)
        if torch.is_grad_enabled() and not ctx.traced:
            gradients = OnceOnly.apply(q, k, v, mask, d_output, *gradients)
        d_q, d_k, d_v, d_mask = gradients
        return d_q, d_k, d_v, d_mask if wants_d_mask else None, None, None, None, None, None, None, None


def _with_gradient_of_weights(
    gradients: tuple[torch.Tensor, ...],
    d_weights: torch.Tensor,
    weights: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    scale: float | None,
) -> tuple[torch.Tensor, ...]:
    """The gradients of q, k, v and the mask (empty: not wanted) with what the weights' own adds: dS = P (dP - sum of P dP)."""
    d_q, d_k, d_v, d_mask = gradients
    weighted = weights * d_weights
    d_scores = weighted - weights * weighted.sum(-1, keepdim=True)
    factor = q.shape[3] ** -0.5 if scale is None else scale
    groups = k.shape[1]
    of_group = d_scores.unflatten(1, (groups, -1)).flatten(2, 3)  # [B, G, H / G Tq, Tk]: queries that read one key head
    d_q = d_q + factor * (of_group @ k).unflatten(2, (-1, q.shape[2])).flatten(1, 2)
    d_k = d_k + factor * of_group.mT @ q.unflatten(1, (groups, -1)).flatten(2, 3)
    return d_q, d_k, d_v, d_mask + d_scores if d_mask.numel() else d_mask


def attention_and_weights(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, causal: bool, scale: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * Q K^T + mask) V with gradients, and the weights [B, H, Tq, Tk]. REQUIRES: no compiler looks on."""
    output, weights = _Attention.apply(q, k, v, mask, causal, scale, None, 0.0, None, False, True)
    return output, weights


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float | None,
    soft_cap: float | None,
    dropout: float,
    traced: bool,
) -> torch.Tensor:
    """softmax(cap(scale * Q K^T) + mask) V with gradients; q, k, v float32 [B, heads, T, size].

    cap(s) = soft_cap tanh(s / soft_cap), or s without one.

    traced: whether a compiler or a mode of dispatch looks on, which has to see operators.
    """
    # The seed is a number of torch's own generator, so torch.manual_seed() and checkpointing repeat what is dropped.
    seed = torch.randint(2**63 - 1, (), device="cpu") if dropout else None
    if torch.is_grad_enabled() and (
        q.requires_grad or k.requires_grad or v.requires_grad or (mask is not None and mask.requires_grad)
    ):
        output: torch.Tensor = _Attention.apply(q, k, v, mask, causal, scale, soft_cap, dropout, seed, traced, False)
        return output
    if traced:
        return _forward(q, k, v, mask, causal, scale, soft_cap, dropout, seed)[0]
    return _kernel.forward(q, k, v, mask, causal, scale, soft_cap, dropout, seed, wants_lse=False)[0]
