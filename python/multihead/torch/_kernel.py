"""Our kernel on tensors of torch in the memory of the CPU. All are float32 [B, heads, T, size]; masks are [B, H, Tq, Tk]."""

from __future__ import annotations

import torch

from .. import _native

Place = tuple[int, torch.Size, tuple[int, ...]]


def place(tensor: torch.Tensor) -> Place:
    return tensor.data_ptr(), tensor.shape, tensor.stride()


def like(tensor: torch.Tensor) -> torch.Tensor:
    """Room for as many numbers, in the same order of axes, but with the numbers of a head side by side."""
    if tensor.stride(-1) == 1:
        return torch.empty_like(tensor)
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def room_for_output(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """[B, H, Tq, Dv]; in the order of the axes of q, as torch's own kernel has it."""
    if q.shape[3] == v.shape[3]:
        return like(q)
    return q.new_empty(q.shape[0], q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)


def places_of_mask(mask: torch.Tensor) -> tuple[Place | None, Place | None]:
    """(booleans, numbers that are added)."""
    return (place(mask), None) if mask.dtype is torch.bool else (None, place(mask))


def forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float | None,
    soft_cap: float | None,
    dropout: float,
    seed: torch.Tensor | None,
    wants_lse: bool = True,
    weights: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The output [B, H, Tq, Dv], and log sum exp of the scores [B, H, Tq] for the backward pass.

    mask: [B, H, Tq, Tk], booleans, true where the query may see the key, or float32 numbers that are added to the scores and
    whose last axis has a stride of 1. Axes that it repeats have a stride of 0.
    seed: a whole number below 2^63, where there is dropout. weights: room for those before dropout, [B, H, Tq, Tk], end to end.
    """
    to_q, to_v = place(q), place(v)
    shape = to_q[1]
    # As room_for_output(), which asks torch for shapes again: half a microsecond.
    output = torch.empty_like(q) if shape[3] == to_v[1][3] and to_q[2][3] == 1 else room_for_output(q, v)
    lse = q.new_empty(shape[:3]) if wants_lse else None
    visible, bias = (None, None) if mask is None else places_of_mask(mask)
    _native.torch_attention(
        to_q, place(k), to_v, place(output), None if lse is None else lse.data_ptr(), visible, bias, causal,
        shape[3] ** -0.5 if scale is None else scale, dropout, 0 if seed is None else int(seed), soft_cap,
        weights=None if weights is None else weights.data_ptr(),
    )  # fmt: skip
    return output, lse


def backward(
    d_output: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    output: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float | None,
    soft_cap: float | None,
    dropout: float,
    seed: torch.Tensor | None,
    wants_d_mask: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of q, k, v and the mask [B, H, Tq, Tk]; that of the mask is empty where it is not wanted."""
    d_q, d_k, d_v = like(q), like(k), like(v)
    d_mask = room_for_d_mask(q, k, wants_d_mask)
    visible, bias = (None, None) if mask is None else places_of_mask(mask)
    _native.torch_attention_backward(
        place(q), place(k), place(v), place(output), lse.data_ptr(), place(d_output), place(d_q), place(d_k), place(d_v),
        d_mask.data_ptr() if wants_d_mask else None, visible, bias, causal,
        q.shape[3] ** -0.5 if scale is None else scale, dropout, 0 if seed is None else int(seed), soft_cap,
    )  # fmt: skip
    return d_q, d_k, d_v, d_mask


def room_for_d_mask(q: torch.Tensor, k: torch.Tensor, wanted: bool) -> torch.Tensor:
    return q.new_empty([*q.shape[:3], k.shape[2]] if wanted else [0])
