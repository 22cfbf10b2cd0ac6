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
    ) -> torch.Tensor:
        output, lse = (_forward if traced else _kernel.forward)(q, k, v, mask, causal, scale, soft_cap, dropout, seed)
        ctx.save_for_backward(q, k, v, mask, output, lse, seed)
        ctx.settings = causal, scale, soft_cap, dropout
        ctx.traced = traced
        return output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        (d_output,) = grad_outputs
        q, k, v, mask, output, lse, seed = ctx.saved_tensors
        wants_d_mask = ctx.needs_input_grad[3]
        run = _backward if ctx.traced or torch._C._len_torch_dispatch_stack() else _kernel.backward
        causal, scale, soft_cap, dropout = ctx.settings
        gradients = run(d_output, q, k, v, mask, output, lse, causal, scale, soft_cap, dropout, seed, wants_d_mask)
        if torch.is_grad_enabled() and not ctx.traced:
            gradients = OnceOnly.apply(q, k, v, mask, d_output, *gradients)
        d_q, d_k, d_v, d_mask = gradients
        return d_q, d_k, d_v, d_mask if wants_d_mask else None, None, None, None, None, None, None


class _WithWeights(torch.autograd.Function):
    """The output and the weights [B, H, Tq, Tk], which may have gradients, too. In eager programs, without dropout."""

    @staticmethod
    def forward(
        ctx: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None,
        causal: bool,
        scale: float | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        weights = q.new_empty(*q.shape[:3], k.shape[2])
        output, lse = _kernel.forward(q, k, v, mask, causal, scale, None, 0.0, None, weights=weights)
        ctx.save_for_backward(q, k, v, mask, output, lse, weights)
        ctx.settings = causal, scale
        ctx.set_materialize_grads(False)
        return output, weights

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        d_output, d_weights = grad_outputs
        q, k, v, mask, output, lse, weights = ctx.saved_tensors
        causal, scale = ctx.settings
        wants_d_mask = ctx.needs_input_grad[3]
        d_seen = torch.zeros_like(output) if d_output is None else d_output
        d_q, d_k, d_v, d_mask = _kernel.backward(d_seen, q, k, v, mask, output, lse, causal, scale, None, 0.0, None, wants_d_mask)
        if d_weights is not None:  # dS = P (dP - sum of P dP)
            weighted = weights * d_weights
            d_scores = weighted - weights * weighted.sum(-1, keepdim=True)
            factor = q.shape[3] ** -0.5 if scale is None else scale
            groups = k.shape[1]
            of_group = d_scores.unflatten(1, (groups, -1)).flatten(2, 3)  # [B, G, H / G Tq, Tk]: queries that read one key head
            d_q = d_q + factor * (of_group @ k).unflatten(2, (-1, q.shape[2])).flatten(1, 2)
            d_k = d_k + factor * of_group.mT @ q.unflatten(1, (groups, -1)).flatten(2, 3)
            d_mask = d_mask + d_scores if wants_d_mask else d_mask
        gradients = d_q, d_k, d_v, d_mask
        if torch.is_grad_enabled():
            gradients = OnceOnly.apply(q, k, v, mask, d_seen, *gradients)
        return *gradients[:3], gradients[3] if wants_d_mask else None, None, None


def attention_and_weights(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, causal: bool, scale: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same without dropout, and the weights [B, H, Tq, Tk]. REQUIRES: no compiler looks on."""
    output, weights = _WithWeights.apply(q, k, v, mask, causal, scale)
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
        output: torch.Tensor = _Attention.apply(q, k, v, mask, causal, scale, soft_cap, dropout, seed, traced)
        return output
    if traced:
        return _forward(q, k, v, mask, causal, scale, soft_cap, dropout, seed)[0]
    return _kernel.forward(q, k, v, mask, causal, scale, soft_cap, dropout, seed, wants_lse=False)[0]
