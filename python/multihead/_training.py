"""Training a translator."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native

_logger = logging.getLogger("multihead.train")


@dataclass(frozen=True)
class Training:
    """How a training ended.

    Attributes:
        model: the folder of the trained model.
        updates: that were made in all. end: why it ended, in words. was_finished: it had ended before.
        averaged: the updates whose checkpoints were averaged. left_out: pairs that are longer than max_length.
        final: loss, perplexity and BLEU of the model on the validation text, if they were measured.
    """

    model: str
    updates: int
    end: str
    was_finished: bool
    averaged: list[int]
    left_out: int
    final: Mapping[str, float] | None


def _bar() -> tuple[Callable[[dict[str, Any]], None], Callable[[dict[str, Any]], None]]:
    from tqdm.auto import tqdm

    bar = tqdm(unit=" updates")

    def update(found: dict[str, Any]) -> None:
        bar.total = found["updates"] or None
        bar.update(found["update"] - bar.n)
        bar.set_postfix(loss=f"{found['loss']:.3f}", refresh=False)

    def validation(found: dict[str, Any]) -> None:
        bar.write(", ".join(f"{name} {value:.4g}" for name, value in found.items()))

    return update, validation


def train(
    model: str | os.PathLike[str],
    train_source: str | os.PathLike[str],
    train_target: str | os.PathLike[str],
    *,
    on_update: Callable[[dict[str, Any]], None] | None = None,
    on_validation: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = False,
    **settings: Any,
) -> Training:
    """Trains a translator from two text files, a sentence a line, or goes on with a training that was stopped in that folder.

    ::

        mh.train("en-de", "train.en", "train.de", valid_source="val.en", valid_target="val.de", updates=8000, preset="tiny")

    Args:
        model: the folder of the model and its checkpoints.
        train_source, train_target: texts, gzip or not.
        on_update: called after each update with {"update", "updates", "epoch", "loss", "tokens_per_second", "seconds_left"}.
        on_validation: called after each validation with {"update", "loss", "perplexity", "bleu"}.
        progress: a bar of tqdm, which it needs.
        settings: all others, by the names of the flags of ``multihead train``: ``learning_rate=1e-3``. `training_settings()` lists
            them with their defaults. The same settings give the same bits on any number of threads, also after a stop.

    What is worth knowing, such as how many pairs were left out, goes to the logger "multihead.train" (INFO). Ctrl-C, and an
    exception in a callback, end it. After Ctrl-C the state is saved first, and the same call goes on from there.

    Raises:
        FormatError: a setting that there is not, or out of its range.
        UsageError: other settings or texts than those that the training in this folder was started with.
    """
    given = {"model": os.fspath(model), "train_source": os.fspath(train_source), "train_target": os.fspath(train_target)}
    given |= {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in settings.items()}
    if progress:
        update, validation = _bar()
        on_update, on_validation = on_update or update, on_validation or validation
    found = _native.train(json.dumps(given), on_update=on_update, on_validation=on_validation, on_remark=_logger.info)
    return Training(model=given["model"], **found)


def training_settings() -> dict[str, Any]:
    """All settings of `train` with their defaults; ``multihead train --help`` describes them."""
    found: dict[str, Any] = json.loads(_native.training_settings())
    return found
