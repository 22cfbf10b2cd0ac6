"""BLEU, and what heads cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Unpack

from . import _native, _settings
from ._arguments import checked, text
from ._settings import with_settings
from ._table import Table
from ._text_settings import BleuSettings


@dataclass(frozen=True)
class Bleu:
    """BLEU, 0 to 100, with what it is made of. ``str()`` is the line that sacreBLEU prints."""

    score: float
    precisions: list[float]  # in per cent, of 1 to 4 words
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int
    line: str
    signature: str

    def __str__(self) -> str:
        return self.line

    def __float__(self) -> float:
        return self.score


@checked
@with_settings("bleu", BleuSettings)
def bleu(hypotheses: Iterable[str], references: Iterable[str] | Sequence[Iterable[str]], **settings: Unpack[BleuSettings]) -> Bleu:
    """BLEU of a corpus as sacreBLEU computes it (Papineni et al. 2002; Post 2018), equal to every printed digit.

    Args:
        hypotheses: translations.
        references: one for each; or a list of such lists for several references.

    Keyword Args:
        tokenizer: how sentences are split into words (default "13a").
        language: language whose rules the tokenizer moses follows (default "en").
        lowercase: ignore upper and lower case.
        smoothing: smoothing of n-gram precisions that are 0 (default "exp").
        smoothing_value: constant of the smoothing floor (usually 0.1) or add-k (usually 1) (1e-09 to 1000000000).
        effective_order: ignore n-grams longer than the sentences, for scores of single sentences.
    """
    given = list(references)
    single = [one for one in given if isinstance(one, str)]
    several = [single] if len(single) == len(given) else given
    texts = [[text(one, "references") for one in texts] for texts in several]
    found = _native.bleu([text(one, "hypotheses") for one in hypotheses], texts, settings=_settings.settings("bleu", settings))
    return Bleu(**found)


@checked
def ledger(
    geometry: str = "",
    *,
    heads: int = 8,
    d_model: int = 512,
    queries: int = 100,
    keys: int | None = None,
    causal: bool = False,
) -> Table:
    """What one attention costs, part by part: parameters, operations, exponentials, bytes (docs/geometries.md).

    ::

        mh.ledger("multi-query", heads=8, d_model=512, queries=100)

    Args:
        geometry: a name of `geometries()`, JSON with the fields of "head_geometry", or empty: the paper's heads.
        queries, keys: tokens; keys None: as many as queries.
    """
    rows = _native.ledger(
        geometry, heads=heads, d_model=d_model, queries=queries, keys=queries if keys is None else keys, causal=causal
    )
    return Table(rows)


def geometries() -> list[str]:
    """The names of all kinds of heads."""
    return _native.geometries()


@checked
def set_threads(threads: int) -> None:
    """How many threads compute, 1 or more; all processors that the process may use unless you say."""
    _native.set_threads(threads)
