"""What is inside a model: seen, changed and differentiated."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _errors, _native
from ._along import along_texts
from ._arguments import checked
from ._edits import Addition, Change, Replacement, edits_of, tell_unread
from ._facts import ModelFacts
from ._names import HeadName, HeadNames, listed
from ._observation import Gradients, Observation
from ._steering import Direction
from ._token_ids import TextOrIds, TextsOrIds, TokenIds, text_or_ids, texts_or_ids

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

    @overload
    def gradient(
        self, texts: TextOrIds, *, at: str | Iterable[str], of: str = ..., along: Any = ..., position: int | None = ...,
        head: int | None = ..., target: str = ..., second: str | None = ..., label: str | None = ...,
        source_language: str | None = ..., target_language: str | None = ...,
    ) -> Gradients: ...  # fmt: skip
    @overload
    def gradient(
        self, texts: Iterable[TextOrIds], *, at: str | Iterable[str], of: str, along: Any,
        position: int | Sequence[int] | None = ..., head: int | None = ..., target: str | Sequence[str] = ...,
        source_language: str | None = ..., target_language: str | None = ...,
    ) -> list[Gradients]: ...  # fmt: skip
    @checked
    def gradient(
        self,
        texts: TextsOrIds,
        *,
        at: str | Iterable[str],
        of: str = "log_probability",
        along: Any = None,
        position: int | Sequence[int] | None = None,
        head: int | None = None,
        target: str | Sequence[str] = "",
        second: str | None = None,
        label: str | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Gradients | list[Gradients]:
        """The gradient of a number that the model computes with respect to values inside of it.

        ::

            slopes = model.gradient("two dogs run .", at="*.gates")
            slopes["encoder.0.self_attention.gates"]         # [1, heads]: how much each head matters here
            model.gradient(texts, of="decoder.3.output", along=direction, position=-1, at="*.heads")    # of each text
            model.gradient(texts, of="decoder.logits", along={dog: 1, cat: -1}, position=-1, at="decoder.3.output")

        Args:
            texts: a text, or a list of its token ids as for `observe`. Where `of` is a site a list of texts gives a list, and they
                run in batches.
            at: names or patterns of `model.sites`. Sites that the model computes after `of` are refused where they are named, and
                left out of a pattern; those before it on which the number does not depend have a gradient of 0.
            of: "log_probability" of what the model predicts (natural logarithm): a causal model each token after the first, a
                translator the translation and its end, an encoder each token of the text. "similarity": the cosine of the
                vectors of a text and `second`. "label": the logit of `label`, of a classifier, which may read a text and `second`
                as a pair. Or the name of a site: the sum of its values times `along`.
            along: of a site by what its values are multiplied: numbers [columns], the same for every row that is meant, or [rows,
                columns]; a :class:`multihead.heads.Direction`; or a dictionary of numbers by columns, at logits token ids. For a
                list of texts one for all, or a list (an array [texts, columns]) with one for each.
            position: of a site which row, from 0, or below 0 from the end; for a list of texts one for all or one for each.
                Without: all rows. Else only this one of the tokens that are predicted, from 0; of a classifier of tokens the token.
            head: of a site of heads side by side that `along` is of the columns of this one.
            label: one of `model.labels`, or its number.
            target: of a translator what its decoder reads, for a list of texts one for all or one for each; without: the greedy
                translation.
            source_language, target_language: of a translator of many languages those of the text and of its translation, as for
                `translate`.
        """
        patterns = listed(at, "at")
        languages = {"source_language": source_language, "target_language": target_language}
        given, single = texts_or_ids(texts, "texts")
        if of not in ("log_probability", "similarity", "label"):
            if label is not None:
                raise _errors.UsageError("`label` is that of of='label'; leave it out")
            if second is not None and not single:
                raise _errors.UsageError("`second` needs a single text; give one text at a time")
            if of not in self.sites and "*" not in of:
                numbers = "'log_probability', 'similarity', 'label' or the name of a site (docs/sites.md)"
                raise _errors.UsageError(f"`of`: expected {numbers}, got {of!r}")
            sums = along_texts(along, position, len(given), single, of, head)
            every = self._site_gradients(given, of, head, sums, patterns, target, second, languages)
            return every[0] if single else every
        if not single:
            raise _errors.UsageError(f"`texts`: of={of!r} takes one text at a time; a list needs the name of a site as `of`")
        if along is not None or head is not None:
            raise _errors.UsageError(f"`along` and `head` need the name of a site as `of`, got {of!r}; leave them out")
        if not isinstance(target, str) or not (position is None or isinstance(position, int)):
            raise _errors.UsageError("`target` and `position`: of a single text give one of each, no list")
        with self._edited() as edits:
            found = self._native.gradient(
                given[0], of=of, at=patterns, target=target, second=second, label=label, position=position, **languages, edits=edits
            )
        return Gradients(found)

    def _site_gradients(
        self,
        texts: list[Any],
        of: str,
        head: int | None,
        sums: list[Any],
        at: list[str],
        target: str | Sequence[str],
        pair: str | None,
        languages: dict[str, Any],
    ) -> list[Gradients]:
        targets = [target] * len(texts) if isinstance(target, str) else list(target)
        if len(targets) != len(texts):
            raise _errors.UsageError(f"`target`: expected one for each of {len(texts)} texts, got {len(targets)}")
        with self._edited() as edits:
            found = self._native.site_gradients(
                texts, of=of, head=head, along=sums, at=at, targets=targets, pair=pair, **languages, edits=edits
            )
        return [Gradients(one) for one in found]
