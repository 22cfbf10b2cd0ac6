"""What a model is: its kind, its heads, the places inside of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal, cast

from . import _errors, _native
from ._arguments import checked
from ._edits import Changes, edits_of, tell_unread
from ._names import Head, HeadName, head_name

Precision = Literal["same", "near", "fast"] | str


class ModelFacts:
    """What all parts of a :class:`multihead.Model` share."""

    def __init__(self, native: _native.Model, name: str) -> None:
        self._native = native
        self._name = name
        self._changes = Changes()

    @property
    def path(self) -> str:
        """The folder or file that it was read from; "demo" of the model that comes with multihead."""
        return self._native.path

    @property
    def precision(self) -> str:
        """How exactly products with weights are computed, as :func:`multihead.load` was told."""
        return self._native.precision

    @property
    def kind(self) -> Literal["encoder", "causal", "translator"]:
        return cast(Literal["encoder", "causal", "translator"], self._native.kind)

    @property
    def model_type(self) -> str:
        """The family: "bert", "gpt2", "llama", "marian", ..."""
        return self._native.model_type

    @property
    def parameter_count(self) -> int:
        return self._native.parameter_count

    @property
    def d_model(self) -> int:
        """Numbers of a token's state."""
        return self._native.d_model

    @property
    def longest(self) -> int:
        """Tokens that it reads at most."""
        return self._native.longest

    @property
    def heads(self) -> list[Head]:
        """All heads, in the order of the model."""
        found = []
        for attention, heads, key_heads, _, d_key, d_value in self._native.attentions:
            layer = int(attention.split(".")[1])
            for number in range(heads):
                key_head = number * key_heads // heads
                found.append(Head(f"{attention}.{number}", attention, number, layer, key_head, d_key, d_value))
        return found

    @checked
    def heads_named(self, pattern: HeadName) -> list[str]:
        """The heads that a name or a pattern stands for (``*``: any characters). Raises UsageError when there are none."""
        return self._native.heads_named(head_name(pattern))

    @property
    def sites(self) -> dict[str, int]:
        """The places whose values can be seen and changed (docs/sites.md), and their columns; 0: as many as there are keys."""
        return dict(self._native.sites)

    @property
    def can(self) -> tuple[str, ...]:
        """What this model does with a text. Nothing where its files have no tokenizer."""
        if not self._native.tokenizes:
            return ()
        return (*self._tasks(), "tokenize", "observe", "gradient")

    def _tasks(self) -> tuple[str, ...]:
        """What a model of this kind does, whether or not it has a tokenizer."""
        tasks = {
            "translate": self.kind == "translator",
            "generate": self.kind == "causal" and self._native.predicts,
            "score": self.kind != "encoder" and self._native.predicts,
            "fill": self.kind == "encoder" and self._native.predicts,
            "classify": bool(self._native.labels),
            "embed": self._native.embeds,
            "next": self._native.predicts,
        }
        return tuple(task for task, possible in tasks.items() if possible)

    def _need(self, task: str) -> None:
        if task not in self._tasks():
            kind = {"encoder": "an encoder", "causal": "a causal model", "translator": "a translator"}[self.kind]
            words = "" if self._native.predicts else " that predicts no words"
            what = "say the next token" if task == "next" else task
            raise _errors.UsageError(f"{self._name} cannot {what}: it is {kind}{words}; it can {self._can_words()}")

    def __repr__(self) -> str:
        precision = "" if self.precision == "same" else f", precision {self.precision}"
        return (
            f"<{self.model_type} {self._name!r}: {self.kind}, {self.parameter_count:,} parameters, {len(self.heads)} heads"
            f"{precision}; can {self._can_words()}>"
        )

    def _can_words(self) -> str:
        return ", ".join(self.can) or "read no text, since its files have no tokenizer"

    def _edits(self) -> _native.Edits | None:
        """The edits of this moment."""
        return edits_of(self._changes.now())

    @contextlib.contextmanager
    def _edited(self) -> Iterator[_native.Edits | None]:
        """The same for a block that runs the model; behind it a remark on what nothing in the model met."""
        edits = self._edits()
        yield edits
        tell_unread(edits)
