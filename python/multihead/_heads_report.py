"""Reports of analyses of heads: what an analysis of the model gives, under the edits of this moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ._corpus import corpus
from ._progress import counting
from ._settings import settings

_TEXTS = ("target", "pair", "trees", "target_trees", "alignment")


def report_of(analysis: Callable[..., str], verb: str, given: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    """Of an analysis with the settings of ``multihead heads VERB`` among a function's arguments; own: what it takes besides."""
    with counting(given["progress"], "sentences") as count, given["model"]._edited() as edits:
        found = analysis(settings=settings(verb, given), edits=edits, progress=count, **own)
    report: dict[str, Any] = json.loads(found)
    return report


def on_corpus(verb: str, given: Mapping[str, Any], *, analysis: str = "", **own: Any) -> dict[str, Any]:
    """Of an analysis, called as its verb unless another name is given, that reads the texts among a function's arguments."""
    read = corpus(given["text"], **{name: given[name] for name in _TEXTS if name in given})
    return report_of(getattr(given["model"]._native, analysis or verb), verb, given, corpus=read, **own)
