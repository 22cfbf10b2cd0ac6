"""What a model does with texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from . import _errors, _native
from ._arguments import checked, text_or_list, whole_numbers
from ._edits import tell_unread
from ._facts import ModelFacts
from ._observation import Floats
from ._progress import Progress, counting
from ._results import Tokens, Translation, Word
from ._stream import Tell, streamed

Search = Literal["sample", "greedy", "beam"]


def _earlier(messages: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """(role, content) of each."""
    for message in messages:
        if missing := {"role", "content"} - set(message):
            raise _errors.UsageError(
                f"`messages`: a message has no {sorted(missing)[0]!r}; expected {{'role': ..., 'content': ...}}"
            )
    return [(message["role"], message["content"]) for message in messages]


class TextTasks(ModelFacts):
    """Translations, vectors, generated text, scores and tokens of texts."""

    @overload  # a str is an Iterable[str], too
    def translate(  # type: ignore[overload-overlap]
                  self, texts: str, *, beam_size: int = ..., length_penalty: float = ..., min_length: int = ...,
                  max_length: int = ..., max_length_factor: float = ..., max_batch_tokens: int = ...,
                  progress: Progress = ...) -> str: ...  # fmt: skip
    @overload
    def translate(self, texts: Iterable[str], *, beam_size: int = ..., length_penalty: float = ..., min_length: int = ...,
                  max_length: int = ..., max_length_factor: float = ..., max_batch_tokens: int = ...,
                  progress: Progress = ...) -> list[str]: ...  # fmt: skip
    @checked
    def translate(
        self,
        texts: str | Iterable[str],
        *,
        beam_size: int = 5,
        length_penalty: float = 1.0,
        min_length: int = 0,
        max_length: int = 256,
        max_length_factor: float = 0.0,
        max_batch_tokens: int = 2048,
        progress: Progress = False,
    ) -> str | list[str]:
        """The best translation of each text by beam search over a key/value cache.

        Args:
            beam_size: hypotheses that grow side by side; 1 is greedy search.
            length_penalty: a hypothesis of L tokens has the score log-probability / L^length_penalty.
            min_length, max_length: tokens of a translation.
            max_length_factor: above 0: at most so many times the tokens of the text.
            max_batch_tokens: tokens of a batch; results do not depend on it.
            progress: True for a bar (tqdm), or a function that is told how many texts are done.

        Raises:
            UsageError: the model is no translator, or an option is invalid.
        """
        lines, single = text_or_list(texts, "texts")
        found = self._translations(lines, 1, beam_size, length_penalty, min_length, max_length, max_length_factor,
                                   max_batch_tokens, progress)  # fmt: skip
        best = [hypotheses[0][0] if hypotheses else "" for hypotheses in found]
        return best[0] if single else best

    @checked
    def translations(
        self,
        text: str,
        *,
        n_best: int = 5,
        beam_size: int | None = None,
        length_penalty: float = 1.0,
        min_length: int = 0,
        max_length: int = 256,
        max_length_factor: float = 0.0,
    ) -> list[Translation]:
        """The `n_best` hypotheses of a beam search, the best first. beam_size: None: `n_best`."""
        found = self._translations([text], n_best, beam_size or n_best, length_penalty, min_length, max_length,
                                   max_length_factor, 2048, False)  # fmt: skip
        return [Translation(*one) for one in found[0]]

    def _translations(self, lines: list[str], n_best: int, beam_size: int, length_penalty: float, min_length: int,
                      max_length: int, max_length_factor: float, max_batch_tokens: int,
                      progress: Progress) -> list[list[tuple[str, float, float]]]:  # fmt: skip
        self._need("translate")
        with counting(progress, "sentences", len(lines)) as count, self._edited() as edits:
            return self._native.translate(
                lines, beam_size=beam_size, n_best=n_best, length_penalty=length_penalty, min_length=min_length,
                max_length=max_length, max_length_factor=max_length_factor, max_batch_tokens=max_batch_tokens,
                edits=edits, progress=count,
            )  # fmt: skip

    @checked
    def embed(
        self,
        texts: str | Iterable[str],
        *,
        pair: str | Iterable[str] | None = None,
        max_batch_tokens: int = 2048,
        progress: Progress = False,
    ) -> Floats:
        """The vectors of texts, float32 [texts, dimension]; of a single text [dimension].

        Of a folder of sentence-transformers its pooling, dense layers and normalisation are done; of another model a vector is
        the mean of its last states.

        Args:
            pair: a second text for each, which the model reads as one sequence with it.
            max_batch_tokens: tokens of a batch; results do not depend on it.
            progress: as for `translate`.
        """
        self._need("embed")
        lines, single = text_or_list(texts, "texts")
        seconds = None if pair is None else text_or_list(pair, "pair")[0]
        with counting(progress, "sentences", len(lines)) as count, self._edited() as edits:
            rows = self._native.embed(lines, pairs=seconds, max_batch_tokens=max_batch_tokens, edits=edits, progress=count)
        return rows[0] if single else rows

    @overload
    def generate(  # type: ignore[overload-overlap]
                 self, prompts: str, *, max_new_tokens: int = ..., search: Search = ..., temperature: float = ...,
                 top_k: int = ..., top_p: float = ..., min_p: float = ..., repetition_penalty: float = ..., beam_size: int = ...,
                 seed: int = ..., stop: Sequence[str] = ..., chat: bool = ..., system: str | None = ...,
                 messages: Sequence[Mapping[str, str]] = ..., max_batch_tokens: int = ...) -> str: ...  # fmt: skip
    @overload
    def generate(self, prompts: Iterable[str], *, max_new_tokens: int = ..., search: Search = ..., temperature: float = ...,
                 top_k: int = ..., top_p: float = ..., min_p: float = ..., repetition_penalty: float = ..., beam_size: int = ...,
                 seed: int = ..., stop: Sequence[str] = ..., chat: bool = ..., system: str | None = ...,
                 messages: Sequence[Mapping[str, str]] = ..., max_batch_tokens: int = ...) -> list[str]: ...  # fmt: skip
    @checked
    def generate(
        self,
        prompts: str | Iterable[str],
        *,
        max_new_tokens: int = 256,
        search: Search = "sample",
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        beam_size: int = 4,
        seed: int = 1,
        stop: Sequence[str] = (),
        chat: bool = False,
        system: str | None = None,
        messages: Sequence[Mapping[str, str]] = (),
        max_batch_tokens: int = 8192,
    ) -> str | list[str]:
        """A text that continues each prompt, without the prompt.

        Args:
            max_new_tokens: tokens of a text at most.
            search: "sample" draws each token, "greedy" takes the most probable one, "beam" those of the best hypothesis.
            temperature, top_k, top_p, min_p, repetition_penalty: of sampling; the defaults change nothing.
            beam_size: of a beam search.
            seed: the same seed gives the same texts, on any number of threads.
            stop: a text ends before the first of these strings.
            chat: the prompts are messages of a user, and the model answers as its chat template has it.
            system, messages: with `chat`, the system's message and those before, ``{"role": "user", "content": "..."}``.
            max_batch_tokens: tokens of a batch, prompts and new ones together.
        """
        self._need("generate")
        lines, single = text_or_list(prompts, "prompts")
        found = self._generated(lines, None, self._edits(), max_new_tokens=max_new_tokens, search=search, temperature=temperature,
                                top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=repetition_penalty,
                                beam_size=beam_size, seed=seed, stop=stop, chat=chat, system=system, messages=messages,
                                max_batch_tokens=max_batch_tokens)  # fmt: skip
        return found[0] if single else found

    @checked
    def stream(
        self,
        prompt: str,
        *,
        max_new_tokens: int = 256,
        search: Search = "sample",
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int = 1,
        stop: Sequence[str] = (),
        chat: bool = False,
        system: str | None = None,
        messages: Sequence[Mapping[str, str]] = (),
    ) -> Iterator[str]:
        """The text that `generate` gives, piece by piece as it comes; a loop that is left ends the work. The edits are those of
        this call.

        ::

            for piece in model.stream("The sky is"):
                print(piece, end="", flush=True)
        """
        self._need("generate")
        edits = self._edits()

        def make(tell: Tell) -> None:
            self._generated([prompt], tell, edits, max_new_tokens=max_new_tokens, search=search, temperature=temperature,
                            top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=repetition_penalty, beam_size=4, seed=seed,
                            stop=stop, chat=chat, system=system, messages=messages, max_batch_tokens=8192)  # fmt: skip

        return streamed(make)

    @checked
    def _generated(self, lines: list[str], on_text: Tell | None, edits: _native.Edits | None, *, max_new_tokens: int, search: str,
                   temperature: float, top_k: int, top_p: float, min_p: float, repetition_penalty: float, beam_size: int,
                   seed: int, stop: Sequence[str], chat: bool, system: str | None, messages: Sequence[Mapping[str, str]],
                   max_batch_tokens: int) -> list[str]:  # fmt: skip
        found = self._native.generate(
            lines, max_new_tokens=max_new_tokens, search=search, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
            repetition_penalty=repetition_penalty, beam_size=beam_size, seed=seed, stop=list(stop), chat=chat, system=system,
            earlier=_earlier(messages), max_batch_tokens=max_batch_tokens, edits=edits, on_text=on_text,
        )  # fmt: skip
        tell_unread(edits)
        return found

    @checked
    def fill(
        self, texts: str | Iterable[str], *, top: int = 5, pair: str | Iterable[str] | None = None, max_batch_tokens: int = 4096
    ) -> Any:
        """The most probable words for each mask.

        ::

            model.fill(f"Paris is the {model.mask_token} of France.")[0][0].text   # "capital"

        Args:
            texts: text that says `mask_token` where a word is missing.
            top: words for each mask.
            pair: a second text for each, which the model reads as one sequence with it.

        Returns:
            for each mask of the text in order its words, the best first (list[list[Word]]); for a list of texts a list of these.
        """
        self._need("fill")
        lines, single = text_or_list(texts, "texts")
        seconds = None if pair is None else text_or_list(pair, "pair")[0]
        with self._edited() as edits:
            found = self._native.fill(lines, pairs=seconds, words=top, max_batch_tokens=max_batch_tokens, edits=edits)
        words = [[[Word(*word) for word in mask] for mask in text] for text in found]
        return words[0] if single else words

    @property
    def mask_token(self) -> str:
        """What stands for a missing word. Raises UsageError when the tokenizer has none."""
        return self._native.mask_token

    @checked
    def score(
        self,
        texts: str | Iterable[str],
        target: str | Iterable[str] | None = None,
        *,
        per_token: bool = False,
        context: int = 0,
        stride: int = 0,
        max_batch_tokens: int = 4096,
        progress: Progress = False,
    ) -> Any:
        """The natural logarithm of the probability of each text, or of each target given its text.

        Args:
            texts: what a causal model predicts, each token after the first given those before; or what a translator reads.
            target: of a translator, the translations that are scored with their end tokens.
            per_token: return an array for each text, a number for each token that is predicted, in place of their sum.
            context, stride: of a causal model on texts that are longer than it reads: tokens of a window, and from one window to
                the next; 0: all that it reads, and half of that.
            max_batch_tokens: tokens of a batch; results do not depend on it but for rounding.
            progress: as for `translate`; of a causal model it counts the tokens that are scored.

        Returns:
            a number for each text (float, or float64 [texts]); perplexity is exp(-sum / number of tokens).
        """
        self._need("score")
        lines, single = text_or_list(texts, "texts")
        targets = None if target is None else text_or_list(target, "target")[0]
        if (self.kind == "translator") != (targets is not None):
            raise _errors.UsageError("`target` are the translations whose probability a translator's score is; "
                                     + ("give them" if targets is None else "a causal model has none"))  # fmt: skip
        with counting(progress, "texts" if targets else "tokens") as count, self._edited() as edits:
            scores = self._native.score(lines, targets=targets, context=context, stride=stride, max_batch_tokens=max_batch_tokens,
                                        edits=edits, progress=count)  # fmt: skip
        if per_token:
            arrays = [np.array(one, dtype=np.float32) for one in scores]
            return arrays[0] if single else arrays
        sums = np.array([sum(one) for one in scores], dtype=np.float64)
        return float(sums[0]) if single else sums

    @checked
    def tokenize(self, text: str, *, special_tokens: bool = True, target: bool = False) -> Tokens:
        """The tokens of a text. target: by the tokenizer of a translator's target."""
        return Tokens(*self._native.tokenize(text, special_tokens=special_tokens, of_target=target))

    @checked
    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True, target: bool = False) -> str:
        """The text of token ids."""
        return self._native.decode(whole_numbers(ids, "ids"), skip_special_tokens=skip_special_tokens, of_target=target)
