"""What is inside a model: seen, changed and differentiated."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, overload

from . import _errors, _native
from ._edits import Replacement, change, edits_of
from ._facts import ModelFacts
from ._listed import listed
from ._observation import Gradients, Observation

if TYPE_CHECKING:
    from typing import Self


class Inside(ModelFacts):
    """Values at sites of a model."""

    @contextlib.contextmanager
    def edit(
        self,
        *,
        mute: str | Iterable[str] = (),
        gate: Mapping[str, float] | None = None,
        replace: Mapping[str, Replacement] | None = None,
    ) -> Iterator[Self]:
        """Changes what happens inside the model while the block runs, in this thread.

        ::

            with model.edit(mute="encoder.3.self_attention.1"):
                changed = model.embed(text)

        Args:
            mute: names or patterns of heads whose output becomes 0: "encoder.3.self_attention.*".
            gate: a factor for the output of heads, by name or pattern.
            replace: by name or pattern of heads a rule for their weights, "uniform", "previous" or "first"; or by the name of a
                site numbers to put there, an array or an :class:`At`.

        Blocks may be nested; where both speak of a head the inner one counts. Raises UsageError on names that the model does not
        have, before anything runs.
        """
        changes = (*self._changes.get(), change(mute, gate or {}, replace or {}))
        if (edits := edits_of(changes)) is not None:
            edits.check(self._native)
        token = self._changes.set(changes)
        try:
            yield self
        finally:
            self._changes.reset(token)

    @overload
    def observe(  # type: ignore[overload-overlap]
        self, texts: str, *, sites: str | Iterable[str] = ..., target: str = ..., pair: str | None = ...
    ) -> Observation: ...
    @overload
    def observe(self, texts: Iterable[str], *, sites: str | Iterable[str] = ...) -> Iterator[Observation]: ...
    def observe(
        self,
        texts: str | Iterable[str],
        *,
        sites: str | Iterable[str] = "*.weights.*",
        target: str = "",
        pair: str | None = None,
    ) -> Observation | Iterator[Observation]:
        """What the model has inside while it reads a text: the values at sites, with the tokens that they belong to.

        ::

            seen = model.observe("two dogs run .")
            seen.weights("encoder.0.self_attention.1")              # [queries, keys]
            seen = model.observe(text, sites=["*.queries", "*.states"])

        Args:
            texts: a text; of a list an iterator gives an observation for each in turn, of which a few are in memory at a time.
            sites: names or patterns of `model.sites`; docs/sites.md lists them with their shapes.
            target: of a translator what its decoder reads; without: the greedy translation.
            pair: a second text, which an encoder reads as one sequence with it.
        """
        patterns = listed(sites)
        if isinstance(texts, str):
            seen = self._native.observe(texts, target=target, pair=pair, sites=patterns, edits=self._edits())
            return Observation(seen)
        if target or pair is not None:
            raise _errors.UsageError("`target` and `pair` are of a single text; observe one text at a time")
        return self._observations(texts, patterns)

    def _observations(self, texts: Iterable[str], patterns: list[str]) -> Iterator[Observation]:
        at_once = 2 * _native.threads()
        edits = self._edits()
        block: list[str] = []

        def seen() -> Iterator[Observation]:
            found = self._native.observe_all(block, sites=patterns, edits=edits)
            found.reverse()
            while found:
                yield Observation(found.pop())

        for text in texts:
            block.append(text)
            if len(block) == at_once:
                yield from seen()
                block = []
        if block:
            yield from seen()

    def gradient(
        self,
        text: str,
        *,
        at: str | Iterable[str],
        of: Literal["log_probability", "similarity"] = "log_probability",
        target: str = "",
        second: str | None = None,
        position: int | None = None,
    ) -> Gradients:
        """The gradient of a number that the model computes with respect to values inside of it.

        ::

            slopes = model.gradient("two dogs run .", at="*.gates")
            slopes["encoder.0.self_attention.gates"]         # [1, heads]: how much each head matters here

        Args:
            at: names or patterns of `model.sites`.
            of: "log_probability" of what the model predicts (natural logarithm): a causal model each token after the first, a
                translator the translation and its end, an encoder each token of the text. "similarity": the cosine of the
                vectors of `text` and `second`.
            target: of a translator; without: its greedy translation.
            position: only of this one of the tokens that are predicted, from 0.
        """
        patterns = listed(at)
        return Gradients(self._native.gradient(text, of=of, at=patterns, target=target, second=second, position=position,
                                               edits=self._edits()))  # fmt: skip
