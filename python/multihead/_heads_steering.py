"""Directions: what makes them, and what they do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ._arguments import checked
from ._corpus import Texts, corpus
from ._heads_report import report_of
from ._model import Model
from ._names import listed
from ._progress import Progress, counting
from ._settings import Options, settings, with_options
from ._steering import Direction
from ._table import Table


@with_options("steer")
@checked
def direction(
    model: Model,
    toward: Texts,
    away: Texts = None,
    *,
    site: str,
    head: int | None = None,
    at: str = "",
    # settings of steer but max_batch_tokens
    rows: Literal["last", "all"] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Direction:
    """A direction of texts: the mean of the values at a site over `toward`, less that over `away` (docs/heads/steer.md).

    ::

        praise = mh.heads.direction(model, good, bad, site="decoder.12.output")
        with model.edit(add={praise: 2}):
            model.generate("The film was")

    Args:
        rows: rows of a text that make the direction: of its last position, or the mean of all.
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        toward: texts that it points to; away: texts that it points away from, without: it is the mean over `toward`.
        site: where the values are read; of a head's contribution ("decoder.9.self_attention.contributions.4") the direction is
            added where the attention adds it.
        head: of a site of heads side by side: which one, from 0.
        at: another site where the direction is added.
    """
    with counting(progress, "texts") as count, model._edited() as edits:
        made = model._native.direction(
            corpus(toward), away=None if away is None else corpus(away), site=site, head=head, at=at,
            settings=settings("steer", locals()), edits=edits, progress=count,
        )  # fmt: skip
    return Direction(made)


@with_options("steer")
@checked
def steer(
    model: Model,
    direction: Direction,
    *,
    texts: str | Iterable[str] = (),
    answers: str | Iterable[str] = (),
    prefix: str = "",
    other: Texts = None,
    other_target: Texts = None,
    strengths: Iterable[float] = (-4, -2, -1, 0, 1, 2, 4),
    # settings of steer but rows
    source_language: str | None = None,
    target_language: str | None = None,
    max_batch_tokens: int = 2048,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """What a direction does at several strengths: to the log-probability of words, and to that of other text (docs/heads/steer.md).

    Args:
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        texts: texts after which, or at whose masks, the answers are asked for.
        answers: words; of one of several tokens the first counts.
        prefix: of a translator, how its target begins.
        other: text whose perplexity shows the damage; other_target: of a translator its translations.
        strengths: what the direction is multiplied by.

    A row for each strength: `strength`, `log_probability.WORD` of each answer (natural logarithm, the mean over the texts), `loss`
    (-log p of a token of other text) and `perplexity`.
    """
    report = report_of(
        model._native.steer, "steer", locals(), direction=direction._native, texts=listed(texts, "texts"),
        answers=listed(answers, "answers"), prefix=prefix, strengths=list(strengths),
        other=None if other is None else corpus(other, target=other_target),
    )  # fmt: skip
    words = [answer["text"] for answer in (report["texts"][0]["answers"] if report["texts"] else [])]
    rows = []
    for dose in report["doses"]:
        of_words = {f"log_probability.{word}": p for word, p in zip(words, dose["log_probability"], strict=True)}
        damage = {} if other is None else {"loss": dose["loss"], "perplexity": dose["perplexity"]}
        rows.append({"strength": dose["strength"], **of_words, **damage})
    return Table(rows, report)
