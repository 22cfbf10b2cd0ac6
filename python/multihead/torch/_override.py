"""Which calls of torch's scaled_dot_product_attention are computed here, and putting that under the operator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import torch
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from .. import _native
from . import _ops, _varlen

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_TRACED = (*_PLAIN, FakeTensor, FunctionalTensor)
_CONVERTED = (torch.bfloat16, torch.float16)
_LARGEST_HEAD = 1024  # numbers of a head that the kernel takes
_MOST_HEADS = 65535
_LARGEST_STRIDE = 2**24  # of a bias, that the kernel takes
# Below it a bias leaves float32 too few digits for log sum exp, from which the backward pass computes the weights again.
_LEAST_BIAS = -20000.0

_operator = torch.ops.aten.scaled_dot_product_attention.default


def _by_torch(*args: Any, **given: Any) -> torch.Tensor:
    output: torch.Tensor = _operator._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **given)
    return output


def _watched() -> bool:
    """Whether someone looks on for whom the kernel is not there: a trace of torch.jit, torch.export, vmap and its like; or
    sdpa_kernel() excludes fused kernels.
    """
    return (
        torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or not torch._C._get_flash_sdp_enabled()
        or torch.compiler.is_exporting()
    )


def _shapes_fit(q: torch.Size, k: torch.Size, v: torch.Size, enable_gqa: bool) -> bool:
    """[B, H, Tq, D], [B, G, Tk, D], [B, G, Tk, Dv], and none of them empty."""
    batch, heads, queries, d_key = q
    of_keys, key_heads, keys, key_size = k
    of_values, value_heads, values, d_value = v
    if not (of_keys == batch == of_values and key_heads == value_heads and keys == values and key_size == d_key):
        return False
    if key_heads != heads and (not enable_gqa or key_heads == 0 or heads % key_heads != 0):
        return False
    return (
        batch > 0
        and queries > 0
        and keys > 0
        and 0 < heads <= _MOST_HEADS
        and 0 < d_key <= _LARGEST_HEAD
        and 0 < d_value <= _LARGEST_HEAD
        and batch * max(queries, keys) < 2**31
    )


_known_shapes_fit = lru_cache(maxsize=4096)(_shapes_fit)  # 1.5 us less a call; sizes that a compiler leaves open have no hash


def _mask_for_kernel(mask: torch.Tensor, q: torch.Tensor, k: torch.Tensor, wants_gradient: bool) -> torch.Tensor | None:
    """The mask as the kernel takes it, [B, H, Tq, Tk]; None if it does not."""
    shape = [q.shape[0], q.shape[1], q.shape[2], k.shape[2]]
    if (
        mask.dim() > 4
        or not mask.is_cpu
        or any(size not in (1, full) for size, full in zip(reversed(mask.shape), reversed(shape), strict=False))
    ):
        return None
    if mask.dtype is torch.bool:
        expanded = mask.expand(shape)
        return expanded if expanded.stride(1) == 0 or shape[2] * shape[3] <= _LARGEST_STRIDE else None
    if mask.dtype is not q.dtype:
        return None
    if wants_gradient and not _keeps_digits(mask):
        return None
    mask = mask.float()
    if mask.dim() == 0 or mask.shape[-1] != shape[3] or mask.stride(-1) != 1 or (mask.dim() > 1 and mask.stride(-2) < shape[3]):
        mask = mask.expand([*mask.shape[:-1], shape[3]]).contiguous()
    expanded = mask.expand(shape)
    return expanded if max(expanded.stride()) <= _LARGEST_STRIDE or expanded.is_contiguous() else None


def _keeps_digits(mask: torch.Tensor) -> bool:
    """Whether no query has all its keys at numbers below _LEAST_BIAS that are not -infinity."""
    if type(mask) not in _PLAIN:
        return False  # its numbers are not known while a program is compiled
    largest = mask.detach().amax(-1)
    return not bool(((largest < _LEAST_BIAS) & (largest > -torch.inf)).any())


class _Wish(threading.local):
    """For whom a thread's next call leaves its weights [B, H, Tq, Tk]."""

    holder: list[torch.Tensor] | None = None


_wish = _Wish()
_AT_MOST_BY_PLACE = 13  # arguments before `training`, as nn.MultiheadAttention gives them
_DROPOUT = 10  # the place of dropout_p


