"""What a model gives for a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ._observation import Floats


class Word(NamedTuple):
    """A word that may stand in a mask's place."""

    text: str
    probability: float  # softmax over the vocabulary
    id: int


class Label(NamedTuple):
    """A label that a classifier gives."""

    name: str
    score: float  # softmax or sigmoid of the logits, or the logit itself, as config.json says
    logit: float


class LabelledToken(NamedTuple):
    """A token, and the labels that a classifier of tokens gives it."""

    text: str
    characters: tuple[int, int]  # [first, second) of the text
    labels: list[Label]  # the best first


class Translation(NamedTuple):
    """A translation of one text."""

    text: str
    score: float  # log-probability / length^length_penalty, by which a beam search ranks
    log_probability: float  # natural logarithm, of all tokens and the end token


class AlignedTranslation(NamedTuple):
    """A translation of one text, and with which token of the text each of its own goes."""

    text: str
    alignment: list[tuple[int, int]]  # places in `source` and `target`, from 0; a token that goes with none has no pair
    source: list[str]  # the tokens that the model has read, as people read them
    target: list[str]  # those of the translation


class Tokens(NamedTuple):
    """A text as tokens; the lists have an entry for each."""

    ids: list[int]
    tokens: list[str]  # as people read them
    offsets: list[tuple[int, int]]  # characters [first, second) of the text; (0, 0) for special tokens


class NextToken(NamedTuple):
    """A token that may come next."""

    token: str  # as people read it; "" of a number that no token has
    probability: float  # softmax over the vocabulary
    logit: float
    id: int


@dataclass(frozen=True, eq=False)
class Next:
    """What a model says of the next token of a text, or of the one in a mask's place. The arrays are float32 [V], V the numbers of
    the vocabulary."""

    logits: Floats = field(repr=False)
    probabilities: Floats = field(repr=False)  # softmax of the logits
    best: list[NextToken]  # the most probable first
