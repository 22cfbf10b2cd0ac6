"""What a with-block changes inside a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native
from ._listed import listed


@dataclass(frozen=True)
class At:
    """Numbers to put at a site, for some of its rows and columns; what is left out stands for all.

    Args:
        numbers: [columns], put into every row that is meant, or [rows, columns].
        sequence: which text of the batch, from 0.
        position: which token of the text, from 0.
        head: which head, from 0; the columns are then its own.
    """

    numbers: Any
    sequence: int | None = None
    position: int | None = None
    head: int | None = None


Replacement = str | At | Any


@dataclass(frozen=True)
class Change:
    """What one with-block asks for."""

    mute: tuple[str, ...]
    gate: Mapping[str, float]
    replace: Mapping[str, Replacement]


def change(mute: str | Iterable[str], gate: Mapping[str, float], replace: Mapping[str, Replacement]) -> Change:
    muted = tuple(listed(mute))
    if both := set(muted) & set(gate):
        raise ValueError(f"{sorted(both)[0]} is muted and gated; name it in one of them")
    return Change(muted, dict(gate), dict(replace))


def edits_of(changes: Iterable[Change]) -> _native.Edits | None:
    """All changes, the outer block's first; None when there are none."""
    edits: _native.Edits | None = None
    for one in changes:
        edits = edits or _native.Edits()
        for heads in one.mute:
            edits.mute(heads)
        for heads, factor in one.gate.items():
            edits.gate(heads, factor)
        for name, given in one.replace.items():
            if isinstance(given, str):
                edits.rule(name, given)
            else:
                at = given if isinstance(given, At) else At(given)
                edits.replace(name, at.numbers, sequence=at.sequence, position=at.position, head=at.head)
    return edits
