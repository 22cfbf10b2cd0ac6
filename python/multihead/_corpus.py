"""Texts for analyses of heads: lists of lines, or files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from . import _errors, _native
from ._arguments import text_or_list

File = str | os.PathLike[str]
Corpus = _native.Corpus
Texts = str | Iterable[str] | os.PathLike[str] | None


def _lines_or_file(given: Texts, argument: str) -> tuple[list[str] | None, str]:
    if given is None:
        return None, ""
    if isinstance(given, os.PathLike):
        return None, os.fspath(given)
    return text_or_list(given, argument)[0], ""


def corpus(
    text: Texts,
    *,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    target_trees: File | None = None,
    alignment: File | None = None,
) -> Corpus:
    """A str is one text, a list of str several, a pathlib.Path a file of them, a line each (gzip or not)."""
    if text is None and trees is None:
        raise _errors.UsageError("give texts: a list of them, or pathlib.Path(FILE) with one a line")
    lines, file = _lines_or_file(text, "text")
    targets, target_file = _lines_or_file(target, "target")
    pairs, pair_file = _lines_or_file(pair, "pair")
    return Corpus(
        lines=lines, targets=targets, pairs=pairs, input=file, target_file=target_file, pair_file=pair_file,
        conllu="" if trees is None else os.fspath(trees), target_conllu="" if target_trees is None else os.fspath(target_trees),
        alignment="" if alignment is None else os.fspath(alignment),
    )  # fmt: skip
