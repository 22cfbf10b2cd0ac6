"""What a model has inside while it reads a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _native
from ._arguments import checked
from ._errors import UnknownNameError, UsageError
from ._names import Head, HeadName, head_name

Floats = np.ndarray[Any, np.dtype[np.float32]]


class Observation(Mapping[str, Floats]):
    """The values at sites (docs/sites.md) of one text, by their names: ``seen["encoder.3.self_attention.weights.1"]``.

    Arrays are float32 [rows, columns], a row for each token, and read-only: they share the memory of the observation.

    Attributes:
        tokens: the tokens that the model reads, as people read them: of a translator those of the source.
        target_tokens: of a translator what its decoder reads, the start token first.
        predicted_tokens: of a translator what the decoder's rows predict, the end token last.
        translation: of a translator, in words.
    """

    def __init__(self, seen: _native.Seen, known: Mapping[str, int]) -> None:
        """known: the sites of the model."""
        self._seen = seen
        self._known = known
        source, target = seen.source, seen.target
        self.tokens: list[str] = source or target
        self.target_tokens: list[str] = target if source else []
        self.predicted_tokens: list[str] = seen.predicted
        self.translation: str = seen.translation

    def __getitem__(self, site: str) -> Floats:
        if site not in self._seen.sites:
            if site in self._known:
                raise UnknownNameError(f"{site} was not observed; name it, or a pattern, in `sites`")
            raise UnknownNameError(f"the model has no site {site!r}; `model.sites` are its sites")
        return self._seen.value(site)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen.sites)

    def __len__(self) -> int:
        return len(self._seen.sites)

    @checked
    def weights(self, name: HeadName) -> Floats:
        """The weights of a head, "encoder.3.self_attention.1", [queries, keys]; or of all heads of an attention,
        "encoder.3.self_attention", [heads, queries, keys]. Each row adds up to 1. Raises UnknownNameError, a KeyError, unless
        they were observed."""
        attention, _, number = head_name(name).rpartition(".")
        if number.isdigit():
            self._check_head(attention, int(number))
            return self[f"{attention}.weights.{int(number)}"]
        attention = head_name(name)
        self._check_head(attention, 0)
        sites = [site for site in self if site.startswith(f"{attention}.weights.")]
        if not sites:
            raise UnknownNameError(f"the weights of {attention} were not observed; add '{attention}.weights.*' to `sites`")
        return np.stack([self[site] for site in sites])

    @checked
    def pattern(self, kind: str = "") -> Floats:
        """The weights of all heads of all layers in one array, [layers, heads, queries, keys].

        Args:
            kind: "encoder", "decoder" (their self-attention) or "decoder.cross_attention"; of a model that has one kind it may be
                left out.

        Raises UnknownNameError, a KeyError, on another kind and where weights were not observed, UsageError where layers have
        different numbers of heads.
        """
        heads: dict[str, int] = {}
        for site in self._known:
            attention, found, _ = site.partition(".weights.")
            if found:
                heads[attention] = heads.get(attention, 0) + 1
        kinds: dict[str, list[str]] = {}
        for attention in heads:
            stack, _, which = attention.split(".")
            kinds.setdefault(stack if which == "self_attention" else f"{stack}.{which}", []).append(attention)
        asked = kind.removesuffix(".self_attention")
        if not asked and len(kinds) == 1:
            asked = next(iter(kinds))
        if asked not in kinds:
            raise UnknownNameError(f"`kind`: expected {' or '.join(map(repr, kinds))}, got {kind!r}")
        first, *others = kinds[asked]
        for other in others:
            if heads[other] != heads[first]:
                numbers = f"{first} has {heads[first]} heads and {other} {heads[other]}"
                raise UsageError(f"{numbers}, which make no single array; take `weights` of each")
        return np.stack([self.weights(attention) for attention in kinds[asked]])

    def _check_head(self, attention: str, number: int) -> None:
        heads = sum(site.startswith(f"{attention}.weights.") for site in self._known)
        if heads == 0:
            has = dict.fromkeys(site.partition(".weights.")[0] for site in self._known if ".weights." in site)
            raise UnknownNameError(f"the model has no attention {attention!r}; it has {', '.join(has)}")
        if number >= heads:
            raise UnknownNameError(f"{attention} has heads 0 to {heads - 1}, and no head {number}")

    @checked
    def query_tokens(self, attention: HeadName) -> list[str]:
        """The tokens of the rows of its weights; of a head those of its attention."""
        return self._seen.labels(attention.attention if isinstance(attention, Head) else attention, False)

    @checked
    def key_tokens(self, attention: HeadName) -> list[str]:
        """The tokens of their columns."""
        return self._seen.labels(attention.attention if isinstance(attention, Head) else attention, True)

    def __repr__(self) -> str:
        return f"<Observation of {len(self)} sites on {len(self.tokens)} tokens: {' '.join(self.tokens[:12])}>"

    def __reduce__(self) -> Any:
        raise TypeError("an observation cannot be pickled; keep the arrays that you need: numpy.array(seen[site])")


class Gradients(Mapping[str, Floats]):
    """Gradients of one number with respect to sites, by their names, each [rows, columns] as the site.

    Attributes:
        value: the number.
        tokens, target_tokens, predicted_tokens: as of an :class:`Observation`.
    """

    def __init__(self, found: tuple[float, list[str], list[str], list[str], list[tuple[str, Floats]]]) -> None:
        self.value, source, target, self.predicted_tokens, gradients = found
        self._gradients = dict(gradients)
        self.tokens: list[str] = source or target
        self.target_tokens: list[str] = target if source else []

    def __getitem__(self, site: str) -> Floats:
        if site not in self._gradients:
            raise UnknownNameError(f"there is no gradient at {site!r}; name the site, or a pattern, in `at`")
        return self._gradients[site]

    def __iter__(self) -> Iterator[str]:
        return iter(self._gradients)

    def __len__(self) -> int:
        return len(self._gradients)

    def __repr__(self) -> str:
        return f"<Gradients of {self.value:.6g} at {len(self)} sites>"
