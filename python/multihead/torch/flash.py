"""The functions of the package flash_attn, on the CPU: float32, forward and backward; bfloat16 and float16 by conversion.

python/hub_kernel has them in the form of a kernel of Hugging Face's hub. Sequences may have different lengths on either side; a
causal mask and windows count from the ends of both, as in flash_attn.
"""

from __future__ import annotations

from typing import Any

import torch

from ._ops import OnceOnly
from ._varlen import Packed, window_of

__all__ = ["flash_attn_func", "flash_attn_varlen_func"]


class _Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, packed: Packed, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        output, lse = packed.forward(q, k, v)
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.packed = packed
        ctx.mark_non_differentiable(lse)
        return output, lse

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        q, k, v, output, lse = ctx.saved_tensors
        gradients = ctx.packed.backward(grad_outputs[0], q, k, v, output, lse)
        if torch.is_grad_enabled():
            gradients = OnceOnly.apply(q, k, v, None, grad_outputs[0], *gradients)
        return None, *gradients


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, None]:
    """Attention of sequences that lie end to end.

    q: [Nq, H, D]; k: [Nk, G, D]; v: [Nk, G, Dv]; G divides H. cu_seqlens_q, cu_seqlens_k: int32 [S + 1], where each sequence
    begins, and the end of the last. Returns [Nq, H, Dv]; with return_attn_probs also log sum exp of the scores [H, Nq], and
    None in place of the probabilities. It is deterministic in any case. Raises ValueError for dropout, and for offsets and
    shapes that do not fit.
    """
    if dropout_p:
        raise ValueError("flash_attn_varlen_func on the CPU has no dropout; scaled_dot_product_attention of torch has")
    dtype = q.dtype
    if dtype not in (torch.float32, torch.bfloat16, torch.float16) or not (q.is_cpu and k.is_cpu and v.is_cpu):
        raise ValueError(f"flash_attn_varlen_func: expected float32, bfloat16 or float16 on the CPU, not {dtype} on {q.device}")
    window = window_of(causal, *window_size)
    packed = Packed(cu_seqlens_q, cu_seqlens_k, int(max_seqlen_q), int(max_seqlen_k), softmax_scale, window, softcap or None)
    output, lse = _Flash.apply(packed, q.float(), k.float(), v.float())
    return (output.to(dtype), lse.t(), None) if return_attn_probs else output.to(dtype)


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, None]:
    """The same for sequences of one length: q [B, Tq, H, D], k [B, Tk, G, D], v [B, Tk, G, Dv]; returns [B, Tq, H, Dv], and log
    sum exp [B, H, Tq].
    """
    batch, queries, keys = q.shape[0], q.shape[1], k.shape[1]
    ends = [size * torch.arange(batch + 1, dtype=torch.int32) for size in (queries, keys)]
    found = flash_attn_varlen_func(
        q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), ends[0], ends[1], queries, keys, dropout_p, softmax_scale, causal,
        window_size, softcap, deterministic, return_attn_probs,
    )  # fmt: skip
    if isinstance(found, torch.Tensor):
        return found.unflatten(0, (batch, queries))
    output, lse, _ = found
    return output.unflatten(0, (batch, queries)), lse.unflatten(1, (batch, queries)).transpose(0, 1), None
