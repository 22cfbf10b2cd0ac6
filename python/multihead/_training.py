"""Training a translator."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native
from ._arguments import checked, text
from ._errors import ArgumentTypeError, UsageError
from ._progress import bar

Callback = Callable[[dict[str, Any]], None] | None


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


@contextlib.contextmanager
def _told(progress: bool, on_update: Callback, on_validation: Callback) -> Iterator[tuple[Callback, Callback]]:
    """The callbacks, and before each the bar where one is wanted."""
    if not progress:
        yield on_update, on_validation
        return
    with contextlib.closing(bar("updates")) as shown:

        def update(found: dict[str, Any]) -> None:
            shown.total = found["updates"] or None
            shown.update(found["update"] - shown.n)
            shown.set_postfix(loss=f"{found['loss']:.3f}", refresh=False)
            if on_update is not None:
                on_update(found)

        def validation(found: dict[str, Any]) -> None:
            shown.write(", ".join(f"{name} {value:.4g}" for name, value in found.items()))
            if on_validation is not None:
                on_validation(found)

        yield update, validation


def _plain(name: str, value: Any) -> Any:
    """A setting as JSON has it. Raises ArgumentTypeError, and UsageError on a number that is not finite."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"`{name}`: expected a finite number, got {value}")
    if isinstance(value, str):
        return text(value, name)
    if not isinstance(value, (int, float)):
        raise ArgumentTypeError(f"`{name}`: expected text, a number, True or False, got {type(value).__name__}")
    return value


@checked
def train(
    model: str | os.PathLike[str],
    train_source: str | os.PathLike[str],
    train_target: str | os.PathLike[str],
    *,
    on_update: Callback = None,
    on_validation: Callback = None,
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
        progress: also a bar of tqdm, which it needs.
        settings: all others, by the names of the flags of ``multihead train``: ``learning_rate=1e-3``. `training_settings()` lists
            them with their defaults. The same settings give the same bits on any number of threads, also after a stop.
            ``init_from="nllb", source_language="en", target_language="de"`` goes on from a translator of any family, whose folder
            the new one is like; the languages are ``--from`` and ``--to`` there, and `source_prefix` comes before each text.

    What is worth knowing, such as how many pairs were left out, goes to the logger "multihead.train" (INFO). Ctrl-C, and an
    exception in a callback, end it. After Ctrl-C the state is saved first, and the same call goes on from there.

    Raises:
        FormatError: a setting that there is not, or out of its range.
        UsageError: other settings or texts than those that the training in this folder was started with.
    """
    import logging

    remark = logging.getLogger("multihead.train").info
    given = {"model": os.fspath(model), "train_source": os.fspath(train_source), "train_target": os.fspath(train_target)}
    given |= {name: _plain(name, value) for name, value in settings.items()}
    with _told(progress, on_update, on_validation) as (update, validation):
        found = _native.train(json.dumps(given), on_update=update, on_validation=validation, on_remark=remark)
    return Training(model=given["model"], **found)


def training_settings() -> dict[str, Any]:
    """All settings of `train` with their defaults; ``multihead train --help`` describes them."""
    found: dict[str, Any] = json.loads(_native.training_settings())
    return found
