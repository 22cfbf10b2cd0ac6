"""The next token of a text."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _errors
from ._arguments import checked
from ._facts import ModelFacts
from ._observation import Floats
from ._results import Next, NextToken
from ._token_ids import TextOrIds


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits.astype(np.float64) - logits.max())
    probabilities: Floats = (powers / powers.sum()).astype(np.float32)
    return probabilities


class NextTokens(ModelFacts):
    """What a model predicts at one place."""

    @checked
    def next(
        self,
        text: TextOrIds,
        *,
        prefix: str = "",
        top: int = 5,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Next:
        """The logits and probabilities of the next token, and the most probable ones.

        ::

            found = model.next("The sky is")
            found.best[0].token                              # "▁blue"
            found.logits[blue] - found.logits[green]         # by token ids

        Args:
            text: of a causal model what comes before the token, and without words its start token; of a translator the source; of
                an encoder of masked words a text that says `mask_token` once, where the token is. In place of a text a list of its
                token ids as the model reads them, special tokens and all: of a translator with the end token.
            prefix: of a translator how its translation begins.
            top: how many tokens `best` has.
            source_language, target_language: of a translator of many languages those of the text and of its translation, as for
                `translate`.
        """
        self._need("next")
        given: Any = text
        with self._edited() as edits:
            logits = self._native.next_logits(
                given, prefix=prefix, source_language=source_language, target_language=target_language, edits=edits
            )
        if not 0 <= top <= len(logits):
            raise _errors.UsageError(f"`top`: expected 0 to {len(logits)}, the numbers of the vocabulary, got {top}")
        probabilities = _softmax(logits)
        ids = np.argsort(-logits, kind="stable")[:top].tolist()
        tokens = self._native.predicted_tokens(ids)
        best = [NextToken(token, float(probabilities[id]), float(logits[id]), id) for token, id in zip(tokens, ids, strict=True)]
        return Next(logits, probabilities, best)
