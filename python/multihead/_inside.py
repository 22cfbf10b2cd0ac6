"""What is inside a model: seen, changed and differentiated."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _errors, _native
from ._arguments import checked
from ._edits import Addition, Change, Replacement, edits_of, tell_unread
from ._facts import ModelFacts
from ._names import HeadName, HeadNames, listed
from ._observation import Gradients, Observation
from ._steering import Direction
from ._token_ids import TextOrIds, TextsOrIds, TokenIds, text_or_ids

if TYPE_CHECKING:
    from typing import Self


class Inside(ModelFacts):
    """Values at sites of a model."""

    @checked
    def edit(
        self,
        *,
        mute: HeadNames = (),
        gate: Mapping[HeadName, float] | None = None,
        replace: Mapping[HeadName, Replacement] | None = None,
        add: Mapping[HeadName | Direction, Addition] | None = None,
    ) -> contextlib.AbstractContextManager[Self]:
        """Changes what happens inside the model while the block runs, in this thread.

        ::

            with model.edit(mute="encoder.3.self_attention.1"):
                changed = model.embed(text)

        Args:
            mute: names or patterns of heads whose output becomes 0: "encoder.3.self_attention.*", or heads of `model.heads`.
            gate: a factor for the output of heads, by name or pattern.
            replace: by name or pattern of heads a rule for their weights, "uniform", "previous" or "first"; or by the name of a
                site numbers to put there, an array or an :class:`At`, or a function. It is called with the value whenever the
                model computes it, an array [rows, columns] of all rows of the batch, in `generate` of those of each step, and
                returns what the model goes on with; None: the array, which it may have changed. Functions come after other edits.
            add: by the name of a site numbers to add there, an array or an :class:`At`, which says with which strength; or by a
                :class:`multihead.heads.Direction` its strength.

        Blocks may be nested, and may end in any order; of two edits of one head the inner one counts. What is called in a block
        is changed, also where its results come later (`stream`, `observe` of a list). Raises UsageError on names that the model
        does not have and numbers that do not fit their site, before anything runs.
        """
        change = Change(mute, gate or {}, replace or {}, add or {})
        if (edits := edits_of([change])) is not None:
            edits.check(self._native)
        return self._changed(change)

    @contextlib.contextmanager
    def _changed(self, change: Change) -> Iterator[Self]:
        self._changes.begin(change)
        try:
            yield self
        finally:
            self._changes.end(change)

    @overload
    def observe(  # type: ignore[overload-overlap]
        self, texts: TextOrIds, *, sites: str | Iterable[str] = ..., target: str = ..., pair: str | None = ...,
        source_language: str | None = ..., target_language: str | None = ...,
    ) -> Observation: ...  # fmt: skip
    @overload
    def observe(
        self, texts: Iterable[TextOrIds], *, sites: str | Iterable[str] = ...,
        source_language: str | None = ..., target_language: str | None = ...,
    ) -> Iterator[Observation]: ...  # fmt: skip
    @checked
    def observe(
        self,
        texts: TextsOrIds,
        *,
        sites: str | Iterable[str] = "*.weights.*",
        target: str = "",
        pair: str | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Observation | Iterator[Observation]:
        """What the model has inside while it reads a text: the values at sites, with the tokens that they belong to.

        ::

            seen = model.observe("two dogs run .")
            seen.weights("encoder.0.self_attention.1")              # [queries, keys]
            seen = model.observe(text, sites=["*.queries", "*.states"])

        Args:
            texts: a text; of a list an iterator gives an observation for each in turn, of which a few are in memory at a time.
                The edits are those of this call. In place of a text a list of its token ids as the model reads them, special tokens
                and all: of a translator with the end token.
            sites: names or patterns of `model.sites`; docs/sites.md lists them with their shapes.
            target: of a translator what its decoder reads; without: the greedy translation.
            pair: a second text, which an encoder reads as one sequence with it.
            source_language, target_language: of a translator of many languages those of the text and of its translation, as for
                `translate`.
        """
        patterns = listed(sites, "sites")
        languages = {"source_language": source_language, "target_language": target_language}
        if isinstance(texts, (str, TokenIds)):
            with self._edited() as edits:
                seen = self._native.observe(texts, target=target, pair=pair, **languages, sites=patterns, edits=edits)
            return Observation(seen, self.sites)
        if target or pair is not None:
            raise _errors.UsageError("`target` and `pair` need a single text; observe one text at a time")
        self._native.check_sites(patterns)
        return self._observations(texts, languages, patterns, self._edits())

    def _observations(
        self, texts: Iterable[Any], languages: dict[str, str | None], patterns: list[str], edits: _native.Edits | None
    ) -> Iterator[Observation]:
        at_once = 2 * _native.threads()
        known, first = self.sites, 0
        lines = (text_or_ids(one, "texts") for one in texts)
        while block := list(itertools.islice(lines, at_once)):
            found = self._native.observe_all(block, first=first, **languages, sites=patterns, edits=edits)
            first += len(block)
            found.reverse()
            while found:
                yield Observation(found.pop(), known)
        tell_unread(edits)

    @checked
    def gradient(
        self,
        text: TextOrIds,
        *,
        at: str | Iterable[str],
        of: Literal["log_probability", "similarity", "label"] = "log_probability",
        target: str = "",
        second: str | None = None,
        label: str | None = None,
        position: int | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Gradients:
        """The gradient of a number that the model computes with respect to values inside of it.

        ::

            slopes = model.gradient("two dogs run .", at="*.gates")
            slopes["encoder.0.self_attention.gates"]         # [1, heads]: how much each head matters here

        Args:
            text: a text, or a list of its token ids as for `observe`.
            at: names or patterns of `model.sites`.
            of: "log_probability" of what the model predicts (natural logarithm): a causal model each token after the first, a
                translator the translation and its end, an encoder each token of the text. "similarity": the cosine of the
                vectors of `text` and `second`. "label": the logit of `label`, of a classifier, which may read `text` and `second`
                as a pair.
            label: one of `model.labels`, or its number.
            target: of a translator; without: its greedy translation.
            position: only of this one of the tokens that are predicted, from 0; of a classifier of tokens the token.
            source_language, target_language: of a translator of many languages those of the text and of its translation, as for
                `translate`.
        """
        patterns = listed(at, "at")
        given: Any = text
        with self._edited() as edits:
            found = self._native.gradient(
                given, of=of, at=patterns, target=target, source_language=source_language, target_language=target_language,
                second=second, label=label, position=position, edits=edits,
            )  # fmt: skip
        return Gradients(found)
