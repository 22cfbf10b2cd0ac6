"""What a with-block changes inside a model."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _native
from ._arguments import checked
from ._errors import UsageError
from ._names import HeadName, HeadNames, head_name, listed
from ._remarks import remark
from ._steering import Direction


@dataclass(frozen=True)
class At:
    """Numbers to put or to add at a site, for some of its rows and columns; what is left out stands for all.

    Args:
        numbers: [columns], for every row that is meant, or [rows, columns].
        sequence: which text of the batch, from 0.
        position: which token of the text, from 0.
        head: which head, from 0; the columns are then its own.
        strength: what the numbers are multiplied by where they are added.
    """

    numbers: Any
    sequence: int | None = None
    position: int | None = None
    head: int | None = None
    strength: float = 1.0


Replacement = str | At | Callable[[Any], Any] | Any
Addition = At | Any  # of a direction its strength


class Change:
    """What one with-block asks for; equal to itself alone."""

    def __init__(
        self,
        mute: HeadNames,
        gate: Mapping[HeadName, float],
        replace: Mapping[HeadName, Replacement],
        add: Mapping[HeadName | Direction, Addition],
    ) -> None:
        self.mute = listed(mute, "mute")
        self.gate = {head_name(head): factor for head, factor in gate.items()}
        self.replace = {head_name(name): given for name, given in replace.items()}
        self.add = {name if isinstance(name, Direction) else head_name(name): given for name, given in add.items()}
        self.over = False  # ended where it could not be taken away
        if both := set(self.mute) & set(self.gate):
            raise UsageError(f"{sorted(both)[0]} is muted and gated; name it in one of them")


class Changes:
    """Those of the blocks that are open in this thread (or task), the outer one first. Blocks may end in any order."""

    def __init__(self) -> None:
        self._open: contextvars.ContextVar[tuple[Change, ...]] = contextvars.ContextVar("changes", default=())

    def now(self) -> list[Change]:
        return [change for change in self._open.get() if not change.over]

    def begin(self, change: Change) -> None:
        self._open.set((*self.now(), change))

    def end(self, change: Change) -> None:
        inside = self._open.get()
        change.over = change not in inside  # a generator that another thread throws away: then nowhere any more
        self._open.set(tuple(one for one in inside if one is not change and not one.over))


def _put(change: Callable[..., None], name: str, given: Any) -> None:
    """change: `replace` or `add` of native edits."""
    at = given if isinstance(given, At) else At(given)
    _put_at(change, name, at.numbers, sequence=at.sequence, position=at.position, head=at.head, strength=at.strength)


@checked
def _put_at(
    change: Callable[..., None],
    name: str,
    numbers: Any,
    *,
    sequence: int | None,
    position: int | None,
    head: int | None,
    strength: float,
) -> None:
    change(name, numbers, sequence=sequence, position=position, head=head, strength=strength)


@checked
def _steer(edits: _native.Edits, direction: Direction, strength: float) -> None:
    edits.steer(direction._native, strength)


def edits_of(changes: Sequence[Change]) -> _native.Edits | None:
    """All changes, the outer block's first; None when there are none."""
    edits: _native.Edits | None = None
    for one in changes:
        edits = edits or _native.Edits()
        for heads in one.mute:
            if len(changes) == 1:
                edits.mute(heads)
            else:  # of gates the last one counts; the same head muted and gated by one block was refused when it began
                edits.gate(heads, 0.0)
        for heads, factor in one.gate.items():
            edits.gate(heads, factor)
        for name, given in one.replace.items():
            if isinstance(given, str):
                edits.rule(name, given)
            elif callable(given):
                edits.function(name, given)
            else:
                _put(edits.replace, name, given)
        for where, added in one.add.items():
            if isinstance(where, Direction):
                strength: Any = added
                _steer(edits, where, strength)
            else:
                _put(edits.add, where, added)
    return edits


def tell_unread(edits: _native.Edits | None) -> None:
    """Remarks on edits that nothing met: of a position that no text has, of a part of the model that did not run."""
    for line in [] if edits is None else edits.unread():
        remark(line)
