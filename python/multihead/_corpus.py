"""Texts for analyses of heads: lists of lines, or files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from . import _errors, _native

File = str | os.PathLike[str]
Texts = str | Iterable[str] | os.PathLike[str] | None


def _lines_or_file(given: Texts) -> tuple[list[str] | None, str]:
    if given is None:
        return None, ""
    if isinstance(given, str):
        return [given], ""
    if isinstance(given, os.PathLike):
        return None, os.fspath(given)
    return list(given), ""


def corpus(
    text: Texts,
    *,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    target_trees: File | None = None,
    alignment: File | None = None,
) -> _native.Corpus:
    """A str is one text, a list of str several, a pathlib.Path a file of them, a line each (gzip or not)."""
    if text is None and trees is None:
        raise _errors.UsageError("give texts: a list of them, or pathlib.Path(FILE) with one a line")
    lines, file = _lines_or_file(text)
    targets, target_file = _lines_or_file(target)
    pairs, pair_file = _lines_or_file(pair)
    return _native.Corpus(
        lines=lines, targets=targets, pairs=pairs, input=file, target_file=target_file, pair_file=pair_file,
        conllu="" if trees is None else os.fspath(trees), target_conllu="" if target_trees is None else os.fspath(target_trees),
        alignment="" if alignment is None else os.fspath(alignment),
    )  # fmt: skip