def _with_weights(by_torch: Callable[..., Any]) -> Callable[..., Any]:
    """F.multi_head_attention_forward, which projects and calls scaled_dot_product_attention; weights come from that call.

    With dropout torch returns the weights after it, so torch computes them; compilers see torch's code, too.
    """

    @wraps(by_torch)
    def multi_head_attention_forward(*args: Any, **given: Any) -> Any:
        usual = len(args) == _AT_MOST_BY_PLACE and given.get("need_weights", True)
        drops = usual and args[_DROPOUT] > 0 and given.get("training", True)
        if not usual or drops or _installed is None or torch.compiler.is_compiling() or _watched():
            return by_torch(*args, **given)
        found: list[torch.Tensor] = []
        _wish.holder = found
        try:
            output, _ = by_torch(*args, **{**given, "need_weights": False})
        finally:
            _wish.holder = None
        if not found:  # the kernel did not apply
            return by_torch(*args, **given)
        weights = found[0].mean(1) if given.get("average_attn_weights", True) else found[0]
        return output, weights.squeeze(0) if output.dim() == 2 else weights

    return multi_head_attention_forward


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention by our kernel, or by torch's own code where ours does not apply."""
    output = by_kernel(query, key, value, attn_mask, dropout_p, is_causal, scale, None, enable_gqa)
    if output is None:
        return _by_torch(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return output


def by_kernel(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    soft_cap: float | None,
    enable_gqa: bool,
) -> torch.Tensor | None:
    """The output; None where the kernel does not apply."""
    dtype, axes = q.dtype, q.dim()
    if (dtype is not torch.float32 and dtype not in _CONVERTED) or k.dtype is not dtype or v.dtype is not dtype:
        return None
    traced = torch._C._len_torch_dispatch_stack() > 0
    kinds = _TRACED if traced else _PLAIN
    if type(q) not in kinds or type(k) not in kinds or type(v) not in kinds or (mask is not None and type(mask) not in kinds):
        return None
    if axes not in (3, 4) or k.dim() != axes or v.dim() != axes or not (k.is_cpu and v.is_cpu) or not 0 <= dropout < 0.999:
        return None
    if (mask is not None and causal) or _watched():
        return None
    if axes == 3:  # [B, T, size]: one head
        q, k, v = q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)
        mask = mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask
    if not (_shapes_fit if traced else _known_shapes_fit)(q.shape, k.shape, v.shape, enable_gqa):
        return None
    if mask is not None:
        wants_gradient = torch.is_grad_enabled() and any(one.requires_grad for one in (q, k, v, mask))
        mask = _mask_for_kernel(mask, q, k, wants_gradient)
        if mask is None:
            return None
    if _wish.holder is not None and not traced and dtype is torch.float32 and dropout == 0:
        output, weights = _ops.attention_and_weights(q, k, v, mask, causal, scale)
        _wish.holder.append(weights)
    elif dtype is torch.float32:
        output = _ops.attention(q, k, v, mask, causal, scale, soft_cap, dropout, traced)
    else:
        output = _ops.attention(q.float(), k.float(), v.float(), mask, causal, scale, soft_cap, dropout, traced).to(dtype)
    return output.squeeze(1) if axes == 3 else output


_installed: torch.library.Library | None = None
_replaced: list[Callable[..., Any]] = []  # torch's function for nn.MultiheadAttention, while ours is in its place


def installed() -> bool:
    return _installed is not None


def install() -> None:
    global _installed
    if _installed is not None:
        return
    _native.set_threads(torch.get_num_threads())
    # torch's threads spin for some milliseconds after its own loops: ours would compete with them.
    _native.use_openmp_threads(True)
    library = torch.library.Library("aten", "IMPL")
    for key in ("CPU", "AutogradCPU"):
        library.impl("scaled_dot_product_attention", scaled_dot_product_attention, key, allow_override=True)
    if _varlen.free():
        _varlen.put_into(library)
    _replaced.append(torch.nn.functional.multi_head_attention_forward)
    torch.nn.functional.multi_head_attention_forward = _with_weights(_replaced[0])
    _installed = library


def uninstall() -> None:
    global _installed
    if _installed is None:
        return
    _installed._destroy()
    before = _replaced.pop()
    if getattr(torch.nn.functional.multi_head_attention_forward, "__wrapped__", None) is before:
        torch.nn.functional.multi_head_attention_forward = before  # and not where another program has put its own over ours
    _installed = None
    _native.use_openmp_threads(False)
