"""Settings of what a model does with texts, as the library describes them: scripts/python_settings writes this file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class BleuSettings(TypedDict, total=False):
    tokenizer: Literal["13a", "intl", "moses", "none"]
    language: Literal["en", "de"]
    lowercase: bool
    smoothing: Literal["exp", "floor", "add-k", "none"]
    smoothing_value: float | None
    effective_order: bool


class CheckSettings(TypedDict, total=False):
    tolerance: float
    text: Sequence[str]
    new_tokens: int
    source_language: str | None
    target_language: str | None


class ClassifySettings(TypedDict, total=False):
    strict: bool
    max_batch_tokens: int


class EmbedSettings(TypedDict, total=False):
    prompt_name: str | None
    prompt: str | None
    strict: bool
    max_batch_tokens: int


class FillSettings(TypedDict, total=False):
    strict: bool
    max_batch_tokens: int


class GenerateSettings(TypedDict, total=False):
    max_new_tokens: int
    search: Literal["sample", "greedy", "beam"]
    beam_size: int
    length_penalty: float | None
    length_penalty_form: Literal["divide", "gnmt"]
    early_stopping: bool | Literal["true", "false", "never"] | None
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    no_repeat_ngram: int | None
    seed: int
    cache: Literal["float32", "bfloat16"]
    max_batch_tokens: int
    stop: Sequence[str]
    strict: bool
    chat: bool
    system: str | None


class ScoreSettings(TypedDict, total=False):
    context: int
    stride: int
    max_batch_tokens: int
    source_language: str | None
    target_language: str | None


class TranslateSettings(TypedDict, total=False):
    source_language: str | None
    target_language: str | Sequence[str] | None
    source_prefix: str | None
    beam_size: int | None
    length_penalty: float | None
    length_penalty_form: Literal["divide", "gnmt"]
    early_stopping: bool | Literal["true", "false", "never"] | None
    min_length: int | None
    max_length: int | None
    max_length_factor: float
    no_repeat_ngram: int | None
    cache: Literal["float32", "bfloat16"]
    max_batch_tokens: int
