"""What a model does with texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from . import _errors, _native, _settings
from ._arguments import checked, text_or_list, vectors, whole_numbers
from ._edits import tell_unread
from ._facts import ModelFacts
from ._observation import Floats
from ._progress import Progress, counting
from ._results import AlignedTranslation, Label, LabelledToken, Tokens, Translation, Word
from ._settings import with_settings
from ._stream import Tell, streamed
from ._text_settings import ClassifySettings, EmbedSettings, FillSettings, GenerateSettings, ScoreSettings, TranslateSettings
from ._token_ids import TextOrIds, TextsOrIds, texts_or_ids

Messages = Sequence[Mapping[str, str]]


def _earlier(messages: Messages) -> list[tuple[str, str]]:
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
        self, texts: str, *, alignment: Literal[False] = ..., progress: Progress = ..., **settings: Unpack[TranslateSettings]
    ) -> str: ...
    @overload
    def translate(
        self,
        texts: Iterable[str],
        *,
        alignment: Literal[False] = ...,
        progress: Progress = ...,
        **settings: Unpack[TranslateSettings],
    ) -> list[str]: ...
    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, *, alignment: Literal[True, "auto"], progress: Progress = ..., **settings: Unpack[TranslateSettings]
    ) -> AlignedTranslation: ...
    @overload
    def translate(
        self,
        texts: Iterable[str],
        *,
        alignment: Literal[True, "auto"],
        progress: Progress = ...,
        **settings: Unpack[TranslateSettings],
    ) -> list[AlignedTranslation]: ...
    @checked
    @with_settings("translate", TranslateSettings)
    def translate(
        self,
        texts: str | Iterable[str],
        *,
        alignment: bool | Literal["auto"] = False,
        progress: Progress = False,
        **settings: Unpack[TranslateSettings],
    ) -> str | list[str] | AlignedTranslation | list[AlignedTranslation]:
        """The best translation of each text by beam search over a key/value cache.

        With a list as `target_language` each text has its own, which is the one at its place in the list.

        ::

            model.translate("two dogs run .", alignment="auto").alignment   # [(0, 0), (1, 1), (2, 2), (3, 3)]

        Args:
            alignment: an AlignedTranslation in the place of each text, which says, too, at which token of its text each token of
                the translation looks most: with True by the mean of the heads of the last layer; with "auto" by the heads that
                `alignment_heads` of the folder's generation_config.json names, or else by those that the first 100 texts show to
                align (docs/heads/alignment.md): of few texts, and above all of one, they say little.
            progress: True for a bar (tqdm), or a function that is told how many texts are done.

        Keyword Args:
            source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or
                de_DE.
            target_language: language of the translations, said in the same way.
            source_prefix: put TEXT before each text, as T5's tasks want ("summarize: "); info lists a model's.
            beam_size: hypotheses kept at each step of the beam search; 1: greedy search (1 to 255, default: as the model says, else
                5).
            length_penalty: exponent of the length penalty of a beam search; 0: none (-100 to 100, default: as the model says, else
                1).
            length_penalty_form: divide: score / length^a; gnmt: score / ((5 + length) / 6)^a (default "divide").
            early_stopping: when a beam search ends: true: once as many texts have ended as the beam has; false: once, too, no other
                one scores better as it stands; never: once none can (default: as the model says).
            min_length: tokens in the shortest translation (at least 0, default: as the model says, else 0).
            max_length: most tokens of a translation (at least 1, default: as the model says, else 256).
            max_length_factor: longest translation as a multiple of the source's tokens; 0: no such limit (at least 0, default 0.0).
            no_repeat_ngram: no sequence of N tokens comes twice in a text; 0: it may (at least 0, default: as the model says, else
                0).
            cache: how the decoder's keys and values are kept: bfloat16 takes half the memory and rounds them (default "float32").
            max_batch_tokens: most source tokens in a batch (at least 1, default 2048).

        Raises:
            UsageError: the model is no translator, or an option is invalid.
        """
        if alignment not in (False, True, "auto"):
            raise _errors.UsageError(f'`alignment`: expected True, False or "auto", got {alignment!r}')
        lines, single = text_or_list(texts, "texts")
        if not alignment:
            best = [found[0][0] if found else "" for found, _ in self._translations(lines, progress, settings)]
            return best[0] if single else best
        by = "auto" if alignment == "auto" else "mean"
        aligned = []
        for found, read in self._translations(lines, progress, settings, by):
            text, _, _, links, tokens = found[0] if found else ("", 0.0, 0.0, [], [])
            aligned.append(AlignedTranslation(text, links, read, tokens))
        return aligned[0] if single else aligned

    @checked
    @with_settings("translate", TranslateSettings)
    def translations(self, text: str, *, n_best: int = 5, **settings: Unpack[TranslateSettings]) -> list[Translation]:
        """The `n_best` hypotheses of a beam search, the best first. The other arguments are those of `translate`; without
        `beam_size` it is `n_best`."""
        settings.setdefault("beam_size", n_best)
        [(found, _)] = self._translations([text], False, settings, n_best=n_best)
        return [Translation(*one[:3]) for one in found]

    def _translations(
        self, lines: list[str], progress: Progress, given: TranslateSettings, alignment: str | None = None, **own: int
    ) -> list[tuple[list[tuple[str, float, float, list[tuple[int, int]], list[str]]], list[str]]]:
        self._need("translate")
        plain: dict[str, Any] = dict(given)
        each = None
        if not isinstance(plain.get("target_language", ""), str | None):
            each = list(plain.pop("target_language"))
        with counting(progress, "sentences", len(lines)) as count, self._edited() as edits:
            return self._native.translate(
                lines,
                targets=each,
                alignment=alignment,
                settings=_settings.settings("translate", plain, **own),
                edits=edits,
                progress=count,
            )

    @checked
    @with_settings("embed", EmbedSettings)
    def embed(
        self,
        texts: TextsOrIds,
        *,
        pair: str | Iterable[str] | None = None,
        progress: Progress = False,
        **settings: Unpack[EmbedSettings],
    ) -> Floats:
        """The vectors of texts, float32 [texts, dimension]; of a single text [dimension].

        Of a folder of sentence-transformers its pooling, dense layers and normalisation are done; of another model a vector is
        the mean of its last states.

        Args:
            texts: each a text, or a list of its token ids as the model reads them, special tokens and all.
            pair: a second text for each, which the model reads as one sequence with it.
            progress: as for `translate`.

        Keyword Args:
            prompt_name: put the prompt of this name before every text, such as query (default: that of default_prompt_name).
            prompt: put this text before every text instead; an empty one is none.
            strict: refuse a line that is longer than the model reads; it is cut otherwise.
            max_batch_tokens: most tokens in a batch (at least 1, default 2048).
        """
        self._need("embed")
        lines, single = texts_or_ids(texts, "texts")
        seconds = None if pair is None else text_or_list(pair, "pair")[0]
        with counting(progress, "sentences", len(lines)) as count, self._edited() as edits:
            rows = self._native.embed(
                lines, pairs=seconds, settings=_settings.settings("embed", settings), edits=edits, progress=count
            )
        return rows[0] if single else rows

    @checked
    def similarity(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
        """How alike vectors of `embed` are, float32 [first, second]; of a single vector without its axis.

        By the function for which the vectors were trained, `similarity_fn_name`: "cosine", "dot", or minus a distance,
        "euclidean" or "manhattan". A folder of sentence-transformers says it; of another model it is the cosine.

        Args:
            first: vectors [n, dimension], or one of them [dimension].
            second: likewise.
        """
        self._need("embed")
        a, b = vectors(first, "first"), vectors(second, "second")
        found = self._native.similarity(np.atleast_2d(a), np.atleast_2d(b))
        return found[tuple(0 if one.ndim == 1 else slice(None) for one in (a, b))]

    @property
    def similarity_fn_name(self) -> str:
        """The function of `similarity`: "cosine", "dot", "euclidean" or "manhattan"."""
        self._need("embed")
        return self._native.similarity_fn_name

    @overload
    def generate(  # type: ignore[overload-overlap]
        self, prompts: TextOrIds, *, messages: Messages = ..., **settings: Unpack[GenerateSettings]
    ) -> str: ...
    @overload
    def generate(
        self, prompts: Iterable[TextOrIds], *, messages: Messages = ..., **settings: Unpack[GenerateSettings]
    ) -> list[str]: ...
    @checked
    @with_settings("generate", GenerateSettings)
    def generate(self, prompts: TextsOrIds, *, messages: Messages = (), **settings: Unpack[GenerateSettings]) -> str | list[str]:
        """A text that continues each prompt, without the prompt.

        Args:
            prompts: each a text, or a list of its token ids, which are read as they are.
            messages: with `chat`, those before, ``{"role": "user", "content": "..."}``.

        Keyword Args:
            max_new_tokens: most tokens that are generated (at least 1, default 256).
            search: draw each token, take the most probable one, or those of the best text of a beam search (default "sample").
            beam_size: search for the most probable text with this many hypotheses (1 to 255, default 4).
            length_penalty: exponent of the length penalty of a beam search; 0: none (-100 to 100, default: as the model says, else
                1).
            length_penalty_form: divide: score / length^a; gnmt: score / ((5 + length) / 6)^a (default "divide").
            early_stopping: when a beam search ends: true: once as many texts have ended as the beam has; false: once, too, no other
                one scores better as it stands; never: once none can (default: as the model says).
            temperature: divide the logits by this; below 1: probable tokens get more probable (1e-06 to 1000000, default 1.0).
            top_k: draw from the N most probable tokens; 0: from all (at least 0, default 0).
            top_p: draw from the fewest most probable tokens whose probabilities sum to X (0 to 1, default 1.0).
            min_p: draw from the tokens at least X times as probable as the best one; 0: from all (0 to 1, default 0.0).
            repetition_penalty: above 1: what occurred before gets less probable (1e-06 to 1000000, default 1.0).
            no_repeat_ngram: no sequence of N tokens comes twice in a text; 0: it may (at least 0, default: as the model says, else
                0).
            seed: seed of the draws; with the prompt's number it decides the text (default 1).
            cache: how keys and values of what was read are kept: bfloat16 takes half the memory and rounds them (default
                "float32").
            max_batch_tokens: most tokens of the prompts and texts that are generated at once (at least 1, default 8192).
            stop: end a text before this string.
            strict: refuse a prompt that leaves no room for new tokens; its beginning is cut off otherwise.
            chat: the prompts are messages, which the model answers by its chat template.
            system: of a chat: the system message, in place of the template's.
        """
        self._need("generate")
        lines, single = texts_or_ids(prompts, "prompts")
        found = self._generated(lines, None, self._edits(), messages, settings)
        return found[0] if single else found

    @checked
    @with_settings("generate", GenerateSettings)
    def stream(self, prompt: TextOrIds, *, messages: Messages = (), **settings: Unpack[GenerateSettings]) -> Iterator[str]:
        """The text that `generate` gives, piece by piece as it comes; a loop that is left ends the work. The arguments are those
        of `generate`, the edits those of this call.

        ::

            for piece in model.stream("The sky is"):
                print(piece, end="", flush=True)
        """
        self._need("generate")
        edits = self._edits()
        return streamed(lambda tell: self._generated([prompt], tell, edits, messages, settings))

    def _generated(
        self, lines: Any, on_text: Tell | None, edits: _native.Edits | None, messages: Messages, given: GenerateSettings
    ) -> list[str]:
        found = self._native.generate(
            lines, earlier=_earlier(messages), settings=_settings.settings("generate", given), edits=edits, on_text=on_text
        )
        tell_unread(edits)
        return found

    @checked
    @with_settings("fill", FillSettings)
    def fill(
        self,
        texts: str | Iterable[str],
        *,
        top: int = 5,
        pair: str | Iterable[str] | None = None,
        **settings: Unpack[FillSettings],
    ) -> Any:
        """The most probable words for each mask.

        ::

            model.fill(f"Paris is the {model.mask_token} of France.")[0][0].text   # "capital"

        Args:
            texts: text that says `mask_token` where a word is missing.
            top: words for each mask.
            pair: a second text for each, which the model reads as one sequence with it.

        Keyword Args:
            strict: refuse a text that is longer than the model reads; it is cut otherwise.
            max_batch_tokens: most tokens in a batch (at least 1, default 4096).

        Returns:
            for each mask of the text in order its words, the best first (list[list[Word]]); for a list of texts a list of these.
        """
        self._need("fill")
        lines, single = text_or_list(texts, "texts")
        seconds = None if pair is None else text_or_list(pair, "pair")[0]
        with self._edited() as edits:
            found = self._native.fill(lines, pairs=seconds, settings=_settings.settings("fill", settings, words=top), edits=edits)
        words = [[[Word(*word) for word in mask] for mask in text] for text in found]
        return words[0] if single else words

    @checked
    @with_settings("classify", ClassifySettings)
    def classify(
        self,
        texts: str | Iterable[str],
        *,
        pair: str | Iterable[str] | None = None,
        **settings: Unpack[ClassifySettings],
    ) -> Any:
        """The labels that a classifier gives to each text, or to each of its tokens.

        ::

            model.classify("A lovely film.")[0].name   # "POSITIVE"

        Args:
            pair: a second text for each, which the model reads as one sequence with it; not of a classifier of tokens.

        Keyword Args:
            strict: refuse a text that is longer than the model reads; it is cut otherwise.
            max_batch_tokens: most tokens in a batch (at least 1, default 4096).

        Returns:
            all labels of the text, the best first (list[Label]), or of a classifier of tokens its tokens with theirs
            (list[LabelledToken]); for a list of texts a list of these.
        """
        self._need("classify")
        lines, single = text_or_list(texts, "texts")
        seconds = None if pair is None else text_or_list(pair, "pair")[0]
        with self._edited() as edits:
            found = self._native.classify(lines, pairs=seconds, settings=_settings.settings("classify", settings), edits=edits)
        labelled: list[Any] = []
        for rows, tokens in found:
            labels = [[Label(*one) for one in row] for row in rows]
            if self._native.labels_tokens:
                labelled.append([LabelledToken(*token, one) for token, one in zip(tokens, labels, strict=True)])
            else:
                labelled.append(labels[0])
        return labelled[0] if single else labelled

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels that a classifier gives, by number; empty when the model is none."""
        return tuple(self._native.labels)

    @property
    def mask_token(self) -> str:
        """What stands for a missing word. Raises UsageError when the tokenizer has none."""
        return self._native.mask_token

    @checked
    @with_settings("score", ScoreSettings)
    def score(
        self,
        texts: TextsOrIds,
        target: TextsOrIds | None = None,
        *,
        per_token: bool = False,
        progress: Progress = False,
        **settings: Unpack[ScoreSettings],
    ) -> Any:
        """The natural logarithm of the probability of each text, or of each target given its text.

        Args:
            texts: what a causal model predicts, each token after the first given those before; or what a translator reads. Each is
                a text, or a list of its token ids as the model reads them: of a translator with the end token.
            target: of a translator, the translations that are scored with their end tokens; token ids have none.
            per_token: return an array for each text, a number for each token that is predicted, in place of their sum.
            progress: as for `translate`; of a causal model it counts the tokens that are scored.

        Keyword Args:
            context: tokens of a window; 0: all that the model can read (0 to 16777216, default 0).
            stride: tokens from a window to the next; 0: half of the context (0 to 16777216, default 0).
            max_batch_tokens: most tokens in a batch (at least 1, default 4096).
            source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or
                de_DE.
            target_language: language of the translations, said in the same way.

        Returns:
            a number for each text (float, or float64 [texts]); perplexity is exp(-sum / number of tokens).
        """
        self._need("score")
        lines, single = texts_or_ids(texts, "texts")
        targets = None if target is None else texts_or_ids(target, "target")[0]
        if (self.kind == "translator") != (targets is not None):
            raise _errors.UsageError("`target` are the translations whose probability a translator's score is; "
                                     + ("give them" if targets is None else "a causal model has none"))  # fmt: skip
        with counting(progress, "texts" if targets else "tokens") as count, self._edited() as edits:
            scores = self._native.score(
                lines, targets=targets, settings=_settings.settings("score", settings), edits=edits, progress=count
            )
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
