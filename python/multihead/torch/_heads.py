"""Heads of a model of transformers while it runs: their weights, muting, gates, importance, patching.

All act between softmax(Q K^T) V and the product with W^O, where the numbers of each head still stand apart: in the function that
transformers calls for attention (multihead.torch.transformers). Each function is a context: what it changes ends with the block.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

Head = tuple[int | str, int]
"""A layer, by its number in `layers(model)` or its name there, and the number of one of its heads."""

_ACTIONS = "_multihead_actions"  # an attribute of a module of attention: what is done to its heads


@dataclass
class Attended:
    """What a module of attention computes in one call."""

    q: torch.Tensor  # [B, H, Tq, D]
    k: torch.Tensor  # [B, G, Tk, D], G divides H
    mask: torch.Tensor | None  # booleans or numbers that [B, H, Tq, Tk] broadcasts
    causal: bool
    scale: float
    soft_cap: float | None
    output: torch.Tensor  # [B, H, Tq, Dv]
    name: str = ""  # of the module, in the model

    def check(self, head: int) -> int:
        heads = self.q.shape[1]
        if not 0 <= head < heads:
            raise IndexError(f"{self.name} has {heads} heads, 0 to {heads - 1}; there is no head {head}")
        return head

    def weights(self, head: int) -> torch.Tensor:
        """softmax(scale Q K^T) [B, Tq, Tk], without dropout; a query that sees nothing has zeros."""
        group = head * self.k.shape[1] // self.q.shape[1]
        scores = self.scale * (self.q[:, head] @ self.k[:, group].mT)
        if self.soft_cap is not None:
            scores = self.soft_cap * torch.tanh(scores / self.soft_cap)
        if self.causal:
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~seen, -torch.inf)
        if self.mask is not None:
            whole = self.mask.expand(self.q.shape[0], self.q.shape[1], *scores.shape[-2:])[:, head]
            scores = scores.masked_fill(~whole, -torch.inf) if whole.dtype is torch.bool else scores + whole
        return scores.softmax(-1).nan_to_num(0.0)


Action = Callable[[Attended], torch.Tensor]
"""Returns the output that takes the place of that of a call."""


def is_watched(module: torch.nn.Module) -> bool:
    """Whether something is to be done to the heads of a module."""
    return hasattr(module, _ACTIONS)


def act(module: torch.nn.Module, attended: Attended) -> torch.Tensor:
    """Does it, in the order in which it was asked for; returns the output."""
    for name, action in getattr(module, _ACTIONS, ()):
        attended.name = name
        attended.output = action(attended)
    return attended.output


def _modules(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Those that call the attention that the model's configuration names, in the model's order."""
    found = {}
    for name, module in model.named_modules():
        code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
        if code is not None and "ALL_ATTENTION_FUNCTIONS" in code.co_names:
            found[name] = module
    if not found:
        raise ValueError(f"{type(model).__name__} has no layers of attention that transformers' AttentionInterface reaches")
    return found


def layers(model: torch.nn.Module) -> list[str]:
    """The names of a model's layers of attention, in the order of `model.named_modules()`; layer n is the n-th.

    In a translator encoder, decoder and cross-attention each have theirs. Raises ValueError for a model without any.
    """
    return list(_modules(model))


def _grouped(model: torch.nn.Module, heads: Iterable[Head]) -> dict[str, list[tuple[Head, int]]]:
    """Heads as they were given, with their numbers, by the names of their layers. Raises IndexError and KeyError for others."""
    names = layers(model)
    groups: dict[str, list[tuple[Head, int]]] = {}
    for layer, head in heads:
        if isinstance(layer, str):
            if layer not in names:
                raise KeyError(f"no layer of attention is called {layer!r}; they are {names[0]} ... {names[-1]}")
            name = layer
        elif 0 <= layer < len(names):
            name = names[layer]
        else:
            raise IndexError(f"there are {len(names)} layers of attention, 0 to {len(names) - 1}; there is no layer {layer}")
        groups.setdefault(name, []).append(((layer, head), head))
    return groups


@contextmanager
def _acting(model: torch.nn.Module, actions: Mapping[str, Action]) -> Iterator[None]:
    """Does these, by the names of their layers, and sees to it that the model calls us for its attention."""
    from . import transformers  # registers "multihead"

    modules = _modules(model)
    with transformers.implementing(model):
        for name in actions:
            config: Any = modules[name].config
            if config._attn_implementation != transformers.NAME:
                raise ValueError(f"{type(model).__name__} does not let {name} run with another implementation of attention")
        added = {name: (name, action) for name, action in actions.items()}
        for name, one in added.items():
            setattr(modules[name], _ACTIONS, (*getattr(modules[name], _ACTIONS, ()), one))
        try:
            yield
        finally:
            for name, one in added.items():
                left = tuple(other for other in getattr(modules[name], _ACTIONS) if other is not one)
                setattr(modules[name], _ACTIONS, left)
                if not left:
                    delattr(modules[name], _ACTIONS)


