"""torch.nn.attention.varlen.varlen_attn on the CPU, in float32: torch has no kernel there. Only the CPU's empty place of its two
operators is filled; nothing is overridden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .. import _native
from ._kernel import place

_OPERATORS = ("_flash_attention_forward", "_flash_attention_backward")
Ragged = tuple[int, int, int]


def _packed(tensor: torch.Tensor) -> Any:
    """[N, heads, size] as the kernel takes it, [1, heads, N, size]."""
    return place(tensor.unsqueeze(0).transpose(1, 2))


def _offsets(name: str, given: torch.Tensor | None, rows: int, longest: int) -> torch.Tensor:
    """[S + 1] int32: where sequences begin, and the end of the last."""
    if given is None or given.dim() != 1 or given.dtype is not torch.int32 or not given.is_cpu or given.numel() < 2:
        raise ValueError(f"varlen_attn on the CPU: {name} has to be an int32 tensor [number of sequences + 1] on the CPU")
    lengths = given.diff()
    if int(given[0]) != 0 or int(given[-1]) != rows or int(lengths.min()) < 0:
        raise ValueError(f"varlen_attn: {name} has to begin with 0, never fall, and end with the {rows} rows that there are")
    if int(lengths.max()) > longest:
        raise ValueError(
            f"varlen_attn: a sequence of {name} has {int(lengths.max())} tokens, and the longest is said to have {longest}"
        )
    return given.contiguous()


def _ragged(
    query: torch.Tensor, key: torch.Tensor, cum_seq_q: torch.Tensor | None, cum_seq_k: torch.Tensor | None, max_q: int, max_k: int
) -> tuple[Ragged, tuple[torch.Tensor, torch.Tensor]]:
    """What the kernel takes, and the tensors that have to live until it returns."""
    of_q, of_k = _offsets("cu_seq_q", cum_seq_q, query.shape[0], max_q), _offsets("cu_seq_k", cum_seq_k, key.shape[0], max_k)
    if of_q.numel() != of_k.numel():
        raise ValueError(f"varlen_attn: cu_seq_q has {of_q.numel() - 1} sequences and cu_seq_k {of_k.numel() - 1}")
    return (of_q.data_ptr(), of_k.data_ptr(), of_q.numel() - 1), (of_q, of_k)


def window_of(causal: bool, left: int | None, right: int | None) -> tuple[int, int] | None:
    """Keys that a query sees before and after its own, as flash attention counts: from the ends of the sequences; -1: all."""
    left, right = (-1 if left is None else left), (-1 if right is None else right)
    if causal:
        right = 0
    if left < 0 and right < 0:
        return None
    everything = 2**31 - 1
    return (everything if left < 0 else left), (everything if right < 0 else right)


def _check(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout_p: float, **refused: Any) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dtype is not torch.float32 or tensor.dim() != 3:
            raise ValueError(
                f"varlen_attn on the CPU: {name} has to be float32 [tokens, heads, size], not {tensor.dtype} {[*tensor.shape]}"
            )
    if dropout_p:
        raise ValueError("varlen_attn on the CPU has no dropout")
    for name, given in refused.items():
        if given is not None:
            raise ValueError(f"varlen_attn on the CPU does not take {name}")


@dataclass(frozen=True)
class Packed:
    """Attention over sequences that lie end to end: q [Nq, H, D], k [Nk, G, D], v [Nk, G, Dv], float32."""

    cu_seq_q: torch.Tensor | None  # [S + 1] int32, where the sequences of q begin, and the end of the last
    cu_seq_k: torch.Tensor | None
    max_q: int
    max_k: int
    scale: float | None = None  # None: 1 / sqrt(D)
    window: tuple[int, int] | None = None
    soft_cap: float | None = None

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The output [Nq, H, Dv], and log sum exp of the scores [Nq, H]."""
        ragged, _held = _ragged(q, k, self.cu_seq_q, self.cu_seq_k, self.max_q, self.max_k)
        output, lse = q.new_empty(*q.shape[:2], v.shape[2]), q.new_empty(q.shape[:2])
        if q.shape[0]:
            _native.torch_attention(
                _packed(q), _packed(k), _packed(v), _packed(output), lse.data_ptr(), None, None, False,
                self._factor(q), 0.0, 0, self.soft_cap, ragged, self.window,
            )  # fmt: skip
        return output, lse

    def backward(
        self, d_output: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, output: torch.Tensor, lse: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The gradients of q, k and v."""
        ragged, _held = _ragged(q, k, self.cu_seq_q, self.cu_seq_k, self.max_q, self.max_k)
        d_q, d_k, d_v = (torch.zeros(one.shape) for one in (q, k, v))
        if q.shape[0]:
            _native.torch_attention_backward(
                _packed(q), _packed(k), _packed(v), _packed(output), lse.data_ptr(), _packed(d_output), _packed(d_q), _packed(d_k),
                _packed(d_v), None, None, None, False, self._factor(q), 0.0, 0, self.soft_cap, ragged, self.window,
            )  # fmt: skip
        return d_q, d_k, d_v

    def _factor(self, q: torch.Tensor) -> float:
        return q.shape[2] ** -0.5 if self.scale is None else self.scale


def _forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, cum_seq_q: torch.Tensor | None, cum_seq_k: torch.Tensor | None,
    max_q: int, max_k: int, dropout_p: float, is_causal: bool, return_debug_mask: bool, *, scale: float | None = None,
    window_size_left: int | None = None, window_size_right: int | None = None, seqused_k: torch.Tensor | None = None,
    alibi_slopes: torch.Tensor | None = None, block_table: torch.Tensor | None = None, num_splits: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The output [Nq, H, Dv], and log sum exp of the scores [H, Nq]."""
    _check(query, key, value, dropout_p, seqused_k=seqused_k, alibi_slopes=alibi_slopes, block_table=block_table)
    window = window_of(is_causal, window_size_left, window_size_right)
    output, lse = Packed(cum_seq_q, cum_seq_k, max_q, max_k, scale, window).forward(query, key, value)
    nothing = query.new_empty(0)
    return output, lse.t().contiguous(), nothing, nothing, nothing


def _backward(
    grad_out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor, logsumexp: torch.Tensor,
    cum_seq_q: torch.Tensor, cum_seq_k: torch.Tensor, max_q: int, max_k: int, dropout_p: float, is_causal: bool,
    rng_state: torch.Tensor, unused: torch.Tensor, *, scale: float | None = None, window_size_left: int | None = None,
    window_size_right: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    _check(query, key, value, dropout_p)
    packed = Packed(cum_seq_q, cum_seq_k, max_q, max_k, scale, window_of(is_causal, window_size_left, window_size_right))
    return packed.backward(grad_out, query, key, value, out, logsumexp.t().contiguous())


def free() -> bool:
    """Whether torch still has nothing there; a version that has is left alone."""
    return not any(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CPU") for name in _OPERATORS)


def put_into(library: torch.library.Library) -> None:
    for name, function in zip(_OPERATORS, (_forward, _backward), strict=True):
        library.impl(name, function, "CPU")
