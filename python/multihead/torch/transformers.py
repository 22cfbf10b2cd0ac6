"""Our attention for one model of transformers: importing this module registers the implementation "multihead"::

    import multihead.torch.transformers

    model = AutoModel.from_pretrained(name, attn_implementation="multihead")      # or model.set_attn_implementation("multihead")

Causal models with static and other caches, encoders, translators; grouped queries need no copies of K and V, T5's position bias and
Gemma's cap of scores are taken, keys of padding cost nothing. `install()` is not needed, except for torch.compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .._errors import MissingPackageError

try:
    from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
    from transformers.integrations import sdpa_attention as _sdpa
    from transformers.masking_utils import sdpa_mask
except ImportError as _error:
    raise MissingPackageError(
        "multihead.torch.transformers: transformers 4.56 or newer is not installed; `pip install -U transformers` gets it"
    ) from _error

from . import _heads, _override

NAME = "multihead"


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: torch.Tensor | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **given: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers calls: query [B, H, Tq, D], key and value [B, G, Tk, D], to [B, Tq, H, Dv].

    attention_mask: as `sdpa_mask` makes it: None, booleans or numbers that [B, H, Tq, Tk] broadcasts. Raises ValueError for what
    is not done: sinks (s_aux), and with torch.compile a cap of scores.
    """
    if s_aux is not None:
        raise ValueError('attn_implementation="multihead" has no attention sinks (s_aux); use "eager"')
    queries = query.shape[2]
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    causal = bool(is_causal) and attention_mask is None and queries > 1
    if causal and key.shape[2] > queries:  # an empty static cache: its later keys are seen by none
        key, value = key[:, :, :queries], value[:, :, :queries]
        position_bias = None if position_bias is None else position_bias[..., :queries]
    if position_bias is not None:
        attention_mask, causal = _sdpa.create_position_bias_mask(position_bias, attention_mask, causal, query, key), False
    grouped = query.shape[1] != key.shape[1]
    output = None
    if not torch.compiler.is_compiling():  # which cannot look into the kernel; what install() puts under the operator it can call
        output = _override.by_kernel(query, key, value, attention_mask, dropout, causal, scaling, softcap, grouped)
    if output is None:
        if softcap is not None:
            raise ValueError(
                f"attention with a cap of scores ({softcap:g}) runs on the CPU in float32, bfloat16 and half, not compiled"
            )
        output = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, dropout_p=dropout, is_causal=causal, scale=scaling, enable_gqa=grouped
        )
    if _heads.is_watched(module):
        scale = query.shape[3] ** -0.5 if scaling is None else scaling
        output = _heads.act(module, _heads.Attended(query, key, attention_mask, causal, scale, softcap, output))
    return output.transpose(1, 2).contiguous(), None


@contextmanager
def implementing(model: torch.nn.Module) -> Iterator[None]:
    """The models inside `model` run with this implementation; afterwards each with the one that it had."""
    parts = [one for one in model.modules() if isinstance(one, PreTrainedModel)]
    before = [one.config._attn_implementation or "eager" for one in parts]
    for one in parts:
        one.set_attn_implementation(NAME)
    try:
        yield
    finally:
        for one, name in zip(parts, before, strict=True):
            one.set_attn_implementation(name)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, sdpa_mask)  # a name without one gets no masks at all