@contextmanager
def _keeping(
    model: torch.nn.Module, heads: Iterable[Head], read: Callable[[Attended, int], torch.Tensor]
) -> Iterator[dict[Head, torch.Tensor]]:
    """What `read` makes of each of these heads in the last call of the model."""
    kept: dict[Head, torch.Tensor] = {}

    def keep(chosen: list[tuple[Head, int]]) -> Action:
        def action(attended: Attended) -> torch.Tensor:
            for key, head in chosen:
                kept[key] = read(attended, attended.check(head))
            return attended.output

        return action

    with _acting(model, {name: keep(chosen) for name, chosen in _grouped(model, heads).items()}):
        yield kept


@contextmanager
def weights(model: torch.nn.Module, heads: Iterable[Head]) -> Iterator[dict[Head, torch.Tensor]]:
    """The attention weights of chosen heads, [B, Tq, Tk] each, of the model's last call in the block; others stay fused.

    ::

        with multihead.torch.weights(model, [(0, 3), (5, 1)]) as seen:
            model(**inputs)
        seen[0, 3]      # how much each query of layer 0, head 3 attends to each key; rows add up to 1

    They are those before dropout, and have gradients where the model's outputs have. A decoder with a cache has Tk keys and,
    from its second step on, one query. Raises IndexError or KeyError for heads that do not exist.
    """
    with _keeping(model, heads, Attended.weights) as seen:
        yield seen


@contextmanager
def outputs(model: torch.nn.Module, heads: Iterable[Head]) -> Iterator[dict[Head, torch.Tensor]]:
    """What chosen heads give to W^O, [B, Tq, Dv] each, of the last call of the model in the block; `patch` takes it."""
    with _keeping(model, heads, lambda attended, head: attended.output[:, head]) as kept:
        yield kept


@contextmanager
def patch(model: torch.nn.Module, values: Mapping[Head, torch.Tensor]) -> Iterator[None]:
    """Puts values in the place of what heads give to W^O; each broadcasts to [B, Tq, Dv], such as `outputs` of another text.

    ::

        with multihead.torch.outputs(model, [(5, 1)]) as kept:
            model(**clean)
        with multihead.torch.patch(model, kept):
            model(**corrupted)

    Raises ValueError for values of another shape.
    """

    def put(chosen: list[tuple[Head, int]]) -> Action:
        def action(attended: Attended) -> torch.Tensor:
            output = attended.output.clone()
            for key, head in chosen:
                place = output[:, attended.check(head)]
                try:
                    value = values[key].expand(place.shape)
                except RuntimeError:
                    raise ValueError(
                        f"{attended.name}, head {head}: values {list(values[key].shape)} do not fit its output {list(place.shape)}"
                    ) from None
                output[:, head] = value
            return output

        return action

    with _acting(model, {name: put(chosen) for name, chosen in _grouped(model, values).items()}):
        yield


@contextmanager
def mute(model: torch.nn.Module, heads: Iterable[Head]) -> Iterator[None]:
    """Heads that give nothing: zeros take the place of their part of what W^O reads.

    ::

        with multihead.torch.mute(model, [(0, 3), (5, 1)]):
            loss_without = model(**inputs).loss
    """
    chosen = list(heads)
    with patch(model, {head: torch.zeros(()) for head in chosen}):
        yield


@contextmanager
def gates(model: torch.nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """A factor for what each head gives to W^O: [H] ones that need gradients, by the names of their layers, once these have run.

    After a backward pass `gates[name].grad` says how the loss changes with each head. They can be set between two calls, without
    gradients: 0 mutes a head.
    """
    made: dict[str, torch.Tensor] = {}

    def action(attended: Attended) -> torch.Tensor:
        if attended.name not in made:
            made[attended.name] = torch.ones(attended.q.shape[1], device=attended.q.device, requires_grad=True)
        return attended.output * made[attended.name].to(attended.output.dtype)[None, :, None, None]

    with _acting(model, dict.fromkeys(layers(model), action)):
        yield made


def importance(
    model: torch.nn.Module, batches: Iterable[Mapping[str, Any]], loss: Callable[[Any], torch.Tensor] | None = None
) -> dict[str, torch.Tensor]:
    """How much each head matters: the mean of |d loss / d gate| over batches, [H] by layers' names (Michel et al. 2019, eq. 2).

    batches: arguments of the model, one text each for the paper's measure. loss: of what the model returns; None: its `.loss`,
    so batches need labels. Parameters get no gradients; the model's mode (train or eval) stays as it is. Raises ValueError
    without batches.
    """
    sums: dict[str, torch.Tensor] = {}
    count = 0
    with gates(model) as made:
        for batch in batches:
            result = model(**batch)
            value = result.loss if loss is None else loss(result)
            if value is None:
                raise ValueError("importance: the model returned no loss; give labels in the batches, or `loss`")
            names = list(made)
            gradients = torch.autograd.grad(value, [made[name] for name in names], allow_unused=True)
            for name, gradient in zip(names, gradients, strict=True):
                size = torch.zeros_like(made[name]) if gradient is None else gradient.abs()
                sums[name] = sums[name] + size if name in sums else size
            count += 1
    if count == 0:
        raise ValueError("importance: there are no batches")
    return {name: sums[name] / count for name in layers(model) if name in sums}
